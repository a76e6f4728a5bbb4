//! Reading agents from the spine, and what a person has them do.

use std::collections::{HashMap, HashSet};

use polis_domain::{AgentId, Behaviour, OpenKind, Org, OrgStatus, Refusal, Spine, Stage, Turn, Visibility};
use polis_engine::{CommandError, Operation, Sent};
use serde_json::{Map, Value};

use super::{Local, TurnActivity};
use crate::{
    Accepted, Agent, AgentActivity, AgentContext, AgentDetail, AgentOperation, AgentState, Agents, ApiError, Compress,
    Compressing, DeadLetters, Operate, Paging, Scope,
};

/// The meta key of a task with the operation that it is, by its label.
const OPERATION: &str = "_operation";

impl Local {
    /// The agents, in the order in which they were spawned.
    pub async fn agents(&self, paging: &Paging) -> Result<Agents, ApiError> {
        self.caller.needs(Scope::Read)?;
        // Within a millisecond the one without a parent comes first.
        let cursor = |agent: &Agent| {
            let parent = agent.parent_agent_id.as_ref().map_or("", |parent| parent.as_str());
            format!("{:016}~{parent}~{}", agent.created_at.0, agent.id)
        };
        let visibility = self.society.visibility().clone();
        let mut agents = self.society.look(move |spine| list(spine, &visibility)).await?;
        agents.sort_by_cached_key(cursor);
        let (agents, next) = paging.cut(agents, cursor);
        Ok(Agents { agents, next })
    }

    /// One agent, with its role, its children and its operations.
    pub async fn agent(&self, id: &AgentId) -> Result<AgentDetail, ApiError> {
        self.caller.needs(Scope::Read)?;
        let (agent_id, visibility) = (id.clone(), self.society.visibility().clone());
        let find = move |spine: &Spine| {
            let detail = detail(spine, &agent_id).filter(|_| visibility.agent(spine, &agent_id))?;
            Some((detail, behaviour(spine, &agent_id)))
        };
        let found = self.society.look(find).await?;
        let (mut detail, behaviour) = found.ok_or_else(|| CommandError::from(Refusal::UnknownAgent(id.clone())))?;
        let offered = behaviour.iter().flat_map(|behaviour| self.society.operations(behaviour));
        detail.operations = offered.map(AgentOperation::from).collect();
        Ok(detail)
    }

    /// Has an agent compress its conversation, or undoes the last compression.
    pub async fn compress(&self, id: AgentId, request: Compress) -> Result<Compressing, ApiError> {
        self.caller.needs(Scope::Send)?;
        let agent = self.society.addressee(id).await?;
        let task_id = if request.undo {
            self.society.restore_context(agent.main_thread()).await?;
            None
        } else {
            Some(self.society.compress(agent).await?.task_id)
        };
        Ok(Compressing { ok: true, task_id })
    }

    /// Sends an agent the message of one of its operations. The meta comes from the agent, not from the caller (R034).
    pub async fn operate(&self, id: AgentId, request: Operate) -> Result<Accepted, ApiError> {
        self.caller.needs(Scope::Send)?;
        // Whom a role's name means may have changed since.
        if let Some(sent) = self.society.done_before().await?.and_then(|events| Sent::of(&events)) {
            return Ok(sent.into());
        }
        self.check_named_task(request.task_id.as_ref()).await?;
        let agent = self.society.addressee(id).await?;
        let (agent_id, visibility) = (agent.clone(), self.society.visibility().clone());
        let find = move |spine: &Spine| behaviour(spine, &agent_id).filter(|_| visibility.agent(spine, &agent_id));
        let behaviour = self.society.look(find).await?;
        let behaviour = behaviour.ok_or_else(|| CommandError::from(Refusal::UnknownAgent(agent.clone())))?;
        let offered = self.society.operations(&behaviour);
        let operation = offered.iter().find(|operation| *operation.name == *request.operation).ok_or_else(|| {
            let names: Vec<&str> = offered.iter().map(|operation| &*operation.name).collect();
            let detail = match names.is_empty() {
                true => format!("{agent} offers no operations; send a message with /api/send"),
                false => format!("{agent} offers: {}", names.join(", ")),
            };
            ApiError::new(404, "unknown_operation", detail)
        })?;
        let words = operation.translations.get(&*request.language);
        let (label, message) = words.map_or((&operation.label, &operation.message), |words| (&words.label, &words.message));
        let mut meta: Map<String, Value> = operation.meta.clone();
        meta.insert(OPERATION.to_owned(), Value::from(&**label));
        Ok(self.society.send_with_meta(agent, message, request.task_id, meta).await?.into())
    }

