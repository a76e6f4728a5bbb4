//! `forget`: erases a memory.

use polis_domain::{CallResult, EffectClass, Failure};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::society::{arguments, spec, to_call_result};

/// Erases memories.
#[derive(Debug, Clone, Copy, Default)]
pub struct Forget;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    memory_id: String,
}

impl TurnTool for Forget {
    fn spec(&self) -> ToolSpec {
        let description = "Erases a memory for good: because the person asks for it, or because it is wrong. To correct one, remember the \
                           right fact and forget the wrong one.";
        let properties = json!({ "memoryId": { "type": "string", "description": "As recall or remember named it" } });
        spec("forget", description, properties, &["memoryId"], EffectClass::Write)
    }

    fn is_deferred(&self) -> bool {
        true
    }

    async fn call(&self, turn: &mut Turn, given: &str) -> CallResult {
        to_call_result(forget(turn, given).await)
    }
}

async fn forget(turn: &mut Turn, given: &str) -> Result<Value, Failure> {
    let Arguments { memory_id } = arguments(given)?;
    turn.forget(memory_id.as_str().into()).await.map_err(|failure| match &*failure.code {
        "unknown_memory" => {
            let message = format!("there is no memory {memory_id} that you can see; recall shows them with their ids");
            Failure::new(failure.code, message)
        }
        _ => failure,
    })?;
    Ok(json!({ "erased": memory_id }))
}
