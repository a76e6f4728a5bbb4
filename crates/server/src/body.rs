//! Reading a request's JSON body: its type, its size, its encoding and its depth are checked before anything is believed.

use std::any::TypeId;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use futures_util::StreamExt;
use polis_api::MAX_ORG_BYTES;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::problem::Problem;
use crate::state::SocietyState;

/// Longest body that is taken.
const MAX_BYTES: usize = 1 << 20;

/// Longest body where messages may have files inside them: as much as a model is shown, in base64, and words.
const MAX_FILES_BYTES: usize = 20 << 20;

/// How much of a longer body is read and discarded, so that its sender receives the error.
const MAX_DRAINED_BYTES: usize = 16 << 20;

/// Where documents are taken.
const DOCUMENTS: &str = "/api/org";

/// How long a body may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Deepest nesting of arrays and objects.
const MAX_DEPTH: usize = 64;

/// A body of JSON. An empty one is an empty object.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned + 'static> FromRequest<SocietyState> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &SocietyState) -> Result<Self, Problem> {
        let is_json = is_json(request.headers()) && is_plain(request.headers());
        let declared = declared_bytes(request.headers());
        let most = max_bytes(request.uri().path());
        let body = read_with_timeout(request.into_body(), declared, most).await?;
        if !is_json {
            let detail = "send the body as JSON in UTF-8, not compressed, with the header `Content-Type: application/json`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail));
        }
        let text = std::str::from_utf8(&body).map_err(|error| {
            let detail = format!("the body is not UTF-8 (byte {} is invalid); encode it as UTF-8", error.valid_up_to());
            Problem::bad_request("invalid_utf8", detail)
        })?;
        if depth(text) > MAX_DEPTH {
            let detail = format!("the body nests deeper than {MAX_DEPTH} levels; flatten it");
            return Err(Problem::bad_request("bad_json", detail));
        }
        let text = if text.trim().is_empty() { "{}" } else { text };
        let bad = |why: &str| Problem::bad_request("bad_json", format!("the body cannot be used: {why}"));
        // Serde would take a list for an object whose fields come in this order.
        if text.trim_start().starts_with('[') && TypeId::of::<T>() != TypeId::of::<Value>() {
            return Err(bad("it must be an object with named fields, but is a list"));
        }
        serde_json::from_str(text).map(Self).map_err(|error: serde_json::Error| bad(&error.to_string()))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = value.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    let is_charset = |part: &str| part.get(..8).is_some_and(|name| name.eq_ignore_ascii_case("charset="));
    let is_utf8 = |part: &str| part[8..].trim_matches('"').eq_ignore_ascii_case("utf-8");
    essence.eq_ignore_ascii_case("application/json") && parts.filter(|part| is_charset(part)).all(is_utf8)
}

/// Whether the body is as it is meant: nothing here unpacks it.
fn is_plain(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

pub(crate) fn declared_bytes(headers: &HeaderMap) -> usize {
    let value = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// Longest body that is taken at a place.
pub(crate) fn max_bytes(path: &str) -> usize {
    match path {
        path if path.ends_with(DOCUMENTS) => MAX_ORG_BYTES,
        path if takes_files(path) => MAX_FILES_BYTES,
        _ => MAX_BYTES,
    }
}

/// Whether messages with files inside them are taken here.
fn takes_files(path: &str) -> bool {
    path.ends_with("/v1/chat/completions") || path.ends_with("/v1/responses") || path.contains("/agui") || path.contains("/a2a")
}

/// Reads a body whole, within its time and its size.
pub(crate) async fn read_with_timeout(body: Body, declared: usize, most: usize) -> Result<Vec<u8>, Problem> {
    tokio::time::timeout(TIMEOUT, read(body, declared, most)).await.unwrap_or_else(|_| {
        let detail = "the body took too long to arrive; send it again";
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", detail))
    })
}

async fn read(body: Body, declared: usize, most: usize) -> Result<Vec<u8>, Problem> {
    let too_large = || {
        let detail = format!("the body is longer than {most} bytes; send less");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    };
    let drained = most.max(MAX_DRAINED_BYTES);
    if declared > drained {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(declared.min(MAX_BYTES));
    let mut seen = 0;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| Problem::bad_request("bad_body", format!("the body broke off: {error}")))?;
        seen += chunk.len();
        if seen <= most {
            bytes.extend_from_slice(&chunk);
        } else if seen > drained {
            break;
        }
    }
    if seen > most { Err(too_large()) } else { Ok(bytes) }
}

/// How deep arrays and objects nest. Brackets inside strings do not count.
fn depth(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' if !in_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_strings() {
        for (text, want) in
            [("", 0), ("1", 0), ("{}", 1), ("[[],[[]]]", 3), (r#"["[[[","\"[[{"]"#, 1), (r#"{"a":"\\"}[[]]"#, 2)]
        {
            assert_eq!(depth(text), want, "{text}");
        }
    }
}
