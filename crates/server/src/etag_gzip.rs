//! Adds an ETag to complete responses, and gzip where the client accepts it. Streams are never touched.

use std::io::Write;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{SHA256, digest};

use crate::nodes::PassedOn;
use crate::problem::Problem;
use crate::tokens::hex;

/// Shortest answer that is worth compressing.
const WORTH_IT: usize = 1_024;

/// Longest answer that is held whole; no list of ours comes near.
const MAX_BYTES: usize = 64 << 20;

pub(crate) async fn add_etag_and_gzip(request: Request, next: Next) -> Response {
    let is_look = request.method() == Method::GET;
    let known = request.headers().get(IF_NONE_MATCH).cloned();
    let wants_gzip = accepts_gzip(request.headers());
    let response = next.run(request).await;
    if !is_plain(&response) || response.extensions().get::<PassedOn>().is_some() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_BYTES).await else {
        return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "answer_too_large", "the answer is too large; request less")
            .into_response();
    };
    if is_look && parts.status == StatusCode::OK && !parts.headers.contains_key(ETAG) {
        let etag = format!("W/\"{}\"", hex(&digest(&SHA256, &bytes).as_ref()[..16]));
        let is_known = known.and_then(|known| known.to_str().map(|known| known.contains(&etag)).ok()).unwrap_or(false);
        if let Ok(etag) = HeaderValue::from_str(&etag) {
            parts.headers.insert(ETAG, etag);
        }
        parts.headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-cache"));
        if is_known {
            parts.status = StatusCode::NOT_MODIFIED;
            parts.headers.remove(CONTENT_LENGTH);
            parts.headers.remove(CONTENT_TYPE);
            return Response::from_parts(parts, Body::empty());
        }
    }
    parts.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    if bytes.len() < WORTH_IT || !wants_gzip {
        return Response::from_parts(parts, Body::from(bytes));
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    match encoder.write_all(&bytes).and_then(|()| encoder.finish()) {
        Ok(small) => {
            parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.insert(CONTENT_LENGTH, small.len().into());
            Response::from_parts(parts, Body::from(small))
        }
        Err(_) => Response::from_parts(parts, Body::from(bytes)),
    }
}

/// Whether an answer is a text that is there already: its length is known, and nobody has packed it.
fn is_plain(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    let is_text = matches!(essence, "application/json" | "text/plain" | "text/html" | "text/css" | "text/javascript");
    is_text && response.body().size_hint().exact().is_some() && !response.headers().contains_key(CONTENT_ENCODING)
}

/// Whether a client takes answers that are packed with gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let given = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    given.flat_map(|line| line.split(',')).any(|one| {
        let (coding, weight) = one.split_once(';').unwrap_or((one, ""));
        coding.trim() == "gzip" && !matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}
