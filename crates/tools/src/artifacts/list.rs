//! `list_artifacts`: what the society has kept so far.

use std::fmt::Write;

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Flow};
use polis_ports::{CallContext, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::results::{arguments, good, on_one_line};

/// Most that are listed at once.
const MAX_LISTED: usize = 100;

/// Lists artifacts.
#[derive(Debug, Default)]
pub struct ListArtifacts;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    after: usize,
    limit: Option<usize>,
}

#[async_trait]
impl Tool for ListArtifacts {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "list_artifacts".into(),
            description: "Lists the artifacts that were made or sent so far, the oldest first: id, name, kind, bytes."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "after": { "type": "integer", "minimum": 0, "description": "Leaves out this many of the first ones" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_LISTED, "description": format!("How many; {MAX_LISTED} if left out") },
                },
            }),
            class: EffectClass::Read,
            volatile: true,
        }
    }

    fn is_deferred(&self) -> bool {
        true
    }

    fn flow(&self, _: &str) -> Flow {
        Flow { private: true, recalls_artifacts: true, ..Flow::default() }
    }

    async fn call(&self, text: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        let Arguments { after, limit } = arguments(text)?;
        let limit = limit.unwrap_or(MAX_LISTED).clamp(1, MAX_LISTED);
        let (listed, total) = context.artifacts.listing.list(after, limit).await;
        let mut lines = String::new();
        for entry in &listed {
            let artifact = &entry.artifact;
            let name = on_one_line(&artifact.name);
            let _ = writeln!(lines, "{} {name} ({}, {} bytes)", artifact.id, artifact.media_type, artifact.bytes);
        }
        let last = after + listed.len();
        let end = match listed.len() {
            0 => format!("[there are {total} artifacts]"),
            _ if last < total => format!("[these are {} to {last} of {total}; go on with after {last}]", after + 1),
            _ => format!("[these are {} to {last} of {total}]", after + 1),
        };
        Ok(good(lines + &end))
    }
}
