//! What the provider sends, chunk by chunk, as deltas: every deviation of the dialect that we know of ends here.

use std::collections::VecDeque;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HeaderMap, LOCATION};
use polis_domain::{Finish, Usage};
use polis_ports::{Delta, ModelError};
use serde::Deserialize;
use serde_json::Value;

use super::loose::{self, Loose};
use crate::http;

/// Longest message of a provider that is passed on, in characters.
const MAX_REASON_CHARS: usize = 500;

/// Reads the chunks of one reply.
#[derive(Debug, Default)]
pub(super) struct ReplyReader {
    calls: Vec<OpenCall>,
    /// Why the model stopped, once it has said so: only then is the reply whole.
    finish: Option<Finish>,
}

/// A tool call whose pieces are coming in; its place in the list is its index for us.
#[derive(Debug)]
struct OpenCall {
    /// The vendor's index: some give none, some the same to all.
    index: Option<u64>,
    id: Option<Arc<str>>,
}

/// One chunk of a stream, or a whole completion: they differ only in `delta` and `message`.
#[derive(Debug, Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<WireUsage>,
    x_groq: Option<Box<GroqExtra>>,
    error: Option<Value>,
    code: Option<Value>,
    message: Option<Loose>,
}

#[derive(Debug, Deserialize)]
struct GroqExtra {
    usage: Option<WireUsage>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    delta: Option<Piece>,
    // Boxed, as most chunks have neither, and every chunk is moved about.
    message: Option<Box<Piece>>,
    finish_reason: Option<Loose>,
    usage: Option<Box<WireUsage>>,
}

#[derive(Debug, Default, Deserialize)]
struct Piece {
    content: Option<Loose>,
    refusal: Option<Loose>,
    reasoning_content: Option<Loose>,
    reasoning: Option<Loose>,
    tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Debug, Deserialize)]
struct CallPiece {
    index: Option<u64>,
    id: Option<Loose>,
    function: Option<FunctionPiece>,
}

