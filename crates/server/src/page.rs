//! The page: its built files, held by the program, and which addresses are views of it. It knows nothing of the society;
//! everything that it shows it asks for itself, over the other routes.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};

use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, REFERRER_POLICY, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::problem::Problem;
use crate::state::SocietyState;

/// The built files with their paths below `web/dist`.
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
    let Some(body) = file("index.html") else { return nothing().into_response() };
    let mut hasher = DefaultHasher::new();
    hasher.write(&body);
    let etag = format!("\"{:016x}\"", hasher.finish());
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains(&etag));
    let mut response =
        if known { StatusCode::NOT_MODIFIED.into_response() } else { ([kind("index.html")], body).into_response() };
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
async fn asset(Path(name): Path<String>) -> Response {
    let path = format!("assets/{name}");
    let Some(body) = file(&path) else { return nothing().into_response() };
    let forever = (CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    ([kind(&path), forever], body).into_response()
}

fn nothing() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not_found", "there is nothing at this address")
}

/// A built file. A debug build prefers what lies in the folder just now, so that the page can be worked on.
fn file(path: &str) -> Option<Cow<'static, [u8]>> {
    #[cfg(debug_assertions)]
    if !path.contains("..")
        && let Ok(bytes) = std::fs::read(format!("{}/../../web/dist/{path}", env!("CARGO_MANIFEST_DIR")))
    {
        return Some(bytes.into());
    }
    FILES.iter().find(|(name, _)| *name == path).map(|(_, bytes)| Cow::Borrowed(*bytes))
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
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_not_there_is_not_found_and_never_the_page() {
        assert_eq!(asset(Path("gone.js".to_owned())).await.status(), StatusCode::NOT_FOUND);
        assert_eq!(asset(Path("../index.html".to_owned())).await.status(), StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn the_page_is_asked_for_again_and_its_files_are_kept() {
        let page = index(HeaderMap::new()).await;
        assert_eq!(page.headers()[CACHE_CONTROL], "no-cache");
        let again = HeaderMap::from_iter([(IF_NONE_MATCH, page.headers()[ETAG].clone())]);
        assert_eq!(index(again).await.status(), StatusCode::NOT_MODIFIED);
        let (name, _) = FILES.iter().find(|(name, _)| name.starts_with("assets/")).unwrap();
        let kept = asset(Path(name.trim_start_matches("assets/").to_owned())).await;
        assert!(kept.headers()[CACHE_CONTROL].to_str().unwrap().contains("immutable"));
    }
}
