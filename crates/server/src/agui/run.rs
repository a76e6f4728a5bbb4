//! A run: one request followed until it is answered or needs a person. It belongs to no connection; who leaves cancels nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::http::StatusCode;
use polis_domain::{Effect, EffectId, Envelope, Event as Happened, MessageId, MessageKind, Seq, Spine, TaskId, TurnId};
use polis_engine::{CommandError, Society, Watch, WatchEvent};
use tokio::sync::OwnedSemaphorePermit;

use super::event::{Body, Event, TokenUsage};
use super::interrupt::interrupt;
use super::narrator::Narrator;
use crate::problem::Problem;
use crate::state::{SocietyState, next_seen};
use crate::work::{BUSY, busy};
use polis_api::local::{OpenState, open_task};
use polis_api::{Approval, TaskStatus};

/// One client's view of a request.
pub(crate) struct Run {
    state: SocietyState,
    task: TaskId,
    watch: Watch,
    narrator: Narrator,
    told: VecDeque<Event>,
    /// The last event that was heard.
    seen: Seq,
    /// Where the log ended when the run was opened.
    head: Seq,
    has_begun: bool,
    /// What is told right after the run's beginning.
    prelude: Vec<Body>,
    /// Whether it ends as soon as everything that has happened is told and nothing is under way.
    may_be_idle: bool,
    /// Whether anybody is known to wait for a person.
    asked: bool,
    /// When everything up to there is told, the run ends for a person.
    blocked: Option<Seq>,
    _permit: OwnedSemaphorePermit,
}

/// Whom a run is told to.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    pub(crate) thread: Arc<str>,
    pub(crate) run: Arc<str>,
}

impl Run {
    /// Listens to a request from now on. What is under way is known and not told again.
    pub(crate) async fn listen(state: &SocietyState, task: &TaskId, names: &Names) -> Result<Self, Problem> {
        let asked = task.clone();
        let first = state.society.look(move |spine| first_open(spine, &asked)).await?;
        let head = state.society.log().readable_head(state.society.id()).await?;
        let start = first.map_or(head, |first| Seq(first.0.saturating_sub(1)).min(head));
        let narrator = Narrator::new(task.clone(), &names.thread, &names.run).joined(head).quiet();
        Self::new(state, task, narrator, start, head)
    }

    /// Tells a request again from an event on, and goes on with what comes.
    pub(crate) async fn replay(
        state: &SocietyState,
        task: &TaskId,
        names: &Names,
        from: Seq,
        prelude: Vec<Body>,
    ) -> Result<Self, Problem> {
        let asked = task.clone();
        let first = state.society.look(move |spine| first_open(spine, &asked)).await?;
        let head = state.society.log().readable_head(state.society.id()).await?;
        let start = Seq(first.map_or(from, |first| first.min(from)).0.saturating_sub(1)).min(head);
        let narrator = Narrator::new(task.clone(), &names.thread, &names.run).joined(head);
        let mut run = Self::new(state, task, narrator, start, head)?;
        run.prelude = prelude;
        run.begin();
        run.may_be_idle = true;
        Ok(run)
    }

    /// Tells again what came of a word on this request: of the event of this place, in a turn of it.
    pub(crate) async fn again(
        state: &SocietyState,
        task: &TaskId,
        names: &Names,
        turn: TurnId,
        at: Seq,
    ) -> Result<Self, Problem> {
        let envelopes = state.society.messages(task).await?;
        let is_end = |envelope: &Envelope| envelope.to.is_user() && envelope.kind != MessageKind::Message;
        let before = envelopes.iter().rev().filter(|(recorded, _)| recorded.seq < at);
        let asked = before.take_while(|(_, envelope)| !is_end(envelope)).last().map(|(recorded, _)| recorded.seq);
        let start = asked.map_or(turn.0, |asked| asked.min(turn.0));
        let head = state.society.log().readable_head(state.society.id()).await?;
        let narrator = Narrator::new(task.clone(), &names.thread, &names.run).joined(head).quiet();
        let before = |seq: Seq| Seq(seq.0.saturating_sub(1));
        let mut run = Self::new(state, task, narrator, before(start), before(at))?;
        run.may_be_idle = true;
        run.catch_up().await?;
        Ok(run)
    }

