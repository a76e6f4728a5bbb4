//! A conversation as the model sees it: the request, the tool results so far, and the next reply.
//!
//! A kind of request is straight code that asks for calls as if their results were there. Where one is not, the code stops with
//! the call, and runs again from its first line when the result has come: the conversation is all that it remembers.

use std::sync::Arc;

use polis_domain::ToolCall;
use polis_ports::{ChatMessage, ModelRequest, ToolSpec};
use serde_json::Value;

use super::language::{self, Language, tell};

/// One request of a person, and the tool results for it so far.
pub(super) struct Conversation<'a> {
    request: &'a ModelRequest,
    pub(super) asked: &'a str,
    /// What the person said before, latest first.
    pub(super) earlier: Vec<&'a str>,
    pub(super) language: Language,
    /// What was asked of tools for this request, and what came of it.
    results: Vec<(&'a str, Value, ToolReply<'a>)>,
    plan: Vec<String>,
    thoughts: Vec<String>,
}

/// The result of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ToolReply<'a> {
    pub(super) content: &'a str,
    pub(super) is_error: bool,
}

/// Why the work on a request stops here.
#[derive(Debug)]
pub(super) enum Stop {
    /// These calls must come back first.
    Call(Vec<ToolCall>),
    /// There is nothing more to do than to say this: it does not do what was asked, or not all of it.
    Say(String),
}

/// A step of the work, or where it stops.
pub(super) type Step<T> = Result<T, Stop>;

/// A whole reply.
#[derive(Debug, Default)]
pub(super) struct ModelReply {
    pub(super) reasoning: String,
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    /// Whether it does not do what was asked, or not all of it.
    pub(super) is_refusal: bool,
}

/// What stands below a message: what the program says about files that came with it, and what an application told.
const NOTES: [&str; 2] = ["\n[sent along: ", "\n[told by the application: "];

/// The words of a message. Words that name no file and no figure may mean the files that came with them.
fn without_notes(text: &str) -> &str {
    let cut = |note: &str| text.find(note).map(|end| &text[..end]);
    let words = NOTES.iter().filter_map(|note| cut(note)).min_by_key(|words| words.len()).unwrap_or(text);
    match words.contains(|c: char| c == '.' || c.is_ascii_digit()) {
        true => words,
        false => cut(NOTES[1]).filter(|_| !text.contains(NOTES[0])).unwrap_or(text),
    }
}

impl<'a> Conversation<'a> {
    pub(super) fn new(request: &'a ModelRequest) -> Self {
        let mut user_texts = request.messages.iter().enumerate().rev().filter_map(|(n, message)| match message {
            // What the program tells is no request.
            ChatMessage::User { text, .. } if text.starts_with("[polis]") => None,
            ChatMessage::User { text, .. } => Some((n, without_notes(text))),
            ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => None,
        });
        let (at, asked) = user_texts.next().unwrap_or_default();
        let earlier = user_texts.map(|(_, text)| text).collect();
        let results = results(&request.messages, at + 1);
        let language = language::of(asked);
        Self { request, asked, earlier, language, results, plan: Vec::new(), thoughts: Vec::new() }
    }

    /// The same for a task that stands in what the model was told first; every call so far was made for it.
    pub(super) fn about(request: &'a ModelRequest, asked: &'a str, earlier: Vec<&'a str>) -> Self {
        let results = results(&request.messages, 0);
        let asked = without_notes(asked);
        let language = language::of(asked);
        Self { request, asked, earlier, language, results, plan: Vec::new(), thoughts: Vec::new() }
    }

    /// Whether the last call came to nothing.
    pub(super) fn has_failed(&self) -> bool {
        self.results.last().is_some_and(|(_, _, reply)| reply.is_error)
    }

    /// Whether a tool is offered; names that say where a tool comes from count too.
    pub(super) fn tool(&self, name: &str) -> Option<Arc<str>> {
        let is_it = |offered: &str| offered == name || offered.rsplit_once("__").is_some_and(|(_, last)| last == name);
        let tools = &self.request.tools;
        let listed = tools.iter().map(|tool| &tool.name).find(|offered| is_it(offered)).cloned();
        // A tool that is not listed can be called by its name where a search finds it.
        let is_found = |tool: &ToolSpec| &*tool.name == "find_tools" && tool.description.contains(name);
        listed.or_else(|| tools.iter().any(is_found).then(|| name.into()))
    }

