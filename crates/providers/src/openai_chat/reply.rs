//! What the provider sends, chunk by chunk, as deltas: every deviation of the dialect that we know of ends here.

use std::collections::VecDeque;
use std::sync::Arc;

use polis_domain::{Finish, Usage};
use polis_http::sse::Event;
use polis_ports::{Delta, ModelError};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::{ChunkError, LooseText, Progress, Reader, echo, reported_error, shortened};

/// Marks what this dialect wants back.
pub(super) const DIALECT: &str = "openai_chat";

/// Reads the chunks of one reply.
#[derive(Debug, Default)]
pub(crate) struct ChatReader {
    calls: Vec<OpenCall>,
    /// The vendor's name for the reply, from which calls without an id get one.
    reply_id: Option<String>,
    finish: Option<Finish>,
    refused: bool,
    /// Reasoning that OpenRouter wants back as it was, chunk by chunk.
    details: Vec<Value>,
}

/// A tool call whose chunks are coming in; its place in the list is its index for us.
#[derive(Debug)]
struct OpenCall {
    /// The vendor's index: some give none, some the same to all.
    index: Option<u64>,
    id: Option<Arc<str>>,
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
    code: Option<Box<Value>>,
    message: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct GroqExtra {
    usage: Option<Box<WireUsage>>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
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
}

#[derive(Debug, Deserialize)]
struct CallDelta<'a> {
    index: Option<u64>,
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
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
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
        let Some(choices) = chunk.choices else {
            if let (Some(message), None) = (chunk.message, &chunk.usage) {
                let error = serde_json::json!({ "message": LooseText::from_raw(message)?.into_text(), "code": chunk.code });
                return Err(ChunkError::Reported(reported_error(&error)));
            }
            out.extend(chunk.usage.as_deref().map(usage));
            return Ok(Progress::More);
        };
        if self.reply_id.is_none() {
            let id = chunk.id.and_then(|id| serde_json::from_str(id.get()).ok());
            self.reply_id = id.map(LooseText::into_text).filter(|id| !id.is_empty());
        }
        let mut counted = chunk.usage.or(chunk.x_groq.and_then(|extra| extra.usage));
        if let Some(choice) = choices.into_iter().next() {
            if let Some(delta) = choice.delta.or(choice.message.map(|delta| *delta)) {
                self.delta(delta, out)?;
            }
            match text(choice.finish_reason)?.as_deref() {
                None | Some("") => {}
                Some("error") => {
                    let reason = "it reported an error without details".to_owned();
                    return Err(ChunkError::Reported(ModelError::Failed { reason, retry_after: None }));
                }
                Some(word) => {
                    self.finish = Some(finish(word));
                    if !self.details.is_empty() {
                        out.push_back(echo(DIALECT, self.details.clone()));
                    }
                }
            }
            counted = counted.or(choice.usage);
        }
        out.extend(counted.as_deref().map(usage));
        Ok(Progress::More)
    }
}

impl ChatReader {
    fn delta(&mut self, delta: ChunkDelta<'_>, out: &mut VecDeque<Delta>) -> Result<(), ChunkError> {
        let filled = |text: &String| !text.is_empty();
        // Some send the same reasoning under both names.
        let reasoning = [text(delta.reasoning_content)?, text(delta.reasoning)?].into_iter().flatten();
        out.extend(reasoning.into_iter().find(filled).map(Delta::Reasoning));
        for detail in delta.reasoning_details.into_iter().flatten() {
            self.detail(detail);
        }
        let [content, refusal] =
            [delta.content, delta.refusal].map(|content_part| content_part.map(LooseText::from_raw).transpose());
        let refusal = refusal?;
        self.refused |= refusal.as_ref().is_some_and(|refusal| !refusal.is_empty());
        for content_part in [content?, refusal].into_iter().flatten() {
            let (reasoning, text) = content_part.into_parts();
            out.extend(Some(reasoning).filter(filled).map(Delta::Reasoning));
            out.extend(Some(text).filter(filled).map(Delta::Content));
        }
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
        let position = self.position(delta.index, id.as_ref(), name.is_some()).unwrap_or_else(|| {
            let made: Arc<str> = id.clone().unwrap_or_else(|| self.make_id());
            id = Some(made.clone());
            self.calls.push(OpenCall { index: delta.index, id: Some(made) });
            self.calls.len() - 1
        });
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

    /// Joins a chunk of reasoning with the one that it goes on with.
    fn detail(&mut self, mut delta: Value) {
        let same = |other: &Value| ["index", "type"].iter().all(|key| other[key] == delta[key]) && delta.get("index").is_some();
        let Some(open) = self.details.iter_mut().find(|other| same(other)) else {
            return self.details.push(delta);
        };
        for (name, value) in delta.as_object_mut().into_iter().flatten() {
            match (open.get_mut(name), value) {
                (Some(Value::String(text)), Value::String(more)) if ["text", "summary", "data"].contains(&&**name) => {
                    text.push_str(more);
                }
                (_, Value::Null) => {}
                (_, value) => open[name.as_str()] = value.take(),
            }
        }
    }

    /// Which open call a chunk goes on with; none if it begins a new one.
    fn position(&self, index: Option<u64>, id: Option<&Arc<str>>, named: bool) -> Option<usize> {
        let is_other = |call: &OpenCall| named && id.is_some() && call.id.as_ref() != id;
        match (index, id) {
            (Some(_), _) => {
                let position = self.calls.iter().rposition(|call| call.index == index)?;
                // Some give index 0 to every call: another id with another name is another call.
                (!is_other(&self.calls[position])).then_some(position)
            }
            (None, Some(_)) => self.calls.iter().rposition(|call| call.id.as_ref() == id),
            (None, None) if named => None,
            (None, None) => self.calls.len().checked_sub(1),
        }
    }
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
    let (prompt, reasoning) = (usage.prompt_tokens_details.as_ref(), usage.completion_tokens_details.as_ref());
    let reasoning_tokens = reasoning.and_then(|details| details.reasoning_tokens).unwrap_or_default();
    let input_tokens = usage.prompt_tokens.unwrap_or_default();
    let mut output_tokens = usage.completion_tokens.unwrap_or_default();
    // xAI counts reasoning beside the output instead of in it.
    if usage.total_tokens == Some(input_tokens.saturating_add(output_tokens).saturating_add(reasoning_tokens)) {
        output_tokens = output_tokens.saturating_add(reasoning_tokens);
    }
    let cached = prompt.and_then(|prompt| prompt.cached_tokens).or(usage.prompt_cache_hit_tokens).or(usage.cached_tokens);
    let written = prompt.and_then(|prompt| prompt.cache_write_tokens).or(usage.cache_creation_input_tokens);
    Delta::Usage(Usage {
        input_tokens,
        output_tokens,
        cached_tokens: cached.unwrap_or_default(),
        reasoning_tokens,
        cache_write_tokens: written.unwrap_or_default(),
        ..Usage::default()
    })
}
