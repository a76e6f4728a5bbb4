//! `compress_context`: an agent puts a summary of its own in place of what it no longer needs to see (R183-R187, D10).

use polis_domain::{CallResult, EffectClass, Failure};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{arguments, spec, to_call_result};
use crate::ContextLimits;

/// Compresses the conversation of whoever calls it.
#[derive(Debug, Clone, Copy, Default)]
pub struct CompressContext;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    summary: String,
    keep_recent_count: Option<f64>,
}

impl TurnTool for CompressContext {
    fn spec(&self) -> ToolSpec {
        let usual = ContextLimits::default().keep_recent_count;
        let description = "Puts your summary in place of the older messages of this conversation and of an earlier summary. The newest \
                           messages stay. What is not in the summary you will not see again: keep open tasks, decisions, names, \
                           numbers, paths and the state of files.";
        let properties = json!({
            "summary": { "type": "string", "description": "What stands for the older messages; it must be shorter than they are" },
            "keepRecentCount": {
                "type": "number",
                "minimum": 0,
                "description": format!("How many of the newest messages stay as they are; {usual} when left out"),
            },
        });
        spec("compress_context", description, properties, &["summary"], EffectClass::Idempotent)
    }

    fn is_deferred(&self) -> bool {
        true
    }

    async fn call(&self, turn: &mut Turn, given: &str) -> CallResult {
        to_call_result(compress(turn, given).await)
    }
}

async fn compress(turn: &mut Turn, given: &str) -> Result<Value, Failure> {
    let Arguments { summary, keep_recent_count } = arguments(given)?;
    let keep = match keep_recent_count {
        None => ContextLimits::default().keep_recent_count,
        Some(count) if count >= 0.0 && count.fract() == 0.0 => count as usize,
        Some(_) => return Err(Failure::new("bad_arguments", "keepRecentCount is a whole number from 0 on")),
    };
    let compressed = turn.compress_context(&summary, keep).await?;
    let note = if compressed == 0 { "there are no more messages than are to be kept; nothing has changed" } else { "done" };
    Ok(json!({ "compressedCount": compressed, "note": note }))
}
