//! One request out, one stream of deltas back: what every dialect shares. A dialect adds a body and a reader of events;
//! sending, waiting, limits, the end of a stream and the shapes of errors are here.

mod content;
mod count;
mod echo;
mod errors;
mod frames;
pub(crate) mod fuzzing;
mod loose;
mod messages;
mod numbers;
mod status;
mod stream;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use polis_domain::Finish;
use polis_http::sse::Event;
use polis_http::{Bytes, HttpClient, HttpError, Request};
use polis_ports::{Delta, DeltaStream, ModelError};
use serde_json::Value;

use crate::ApiKey;
use crate::api_key::hide;
use content::Content;
use stream::ReplyStream;

pub(crate) use count::Count;
pub(crate) use echo::{echo, echoed_items};
pub(crate) use errors::{in_base_resp, reported_error, shortened};
pub(crate) use loose::LooseText;

/// Longest list of models that is read, in bytes.
const MAX_ANSWER_BYTES: usize = 16 << 20;

const MAX_ERROR_BODY_BYTES: usize = 64 << 10;
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the events of one reply, in one dialect.
pub(crate) trait Reader: Send {
    /// Turns one event into deltas; an error means that the provider reports one, or that nobody can read this.
    fn read(&mut self, event: &Event<'_>, out: &mut VecDeque<Delta>) -> Result<Progress, ChunkError>;

    /// Why the model stopped, once it has said so.
    fn finish(&self) -> Option<Finish>;

    /// No more events come: gives what was held back, and why the model stopped; none if the reply may not be whole.
    fn end(&mut self, _ending: Ending, _out: &mut VecDeque<Delta>) -> Option<Finish> {
        self.finish()
    }
}

/// How a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With the mark that the dialect has for it.
    Marked,
    /// With the end of the body, which is complete.
    Closed,
    /// In the middle, or nobody can tell.
    Cut,
}

/// Whether more events belong to a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There may be more.
    More,
    /// This was the last one.
    Last,
}

/// Why an event gave no deltas.
#[derive(Debug)]
pub(crate) enum ChunkError {
    /// It is an error that the provider reports.
    Reported(ModelError),
    /// It is not what this dialect sends.
    Unreadable(String),
}

impl From<serde_json::Error> for ChunkError {
    fn from(error: serde_json::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// Has `reader` read one event. Where that fails and the event has numbers that no parser takes, it reads it again with them as
/// texts: a wrong count must not cost a reply that is whole.
fn read_event(reader: &mut dyn Reader, event: &Event<'_>, out: &mut VecDeque<Delta>) -> Result<Progress, ChunkError> {
    let before = out.len();
    let read = reader.read(event, out);
    let Err(ChunkError::Unreadable(why)) = read else { return read };
    let Some(data) = numbers::readable(&event.data) else { return Err(ChunkError::Unreadable(why)) };
    out.truncate(before);
    match reader.read(&Event { data: data.into(), ..event.clone() }, out) {
        // The first reason is about what was sent.
        Err(ChunkError::Unreadable(_)) => Err(ChunkError::Unreadable(why)),
        read => read,
    }
}

/// How long a provider may keep silent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SilenceLimits {
    /// Before the reply begins.
    pub(crate) first: Duration,
    /// Once it has begun.
    pub(crate) idle: Duration,
}

/// Sends a request; the deltas come as `reader` understands them, after one that names the model.
pub(crate) async fn stream(
    http: &HttpClient,
    request: Request<Bytes>,
    key: Option<&ApiKey>,
    limits: SilenceLimits,
    model: Arc<str>,
    reader: Box<dyn Reader>,
) -> Result<DeltaStream, ModelError> {
    let body = send(http, request, key, limits.first).await?;
    Ok(Box::pin(ReplyStream::new(body, model, reader, limits, key.cloned())))
}

/// Sends a request and reads the answer, which is one JSON value.
pub(crate) async fn answer(
    http: &HttpClient,
    request: Request<Bytes>,
    key: Option<&ApiKey>,
    limits: Duration,
) -> Result<Value, ModelError> {
    let read = async {
        let body = send(http, request, key, limits).await?;
        let bytes = body.read(MAX_ANSWER_BYTES).await.map_err(unanswered)?;
        serde_json::from_slice(&bytes).map_err(|_| hide(key, errors::unreadable_answer(&bytes)))
    };
    let read = tokio::time::timeout(limits, read).await;
    read.map_err(|_| ModelError::Cut { reason: stream::silent(limits) })?
}

async fn send(
    http: &HttpClient,
    request: Request<Bytes>,
    key: Option<&ApiKey>,
    limits: Duration,
) -> Result<Content, ModelError> {
    let sent = tokio::time::timeout(limits, http.send(request)).await;
    let response = sent.map_err(|_| ModelError::Cut { reason: stream::silent(limits) })?.map_err(unanswered)?;
    let (head, body) = response.into_parts();
    let content = Content::new(head.version, &head.headers, body);
    if head.status.is_success() {
        return content.map_err(|encoding| errors::unreadable_encoding(&encoding));
    }
    let error_text = error_body(content).await;
    Err(hide(key, errors::from_response(head.status, &head.headers, &error_text)))
}

/// Why nothing was answered: what may have reached the provider is an attempt that broke off (D09).
fn unanswered(error: HttpError) -> ModelError {
    match error.is_unsent() {
        true => ModelError::Unreachable(error.into()),
        false => ModelError::Cut { reason: error.to_string() },
    }
}

/// The body of an unsuccessful response, as far as it is worth reading.
async fn error_body(content: Result<Content, String>) -> Vec<u8> {
    let Ok(content) = content else { return Vec::new() };
    let read = tokio::time::timeout(ERROR_BODY_TIMEOUT, content.read(MAX_ERROR_BODY_BYTES)).await;
    read.ok().and_then(Result::ok).unwrap_or_default()
}
