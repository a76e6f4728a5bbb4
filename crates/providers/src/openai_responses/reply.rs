//! What OpenAI's responses send, event by event or as one response, as deltas.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use polis_domain::{Finish, Usage};
use polis_http::sse::Event;
use polis_ports::{Citation, Delta, ModelError, VendorTool};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::vendor_tools::{citation, citations, first_text, used};
use crate::wire::{ChunkError, Count, Ending, LooseText, Progress, Reader, echo, reported_error, shortened};

/// Marks what this dialect wants back.
pub(super) const DIALECT: &str = "openai_responses";

/// Reads the events of one response.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    calls: Vec<OpenCall>,
    call_ids: BTreeSet<String>,
    /// The newest call in each place of the output.
    by_place: BTreeMap<Option<u64>, usize>,
    refused: bool,
    /// Whether text or reasoning came in chunks; then the items at the end only repeat it.
    streamed: bool,
    /// Whether any text of the answer has come.
    has_text: bool,
    /// The items that have begun and not ended, by place.
    open_items: BTreeSet<Option<u64>>,
    finish: Option<Finish>,
    /// Finished items, as they may have to be sent back.
    items: Vec<Value>,
    /// The sandboxes in which the vendor ran code; each is charged once.
    containers: Vec<String>,
}

/// A tool call whose chunks are coming in; its place in the list is its index for us.
#[derive(Debug)]
struct OpenCall {
    has_arguments: bool,
}

/// One event; a whole response has its fields at the top.
#[derive(Debug, Deserialize)]
struct StreamEvent {
    r#type: Option<String>,
    #[serde(default)]
    output_index: Count,
    delta: Option<LooseText>,
    arguments: Option<LooseText>,
    item: Option<Value>,
    response: Option<Response>,
    error: Option<Value>,
    code: Option<Value>,
    message: Option<LooseText>,
    object: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Response {
    status: Option<String>,
    output: Option<Vec<Value>>,
    incomplete_details: Option<Incomplete>,
    error: Option<Value>,
    usage: Option<WireUsage>,
    /// The addresses of all sources, as xAI lists them.
    citations: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Incomplete {
    reason: Option<LooseText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    input_tokens: Count,
    output_tokens: Count,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Count,
}

impl Reader for ResponseReader {
    fn finish(&self) -> Option<Finish> {
        self.finish.clone()
    }

