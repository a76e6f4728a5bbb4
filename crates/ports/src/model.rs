//! Models: a request goes out, deltas come back. "Whole" is the same stream, collected.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{Stream, StreamExt};
use polis_domain::{CallResult, Digest, Digesting, EffectClass, Failure, Finish, Reply, Text, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::BoxError;

/// Thinks. Dropping the stream cancels the request on the wire.
#[async_trait]
pub trait Model: Send + Sync {
    /// Sends the request; the stream ends with [`Delta::Done`], or with an error.
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError>;

    /// The most that a request can cost, guessed before it is sent. What cannot be priced costs nothing.
    fn estimate(&self, request: &ModelRequest) -> Usage {
        request.estimate()
    }

    /// The whole name of the model that a request with this name goes to, as `vendor/name`.
    fn name(&self, model: &str) -> Arc<str> {
        model.into()
    }

    /// Why a model of this name cannot be, and what to write; nothing where it may be one.
    fn refuses(&self, _model: &str) -> Option<String> {
        None
    }

    /// Tokens that a model can see at once, if that is known.
    fn window(&self, _model: &str) -> Option<u64> {
        None
    }
}

/// Deltas in order. A stream that ends without [`Delta::Done`] was cut.
pub type DeltaStream = Pin<Box<dyn Stream<Item = Result<Delta, ModelError>> + Send>>;

/// What a model is asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelRequest {
    /// `vendor/name`; empty for the default.
    pub model: Arc<str>,
    /// What the model is told about itself.
    pub system: Text,
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// The tools that it may ask for.
    pub tools: Arc<[ToolSpec]>,
    /// How freely it chooses its words.
    pub temperature: Option<f32>,
    /// Most tokens that it may write.
    pub max_tokens: Option<u32>,
    /// The shape that the text of the reply must have.
    pub format: Option<Arc<Format>>,
    /// How long it thinks before it speaks, where the vendor lets us choose.
    pub effort: Option<Effort>,
    /// Who asks, so that those who share a vendor's limit take turns. It is not sent.
    pub asker: Arc<str>,
    /// Whether the reply is for the turn alone, such as notes or a judgement: nobody is told it as words of the agent. It is
    /// not sent.
    pub aside: bool,
}

/// One thing said to the model, and nothing else.
impl From<&str> for ModelRequest {
    fn from(prompt: &str) -> Self {
        Self { messages: vec![ChatMessage::user(prompt)], ..Self::default() }
    }
}

/// One thing said to the model, and nothing else.
impl From<String> for ModelRequest {
    fn from(prompt: String) -> Self {
        Self::from(prompt.as_str())
    }
}

/// One thing said to the model, and nothing else: a task's message, for example.
impl From<Arc<str>> for ModelRequest {
    fn from(prompt: Arc<str>) -> Self {
        Self::from(&*prompt)
    }
}

/// One message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ChatMessage {
    /// Said to the model.
    User {
        /// The text.
        text: Arc<str>,
        /// What it is shown with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// Said by the model.
    Assistant {
        /// The text.
        text: Arc<str>,
        /// What it thought before, if the vendor shows it.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        reasoning: Arc<str>,
        /// The calls that it asked for with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
        /// What its vendor wants back word for word, see [`Reply::echo`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        echo: Option<Arc<Value>>,
    },
    /// What came of one of those calls.
    Tool {
        /// The model's name for the call.
        call_id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// The result.
        content: Arc<str>,
        /// Whether it tells of a failure.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// A picture for a model to look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Image {
    /// The picture itself.
    Inline {
        /// Such as `image/png`.
        media_type: Arc<str>,
        /// The bytes in base64.
        data: Arc<str>,
    },
    /// Where the vendor can fetch it.
    Url(Arc<str>),
}

/// The shape of a reply that programs read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Format {
    /// A name for the shape: letters, digits, `_` and `-`.
    pub name: String,
    /// JSON schema of the text.
    pub schema: Value,
}

/// How long a model thinks before it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// As little as it can.
    Low,
    /// Some.
    Medium,
    /// As much as it needs.
    High,
}

