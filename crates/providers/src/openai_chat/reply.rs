//! What the provider sends, chunk by chunk, as deltas: every deviation of the dialect that we know of ends here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use polis_domain::{Finish, Usage};
use polis_http::sse::Event;
use polis_ports::{Delta, ModelError, VendorTool};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::thoughts::Thoughts;
use crate::vendor_tools::{citation, citations, first_text, used};
use crate::wire::{ChunkError, Count, Ending, LooseText, Progress, Reader, echo, in_base_resp, reported_error, shortened};

/// Marks what this dialect wants back.
pub(super) const DIALECT: &str = "openai_chat";

/// How much of a text must come again before it is taken for a repetition.
const MIN_REPEATED_BYTES: usize = 8;

/// Reads the chunks of one reply.
#[derive(Debug, Default)]
pub(crate) struct ChatReader {
    calls: Vec<OpenCall>,
    /// The newest call of each index, and of each id.
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<Arc<str>, usize>,
    /// The vendor's name for the reply, from which calls without an id get one.
    reply_id: Option<String>,
    finish: Option<Finish>,
    refused: bool,
    /// Whether any text of the answer has come.
    has_text: bool,
    /// How many chunks have come, and whether one was a whole message instead.
    chunks: u32,
    has_message: bool,
    thoughts: Thoughts,
    /// Reasoning that OpenRouter wants back as it was, chunk by chunk.
    details: Vec<Value>,
    /// Searches of the vendor that were told.
    searches: u64,
}

/// A tool call whose chunks are coming in; its place in the list is its index for us.
#[derive(Debug)]
struct OpenCall {
    id: Arc<str>,
    arguments: String,
}

/// One chunk of a stream, or a whole completion: they differ only in `delta` and `message`. Most chunks have few of these fields
/// and are moved about, so what is rare is boxed and texts are left where they are.
#[derive(Debug, Deserialize)]
struct Chunk<'a> {
    /// Looked at once only, so it is not copied out of every chunk.
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Box<WireUsage>>,
    x_groq: Option<Box<GroqExtra>>,
    error: Option<Box<Value>>,
    base_resp: Option<Box<Value>>,
    /// What Perplexity has found, in every chunk.
    #[serde(borrow)]
    search_results: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct GroqExtra {
    usage: Option<Box<WireUsage>>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Count,
    #[serde(borrow)]
    delta: Option<ChunkDelta<'a>>,
    #[serde(borrow)]
    message: Option<Box<ChunkDelta<'a>>>,
    finish_reason: Option<&'a RawValue>,
    usage: Option<Box<WireUsage>>,
}

#[derive(Debug, Default, Deserialize)]
struct ChunkDelta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    refusal: Option<&'a RawValue>,
    reasoning_content: Option<&'a RawValue>,
    reasoning: Option<&'a RawValue>,
    reasoning_details: Option<Vec<Value>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<CallDelta<'a>>>,
    /// The sources that the text cites.
    annotations: Option<Vec<Value>>,
    /// What Groq's own tools did.
    executed_tools: Option<Vec<Value>>,
}

#[derive(Debug, Deserialize)]
struct CallDelta<'a> {
    #[serde(default)]
    index: Count,
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct FunctionDelta<'a> {
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    cached_tokens: Count,
    cache_creation_input_tokens: Count,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    prompt_cache_hit_tokens: Count,
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
struct PromptDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Count,
}

impl Reader for ChatReader {
    fn finish(&self) -> Option<Finish> {
        Some(match self.finish.clone()? {
            // Some vendors say `stop` although they want tools used.
            Finish::Stop if !self.calls.is_empty() => Finish::ToolCalls,
            Finish::Stop if self.refused => Finish::Refusal,
            finish => finish,
        })
    }

