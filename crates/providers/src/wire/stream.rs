//! The body of one response as a stream of deltas: bytes to events to deltas, and how it ends.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::Stream;
use polis_http::Bytes;
use polis_http::sse::Event;
use polis_ports::{Delta, ModelError};
use tokio::time::{Instant, Sleep};

use super::content::Content;
use super::errors::{EMPTY_ANSWER, WEB_PAGE, in_place_of_reply, shortened};
use super::frames::{FrameError, Frames};
use super::{ChunkError, Ending, Progress, Reader, SilenceLimits, read_event};
use crate::ApiKey;
use crate::api_key::hide;

/// Largest reply that is taken, in bytes on the wire.
const MAX_REPLY_BYTES: usize = 64 << 20;
/// How long we wait for usage and the last event once the model has said why it stopped.
const AFTER_FINISH: Duration = Duration::from_secs(5);
/// How long we wait for the end of the body after the last event, so that its connection can serve again.
const AFTER_DONE: Duration = Duration::from_millis(100);

/// How much longer than for its beginning we wait for a reply while the provider says that it is still there: some think
/// very long.
const STILL_THERE: u32 = 2;

/// Deltas as they come. Dropping it closes the connection unless the reply was read to its end.
pub(super) struct ReplyStream {
    body: Content,
    frames: Frames,
    reader: Box<dyn Reader>,
    ready: VecDeque<Delta>,
    stage: Stage,
    received_bytes: usize,
    /// Whether the last event broke off.
    is_torn: bool,
    limits: SilenceLimits,
    alarm: Option<Pin<Box<Sleep>>>,
    /// Whether something came since the alarm was set.
    alarm_is_old: bool,
    /// When the reply last went on: what only keeps the connection alive is no reply.
    went_on: Instant,
    key: Option<ApiKey>,
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
    format!("no data for {} s", waited.as_secs_f32())
}

impl ReplyStream {
    pub(super) fn new(
        body: Content,
        model: Arc<str>,
        reader: Box<dyn Reader>,
        limits: SilenceLimits,
        key: Option<ApiKey>,
    ) -> Self {
        Self {
            body,
            frames: Frames::default(),
            reader,
            ready: VecDeque::from([Delta::Model(model)]),
            stage: Stage::Reading,
            received_bytes: 0,
            is_torn: false,
            limits,
            alarm: None,
            alarm_is_old: false,
            went_on: Instant::now(),
            key,
        }
    }

    fn take(&mut self, bytes: &Bytes) {
        self.received_bytes += bytes.len();
        if self.received_bytes > MAX_REPLY_BYTES {
            return self.fail(failed(format!("a reply of more than {MAX_REPLY_BYTES} bytes")));
        }
        let mut frames = std::mem::take(&mut self.frames);
        if let Err(error) = frames.push(bytes, |event| self.event(&event, Place::Within)) {
            self.fail(failed(error.to_string()));
        }
        if let Frames::Page = frames {
            self.fail(ModelError::Rejected { reason: WEB_PAGE.to_owned() });
        }
        self.frames = frames;
    }

    fn event(&mut self, event: &Event<'_>, place: Place) {
        // Some send an empty event to keep the connection alive.
        if !matches!(self.stage, Stage::Reading) || matches!(event.data.trim(), "" | "null") {
            return;
        }
        let before = self.ready.len();
        match read_event(&mut *self.reader, event, &mut self.ready) {
            Ok(_) if event.name == "error" => self.fail(failed(shortened(&event.data))),
            Ok(progress) => {
                if self.ready.len() == before
                    && let Some(error) = in_place_of_reply(&event.data)
                {
                    self.fail(error);
                } else if progress == Progress::Last {
                    self.done(Ending::Marked, "it ended without a reason");
                }
            }
            Err(ChunkError::Reported(error)) => self.fail(error),
            Err(ChunkError::Unreadable(error)) => match place {
                Place::Within => self.fail(failed(format!("a chunk cannot be read: {error}: {}", shortened(&event.data)))),
                // The stream was cut inside a chunk; whether that matters is judged by `done`.
                Place::Last => self.is_torn = true,
            },
        }
    }

    /// No more bytes come.
    fn end(&mut self, ending: Ending, why: &str) {
        match std::mem::take(&mut self.frames).end(|event| self.event(&event, Place::Last)) {
            Ok(()) => {}
            Err(FrameError::TooLong(_)) => self.fail(ModelError::Cut { reason: why.to_owned() }),
            // The stream was cut inside a message.
            Err(FrameError::Damaged(_)) => self.is_torn = true,
        }
        if ending == Ending::Closed && self.received_bytes == 0 {
            self.fail(failed(EMPTY_ANSWER.to_owned()));
        }
        self.done(if self.is_torn { Ending::Cut } else { ending }, why);
        if let Stage::Draining = self.stage {
            self.stage = Stage::Over;
        }
    }

    /// The reply is used if its reader takes it for whole; otherwise it was cut.
    fn done(&mut self, ending: Ending, otherwise: &str) {
        if !matches!(self.stage, Stage::Reading) {
            return;
        }
        match self.reader.end(ending, &mut self.ready) {
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

    /// Something came; if for a long time it has said nothing, nobody waits for it any longer.
    fn check_progress(&mut self) {
        let (now, limit) = (Instant::now(), self.allowed_delay());
        let is_empty = |delta: &Delta| matches!(delta, Delta::Content(text) | Delta::Reasoning(text) if text.is_empty());
        if !self.ready.iter().all(is_empty) {
            self.went_on = now;
        } else if now.duration_since(self.went_on) > limit {
            self.end(Ending::Cut, &format!("no output for {} s", limit.as_secs_f32()));
        }
    }

    /// How long the reply may not go on, whatever else comes.
    fn allowed_delay(&self) -> Duration {
        if let Stage::Draining = self.stage {
            AFTER_DONE
        } else if self.reader.finish().is_some() {
            AFTER_FINISH.min(self.limits.idle)
        } else {
            self.limits.first.saturating_mul(STILL_THERE)
        }
    }

    /// How long nothing at all may come.
    fn allowed_silence(&self) -> Duration {
        let silence = if self.received_bytes > 0 { self.limits.idle } else { self.limits.first };
        self.allowed_delay().min(silence)
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

fn failed(reason: String) -> ModelError {
    ModelError::Failed { reason, retry_after: None }
}

/// Where an event stands in the body.
#[derive(Clone, Copy)]
enum Place {
    Within,
    /// At the end, and not closed by anything but the end.
    Last,
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
            let Poll::Ready(chunk) = this.body.poll_chunk(cx) else {
                ready!(this.poll_alarm(cx));
                this.end(Ending::Cut, &silent(this.allowed_silence()));
                continue;
            };
            this.alarm_is_old = true;
            match chunk {
                Some(Ok(bytes)) => {
                    this.take(&bytes);
                    this.check_progress();
                }
                Some(Err(error)) => this.end(Ending::Cut, &error),
                None => {
                    let ending = if this.body.is_whole() { Ending::Closed } else { Ending::Cut };
                    this.end(ending, "the provider closed the connection before the reply was whole");
                }
            }
        }
    }
}