impl ChatMessage {
    /// Text said to the model.
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self::User { text: text.into(), images: Vec::new() }
    }

    /// Text said by the model.
    pub fn assistant(text: impl Into<Arc<str>>) -> Self {
        Self::Assistant { text: text.into(), reasoning: Arc::default(), tool_calls: Vec::new(), echo: None }
    }

    /// A reply as the model is to see it again.
    pub fn said(reply: &Reply) -> Self {
        Self::Assistant {
            text: shared(&reply.text),
            reasoning: shared(&reply.reasoning),
            tool_calls: reply.tool_calls.clone(),
            echo: reply.echo.clone(),
        }
    }

    /// What came of a call, as the model is to see it.
    pub fn result(call: &ToolCall, result: &CallResult) -> Self {
        let (call_id, name) = (call.id.clone(), call.name.clone());
        Self::Tool { call_id, name, content: result.for_model(), is_error: result.is_error }
    }
}

/// A text to share; an empty one takes no room.
fn shared(text: &str) -> Arc<str> {
    if text.is_empty() { Arc::default() } else { text.into() }
}

/// A tool as a model sees it, with its effect class for us.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Whether the same call may give another result although nothing was written: no earlier result answers it (D20).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
}

impl ToolSpec {
    /// Whether only code calls a tool of this name: it begins with `_`, and no model is shown it.
    pub fn is_for_code(name: &str) -> bool {
        name.starts_with('_')
    }
}

/// One chunk of a reply.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// More text.
    Content(String),
    /// More reasoning.
    Reasoning(String),
    /// More of a tool call: chunks with the same index belong together.
    ToolCall {
        /// Which of the reply's calls.
        index: u32,
        /// The model's name for the call, when this chunk carries it.
        id: Option<Arc<str>>,
        /// The tool's name, when this chunk carries it.
        name: Option<Arc<str>>,
        /// More of the arguments' JSON text.
        arguments: String,
    },
    /// What it cost so far; a later one replaces it.
    Usage(Usage),
    /// Something that the vendor wants back word for word with this reply, see [`Reply::echo`]; a later one replaces it.
    Echo(Arc<Value>),
    /// The model that answers, as `vendor/name`.
    Model(Arc<str>),
    /// The reply is whole.
    Done(Finish),
    /// Nobody waits for the rest any more. Watchers are told so; no vendor sends it.
    Stopped,
    /// The reply came to nothing. Watchers are told so; a vendor's stream ends with a [`ModelError`] instead.
    Error(Failure),
}

/// Why a model did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Too many requests: wait.
    #[error("the provider asks us to slow down: {reason}")]
    Throttled {
        /// What it said.
        reason: String,
        /// How long, if it said so.
        retry_after: Option<Duration>,
    },
    /// The request itself is wrong: asking again would not help.
    #[error("the provider rejects the request: {reason}")]
    Rejected {
        /// What it said.
        reason: String,
    },
    /// The provider refuses the form of the request and the next attempt takes another one: ask again at once.
    #[error("the provider refuses this form of the request, and the next attempt takes another: {reason}")]
    Adapted {
        /// What it said.
        reason: String,
    },
    /// The provider failed: asking again may help.
    #[error("the provider failed: {reason}")]
    Failed {
        /// What it said.
        reason: String,
        /// How long to wait, if it said so.
        retry_after: Option<Duration>,
    },
    /// The provider failed so often that it is left alone for a while.
    #[error("{vendor} has failed {failures} times in a row and is left alone for another {} s", retry_after.as_secs_f32().ceil())]
    Resting {
        /// The vendor.
        vendor: Arc<str>,
        /// How often.
        failures: u32,
        /// How long still.
        retry_after: Duration,
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
            Self::Adapted { .. } => "model_adapted",
            Self::Failed { .. } => "model_failed",
            Self::Resting { .. } => "model_resting",
            Self::Cut { .. } => "model_cut",
            Self::Unreachable(_) => "model_unreachable",
        }
    }

    /// Whether asking the same model again may help (D09).
    pub fn is_passing(&self) -> bool {
        !matches!(self, Self::Rejected { .. })
    }

    /// How long the provider wants us to wait, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { retry_after, .. } | Self::Failed { retry_after, .. } => *retry_after,
            Self::Resting { retry_after, .. } => Some(*retry_after),
            Self::Rejected { .. } | Self::Adapted { .. } | Self::Cut { .. } | Self::Unreachable(_) => None,
        }
    }
}

