//! Contents outside the log: which there are, the contents themselves, and new ones that a person sends.
//!
//! A model may have written them. They are never shown as part of our own page: what could act is downloaded, the rest is
//! sandboxed, and nothing is guessed about its kind.

use std::io;
use std::ops::Range;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    ETAG, IF_NONE_MATCH, IF_RANGE, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use polis_domain::{Artifact, ArtifactId, ListedArtifact};
use polis_engine::Society;
use polis_ports::ArtifactError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::problem::Problem;
use crate::state::SocietyState;
use crate::wanted::{Name, Wanted};

const MAX_PAGE: usize = 1_000;

/// Bytes that are read at once.
const PIECE: usize = 256 << 10;

/// Chunks of a body that wait to be written.
const QUEUED: usize = 4;

/// Chunks that are read and thrown away of a body that cannot be kept.
const MAX_DRAINED_PIECES: usize = 256;

/// How long each chunk of a body may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Kinds that a browser shows without running anything.
const SAFE: &[&str] = &["text/plain", "image/png", "image/jpeg", "image/gif", "image/webp", "audio/mpeg", "audio/wav"];

/// Forbids a content everything, also to be of our origin.
const SANDBOX: &str = "default-src 'none'; sandbox; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Which part of the list is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ArtifactPaging")]
pub(crate) struct Which {
    /// Only those after this number.
    #[serde(default)]
    after: usize,
    /// Most of a page; never more than 1000.
    #[serde(default = "page")]
    limit: usize,
}

fn page() -> usize {
    250
}

/// Contents that the log names, oldest first.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Artifacts")]
pub(crate) struct Page {
    artifacts: Vec<Numbered>,
    /// How many there are: when the last one has this number, there is no more.
    last: usize,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "NumberedArtifact")]
struct Numbered {
    n: usize,
    #[serde(flatten)]
    listed: ListedArtifact,
}

pub(crate) async fn list(State(state): State<SocietyState>, Wanted(which): Wanted<Which>) -> Result<axum::Json<Page>, Problem> {
    let Which { after, limit } = which;
    let page = state.society.look(move |spine| {
        let entries = spine.artifacts.entries();
        let numbered = (1..).zip(entries).skip(after).take(limit.clamp(1, MAX_PAGE));
        let artifacts: Vec<_> = numbered.map(|(n, listed)| Numbered { n, listed: listed.clone() }).collect();
        let next = artifacts.last().map(|last| last.n).filter(|n| *n < entries.len());
        Page { artifacts, last: entries.len(), next }
    });
    Ok(axum::Json(page.await?))
}

pub(crate) async fn get(State(state): State<SocietyState>, Name(id): Name, headers: HeaderMap) -> Result<Response, Problem> {
    let id = parsed(&id)?;
    let total = state.society.artifacts().read(&id, 0, 0).await?.total;
    let artifact = state.society.listing().find(&id).await.unwrap_or_else(|| Artifact::new(id, &id.to_string(), "", total));
    let etag = format!("\"{id}\"");
    let is_known = |name| headers.get(name).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains(&etag));
    if is_known(IF_NONE_MATCH) {
        return Ok((StatusCode::NOT_MODIFIED, described(&artifact, &etag)).into_response());
    }
    let wanted = headers.get(RANGE).filter(|_| !headers.contains_key(IF_RANGE) || is_known(IF_RANGE));
    let part = match wanted.and_then(|range| range.to_str().ok()).map_or(Part::Whole, |range| part(range, total)) {
        Part::Whole => None,
        Part::Some(part) => Some(part),
        Part::Nothing => {
            let range = HeaderValue::from_str(&format!("bytes */{total}")).map_err(|_| nothing_there())?;
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, [(CONTENT_RANGE, range)]).into_response());
        }
    };
    let (status, range) = match &part {
        Some(part) => (StatusCode::PARTIAL_CONTENT, part.clone()),
        None => (StatusCode::OK, 0..total),
    };
    let mut response = (status, described(&artifact, &etag)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, (range.end - range.start).into());
    if part.is_some()
        && let Ok(told) = HeaderValue::from_str(&format!("bytes {}-{}/{total}", range.start, range.end - 1))
    {
        headers.insert(CONTENT_RANGE, told);
    }
    *response.body_mut() = Body::from_stream(chunks(state.society.clone(), id, range));
    Ok(response)
}

fn parsed(id: &str) -> Result<ArtifactId, Problem> {
    id.parse().map_err(|bad: polis_domain::BadArtifactId| Problem::bad_request("bad_artifact_id", bad.to_string()))
}

fn nothing_there() -> Problem {
    Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "bad_range", "the artifact has no such part")
}

/// The headers of an answer with a content.
fn described(artifact: &Artifact, etag: &str) -> HeaderMap {
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
    let encoded: String = name
        .bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
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

/// A content, chunk by chunk. Each is checked; when that fails under way the answer breaks off, so that nobody takes it for whole.
fn chunks(society: Society, id: ArtifactId, range: Range<u64>) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold((society, range), move |(society, range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let limit = usize::try_from(range.end - range.start).unwrap_or(PIECE).min(PIECE);
        let window = society.artifacts().read(&id, range.start, limit).await.map_err(io::Error::other)?;
        if window.bytes.is_empty() {
            return Err(io::Error::other("the artifact became shorter"));
        }
        let next = range.start + window.bytes.len() as u64..range.end;
        Ok(Some((Bytes::from(window.bytes), (society, next))))
    })
}

/// What a content is called.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ArtifactName")]
pub(crate) struct Sent {
    name: String,
}

/// Keeps what a person sends. The log names it when a message does; until then a sweep spares it for a while.
pub(crate) async fn put(
    State(state): State<SocietyState>,
    Wanted(Sent { name }): Wanted<Sent>,
    request: Request,
) -> Result<axum::Json<Artifact>, Problem> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let mut draft = state.society.artifacts().draft()?;
    let (send, mut chunks) = mpsc::channel::<Bytes>(QUEUED);
    let (whole, is_whole) = tokio::sync::oneshot::channel::<()>();
    let written = tokio::task::spawn_blocking(move || {
        while let Some(chunk) = chunks.blocking_recv() {
            draft.write(&chunk)?;
        }
        // A body that broke off is not kept.
        match is_whole.blocking_recv() {
            Ok(()) => draft.keep(),
            Err(_) => Err(ArtifactError::Failed("the body broke off".to_owned())),
        }
    });
    let (mut body, mut left) = (request.into_body().into_data_stream(), MAX_DRAINED_PIECES);
    loop {
        let chunk = match tokio::time::timeout(TIMEOUT, body.next()).await {
            Ok(Some(Ok(chunk))) => chunk,
            Ok(None) => break,
            Ok(Some(Err(error))) => {
                return Err(Problem::bad_request("bad_body", format!("the body broke off: {error}; send it again")));
            }
            Err(_) => {
                let detail = "the body took too long to arrive; send it again";
                return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", detail));
            }
        };
        // When it cannot be written, some of the rest is read all the same, so that its sender gets to hear why.
        left = if send.send(chunk).await.is_ok() { MAX_DRAINED_PIECES } else { left - 1 };
        if left == 0 {
            break;
        }
    }
    drop(send);
    let _ = whole.send(());
    let kept = written.await.unwrap_or_else(|stopped| Err(ArtifactError::Failed(stopped.to_string())));
    let (id, bytes) = kept?;
    Ok(axum::Json(Artifact::new(id, &name, &kind, bytes)))
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