    fn read(&mut self, event: &Event<'_>, out: &mut VecDeque<Delta>) -> Result<Progress, ChunkError> {
        let event_data: StreamEvent = serde_json::from_str(&event.data)?;
        let kind = event_data.r#type.as_deref().unwrap_or(&event.name);
        match kind {
            "response.output_text.delta" => {
                self.has_text = true;
                self.push_text(event_data.delta, Delta::Content, out);
            }
            "response.refusal.delta" => {
                self.refused = true;
                self.push_text(event_data.delta, Delta::Content, out);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.push_text(event_data.delta, Delta::Reasoning, out);
            }
            "response.output_item.added" => {
                self.open_items.insert(event_data.output_index.get());
                if let Some(item) = event_data.item.filter(is_call) {
                    self.begin(event_data.output_index.get(), &item, out);
                }
            }
            "response.function_call_arguments.delta" => {
                self.more(event_data.output_index.get(), event_data.delta.map(LooseText::into_text).unwrap_or_default(), out);
            }
            "response.function_call_arguments.done" => {
                self.settle(
                    event_data.output_index.get(),
                    event_data.arguments.map(LooseText::into_text).unwrap_or_default(),
                    out,
                );
            }
            "response.output_item.done" => {
                self.open_items.remove(&event_data.output_index.get());
                if let Some(item) = event_data.item {
                    self.item(event_data.output_index.get(), item, out);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "response.done" => {
                if let Some(response) = event_data.response {
                    return self.complete(response, out);
                }
            }
            "error" => {
                let error = event_data.error.unwrap_or_else(
                    || json!({ "message": event_data.message.map(LooseText::into_text), "code": event_data.code }),
                );
                return Err(ChunkError::Reported(reported_error(&error)));
            }
            // A whole response, or a bare error.
            "" => {
                if event_data.object.as_deref() == Some("response") {
                    return self.complete(serde_json::from_str(&event.data)?, out);
                }
                if let Some(error) = event_data.error {
                    return Err(ChunkError::Reported(reported_error(&error)));
                }
            }
            _ => {}
        }
        Ok(Progress::More)
    }

    /// A complete body in which every item has ended is a reply, although the response itself was never called complete.
    fn end(&mut self, ending: Ending, out: &mut VecDeque<Delta>) -> Option<Finish> {
        let says_something = self.has_text || self.refused || !self.calls.is_empty();
        let has_ended = ending != Ending::Cut && self.open_items.is_empty() && !self.items.is_empty();
        if self.finish.is_none() && has_ended && says_something {
            self.echo(out);
            self.finish = Some(self.completed());
        }
        self.finish()
    }
}

impl ResponseReader {
    /// What a completed response has ended with.
    fn completed(&self) -> Finish {
        match (self.refused, self.calls.is_empty()) {
            (true, _) => Finish::Refusal,
            (false, false) => Finish::ToolCalls,
            (false, true) => Finish::Stop,
        }
    }

    fn echo(&mut self, out: &mut VecDeque<Delta>) {
        if self.items.iter().any(|item| item["encrypted_content"].is_string()) {
            out.push_back(echo(DIALECT, std::mem::take(&mut self.items)));
        }
    }

    fn push_text(&mut self, text: Option<LooseText>, delta: fn(String) -> Delta, out: &mut VecDeque<Delta>) {
        if let Some(text) = text.map(LooseText::into_text).filter(|text| !text.is_empty()) {
            self.streamed = true;
            out.push_back(delta(text));
        }
    }

    fn begin(&mut self, output_index: Option<u64>, item: &Value, out: &mut VecDeque<Delta>) {
        let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
        let (id, arguments) = (text("call_id"), text("arguments"));
        let index = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        self.by_place.insert(output_index, self.calls.len());
        self.call_ids.insert(id.clone());
        self.calls.push(OpenCall { has_arguments: !arguments.is_empty() });
        out.push_back(Delta::ToolCall { index, id: Some(id.into()), name: Some(text("name").into()), arguments });
    }

    fn more(&mut self, output_index: Option<u64>, arguments: String, out: &mut VecDeque<Delta>) {
        let place = self.by_place.get(&output_index).copied();
        if let Some(place) = place.filter(|_| !arguments.is_empty()) {
            self.calls[place].has_arguments = true;
            let index = u32::try_from(place).unwrap_or(u32::MAX);
            out.push_back(Delta::ToolCall { index, id: None, name: None, arguments });
        }
    }

    /// Takes the whole arguments of a call, unless they came in chunks.
    fn settle(&mut self, output_index: Option<u64>, arguments: String, out: &mut VecDeque<Delta>) {
        if self.by_place.get(&output_index).is_some_and(|place| !self.calls[*place].has_arguments) {
            self.more(output_index, arguments, out);
        }
    }

    /// Takes a finished item.
    fn item(&mut self, output_index: Option<u64>, item: Value, out: &mut VecDeque<Delta>) {
        if is_call(&item) {
            if !item["call_id"].as_str().is_some_and(|id| self.call_ids.contains(id)) {
                self.begin(output_index, &item, out);
            }
            self.settle(output_index, item["arguments"].as_str().unwrap_or_default().to_owned(), out);
        }
        out.extend(self.vendor_call(&item));
        let parts = item["content"].as_array().into_iter().flatten();
        out.extend(parts.flat_map(|part| part["annotations"].as_array()).flatten().filter_map(cited));
        self.items.extend(to_send(&item));
    }

    /// What a tool of the vendor did, if the item is about one.
    fn vendor_call(&mut self, item: &Value) -> Option<Delta> {
        let joined = |list: &Value| {
            let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
            texts.collect::<Vec<_>>().join("\n")
        };
        Some(match item["type"].as_str()? {
            "web_search_call" => {
                let action = &item["action"];
                let queries = joined(&action["queries"]);
                let asked = if queries.is_empty() { first_text(action, &["query", "url"]) } else { &queries };
                // Reading a page that was found belongs to the search.
                let is_search = action["type"].as_str().is_none_or(|kind| kind == "search");
                let tool = if is_search { VendorTool::WebSearch } else { VendorTool::WebFetch };
                used(tool, asked, "", citations(&action["sources"], "title", "url"), u32::from(is_search))
            }
            "code_interpreter_call" => {
                let container = item["container_id"].as_str().unwrap_or_default().to_owned();
                let is_new = !self.containers.contains(&container);
                self.containers.extend(is_new.then_some(container));
                let logs = item["outputs"].as_array().into_iter().flatten().filter_map(|output| output["logs"].as_str());
                used(
                    VendorTool::CodeExecution,
                    first_text(item, &["code"]),
                    &logs.collect::<String>(),
                    Vec::new(),
                    u32::from(is_new),
                )
            }
            "file_search_call" => {
                let found = citations(&item["results"], "filename", "url");
                used(VendorTool::FileSearch, &joined(&item["queries"]), "", found, 1)
            }
            _ => return None,
        })
    }

    /// Takes the response at its end.
    fn complete(&mut self, response: Response, out: &mut VecDeque<Delta>) -> Result<Progress, ChunkError> {
        if let Some(error) = response.error {
            return Err(ChunkError::Reported(reported_error(&error)));
        }
        let output = response.output.unwrap_or_default();
        if !self.streamed {
            output.iter().for_each(|item| self.words(item, out));
        }
        if self.items.is_empty() {
            for (place, item) in output.into_iter().enumerate() {
                self.item(Some(place as u64), item, out);
            }
        }
        self.echo(out);
        for url in response.citations.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_str) {
            out.push_back(Delta::Citation(Citation::new("", shortened(url))));
        }
        if self.items.iter().any(|item| item["encrypted_content"].is_string() || is_vendor_call(item)) {
            out.push_back(echo(DIALECT, std::mem::take(&mut self.items)));
        }
        out.extend(response.usage.map(usage));
        let cut = response.incomplete_details.and_then(|details| details.reason).map(LooseText::into_text);
        self.finish = Some(match (response.status.as_deref(), cut.as_deref()) {
            (Some("incomplete"), Some("max_output_tokens")) => Finish::Length,
            (Some("incomplete"), Some("content_filter")) => Finish::ContentFilter,
            (Some("incomplete"), other) => Finish::Other(shortened(other.unwrap_or("incomplete"))),
            (Some("completed" | "complete") | None, _) => self.completed(),
            (Some(status), _) => {
                let reason = format!("the response is {}", shortened(status));
                return Err(ChunkError::Reported(ModelError::Failed { reason, retry_after: None }));
            }
        });
        Ok(Progress::Last)
    }

    /// The words of an item that did not come in chunks.
    fn words(&mut self, item: &Value, out: &mut VecDeque<Delta>) {
        let parts = ["summary", "content"].into_iter().filter_map(|key| item[key].as_array()).flatten();
        for part in parts {
            let text = |key: &str| part[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
            match part["type"].as_str() {
                Some("output_text") => out.extend(text("text").map(Delta::Content)),
                Some("summary_text" | "reasoning_text") => out.extend(text("text").map(Delta::Reasoning)),
                Some("refusal") => {
                    self.refused = true;
                    out.extend(text("refusal").map(Delta::Content));
                }
                _ => {}
            }
        }
    }
}

fn is_call(item: &Value) -> bool {
    item["type"] == "function_call"
}

fn is_vendor_call(item: &Value) -> bool {
    matches!(item["type"].as_str(), Some("web_search_call" | "code_interpreter_call" | "file_search_call"))
}

/// A source that a text cites.
fn cited(annotation: &Value) -> Option<Delta> {
    let cited = match annotation["type"].as_str()? {
        "url_citation" => citation(annotation, "title", "url"),
        "file_citation" => citation(annotation, "filename", "url"),
        _ => None,
    };
    cited.map(Delta::Citation)
}

/// What of an item is sent back: reasoning as it was, the rest in its place among it.
fn to_send(item: &Value) -> Option<Value> {
    match item["type"].as_str()? {
        "reasoning" => {
            let mut item = item.clone();
            item.as_object_mut()?.remove("status");
            Some(item)
        }
        "function_call" => Some(json!({ "type": "function_call", "call_id": item["call_id"] })),
        "message" => {
            let mut message = json!({ "type": "message", "role": "assistant", "content": item["content"] });
            // Newer models tell their notes from their answers by the phase.
            for name in ["id", "status", "phase"] {
                if let Some(field) = item.get(name) {
                    message[name] = field.clone();
                }
            }
            Some(message)
        }
        _ => is_vendor_call(item).then(|| item.clone()),
    }
}

fn usage(usage: WireUsage) -> Delta {
    let input = usage.input_tokens_details.unwrap_or_default();
    let output = usage.output_tokens_details.unwrap_or_default();
    Delta::Usage(Usage {
        input_tokens: usage.input_tokens.or_zero(),
        output_tokens: usage.output_tokens.or_zero(),
        cached_tokens: input.cached_tokens.or_zero(),
        cache_write_tokens: input.cache_write_tokens.or_zero(),
        reasoning_tokens: output.reasoning_tokens.or_zero(),
        ..Usage::default()
    })
}
