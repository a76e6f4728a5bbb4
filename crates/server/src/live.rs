//! Everything that happens in a society, for one follower: the log after a place, then live. Nothing twice, nothing missing.
//!
//! A reply that is being written is told from its beginning to a follower that comes late. One that reads too slowly loses
//! chunks of replies, never events, and gets [`LiveEvent::Resync`]: forget the chunks of replies, they come again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use polis_api::ApiError;
use polis_domain::{AgentId, EffectId, Event, Recorded, Seq, TaskId, ThreadId, TurnId};
use polis_engine::{Society, Watch, WatchEvent};
use polis_ports::{StreamedDelta, StreamedStep};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::state::{SocietyState, next_seen};

/// Most turns whose agent and request are remembered for a filter.
const MAX_TURNS: usize = 4_096;

/// Which events are wanted. Several filters must all hold.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventFilter {
    /// Only events after this place; all of them when it is not given.
    #[serde(default)]
    pub(crate) after: u64,
    /// Only what is recorded under this thread.
    thread: Option<ThreadId>,
    /// Only what belongs to this request.
    task: Option<TaskId>,
    /// Only what this agent does, sends or is sent.
    agent: Option<AgentId>,
}

/// Something that happens.
#[derive(Debug, Clone)]
pub enum LiveEvent {
    /// An event of the log.
    Event(Arc<Recorded>),
    /// A chunk of a reply that is being written.
    Delta(Arc<StreamedDelta>),
    /// A step of a workflow.
    Step(Arc<StreamedStep>),
    /// Chunks of replies were lost; they are told again from their beginning.
    Resync,
    /// The last one: the society stops, and why.
    Stopping(&'static str),
    /// The last one: the log cannot be read.
    Failed(ApiError),
}

impl From<WatchEvent> for LiveEvent {
    fn from(seen: WatchEvent) -> Self {
        match seen {
            WatchEvent::Event(recorded) => Self::Event(recorded),
            WatchEvent::Delta(delta) => Self::Delta(delta),
            WatchEvent::Step(step) => Self::Step(step),
        }
    }
}

impl SocietyState {
    /// Everything after a place of the log, and what comes.
    pub async fn events(&self, after: Seq) -> Result<LiveEvents, ApiError> {
        self.follow(after, EventFilter::default()).await
    }

    /// The same of what a filter lets through.
    pub(crate) async fn follow(&self, after: Seq, which: EventFilter) -> Result<LiveEvents, ApiError> {
        let last = self.society.log().readable_head(self.society.id()).await?;
        if after > last {
            let detail =
                format!("the log ends at {last}, before {after}: it is not the one that you were reading; start again from 0");
            return Err(ApiError::new(409, "ahead_of_log", detail));
        }
        let permit = self.streams.clone().try_acquire_owned().map_err(|_| {
            let detail = "too many event streams are open; close one or try again later";
            ApiError::new(503, "too_many_streams", detail)
        })?;
        let watch = match &which {
            EventFilter { thread: Some(thread), task: None, agent: None, .. } => {
                self.society.watch_thread(thread.clone(), after)
            }
            // Whose turn an event belongs to is known from events of other threads.
            _ => self.society.watch(after),
        };
        Ok(LiveEvents {
            society: self.society.clone(),
            watch,
            which,
            turns: HashMap::new(),
            since: after,
            last_seen: after,
            over: HashSet::new(),
            waiting: None,
            missed: 0,
            closing: self.closing.clone(),
            reason: self.reason.clone(),
            ended: false,
            _permit: permit,
        })
    }
}

/// What happens in a society from a place of the log on, for one follower.
pub struct LiveEvents {
    society: Society,
    watch: Watch,
    which: EventFilter,
    /// Who works in a turn, and for which request. Of the turns that began between `since` and `last_seen`, those that are not here
    /// are of no interest.
    turns: HashMap<TurnId, (AgentId, TaskId)>,
    since: Seq,
    last_seen: Seq,
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

impl LiveEvents {
    /// The next thing that happens; none after the last one. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<LiveEvent> {
        while !self.ended {
            let seen = match self.waiting.take() {
                Some(seen) => Ok(seen),
                None => tokio::select! {
                    // What has happened is told before the end.
                    biased;
                    seen = next_seen(&mut self.watch) => seen,
                    () = self.closing.cancelled() => {
                        self.ended = true;
                        return Some(LiveEvent::Stopping(self.reason.get().copied().unwrap_or("stopped")));
                    }
                },
            };
            if self.watch.missed() > self.missed {
                self.missed = self.watch.missed();
                self.waiting = seen.ok();
                return Some(LiveEvent::Resync);
            }
            match seen {
                Ok(seen) if self.matches_seen(&seen).await => return Some(seen.into()),
                Ok(_) => {}
                Err(error) => {
                    self.ended = true;
                    return Some(LiveEvent::Failed(error.into()));
                }
            }
        }
        None
    }

