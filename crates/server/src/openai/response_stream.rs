//! A response as a stream of numbered events, and the streams of background responses, which a client can continue where it
//! lost them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::chat::unbuffered;
use super::completion::{Chunk, Completion, Ending};
use super::response_object::ResponseFormat;
use super::response_output::ResponseOutput;
use crate::agui::KEEP_ALIVE;

/// How many streams are kept. A client that comes back later gets the response as it is.
const KEPT: usize = 64;

/// The events of a response in order. Their numbers are their places.
pub(super) fn events(
    format: ResponseFormat,
    completion: Completion,
    output: ResponseOutput,
) -> impl Stream<Item = Value> + Send {
    let started = ["response.created", "response.in_progress"]
        .map(|kind| json!({ "type": kind, "response": format.object("in_progress", Vec::new(), None, None) }));
    let state = (format, completion, output, VecDeque::from(started));
    let events = stream::unfold(state, |(format, mut completion, mut output, mut ready)| async move {
        loop {
            if let Some(event) = ready.pop_front() {
                return Some((event, (format, completion, output, ready)));
            }
            match completion.next().await? {
                Chunk::Content(text) => ready.extend(output.content(&text)),
                Chunk::Reasoning(text) => ready.extend(output.reasoning(&text)),
                Chunk::End(ending) => {
                    ready.extend(output.close());
                    let (kind, status, error) = match ending {
                        Ending::Cut(cut) => {
                            let response = format.incomplete(cut, output.items(), &completion.usage);
                            ready.push_back(json!({ "type": "response.incomplete", "response": response }));
                            continue;
                        }
                        Ending::Stop => ("response.completed", "completed", None),
                        Ending::ToolCalls(calls) => {
                            calls.iter().for_each(|call| ready.extend(output.call(call)));
                            ("response.completed", "completed", None)
                        }
                        Ending::Failed(error) => {
                            let error = json!({ "code": error.code(), "message": error.message() });
                            ("response.failed", "failed", Some(error))
                        }
                    };
                    let response = format.object(status, output.items(), Some(&completion.usage), error);
                    ready.push_back(json!({ "type": kind, "response": response }));
                }
            }
        }
    });
    events.enumerate().map(|(number, mut event)| {
        event["sequence_number"] = number.into();
        event
    })
}

/// Events as server-sent events.
pub(super) fn sse_response(events: impl Stream<Item = Value> + Send + 'static) -> Response {
    let frames = events.map(|event| {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        Ok::<_, Infallible>(sse::Event::default().event(kind).data(event.to_string()))
    });
    unbuffered(Sse::new(frames).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// The streams of the newest background responses. Each is followed to its end, whether a client listens or not.
#[derive(Default)]
pub(crate) struct ResponseStreams {
    streams: Mutex<VecDeque<(String, Arc<KeptStream>)>>,
    followers: Mutex<JoinSet<()>>,
}

/// The events of one stream so far.
struct KeptStream {
    events: Mutex<Vec<Value>>,
    /// How many there are.
    length: watch::Sender<usize>,
}

impl ResponseStreams {
    /// Keeps the stream of a response.
    pub(super) fn keep(&self, id: &str, events: impl Stream<Item = Value> + Send + 'static) {
        let kept = Arc::new(KeptStream { events: Mutex::default(), length: watch::Sender::new(0) });
        let mut streams = lock(&self.streams);
        streams.push_back((id.to_owned(), kept.clone()));
        if streams.len() > KEPT {
            streams.pop_front();
        }
        let mut followers = lock(&self.followers);
        // Those that have ended are joined here, so that they do not pile up.
        while followers.try_join_next().is_some() {}
        let follow = async move {
            let mut events = Box::pin(events);
            while let Some(event) = events.next().await {
                kept.push(event);
            }
            kept.push(Value::Null);
        };
        followers.spawn(follow);
    }

    /// The events of a kept stream from a number on, and those to come.
    pub(super) fn events(&self, id: &str, from: usize) -> Option<impl Stream<Item = Value> + Send + use<>> {
        let kept = lock(&self.streams).iter().find(|(kept, _)| kept == id).map(|(_, kept)| kept.clone())?;
        let length = kept.length.subscribe();
        Some(stream::unfold((kept, length, from), |(kept, mut length, number)| async move {
            let has_ended = || lock(&kept.events).last().is_some_and(Value::is_null);
            length.wait_for(|length| *length > number || has_ended()).await.ok()?;
            let event = lock(&kept.events).get(number).cloned().filter(|event| !event.is_null())?;
            Some((event, (kept, length, number + 1)))
        }))
    }
}

impl KeptStream {
    /// Adds an event; null is the end.
    fn push(&self, event: Value) {
        let mut events = lock(&self.events);
        events.push(event);
        self.length.send_replace(events.len());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