    fn new(state: &SocietyState, task: &TaskId, narrator: Narrator, start: Seq, head: Seq) -> Result<Self, Problem> {
        let permit = state.streams.clone().try_acquire_owned().map_err(|_| {
            let detail = "too many event streams are open; close one or try again later";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", detail)
        })?;
        Ok(Self {
            state: state.clone(),
            task: task.clone(),
            watch: state.society.watch(start),
            narrator,
            told: VecDeque::new(),
            seen: start,
            head,
            has_begun: false,
            prelude: Vec::new(),
            may_be_idle: false,
            asked: true,
            blocked: None,
            _permit: permit,
        })
    }

    /// The same run, ended by the answer to this message.
    pub(crate) fn answering(self, envelope: MessageId) -> Self {
        Self { narrator: self.narrator.answering(envelope), ..self }
    }

    /// The same run, which also ends when nothing is under way: what it was to hear may have been heard before.
    pub(crate) fn or_idle(self) -> Self {
        Self { may_be_idle: true, ..self }
    }

    /// The text that ended it.
    pub(crate) fn answer(&self) -> Option<&Arc<str>> {
        self.narrator.answer()
    }

    /// The tool calls that wait for whoever asks: by effect, by the name that they were told under, and what is called.
    pub(crate) fn lent_calls(&self) -> Vec<(EffectId, Arc<str>, polis_domain::Call)> {
        self.narrator.lent_calls()
    }

    /// Hears everything that had happened when the run was opened. Nothing is told meanwhile.
    pub(crate) async fn catch_up(&mut self) -> Result<(), Problem> {
        while self.seen < self.head {
            let Some(recorded) = self.watch.next_event().await? else { break };
            self.seen = recorded.seq;
            self.narrator.hear(&WatchEvent::Event(recorded));
        }
        Ok(())
    }

    /// What was used for it up to a place.
    pub(crate) async fn used_until(mut self, place: Seq) -> Result<Vec<TokenUsage>, Problem> {
        while self.seen < place {
            let Some(recorded) = self.watch.next_event().await? else { break };
            self.seen = recorded.seq;
            self.narrator.hear(&WatchEvent::Event(recorded));
        }
        Ok(self.narrator.used())
    }

    /// Ends the run at once with an error.
    pub(crate) fn fail(&mut self, code: &str, message: &str) {
        self.begin();
        self.narrator.fail(code, message);
    }

