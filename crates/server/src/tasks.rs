//! Requests of a person: which are under way, where one stands, and calling it off.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::StatusCode;
use polis_domain::{
    AgentId, EffectId, Envelope, Failure, InboxEntry, MessageKind, OpenKind, Refusal, Seq, Spine, Stage, Target, TaskId, Turn,
    TurnId,
};
use polis_engine::{CommandError, Sent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::body::Json;
use crate::messages;
use crate::once::Keyed;
use crate::paging::Paging;
use crate::plans;
use crate::problem::Problem;
use crate::state::SocietyState;
use crate::submit::Accepted;
use crate::wanted::{Name, Wanted};

/// A request.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TaskState")]
pub(crate) struct Task {
    id: TaskId,
    status: TaskStatus,
    /// The text that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    /// The agent that is busy with another request, where that one waits for somebody to act: this one comes after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<AgentId>,
    /// The plans that agents keep for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    plans: Vec<plans::Shown>,
}

/// Why a request is called off.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cancel {
    #[serde(default)]
    reason: String,
    /// Only this turn and what it started; the request itself goes on.
    turn: Option<u64>,
}

/// A request to do again what failed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retry {}

/// The code of a request that comes after another one which waits for somebody to act.
pub(crate) const BUSY: &str = "agent_busy";

/// What whoever asks is told of that. What the other request is about is not theirs to know.
pub(crate) fn busy(agent: &str) -> String {
    format!(
        "{agent} is busy with another request, which waits for somebody to answer it. This one is kept and comes after it; ask again later."
    )
}

/// Where a request stands that is not done.
pub(crate) struct Stands {
    pub(crate) status: TaskStatus,
    /// Whose other request must be settled first, by somebody else.
    pub(crate) behind: Option<AgentId>,
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskStatus {
    /// Somebody works on it.
    Running,
    /// Time or another agent will bring it on.
    Waiting,
    /// It stands still until a person acts.
    NeedsPerson,
    Done,
    Failed,
    Cancelled,
}

/// How an agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AgentStatus {
    Idle,
    Running,
    Waiting,
    Parked,
}

/// The request that was called off.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cancelled {
    task_id: TaskId,
}

/// How an open turn stands, the more urgent the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// Time or another agent will bring it on.
    Waiting,
    /// A person is asked to agree.
    Asking,
    /// It works.
    Running,
    /// It stands still until a person acts.
    Parked,
}

pub(crate) async fn task(State(state): State<SocietyState>, Name(id): Name) -> Result<axum::Json<Task>, Problem> {
    let id = TaskId::from(id);
    let asked = id.clone();
    let open = state.society.look(move |spine| of_task(spine, &asked)).await?;
    let envelopes = messages::personal(&state.society, &id).await;
    let ended = envelopes.as_deref().unwrap_or_default().iter().rev().find_map(|(_, envelope)| ending(envelope));
    let task = match (open, ended) {
        (Some(Stands { status, behind }), _) => Task { id, status, answer: None, failure: None, behind, plans: Vec::new() },
        (None, Some(ended)) => Task { id, ..ended },
        // Whoever said something that nobody answers.
        (None, None) => envelopes.map(|_| Task {
            id,
            status: TaskStatus::Done,
            answer: None,
            failure: None,
            behind: None,
            plans: Vec::new(),
        })?,
    };
    let plans = plans::of(&state, Some(task.id.clone())).await?;
    Ok(axum::Json(Task { plans, ..task }))
}

/// What is under way.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Tasks {
    tasks: Vec<Open>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A request that is under way.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OpenTask")]
struct Open {
    id: TaskId,
    status: TaskStatus,
    /// Turns that were taken for it or wait to be, since the person last wrote.
    turns: u32,
    /// Of those, how many are not settled.
    open: u32,
}

pub(crate) async fn tasks(
    State(state): State<SocietyState>,
    Wanted(paging): Wanted<Paging>,
) -> Result<axum::Json<Tasks>, Problem> {
    let list = |spine: &Spine| {
        let open = |(id, effort): (&TaskId, &polis_domain::TaskActivity)| {
            let status = of_task(spine, id)?.status;
            Some(Open { id: id.clone(), status, turns: effort.turns, open: effort.open })
        };
        let mut tasks: Vec<_> = spine.activities.iter().filter_map(open).collect();
        tasks.sort_by(|one, other| one.id.cmp(&other.id));
        tasks
    };
    let (tasks, next) = paging.cut(state.society.look(list).await?, |task| task.id.to_string());
    Ok(axum::Json(Tasks { tasks, next }))
}

pub(crate) async fn cancel(
    Keyed(state): Keyed,
    Name(id): Name,
    Json(request): Json<Cancel>,
) -> Result<axum::Json<Cancelled>, Problem> {
    let task_id = TaskId::from(id);
    // Its turn is settled because of the first one.
    if state.society.done_before().await?.is_some() {
        return Ok(axum::Json(Cancelled { task_id }));
    }
    let target = match request.turn.map(|turn| TurnId(Seq(turn))) {
        Some(turn) => {
            let task = task_id.clone();
            let is_its = state.society.look(move |spine| spine.turns.get(&turn).is_some_and(|turn| turn.task == task)).await?;
            if !is_its {
                return Err(CommandError::from(Refusal::TurnNotOpen(turn)).into());
            }
            Target::Turn(turn)
        }
        None => Target::Task(task_id.clone()),
    };
    state.society.cancel(target, &request.reason).await?;
    Ok(axum::Json(Cancelled { task_id }))
}

