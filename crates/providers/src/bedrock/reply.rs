//! What Converse sends, event by event or as one answer, as deltas.

use std::collections::{BTreeMap, VecDeque};

use polis_domain::{Finish, Usage};
use polis_http::sse::Event;
use polis_ports::{Delta, ModelError};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::request_parts::arguments_object;
use crate::wire::{ChunkError, Count, Ending, LooseText, Progress, Reader, echo, shortened};

/// Marks what this dialect wants back.
pub(super) const DIALECT: &str = "bedrock";

/// Reads the events of one message.
#[derive(Debug, Default)]
pub(crate) struct ConverseReader {
    blocks: Vec<Block>,
    /// The block of each of the vendor's indexes.
    by_index: BTreeMap<u64, usize>,
    calls: u32,
    finish: Option<Finish>,
}

/// A part of the reply that is coming in, as it may have to be sent back.
#[derive(Debug)]
struct Block {
    kind: Kind,
    text: String,
    /// The signature of a thought.
    signature: String,
    /// Whether its own end has come.
    is_closed: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// Nothing has come that tells.
    Unknown,
    Text,
    Thinking,
    Redacted,
    Call {
        index: u32,
        id: String,
        name: String,
    },
}

/// One event, or a whole answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StreamEvent {
    #[serde(default)]
    content_block_index: Count,
    start: Option<Part>,
    delta: Option<Part>,
    stop_reason: Option<LooseText>,
    usage: Option<WireUsage>,
    output: Option<Output>,
}

#[derive(Debug, Deserialize)]
struct Output {
    message: Option<Message>,
}

#[derive(Debug, Deserialize)]
struct Message {
    content: Option<Vec<Part>>,
}

/// A part of a message, or of the part.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Part {
    text: Option<LooseText>,
    tool_use: Option<ToolUse>,
    reasoning_content: Option<Reasoning>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolUse {
    tool_use_id: Option<LooseText>,
    name: Option<LooseText>,
    /// Text in a stream, an object in a whole answer.
    input: Option<Value>,
}

/// In a stream the fields are at the top.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning {
    text: Option<LooseText>,
    signature: Option<LooseText>,
    redacted_content: Option<LooseText>,
    reasoning_text: Option<ReasoningText>,
}

#[derive(Debug, Deserialize)]
struct ReasoningText {
    text: Option<LooseText>,
    signature: Option<LooseText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireUsage {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_write_input_tokens: Count,
}

impl Reader for ConverseReader {
    fn finish(&self) -> Option<Finish> {
        match self.finish.clone()? {
            // Some models say `end_turn` although they want tools used.
            Finish::Stop if self.calls > 0 => Some(Finish::ToolCalls),
            finish => Some(finish),
        }
    }

    fn read(&mut self, event: &Event<'_>, out: &mut VecDeque<Delta>) -> Result<Progress, ChunkError> {
        if event.name.ends_with("Exception") {
            return Err(ChunkError::Reported(exception(&event.name, &event.data)));
        }
        if event.name == "error" {
            // The stream fails with its text.
            return Ok(Progress::More);
        }
        let data: StreamEvent = serde_json::from_str(&event.data)?;
        let index = data.content_block_index.get().unwrap_or_default();
        if let Some(message) = data.output.and_then(|output| output.message) {
            for (index, part) in message.content.into_iter().flatten().enumerate() {
                self.part(index as u64, part, out);
                self.close(index as u64, out);
            }
        }
        for part in [data.start, data.delta].into_iter().flatten() {
            self.part(index, part, out);
        }
        if event.name == "contentBlockStop" {
            self.close(index, out);
        }
        out.extend(data.usage.as_ref().map(usage));
        let word = data.stop_reason.map(LooseText::into_text).filter(|word| !word.is_empty());
        if let Some(word) = &word {
            self.stopped(finish(word)?, out);
        }
        // The counts come last.
        let is_last = data.usage.is_some() && self.finish.is_some();
        Ok(if is_last { Progress::Last } else { Progress::More })
    }

    /// A complete body in which every block has ended is a reply, although it does not say why the model stopped.
    fn end(&mut self, ending: Ending, out: &mut VecDeque<Delta>) -> Option<Finish> {
        let is_torn =
            |block: &Block| matches!(block.kind, Kind::Call { .. }) && serde_json::from_str::<IgnoredAny>(&block.text).is_err();
        let says_something = self.blocks.iter().any(|block| match block.kind {
            Kind::Call { .. } => true,
            Kind::Text => !block.text.is_empty(),
            Kind::Unknown | Kind::Thinking | Kind::Redacted => false,
        });
        let has_ended = ending != Ending::Cut && self.blocks.iter().all(|block| block.is_closed && !is_torn(block));
        if self.finish.is_none() && has_ended && says_something {
            self.stopped(Finish::Stop, out);
        }
        self.finish()
    }
}

impl ConverseReader {
    fn block(&mut self, index: u64) -> &mut Block {
        let place = *self.by_index.entry(index).or_insert_with(|| {
            let (text, signature) = (String::new(), String::new());
            self.blocks.push(Block { kind: Kind::Unknown, text, signature, is_closed: false });
            self.blocks.len() - 1
        });
        &mut self.blocks[place]
    }

