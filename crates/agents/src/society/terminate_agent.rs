//! `terminate_agent`: sends away an agent that one has made (R175-R182, D12).

use std::time::Duration;

use polis_domain::{CallResult, Children, EffectClass, Failure};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{arguments, spec, to_call_result, with_names};

/// How long an agent may work off what waits for it, in seconds: where nothing is said, and at most.
const USUAL: u64 = 60;
const LONGEST: u64 = 3_600;

/// Sends agents away.
#[derive(Debug, Clone, Copy, Default)]
pub struct TerminateAgent;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    agent_id: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    children: Children,
    patience_seconds: Option<u64>,
}

impl TurnTool for TerminateAgent {
    fn spec(&self) -> ToolSpec {
        let description =
            "Terminates an agent that you made. It first does what waits for it. Only the agent that made it may do this.";
        let properties = json!({
            "agentId": { "type": "string", "description": "Its name, or the role that only one agent has" },
            "reason": { "type": "string", "description": "Why, for the record" },
            "children": {
                "type": "string",
                "enum": ["cascade", "detach", "refuse"],
                "description": "What becomes of the agents that it made: they go first (cascade, the usual), become yours (detach), \
                                or keep it from going (refuse)",
            },
            "patienceSeconds": {
                "type": "integer",
                "minimum": 1,
                "maximum": LONGEST,
                "description": format!("How long it may work off what waits for it; {USUAL} when left out. Then it goes anyway"),
            },
        });
        spec("terminate_agent", description, properties, &["agentId"], EffectClass::Idempotent)
    }

    fn is_deferred(&self) -> bool {
        true
    }

    async fn call(&self, turn: &mut Turn, given: &str) -> CallResult {
        to_call_result(terminate(turn, given).await)
    }
}

async fn terminate(turn: &mut Turn, given: &str) -> Result<Value, Failure> {
    let Arguments { agent_id, reason, children, patience_seconds } = arguments(given)?;
    let patience = Duration::from_secs(patience_seconds.unwrap_or(USUAL).clamp(1, LONGEST));
    let agent = turn.addressee(&agent_id).await;
    match turn.terminate(&agent, children, &reason, patience).await {
        Ok(()) => Ok(json!({ "terminatedAgentId": agent.as_str() })),
        Err(failure) => Err(with_names(turn, failure).await),
    }
}
