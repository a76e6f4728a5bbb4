//! The events of AG-UI 1.0, as they go over the wire. A field that is not set is left out: a null would be an error there.

use std::sync::Arc;

use polis_domain::{Timestamp, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version that we speak.
pub(crate) const VERSION: &str = "1.0";

/// One event, who below the main agent it comes from, and when it happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    #[serde(flatten)]
    pub(crate) body: Body,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subagent_run_id: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timestamp: Option<u64>,
}

/// The body of an event. The list is complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(crate) enum Body {
    RunStarted {
        thread_id: Arc<str>,
        run_id: Arc<str>,
        protocol_version: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_run_id: Option<String>,
    },
    RunFinished {
        thread_id: Arc<str>,
        run_id: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        outcome: Outcome,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    },
    RunError {
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    },
    StepStarted {
        step_name: Arc<str>,
    },
    StepFinished {
        step_name: Arc<str>,
    },
    TextMessageStart {
        message_id: Arc<str>,
        role: Role,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Arc<str>>,
    },
    TextMessageContent {
        message_id: Arc<str>,
        delta: String,
    },
    TextMessageEnd {
        message_id: Arc<str>,
    },
    TextMessageChunk {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
    },
    ToolCallStart {
        tool_call_id: Arc<str>,
        tool_call_name: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<Arc<str>>,
    },
    ToolCallArgs {
        tool_call_id: Arc<str>,
        delta: String,
    },
    ToolCallEnd {
        tool_call_id: Arc<str>,
    },
    ToolCallChunk {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_name: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
    },
    ToolCallResult {
        message_id: Arc<str>,
        tool_call_id: Arc<str>,
        content: String,
        role: Role,
    },
    ReasoningStart {
        message_id: Arc<str>,
    },
    ReasoningMessageStart {
        message_id: Arc<str>,
        role: Role,
    },
    ReasoningMessageContent {
        message_id: Arc<str>,
        delta: String,
    },
    ReasoningMessageEnd {
        message_id: Arc<str>,
    },
    ReasoningMessageChunk {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
    },
    ReasoningEnd {
        message_id: Arc<str>,
    },
    ReasoningEncryptedValue {
        subtype: String,
        entity_id: Arc<str>,
        encrypted_value: String,
    },
    StateSnapshot {
        snapshot: Value,
    },
    StateDelta {
        delta: Vec<Patch>,
    },
    MessagesSnapshot {
        messages: Vec<Message>,
    },
    ActivitySnapshot {
        message_id: Arc<str>,
        activity_type: Arc<str>,
        content: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replace: Option<bool>,
    },
    ActivityDelta {
        message_id: Arc<str>,
        activity_type: Arc<str>,
        patch: Vec<Patch>,
    },
    SubagentStarted {
        name: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<Arc<str>>,
    },
    SubagentFinished {
        outcome: SubagentOutcome,
    },
    SubagentError {
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    Raw {
        event: Value,
    },
    Custom {
        name: String,
        value: Value,
    },
}

/// How a run ended that did not fail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(crate) enum Outcome {
    Success {
        /// Calls of the client's own tools that wait for it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pending_tool_call_ids: Vec<Arc<str>>,
    },
    Interrupt {
        interrupts: Vec<Interrupt>,
    },
    Cancelled,
}

/// How a sub-agent's part ended that did not fail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(crate) enum SubagentOutcome {
    Success,
    Suspended {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interrupt_ids: Vec<String>,
    },
}

/// What waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Interrupt {
    pub(crate) id: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<Arc<str>>,
    pub(crate) response_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subagent_run_id: Option<Arc<str>>,
    pub(crate) metadata: Value,
}

/// One operation of RFC 6902.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(crate) enum Patch {
    Add { path: String, value: Value },
    Replace { path: String, value: Value },
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    User,
    Assistant,
    Tool,
    Reasoning,
}

/// A message of a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    pub(crate) id: Arc<str>,
    pub(crate) role: Role,
    pub(crate) content: String,
    /// Calls of an assistant's message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool_calls: Vec<ToolCall>,
    /// The call whose result a tool's message is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<Arc<str>>,
}

/// A call in a message of a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolCall {
    pub(crate) id: Arc<str>,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) function: Function,
}

/// What is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    pub(crate) arguments: String,
}

/// What one model has used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenUsage {
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub(crate) provider: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub(crate) model: Box<str>,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) total_tokens: u64,
    pub(crate) reasoning_tokens: u64,
    pub(crate) cached_input_tokens: u64,
    pub(crate) cache_write_input_tokens: u64,
}

impl Event {
    /// The event as clients from before version 1.0 take it: they know neither pending calls nor a cancelled outcome.
    pub(crate) fn before_version_1(mut self) -> Self {
        match self.body {
            Body::RunFinished { outcome: Outcome::Cancelled, usage, .. } => {
                let (message, code) = ("the request was cancelled".to_owned(), Some("cancelled".to_owned()));
                self.body = Body::RunError { message, code, usage };
            }
            Body::RunFinished { outcome: Outcome::Success { ref mut pending_tool_call_ids }, .. } => {
                pending_tool_call_ids.clear()
            }
            _ => {}
        }
        self
    }

    /// An event of the main agent, at no time in particular.
    pub(crate) fn new(body: Body) -> Self {
        Self { body, subagent_run_id: None, timestamp: None }
    }

    pub(crate) fn at(self, at: Timestamp) -> Self {
        Self { timestamp: Some(at.0), ..self }
    }
}

impl TokenUsage {
    /// What a model, named `vendor/name`, has used.
    pub(crate) fn new(model: &str, usage: Usage) -> Self {
        let (provider, name) = model.split_once('/').unwrap_or(("", model));
        Self {
            provider: provider.into(),
            model: name.into(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
            reasoning_tokens: usage.reasoning_tokens,
            cached_input_tokens: usage.cached_tokens,
            cache_write_input_tokens: usage.cache_write_tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_written_flat_and_without_nulls() {
        let started = Body::SubagentStarted {
            name: "planner".into(),
            description: None,
            parent_subagent_run_id: None,
            parent_tool_call_id: Some("call_1".into()),
        };
        let event = Event { subagent_run_id: Some("run_7".into()), ..Event::new(started).at(Timestamp(9)) };
        let want = json!({
            "type": "SUBAGENT_STARTED", "name": "planner", "parentToolCallId": "call_1", "subagentRunId": "run_7", "timestamp": 9
        });
        assert_eq!(serde_json::to_value(&event).unwrap(), want);
        assert_eq!(serde_json::from_value::<Event>(want).unwrap(), event);
        let finished = Event::new(Body::RunFinished {
            thread_id: "t".into(),
            run_id: "r".into(),
            result: None,
            outcome: Outcome::Success { pending_tool_call_ids: Vec::new() },
            usage: vec![TokenUsage::new("offline/rules", Usage { input_tokens: 3, output_tokens: 1, ..Usage::default() })],
        });
        let written = serde_json::to_value(&finished).unwrap();
        assert_eq!((&written["outcome"], &written["usage"][0]["totalTokens"]), (&json!({ "type": "success" }), &json!(4)));
        assert!(!written.to_string().contains("null"));
    }
}
