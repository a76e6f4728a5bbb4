//! One request out, one stream of deltas back: what every dialect shares. A dialect adds a body and a reader of events;
//! sending, waiting, limits, the end of a stream and the shapes of errors are here.

mod echo;
mod frames;
pub(crate) mod fuzzing;
mod loose;
mod stream;
mod trouble;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use polis_domain::Finish;
use polis_ports::{Delta, DeltaStream, ModelError};
use serde_json::Value;

use crate::api_key::hide;
use crate::http::Reply;
use crate::sse::Event;
use crate::{ApiKey, Http, http};
use stream::ReplyStream;

pub(crate) use echo::{echo, echoed};
pub(crate) use loose::Loose;
pub(crate) use trouble::{reported, shortened};

/// Longest list of models that is read, in bytes.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Reads the events of one reply, in one dialect.
pub(crate) trait Reader: Send {
    /// Turns one event into deltas; an error means that the provider reports one, or that nobody can read this.
    fn read(&mut self, event: &Event<'_>, out: &mut VecDeque<Delta>) -> Result<Progress, ChunkError>;

    /// Why the model stopped, once it has said so: only then is the reply whole.
    fn finish(&self) -> Option<Finish>;
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

/// How long a provider may keep silent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Before the reply begins.
    pub(crate) first: Duration,
    /// Once it has begun.
    pub(crate) idle: Duration,
}

/// Sends a request; the deltas come as `reader` understands them, after one that names the model.
pub(crate) async fn stream(
    http: &Http,
    request: Request<Full<Bytes>>,
    key: Option<&ApiKey>,
    patience: Patience,
    model: Arc<str>,
    reader: Box<dyn Reader>,
) -> Result<DeltaStream, ModelError> {
    let body = send(http, request, key, patience.first).await?;
    Ok(Box::pin(ReplyStream::new(body, model, reader, patience, key.cloned())))
}

/// Sends a request and reads the answer, which is one JSON value.
pub(crate) async fn answer(
    http: &Http,
    request: Request<Full<Bytes>>,
    key: Option<&ApiKey>,
    patience: Duration,
) -> Result<Value, ModelError> {
    let read = async {
        let body = send(http, request, key, patience).await?;
        let whole = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
        let bytes = whole.map_err(|error| ModelError::Cut { reason: error.to_string() })?.to_bytes();
        serde_json::from_slice(&bytes).map_err(|_| hide(key, trouble::not_a_model(&bytes)))
    };
    let read = tokio::time::timeout(patience, read).await;
    read.map_err(|_| ModelError::Cut { reason: stream::silent(patience) })?
}

async fn send(
    http: &Http,
    request: Request<Full<Bytes>>,
    key: Option<&ApiKey>,
    patience: Duration,
) -> Result<Reply, ModelError> {
    let sent = tokio::time::timeout(patience, http.send(request)).await;
    let response = sent.map_err(|_| ModelError::Cut { reason: stream::silent(patience) })??;
    let (head, body) = response.into_parts();
    if head.status.is_success() {
        return Ok(body);
    }
    let said = http::error_body(body).await;
    Err(hide(key, trouble::refusal(head.status, &head.headers, &said)))
}
