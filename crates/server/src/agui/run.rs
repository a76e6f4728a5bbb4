//! A run: one request followed until it is answered or needs a person. It belongs to no connection; who leaves cancels nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::http::StatusCode;
use polis_domain::{
    AgentId, Effect, EffectId, Envelope, Event as LogEvent, MessageId, MessageKind, Seq, Spine, TaskId, TurnId,
};
use polis_engine::{CommandError, Society, Watch, WatchEvent};
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;

use super::event::{Body, Event, TokenUsage};
use super::interrupts::interrupt;
use super::translator::EventTranslator;
use crate::problem::Problem;
use crate::state::{SocietyState, next_seen};
use crate::task_follower::{BUSY, busy_message};
use polis_api::local::{OpenTaskState, open_task};
use polis_api::{Approval, TaskStatus};

/// One client's view of a request.
pub(crate) struct Run {
    state: SocietyState,
    task: TaskId,
    watch: Watch,
    translator: EventTranslator,
    ready: VecDeque<Event>,
    /// The last event that was translated.
    seen: Seq,
    /// Where the log ended when the run was opened.
    head: Seq,
    has_started: bool,
    /// Events that follow right after the start of the run.
    prelude: Vec<Body>,
    /// Whether it ends as soon as it has caught up and nothing is in progress.
    may_be_idle: bool,
    /// Whether anybody is known to wait for a person.
    asked: bool,
    /// Once it has caught up to here, the run ends because a person must act.
    blocked: Option<Seq>,
    _permit: OwnedSemaphorePermit,
}

/// What the client brings along to a run: the ids that it knows it by, and its own part of the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunContext {
    pub(crate) thread: Arc<str>,
    pub(crate) run: Arc<str>,
    pub(crate) state: Map<String, Value>,
}

impl RunContext {
    /// For clients that know a request by its id alone.
    pub(crate) fn of(task: &TaskId) -> Self {
        Self { thread: task.as_str().into(), run: task.as_str().into(), state: Map::new() }
    }
}

impl Run {
    /// Follows a request from now on. What is already in progress is tracked, but not sent again.
    pub(crate) async fn listen(state: &SocietyState, task: &TaskId, context: &RunContext) -> Result<Self, Problem> {
        state.society.check_task(task).await?;
        let asked = task.clone();
        let first = state.society.look(move |spine| first_open(spine, &asked)).await?;
        let head = state.society.log().readable_head(state.society.id()).await?;
        let start = first.map_or(head, |first| Seq(first.0.saturating_sub(1)).min(head));
        let translator = EventTranslator::new(task.clone(), context).joined(head).quiet();
        Self::new(state, task, translator, start, head)
    }

    /// Tells a request again from an event on, and goes on with what comes.
    pub(crate) async fn replay(
        state: &SocietyState,
        task: &TaskId,
        context: &RunContext,
        from: Seq,
        prelude: Vec<Body>,
    ) -> Result<Self, Problem> {
        state.society.check_task(task).await?;
        let asked = task.clone();
        let first = state.society.look(move |spine| first_open(spine, &asked)).await?;
        let head = state.society.log().readable_head(state.society.id()).await?;
        let start = Seq(first.map_or(from, |first| first.min(from)).0.saturating_sub(1)).min(head);
        let translator = EventTranslator::new(task.clone(), context).joined(head);
        let mut run = Self::new(state, task, translator, start, head)?;
        run.prelude = prelude;
        run.begin();
        run.may_be_idle = true;
        Ok(run)
    }

    /// Replays the result of a decision on this request: from its event, in one of its turns.
    pub(crate) async fn replay_decision(
        state: &SocietyState,
        task: &TaskId,
        context: &RunContext,
        turn: TurnId,
        at: Seq,
    ) -> Result<Self, Problem> {
        state.society.check_task(task).await?;
        let envelopes = state.society.messages(task).await?;
        let is_end = |envelope: &Envelope| envelope.to.is_user() && envelope.kind != MessageKind::Message;
        let before = envelopes.iter().rev().filter(|(recorded, _)| recorded.seq < at);
        let asked = before.take_while(|(_, envelope)| !is_end(envelope)).last().map(|(recorded, _)| recorded.seq);
        let start = asked.map_or(turn.0, |asked| asked.min(turn.0));
        let head = state.society.log().readable_head(state.society.id()).await?;
        let translator = EventTranslator::new(task.clone(), context).joined(head).quiet();
        let before = |seq: Seq| Seq(seq.0.saturating_sub(1));
        let mut run = Self::new(state, task, translator, before(start), before(at))?;
        run.may_be_idle = true;
        run.catch_up().await?;
        Ok(run)
    }

