//! What Anthropic sends, event by event or as one message, as deltas.

use std::collections::VecDeque;

use polis_domain::{Finish, Usage};
use polis_http::sse::Event;
use polis_ports::{Delta, ModelError};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::request_parts::arguments_object;
use crate::wire::{ChunkError, Count, Ending, LooseText, Progress, Reader, echo, reported_error, shortened};

/// Marks what this dialect wants back.
pub(super) const DIALECT: &str = "anthropic";

/// Reads the events of one message.
#[derive(Debug, Default)]
pub(crate) struct MessageReader {
    blocks: Vec<Block>,
    calls: u32,
    usage: WireUsage,
    finish: Option<Finish>,
}

/// A part of the reply that is coming in, as it may have to be sent back.
#[derive(Debug)]
struct Block {
    /// The vendor's index.
    index: u64,
    kind: Kind,
    text: String,
    /// The signature of a thought.
    signature: String,
    /// Whether its own end has come.
    is_closed: bool,
}

#[derive(Debug)]
enum Kind {
    Text,
    Thinking,
    Redacted,
    Call {
        index: u32,
        id: String,
        name: String,
        input: Value,
    },
    /// Something of the vendor's own that we did not ask for.
    Other,
}

/// One event, or a whole message: both have their fields at the top.
#[derive(Debug, Deserialize)]
struct StreamEvent {
    r#type: Option<String>,
    #[serde(default)]
    index: Count,
    message: Option<Box<StreamEvent>>,
    content_block: Option<BlockStart>,
    delta: Option<BlockDelta>,
    content: Option<Vec<BlockStart>>,
    stop_reason: Option<LooseText>,
    usage: Option<WireUsage>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct BlockStart {
    r#type: Option<String>,
    text: Option<LooseText>,
    thinking: Option<LooseText>,
    signature: Option<LooseText>,
    data: Option<LooseText>,
    id: Option<LooseText>,
    name: Option<LooseText>,
    input: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct BlockDelta {
    r#type: Option<String>,
    text: Option<LooseText>,
    thinking: Option<LooseText>,
    signature: Option<LooseText>,
    partial_json: Option<LooseText>,
    stop_reason: Option<LooseText>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct WireUsage {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: Count,
}

impl Reader for MessageReader {
    fn finish(&self) -> Option<Finish> {
        self.finish.clone()
    }

    fn read(&mut self, event: &Event<'_>, out: &mut VecDeque<Delta>) -> Result<Progress, ChunkError> {
        let event_data: StreamEvent = serde_json::from_str(&event.data)?;
        if let Some(error) = event_data.error {
            return Err(ChunkError::Reported(reported_error(&error)));
        }
        match event_data.r#type.as_deref() {
            // A proxy that asks again after a failure joins two messages; nobody can tell which parts belong together.
            Some("message_start") if !self.blocks.is_empty() => {
                let reason = "a second message began within the reply".to_owned();
                return Err(ChunkError::Reported(ModelError::Failed { reason, retry_after: None }));
            }
            Some("message_start") => self.count(event_data.message.and_then(|message| message.usage), out),
            Some("content_block_start") => {
                if let Some(start) = event_data.content_block {
                    self.start(event_data.index.get().unwrap_or(self.blocks.len() as u64), start, out);
                }
            }
            Some("content_block_delta") => {
                if let (Some(index), Some(block_delta)) = (event_data.index.get(), event_data.delta) {
                    self.append(index, block_delta, out);
                }
            }
            Some("content_block_stop") => self.stop(event_data.index.get(), out),
            Some("message_delta") => {
                self.count(event_data.usage, out);
                self.stopped(event_data.delta.and_then(|delta| delta.stop_reason), out);
            }
            Some("message_stop") => return Ok(Progress::Last),
            Some("message") => {
                for (index, start) in event_data.content.into_iter().flatten().enumerate() {
                    self.start(index as u64, start, out);
                    self.stop(Some(index as u64), out);
                }
                self.count(event_data.usage, out);
                self.stopped(event_data.stop_reason, out);
                return Ok(Progress::Last);
            }
            _ => {}
        }
        Ok(Progress::More)
    }

    /// A message without a reason for its end is whole if its calls are. Where even the mark of the end is missing and only the
    /// body is complete, each of its blocks must have ended.
    fn end(&mut self, ending: Ending, out: &mut VecDeque<Delta>) -> Option<Finish> {
        let is_torn =
            |block: &Block| matches!(block.kind, Kind::Call { .. }) && serde_json::from_str::<IgnoredAny>(&block.text).is_err();
        let says_something = self.blocks.iter().any(|block| match block.kind {
            Kind::Call { .. } => true,
            Kind::Text => !block.text.is_empty(),
            Kind::Thinking | Kind::Redacted | Kind::Other => false,
        });
        let has_ended = match ending {
            Ending::Marked => true,
            Ending::Closed => self.blocks.iter().all(|block| block.is_closed),
            Ending::Cut => false,
        };
        if self.finish.is_none() && has_ended && says_something && !self.blocks.iter().any(is_torn) {
            let word = if self.calls > 0 { "tool_use" } else { "end_turn" };
            self.stopped(Some(LooseText::Text(word.to_owned())), out);
        }
        self.finish()
    }
}

impl MessageReader {
    fn start(&mut self, index: u64, start: BlockStart, out: &mut VecDeque<Delta>) {
        let text = |loose: Option<LooseText>| loose.map(LooseText::into_text).unwrap_or_default();
        let (mut content, mut signature) = (String::new(), String::new());
        let kind = match start.r#type.as_deref() {
            Some("text") => {
                content = text(start.text);
                out.extend(Some(content.clone()).filter(|text| !text.is_empty()).map(Delta::Content));
                Kind::Text
            }
            Some("thinking") => {
                (content, signature) = (text(start.thinking), text(start.signature));
                out.extend(Some(content.clone()).filter(|text| !text.is_empty()).map(Delta::Reasoning));
                Kind::Thinking
            }
            Some("redacted_thinking") => {
                content = text(start.data);
                Kind::Redacted
            }
            Some("tool_use") => {
                let (id, name) = (text(start.id), text(start.name));
                let call = self.calls;
                self.calls += 1;
                out.push_back(Delta::ToolCall {
                    index: call,
                    id: Some(id.as_str().into()),
                    name: Some(name.as_str().into()),
                    arguments: String::new(),
                });
                Kind::Call { index: call, id, name, input: start.input.unwrap_or_default() }
            }
            _ => Kind::Other,
        };
        self.blocks.push(Block { index, kind, text: content, signature, is_closed: false });
    }

    fn append(&mut self, index: u64, block_delta: BlockDelta, out: &mut VecDeque<Delta>) {
        let Some(block) = self.blocks.iter_mut().rfind(|block| block.index == index) else { return };
        let text = |loose: Option<LooseText>| loose.map(LooseText::into_text).filter(|text| !text.is_empty());
        let (chunk, delta): (_, fn(String) -> Delta) = match (block_delta.r#type.as_deref(), &block.kind) {
            (Some("text_delta"), Kind::Text) => (text(block_delta.text), Delta::Content),
            (Some("thinking_delta"), Kind::Thinking) => (text(block_delta.thinking), Delta::Reasoning),
            (Some("signature_delta"), Kind::Thinking) => {
                block.signature.push_str(&text(block_delta.signature).unwrap_or_default());
                return;
            }
            (Some("input_json_delta"), &Kind::Call { index, .. }) => {
                if let Some(arguments) = text(block_delta.partial_json) {
                    block.text.push_str(&arguments);
                    out.push_back(Delta::ToolCall { index, id: None, name: None, arguments });
                }
                return;
            }
            _ => return,
        };
        if let Some(chunk) = chunk {
            block.text.push_str(&chunk);
            out.push_back(delta(chunk));
        }
    }

    /// A call whose arguments did not come in chunks has them in its beginning.
    fn stop(&mut self, index: Option<u64>, out: &mut VecDeque<Delta>) {
        let Some(open) = self.blocks.iter_mut().rfind(|block| Some(block.index) == index) else { return };
        open.is_closed = true;
        if let Block { kind: Kind::Call { index, input, .. }, text, .. } = open
            && text.is_empty()
        {
            let arguments = if input.is_null() { "{}".to_owned() } else { input.to_string() };
            text.push_str(&arguments);
            out.push_back(Delta::ToolCall { index: *index, id: None, name: None, arguments });
        }
    }

    fn stopped(&mut self, reason: Option<LooseText>, out: &mut VecDeque<Delta>) {
        let Some(word) = reason.map(LooseText::into_text).filter(|word| !word.is_empty()) else { return };
        self.finish = Some(finish(&word));
        if self.blocks.iter().any(|block| matches!(block.kind, Kind::Thinking | Kind::Redacted)) {
            out.push_back(echo(DIALECT, self.blocks.iter().filter_map(Block::to_send).collect()));
        }
    }

    /// Later counts replace earlier ones, field by field.
    fn count(&mut self, counted: Option<WireUsage>, out: &mut VecDeque<Delta>) {
        let Some(new) = counted else { return };
        let old = self.usage;
        self.usage = WireUsage {
            input_tokens: new.input_tokens.or(old.input_tokens),
            output_tokens: new.output_tokens.or(old.output_tokens),
            cache_read_input_tokens: new.cache_read_input_tokens.or(old.cache_read_input_tokens),
            cache_creation_input_tokens: new.cache_creation_input_tokens.or(old.cache_creation_input_tokens),
            output_tokens_details: new.output_tokens_details.or(old.output_tokens_details),
        };
        out.push_back(Delta::Usage(self.usage.total()));
    }
}

impl Block {
    fn to_send(&self) -> Option<Value> {
        match &self.kind {
            Kind::Text if self.text.is_empty() => None,
            Kind::Text => Some(json!({ "type": "text", "text": self.text })),
            Kind::Thinking => Some(json!({ "type": "thinking", "thinking": self.text, "signature": self.signature })),
            Kind::Redacted => Some(json!({ "type": "redacted_thinking", "data": self.text })),
            Kind::Call { id, name, .. } => {
                Some(json!({ "type": "tool_use", "id": id, "name": name, "input": arguments_object(&self.text) }))
            }
            Kind::Other => None,
        }
    }
}

impl WireUsage {
    /// Anthropic counts the cached part of the input beside the rest.
    fn total(self) -> Usage {
        let (cached_tokens, cache_write_tokens) =
            (self.cache_read_input_tokens.or_zero(), self.cache_creation_input_tokens.or_zero());
        Usage {
            input_tokens: self.input_tokens.or_zero().saturating_add(cached_tokens).saturating_add(cache_write_tokens),
            output_tokens: self.output_tokens.or_zero(),
            cached_tokens,
            cache_write_tokens,
            reasoning_tokens: self.output_tokens_details.unwrap_or_default().thinking_tokens.or_zero(),
            ..Usage::default()
        }
    }
}

fn finish(word: &str) -> Finish {
    match word {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::Refusal,
        other => Finish::Other(shortened(other)),
    }
}
