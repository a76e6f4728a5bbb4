//! `remember`: something for later conversations.

use polis_domain::{CallResult, EffectClass, Failure, Flow, MAX_MEMORY_BYTES, MemoryScopeKind, PersonId};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::tracked;
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
        let description = "Stores a fact for later conversations: a lasting preference, a decision, a name. Do this when the person asks \
                           for it, or when it will clearly be needed again. The person can see, change and erase it. No passwords or \
                           keys.";
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

    fn is_deferred(&self) -> bool {
        true
    }

    /// What a request has read outside may be repeated in what it remembers, and so in every later request that recalls it.
    fn flow(&self) -> Option<fn(&PersonId, &str) -> Flow> {
        Some(|person, given| {
            // All persons recall what the society remembers, so it counts for the memories of all of them.
            let is_shared = arguments::<Arguments>(given).is_ok_and(|given| given.scope == MemoryScopeKind::Society);
            Flow { stores: true, file: (!is_shared).then(|| tracked(person)), ..Flow::default() }
        })
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
