//! Who is there, what each is at, and what each offers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use polis_domain::{
    AgentId, Behaviour, DeadLetter, OpenKind, Org, OrgRole, Refusal, RoleId, Spine, Stage, TaskId, Timestamp, Turn,
};
use polis_engine::Society;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::body::Json;
use crate::once::Keyed;
use crate::problem::Problem;
use crate::state::SocietyState;
use crate::wanted::{Name, Wanted};
use polis_api::local::TurnStanding;
use polis_api::{Accepted, Paging};

/// What says in a task's meta which operation it is, by the label that was touched.
const OPERATION: &str = "_operation";

/// Who is there, in the order in which they came.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Agents {
    pub(crate) agents: Vec<Agent>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// One agent with everything that is known of it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentDetail {
    #[serde(flatten)]
    agent: Agent,
    /// What it is told about itself, its models and its tools.
    role: Option<OrgRole>,
    /// Whom it has made.
    children: Vec<AgentId>,
    /// Whether it takes on nothing new, and goes when it has done what waits for it.
    leaving: bool,
    /// What it offers to a person at one touch.
    operations: Vec<Offered>,
}

/// Something that an agent offers to a person; `POST /api/agents/{id}/operate` has it done.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentOperation")]
struct Offered {
    /// Its name, for programs.
    name: Arc<str>,
    /// Its name, for people.
    label: Arc<str>,
    /// What is said to the agent.
    message: Arc<str>,
    /// What goes with it into the task's meta.
    #[serde(skip_serializing_if = "Map::is_empty")]
    meta: Map<String, Value>,
    /// Its label in other languages, by their short names such as `zh`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<Arc<str>, Arc<str>>,
}

impl From<&polis_engine::Operation> for Offered {
    fn from(operation: &polis_engine::Operation) -> Self {
        let polis_engine::Operation { name, label, message, meta, translations } = operation.clone();
        let labels = translations.into_iter().map(|(language, words)| (language, words.label)).collect();
        Self { name, label, message, meta, labels }
    }
}

/// An operation that is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Operate {
    /// Its name, as the agent lists it.
    operation: String,
    /// The request that it belongs to; a new one if not given.
    task_id: Option<TaskId>,
    /// The language in which it is said, such as `zh`, where the operation knows it.
    #[serde(default)]
    language: String,
}

/// An agent.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Agent {
    id: AgentId,
    role_id: RoleId,
    role_name: Arc<str>,
    /// What it is at with its task: `idle`, `planning`, `executing_step` or `waiting_for_collaboration`.
    state: AgentState,
    status: AgentStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_agent_id: Option<AgentId>,
    created_at: Timestamp,
    /// The request that it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<TaskId>,
    /// Messages that wait in its inbox.
    pending: usize,
    context: Context,
}

/// How an agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AgentStatus {
    Idle,
    Running,
    Waiting,
    Parked,
}

/// The status of an agent with such a turn.
fn agent_status(standing: TurnStanding) -> AgentStatus {
    match standing {
        TurnStanding::Waiting | TurnStanding::Asking => AgentStatus::Waiting,
        TurnStanding::Running => AgentStatus::Running,
        TurnStanding::Parked => AgentStatus::Parked,
    }
}

/// What an agent is at with its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AgentState {
    Idle,
    Planning,
    ExecutingStep,
    WaitingForCollaboration,
}

/// How full its conversation is.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentContext")]
struct Context {
    /// Messages in it.
    messages: u32,
    /// Of those, how many are shown to the model; summaries stand for the others.
    shown: u32,
    /// How many compressions hold.
    compressions: usize,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compress {
    /// Whether the last compression is undone instead.
    #[serde(default)]
    undo: bool,
}

/// The task that compresses; none where one was undone.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Compressing {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<TaskId>,
}

pub(crate) async fn compress(
    Keyed(state): Keyed,
    Name(id): Name,
    Json(request): Json<Compress>,
) -> Result<axum::Json<Compressing>, Problem> {
    let agent = state.society.addressee(AgentId::from(id)).await?;
    let task_id = match request.undo {
        true => {
            state.society.restore_context(agent.main_thread()).await?;
            None
        }
        false => {
            let meta = Map::from_iter([("_ui_action".to_owned(), "compress".into())]);
            Some(state.society.send_with_meta(agent, "[compress]", None, meta).await?.task_id)
        }
    };
    Ok(axum::Json(Compressing { ok: true, task_id }))
}

/// Says to an agent what one of its operations says. What goes with it is the agent's word, not the caller's (R034).
pub(crate) async fn operate(
    Keyed(state): Keyed,
    Name(id): Name,
    Json(request): Json<Operate>,
) -> Result<axum::Json<Accepted>, Problem> {
    let agent = state.society.addressee(AgentId::from(id)).await?;
    let asked = agent.clone();
    let behaviour = state.society.look(move |spine| behaviour(spine, &asked)).await?;
    let behaviour = behaviour.ok_or_else(|| polis_engine::CommandError::from(Refusal::UnknownAgent(agent.clone())))?;
    let offered = state.society.operations(&behaviour);
    let operation = offered.iter().find(|operation| *operation.name == *request.operation).ok_or_else(|| {
        let names: Vec<&str> = offered.iter().map(|operation| &*operation.name).collect();
        let detail = match names.is_empty() {
            true => format!("{agent} offers no operations; say what you want with /api/send"),
            false => format!("{agent} offers: {}", names.join(", ")),
        };
        Problem::new(StatusCode::NOT_FOUND, "unknown_operation", detail)
    })?;
    let words = operation.translations.get(&*request.language);
    let (label, message) = words.map_or((&operation.label, &operation.message), |words| (&words.label, &words.message));
    let mut meta = operation.meta.clone();
    meta.insert(OPERATION.to_owned(), Value::from(&**label));
    let sent = state.society.send_with_meta(agent, message, request.task_id, meta).await?;
    Ok(axum::Json(sent.into()))
}

