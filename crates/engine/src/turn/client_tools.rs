//! Tools that the client of a request brings along (as in the OpenAI API), and what it prescribes for the answer. A call of such
//! a tool is a question to the client, and the answer is its result. With the result the client says anew what it prescribes.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{AnswerRules, CallResult, EffectClass, Question, Ruling, Task, ToolCall, Verdict};
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
    /// What the client prescribes for the answer at present.
    pub fn answer_rules(&self) -> Option<&Arc<AnswerRules>> {
        self.rules.as_ref()
    }

    /// Whether the client wants no answer any more: it demanded a call of its tool, got it and sent no result, or it has gone on
    /// to another message. Nobody reads what the turn says after that.
    pub fn is_left_by_client(&self) -> bool {
        self.is_left
    }

    /// Whether a tool of this name is the client's, be it allowed at present or not.
    pub fn is_client_tool(&self, name: &str) -> bool {
        client_tools(&self.task).iter().any(|tool| *tool.name == *name)
    }

    /// The tools that the client of this task brings along and allows. They take precedence over our own of the same name.
    pub(super) fn client_tools(&self) -> Vec<ToolSpec> {
        let mut tools = client_tools(&self.task);
        if let Some(rules) = &self.rules {
            tools.retain(|tool| rules.allow(&tool.name));
        }
        tools
    }

    /// Takes what the client prescribes from now on. A client that said nothing, because it did not answer in time, prescribes
    /// nothing any more.
    pub(super) fn take_rules(&mut self, answered: Option<&Verdict>) {
        let had_to_call = self.rules.as_ref().is_some_and(|rules| rules.must_call);
        self.rules = answered.and_then(|verdict| verdict.rules.clone());
        self.is_left = match answered {
            Some(_) => self.rules.as_ref().is_some_and(|rules| rules.no_answer),
            None => had_to_call,
        };
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
    let question = format!("`{tool}` is a tool of the client: run it there and send its result");
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
    let is_reserved = |tool: &ToolSpec| ToolCall::RESERVED.contains(&&*tool.name);
    tools.into_iter().flatten().filter_map(spec).filter(|tool| !is_reserved(tool)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_tool_is_left_out() {
        let task = Task::message("t".into(), "x");
        assert!(client_tools(&task).is_empty());
        let tools = json!([{ "name": "weather", "parameters": { "type": "object" } }, { "description": "nameless" }, { "name": "use_tool" }, 7]);
        let client_tools = client_tools(&task.with_meta(Task::CLIENT_TOOLS, tools));
        assert_eq!(client_tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["weather"]);
    }
}
