//! Everything that happens, as server-sent events: the log after a place, then live. Nothing twice, nothing missing.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, stream};
use polis_domain::{Recorded, Seq, ThreadId};
use polis_engine::{Seen, Watch};
use polis_ports::{StreamedDelta, StreamedPiece};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::problem::Problem;
use crate::wanted::Wanted;

/// Sent when nothing happens, so that whoever listens knows that the line is not dead.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// Only events after this place; all of them when it is not given.
    #[serde(default)]
    after: u64,
    /// Only what is recorded under this thread.
    thread: Option<ThreadId>,
}

pub(crate) async fn events(
    State(desk): State<Desk>,
    Wanted(which): Wanted<Which>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let after = Seq(last_event_id(&headers)?.unwrap_or(which.after));
    let last = desk.society.log().head(desk.society.id()).await?;
    if after > last {
        let detail =
            format!("the log ends at {last}, before {after}: it is not the one that you were reading; start again from 0");
        return Err(Problem::new(StatusCode::CONFLICT, "ahead_of_log", detail));
    }
    let permit = desk.streams.clone().try_acquire_owned().map_err(|_| {
        let detail = "too many event streams are open; close one or try again later";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", detail)
    })?;
    let telling = Telling {
        watch: desk.society.watch(after),
        thread: which.thread,
        closing: desk.closing.clone(),
        reason: desk.reason.clone(),
        ended: false,
        _permit: permit,
    };
    let events = stream::unfold(telling, |mut telling| async move { telling.next().await.map(|event| (Ok(event), telling)) });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Where an interrupted client goes on. It repeats the address that it began with, so the header counts for more.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let id = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let bad = || Problem::bad_request("bad_query", "Last-Event-ID is not the id of an event; it is a number");
    id.map(Some).ok_or_else(bad)
}

/// One client's stream.
struct Telling {
    watch: Watch,
    thread: Option<ThreadId>,
    closing: CancellationToken,
    reason: Arc<OnceLock<&'static str>>,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl Telling {
    async fn next(&mut self) -> Option<Event> {
        while !self.ended {
            let seen = tokio::select! {
                // What has happened is told before the farewell.
                biased;
                seen = self.watch.next() => seen,
                () = self.closing.cancelled() => return self.end(self.stopping()),
            };
            let event = match seen {
                Ok(Some(Seen::Event(recorded))) if self.concerns(recorded.thread.as_ref()) => committed(&recorded),
                Ok(Some(Seen::Delta(delta))) if self.concerns(Some(&delta.thread)) => streamed(&delta),
                Ok(Some(Seen::Piece(piece))) if self.concerns(Some(&piece.thread)) => pictured(&piece),
                Ok(Some(_)) => continue,
                Ok(None) => return self.end(self.stopping()),
                Err(error) => return self.end(failed(error.into())),
            };
            match event {
                Ok(event) => return Some(event),
                Err(error) => tracing::error!(%error, "an event could not be written as JSON"),
            }
        }
        None
    }

    /// The stream ends because the society does.
    fn stopping(&self) -> Event {
        let reason = self.reason.get().copied().unwrap_or("stopped");
        Event::default().event("stopping").data(json!({ "reason": reason }).to_string())
    }

    fn concerns(&self, thread: Option<&ThreadId>) -> bool {
        self.thread.is_none() || self.thread.as_ref() == thread
    }

    fn end(&mut self, last: Event) -> Option<Event> {
        self.ended = true;
        Some(last)
    }
}

/// An event of the log with its body already written.
#[derive(Serialize)]
struct Written<'a> {
    seq: Seq,
    at: polis_domain::Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<&'a ThreadId>,
    event: &'a RawValue,
}

fn committed(recorded: &Recorded) -> Result<Event, serde_json::Error> {
    let body = serde_json::value::to_raw_value(&recorded.event)?;
    // An enum is written as its name, or as an object whose first key is its name.
    let name = body.get().split('"').nth(1).unwrap_or_default();
    let written = Written { seq: recorded.seq, at: recorded.at, thread: recorded.thread.as_ref(), event: &body };
    let data = serde_json::to_string(&written)?;
    Ok(Event::default().id(recorded.seq.to_string()).event(name).data(data))
}

/// A piece of a reply. It has no id: it is not part of the log and is not repeated.
fn streamed(delta: &StreamedDelta) -> Result<Event, serde_json::Error> {
    let data = json!({ "effect": delta.effect, "thread": delta.thread, "delta": delta.delta });
    Ok(Event::default().event("delta").data(data.to_string()))
}

/// What somebody in a workflow is seen doing. It has no id either.
fn pictured(piece: &StreamedPiece) -> Result<Event, serde_json::Error> {
    Ok(Event::default().event("piece").data(serde_json::to_string(piece)?))
}

/// The stream ends because the log cannot be read.
fn failed(problem: Problem) -> Event {
    Event::default().event("problem").data(problem.to_json().to_string())
}

#[cfg(test)]
mod tests {
    use polis_domain::{Event, Limits, Timestamp};

    use super::*;

    #[test]
    fn an_event_is_told_with_its_name_and_as_the_log_writes_it() {
        let of =
            |event, thread: Option<&str>| Recorded { seq: Seq(3), at: Timestamp(7), thread: thread.map(Into::into), event };
        let founded = of(Event::SocietyFounded { seed: 1, limits: Limits::default() }, None);
        for (recorded, name) in [(founded, "societyFounded"), (of(Event::SuggestionDropped, Some("root")), "suggestionDropped")]
        {
            let told = format!("{:?}", committed(&recorded).unwrap());
            let whole = format!("{:?}", serde_json::to_string(&recorded).unwrap());
            assert!(told.contains(&format!("event: {name}\\n")), "{told}");
            assert!(told.contains(whole.trim_matches('"')), "{told} {whole}");
        }
    }
}