    /// The dead-lettered messages, newest first.
    pub async fn dead_letters(&self) -> Result<DeadLetters, ApiError> {
        self.caller.needs(Scope::Read)?;
        let visibility = self.society.visibility().clone();
        let list = move |spine: &Spine| {
            let visible = spine.dead_letters.iter().rev().filter(|letter| visibility.agent(spine, &letter.agent));
            visible.cloned().collect()
        };
        let dead_letters = self.society.look(list).await?;
        Ok(DeadLetters { dead_letters })
    }
}

impl From<&Operation> for AgentOperation {
    fn from(operation: &Operation) -> Self {
        let Operation { name, label, message, meta, translations } = operation.clone();
        let labels = translations.into_iter().map(|(language, words)| (language, words.label)).collect();
        Self { name, label, message, meta, labels }
    }
}

fn activity(standing: TurnActivity) -> AgentActivity {
    match standing {
        TurnActivity::Waiting | TurnActivity::Asking => AgentActivity::Waiting,
        TurnActivity::Running => AgentActivity::Running,
        TurnActivity::Parked => AgentActivity::Parked,
    }
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
    let agent = describe(spine, id, known, most_urgent(spine).get(id).copied());
    Some(AgentDetail { agent, role, children, leaving: known.termination.is_some(), operations: Vec::new() })
}

fn context(spine: &Spine, agent: &AgentId) -> AgentContext {
    let head = spine.threads.get(&agent.main_thread());
    let messages = head.map_or(0, |head| head.messages);
    let cuts = head.and_then(|head| head.context.as_ref()).map(|context| &context.cuts[..]).unwrap_or_default();
    let from = cuts.last().map_or(0, |(_, from)| *from);
    AgentContext { messages, shown: messages.saturating_sub(from), compressions: cuts.len() }
}

/// The most urgent standing of each agent that has turns.
fn most_urgent(spine: &Spine) -> HashMap<&AgentId, TurnActivity> {
    let mut standings = HashMap::<&AgentId, TurnActivity>::new();
    for (id, turn) in &spine.turns {
        let standing = TurnActivity::of(spine, *id, turn);
        standings.entry(&turn.agent).and_modify(|most_urgent| *most_urgent = standing.max(*most_urgent)).or_insert(standing);
    }
    standings
}

/// What an agent is doing.
pub(super) fn status_of(spine: &Spine, id: &AgentId) -> AgentActivity {
    let turn = spine.agents.get(id).and_then(|agent| Some((agent.turn?, spine.turns.get(&agent.turn?)?)));
    turn.map_or(AgentActivity::Idle, |(id, turn)| activity(TurnActivity::of(spine, id, turn)))
}

/// The agents that are listed among the agents: those of conversations, other than root, only while they work or have agents
/// below them. The others are listed as conversations.
pub(super) fn listed_agents(spine: &Spine) -> impl Iterator<Item = (&AgentId, &polis_domain::Agent)> {
    let parents: HashSet<&AgentId> = spine.agents.values().filter_map(|agent| agent.parent.as_ref()).collect();
    let is_listed = move |id: &AgentId, agent: &polis_domain::Agent| {
        agent.conversation.is_none() || agent.turn.is_some() || *id == AgentId::root() || parents.contains(id)
    };
    spine.agents.iter().filter(move |(id, agent)| is_listed(id, agent))
}

fn list(spine: &Spine, visibility: &Visibility) -> Vec<Agent> {
    let standings = most_urgent(spine);
    let visible = listed_agents(spine).filter(|(id, _)| visibility.agent(spine, id));
    visible.map(|(id, agent)| describe(spine, id, agent, standings.get(id).copied())).collect()
}

fn describe(spine: &Spine, id: &AgentId, agent: &polis_domain::Agent, standing: Option<TurnActivity>) -> Agent {
    Agent {
        id: id.clone(),
        role_id: agent.role.clone(),
        role_name: spine.roles.get(&agent.role).map_or_else(|| agent.role.as_str().into(), |role| role.name.clone()),
        state: state(agent.turn.and_then(|turn| spine.turns.get(&turn).map(|turn| &**turn))),
        status: OrgStatus::Active,
        activity: standing.map_or(AgentActivity::Idle, activity),
        parent_agent_id: agent.parent.clone(),
        created_at: agent.created_at,
        task_id: agent.turn.and_then(|turn| spine.turns.get(&turn)).map(|turn| turn.task.clone()),
        pending: agent.inbox.as_ref().map_or(0, |inbox| inbox.entries.len()),
        context: context(spine, id),
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
