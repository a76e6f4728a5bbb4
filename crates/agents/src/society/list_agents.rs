//! `list_agents`: who is there.

use std::sync::Arc;

use polis_domain::{Agent, AgentId, CallResult, EffectClass, Failure, Role, Spine};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{arguments, spec, to_call_result};
use crate::conversation::{ContextLimits, ContextUsage};

/// Most agents of one list.
const MOST: usize = 100;

/// Lists agents.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListAgents;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    mine: bool,
    role_id: Option<String>,
}

impl TurnTool for ListAgents {
    fn spec(&self) -> ToolSpec {
        let description = "Lists the agents that are there: name, role, who made each, whether it is idle, and how full its conversation is. \
                           Look here before you make one more.";
        let properties = json!({
            "mine": { "type": "boolean", "description": "Only those that you made" },
            "roleId": { "type": "string", "description": "Only those of this role" },
        });
        spec("list_agents", description, properties, &[], EffectClass::Read)
    }

    fn is_deferred(&self) -> bool {
        true
    }

    async fn call(&self, turn: &mut Turn, given: &str) -> CallResult {
        to_call_result(list(turn, given).await)
    }
}

async fn list(turn: &mut Turn, given: &str) -> Result<Value, Failure> {
    let Arguments { mine, role_id } = arguments(given)?;
    let me = turn.agent().clone();
    let you = me.clone();
    let listed = turn.look(move |spine| {
        let wanted = |(id, agent): &(&AgentId, &Agent)| {
            let own = !mine || agent.parent.as_ref() == Some(&me);
            own && spine.can_reach(&me, id, None) && role_id.as_deref().is_none_or(|role| agent.role.as_str() == role)
        };
        let mut agents: Vec<_> = spine.agents.iter().filter(wanted).collect();
        agents.sort_by_key(|(id, agent)| (agent.created_at, *id));
        let count = agents.len();
        (agents.into_iter().take(MOST).map(|(id, agent)| agent_json(spine, id, agent)).collect::<Vec<_>>(), count)
    });
    let (agents, count) =
        listed.await.ok_or_else(|| Failure::new("unavailable", "the society cannot be looked at just now"))?;
    let own = usage(turn).await?;
    Ok(json!({ "you": you.as_str(), "yourContext": own, "agents": agents, "count": count }))
}

fn agent_json(spine: &Spine, id: &AgentId, agent: &Agent) -> Value {
    let status = match agent.turn.and_then(|turn| spine.turns.get(&turn)) {
        _ if agent.termination.is_some() => "leaving",
        None => "idle",
        Some(turn) if turn.is_parked() => "parked",
        Some(turn) if turn.is_owed() => "working",
        Some(_) => "waiting",
    };
    let role = spine.roles.get(&agent.role);
    json!({
        "id": id.as_str(),
        "roleId": agent.role.as_str(),
        "roleName": role.map(|role| &*role.name),
        "parentAgentId": agent.parent.as_ref().map(AgentId::as_str),
        "status": status,
        "contextMessages": crowd(spine, id, role),
        "waitingMessages": agent.inbox.as_ref().map_or(0, |inbox| inbox.entries.len()),
    })
}

/// How many messages of an agent's conversation the model is shown, and how many are wise.
fn crowd(spine: &Spine, id: &AgentId, role: Option<&Arc<Role>>) -> Value {
    let limits = ContextLimits::default().within(&role.map(|role| role.limits).unwrap_or_default());
    let agent_json = spine.threads.get(&id.main_thread()).map_or(0, |head| {
        let cuts = head.context.as_deref().map(|context| &context.cuts);
        head.messages.saturating_sub(cuts.and_then(|cuts| cuts.last()).map_or(0, |(_, from)| *from))
    });
    json!({ "now": agent_json, "most": limits.max_context_messages })
}

/// How full the conversation of the agent is that asks (D11).
async fn usage(turn: &mut Turn) -> Result<Value, Failure> {
    let limits = ContextLimits::default().within(&turn.role().map(|role| role.limits).unwrap_or_default());
    let context = turn.context(limits.max_context_messages.saturating_mul(4)).await?;
    let ContextUsage { current_count, max_count, tokens, window } = ContextUsage::of(&context, &limits, turn.window());
    Ok(
        json!({ "messages": current_count, "maxMessages": max_count, "tokens": tokens, "maxTokens": window.map(ContextUsage::most) }),
    )
}
