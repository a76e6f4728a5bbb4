//! The state of requests, and what a person does with them.

use std::collections::BTreeSet;
use std::sync::Arc;

use polis_domain::{
    AgentId, EffectId, Envelope, Failure, InboxEntry, MessageKind, OpenKind, Refusal, Seq, Spine, Stage, Target, TaskActivity,
    TaskId, Turn, TurnId, Visibility,
};
use polis_engine::{CommandError, Sent};
use polis_ports::ThreadRange;
use serde_json::Map;

use super::Local;
use crate::{Accepted, ApiError, Cancel, Cancelled, OpenTask, Paging, Scope, TaskState, TaskStatus, Tasks};

/// How much of a request's text a list has, in characters.
const TEXT: usize = 200;

/// What an open turn is doing, the more urgent the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TurnActivity {
    /// It waits for time or for another agent.
    Waiting,
    /// It waits for a person's decision.
    Asking,
    /// It runs.
    Running,
    /// It is blocked until a person acts.
    Parked,
}

/// The state of a request that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTaskState {
    /// Running, waiting or blocked by a person.
    pub status: TaskStatus,
    /// The agent that is busy with another request; that request waits for a person.
    pub behind: Option<AgentId>,
}

impl Local {
    /// The state of a request.
    pub async fn task(&self, id: &TaskId) -> Result<TaskState, ApiError> {
        self.caller.needs(Scope::Read)?;
        let task = id.clone();
        let look = move |spine: &Spine| (spine.seq, open_task(spine, &task), failed_part(spine, &task));
        let (seq, open, failed) = self.society.look(look).await?;
        // Messages since then belong to a later state.
        let envelopes = self.envelopes(id).await.map(|mut envelopes| {
            envelopes.retain(|(recorded, _)| recorded.seq <= seq);
            envelopes
        });
        // A caller who cannot see the messages of a request must not learn that it is open.
        let open = open.filter(|_| envelopes.is_ok() || *self.society.visibility() == Visibility::Everything);
        let ended = envelopes.as_deref().unwrap_or_default().iter().rev().find_map(|(_, envelope)| ending(envelope));
        let conversation = envelopes.as_ref().ok().and_then(|all| all.first()).map(|(_, envelope)| envelope.to.clone());
        let state = match (open, ended) {
            (Some(OpenTaskState { status, behind }), _) => TaskState { behind, ..TaskState::new(id.clone(), status) },
            (None, Some(ended)) => TaskState { id: id.clone(), ..ended },
            // A message that nobody has to answer.
            (None, None) => envelopes.map(|_| TaskState::new(id.clone(), TaskStatus::Done))?,
        };
        let state = match (state.status, failed) {
            (TaskStatus::Done, Some(failure)) => {
                let status = if state.answer.is_some() { TaskStatus::Partial } else { TaskStatus::Failed };
                TaskState { status, failure: Some(failure), ..state }
            }
            _ => state,
        };
        Ok(TaskState { conversation, plans: self.plans_of(Some(id.clone())).await?, ..state })
    }

    /// The open requests.
    pub async fn tasks(&self, paging: &Paging) -> Result<Tasks, ApiError> {
        self.caller.needs(Scope::Read)?;
        let (visibility, paging) = (self.society.visibility().clone(), paging.clone());
        // What a request is doing takes a look at all turns, so only those of the page are asked.
        let list = move |spine: &Spine| {
            let is_visible = |activity: &TaskActivity| {
                let conversation = activity.conversation.as_ref();
                visibility == Visibility::Everything || conversation.is_some_and(|agent| visibility.agent(spine, agent))
            };
            let is_meant = |(id, activity): &(&TaskId, &TaskActivity)| paging.is_after(id.as_str()) && is_visible(activity);
            let mut found: Vec<_> = spine.activities.iter().filter(is_meant).collect();
            found.sort_by_key(|(id, _)| *id);
            let open = |(id, activity): (&TaskId, &TaskActivity)| {
                let status = open_task(spine, id)?.status;
                let TaskActivity { turns, open, .. } = *activity;
                Some(OpenTask { id: id.clone(), status, turns, open, text: String::new(), person: None, conversation: None })
            };
            paging.cut(found.into_iter().filter_map(open), |task| task.id.to_string())
        };
        let (mut tasks, next) = self.society.look(list).await?;
        for task in &mut tasks {
            if let Some(envelope) = self.first_message(&task.id).await? {
                task.text = envelope.payload.text.chars().take(TEXT).collect();
                task.person = envelope.person.clone();
                task.conversation = Some(envelope.to.clone());
            }
        }
        Ok(Tasks { tasks, next })
    }

