//! What Gemini sends, chunk by chunk or as one response, as deltas.

use std::collections::VecDeque;

use polis_domain::{Finish, Usage};
use polis_http::sse::Event;
use polis_ports::{Delta, ModelError, VendorTool};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::vendor_tools::{citation, first_text, used};
use crate::wire::{ChunkError, Count, Ending, LooseText, Progress, Reader, echo, reported_error, shortened};

/// Marks what this dialect wants back.
pub(super) const DIALECT: &str = "gemini";

/// The parts in which tools of the vendor stand.
const VENDOR_PARTS: [&str; 4] = ["executableCode", "codeExecutionResult", "toolCall", "toolResponse"];

/// Reads the chunks of one reply.
#[derive(Debug, Default)]
pub(crate) struct ContentReader {
    calls: u32,
    has_text: bool,
    finish: Option<Finish>,
    /// The parts so far, as they may have to be sent back.
    parts: Vec<Value>,
    is_signed: bool,
    /// Whether a tool of the vendor has a part in the reply.
    has_vendor_part: bool,
    /// Code of which the result has not come yet.
    code: String,
    /// Searches and pages that were told: later chunks repeat them.
    told: Vec<String>,
}

/// One chunk, or the whole response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    candidates: Option<Vec<Candidate>>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<WireUsage>,
    response_id: Option<LooseText>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<LooseText>,
    finish_message: Option<LooseText>,
    grounding_metadata: Option<Value>,
    url_context_metadata: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Content {
    parts: Option<Vec<Map<String, Value>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<LooseText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireUsage {
    prompt_token_count: Count,
    tool_use_prompt_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    cached_content_token_count: Count,
}

impl Reader for ContentReader {
    fn finish(&self) -> Option<Finish> {
        match self.finish.clone()? {
            Finish::Stop if self.calls > 0 => Some(Finish::ToolCalls),
            finish => Some(finish),
        }
    }

    fn read(&mut self, event: &Event<'_>, out: &mut VecDeque<Delta>) -> Result<Progress, ChunkError> {
        let chunk: Chunk = serde_json::from_str(&event.data)?;
        if let Some(error) = chunk.error {
            return Err(ChunkError::Reported(reported_error(&error)));
        }
        let reply_id = chunk.response_id.map(LooseText::into_text);
        if let Some(candidate) = chunk.candidates.into_iter().flatten().next() {
            for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
                self.part(part, reply_id.as_deref(), out);
            }
            self.grounded(candidate.grounding_metadata.as_ref().unwrap_or(&Value::Null), out);
            self.fetched(candidate.url_context_metadata.as_ref().unwrap_or(&Value::Null), out);
            let word = candidate.finish_reason.map(LooseText::into_text).unwrap_or_default();
            if word == "MALFORMED_FUNCTION_CALL" {
                let detail = candidate.finish_message.map(LooseText::into_text).unwrap_or_default();
                let reason = shortened(format!("it could not write its tool call: {detail}").trim_end_matches([':', ' ']));
                return Err(ChunkError::Reported(ModelError::Failed { reason, retry_after: None }));
            }
            if !word.is_empty() {
                self.stopped(finish(&word), out);
            }
        }
        if chunk.prompt_feedback.and_then(|feedback| feedback.block_reason).is_some_and(|reason| !reason.is_empty()) {
            self.finish = Some(Finish::ContentFilter);
        }
        out.extend(chunk.usage_metadata.map(usage));
        Ok(Progress::More)
    }

    /// Calls come whole. A complete body with text or calls is a reply, although it does not say why the model stopped.
    fn end(&mut self, ending: Ending, out: &mut VecDeque<Delta>) -> Option<Finish> {
        if self.finish.is_none() && ending != Ending::Cut && (self.has_text || self.calls > 0) {
            self.stopped(Finish::Stop, out);
        }
        self.finish()
    }
}

impl ContentReader {
    fn stopped(&mut self, finish: Finish, out: &mut VecDeque<Delta>) {
        self.finish = Some(finish);
        if self.is_signed || self.has_vendor_part {
            out.push_back(echo(DIALECT, self.parts.clone()));
        }
    }

