//! Public files, such as the documents, on a listener of their own. A society is never served here.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Nothing from elsewhere, and nothing inline.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Files by their paths, each with its content type.
type Files = Arc<BTreeMap<String, (&'static str, Vec<u8>)>>;

/// Serves these files until it is to stop. A path that ends in `/` means the `index.html` below it.
///
/// # Errors
///
/// If the listener fails.
pub async fn serve_files(
    listener: TcpListener,
    files: BTreeMap<String, (&'static str, Vec<u8>)>,
    stop: CancellationToken,
) -> io::Result<()> {
    let router = Router::new().fallback(get(file)).with_state(Arc::new(files));
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

async fn file(State(files): State<Files>, address: Uri) -> Response {
    let path = address.path().trim_start_matches('/');
    let path = if path.is_empty() || path.ends_with('/') { format!("{path}index.html") } else { path.to_owned() };
    let Some((content_type, bytes)) = files.get(&path) else {
        return (StatusCode::NOT_FOUND, "there is no such page; begin at /\n").into_response();
    };
    let headers = [(CONTENT_TYPE, *content_type), (CONTENT_SECURITY_POLICY, POLICY), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (headers, bytes.clone()).into_response()
}
