//! What Anthropic sends, event by event or as one message, as deltas.

use std::collections::{BTreeMap, VecDeque};

use polis_domain::{Finish, Usage};
use polis_http::sse::Event;
use polis_ports::{Citation, Delta, ModelError, VendorTool};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::request_parts::arguments_object;
use crate::vendor_tools::{self, citations, first_text, used};
use crate::wire::{ChunkError, Count, Ending, LooseText, Progress, Reader, echo, reported_error, shortened};

/// Marks what this dialect wants back.
pub(super) const DIALECT: &str = "anthropic";

/// Reads the events of one message.
#[derive(Debug, Default)]
pub(crate) struct MessageReader {
    blocks: Vec<Block>,
    /// The newest block of each of the vendor's indexes.
    by_index: BTreeMap<u64, usize>,
    calls: u32,
    usage: WireUsage,
    /// Searches of the vendor that were told.
    searches: u64,
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
    /// The sources that a text cites.
    citations: Vec<Value>,
    /// Fields of the vendor's tools that are sent back as they came.
    fields: Map<String, Value>,
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
    /// The vendor runs one of its tools.
    VendorUse {
        id: String,
        name: String,
        input: Value,
    },
    /// What such a tool gave. The rest of the block is sent back.
    VendorResult,
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
    citations: Option<Vec<Value>>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct BlockDelta {
    r#type: Option<String>,
    text: Option<LooseText>,
    thinking: Option<LooseText>,
    signature: Option<LooseText>,
    partial_json: Option<LooseText>,
    citation: Option<Value>,
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
    server_tool_use: Option<ServerToolUse>,
}

/// How often tools of the vendor were used.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct ServerToolUse {
    web_search_requests: Count,
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
            Kind::Thinking | Kind::Redacted | Kind::VendorUse { .. } | Kind::VendorResult | Kind::Other => false,
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
        let (mut citations, mut fields) = (Vec::new(), Map::new());
        let kind = match start.r#type.as_deref() {
            Some("text") => {
                content = text(start.text);
                citations = start.citations.unwrap_or_default();
                out.extend(citations.iter().filter_map(cited));
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
            Some("server_tool_use") => {
                fields = start.others;
                Kind::VendorUse { id: text(start.id), name: text(start.name), input: start.input.unwrap_or_default() }
            }
            Some(kind) if kind.ends_with("_tool_result") => {
                fields = start.others;
                let delta = self.vendor_call(&fields);
                if let Some(Delta::VendorCall(call)) = &delta {
                    self.searches += u64::from(if call.tool == VendorTool::WebSearch { call.uses } else { 0 });
                }
                out.extend(delta);
                fields.insert("type".to_owned(), kind.into());
                Kind::VendorResult
            }
            _ => Kind::Other,
        };
        self.by_index.insert(index, self.blocks.len());
        self.blocks.push(Block { kind, text: content, signature, is_closed: false, citations, fields });
    }

    fn append(&mut self, index: u64, block_delta: BlockDelta, out: &mut VecDeque<Delta>) {
        let Some(block) = self.by_index.get(&index).map(|place| &mut self.blocks[*place]) else { return };
        let text = |loose: Option<LooseText>| loose.map(LooseText::into_text).filter(|text| !text.is_empty());
        let (chunk, delta): (_, fn(String) -> Delta) = match (block_delta.r#type.as_deref(), &block.kind) {
            (Some("text_delta"), Kind::Text) => (text(block_delta.text), Delta::Content),
            (Some("thinking_delta"), Kind::Thinking) => (text(block_delta.thinking), Delta::Reasoning),
            (Some("signature_delta"), Kind::Thinking) => {
                block.signature.push_str(&text(block_delta.signature).unwrap_or_default());
                return;
            }
            (Some("citations_delta"), Kind::Text) => {
                out.extend(block_delta.citation.as_ref().and_then(cited));
                block.citations.extend(block_delta.citation);
                return;
            }
            (Some("input_json_delta"), Kind::VendorUse { .. }) => {
                block.text.push_str(&text(block_delta.partial_json).unwrap_or_default());
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
        let Some(open) = index.and_then(|index| self.by_index.get(&index)).map(|place| &mut self.blocks[*place]) else {
            return;
        };
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
        let is_wanted_back =
            |block: &Block| matches!(block.kind, Kind::Thinking | Kind::Redacted | Kind::VendorUse { .. } | Kind::VendorResult);
        if self.blocks.iter().any(is_wanted_back) {
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
            server_tool_use: new.server_tool_use.or(old.server_tool_use),
        };
        // What is charged counts, also where the reply does not show it.
        let charged = self.usage.server_tool_use.unwrap_or_default().web_search_requests.or_zero();
        let unseen = u32::try_from(charged.saturating_sub(self.searches)).unwrap_or(u32::MAX);
        if unseen > 0 {
            self.searches = charged;
            out.push_back(used(VendorTool::WebSearch, "", "", Vec::new(), unseen));
        }
        out.push_back(Delta::Usage(self.usage.total()));
    }
}

impl MessageReader {
    /// The use that a result belongs to, with what it gave.
    fn vendor_call(&self, result: &Map<String, Value>) -> Option<Delta> {
        let id = result.get("tool_use_id")?.as_str()?;
        let (name, input) = self.blocks.iter().find_map(|block| match &block.kind {
            Kind::VendorUse { id: own, name, .. } if own == id => Some((name, block.vendor_input())),
            _ => None,
        })?;
        let content = result.get("content").unwrap_or(&Value::Null);
        let failed = content["error_code"].as_str();
        let (tool, found) = match name.as_str() {
            "web_search" => (VendorTool::WebSearch, citations(content, "title", "url")),
            "web_fetch" => {
                let title = content["content"]["title"].as_str().unwrap_or_default();
                let page = content["url"].as_str().map(|url| Citation::new(shortened(title), shortened(url)));
                (VendorTool::WebFetch, page.into_iter().collect())
            }
            _ => (VendorTool::CodeExecution, Vec::new()),
        };
        let output = match failed {
            Some(code) => code.to_owned(),
            None => [first_text(content, &["stdout"]), first_text(content, &["stderr"])].concat(),
        };
        let asked = match first_text(&input, &["query", "url", "code", "command"]) {
            "" => input.to_string(),
            text => text.to_owned(),
        };
        Some(used(tool, &asked, &output, found, u32::from(failed.is_none())))
    }
}

/// A source that a text cites, if it names one.
fn cited(citation: &Value) -> Option<Delta> {
    vendor_tools::citation(citation, "title", "url").filter(|cited| !cited.url.is_empty()).map(Delta::Citation)
}

impl Block {
    /// The arguments of a tool that the vendor runs: in chunks, or with the beginning.
    fn vendor_input(&self) -> Value {
        match &self.kind {
            Kind::VendorUse { input, .. } if self.text.is_empty() => input.clone(),
            _ => arguments_object(&self.text),
        }
    }

    fn to_send(&self) -> Option<Value> {
        match &self.kind {
            Kind::Text if self.text.is_empty() => None,
            Kind::Text if self.citations.is_empty() => Some(json!({ "type": "text", "text": self.text })),
            Kind::Text => Some(json!({ "type": "text", "text": self.text, "citations": self.citations })),
            Kind::Thinking => Some(json!({ "type": "thinking", "thinking": self.text, "signature": self.signature })),
            Kind::Redacted => Some(json!({ "type": "redacted_thinking", "data": self.text })),
            Kind::Call { id, name, .. } => {
                Some(json!({ "type": "tool_use", "id": id, "name": name, "input": arguments_object(&self.text) }))
            }
            Kind::VendorUse { id, name, .. } => {
                let mut block = self.fields.clone();
                let own = json!({ "type": "server_tool_use", "id": id, "name": name, "input": self.vendor_input() });
                block.extend(own.as_object().cloned().unwrap_or_default());
                Some(block.into())
            }
            Kind::VendorResult => Some(self.fields.clone().into()),
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
        "pause_turn" => Finish::Paused,
        other => Finish::Other(shortened(other)),
    }
}