    fn part(&mut self, part: Map<String, Value>, reply: Option<&str>, out: &mut VecDeque<Delta>) {
        let text = part.get("text").and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        if part.get("thought") == Some(&Value::Bool(true)) {
            out.extend(text.map(Delta::Reasoning));
            return;
        }
        let signed = part.contains_key("thoughtSignature");
        self.is_signed |= signed;
        if let Some(call) = part.get("functionCall") {
            out.push_back(called(call, self.calls, reply));
            self.calls += 1;
            self.parts.push(part.into());
        } else if let Some(text) = text {
            // Chunks of one text are sent back as one.
            match self.parts.last_mut() {
                Some(Value::Object(open)) if !signed && open.len() == 1 && open.contains_key("text") => {
                    if let Some(Value::String(open)) = open.get_mut("text") {
                        open.push_str(&text);
                    }
                }
                _ => self.parts.push(part.into()),
            }
            self.has_text = true;
            out.push_back(Delta::Content(text));
        } else if VENDOR_PARTS.iter().any(|kind| part.contains_key(*kind)) {
            self.has_vendor_part = true;
            if let Some(code) = part.get("executableCode") {
                first_text(code, &["code"]).clone_into(&mut self.code);
            }
            if let Some(result) = part.get("codeExecutionResult") {
                let code = std::mem::take(&mut self.code);
                out.push_back(used(VendorTool::CodeExecution, &code, first_text(result, &["output"]), Vec::new(), 1));
            }
            self.parts.push(part.into());
        } else if signed && part.contains_key("text") {
            self.parts.push(part.into());
        }
    }

    /// Takes the searches of the vendor and what they found.
    fn grounded(&mut self, metadata: &Value, out: &mut VecDeque<Delta>) {
        let chunks = || metadata["groundingChunks"].as_array().into_iter().flatten();
        let pages: Vec<_> = chunks().filter_map(|chunk| citation(&chunk["web"], "title", "uri")).collect();
        for query in metadata["webSearchQueries"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if self.is_new(query) {
                out.push_back(used(VendorTool::WebSearch, query, "", pages.clone(), 1));
            }
        }
        let files: Vec<_> = chunks().filter_map(|chunk| citation(&chunk["retrievedContext"], "title", "uri")).collect();
        if !files.is_empty() && self.is_new("file_search") {
            out.push_back(used(VendorTool::FileSearch, "", "", files.clone(), 1));
        }
        out.extend(pages.into_iter().chain(files).map(Delta::Citation));
    }

    /// Takes the pages that the vendor read.
    fn fetched(&mut self, metadata: &Value, out: &mut VecDeque<Delta>) {
        for page in metadata["urlMetadata"].as_array().into_iter().flatten() {
            let (url, status) = (first_text(page, &["retrievedUrl"]), first_text(page, &["urlRetrievalStatus"]));
            if self.is_new(url) {
                let failed = if status.ends_with("SUCCESS") { "" } else { status };
                out.push_back(used(VendorTool::WebFetch, url, failed, Vec::new(), u32::from(failed.is_empty())));
            }
        }
    }

    fn is_new(&mut self, told: &str) -> bool {
        let is_new = !self.told.iter().any(|known| known == told);
        self.told.extend(is_new.then(|| told.to_owned()));
        is_new
    }
}

/// Calls come whole and mostly without an id, so they get one unlike those of other replies.
fn called(call: &Value, index: u32, reply: Option<&str>) -> Delta {
    let own = call["id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
    let id = own.unwrap_or_else(|| match reply {
        Some(reply) => format!("call_{reply}_{index}"),
        None => format!("call_{index}"),
    });
    let arguments = match &call["args"] {
        Value::Null => "{}".to_owned(),
        args => args.to_string(),
    };
    Delta::ToolCall { index, id: Some(id.into()), name: Some(call["name"].as_str().unwrap_or_default().into()), arguments }
}

fn finish(word: &str) -> Finish {
    match word {
        "STOP" => Finish::Stop,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => Finish::ContentFilter,
        other => Finish::Other(shortened(other)),
    }
}

/// Gemini counts thoughts beside the output, and what its own tools read beside the input.
fn usage(usage: WireUsage) -> Delta {
    let reasoning_tokens = usage.thoughts_token_count.or_zero();
    Delta::Usage(Usage {
        input_tokens: usage.prompt_token_count.or_zero().saturating_add(usage.tool_use_prompt_token_count.or_zero()),
        output_tokens: usage.candidates_token_count.or_zero().saturating_add(reasoning_tokens),
        cached_tokens: usage.cached_content_token_count.or_zero(),
        reasoning_tokens,
        ..Usage::default()
    })
}
