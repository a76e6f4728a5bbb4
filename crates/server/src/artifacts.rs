//! Contents outside the log: which there are, the contents themselves, and new ones that a person sends.
//!
//! A model may have written them. They are never shown as part of our own page: what could act is downloaded, the rest is
//! sandboxed, and nothing is guessed about its kind.

use std::ops::Range;
use std::time::Duration;

use axum::Json as Answer;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::Request;
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    ETAG, IF_NONE_MATCH, IF_RANGE, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use polis_api::local::artifact_id;
use polis_api::{ApiError, ArtifactName, ArtifactPaging, Artifacts};
use polis_domain::Artifact;

use crate::extract::{CallerApi, PathParam, QueryParams};
use crate::problem::Problem;
use crate::requests::JsonResult;

/// How long each chunk of a body may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What is encoded in the value of a header (RFC 8187).
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// Kinds that a browser shows without running anything.
const SAFE: &[&str] = &["text/plain", "image/png", "image/jpeg", "image/gif", "image/webp", "audio/mpeg", "audio/wav"];

/// Forbids a content everything, also to be of our origin.
const SANDBOX: &str = "default-src 'none'; sandbox; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn list(CallerApi(api): CallerApi, QueryParams(paging): QueryParams<ArtifactPaging>) -> JsonResult<Artifacts> {
    Ok(Answer(api.artifacts(paging).await?))
}

pub(crate) async fn get(CallerApi(api): CallerApi, PathParam(id): PathParam, headers: HeaderMap) -> Result<Response, Problem> {
    let id = artifact_id(&id)?;
    let artifact = api.artifact(&id).await?;
    let total = artifact.bytes;
    let etag = format!("\"{id}\"");
    let is_known = |name| headers.get(name).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains(&etag));
    if is_known(IF_NONE_MATCH) {
        return Ok((StatusCode::NOT_MODIFIED, headers_of(&artifact, &etag)).into_response());
    }
    let range = headers.get(RANGE).filter(|_| !headers.contains_key(IF_RANGE) || is_known(IF_RANGE));
    let part = match range.and_then(|range| range.to_str().ok()).map_or(Part::Whole, |range| part(range, total)) {
        Part::Whole => None,
        Part::Some(part) => Some(part),
        Part::Nothing => {
            let range = HeaderValue::from_str(&format!("bytes */{total}")).map_err(|_| not_found())?;
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, [(CONTENT_RANGE, range)]).into_response());
        }
    };
    let (status, range) = match &part {
        Some(part) => (StatusCode::PARTIAL_CONTENT, part.clone()),
        None => (StatusCode::OK, 0..total),
    };
    let mut response = (status, headers_of(&artifact, &etag)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, (range.end - range.start).into());
    if part.is_some()
        && let Ok(content_range) = HeaderValue::from_str(&format!("bytes {}-{}/{total}", range.start, range.end - 1))
    {
        headers.insert(CONTENT_RANGE, content_range);
    }
    *response.body_mut() = Body::from_stream(api.content(&id, range).await?);
    Ok(response)
}

fn not_found() -> Problem {
    Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "bad_range", "the artifact has no such part")
}

/// The headers of an answer with a content.
fn headers_of(artifact: &Artifact, etag: &str) -> HeaderMap {
    let essence = artifact.media_type.split(';').next().unwrap_or_default().trim().to_lowercase();
    let is_safe = SAFE.contains(&essence.as_str());
    let kind = HeaderValue::from_str(&artifact.media_type);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, kind.unwrap_or(HeaderValue::from_static("application/octet-stream")));
    let disposition = format!("{}; {}", if is_safe { "inline" } else { "attachment" }, file_name(&artifact.name));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_str(&disposition).unwrap_or(HeaderValue::from_static("attachment")));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(ETAG, etag);
    }
    headers
}

/// The name as the header takes it: plain for old readers, and whole.
fn file_name(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_plain = |envelope: char| envelope.is_ascii_alphanumeric() || "-_. ".contains(envelope);
    let plain: String = name.chars().map(|envelope| if is_plain(envelope) { envelope } else { '_' }).collect();
    let encoded = utf8_percent_encode(name, VALUE);
    format!("filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

/// What a `Range` header asks for.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// All of it, also where the header cannot be used.
    Whole,
    Some(Range<u64>),
    /// A part that is not there.
    Nothing,
}

fn part(range: &str, total: u64) -> Part {
    let Some((first, last)) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else { return Part::Whole };
    let (start, end) = match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => (first, last.saturating_add(1).min(total)),
        (Ok(first), Err(_)) if last.trim().is_empty() => (first, total),
        (Err(_), Ok(count)) if first.trim().is_empty() => (total.saturating_sub(count), total),
        _ => return Part::Whole,
    };
    if start < end { Part::Some(start..end) } else { Part::Nothing }
}

/// Stores what a person sends.
pub(crate) async fn put(
    CallerApi(api): CallerApi,
    QueryParams(name): QueryParams<ArtifactName>,
    request: Request,
) -> JsonResult<Artifact> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let body = request.into_body().into_data_stream();
    let chunks = stream::unfold(body, |mut body| async move { next_chunk(&mut body).await.map(|chunk| (chunk, body)) });
    Ok(Answer(api.store_artifact(name, &kind, Box::pin(chunks)).await?))
}

/// The next chunk of a body; an error where it breaks off or is too slow.
async fn next_chunk(body: &mut BodyDataStream) -> Option<Result<Bytes, ApiError>> {
    let broken = |error| ApiError::bad_request("bad_body", format!("the body broke off: {error}; send it again"));
    match tokio::time::timeout(TIMEOUT, body.next()).await {
        Ok(chunk) => chunk.map(|chunk| chunk.map_err(broken)),
        Err(_) => Some(Err(ApiError::new(408, "body_timeout", "the body took too long to arrive; send it again"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_browsers_write_it() {
        let check = |range: &str, want: Part| assert_eq!(part(range, 10), want, "{range}");
        check("bytes=0-3", Part::Some(0..4));
        check("bytes=8-99", Part::Some(8..10));
        check("bytes=4-", Part::Some(4..10));
        check("bytes=-3", Part::Some(7..10));
        check("bytes=-99", Part::Some(0..10));
        check("bytes=10-", Part::Nothing);
        check("bytes=-0", Part::Nothing);
        for strange in ["bytes=3-1", "bytes=a-b", "bytes=0-1,3-4", "lines=0-1", "", "bytes=-"] {
            check(strange, Part::Whole);
        }
    }

    #[test]
    fn a_name_cannot_break_out_of_its_header() {
        assert_eq!(file_name("a b.md"), "filename=\"a b.md\"; filename*=UTF-8''a%20b.md");
        assert_eq!(file_name("../x/报\".html"), "filename=\"__.html\"; filename*=UTF-8''%E6%8A%A5%22.html");
    }
}