    fn new(state: &SocietyState, task: &TaskId, translator: EventTranslator, start: Seq, head: Seq) -> Result<Self, Problem> {
        let permit = state.streams.clone().try_acquire_owned().map_err(|_| {
            let detail = "too many event streams are open; close one or try again later";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", detail)
        })?;
        Ok(Self {
            state: state.clone(),
            task: task.clone(),
            // The translator takes only events of the request, which the caller may see. A watch of one person would not say
            // that it has come to an event of somebody else, which the run waits for here.
            watch: state.society.unlimited().watch(start),
            translator,
            ready: VecDeque::new(),
            seen: start,
            head,
            has_started: false,
            prelude: Vec::new(),
            may_be_idle: false,
            asked: true,
            blocked: None,
            _permit: permit,
        })
    }

    /// The same run, ended by the answer to this message.
    pub(crate) fn answering(self, envelope: MessageId) -> Self {
        Self { translator: self.translator.answering(envelope), ..self }
    }

    /// The same run, but it also ends when nothing is in progress: the result may already be in the past.
    pub(crate) fn or_idle(self) -> Self {
        Self { may_be_idle: true, ..self }
    }

    /// The text that ended it.
    pub(crate) fn answer(&self) -> Option<&Arc<str>> {
        self.translator.answer()
    }

    /// Why the model stopped before the answer was whole; none if it is whole.
    pub(crate) fn stopped_early(&self) -> Option<&polis_domain::Finish> {
        self.translator.stopped_early()
    }

    /// Client tool calls that wait for the client: the effect, the tool call id, and the call.
    pub(crate) fn client_tool_calls(&self) -> Vec<(EffectId, Arc<str>, polis_domain::Call)> {
        self.translator.client_tool_calls()
    }

    /// Reads everything that had happened when the run was opened, without sending it.
    pub(crate) async fn catch_up(&mut self) -> Result<(), Problem> {
        while self.seen < self.head {
            let Some(recorded) = self.watch.next_event().await? else { break };
            self.seen = recorded.seq;
            self.translate(&WatchEvent::Event(recorded)).await;
        }
        Ok(())
    }

    /// What was used for it up to a place, and why the model stopped before the answer was whole.
    pub(crate) async fn usage_until(mut self, place: Seq) -> Result<(Vec<TokenUsage>, Option<polis_domain::Finish>), Problem> {
        while self.seen < place {
            let Some(recorded) = self.watch.next_event().await? else { break };
            self.seen = recorded.seq;
            self.translate(&WatchEvent::Event(recorded)).await;
        }
        Ok((self.translator.usage(), self.translator.stopped_early().cloned()))
    }

    /// Ends the run at once with an error.
    pub(crate) fn fail(&mut self, code: &str, message: &str) {
        self.begin();
        self.translator.fail(code, message);
    }

