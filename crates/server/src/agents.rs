//! Who is there, and what each is at.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use polis_domain::{AgentId, Org, OrgRole, Refusal, RoleId, Spine, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::body::Json;
use crate::desk::Desk;
use crate::once::Once;
use crate::paging::Paging;
use crate::problem::Problem;
use crate::tasks::{AgentStatus, Standing};
use crate::wanted::{Name, Wanted};

/// Who is there, in the order in which they came.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Agents {
    agents: Vec<Agent>,
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
}

/// An agent.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Agent {
    id: AgentId,
    role_id: RoleId,
    role_name: Arc<str>,
    status: AgentStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_agent_id: Option<AgentId>,
    created_at: Timestamp,
    /// The request that it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<TaskId>,
    /// Letters that wait in its inbox.
    pending: usize,
    context: Context,
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
    State(desk): State<Desk>,
    Name(id): Name,
    once: Once,
    Json(wish): Json<Compress>,
) -> Result<axum::Json<Compressing>, Problem> {
    let agent = AgentId::from(id);
    let task_id = match wish.undo {
        true => {
            desk.society.restore_context(agent.main_thread()).await?;
            None
        }
        false => {
            let meta = Map::from_iter([("_ui_action".to_owned(), "compress".into())]);
            Some(once.send(&desk.society, agent, "[compress]", None, meta).await?.task_id)
        }
    };
    Ok(axum::Json(Compressing { ok: true, task_id }))
}

pub(crate) async fn agents(State(desk): State<Desk>, Wanted(paging): Wanted<Paging>) -> Result<axum::Json<Agents>, Problem> {
    // Within a millisecond the one that nobody made comes first.
    let cursor = |agent: &Agent| {
        let parent = agent.parent_agent_id.as_ref().map_or("", |parent| parent.as_str());
        format!("{:016}~{parent}~{}", agent.created_at.0, agent.id)
    };
    let mut agents = desk.society.look(list).await?;
    agents.sort_by_cached_key(cursor);
    let (agents, next) = paging.cut(agents, cursor);
    Ok(axum::Json(Agents { agents, next }))
}

pub(crate) async fn agent(State(desk): State<Desk>, Name(id): Name) -> Result<axum::Json<AgentDetail>, Problem> {
    let wanted = AgentId::from(id);
    let asked = wanted.clone();
    let found = desk.society.look(move |spine| detail(spine, &asked)).await?;
    found.map(axum::Json).ok_or_else(|| polis_engine::Rejected::from(Refusal::UnknownAgent(wanted)).into())
}

fn detail(spine: &Spine, id: &AgentId) -> Option<AgentDetail> {
    let known = spine.agents.get(id)?;
    let role = Org::of(spine).roles.into_iter().find(|role| role.role.id == known.role);
    let mut children: Vec<AgentId> =
        spine.agents.iter().filter(|(_, child)| child.parent.as_ref() == Some(id)).map(|(child, _)| child.clone()).collect();
    children.sort();
    let agent = describe(spine, id, known, worst(spine).get(id).copied());
    Some(AgentDetail { agent, role, children, leaving: known.leaving.is_some() })
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
fn worst(spine: &Spine) -> HashMap<&AgentId, Standing> {
    let mut standings = HashMap::<&AgentId, Standing>::new();
    for (id, turn) in &spine.turns {
        let standing = Standing::of(spine, *id, turn);
        standings.entry(&turn.agent).and_modify(|worst| *worst = standing.max(*worst)).or_insert(standing);
    }
    standings
}

fn list(spine: &Spine) -> Vec<Agent> {
    let standings = worst(spine);
    spine.agents.iter().map(|(id, agent)| describe(spine, id, agent, standings.get(id).copied())).collect()
}

fn describe(spine: &Spine, id: &AgentId, agent: &polis_domain::Agent, standing: Option<Standing>) -> Agent {
    Agent {
        id: id.clone(),
        role_id: agent.role.clone(),
        role_name: spine.roles.get(&agent.role).map_or_else(|| agent.role.as_str().into(), |role| role.name.clone()),
        status: standing.map_or(AgentStatus::Idle, Standing::of_agent),
        parent_agent_id: agent.parent.clone(),
        created_at: agent.created_at,
        task_id: agent.turn.and_then(|turn| spine.turns.get(&turn)).map(|turn| turn.task.clone()),
        pending: agent.inbox.as_ref().map_or(0, |inbox| inbox.entries.len()),
        context: Context::of(spine, id),
    }
}