    /// Says beforehand what will be done; one step needs no plan.
    pub(super) fn plan(&mut self, steps: Vec<String>) {
        if steps.len() > 1 {
            self.plan = steps;
        }
    }

    /// Thinks aloud.
    pub(super) fn think(&mut self, thought: String) {
        self.thoughts.push(thought);
    }

    /// What a tool gives for these arguments.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Step<ToolReply<'a>> {
        let reply = self.call_all(tool, vec![arguments])?;
        reply.into_iter().next().ok_or_else(|| Stop::Say(String::new()))
    }

    /// What a tool gives for each of these, asked at once.
    pub(super) fn call_all(&mut self, tool: &str, arguments: Vec<Value>) -> Step<Vec<ToolReply<'a>>> {
        let Some(name) = self.tool(tool) else {
            return Err(Stop::Say(tell!(
                self.language,
                "That needs the tool {tool}, which I am not offered here.",
                "这需要工具 {tool}，但这里没有提供。"
            )));
        };
        let found = |wanted: &Value| self.results.iter().find(|(tool, had, _)| **tool == *name && had == wanted);
        let missing: Vec<&Value> = arguments.iter().filter(|wanted| found(wanted).is_none()).collect();
        if missing.is_empty() {
            let reply = arguments.iter().filter_map(|wanted| Some(found(wanted)?.2)).collect();
            // They were said before these calls were made.
            self.thoughts.clear();
            return Ok(reply);
        }
        // The place in the conversation makes the id unique within it, and the same each time.
        let at = self.request.messages.len();
        let is_one = missing.len() == 1;
        let call = |(n, arguments): (usize, &Value)| ToolCall {
            id: if is_one { format!("offline_{at}") } else { format!("offline_{at}_{n}") }.into(),
            name: name.clone(),
            arguments: arguments.to_string().into(),
        };
        Err(Stop::Call(missing.into_iter().enumerate().map(call).collect()))
    }

    /// The reply that this comes to: with the plan if it is the first.
    pub(super) fn reply(&mut self, stop: Stop) -> ModelReply {
        let reasoning = self.thoughts.join("\n");
        match stop {
            Stop::Say(text) => ModelReply { reasoning, text, ..ModelReply::default() },
            Stop::Call(calls) => {
                let steps = self.plan.iter().enumerate().map(|(n, step)| format!("{}. {step}\n", n + 1));
                let is_first = self.results.is_empty() && !self.plan.is_empty();
                let text = match is_first {
                    true => tell!(
                        self.language,
                        "(offline model) My plan:\n{}",
                        "（离线模型）我的计划：\n{}",
                        steps.collect::<String>()
                    ),
                    false => String::new(),
                };
                ModelReply { reasoning, text, calls, is_refusal: false }
            }
        }
    }
}

/// Each call from a message on with its result; one without a result has failed.
fn results(all: &[ChatMessage], from: usize) -> Vec<(&str, Value, ToolReply<'_>)> {
    let messages = all.get(from..).unwrap_or_default();
    let reply = |id: &str| {
        messages.iter().find_map(|message| match message {
            ChatMessage::Tool { call_id, content, is_error, .. } if **call_id == *id => {
                let content = ChatMessage::whole_result(all, content);
                // The flag may be lost on the way.
                Some(ToolReply { content, is_error: *is_error || content.starts_with("error:") })
            }
            _ => None,
        })
    };
    let calls = messages.iter().filter_map(|message| match message {
        ChatMessage::Assistant { tool_calls, .. } => Some(tool_calls),
        ChatMessage::User { .. } | ChatMessage::Tool { .. } => None,
    });
    let lost = ToolReply { content: "error: the call has no result", is_error: true };
    let found = calls.flatten().filter_map(|call| {
        let arguments = serde_json::from_str(&call.arguments).ok()?;
        Some((&*call.name, arguments, reply(&call.id).unwrap_or(lost)))
    });
    found.collect()
}
