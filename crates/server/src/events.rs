//! The log after a position and then live events, as server-sent events. Nothing twice, nothing missing.
//!
//! Events of the log have their place as `id`, see [`crate::past`]. Chunks of replies have none: a reply that is being written is told from its
//! beginning to whoever comes late. Who reads too slowly loses chunks, never events, and is told `resync`: forget the chunks of
//! replies, they are told again.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use polis_domain::{AgentId, EffectId, Event as Happened, Recorded, Seq, TaskId, ThreadId, TurnId};
use polis_engine::{Society, Watch, WatchEvent};
use polis_ports::{Delta, StreamedDelta, StreamedStep};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::past::{Past, Place};
use crate::problem::Problem;
use crate::state::{SocietyState, next_seen};
use crate::wanted::Wanted;

/// Sent when nothing happens, so that whoever listens knows that the line is not dead.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Proxies must pass on each event as it comes.
const UNBUFFERED: (HeaderName, &str) = (HeaderName::from_static("x-accel-buffering"), "no");

/// Most turns whose agent and request are remembered for a filter.
const MAX_TURNS: usize = 4_096;

/// Which events are wanted. Several filters must all hold.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EventFilter")]
pub(crate) struct Which {
    /// Only events after this place; all of them when it is not given.
    #[serde(default)]
    after: u64,
    /// Only what is recorded under this thread.
    thread: Option<ThreadId>,
    /// Only what belongs to this request.
    task: Option<TaskId>,
    /// Only what this agent does, sends or is sent.
    agent: Option<AgentId>,
}

/// A chunk of a reply that is being written: the event `delta`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LiveDelta<'a> {
    effect: EffectId,
    thread: &'a ThreadId,
    delta: &'a Delta,
}

pub(crate) async fn events(
    State(state): State<SocietyState>,
    Wanted(which): Wanted<Which>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    let past = state.society.look(Past::of).await?;
    let after = match last_event_id(&headers)? {
        Some(place) => past.find(&place)?,
        None => Seq(which.after),
    };
    let last = state.society.log().readable_head(state.society.id()).await?;
    if after > last {
        let detail =
            format!("the log ends at {last}, before {after}: it is not the one that you were reading; start again from 0");
        return Err(Problem::new(StatusCode::CONFLICT, "ahead_of_log", detail));
    }
    let permit = state.streams.clone().try_acquire_owned().map_err(|_| {
        let detail = "too many event streams are open; close one or try again later";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", detail)
    })?;
    let watch = match &which {
        Which { thread: Some(thread), task: None, agent: None, .. } => state.society.watch_thread(thread.clone(), after),
        // Whose turn an event belongs to is known from events of other threads.
        _ => state.society.watch(after),
    };
    let telling = Telling {
        society: state.society.clone(),
        watch,
        which,
        past,
        turns: HashMap::new(),
        since: after,
        heard: after,
        over: HashSet::new(),
        waiting: None,
        missed: 0,
        closing: state.closing.clone(),
        reason: state.reason.clone(),
        ended: false,
        _permit: permit,
    };
    let told = async |mut telling: Telling| telling.next().await.map(|event| (Ok::<_, Infallible>(event), telling));
    let events = stream::unfold(telling, told);
    Ok(([UNBUFFERED], Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))))
}

/// Where an interrupted client goes on. It repeats the address that it began with, so the header counts for more.
fn last_event_id(headers: &HeaderMap) -> Result<Option<Place>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let id = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let bad = || {
        Problem::bad_request("bad_query", "Last-Event-ID is not an event id: a number, with a suffix if the society was forked")
    };
    id.map(Some).ok_or_else(bad)
}