    /// The message that a request began with. Only the beginning of its thread is read.
    async fn first_message(&self, task: &TaskId) -> Result<Option<Arc<Envelope>>, ApiError> {
        let beginning = ThreadRange { oldest: 1, ..ThreadRange::ALL };
        let events = self.society.log().read_thread(self.society.id(), &task.thread(), beginning).await;
        let events = events.map_err(CommandError::from)?;
        Ok(events.first().and_then(|recorded| recorded.event.envelope().cloned()))
    }

    /// Cancels a request, or one turn of it, with everything below.
    pub async fn cancel(&self, id: &TaskId, request: Cancel) -> Result<Cancelled, ApiError> {
        self.caller.needs(Scope::Send)?;
        let cancelled = Cancelled { task_id: id.clone() };
        // After the first one the turn is settled, and the check below would refuse the repeat.
        if self.society.done_before().await?.is_some() {
            return Ok(cancelled);
        }
        let target = match request.turn.map(|turn| TurnId(Seq(turn))) {
            Some(turn) => {
                let task = id.clone();
                let belongs = move |spine: &Spine| spine.turns.get(&turn).is_some_and(|turn| turn.task == task);
                if !self.society.look(belongs).await? {
                    // The first one may have been done since.
                    if self.society.done_before().await?.is_some() {
                        return Ok(cancelled);
                    }
                    return Err(CommandError::from(Refusal::TurnNotOpen(turn)).into());
                }
                Target::Turn(turn)
            }
            None => Target::Task(id.clone()),
        };
        self.society.cancel(target, &request.reason).await?;
        Ok(cancelled)
    }

    /// Sends the person's last message about a request again, as a retry (R043).
    pub async fn retry(&self, id: &TaskId) -> Result<Accepted, ApiError> {
        self.caller.needs(Scope::Send)?;
        let envelopes = self.envelopes(id).await?;
        let task = id.clone();
        let is_open = self.society.look(move |spine| open_task(spine, &task)).await?.is_some();
        // After the first one the request is open again: a repeat is no mistake.
        if let Some(sent) = self.society.done_before().await?.and_then(|events| Sent::of(&events)) {
            return Ok(sent.into());
        }
        if is_open {
            let detail = "the request is still running; cancel it first, or wait until it has ended";
            return Err(ApiError::new(409, "still_open", detail));
        }
        let last = envelopes.iter().rev().find(|(_, envelope)| envelope.from.is_user());
        let (_, envelope) = last.ok_or_else(|| ApiError::new(409, "nothing_to_retry", "nobody asked for this"))?;
        let mut meta: Map<_, _> = envelope.payload.meta.clone().into();
        meta.insert("_ui_action".to_owned(), "retry".into());
        let (to, text) = (envelope.to.clone(), &envelope.payload.text);
        Ok(self.society.send_with_meta(to, text, Some(id.clone()), meta).await?.into())
    }
}

impl TurnActivity {
    /// What an open turn is doing.
    pub fn of(spine: &Spine, id: TurnId, turn: &Turn) -> Self {
        let is = |stage: Stage| turn.open.iter().any(|open| open.stage == stage);
        let asks = |kind: &OpenKind| matches!(kind, OpenKind::Approval(_) | OpenKind::Question(_) | OpenKind::Grant(_));
        let asking = |n: u32| spine.is_asking(EffectId { turn: id, n });
        // A call whose server waits for the person does not move either.
        let is_held = turn.open.iter().any(|open| asking(open.n))
            && turn.open.iter().all(|open| open.stage == Stage::Waiting || asking(open.n));
        if turn.is_parked() || is(Stage::InDoubt) {
            Self::Parked
        } else if is_held {
            Self::Asking
        } else if turn.is_owed() {
            Self::Running
        } else if turn.open.iter().any(|open| asks(&open.kind)) {
            Self::Asking
        } else {
            Self::Waiting
        }
    }
}