    async fn matches_seen(&mut self, seen: &WatchEvent) -> bool {
        match seen {
            WatchEvent::Event(recorded) => {
                if let Event::EffectEnded { id, .. } = &recorded.event {
                    if self.over.len() >= MAX_TURNS {
                        self.over.clear();
                    }
                    self.over.insert(*id);
                }
                self.last_seen = recorded.seq;
                if let Event::TurnStarted { agent, task, .. } = &recorded.event {
                    self.note(TurnId(recorded.seq), agent, &task.id);
                }
                self.matches_event(recorded).await
            }
            WatchEvent::Delta(delta) if self.over.contains(&delta.effect) => false,
            WatchEvent::Delta(delta) => self.matches_delta(&delta.thread, delta.effect.turn).await,
            WatchEvent::Step(step) => {
                let is_of_task = self.which.task.as_ref().is_none_or(|task| *task == step.task);
                let is_wanted = self.matches_thread(Some(&step.thread)) && is_of_task;
                is_wanted && self.which.agent.as_ref().is_none_or(|agent| agent.main_thread() == step.thread)
            }
        }
    }

    fn matches_thread(&self, thread: Option<&ThreadId>) -> bool {
        self.which.thread.is_none() || self.which.thread.as_ref() == thread
    }

    async fn matches_delta(&mut self, thread: &ThreadId, turn: TurnId) -> bool {
        if !self.matches_thread(Some(thread)) {
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

    async fn matches_event(&mut self, recorded: &Recorded) -> bool {
        if !self.matches_thread(recorded.thread.as_ref()) {
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
                || agent_of(&recorded.event) == Some(wanted)
        };
        self.which.task.as_ref().is_none_or(is_of_task) && self.which.agent.as_ref().is_none_or(is_of_agent)
    }

    /// Who works in a turn, and for which request. A turn is named by the place of the event that says so.
    async fn turn(&mut self, turn: TurnId) -> Option<(AgentId, TaskId)> {
        if let Some(known) = self.turns.get(&turn) {
            return Some(known.clone());
        }
        if turn.0 > self.since && turn.0 <= self.last_seen {
            return None;
        }
        let before = Seq(turn.0.0.checked_sub(1)?);
        let started = self.society.log().read(self.society.id(), before, 1).await.ok()?;
        let started = started.first().filter(|recorded| recorded.seq == turn.0)?;
        let Event::TurnStarted { agent, task, .. } = &started.event else { return None };
        let of = (agent.clone(), task.id.clone());
        self.remember(turn, of.clone());
        Some(of)
    }

    /// Remembers a turn that begins, if it is asked about.
    fn note(&mut self, turn: TurnId, agent: &AgentId, task: &TaskId) {
        if self.which.agent.as_ref() == Some(agent) || self.which.task.as_ref() == Some(task) {
            self.remember(turn, (agent.clone(), task.clone()));
        }
    }

    fn remember(&mut self, turn: TurnId, of: (AgentId, TaskId)) {
        if self.turns.len() >= MAX_TURNS {
            self.turns.clear();
            self.since = self.last_seen;
        }
        self.turns.insert(turn, of);
    }
}

/// The agent that an event outside any turn is about.
fn agent_of(event: &Event) -> Option<&AgentId> {
    match event {
        Event::AgentSpawned { agent, .. }
        | Event::AgentDismissed { agent, .. }
        | Event::AgentTerminated { agent }
        | Event::InboxCleared { agent, .. }
        | Event::ThreadOpened { agent, .. } => Some(agent),
        _ => None,
    }
}