/// One client's stream.
struct Telling {
    society: Society,
    watch: Watch,
    which: Which,
    past: Past,
    /// Who works in a turn, and for which request. Of the turns that began between `since` and `heard`, those that are not here
    /// are of no interest.
    turns: HashMap<TurnId, (AgentId, TaskId)>,
    since: Seq,
    heard: Seq,
    /// Replies that were told whole: chunks of them that come late are not told.
    over: HashSet<EffectId>,
    /// What is told after a `resync`.
    waiting: Option<WatchEvent>,
    missed: u64,
    closing: CancellationToken,
    reason: Arc<OnceLock<&'static str>>,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl Telling {
    async fn next(&mut self) -> Option<Event> {
        while !self.ended {
            let seen = match self.waiting.take() {
                Some(seen) => Ok(seen),
                None => tokio::select! {
                    // What has happened is told before the farewell.
                    biased;
                    seen = next_seen(&mut self.watch) => seen,
                    () = self.closing.cancelled() => return self.end(self.stopping()),
                },
            };
            if self.watch.missed() > self.missed {
                self.missed = self.watch.missed();
                self.waiting = seen.ok();
                return Some(Event::default().event("resync").data("{}"));
            }
            let event = match seen {
                Ok(seen) => match self.told(&seen).await {
                    Some(event) => event,
                    None => continue,
                },
                Err(error) => return self.end(failed(error.into())),
            };
            match event {
                Ok(event) => return Some(event),
                Err(error) => tracing::error!(%error, "an event could not be written as JSON"),
            }
        }
        None
    }

    /// How something is told, if it is wanted.
    async fn told(&mut self, seen: &WatchEvent) -> Option<Result<Event, serde_json::Error>> {
        match seen {
            WatchEvent::Event(recorded) => {
                if let Happened::EffectEnded { id, .. } = &recorded.event {
                    if self.over.len() >= MAX_TURNS {
                        self.over.clear();
                    }
                    self.over.insert(*id);
                }
                self.heard = recorded.seq;
                if let Happened::TurnStarted { agent, task, .. } = &recorded.event {
                    self.note(TurnId(recorded.seq), agent, &task.id);
                }
                self.wants(recorded).await.then(|| committed(recorded, &self.past))
            }
            WatchEvent::Delta(delta) if self.over.contains(&delta.effect) => None,
            WatchEvent::Delta(delta) => self.wants_delta(&delta.thread, delta.effect.turn).await.then(|| streamed(delta)),
            WatchEvent::Step(step) => {
                let is_of_task = self.which.task.as_ref().is_none_or(|task| *task == step.task);
                let is_wanted = self.is_of(Some(&step.thread)) && is_of_task;
                let is_wanted = is_wanted && self.which.agent.as_ref().is_none_or(|agent| agent.main_thread() == step.thread);
                is_wanted.then(|| pictured(step))
            }
        }
    }

    fn is_of(&self, thread: Option<&ThreadId>) -> bool {
        self.which.thread.is_none() || self.which.thread.as_ref() == thread
    }

    async fn wants_delta(&mut self, thread: &ThreadId, turn: TurnId) -> bool {
        if !self.is_of(Some(thread)) {
            return false;
        }
        if self.which.task.is_none() && self.which.agent.is_none() {
            return true;
        }
        let of = self.turn(turn).await;
        let (agent, task) = of.as_ref().map(|(agent, task)| (agent, task)).unzip();
        self.which.task.as_ref().is_none_or(|wanted| task == Some(wanted))
            && self.which.agent.as_ref().is_none_or(|wanted| agent == Some(wanted))
    }

    async fn wants(&mut self, recorded: &Recorded) -> bool {
        if !self.is_of(recorded.thread.as_ref()) {
            return false;
        }
        if self.which.task.is_none() && self.which.agent.is_none() {
            return true;
        }
        let of = match recorded.turn() {
            Some(turn) => self.turn(turn).await,
            None => None,
        };
        let (agent, task) = of.as_ref().map(|(agent, task)| (agent, task)).unzip();
        let envelope = recorded.event.envelope();
        let is_of_task = |wanted: &TaskId| {
            task == Some(wanted)
                || envelope.is_some_and(|envelope| envelope.task_id == *wanted)
                || recorded.thread.as_ref() == Some(&wanted.thread())
        };
        let is_of_agent = |wanted: &AgentId| {
            agent == Some(wanted)
                || envelope.is_some_and(|envelope| envelope.to == *wanted || envelope.from == *wanted)
                || about(&recorded.event) == Some(wanted)
        };
        self.which.task.as_ref().is_none_or(is_of_task) && self.which.agent.as_ref().is_none_or(is_of_agent)
    }