/// The state of a request that is not over; none when it is over or unknown. A request also waits while it is queued in an inbox
/// behind others.
pub fn open_task(spine: &Spine, task: &TaskId) -> Option<OpenTaskState> {
    let is_queued = |agent: &polis_domain::Agent| {
        agent.inbox.iter().any(|inbox| inbox.entries.iter().any(|entry: &InboxEntry| entry.task() == task))
    };
    let queued: Vec<_> = busy_agents(spine).filter(|(_, agent)| is_queued(agent)).collect();
    let of = |is_meant: &dyn Fn(&TaskId) -> bool| -> BTreeSet<TurnActivity> {
        let turns = spine.turns.iter().filter(|(_, turn)| is_meant(&turn.task));
        turns.map(|(id, turn)| TurnActivity::of(spine, *id, turn)).collect()
    };
    let own = of(&|of| of == task);
    if queued.is_empty() && own.is_empty() {
        return None;
    }
    let needs_person = |standings: &BTreeSet<TurnActivity>| {
        standings.contains(&TurnActivity::Parked) || standings.contains(&TurnActivity::Asking)
    };
    let open = |status| Some(OpenTaskState { status, behind: None });
    if own.contains(&TurnActivity::Running) {
        return open(TaskStatus::Running);
    }
    if needs_person(&own) {
        return open(TaskStatus::NeedsPerson);
    }
    let before = with_those_before(spine, task);
    let before = of(&|of| of != task && before.contains(of));
    if before.contains(&TurnActivity::Running) {
        return open(TaskStatus::Running);
    }
    let is_of_other = |turn: TurnId| spine.turns.get(&turn).is_some_and(|turn| turn.task != *task);
    let busy = queued.iter().filter(|(_, agent)| agent.turn.is_some_and(is_of_other)).map(|(id, _)| (*id).clone()).min();
    Some(OpenTaskState { status: TaskStatus::Waiting, behind: busy.filter(|_| needs_person(&before)) })
}

/// The newest failure of a part of a request that nobody waited for and that was not made good since.
pub(super) fn failed_part(spine: &Spine, task: &TaskId) -> Option<Failure> {
    let dead = spine.dead_letters.iter().rfind(|dead| dead.task == *task && !dead.handled)?;
    Some(Failure::new(dead.failure.code.clone(), format!("`{}` failed: {}", dead.agent, dead.failure.message)))
}

/// The agents with an open turn in their main threads. No other has anything in its inbox, and they are far fewer than all.
fn busy_agents(spine: &Spine) -> impl Iterator<Item = (&AgentId, &polis_domain::Agent)> {
    spine.turns.iter().filter_map(|(id, turn)| {
        let (name, agent) = spine.agents.get_key_value(&turn.agent)?;
        (agent.turn == Some(*id)).then_some((name, agent))
    })
}

/// The request, and those whose turns must end before it gets its own.
fn with_those_before(spine: &Spine, task: &TaskId) -> BTreeSet<TaskId> {
    let mut tasks = BTreeSet::from([task.clone()]);
    loop {
        let waits_behind = |agent: &&polis_domain::Agent| {
            let mut entries = agent.inbox.iter().flat_map(|inbox| &inbox.entries);
            entries.any(|entry: &InboxEntry| tasks.contains(entry.task()))
        };
        let busy =
            busy_agents(spine).map(|(_, agent)| agent).filter(waits_behind).filter_map(|agent| spine.turns.get(&agent.turn?));
        let before: Vec<_> = busy.map(|turn| turn.task.clone()).filter(|before| !tasks.contains(before)).collect();
        if before.is_empty() {
            return tasks;
        }
        tasks.extend(before);
    }
}

/// The state that a message leaves a request in, if the message ends it.
fn ending(envelope: &Envelope) -> Option<TaskState> {
    let ended = |status| TaskState::new(envelope.task_id.clone(), status);
    match &envelope.kind {
        _ if !envelope.to.is_user() => None,
        MessageKind::Message => None,
        MessageKind::Answer => Some(TaskState { answer: Some(envelope.payload.text.to_string()), ..ended(TaskStatus::Done) }),
        MessageKind::Failure(failure) => {
            Some(TaskState { failure: Some(failure.clone()), ..ended(TaskStatus::after(failure)) })
        }
    }
}