    /// The next event; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.told.pop_front() {
                return Some(event);
            }
            if !self.has_begun && self.seen >= self.head {
                self.begin();
            }
            self.told.extend(self.narrator.take());
            if !self.told.is_empty() {
                continue;
            }
            if self.narrator.is_over() {
                return None;
            }
            if self.has_begun && self.seen >= self.head && self.asked {
                self.look().await;
            }
            if self.blocked.is_some_and(|place| self.seen >= place) {
                self.block().await;
                continue;
            }
            if self.narrator.is_over() {
                continue;
            }
            self.hear().await;
        }
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.narrator.begin(std::mem::take(&mut self.prelude));
        }
    }

    async fn hear(&mut self) {
        let seen = tokio::select! {
            biased;
            seen = next_seen(&mut self.watch) => seen.map(Some),
            () = self.state.closing.cancelled() => Ok(None),
        };
        match seen {
            Ok(Some(seen)) => {
                if let WatchEvent::Event(recorded) = &seen {
                    self.seen = recorded.seq;
                    self.asked |= concerns_person(&recorded.event);
                }
                self.narrator.hear(&seen);
            }
            Ok(None) => {
                self.begin();
                self.narrator.fail("stopping", "the server is stopping; the work continues, connect again");
            }
            Err(error) => {
                self.begin();
                self.narrator.fail(error.code(), error.to_string());
            }
        }
    }

    /// Whether the request moves by itself.
    async fn look(&mut self) {
        self.asked = false;
        match stands(&self.state.society, self.task.clone()).await {
            Ok((seq, Some(OpenState { status: TaskStatus::NeedsPerson, .. } | OpenState { behind: Some(_), .. }))) => {
                self.blocked = Some(seq);
            }
            Ok((seq, None)) if self.may_be_idle => {
                if self.seen >= seq {
                    self.narrator.succeed();
                } else {
                    self.asked = true;
                }
            }
            // What happened before the society stopped is still told, and then that it stopped.
            Ok(_) | Err(CommandError::Stopping) => self.blocked = None,
            Err(rejected) => self.narrator.fail(rejected.code(), rejected.to_string()),
        }
    }

    /// Ends the run for a person, unless they have acted meanwhile.
    async fn block(&mut self) {
        self.blocked = None;
        let waiting = match waiting(&self.state, &self.task).await {
            Ok(waiting) => waiting,
            Err(problem) => return self.narrator.fail(problem.code(), problem.detail()),
        };
        if waiting.is_empty() {
            match stands(&self.state.society, self.task.clone()).await {
                Ok((_, Some(OpenState { behind: Some(agent), .. }))) => {
                    return self.narrator.fail(BUSY, busy(&agent));
                }
                Ok(_) | Err(CommandError::Stopping) => {}
                Err(rejected) => return self.narrator.fail(rejected.code(), rejected.to_string()),
            }
            // Somebody has acted: what comes of it is on its way.
            self.asked = true;
            return self.hear().await;
        }
        let lent = self.narrator.lent_calls();
        let is_lent = |approval: &Approval| lent.iter().any(|(id, ..)| id.to_string() == approval.id);
        if waiting.iter().all(is_lent) {
            return self.narrator.hand_over(lent.into_iter().map(|(_, name, _)| name).collect());
        }
        let call = |approval: &Approval| self.narrator.call(approval.id.parse().ok()?);
        let interrupts = waiting.iter().map(|approval| interrupt(approval, call(approval))).collect();
        self.narrator.interrupt(interrupts);
    }
}

/// Where a request stands, as of which event.
async fn stands(society: &Society, task: TaskId) -> Result<(Seq, Option<OpenState>), CommandError> {
    society.look(move |spine: &Spine| (spine.seq, open_task(spine, &task))).await
}

/// What of this request waits for a person. What other requests wait for is for those who made them.
pub(crate) async fn waiting(state: &SocietyState, task: &TaskId) -> Result<Vec<Approval>, Problem> {
    let all = polis_api::local::waiting(&state.society).await?;
    Ok(all.into_iter().filter(|approval| approval.task_id == *task).collect())
}

/// The first event of what is under way for a request.
fn first_open(spine: &Spine, task: &TaskId) -> Option<Seq> {
    spine.turns.iter().find(|(_, turn)| turn.task == *task).map(|(id, _)| id.0)
}

/// Whether after this somebody may wait for a person, or wait for nothing else any more.
fn concerns_person(event: &Happened) -> bool {
    match event {
        Happened::EffectStarted { effect, .. } => matches!(
            effect,
            Effect::Approval { .. } | Effect::Grant { .. } | Effect::Ask { .. } | Effect::Unit { .. } | Effect::Sleep { .. }
        ),
        Happened::CallInquired { .. }
        | Happened::EffectDoubted { .. }
        | Happened::TurnParked { .. }
        | Happened::TurnRested { .. }
        | Happened::TurnSettled { .. }
        | Happened::EffectEnded { .. } => true,
        _ => false,
    }
}