    fn part(&mut self, index: u64, part: Part, out: &mut VecDeque<Delta>) {
        let text = |loose: Option<LooseText>| loose.map(LooseText::into_text).filter(|text| !text.is_empty());
        if let Some(used) = part.tool_use {
            self.tool_use(index, used, out);
        }
        if let Some(Reasoning { text: at_top, signature, redacted_content, reasoning_text }) = part.reasoning_content {
            let (inner, signed) = reasoning_text.map_or((None, None), |inner| (inner.text, inner.signature));
            let block = self.block(index);
            if let Some(redacted) = text(redacted_content) {
                block.kind = Kind::Redacted;
                block.text.push_str(&redacted);
            } else {
                block.kind = Kind::Thinking;
                block.signature.push_str(&text(signature).or(text(signed)).unwrap_or_default());
                if let Some(thought) = text(at_top).or(text(inner)) {
                    block.text.push_str(&thought);
                    out.push_back(Delta::Reasoning(thought));
                }
            }
        }
        if let Some(said) = text(part.text) {
            let block = self.block(index);
            block.kind = Kind::Text;
            block.text.push_str(&said);
            out.push_back(Delta::Content(said));
        }
    }

    fn tool_use(&mut self, index: u64, used: ToolUse, out: &mut VecDeque<Delta>) {
        let text = |loose: Option<LooseText>| loose.map(LooseText::into_text).unwrap_or_default();
        let (id, name) = (text(used.tool_use_id), text(used.name));
        let calls = self.calls;
        let block = self.block(index);
        if block.kind == Kind::Unknown {
            block.kind = Kind::Call { index: calls, id: id.clone(), name: name.clone() };
            let (id, name) = (Some(id.as_str().into()), Some(name.as_str().into()));
            out.push_back(Delta::ToolCall { index: calls, id, name, arguments: String::new() });
            self.calls += 1;
        }
        let arguments = match used.input {
            None | Some(Value::Null) => return,
            Some(Value::String(text)) => text,
            Some(input) => input.to_string(),
        };
        let block = self.block(index);
        if let Kind::Call { index, .. } = block.kind
            && !arguments.is_empty()
        {
            block.text.push_str(&arguments);
            out.push_back(Delta::ToolCall { index, id: None, name: None, arguments });
        }
    }

    /// A call without arguments sends none.
    fn close(&mut self, index: u64, out: &mut VecDeque<Delta>) {
        let block = self.block(index);
        block.is_closed = true;
        if let Kind::Call { index, .. } = block.kind
            && block.text.is_empty()
        {
            block.text.push_str("{}");
            out.push_back(Delta::ToolCall { index, id: None, name: None, arguments: "{}".to_owned() });
        }
    }

    fn stopped(&mut self, finish: Finish, out: &mut VecDeque<Delta>) {
        self.finish = Some(finish);
        if self.blocks.iter().any(|block| matches!(block.kind, Kind::Thinking | Kind::Redacted)) {
            out.push_back(echo(DIALECT, self.blocks.iter().filter_map(Block::to_send).collect()));
        }
    }
}

impl Block {
    fn to_send(&self) -> Option<Value> {
        match &self.kind {
            Kind::Unknown => None,
            Kind::Text if self.text.trim().is_empty() => None,
            Kind::Text => Some(json!({ "text": self.text })),
            Kind::Thinking => {
                let mut text = json!({ "text": self.text });
                if !self.signature.is_empty() {
                    text["signature"] = self.signature.as_str().into();
                }
                Some(json!({ "reasoningContent": { "reasoningText": text } }))
            }
            Kind::Redacted => Some(json!({ "reasoningContent": { "redactedContent": self.text } })),
            Kind::Call { id, name, .. } => {
                let input = arguments_object(&self.text);
                Some(json!({ "toolUse": { "toolUseId": id, "name": name, "input": input } }))
            }
        }
    }
}

/// The cached part of the input is counted beside the rest.
fn usage(usage: &WireUsage) -> Delta {
    let (cached_tokens, cache_write_tokens) =
        (usage.cache_read_input_tokens.or_zero(), usage.cache_write_input_tokens.or_zero());
    Delta::Usage(Usage {
        input_tokens: usage.input_tokens.or_zero().saturating_add(cached_tokens).saturating_add(cache_write_tokens),
        output_tokens: usage.output_tokens.or_zero(),
        cached_tokens,
        cache_write_tokens,
        ..Usage::default()
    })
}

fn finish(word: &str) -> Result<Finish, ChunkError> {
    Ok(match word {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "guardrail_intervened" | "content_filtered" => Finish::ContentFilter,
        "malformed_model_output" | "malformed_tool_use" => {
            let reason = "it could not write its tool call".to_owned();
            return Err(ChunkError::Reported(ModelError::Failed { reason, retry_after: None }));
        }
        other => Finish::Other(shortened(other)),
    })
}

/// The error that the service reports inside a stream.
fn exception(name: &str, data: &str) -> ModelError {
    let json: Value = serde_json::from_str(data).unwrap_or_default();
    let words = ["message", "Message", "originalMessage"].iter().find_map(|key| json[key].as_str()).unwrap_or(data);
    let reason = shortened(&format!("{name}: {words}"));
    let status = json["originalStatusCode"].as_u64();
    match name {
        "throttlingException" | "modelNotReadyException" => ModelError::Throttled { reason, retry_after: None },
        "validationException" | "accessDeniedException" | "resourceNotFoundException" => ModelError::Rejected { reason },
        "modelStreamErrorException" if status == Some(429) => ModelError::Throttled { reason, retry_after: None },
        _ => ModelError::Failed { reason, retry_after: None },
    }
}