    fn read(&mut self, event: &Event<'_>, out: &mut VecDeque<Delta>) -> Result<Progress, ChunkError> {
        if event.data.trim() == "[DONE]" {
            return Ok(Progress::Last);
        }
        let chunk: Chunk<'_> = serde_json::from_str(&event.data)?;
        if let Some(error) = chunk.error {
            return Err(ChunkError::Reported(reported_error(&error)));
        }
        if let Some(error) = chunk.base_resp.as_deref().and_then(in_base_resp) {
            return Err(ChunkError::Reported(error));
        }
        if let Some(found) = chunk.search_results.filter(|found| self.searches == 0 && found.get().len() > 4) {
            self.searches = 1;
            let found = citations(&serde_json::from_str(found.get())?, "title", "url");
            out.push_back(used(VendorTool::WebSearch, "", "", found.clone(), 1));
            out.extend(found.into_iter().map(Delta::Citation));
        }
        let Some(choices) = chunk.choices else {
            out.extend(chunk.usage.as_deref().map(usage));
            return Ok(Progress::More);
        };
        if self.reply_id.is_none() {
            let id = chunk.id.and_then(|id| serde_json::from_str(id.get()).ok());
            self.reply_id = id.map(LooseText::into_text).filter(|id| !id.is_empty());
        }
        let mut counted = chunk.usage.or(chunk.x_groq.and_then(|extra| extra.usage));
        // We ask for one choice; who sends others as well would have their texts mixed.
        if let Some(choice) = choices.into_iter().find(|choice| choice.index.or_zero() == 0) {
            self.chunks = self.chunks.saturating_add(1);
            match (choice.delta, choice.message) {
                (None, None) => {}
                // Perplexity sends all of the text so far beside each chunk, and a whole reply beside an empty one.
                (Some(delta), Some(message)) if delta.is_empty() && self.chunks == 1 => self.message(*message, out)?,
                (Some(delta), _) => self.delta(delta, out)?,
                (None, Some(message)) => self.message(*message, out)?,
            }
            match text(choice.finish_reason)?.as_deref() {
                None | Some("") => {}
                Some("error") => {
                    let reason = "it reported an error without details".to_owned();
                    return Err(ChunkError::Reported(ModelError::Failed { reason, retry_after: None }));
                }
                Some(word) => {
                    self.finish = Some(finish(word));
                    self.echo(out);
                }
            }
            counted = counted.or(choice.usage);
        }
        if let Some(charged) = counted.as_ref().and_then(|counted| counted.server_tool_use) {
            let charged = charged.web_search_requests.or_zero();
            let unseen = u32::try_from(charged.saturating_sub(self.searches)).unwrap_or(u32::MAX);
            self.searches = charged.max(self.searches);
            out.extend((unseen > 0).then(|| used(VendorTool::WebSearch, "", "", Vec::new(), unseen)));
        }
        out.extend(counted.as_deref().map(usage));
        Ok(Progress::More)
    }

    /// Some never say why the model stopped. Their reply counts if it ended as it should and no call in it is torn.
    fn end(&mut self, ending: Ending, out: &mut VecDeque<Delta>) -> Option<Finish> {
        match std::mem::take(&mut self.thoughts).finish() {
            Ok(text) => self.write(text, out),
            Err(thought) => out.extend(filled(thought).map(Delta::Reasoning)),
        }
        if self.finish.is_some() {
            return self.finish();
        }
        let is_message = self.has_message && self.chunks == 1;
        let is_marked = ending == Ending::Marked || is_message;
        let is_whole = |call: &OpenCall| match call.arguments.trim() {
            "" => is_marked,
            arguments => arguments.starts_with('{') && serde_json::from_str::<IgnoredAny>(arguments).is_ok(),
        };
        let says_something = self.has_text || !self.calls.is_empty();
        if !says_something || ending == Ending::Cut && !is_message || !self.calls.iter().all(is_whole) {
            return None;
        }
        self.finish = Some(Finish::Stop);
        self.echo(out);
        self.finish()
    }
}

impl ChatReader {
    fn message(&mut self, message: ChunkDelta<'_>, out: &mut VecDeque<Delta>) -> Result<(), ChunkError> {
        self.has_message = true;
        self.delta(message, out)
    }

    fn write(&mut self, text: String, out: &mut VecDeque<Delta>) {
        if let Some(text) = filled(text) {
            self.has_text = true;
            out.push_back(Delta::Content(text));
        }
    }