/// Messages that broke agents down.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeadLetters {
    dead_letters: Vec<DeadLetter>,
}

/// What was set aside because it broke agents down, newest first.
pub(crate) async fn dead_letters(State(state): State<SocietyState>) -> Result<axum::Json<DeadLetters>, Problem> {
    let dead_letters = state.society.look(|spine| spine.dead_letters.iter().rev().cloned().collect()).await?;
    Ok(axum::Json(DeadLetters { dead_letters }))
}

pub(crate) async fn agents(
    State(state): State<SocietyState>,
    Wanted(paging): Wanted<Paging>,
) -> Result<axum::Json<Agents>, Problem> {
    Ok(axum::Json(listed(&state.society, &paging).await?))
}

/// The agents, in the order in which they came.
pub(crate) async fn listed(society: &Society, paging: &Paging) -> Result<Agents, Problem> {
    // Within a millisecond the one that nobody made comes first.
    let cursor = |agent: &Agent| {
        let parent = agent.parent_agent_id.as_ref().map_or("", |parent| parent.as_str());
        format!("{:016}~{parent}~{}", agent.created_at.0, agent.id)
    };
    let mut agents = society.look(list).await?;
    agents.sort_by_cached_key(cursor);
    let (agents, next) = paging.cut(agents, cursor);
    Ok(Agents { agents, next })
}

pub(crate) async fn agent(State(state): State<SocietyState>, Name(id): Name) -> Result<axum::Json<AgentDetail>, Problem> {
    let wanted = AgentId::from(id);
    let asked = wanted.clone();
    let found = state.society.look(move |spine| Some((detail(spine, &asked)?, behaviour(spine, &asked)))).await?;
    let (mut detail, behaviour) = found.ok_or_else(|| polis_engine::CommandError::from(Refusal::UnknownAgent(wanted)))?;
    detail.operations = behaviour.iter().flat_map(|behaviour| state.society.operations(behaviour)).map(Offered::from).collect();
    Ok(axum::Json(detail))
}

/// The code that runs an agent's turns.
fn behaviour(spine: &Spine, id: &AgentId) -> Option<Behaviour> {
    spine.agents.get(id).and_then(|agent| spine.roles.get(&agent.role)).map(|role| role.behaviour.clone())
}

fn detail(spine: &Spine, id: &AgentId) -> Option<AgentDetail> {
    let known = spine.agents.get(id)?;
    let role = Org::of(spine).roles.into_iter().find(|role| role.role.id == known.role);
    let mut children: Vec<AgentId> =
        spine.agents.iter().filter(|(_, child)| child.parent.as_ref() == Some(id)).map(|(child, _)| child.clone()).collect();
    children.sort();
    let agent = describe(spine, id, known, worst(spine).get(id).copied());
    Some(AgentDetail { agent, role, children, leaving: known.termination.is_some(), operations: Vec::new() })
}

impl Context {
    fn of(spine: &Spine, agent: &AgentId) -> Self {
        let head = spine.threads.get(&agent.main_thread());
        let messages = head.map_or(0, |head| head.messages);
        let cuts = head.and_then(|head| head.context.as_ref()).map(|context| &context.cuts[..]).unwrap_or_default();
        let from = cuts.last().map_or(0, |(_, from)| *from);
        Self { messages, shown: messages.saturating_sub(from), compressions: cuts.len() }
    }
}

/// The most urgent standing of each agent that has turns.
fn worst(spine: &Spine) -> HashMap<&AgentId, TurnStanding> {
    let mut standings = HashMap::<&AgentId, TurnStanding>::new();
    for (id, turn) in &spine.turns {
        let standing = TurnStanding::of(spine, *id, turn);
        standings.entry(&turn.agent).and_modify(|worst| *worst = standing.max(*worst)).or_insert(standing);
    }
    standings
}

fn list(spine: &Spine) -> Vec<Agent> {
    let standings = worst(spine);
    spine.agents.iter().map(|(id, agent)| describe(spine, id, agent, standings.get(id).copied())).collect()
}

fn describe(spine: &Spine, id: &AgentId, agent: &polis_domain::Agent, standing: Option<TurnStanding>) -> Agent {
    Agent {
        id: id.clone(),
        role_id: agent.role.clone(),
        role_name: spine.roles.get(&agent.role).map_or_else(|| agent.role.as_str().into(), |role| role.name.clone()),
        state: state(agent.turn.and_then(|turn| spine.turns.get(&turn).map(|turn| &**turn))),
        status: standing.map_or(AgentStatus::Idle, agent_status),
        parent_agent_id: agent.parent.clone(),
        created_at: agent.created_at,
        task_id: agent.turn.and_then(|turn| spine.turns.get(&turn)).map(|turn| turn.task.clone()),
        pending: agent.inbox.as_ref().map_or(0, |inbox| inbox.entries.len()),
        context: Context::of(spine, id),
    }
}

/// How far an agent is with its task, as the log has it.
fn state(turn: Option<&Turn>) -> AgentState {
    let asks = |turn: &Turn| turn.open.iter().any(|open| matches!(open.kind, OpenKind::Ask(_)));
    match turn {
        None => AgentState::Idle,
        Some(turn) if asks(turn) && turn.open.iter().all(|open| open.own || open.stage == Stage::Waiting) => {
            AgentState::WaitingForCollaboration
        }
        Some(turn) if turn.planning => AgentState::Planning,
        Some(_) => AgentState::ExecutingStep,
    }
}