/// Gives the last word of the person about a request to its receiver again, as a retry (R043).
pub(crate) async fn retry(
    Keyed(state): Keyed,
    Name(id): Name,
    Json(Retry {}): Json<Retry>,
) -> Result<axum::Json<Accepted>, Problem> {
    let task = TaskId::from(id);
    let envelopes = messages::personal(&state.society, &task).await?;
    // The request is under way again because of the first one.
    if let Some(sent) = state.society.done_before().await?.and_then(|events| Sent::of(&events)) {
        return Ok(axum::Json(sent.into()));
    }
    let asked = task.clone();
    if state.society.look(move |spine| of_task(spine, &asked)).await?.is_some() {
        let detail = "the request is still under way; cancel it first, or wait until it has ended";
        return Err(Problem::new(StatusCode::CONFLICT, "still_open", detail));
    }
    let last = envelopes.iter().rev().find(|(_, envelope)| envelope.from.is_user());
    let (_, envelope) = last.ok_or_else(|| Problem::new(StatusCode::CONFLICT, "nothing_to_retry", "nobody asked for this"))?;
    let mut meta: Map<_, _> = envelope.payload.meta.clone().into();
    meta.insert("_ui_action".to_owned(), "retry".into());
    let sent = state.society.send_with_meta(envelope.to.clone(), &envelope.payload.text, Some(task), meta).await?;
    Ok(axum::Json(sent.into()))
}

impl Standing {
    pub(crate) fn of(spine: &Spine, id: TurnId, turn: &Turn) -> Self {
        let is = |stage: Stage| turn.open.iter().any(|open| open.stage == stage);
        let asks = |kind: &OpenKind| matches!(kind, OpenKind::Approval(_) | OpenKind::Question(_) | OpenKind::Grant(_));
        let asking = |n: u32| spine.is_asking(EffectId { turn: id, n });
        // A call whose server waits for the person does not move either.
        let is_held = turn.open.iter().any(|open| asking(open.n))
            && turn.open.iter().all(|open| open.stage == Stage::Waiting || asking(open.n));
        if turn.parked.is_some() || is(Stage::InDoubt) {
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

    /// The word for an agent with such a turn.
    pub(crate) fn of_agent(self) -> AgentStatus {
        match self {
            Self::Waiting | Self::Asking => AgentStatus::Waiting,
            Self::Running => AgentStatus::Running,
            Self::Parked => AgentStatus::Parked,
        }
    }
}

/// Where a request stands that is not done: also one that waits in an inbox behind others.
pub(crate) fn of_task(spine: &Spine, task: &TaskId) -> Option<Stands> {
    let is_queued = |agent: &polis_domain::Agent| {
        agent.inbox.iter().any(|inbox| inbox.entries.iter().any(|due: &InboxEntry| due.task() == task))
    };
    let queued: Vec<_> = spine.agents.iter().filter(|(_, agent)| is_queued(agent)).collect();
    let of = |is_meant: &dyn Fn(&TaskId) -> bool| -> BTreeSet<Standing> {
        let turns = spine.turns.iter().filter(|(_, turn)| is_meant(&turn.task));
        turns.map(|(id, turn)| Standing::of(spine, *id, turn)).collect()
    };
    let own = of(&|of| of == task);
    if queued.is_empty() && own.is_empty() {
        return None;
    }
    let needs_person =
        |standings: &BTreeSet<Standing>| standings.contains(&Standing::Parked) || standings.contains(&Standing::Asking);
    let stands = |status| Some(Stands { status, behind: None });
    if own.contains(&Standing::Running) {
        return stands(TaskStatus::Running);
    }
    if needs_person(&own) {
        return stands(TaskStatus::NeedsPerson);
    }
    let before = with_those_before(spine, task);
    let before = of(&|of| of != task && before.contains(of));
    if before.contains(&Standing::Running) {
        return stands(TaskStatus::Running);
    }
    let is_of_other = |turn: TurnId| spine.turns.get(&turn).is_some_and(|turn| turn.task != *task);
    let busy = queued.iter().filter(|(_, agent)| agent.turn.is_some_and(is_of_other)).map(|(id, _)| (*id).clone()).min();
    Some(Stands { status: TaskStatus::Waiting, behind: busy.filter(|_| needs_person(&before)) })
}

/// The request, and those whose turns must end before it gets its own.
fn with_those_before(spine: &Spine, task: &TaskId) -> BTreeSet<TaskId> {
    let mut tasks = BTreeSet::from([task.clone()]);
    loop {
        let waits_behind = |agent: &&polis_domain::Agent| {
            let mut entries = agent.inbox.iter().flat_map(|inbox| &inbox.entries);
            entries.any(|due: &InboxEntry| tasks.contains(due.task()))
        };
        let busy = spine.agents.values().filter(waits_behind).filter_map(|agent| spine.turns.get(&agent.turn?));
        let before: Vec<_> = busy.map(|turn| turn.task.clone()).filter(|before| !tasks.contains(before)).collect();
        if before.is_empty() {
            return tasks;
        }
        tasks.extend(before);
    }
}

fn ending(envelope: &Envelope) -> Option<Task> {
    if !envelope.to.is_user() {
        return None;
    }
    let id = envelope.task_id.clone();
    match &envelope.kind {
        MessageKind::Message => None,
        MessageKind::Answer => Some(Task {
            id,
            status: TaskStatus::Done,
            answer: Some(envelope.payload.text.to_string()),
            failure: None,
            behind: None,
            plans: Vec::new(),
        }),
        MessageKind::Failure(failure) => {
            let status = if &*failure.code == "cancelled" { TaskStatus::Cancelled } else { TaskStatus::Failed };
            Some(Task { id, status, answer: None, failure: Some(failure.clone()), behind: None, plans: Vec::new() })
        }
    }
}
