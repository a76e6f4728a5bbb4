//! Models: a request is answered by a stream of deltas. A whole reply is the same stream, collected.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{Stream, StreamExt};
use polis_domain::{
    Citation, Digest, Digesting, EffectClass, EffectId, Failure, Finish, Format, ModelSettings, Reply, Text, ToolCall,
    ToolChoice, Usage, VendorCall, VendorTool,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BoxError, ChatMessage, Media, ModelDescription};

/// Answers requests. Dropping the stream cancels the request.
#[async_trait]
pub trait Model: Send + Sync {
    /// Sends the request; the stream ends with [`Delta::Done`], or with an error.
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError>;

    /// An estimate of the most that a request can cost. A model without a known price costs nothing.
    fn estimate(&self, request: &ModelRequest) -> Usage {
        request.estimate()
    }

    /// Resolves a model name to its full name, as `vendor/name`.
    fn name(&self, model: &str) -> Arc<str> {
        model.into()
    }

    /// Why this is not a valid model name, and what to write instead; none if it is valid.
    fn refuses(&self, _model: &str) -> Option<String> {
        None
    }

    /// What is known about a model.
    fn description(&self, _model: &str) -> ModelDescription {
        ModelDescription::default()
    }
}

/// Deltas in order. A stream that ends without [`Delta::Done`] was cut off.
pub type DeltaStream = Pin<Box<dyn Stream<Item = Result<Delta, ModelError>> + Send>>;

/// A request to a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelRequest {
    /// `vendor/name`; empty for the default.
    pub model: Arc<str>,
    /// The system prompt.
    pub system: Text,
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// The tools that it may call.
    pub tools: Arc<[ToolSpec]>,
    /// The tools that the vendor may run itself.
    pub vendor_tools: Vec<VendorTool>,
    /// Whether this call must have a tool call; otherwise the settings decide. Read it with [`ModelRequest::choice`].
    pub tool_choice: ToolChoice,
    /// Whether this reply may have at most one call; otherwise the settings decide. Read it with [`ModelRequest::is_one_call`].
    pub one_call: bool,
    /// The schema for structured output.
    pub format: Option<Arc<Format>>,
    /// Effort, sampling and limits, as far as the vendor supports them.
    pub settings: ModelSettings,
    /// Whether the user's settings say that the model knows this effort. A server of unknown make is sent an effort only then.
    pub takes_effort: bool,
    /// The calling agent, so that agents share a vendor's rate limit fairly. It is not sent.
    pub asker: Arc<str>,
    /// Whether the reply is internal to the turn, such as notes or a judgement, and not shown as text of the agent. It is not
    /// sent.
    pub aside: bool,
    /// What the call is for, such as `plan`; empty if it has no name. It is logged, not sent. After a restart with other code, a
    /// named call keeps its logged answer although its prompt has changed; without a name the turn is parked as diverged.
    pub purpose: Arc<str>,
    /// The model call of a turn that sends it, for observers. It is not sent.
    pub effect: Option<EffectId>,
}

/// A request with one user message.
impl From<&str> for ModelRequest {
    fn from(prompt: &str) -> Self {
        Self { messages: vec![ChatMessage::user(prompt)], ..Self::default() }
    }
}

/// A request with one user message.
impl From<String> for ModelRequest {
    fn from(prompt: String) -> Self {
        Self::from(prompt.as_str())
    }
}

/// A request with one user message, such as the message of a task.
impl From<Arc<str>> for ModelRequest {
    fn from(prompt: Arc<str>) -> Self {
        Self::from(&*prompt)
    }
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
    /// Whether a call may be repeated.
    #[serde(default)]
    pub class: EffectClass,
    /// Whether the same call may give different results although nothing was written; its results are never reused (D20).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
}

impl ToolSpec {
    /// Whether a tool of this name is hidden from models and called by code only: its name starts with `_`.
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
        /// The index of the call in the reply.
        index: u32,
        /// The id that the model gave the call, if this chunk has it.
        id: Option<Arc<str>>,
        /// The name of the tool, if this chunk has it.
        name: Option<Arc<str>>,
        /// More of the JSON text of the arguments.
        arguments: String,
    },
    /// The usage so far; a later one replaces it.
    Usage(Usage),
    /// Opaque data for the vendor, see [`Reply::echo`]; a later one replaces it.
    Echo(Arc<Value>),
    /// What a tool of the vendor did.
    VendorCall(VendorCall),
    /// A source that the text cites.
    Citation(Citation),
    /// The model that answers, as `vendor/name`.
    Model(Arc<str>),
    /// The reply is complete.
    Done(Finish),
    /// The call was cancelled. For watchers only; no vendor sends it.
    Stopped,
    /// The attempt failed. For watchers only; a vendor's stream ends with a [`ModelError`] instead.
    Error(Failure),
}