#[derive(Debug, Default, Deserialize)]
struct FunctionPiece {
    name: Option<Loose>,
    arguments: Option<Loose>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl ReplyReader {
    /// Whether the model has said why it stopped.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// How the reply ends; none if it never came to its end.
    pub(super) fn finish(&mut self) -> Option<Finish> {
        let finish = self.finish.take()?;
        // Some vendors say `stop` although they want tools used.
        let wants_tools = finish == Finish::Stop && !self.calls.is_empty();
        Some(if wants_tools { Finish::ToolCalls } else { finish })
    }

    /// Reads one chunk; an error means that the provider reports one, or that nobody can read this.
    pub(super) fn read(&mut self, json: &str, out: &mut VecDeque<Delta>) -> Result<(), ChunkError> {
        let chunk: Chunk = serde_json::from_str(json).map_err(|error| ChunkError::Unreadable(error.to_string()))?;
        if let Some(error) = chunk.error {
            return Err(ChunkError::Reported(reported(&error)));
        }
        let Some(choices) = chunk.choices else {
            if let (Some(message), None) = (chunk.message, &chunk.usage) {
                let error = serde_json::json!({ "message": message.into_text(), "code": chunk.code });
                return Err(ChunkError::Reported(reported(&error)));
            }
            out.extend(chunk.usage.map(usage));
            return Ok(());
        };
        let mut counted = chunk.usage.or(chunk.x_groq.and_then(|extra| extra.usage));
        if let Some(choice) = choices.into_iter().next() {
            if let Some(piece) = choice.delta.or(choice.message.map(|piece| *piece)) {
                self.piece(piece, out);
            }
            match choice.finish_reason.map(Loose::into_text).as_deref() {
                None | Some("") => {}
                Some("error") => {
                    let reason = "it says that it ended in an error, and not in which".to_owned();
                    return Err(ChunkError::Reported(ModelError::Failed { reason, retry_after: None }));
                }
                Some(word) => self.finish = Some(finish(word)),
            }
            counted = counted.or(choice.usage.map(|usage| *usage));
        }
        out.extend(counted.map(usage));
        Ok(())
    }

    fn piece(&mut self, piece: Piece, out: &mut VecDeque<Delta>) {
        let filled = |text: &String| !text.is_empty();
        // Some send the same reasoning under both names.
        let reasoning = [piece.reasoning_content, piece.reasoning].into_iter().flatten();
        if let Some(text) = reasoning.map(Loose::into_text).find(filled) {
            out.push_back(Delta::Reasoning(text));
        }
        for said in [piece.content, piece.refusal].into_iter().flatten() {
            let (reasoning, text) = said.into_parts();
            out.extend(Some(reasoning).filter(filled).map(Delta::Reasoning));
            out.extend(Some(text).filter(filled).map(Delta::Content));
        }
        for call in piece.tool_calls.into_iter().flatten() {
            out.push_back(self.call(call));
        }
    }

    fn call(&mut self, piece: CallPiece) -> Delta {
        let word = |text: Option<Loose>| text.map(Loose::into_text).filter(|text| !text.is_empty()).map(Arc::from);
        let function = piece.function.unwrap_or_default();
        let (mut id, name): (Option<Arc<str>>, Option<Arc<str>>) = (word(piece.id), word(function.name));
        let arguments = function.arguments.map(Loose::into_text).unwrap_or_default();
        let place = self.place(piece.index, id.as_ref(), name.is_some()).unwrap_or_else(|| {
            let made: Arc<str> = id.clone().unwrap_or_else(|| format!("call_{}", self.calls.len()).into());
            id = Some(made.clone());
            self.calls.push(OpenCall { index: piece.index, id: Some(made) });
            self.calls.len() - 1
        });
        Delta::ToolCall { index: u32::try_from(place).unwrap_or(u32::MAX), id, name, arguments }
    }

    /// Which open call a piece goes on with; none if it begins a new one.
    fn place(&self, index: Option<u64>, id: Option<&Arc<str>>, named: bool) -> Option<usize> {
        let is_other = |call: &OpenCall| named && id.is_some() && call.id.as_ref() != id;
        match (index, id) {
            (Some(_), _) => {
                let place = self.calls.iter().rposition(|call| call.index == index)?;
                // Some give index 0 to every call: another id with another name is another call.
                (!is_other(&self.calls[place])).then_some(place)
            }
            (None, Some(_)) => self.calls.iter().rposition(|call| call.id.as_ref() == id),
            (None, None) if named => None,
            (None, None) => self.calls.len().checked_sub(1),
        }
    }
}

/// Why a chunk gave no deltas.
#[derive(Debug)]
pub(super) enum ChunkError {
    /// It is an error that the provider reports.
    Reported(ModelError),
    /// It is not what this dialect sends.
    Unreadable(String),
}

/// What the provider said in the body of an unsuccessful response.
pub(super) fn reason(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> String {
    if let Some(to) = headers.get(LOCATION).filter(|_| status.is_redirection()) {
        return format!("{status}: it moved to {}; set the base URL to that", String::from_utf8_lossy(to.as_bytes()));
    }
    let text = String::from_utf8_lossy(body);
    let said = match serde_json::from_str::<Value>(&text) {
        Ok(json) => message(&json).unwrap_or_else(|| json.to_string()),
        Err(_) => text.trim().to_owned(),
    };
    if said.is_empty() { status.to_string() } else { format!("{status}: {}", shortened(&said)) }
}

/// An error that came inside a stream that had begun well.
fn reported(error: &Value) -> ModelError {
    let said = message(error).unwrap_or_else(|| error.to_string());
    let reason = shortened(&said);
    let words = ["code", "type", "status"].map(|key| error.get(key).map(loose::text).unwrap_or_default().to_lowercase());
    let status = words.iter().find_map(|word| StatusCode::from_bytes(word.as_bytes()).ok());
    if let Some(status) = status.filter(|status| status.as_u16() >= 400) {
        return http::refusal(status, &HeaderMap::new(), reason);
    }
    let has = |parts: &[&str]| words.iter().any(|word| parts.iter().any(|part| word.contains(part)));
    if has(&["rate_limit", "too_many", "throttl"]) {
        ModelError::Throttled { reason, retry_after: None }
    } else if has(&["invalid", "auth", "permission", "not_found", "context_length", "quota", "policy", "filter"]) {
        ModelError::Rejected { reason }
    } else {
        ModelError::Failed { reason, retry_after: None }
    }
}

/// The words for people in the many shapes of an error.
fn message(error: &Value) -> Option<String> {
    if let Value::String(text) = error {
        return Some(text.clone());
    }
    let inner = ["error", "message", "detail", "errors"].into_iter().find_map(|key| error.get(key))?;
    Some(message(inner).unwrap_or_else(|| inner.to_string()))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_REASON_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn finish(word: &str) -> Finish {
    match word {
        "stop" | "end_turn" | "eos" | "stop_sequence" => Finish::Stop,
        "tool_calls" | "tool_use" | "function_call" => Finish::ToolCalls,
        "length" | "max_tokens" => Finish::Length,
        "content_filter" | "sensitive" => Finish::ContentFilter,
        other => Finish::Other(shortened(other)),
    }
}

fn usage(usage: WireUsage) -> Delta {
    let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
    let reasoning = usage.completion_tokens_details.and_then(|details| details.reasoning_tokens);
    Delta::Usage(Usage {
        input_tokens: usage.prompt_tokens.unwrap_or_default(),
        output_tokens: usage.completion_tokens.unwrap_or_default(),
        cached_tokens: cached.or(usage.prompt_cache_hit_tokens).unwrap_or_default(),
        reasoning_tokens: reasoning.unwrap_or_default(),
        ..Usage::default()
    })
}
