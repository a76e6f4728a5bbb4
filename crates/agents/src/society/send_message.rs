//! `send_message`: says something to another agent or to the person, and goes on.

use polis_domain::{CallResult, EffectClass, Failure};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{arguments, spec, to_call_result, with_names};

/// Writes messages that nobody answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SendMessage;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    to: String,
    text: String,
}

impl TurnTool for SendMessage {
    fn spec(&self) -> ToolSpec {
        let description = "Tells another agent something, or the person with to = user, and goes on without an answer. When you need \
                           what comes of it, use request_collaboration. Your final answer reaches an agent that waits for it by itself: do not send it.";
        let properties = json!({
            "to": { "type": "string", "description": "An agent's name, the role that only one agent has, or user" },
            "text": { "type": "string", "description": "All that the receiver needs to know; it has not seen your conversation" },
        });
        spec("send_message", description, properties, &["to", "text"], EffectClass::Idempotent)
    }

    fn is_deferred(&self) -> bool {
        true
    }

    async fn call(&self, turn: &mut Turn, given: &str) -> CallResult {
        to_call_result(send(turn, given).await)
    }
}

async fn send(turn: &mut Turn, given: &str) -> Result<Value, Failure> {
    let Arguments { to, text } = arguments(given)?;
    let to = turn.addressee(&to).await;
    match turn.send(&to, &text).await {
        Ok(id) => Ok(json!({ "messageId": id.as_str(), "to": to.as_str() })),
        Err(failure) => Err(with_names(turn, failure).await),
    }
}