impl Delta {
    /// An estimate of the tokens that the model wrote for it.
    pub fn estimate_tokens(&self) -> u64 {
        match self {
            Self::Content(text) | Self::Reasoning(text) => estimate_tokens(text),
            Self::ToolCall { name, arguments, .. } => name.as_deref().map_or(0, estimate_tokens) + estimate_tokens(arguments),
            Self::VendorCall(call) => estimate_tokens(&call.input),
            Self::Usage(_)
            | Self::Echo(_)
            | Self::Citation(_)
            | Self::Model(_)
            | Self::Done(_)
            | Self::Stopped
            | Self::Error(_) => 0,
        }
    }
}

/// Why a model call failed.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Too many requests; wait before the next one.
    #[error("the provider asks us to slow down: {reason}")]
    Throttled {
        /// The message of the provider.
        reason: String,
        /// How long to wait, if the provider said so.
        retry_after: Option<Duration>,
    },
    /// The request itself is wrong; a retry would not help.
    #[error("the provider rejects the request: {reason}")]
    Rejected {
        /// The message of the provider.
        reason: String,
    },
    /// The provider refuses the form of the request; the next attempt uses another form, without a delay.
    #[error("the provider refuses this form of the request, and the next attempt takes another: {reason}")]
    Adapted {
        /// The message of the provider.
        reason: String,
    },
    /// The provider failed; a retry may help.
    #[error("the provider failed: {reason}")]
    Failed {
        /// The message of the provider.
        reason: String,
        /// How long to wait, if the provider said so.
        retry_after: Option<Duration>,
    },
    /// The circuit breaker of the provider is open after too many failures.
    #[error("{vendor} has failed {failures} times in a row and is not called for another {} s", retry_after.as_secs_f32().ceil())]
    Resting {
        /// The vendor.
        vendor: Arc<str>,
        /// How many failures there were.
        failures: u32,
        /// How long the circuit breaker stays open.
        retry_after: Duration,
    },
    /// The reply was cut off or stalled; a retry may help.
    #[error("the reply was interrupted: {reason}")]
    Cut {
        /// The reason that the provider gave.
        reason: String,
    },
    /// The provider cannot be reached; a retry may help.
    #[error("the provider cannot be reached: {0}")]
    Unreachable(#[source] BoxError),
}

impl ModelError {
    /// A stable code for programs.
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

    /// Whether a retry of the same model may help (D09).
    pub fn is_passing(&self) -> bool {
        !matches!(self, Self::Rejected { .. })
    }

    /// How long to wait, if the provider said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { retry_after, .. } | Self::Failed { retry_after, .. } => *retry_after,
            Self::Resting { retry_after, .. } => Some(*retry_after),
            Self::Rejected { .. } | Self::Adapted { .. } | Self::Cut { .. } | Self::Unreachable(_) => None,
        }
    }
}