    /// Who works in a turn, and for which request. A turn is named by the place of the event that says so.
    async fn turn(&mut self, turn: TurnId) -> Option<(AgentId, TaskId)> {
        if let Some(known) = self.turns.get(&turn) {
            return Some(known.clone());
        }
        if turn.0 > self.since && turn.0 <= self.heard {
            return None;
        }
        let before = Seq(turn.0.0.checked_sub(1)?);
        let started = self.society.log().read(self.society.id(), before, 1).await.ok()?;
        let Happened::TurnStarted { agent, task, .. } = &started.first()?.event else { return None };
        let of = (agent.clone(), task.id.clone());
        self.keep(turn, of.clone());
        Some(of)
    }

    /// Remembers a turn that begins, if it is asked about.
    fn note(&mut self, turn: TurnId, agent: &AgentId, task: &TaskId) {
        if self.which.agent.as_ref() == Some(agent) || self.which.task.as_ref() == Some(task) {
            self.keep(turn, (agent.clone(), task.clone()));
        }
    }

    fn keep(&mut self, turn: TurnId, of: (AgentId, TaskId)) {
        if self.turns.len() >= MAX_TURNS {
            self.turns.clear();
            self.since = self.heard;
        }
        self.turns.insert(turn, of);
    }

    /// The stream ends because the society does.
    fn stopping(&self) -> Event {
        let reason = self.reason.get().copied().unwrap_or("stopped");
        Event::default().event("stopping").data(json!({ "reason": reason }).to_string())
    }

    fn end(&mut self, last: Event) -> Option<Event> {
        self.ended = true;
        Some(last)
    }
}

/// The agent that an event outside any turn is about.
fn about(event: &Happened) -> Option<&AgentId> {
    match event {
        Happened::AgentSpawned { agent, .. }
        | Happened::AgentDismissed { agent, .. }
        | Happened::AgentTerminated { agent }
        | Happened::InboxCleared { agent, .. }
        | Happened::ThreadOpened { agent, .. } => Some(agent),
        _ => None,
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

fn committed(recorded: &Recorded, past: &Past) -> Result<Event, serde_json::Error> {
    let body = serde_json::value::to_raw_value(&recorded.event)?;
    // An enum is written as its name, or as an object whose first key is its name.
    let name = body.get().split('"').nth(1).unwrap_or_default();
    let written = Written { seq: recorded.seq, at: recorded.at, thread: recorded.thread.as_ref(), event: &body };
    let data = serde_json::to_string(&written)?;
    Ok(Event::default().id(past.name(recorded.seq)).event(name).data(data))
}

/// A chunk of a reply. It has no id: it is not part of the log and is not repeated.
fn streamed(delta: &StreamedDelta) -> Result<Event, serde_json::Error> {
    let data = LiveDelta { effect: delta.effect, thread: &delta.thread, delta: &delta.delta };
    Ok(Event::default().event("delta").data(serde_json::to_string(&data)?))
}

/// What somebody in a workflow is seen doing. It has no id either.
fn pictured(chunk: &StreamedStep) -> Result<Event, serde_json::Error> {
    Ok(Event::default().event("step").data(serde_json::to_string(chunk)?))
}

/// The stream ends because the log cannot be read.
fn failed(problem: Problem) -> Event {
    Event::default().event("problem").data(problem.to_json().to_string())
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
            let told = format!("{:?}", committed(&recorded, &Past::of(&Spine::default())).unwrap());
            let whole = format!("{:?}", serde_json::to_string(&recorded).unwrap());
            assert!(told.contains(&format!("event: {name}\\n")), "{told}");
            assert!(told.contains(whole.trim_matches('"')), "{told} {whole}");
        }
    }
}