    /// The next event; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if !self.has_started && self.seen >= self.head {
                self.begin();
            }
            self.ready.extend(self.translator.take());
            if !self.ready.is_empty() {
                continue;
            }
            if self.translator.is_over() {
                return None;
            }
            if self.has_started && self.seen >= self.head && self.asked {
                self.check_state().await;
            }
            if self.blocked.is_some_and(|place| self.seen >= place) {
                self.finish_blocked().await;
                continue;
            }
            if self.translator.is_over() {
                continue;
            }
            self.follow().await;
        }
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_started, true) {
            self.translator.begin(std::mem::take(&mut self.prelude));
        }
    }

    async fn follow(&mut self) {
        let seen = tokio::select! {
            biased;
            seen = next_seen(&mut self.watch) => seen.map(Some),
            () = self.state.closing.cancelled() => Ok(None),
        };
        match seen {
            Ok(Some(seen)) => {
                if let WatchEvent::Event(recorded) = &seen {
                    self.seen = recorded.seq;
                    self.asked |= may_need_person(&recorded.event);
                }
                self.translate(&seen).await;
            }
            Ok(None) => {
                self.begin();
                self.translator.fail("stopping", "the server is stopping; the work continues, connect again");
            }
            Err(error) => {
                self.begin();
                self.translator.fail(error.code(), error.to_string());
            }
        }
    }

    /// Translates what a watcher sees. Agents are shown by the names that people know, which are not in the events.
    async fn translate(&mut self, seen: &WatchEvent) {
        if let WatchEvent::Event(recorded) = seen
            && let LogEvent::TurnStarted { agent, task, .. } = &recorded.event
            && task.id == self.task
            && !self.translator.knows(agent)
        {
            let name = shown_name(&self.state.society, agent).await;
            self.translator.name(agent.clone(), name);
        }
        self.translator.on_watch_event(seen);
    }

    /// Whether the request moves by itself.
    async fn check_state(&mut self) {
        self.asked = false;
        match open_state(&self.state.society, self.task.clone()).await {
            Ok((seq, Some(OpenTaskState { status: TaskStatus::NeedsPerson, .. } | OpenTaskState { behind: Some(_), .. }))) => {
                self.blocked = Some(seq);
            }
            Ok((seq, None)) if self.may_be_idle => {
                if self.seen >= seq {
                    self.translator.succeed();
                } else {
                    self.asked = true;
                }
            }
            // Events from before the society stopped are sent first, then the error.
            Ok(_) | Err(CommandError::Stopping) => self.blocked = None,
            Err(rejected) => self.translator.fail(rejected.code(), rejected.to_string()),
        }
    }

    /// Ends the run for a person, unless they have acted meanwhile.
    async fn finish_blocked(&mut self) {
        self.blocked = None;
        let waiting = match waiting(&self.state, &self.task).await {
            Ok(waiting) => waiting,
            Err(problem) => return self.translator.fail(problem.code(), problem.detail()),
        };
        if waiting.is_empty() {
            match open_state(&self.state.society, self.task.clone()).await {
                Ok((_, Some(OpenTaskState { behind: Some(agent), .. }))) => {
                    return self.translator.fail(BUSY, busy_message(&agent));
                }
                Ok(_) | Err(CommandError::Stopping) => {}
                Err(rejected) => return self.translator.fail(rejected.code(), rejected.to_string()),
            }
            // A person has acted: the result is on its way.
            self.asked = true;
            return self.follow().await;
        }
        let client_calls = self.translator.client_tool_calls();
        let is_client_tool = |approval: &Approval| client_calls.iter().any(|(id, ..)| id.to_string() == approval.id);
        if waiting.iter().all(is_client_tool) {
            return self.translator.finish_with_client_calls(client_calls.into_iter().map(|(_, name, _)| name).collect());
        }
        let call = |approval: &Approval| self.translator.call(approval.id.parse().ok()?);
        let interrupts = waiting.iter().map(|approval| interrupt(approval, call(approval))).collect();
        self.translator.interrupt(interrupts);
    }
}

/// The name of an agent for people. A society that is stopping tells only the id.
pub(super) async fn shown_name(society: &Society, agent: &AgentId) -> Arc<str> {
    let asked = agent.clone();
    let name = society.look(move |spine: &Spine| Arc::from(spine.shown_name(&asked))).await;
    name.unwrap_or_else(|_| agent.as_str().into())
}

/// The state of a request, and the event it is as of.
async fn open_state(society: &Society, task: TaskId) -> Result<(Seq, Option<OpenTaskState>), CommandError> {
    society.look(move |spine: &Spine| (spine.seq, open_task(spine, &task))).await
}

/// What of this request waits for a person. What other requests wait for is for those who made them.
pub(crate) async fn waiting(state: &SocietyState, task: &TaskId) -> Result<Vec<Approval>, Problem> {
    let all = polis_api::local::waiting(&state.society).await?;
    Ok(all.into_iter().filter(|approval| approval.task_id == *task).collect())
}

/// The first event of the open turns of a request.
fn first_open(spine: &Spine, task: &TaskId) -> Option<Seq> {
    spine.turns.iter().find(|(_, turn)| turn.task == *task).map(|(id, _)| id.0)
}

/// Whether a person may be needed after this event, or no longer be needed.
fn may_need_person(event: &LogEvent) -> bool {
    match event {
        LogEvent::EffectStarted { effect, .. } => matches!(
            effect,
            Effect::Approval { .. } | Effect::Grant { .. } | Effect::Ask { .. } | Effect::Unit { .. } | Effect::Sleep { .. }
        ),
        LogEvent::CallInquired { .. }
        | LogEvent::EffectDoubted { .. }
        | LogEvent::TurnParked { .. }
        | LogEvent::TurnRested { .. }
        | LogEvent::TurnSettled { .. }
        | LogEvent::EffectEnded { .. } => true,
        _ => false,
    }
}
