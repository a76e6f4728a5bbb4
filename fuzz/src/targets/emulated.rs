//! Models without tools, whose words are read as calls: the same however the words come, and a call has a name and whole arguments.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream;
use polis_domain::{EffectClass, Finish, Reply};
use polis_ports::{ChatMessage, Delta, DeltaStream, Model, ModelError, ModelRequest, ToolSpec, collect};
use polis_providers::EmulatedTools;
use serde_json::{Value, json};

use super::{CUTS, now, pieces, text};
use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "emulated",
    run,
    words: &[
        "{\"name\": \"read_file\"",
        ", \"parameters\": {",
        "\"arguments\":",
        "{\"answer\": \"",
        "\"}",
        "<think>",
        "</think>",
        "```json",
        "\\u4f60",
        "\\n",
        "\\ud83d",
        "}}",
        ",}",
        "\"tool\":",
    ],
};

struct Says(Vec<String>);

#[async_trait]
impl Model for Says {
    async fn stream(&self, _: ModelRequest) -> Result<DeltaStream, ModelError> {
        let deltas = self.0.clone().into_iter().map(|chunk| Ok(Delta::Content(chunk)));
        let deltas: Vec<_> = deltas.chain([Ok(Delta::Done(Finish::Stop))]).collect();
        Ok(Box::pin(stream::iter(deltas)))
    }
}

fn run(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let whole = read(vec![text]);
    for size in CUTS {
        assert_eq!(read(pieces(text, size)), whole, "in pieces of {size}: {text:?}");
    }
    if let Ok(reply) = whole {
        assert!(reply.tool_calls.len() <= 1);
        for call in &reply.tool_calls {
            assert!(!call.name.is_empty(), "{text:?}");
            let arguments: Result<Value, _> = serde_json::from_str(&call.arguments);
            assert!(arguments.is_ok_and(|arguments| arguments.is_object()), "{text:?} gives {}", call.arguments);
        }
    }
}

fn read(pieces: Vec<&str>) -> Result<Reply, String> {
    let tool = ToolSpec {
        name: "read_file".into(),
        description: String::new(),
        parameters: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
        class: EffectClass::Read,
        volatile: false,
    };
    let request = ModelRequest { messages: vec![ChatMessage::user("x")], tools: vec![tool].into(), ..ModelRequest::default() };
    let model = EmulatedTools::new(Arc::new(Says(pieces.into_iter().map(str::to_owned).collect())));
    now(async { collect(model.stream(request).await?).await }).map_err(|error| error.to_string())
}