    fn echo(&self, out: &mut VecDeque<Delta>) {
        if !self.details.is_empty() {
            out.push_back(echo(DIALECT, self.details.clone()));
        }
    }

    fn delta(&mut self, delta: ChunkDelta<'_>, out: &mut VecDeque<Delta>) -> Result<(), ChunkError> {
        // Some send the same reasoning under two names, and MiniMax only in the details.
        let reasoning = [text(delta.reasoning_content)?, text(delta.reasoning)?].into_iter().flatten().find_map(filled);
        let in_details: String =
            delta.reasoning_details.into_iter().flatten().filter_map(|detail| self.detail(detail)).collect();
        out.extend(reasoning.or(filled(in_details)).map(Delta::Reasoning));
        let [content, refusal] =
            [delta.content, delta.refusal].map(|content_part| content_part.map(LooseText::from_raw).transpose());
        let refusal = refusal?;
        self.refused |= refusal.as_ref().is_some_and(|refusal| !refusal.is_empty());
        for content_part in [content?, refusal].into_iter().flatten() {
            let (reasoning, text) = content_part.into_parts();
            out.extend(filled(reasoning).map(Delta::Reasoning));
            let (thoughts, text) = self.thoughts.push(text);
            out.extend(filled(thoughts).map(Delta::Reasoning));
            self.write(text, out);
        }
        let annotations = delta.annotations.iter().flatten();
        out.extend(annotations.filter_map(|cited| citation(&cited["url_citation"], "title", "url")).map(Delta::Citation));
        out.extend(delta.executed_tools.iter().flatten().filter_map(executed));
        for call in delta.tool_calls.into_iter().flatten() {
            out.push_back(self.call(call)?);
        }
        Ok(())
    }

    fn call(&mut self, delta: CallDelta<'_>) -> Result<Delta, ChunkError> {
        let word = |written| text(written).map(|text| text.filter(|text| !text.is_empty()).map(Arc::from));
        let function = delta.function.unwrap_or_default();
        let (mut id, name): (Option<Arc<str>>, Option<Arc<str>>) = (word(delta.id)?, word(function.name)?);
        let arguments = text(function.arguments)?.unwrap_or_default();
        let position = self.position(delta.index.get(), id.as_ref(), name.is_some()).unwrap_or_else(|| {
            let made: Arc<str> = id.clone().unwrap_or_else(|| self.make_id());
            id = Some(made.clone());
            let position = self.calls.len();
            // Some vendors give no index, some the same to all.
            self.by_index.extend(delta.index.get().map(|index| (index, position)));
            self.by_id.insert(made.clone(), position);
            self.calls.push(OpenCall { id: made, arguments: String::new() });
            position
        });
        self.calls[position].arguments.push_str(&arguments);
        Ok(Delta::ToolCall { index: u32::try_from(position).unwrap_or(u32::MAX), id, name, arguments })
    }

    /// An id for a call that has none, unlike those of other replies.
    fn make_id(&self) -> Arc<str> {
        let position = self.calls.len();
        match &self.reply_id {
            Some(reply) => format!("call_{reply}_{position}").into(),
            None => format!("call_{position}").into(),
        }
    }

    /// Joins a chunk of reasoning with the one that it goes on with, and gives the text that it adds.
    fn detail(&mut self, mut delta: Value) -> Option<String> {
        let same = |other: &&mut Value| ["index", "type"].iter().all(|key| other[key] == delta[key]);
        let has_place = delta.get("index").is_some();
        let Some(open) = self.details.iter_mut().rev().take_while(|_| has_place).find(same) else {
            let text = delta["text"].as_str().map(str::to_owned);
            self.details.push(delta);
            return text;
        };
        let mut added = None;
        for (name, value) in delta.as_object_mut().into_iter().flatten() {
            match (open.get_mut(name), value) {
                (Some(Value::String(text)), Value::String(more)) if ["text", "summary", "data"].contains(&&**name) => {
                    // MiniMax repeats all of the text so far in each chunk.
                    let so_far = (text.len() >= MIN_REPEATED_BYTES).then_some(text.as_str());
                    let new = so_far.and_then(|so_far| more.strip_prefix(so_far)).unwrap_or(more).to_owned();
                    text.push_str(&new);
                    if name == "text" {
                        added = Some(new);
                    }
                }
                (_, Value::Null) => {}
                (_, value) => open[name.as_str()] = value.take(),
            }
        }
        added
    }