impl ModelRequest {
    /// The digest of the request, by which a second run is compared with the log. The tools are left out: they depend on
    /// which servers are connected, not on the log.
    pub fn digest(&self) -> Digest {
        let mut digesting = Digesting::default();
        digesting.part(&self.model);
        digesting.text(&self.system);
        digest_settings(&mut digesting, &self.settings);
        if let Some(format) = &self.format {
            digesting.part(&format.schema.to_string());
        }
        match &self.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::None => digesting.part("none"),
            ToolChoice::Required => digesting.part("required"),
            ToolChoice::Named(tool) => digesting.parts(["named", tool]),
        }
        for message in &self.messages {
            match message {
                ChatMessage::User { text, .. } => digesting.parts(["user", text]),
                ChatMessage::Assistant { text, tool_calls, .. } => {
                    digesting.parts(["assistant", text]);
                    for call in tool_calls {
                        digesting.parts([&*call.id, &*call.name, &*call.arguments]);
                    }
                }
                ChatMessage::Tool { call_id, name, content, is_error, .. } => {
                    digesting.parts([if *is_error { "error" } else { "tool" }, call_id, name, content]);
                }
            }
            message.media().iter().for_each(|media| digesting.part(&media.identity()));
        }
        digesting.digest()
    }

    /// The choice of tools to send: what this call demands, otherwise that of the settings. A demand of the settings holds for
    /// the first reply to a message; after a tool result the model must be able to answer.
    pub fn choice(&self) -> &ToolChoice {
        let is_first = !matches!(self.messages.last(), Some(ChatMessage::Tool { .. }));
        match (&self.tool_choice, &self.settings.tool_choice) {
            (ToolChoice::Auto, Some(choice)) if is_first || !choice.is_demand() => choice,
            (choice, _) => choice,
        }
    }

    /// Whether the reply may have at most one call.
    pub fn is_one_call(&self) -> bool {
        self.one_call || self.settings.parallel_calls == Some(false)
    }

    /// Leaves the choice of tools and their number to the model.
    pub fn drop_choice(&mut self) {
        (self.tool_choice, self.one_call) = (ToolChoice::Auto, false);
        (self.settings.tool_choice, self.settings.parallel_calls) = (None, None);
    }

    /// An estimate of the most tokens that it can take: the input, and all that the model may write.
    pub fn estimate(&self) -> Usage {
        let media = self.messages.iter().flat_map(ChatMessage::media).map(Media::tokens);
        let said = self.messages.iter().map(|message| match message {
            ChatMessage::User { text, .. } => estimate_tokens(text),
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
        let input_tokens =
            estimate_tokens(&self.system) + said.sum::<u64>() + media.sum::<u64>() + tools.sum::<u64>() + framing;
        Usage { input_tokens, output_tokens: self.settings.max_tokens.map_or(0, u64::from), ..Usage::default() }
    }
}

/// Adds settings to a digest. The first three are always there, because older logs have them.
fn digest_settings(digesting: &mut Digesting, settings: &ModelSettings) {
    if settings.is_default() {
        return digesting.part("None None None");
    }
    let ModelSettings { temperature, max_tokens, effort, .. } = settings;
    digesting.part(&format!("{temperature:?} {max_tokens:?} {effort:?}"));
    let others = ModelSettings { temperature: None, max_tokens: None, effort: None, ..settings.clone() };
    if !others.is_default() {
        digesting.part(&serde_json::to_string(&others).unwrap_or_default());
    }
}

/// The overhead of a message in tokens, roughly.
const MESSAGE_TOKENS: u64 = 4;

/// Estimates the tokens of `text`: one for about four ASCII characters, and two for about three others.
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

/// Assembles deltas to a whole reply.
#[derive(Debug, Default)]
pub struct Collector {
    reply: Reply,
    calls: BTreeMap<u32, (Arc<str>, Arc<str>, String)>,
    vendor_calls: Vec<VendorCall>,
    citations: Vec<Citation>,
    done: bool,
}

impl Collector {
    /// Adds a delta.
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
            Delta::VendorCall(call) => self.vendor_calls.push(call),
            Delta::Citation(cited) if self.citations.contains(&cited) => {}
            Delta::Citation(cited) => self.citations.push(cited),
            Delta::Model(model) => self.reply.model = model,
            Delta::Done(finish) => {
                self.reply.finish = finish;
                self.done = true;
            }
            Delta::Stopped | Delta::Error(_) => {}
        }
    }

    /// The whole reply; an error if the stream ended without [`Delta::Done`].
    pub fn finish(mut self) -> Result<Reply, ModelError> {
        if !self.done {
            return Err(ModelError::Cut { reason: "the stream ended before the reply did".to_owned() });
        }
        (self.reply.vendor_calls, self.reply.citations) = (self.vendor_calls.into(), self.citations.into());
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

/// A reply that was paused, and the reply that continues it, as one. Data for the vendor is a list, and the lists are joined.
pub fn continued(paused: Reply, rest: Reply) -> Reply {
    let echo = match (paused.echo, rest.echo) {
        (Some(mut first), Some(second)) => {
            let more = second.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
            if let Some(Value::Array(items)) = Arc::make_mut(&mut first).get_mut("items") {
                items.extend(more);
            }
            Some(first)
        }
        (first, second) => second.or(first),
    };
    let new = rest.citations.iter().filter(|cited| !paused.citations.contains(cited));
    let citations = paused.citations.iter().chain(new).cloned().collect();
    Reply {
        text: paused.text + &rest.text,
        reasoning: paused.reasoning + &rest.reasoning,
        vendor_calls: paused.vendor_calls.iter().chain(&*rest.vendor_calls).cloned().collect(),
        citations,
        usage: paused.usage.plus(rest.usage),
        echo,
        ..rest
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

    #[test]
    fn a_paused_reply_and_its_continuation_are_one() {
        let reply = |text: &str, cited: &str, items: Value| Reply {
            text: text.to_owned(),
            citations: [Citation::new("t", "u"), Citation::new(cited, "u")].into(),
            vendor_calls: [VendorCall::new(VendorTool::WebSearch, text)].into(),
            usage: Usage { input_tokens: 2, ..Usage::default() },
            echo: Some(Arc::new(serde_json::json!({ "dialect": "d", "items": items }))),
            ..Reply::default()
        };
        let paused = Reply { finish: Finish::Paused, ..reply("a", "1", serde_json::json!([1])) };
        let whole = continued(paused.clone(), reply("b", "2", serde_json::json!([2, 3])));
        assert_eq!((&*whole.text, &whole.finish, whole.usage.input_tokens), ("ab", &Finish::Stop, 4));
        assert_eq!((whole.citations.len(), whole.vendor_calls.len()), (3, 2));
        assert_eq!(whole.echo.unwrap()["items"], serde_json::json!([1, 2, 3]));
        assert_eq!(continued(paused.clone(), Reply::default()).echo, paused.echo);
    }

    #[test]
    fn the_errors_that_turns_act_on_have_known_codes() {
        use polis_domain::FailureCode;

        let resting = ModelError::Resting { vendor: "v".into(), failures: 1, retry_after: Duration::ZERO };
        assert_eq!(FailureCode::from(resting.code()), FailureCode::ModelResting);
        assert_eq!(FailureCode::from(crate::LogError::Full("full".into()).code()), FailureCode::DiskFull);
    }
}
