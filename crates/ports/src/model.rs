//! Models: a request goes out, deltas come back. "Whole" is the same stream, collected.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{Stream, StreamExt};
use polis_domain::{Digest, EffectClass, Finish, Reply, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::BoxError;

/// Thinks. Dropping the stream cancels the request on the wire.
#[async_trait]
pub trait Model: Send + Sync {
    /// Sends the request; the stream ends with [`Delta::Done`], or with an error.
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError>;
}

/// Deltas in order. A stream that ends without [`Delta::Done`] was cut.
pub type DeltaStream = Pin<Box<dyn Stream<Item = Result<Delta, ModelError>> + Send>>;

/// What a model is asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelRequest {
    /// `vendor/name`; empty for the default.
    pub model: Arc<str>,
    /// What the model is told about itself.
    pub system: Arc<str>,
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// The tools that it may ask for.
    pub tools: Arc<[ToolSpec]>,
    /// How freely it chooses its words.
    pub temperature: Option<f32>,
    /// Most tokens that it may write.
    pub max_tokens: Option<u32>,
}

/// One message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatMessage {
    /// Said to the model.
    User(Arc<str>),
    /// Said by the model.
    Assistant {
        /// The text.
        text: Arc<str>,
        /// The calls that it asked for with it.
        tool_calls: Vec<ToolCall>,
    },
    /// What came of one of those calls.
    Tool {
        /// The model's name for the call.
        call_id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// The result.
        content: Arc<str>,
    },
}

/// A tool as a model sees it, with its effect class for us.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// The name by which the model calls it.
    pub name: Arc<str>,
    /// What it does.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: Value,
    /// What repeating a call would mean.
    #[serde(default)]
    pub class: EffectClass,
}

/// One piece of a reply.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// More text.
    Content(String),
    /// More reasoning.
    Reasoning(String),
    /// More of a tool call: pieces with the same index belong together.
    ToolCall {
        /// Which of the reply's calls.
        index: u32,
        /// The model's name for the call, when this piece carries it.
        id: Option<Arc<str>>,
        /// The tool's name, when this piece carries it.
        name: Option<Arc<str>>,
        /// More of the arguments' JSON text.
        arguments: String,
    },
    /// What it cost so far; a later one replaces it.
    Usage(Usage),
    /// The reply is whole.
    Done(Finish),
}

/// Why a model did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Too many requests: wait.
    #[error("the provider asks us to slow down")]
    Throttled {
        /// How long, if it said so.
        retry_after: Option<Duration>,
    },
    /// The request itself is wrong: asking again would not help.
    #[error("the provider rejects the request: {reason}")]
    Rejected {
        /// What it said.
        reason: String,
    },
    /// The provider failed: asking again may help.
    #[error("the provider failed: {reason}")]
    Failed {
        /// What it said.
        reason: String,
    },
    /// The reply broke off or stood still: asking again may help.
    #[error("the reply broke off: {reason}")]
    Cut {
        /// How.
        reason: String,
    },
    /// Nothing answers there: asking again may help.
    #[error("the provider cannot be reached: {0}")]
    Unreachable(#[source] BoxError),
}

impl ModelError {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Throttled { .. } => "model_throttled",
            Self::Rejected { .. } => "model_rejected",
            Self::Failed { .. } => "model_failed",
            Self::Cut { .. } => "model_cut",
            Self::Unreachable(_) => "model_unreachable",
        }
    }
}

impl ModelRequest {
    /// Tells this request from any other.
    pub fn digest(&self) -> Digest {
        let numbers = format!("{:?} {:?}", self.temperature, self.max_tokens);
        let mut parts: Vec<&str> = vec![&self.model, &self.system, &numbers];
        for message in &self.messages {
            match message {
                ChatMessage::User(text) => parts.extend(["user", text]),
                ChatMessage::Assistant { text, tool_calls } => {
                    parts.extend(["assistant", text]);
                    for call in tool_calls {
                        parts.extend([&*call.id, &*call.name, &*call.arguments]);
                    }
                }
                ChatMessage::Tool { call_id, name, content } => parts.extend(["tool", call_id, name, content]),
            }
        }
        parts.extend(self.tools.iter().map(|tool| &*tool.name));
        Digest::of(parts)
    }
}

/// Puts deltas together to a whole reply.
#[derive(Debug, Default)]
pub struct Collector {
    reply: Reply,
    calls: BTreeMap<u32, (Arc<str>, Arc<str>, String)>,
    done: bool,
}

impl Collector {
    /// Takes one more piece.
    pub fn push(&mut self, delta: Delta) {
        match delta {
            Delta::Content(text) => append(&mut self.reply.text, text),
            Delta::Reasoning(text) => append(&mut self.reply.reasoning, text),
            Delta::ToolCall { index, id, name, arguments } => {
                let call = self.calls.entry(index).or_default();
                if let Some(id) = id {
                    call.0 = id;
                }
                if let Some(name) = name {
                    call.1 = name;
                }
                append(&mut call.2, arguments);
            }
            Delta::Usage(usage) => self.reply.usage = usage,
            Delta::Done(finish) => {
                self.reply.finish = finish;
                self.done = true;
            }
        }
    }

    /// The whole reply; an error if it never came to its end.
    pub fn finish(mut self) -> Result<Reply, ModelError> {
        if !self.done {
            return Err(ModelError::Cut { reason: "the stream ended before the reply did".to_owned() });
        }
        self.reply.tool_calls =
            self.calls.into_values().map(|(id, name, arguments)| ToolCall { id, name, arguments: arguments.into() }).collect();
        Ok(self.reply)
    }
}

fn append(text: &mut String, more: String) {
    if text.is_empty() {
        *text = more;
    } else {
        text.push_str(&more);
    }
}

/// Reads a stream to its end.
pub async fn collect(mut stream: DeltaStream) -> Result<Reply, ModelError> {
    let mut collector = Collector::default();
    while let Some(delta) = stream.next().await {
        collector.push(delta?);
    }
    collector.finish()
}
