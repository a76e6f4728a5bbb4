//! `remember`: something for later conversations.

use polis_domain::{CallResult, EffectClass, Failure, MAX_MEMORY_BYTES, MemoryScopeKind};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::society::{arguments, spec, to_call_result};

/// Stores memories.
#[derive(Debug, Clone, Copy, Default)]
pub struct Remember;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    text: String,
    #[serde(default)]
    scope: MemoryScopeKind,
}

impl TurnTool for Remember {
    fn spec(&self) -> ToolSpec {
        let description = "Stores a fact for later conversations: a lasting preference, a decision, a name. Do this when the person                            asks for it, or when it will clearly be needed again. The person can see, change and erase it. Store no                            passwords or keys.";
        let properties = json!({
            "text": {
                "type": "string",
                "description": format!("One self-contained fact, with names instead of `he` or `this`; at most {MAX_MEMORY_BYTES} bytes"),
            },
            "scope": {
                "type": "string",
                "enum": ["person", "role", "society"],
                "description": "Who recalls it: all agents of this person (default), only agents of your role for this person, or all agents of everybody",
            },
        });
        spec("remember", description, properties, &["text"], EffectClass::Write)
    }

    async fn call(&self, turn: &mut Turn, given: &str) -> CallResult {
        to_call_result(remember(turn, given).await)
    }
}

async fn remember(turn: &mut Turn, given: &str) -> Result<Value, Failure> {
    let Arguments { text, scope } = arguments(given)?;
    let id = turn.remember(scope, text.trim()).await?;
    Ok(json!({ "memoryId": id, "scope": scope }))
}
