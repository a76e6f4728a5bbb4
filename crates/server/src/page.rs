//! The page: its built files, held by the program, and which addresses are views of it. It knows nothing of the society;
//! everything that it shows it asks for itself, over the other routes.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;

use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, REFERRER_POLICY, VARY,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::read::GzDecoder;

use crate::etag_gzip::accepts_gzip;
use crate::problem::Problem;
use crate::state::SocietyState;

/// The built files with their paths below `web/dist`, each packed with gzip.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// The first part of the address of each view. The page itself reads the rest.
const VIEWS: &[&str] = &["chat", "inbox", "organisation", "trace", "gallery", "settings"];

/// What the page may do: only what comes from here, nothing inline, and no text becomes markup but through its sanitiser.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
     connect-src 'self'; manifest-src 'self'; frame-src {host}/sandbox/; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types dompurify polis";

/// The page at each of its views, whatever the rest of the address says (that is the page's to read), and its files.
pub(crate) fn routes() -> Router<SocietyState> {
    let view = |router: Router<SocietyState>, name: &&str| {
        router.route(&format!("/{name}"), get(index)).route(&format!("/{name}/{{*rest}}"), get(index))
    };
    VIEWS.iter().fold(Router::new().route("/assets/{name}", get(asset)), view)
}

/// Whether a path is that of a view.
pub(crate) fn is_view(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    first.is_empty() || VIEWS.contains(&first)
}

/// The page.
pub(crate) async fn index(headers: HeaderMap) -> Response {
    // Frames only from the two addresses that are made for them: `'self'` would let them ask for everything else here.
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("'none'");
    let policy = POLICY.replace("{host}", host);
    let Some(packed) = packed_file("index.html") else { return nothing().into_response() };
    let mut hasher = DefaultHasher::new();
    hasher.write(&packed);
    let etag = format!("W/\"{:016x}\"", hasher.finish());
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains(&etag));
    let mut response = if known { StatusCode::NOT_MODIFIED.into_response() } else { answer("index.html", packed, &headers) };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(ETAG, etag);
    }
    response
}

/// A file of the page. Its name changes with its content, so it may be kept for ever.
async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let path = format!("assets/{name}");
    let Some(packed) = packed_file(&path) else { return nothing().into_response() };
    let mut response = answer(&path, packed, &headers);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    response
}

/// A packed file, as it is where the client takes gzip.
fn answer(path: &str, packed: Cow<'static, [u8]>, headers: &HeaderMap) -> Response {
    if accepts_gzip(headers) {
        let gzip = [(CONTENT_ENCODING, HeaderValue::from_static("gzip")), (VARY, HeaderValue::from_static("Accept-Encoding"))];
        return ([kind(path)], gzip, packed).into_response();
    }
    let mut plain = Vec::new();
    match GzDecoder::new(&*packed).read_to_end(&mut plain) {
        Ok(_) => ([kind(path)], plain).into_response(),
        Err(_) => nothing().into_response(),
    }
}

fn nothing() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not_found", "there is nothing at this address")
}

/// A built file, packed. A debug build prefers what lies in the folder just now, so that the page can be worked on.
fn packed_file(path: &str) -> Option<Cow<'static, [u8]>> {
    #[cfg(debug_assertions)]
    if let Some(packed) = work_in_progress(path) {
        return Some(packed.into());
    }
    FILES.iter().find(|(name, _)| *name == path).map(|(_, packed)| Cow::Borrowed(*packed))
}

/// What lies in the folder, packed once for each of its contents.
#[cfg(debug_assertions)]
fn work_in_progress(path: &str) -> Option<Vec<u8>> {
    use std::collections::HashMap;
    use std::io::Write;
    use std::sync::{LazyLock, Mutex, PoisonError};

    type Packed = HashMap<String, (Vec<u8>, Vec<u8>)>;
    static PACKED: LazyLock<Mutex<Packed>> = LazyLock::new(Mutex::default);
    if path.contains("..") {
        return None;
    }
    let plain = std::fs::read(format!("{}/../../web/dist/{path}", env!("CARGO_MANIFEST_DIR"))).ok()?;
    let mut packed = PACKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, packed)) = packed.get(path).filter(|(of, _)| *of == plain) {
        return Some(packed.clone());
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&plain).ok()?;
    let made = encoder.finish().ok()?;
    packed.insert(path.to_owned(), (plain, made.clone()));
    Some(made)
}

fn kind(path: &str) -> (axum::http::HeaderName, HeaderValue) {
    let kind = match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        "woff2" => "font/woff2",
        "png" => "image/png",
        _ => "application/octet-stream",
    };
    (CONTENT_TYPE, HeaderValue::from_static(kind))
}

#[cfg(test)]
mod tests {
    use axum::http::header::ACCEPT_ENCODING;

    use super::*;

    #[tokio::test]
    async fn a_file_that_is_not_there_is_not_found_and_never_the_page() {
        for name in ["gone.js", "../index.html"] {
            assert_eq!(asset(Path(name.to_owned()), HeaderMap::new()).await.status(), StatusCode::NOT_FOUND);
        }
    }

    #[tokio::test]
    async fn the_page_is_asked_for_again_and_its_files_are_kept() {
        let page = index(HeaderMap::new()).await;
        assert_eq!(page.headers()[CACHE_CONTROL], "no-cache");
        let again = HeaderMap::from_iter([(IF_NONE_MATCH, page.headers()[ETAG].clone())]);
        assert_eq!(index(again).await.status(), StatusCode::NOT_MODIFIED);
        let kept = asset(first_script(), HeaderMap::new()).await;
        assert!(kept.headers()[CACHE_CONTROL].to_str().unwrap().contains("immutable"));
    }

    #[tokio::test]
    async fn a_client_without_gzip_gets_the_same_file_unpacked() {
        let body = async |headers: HeaderMap| {
            let response = asset(first_script(), headers).await;
            let is_packed = response.headers().contains_key(CONTENT_ENCODING);
            (is_packed, axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap())
        };
        let (is_packed, plain) = body(HeaderMap::new()).await;
        assert!(!is_packed && !plain.starts_with(&[0x1f, 0x8b]));
        let (is_packed, packed) = body(HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))])).await;
        assert!(is_packed && packed.len() < plain.len());
        let mut unpacked = Vec::new();
        GzDecoder::new(&*packed).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain);
    }

    /// The name of the largest script.
    fn first_script() -> Path<String> {
        let scripts = FILES.iter().filter(|(name, _)| name.ends_with(".js"));
        let (name, _) = scripts.max_by_key(|(_, packed)| packed.len()).unwrap();
        Path(name.trim_start_matches("assets/").to_owned())
    }
}
