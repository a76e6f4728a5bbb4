//! Tools that the client of a request brings along (as in the OpenAI API). A call of one is a question to the client, and the
//! answer is its result.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{CallResult, EffectClass, Question, Ruling, Task};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::Value;

use super::Turn;

/// A tool as the meta of a task describes it.
#[derive(Deserialize)]
struct ClientTool {
    name: Arc<str>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Value,
}

impl Turn {
    /// The tools that the client of this task brings along. They take precedence over our own of the same name.
    pub(super) fn client_tools(&self) -> Vec<ToolSpec> {
        client_tools(&self.task)
    }

    /// A list of tools with the client's added; the same `Arc` if there are none.
    pub(super) fn with_client_tools(&self, tools: Arc<[ToolSpec]>) -> Arc<[ToolSpec]> {
        let client_tools = self.client_tools();
        if client_tools.is_empty() {
            return tools;
        }
        let others = tools.iter().filter(|tool| client_tools.iter().all(|other| other.name != tool.name));
        others.cloned().chain(client_tools.iter().cloned()).collect()
    }
}

/// The ruling for a call of a client's tool: ask the client, and wait for a limited time because it may have disconnected.
pub(super) fn ruling(tool: &str, patience: Duration) -> Ruling {
    let question = format!("`{tool}` is a tool of whoever asks: call it, and say what came of it");
    let patience_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    Ruling::Person(Question::words(question, Vec::new()).within(patience_ms))
}

/// The result of a call that the client did not answer in time.
pub(super) fn unanswered(tool: &str) -> CallResult {
    let message = format!("the client that brought `{tool}` along did not say in time what came of it; go on without it");
    CallResult::failed(message)
}

fn client_tools(task: &Task) -> Vec<ToolSpec> {
    let tools = task.meta.get(Task::CLIENT_TOOLS).and_then(Value::as_array);
    let spec = |value: &Value| {
        let ClientTool { name, description, parameters } = ClientTool::deserialize(value).ok()?;
        // What the tool does is unknown, so no earlier result may answer a call: `volatile`.
        Some(ToolSpec { name, description, parameters, class: EffectClass::Read, volatile: true })
    };
    tools.into_iter().flatten().filter_map(spec).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_tool_is_left_out() {
        let task = Task::message("t".into(), "x");
        assert!(client_tools(&task).is_empty());
        let tools = json!([{ "name": "weather", "parameters": { "type": "object" } }, { "description": "nameless" }, 7]);
        let client_tools = client_tools(&task.with_meta(Task::CLIENT_TOOLS, tools));
        assert_eq!(client_tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["weather"]);
    }
}
