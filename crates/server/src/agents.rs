//! Who is there, and what each is at.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use polis_domain::{AgentId, DeadLetter, OpenKind, RoleId, Spine, Stage, TaskId, Timestamp, Turn};
use serde::{Deserialize, Serialize};

use crate::body::Json;
use crate::desk::Desk;
use crate::problem::Problem;
use crate::tasks::Standing;
use crate::wanted::Name;

#[derive(Serialize)]
pub(crate) struct Agents {
    agents: Vec<Agent>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Agent {
    id: AgentId,
    role_id: RoleId,
    role_name: Arc<str>,
    status: &'static str,
    /// What it is at with its task: `idle`, `planning`, `executing_step` or `waiting_for_collaboration`.
    state: &'static str,
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
#[derive(Serialize)]
struct Context {
    /// Messages in it.
    messages: u32,
    /// Of those, how many are shown to the model; summaries stand for the others.
    shown: u32,
    /// How many compressions hold.
    compressions: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compress {
    /// Whether the last compression is undone instead.
    #[serde(default)]
    undo: bool,
}

/// The task that compresses; none where one was undone.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Compressing {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<TaskId>,
}

pub(crate) async fn compress(
    State(desk): State<Desk>,
    Name(id): Name,
    Json(wish): Json<Compress>,
) -> Result<axum::Json<Compressing>, Problem> {
    let agent = AgentId::from(id);
    let task_id = match wish.undo {
        true => {
            desk.society.restore_context(agent.main_thread()).await?;
            None
        }
        false => Some(desk.society.compress(agent).await?.task_id),
    };
    Ok(axum::Json(Compressing { ok: true, task_id }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeadLetters {
    dead_letters: Vec<DeadLetter>,
}

/// What was set aside because it broke agents down, newest first.
pub(crate) async fn dead_letters(State(desk): State<Desk>) -> Result<axum::Json<DeadLetters>, Problem> {
    let dead_letters = desk.society.look(|spine| spine.dead_letters.iter().rev().cloned().collect()).await?;
    Ok(axum::Json(DeadLetters { dead_letters }))
}

pub(crate) async fn agents(State(desk): State<Desk>) -> Result<axum::Json<Agents>, Problem> {
    let mut agents = desk.society.look(list).await?;
    // Within a millisecond the one that nobody made comes first.
    agents.sort_by(|a, b| (a.created_at, &a.parent_agent_id, &a.id).cmp(&(b.created_at, &b.parent_agent_id, &b.id)));
    Ok(axum::Json(Agents { agents }))
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

fn list(spine: &Spine) -> Vec<Agent> {
    let mut standings = HashMap::<&AgentId, Standing>::new();
    for (id, turn) in &spine.turns {
        let standing = Standing::of(spine, *id, turn);
        standings.entry(&turn.agent).and_modify(|worst| *worst = standing.max(*worst)).or_insert(standing);
    }
    let agent = |(id, agent): (&AgentId, &polis_domain::Agent)| Agent {
        id: id.clone(),
        role_id: agent.role.clone(),
        role_name: spine.roles.get(&agent.role).map_or_else(|| agent.role.as_str().into(), |role| role.name.clone()),
        status: standings.get(id).map_or("idle", |standing| standing.of_agent()),
        state: state(agent.turn.and_then(|turn| spine.turns.get(&turn))),
        parent_agent_id: agent.parent.clone(),
        created_at: agent.created_at,
        task_id: agent.turn.and_then(|turn| spine.turns.get(&turn)).map(|turn| turn.task.clone()),
        pending: agent.inbox.as_ref().map_or(0, |inbox| inbox.entries.len()),
        context: Context::of(spine, id),
    };
    spine.agents.iter().map(agent).collect()
}

/// How far an agent is with its task, as the log has it.
fn state(turn: Option<&Turn>) -> &'static str {
    let asks = |turn: &Turn| turn.open.iter().any(|open| matches!(open.kind, OpenKind::Ask(_)));
    match turn {
        None => "idle",
        Some(turn) if asks(turn) && turn.open.iter().all(|open| open.own || open.stage == Stage::Waiting) => {
            "waiting_for_collaboration"
        }
        Some(turn) if turn.planning => "planning",
        Some(_) => "executing_step",
    }
}
