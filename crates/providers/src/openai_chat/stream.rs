//! The body of one response as a stream of deltas: bytes to events to deltas, and how it ends.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::Stream;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use polis_ports::{Delta, ModelError};
use tokio::time::{Instant, Sleep};

use super::reply::{ChunkError, ReplyReader};
use crate::ApiKey;
use crate::api_key::hide;
use crate::http::with_causes;
use crate::sse::{Event, SseReader};

/// Largest reply that is taken, in bytes on the wire.
const MAX_REPLY_BYTES: usize = 64 << 20;
/// How long we wait for usage and `[DONE]` once the model has said why it stopped.
const AFTER_FINISH: Duration = Duration::from_secs(5);
/// How long we wait for the end of the body after `[DONE]`, so that its connection can serve again.
const AFTER_DONE: Duration = Duration::from_millis(100);

/// How long a provider may keep silent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) first: Duration,
    pub(super) idle: Duration,
}

/// Deltas as they come. Dropping it closes the connection unless the reply was read to its end.
pub(super) struct ReplyStream {
    body: Incoming,
    framing: Framing,
    reader: ReplyReader,
    ready: VecDeque<Delta>,
    stage: Stage,
    received_bytes: usize,
    patience: Patience,
    alarm: Option<Pin<Box<Sleep>>>,
    /// Whether something came since the alarm was set.
    alarm_is_old: bool,
    key: Option<ApiKey>,
}

/// How the body is divided.
enum Framing {
    /// A stream of events.
    Events(SseReader),
    /// One JSON text: the server does not stream.
    Whole(Vec<u8>),
}

enum Stage {
    /// Deltas may come.
    Reading,
    /// `Done` was given; the rest of the body is read away.
    Draining,
    /// The error is given after the deltas that came before it.
    Broken(ModelError),
    /// Nothing more comes.
    Over,
}

/// What to say when nothing came for too long.
pub(super) fn silent(waited: Duration) -> String {
    format!("nothing came for {} s", waited.as_secs_f32())
}

impl ReplyStream {
    pub(super) fn new(body: Incoming, headers: &HeaderMap, patience: Patience, key: Option<ApiKey>) -> Self {
        let media = headers.get(CONTENT_TYPE).map(|value| value.as_bytes()).unwrap_or_default();
        let is_whole = media.to_ascii_lowercase().starts_with(b"application/json");
        Self {
            body,
            framing: if is_whole { Framing::Whole(Vec::new()) } else { Framing::Events(SseReader::default()) },
            reader: ReplyReader::default(),
            ready: VecDeque::new(),
            stage: Stage::Reading,
            received_bytes: 0,
            patience,
            alarm: None,
            alarm_is_old: false,
            key,
        }
    }

    fn take(&mut self, bytes: &Bytes) {
        self.received_bytes += bytes.len();
        if self.received_bytes > MAX_REPLY_BYTES {
            return self.fail(ModelError::Failed {
                reason: format!("a reply of more than {MAX_REPLY_BYTES} bytes"),
                retry_after: None,
            });
        }
        let mut framing = std::mem::replace(&mut self.framing, Framing::Whole(Vec::new()));
        match &mut framing {
            Framing::Events(sse) => {
                let read = sse.push(bytes, |event| self.event(&event, Ending::Open));
                if let Err(error) = read {
                    self.fail(ModelError::Failed { reason: error.to_string(), retry_after: None });
                }
            }
            Framing::Whole(text) => text.extend_from_slice(bytes),
        }
        self.framing = framing;
    }

    fn event(&mut self, event: &Event<'_>, ending: Ending) {
        if !matches!(self.stage, Stage::Reading) {
            return;
        }
        if event.data.trim() == "[DONE]" {
            return self.done("it said that it was done, but not why it stopped");
        }
        match self.reader.read(&event.data, &mut self.ready) {
            Ok(()) if event.name == "error" => {
                self.fail(ModelError::Failed { reason: event.data.to_string(), retry_after: None })
            }
            Ok(()) => {}
            Err(ChunkError::Reported(error)) => self.fail(error),
            Err(ChunkError::Unreadable(error)) => match ending {
                Ending::Open => {
                    self.fail(ModelError::Failed { reason: format!("a chunk cannot be read: {error}"), retry_after: None })
                }
                // The stream was cut inside a chunk; whether that matters is judged by `done`.
                Ending::Closed => {}
            },
        }
    }

    /// No more bytes come.
    fn end(&mut self, why: &str) {
        let ending = Ending::Closed;
        match std::mem::replace(&mut self.framing, Framing::Whole(Vec::new())) {
            Framing::Events(sse) => {
                if sse.end(|event| self.event(&event, ending)).is_err() {
                    self.fail(ModelError::Cut { reason: why.to_owned() });
                }
            }
            Framing::Whole(text) => {
                let data = String::from_utf8_lossy(&text);
                self.event(&Event { name: "".into(), data }, ending);
            }
        }
        self.done(why);
        if let Stage::Draining = self.stage {
            self.stage = Stage::Over;
        }
    }

    /// The reply is whole if the model said why it stopped; otherwise it was cut.
    fn done(&mut self, otherwise: &str) {
        if !matches!(self.stage, Stage::Reading) {
            return;
        }
        match self.reader.finish() {
            Some(finish) => {
                self.ready.push_back(Delta::Done(finish));
                self.stage = Stage::Draining;
            }
            None => self.fail(ModelError::Cut { reason: otherwise.to_owned() }),
        }
    }

    fn fail(&mut self, error: ModelError) {
        if let Stage::Reading = self.stage {
            self.stage = Stage::Broken(hide(self.key.as_ref(), error));
        }
    }

    fn allowed_silence(&self) -> Duration {
        if let Stage::Draining = self.stage {
            AFTER_DONE
        } else if self.reader.is_finished() {
            AFTER_FINISH.min(self.patience.idle)
        } else if self.received_bytes > 0 {
            self.patience.idle
        } else {
            self.patience.first
        }
    }

    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let silence = self.allowed_silence();
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep(silence)));
        if std::mem::take(&mut self.alarm_is_old) {
            alarm.as_mut().reset(Instant::now() + silence);
        }
        alarm.as_mut().poll(cx)
    }
}

/// Whether more may follow an event.
#[derive(Clone, Copy)]
enum Ending {
    Open,
    Closed,
}

impl Stream for ReplyStream {
    type Item = Result<Delta, ModelError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(delta) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(delta)));
            }
            match std::mem::replace(&mut this.stage, Stage::Over) {
                Stage::Broken(error) => return Poll::Ready(Some(Err(error))),
                Stage::Over => return Poll::Ready(None),
                open @ (Stage::Reading | Stage::Draining) => this.stage = open,
            }
            let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) else {
                ready!(this.poll_alarm(cx));
                this.end(&silent(this.allowed_silence()));
                continue;
            };
            this.alarm_is_old = true;
            match frame {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        this.take(&bytes);
                    }
                }
                Some(Err(error)) => this.end(&with_causes(&error)),
                None => this.end("the provider closed the connection before the reply was whole"),
            }
        }
    }
}
