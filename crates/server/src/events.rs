//! Everything that happens, as server-sent events: [`crate::live`] in frames.
//!
//! Events of the log have their place as `id`, see [`crate::history`]. Chunks of replies have none: they are not repeated.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use polis_domain::{EffectId, Recorded, Seq, ThreadId};
use polis_ports::{Delta, StreamedDelta};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::extract::{CallerState, QueryParams};
use crate::history::{History, LogPosition};
use crate::live::{EventFilter, LiveEvent, LiveEvents};
use crate::problem::Problem;

/// Sent when nothing happens, so that clients know that the connection is alive.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Proxies must pass on each event as it comes.
const UNBUFFERED: (HeaderName, &str) = (HeaderName::from_static("x-accel-buffering"), "no");

/// A chunk of a reply that is being written: the event `delta`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LiveDelta<'a> {
    effect: EffectId,
    thread: &'a ThreadId,
    delta: &'a Delta,
}

pub(crate) async fn events(
    CallerState(state): CallerState,
    QueryParams(which): QueryParams<EventFilter>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    let history = state.society.look(History::of).await?;
    let after = match last_event_id(&headers)? {
        Some(place) => history.resolve(&place)?,
        None => Seq(which.after),
    };
    let live = state.follow(after, which).await?;
    let next_frame = async |(mut live, history): (LiveEvents, History)| {
        let event = frame(&live.next().await?, &history);
        Some((Ok::<_, Infallible>(event), (live, history)))
    };
    let events = stream::unfold((live, history), next_frame);
    Ok(([UNBUFFERED], Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))))
}

/// Where an interrupted client goes on. It repeats the address that it began with, so the header counts for more.
fn last_event_id(headers: &HeaderMap) -> Result<Option<LogPosition>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let id = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let bad = || {
        Problem::bad_request("bad_query", "Last-Event-ID is not an event id: a number, with a suffix if the society was forked")
    };
    id.map(Some).ok_or_else(bad)
}

/// A frame of the stream.
fn frame(seen: &LiveEvent, history: &History) -> Event {
    let written = match seen {
        LiveEvent::Event(recorded) => event_frame(recorded, history),
        LiveEvent::Delta(delta) => delta_frame(delta),
        LiveEvent::Step(step) => serde_json::to_string(&**step).map(|data| Event::default().event("step").data(data)),
        LiveEvent::Resync => Ok(Event::default().event("resync").data("{}")),
        LiveEvent::Stopping(reason) => Ok(Event::default().event("stopping").data(json!({ "reason": reason }).to_string())),
        LiveEvent::Failed(error) => Ok(Event::default().event("problem").data(Problem::from(error.clone()).to_json())),
    };
    written.unwrap_or_else(|error| {
        tracing::error!(%error, "an event could not be written as JSON");
        Event::default().comment("an event could not be written as JSON")
    })
}

/// An event of the log with its body already written.
#[derive(Serialize)]
struct RecordedFrame<'a> {
    seq: Seq,
    at: polis_domain::Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<&'a ThreadId>,
    event: &'a RawValue,
}

fn event_frame(recorded: &Recorded, history: &History) -> Result<Event, serde_json::Error> {
    let body = serde_json::value::to_raw_value(&recorded.event)?;
    // An enum is written as its name, or as an object whose first key is its name.
    let name = body.get().split('"').nth(1).unwrap_or_default();
    let written = RecordedFrame { seq: recorded.seq, at: recorded.at, thread: recorded.thread.as_ref(), event: &body };
    let data = serde_json::to_string(&written)?;
    Ok(Event::default().id(history.position(recorded.seq)).event(name).data(data))
}

/// A chunk of a reply. It has no id: it is not part of the log and is not repeated.
fn delta_frame(delta: &StreamedDelta) -> Result<Event, serde_json::Error> {
    let data = LiveDelta { effect: delta.effect, thread: &delta.thread, delta: &delta.delta };
    Ok(Event::default().event("delta").data(serde_json::to_string(&data)?))
}

#[cfg(test)]
mod tests {
    use polis_domain::{Event, Limits, Spine, Timestamp};

    use super::*;

    #[test]
    fn an_event_is_told_with_its_name_and_as_the_log_writes_it() {
        let of =
            |event, thread: Option<&str>| Recorded { seq: Seq(3), at: Timestamp(7), thread: thread.map(Into::into), event };
        let founded = of(Event::SocietyFounded { seed: 1, limits: Limits::default() }, None);
        for (recorded, name) in [(founded, "societyFounded"), (of(Event::SuggestionDropped, Some("root")), "suggestionDropped")]
        {
            let frame_text = format!("{:?}", event_frame(&recorded, &History::of(&Spine::default())).unwrap());
            let whole = format!("{:?}", serde_json::to_string(&recorded).unwrap());
            assert!(frame_text.contains(&format!("event: {name}\\n")), "{frame_text}");
            assert!(frame_text.contains(whole.trim_matches('"')), "{frame_text} {whole}");
        }
    }
}