    /// Which open call a chunk goes on with; none if it begins a new one.
    fn position(&self, index: Option<u64>, id: Option<&Arc<str>>, named: bool) -> Option<usize> {
        let is_other = |call: &OpenCall| named && id.is_some_and(|id| call.id != *id);
        match (index, id) {
            (Some(index), _) => {
                let position = *self.by_index.get(&index)?;
                // Some give index 0 to every call: another id with another name is another call.
                (!is_other(&self.calls[position])).then_some(position)
            }
            (None, Some(id)) => self.by_id.get(id).copied(),
            (None, None) if named => None,
            (None, None) => self.calls.len().checked_sub(1),
        }
    }
}

impl ChunkDelta<'_> {
    /// Whether nothing is in it that belongs to a reply.
    fn is_empty(&self) -> bool {
        let texts = [self.content, self.refusal, self.reasoning_content, self.reasoning];
        let is_blank = |raw: &RawValue| matches!(raw.get(), "\"\"" | "null" | "[]");
        let has_no = |list: Option<usize>| list.is_none_or(|length| length == 0);
        texts.into_iter().flatten().all(is_blank)
            && has_no(self.tool_calls.as_ref().map(Vec::len))
            && has_no(self.reasoning_details.as_ref().map(Vec::len))
    }
}

/// A use of one of Groq's tools; its beginning, without a result, is none.
fn executed(tool: &Value) -> Option<Delta> {
    let output = tool["output"].as_str()?;
    let arguments = first_text(tool, &["arguments"]);
    let given: Value = serde_json::from_str(arguments).unwrap_or_default();
    let asked = match first_text(&given, &["query", "url", "code"]) {
        "" => arguments,
        text => text,
    };
    Some(match first_text(tool, &["type", "name"]) {
        "python" | "code_interpreter" => used(VendorTool::CodeExecution, asked, output, Vec::new(), 1),
        "visit" | "browser.open" => used(VendorTool::WebFetch, asked, "", Vec::new(), 1),
        _ => used(VendorTool::WebSearch, asked, "", citations(&tool["search_results"]["results"], "title", "url"), 1),
    })
}

/// A text, unless it is empty.
fn filled(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The text of something that should be one.
fn text(written: Option<&RawValue>) -> Result<Option<String>, serde_json::Error> {
    Ok(written.map(LooseText::from_raw).transpose()?.map(LooseText::into_text))
}

fn finish(word: &str) -> Finish {
    match word {
        "stop" | "end_turn" | "eos" | "stop_sequence" => Finish::Stop,
        "tool_calls" | "tool_use" | "function_call" => Finish::ToolCalls,
        "length" | "max_tokens" => Finish::Length,
        "content_filter" | "sensitive" => Finish::ContentFilter,
        "refusal" => Finish::Refusal,
        other => Finish::Other(shortened(other)),
    }
}

fn usage(usage: &WireUsage) -> Delta {
    let prompt = usage.prompt_tokens_details.unwrap_or_default();
    let reasoning_tokens = usage.completion_tokens_details.unwrap_or_default().reasoning_tokens.or_zero();
    let input_tokens = usage.prompt_tokens.or_zero();
    let mut output_tokens = usage.completion_tokens.or_zero();
    // xAI counts reasoning beside the output instead of in it.
    if usage.total_tokens.get() == Some(input_tokens.saturating_add(output_tokens).saturating_add(reasoning_tokens)) {
        output_tokens = output_tokens.saturating_add(reasoning_tokens);
    }
    let cached = prompt.cached_tokens.or(usage.prompt_cache_hit_tokens).or(usage.cached_tokens);
    Delta::Usage(Usage {
        input_tokens,
        output_tokens,
        cached_tokens: cached.or_zero(),
        reasoning_tokens,
        cache_write_tokens: prompt.cache_write_tokens.or(usage.cache_creation_input_tokens).or_zero(),
        ..Usage::default()
    })
}
