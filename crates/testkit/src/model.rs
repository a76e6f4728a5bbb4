//! A model whose replies the test scripts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use polis_domain::{Finish, Usage};
use polis_ports::{Delta, DeltaStream, MediaKind, Model, ModelDescription, ModelError, ModelRequest, VendorTool};

type Script = dyn Fn(&ModelRequest) -> ScriptedReply + Send + Sync;

/// Answers each request by a function of the request alone, so that a second run hears the same.
pub struct ScriptedModel {
    script: Box<Script>,
    asked: Arc<AtomicUsize>,
    window: Option<u64>,
    not_taken: Vec<MediaKind>,
    vendor_tools: Vec<VendorTool>,
}

/// The model's reply to one request.
#[derive(Debug, Default)]
pub struct ScriptedReply {
    delay: Duration,
    deltas: Vec<Delta>,
    usage: Option<Usage>,
    finish: Option<Finish>,
    error: Option<ModelError>,
    is_whole: bool,
}

impl ScriptedModel {
    /// A model that follows `script`.
    pub fn new(script: impl Fn(&ModelRequest) -> ScriptedReply + Send + Sync + 'static) -> Self {
        Self { script: Box::new(script), asked: Arc::default(), window: None, not_taken: Vec::new(), vendor_tools: Vec::new() }
    }

    /// A model that says one thing, always.
    pub fn saying(text: &str) -> Self {
        let text = text.to_owned();
        Self::new(move |_| ScriptedReply::text(&text))
    }

    /// The same model, seeing so many tokens at once.
    pub fn seeing(self, tokens: u64) -> Self {
        Self { window: Some(tokens), ..self }
    }

    /// The same model, which takes no media of this kind.
    pub fn not_taking(mut self, kind: MediaKind) -> Self {
        self.not_taken.push(kind);
        self
    }

    /// The same model, whose vendor runs this tool too.
    pub fn with_vendor_tool(mut self, tool: VendorTool) -> Self {
        self.vendor_tools.push(tool);
        self
    }

    /// Counts the requests, also after the model has been given away.
    pub fn counter(&self) -> Arc<AtomicUsize> {
        self.asked.clone()
    }
}

impl ScriptedReply {
    /// A reply in words.
    pub fn text(text: &str) -> Self {
        Self { deltas: vec![Delta::Content(text.to_owned())], ..Self::default() }
    }

    /// A reply in words that comes chunk by chunk.
    pub fn chunks(chunks: &[&str]) -> Self {
        Self { deltas: chunks.iter().map(|chunk| Delta::Content((*chunk).to_owned())).collect(), ..Self::default() }
    }

    /// The same reply, with reasoning before it.
    pub fn reasoning(mut self, text: &str) -> Self {
        self.deltas.insert(0, Delta::Reasoning(text.to_owned()));
        self
    }

    /// A reply that asks for a tool.
    pub fn call(id: &str, tool: &str, arguments: &str) -> Self {
        Self::default().and_call(id, tool, arguments)
    }

    /// An error instead of a reply.
    pub fn error(error: ModelError) -> Self {
        Self { error: Some(error), ..Self::default() }
    }

    /// The same reply, asking for one more tool.
    pub fn and_call(mut self, id: &str, tool: &str, arguments: &str) -> Self {
        let index = self.deltas.iter().filter(|delta| matches!(delta, Delta::ToolCall { .. })).count() as u32;
        let (id, name) = (Some(id.into()), Some(tool.into()));
        self.deltas.push(Delta::ToolCall { index, id, name, arguments: arguments.to_owned() });
        self
    }

    /// The same reply with one more chunk of any kind.
    pub fn and(mut self, delta: Delta) -> Self {
        self.deltas.push(delta);
        self
    }

    /// The same reply, at this cost.
    pub fn costing(self, usage: Usage) -> Self {
        Self { usage: Some(usage), ..self }
    }

    /// The same reply, ended for this reason.
    pub fn ending(self, finish: Finish) -> Self {
        Self { finish: Some(finish), ..self }
    }

    /// The same reply, which is there as a whole; others come delta by delta.
    pub fn at_once(self) -> Self {
        Self { is_whole: true, ..self }
    }

    /// The same reply, later.
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

#[async_trait]
impl Model for ScriptedModel {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let ScriptedReply { delay, mut deltas, usage, finish, error, is_whole } = (self.script)(&request);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if let Some(error) = error {
            return Err(error);
        }
        let called = deltas.iter().any(|delta| matches!(delta, Delta::ToolCall { .. }));
        let counted = || Usage { input_tokens: request.messages.len() as u64, output_tokens: 1, ..Usage::default() };
        deltas.push(Delta::Usage(usage.unwrap_or_else(counted)));
        deltas.push(Delta::Done(finish.unwrap_or(if called { Finish::ToolCalls } else { Finish::Stop })));
        let deltas = stream::iter(deltas.into_iter().map(Ok));
        Ok(match is_whole {
            true => Box::pin(deltas),
            false => Box::pin(deltas.then(|delta| async {
                tokio::task::yield_now().await;
                delta
            })),
        })
    }

    fn description(&self, _model: &str) -> ModelDescription {
        let known = ModelDescription::of_window(self.window);
        let mut capabilities = self.not_taken.iter().fold(known.capabilities, |known, kind| known.without(*kind));
        capabilities.vendor_tools = Some(self.vendor_tools.as_slice().into());
        ModelDescription { capabilities, ..known }
    }
}