impl ModelRequest {
    /// Tells what is asked from anything else. The tools are left out: they are what the node has, not what the log says.
    pub fn digest(&self) -> Digest {
        let numbers = match (self.temperature, self.max_tokens, self.effort) {
            // What most ask.
            (None, None, None) => Cow::Borrowed("None None None"),
            (temperature, max_tokens, effort) => Cow::Owned(format!("{temperature:?} {max_tokens:?} {effort:?}")),
        };
        let mut digesting = Digesting::default();
        digesting.part(&self.model);
        digesting.text(&self.system);
        digesting.part(&numbers);
        if let Some(format) = &self.format {
            digesting.part(&format.schema.to_string());
        }
        for message in &self.messages {
            match message {
                ChatMessage::User { text, images } => {
                    digesting.parts(["user", text]);
                    digesting.parts(images.iter().map(|image| match image {
                        Image::Inline { data, .. } => &**data,
                        Image::Url(url) => url,
                    }));
                }
                ChatMessage::Assistant { text, tool_calls, .. } => {
                    digesting.parts(["assistant", text]);
                    for call in tool_calls {
                        digesting.parts([&*call.id, &*call.name, &*call.arguments]);
                    }
                }
                ChatMessage::Tool { call_id, name, content, is_error } => {
                    digesting.parts([if *is_error { "error" } else { "tool" }, call_id, name, content]);
                }
            }
        }
        digesting.digest()
    }

    /// The most tokens that it can take, guessed: what is sent, and all that the model may write.
    pub fn estimate(&self) -> Usage {
        let said = self.messages.iter().map(|message| match message {
            ChatMessage::User { text, images } => estimate_tokens(text) + images.len() as u64 * IMAGE_TOKENS,
            ChatMessage::Assistant { text, reasoning, tool_calls, .. } => {
                let calls = tool_calls.iter().map(|call| estimate_tokens(&call.name) + estimate_tokens(&call.arguments));
                estimate_tokens(text) + estimate_tokens(reasoning) + calls.sum::<u64>()
            }
            ChatMessage::Tool { content, .. } => estimate_tokens(content),
        });
        let tools = self.tools.iter().map(|tool| {
            estimate_tokens(&tool.name) + estimate_tokens(&tool.description) + estimate_json_tokens(&tool.parameters)
        });
        let framing = MESSAGE_TOKENS * (self.messages.len() + self.tools.len() + 1) as u64;
        let input_tokens = estimate_tokens(&self.system) + said.sum::<u64>() + tools.sum::<u64>() + framing;
        Usage { input_tokens, output_tokens: self.max_tokens.map_or(0, u64::from), ..Usage::default() }
    }
}

/// What a message costs beside its text, about.
const MESSAGE_TOKENS: u64 = 4;

/// What a picture costs, about.
const IMAGE_TOKENS: u64 = 1_600;

/// Guesses the tokens of `text`: about four ASCII characters to one, and about two of every three others.
pub fn estimate_tokens(text: &str) -> u64 {
    let mut characters = Characters::default();
    characters.count(text.as_bytes());
    characters.tokens()
}

/// The same for a value that is sent as JSON.
fn estimate_json_tokens(value: &Value) -> u64 {
    let mut characters = Characters::default();
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut characters, value);
    characters.tokens()
}

/// Characters counted so far.
#[derive(Default)]
struct Characters {
    ascii: usize,
    others: usize,
}

impl Characters {
    /// Counts each character by its first byte.
    fn count(&mut self, utf8: &[u8]) {
        // Counts of so few bytes fit into a byte, so that many are counted at once.
        for some in utf8.chunks(usize::from(u8::MAX)) {
            let ascii: u8 = some.iter().map(|byte| u8::from(byte.is_ascii())).sum();
            let following: u8 = some.iter().map(|byte| u8::from(byte & 0xc0 == 0x80)).sum();
            self.ascii += usize::from(ascii);
            self.others += some.len() - usize::from(ascii) - usize::from(following);
        }
    }

    fn tokens(&self) -> u64 {
        (self.ascii.div_ceil(4) + (2 * self.others).div_ceil(3)) as u64
    }
}

impl io::Write for Characters {
    fn write(&mut self, utf8: &[u8]) -> io::Result<usize> {
        self.count(utf8);
        Ok(utf8.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
    /// Takes one more chunk.
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
            Delta::Echo(echo) => self.reply.echo = Some(echo),
            Delta::Model(model) => self.reply.model = model,
            Delta::Done(finish) => {
                self.reply.finish = finish;
                self.done = true;
            }
            Delta::Stopped | Delta::Error(_) => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_grows_with_the_text_and_weighs_chinese_heavier() {
        assert_eq!(["", "a", "four", "hello world", "你好", "你好, world"].map(estimate_tokens), [0, 1, 1, 3, 2, 4]);
        for value in [Value::Null, serde_json::json!({ "类型": "object", "required": ["a\n", "é"], "n": [1, 2.5, true] })] {
            assert_eq!(estimate_json_tokens(&value), estimate_tokens(&value.to_string()));
        }
    }
}
