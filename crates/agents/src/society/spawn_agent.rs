//! `spawn_agent`: one more colleague.

use polis_domain::{AgentId, CallResult, EffectClass, Failure, RoleId};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{arguments, spec, to_call_result, with_names};

/// Makes agents.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpawnAgent;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    role_id: String,
    agent_id: Option<String>,
}

impl TurnTool for SpawnAgent {
    fn spec(&self) -> ToolSpec {
        let description = "Makes an agent of a role, below you. It does nothing until you write to it: give it work with \
                           request_collaboration. Look at list_agents first: one that is idle can be asked again. Send it away with \
                           terminate_agent when its work is done for good.";
        let properties = json!({
            "roleId": { "type": "string", "description": "The role, as list_roles or create_role named it" },
            "agentId": { "type": "string", "description": "Its name, which nobody else has or had; made up when left out" },
        });
        spec("spawn_agent", description, properties, &["roleId"], EffectClass::Idempotent)
    }

    fn is_deferred(&self) -> bool {
        true
    }

    async fn call(&self, turn: &mut Turn, given: &str) -> CallResult {
        to_call_result(spawn(turn, given).await)
    }
}

async fn spawn(turn: &mut Turn, given: &str) -> Result<Value, Failure> {
    let Arguments { role_id, agent_id } = arguments(given)?;
    let drawn = turn.new_id("agent");
    let tail = drawn.len().saturating_sub(6);
    let agent = agent_id.unwrap_or_else(|| format!("{role_id}-{}", &drawn[tail..]));
    let made = turn.spawn_agent(&AgentId::from(agent.as_str()), &RoleId::from(role_id.as_str())).await;
    match made {
        Ok(()) => Ok(json!({ "agentId": agent, "roleId": role_id, "parentAgentId": turn.agent().as_str() })),
        Err(failure) => Err(with_names(turn, failure).await),
    }
}
