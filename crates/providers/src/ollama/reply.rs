//! What Ollama sends, line by line or as one object, as deltas.

use std::collections::VecDeque;

use polis_domain::{Finish, Usage};
use polis_http::sse::Event;
use polis_ports::Delta;
use serde::Deserialize;
use serde_json::Value;

use crate::thoughts::Thoughts;
use crate::wire::{ChunkError, Count, Ending, LooseText, Progress, Reader, reported_error, shortened};

/// Reads the lines of one reply.
#[derive(Debug, Default)]
pub(crate) struct OllamaReader {
    calls: u32,
    has_text: bool,
    finish: Option<Finish>,
    thoughts: Thoughts,
}

#[derive(Debug, Deserialize)]
struct Line {
    created_at: Option<LooseText>,
    message: Option<Message>,
    done: Option<bool>,
    done_reason: Option<LooseText>,
    #[serde(default)]
    prompt_eval_count: Count,
    #[serde(default)]
    eval_count: Count,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Message {
    content: Option<LooseText>,
    thinking: Option<LooseText>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Debug, Deserialize)]
struct Call {
    id: Option<LooseText>,
    function: Option<Function>,
}

#[derive(Debug, Default, Deserialize)]
struct Function {
    name: Option<LooseText>,
    arguments: Option<LooseText>,
}

impl Reader for OllamaReader {
    fn finish(&self) -> Option<Finish> {
        self.finish.clone()
    }

    fn read(&mut self, event: &Event<'_>, out: &mut VecDeque<Delta>) -> Result<Progress, ChunkError> {
        let line: Line = serde_json::from_str(&event.data)?;
        if let Some(error) = line.error {
            return Err(ChunkError::Reported(reported_error(&error)));
        }
        if let Some(message) = line.message {
            let text = |loose: Option<LooseText>| loose.map(LooseText::into_text).filter(|text| !text.is_empty());
            out.extend(text(message.thinking).map(Delta::Reasoning));
            let (thoughts, content) = self.thoughts.push(text(message.content).unwrap_or_default());
            out.extend(Some(thoughts).filter(|text| !text.is_empty()).map(Delta::Reasoning));
            self.write(content, out);
            let time = line.created_at.map(LooseText::into_text);
            for call in message.tool_calls.into_iter().flatten() {
                out.push_back(self.call(call, time.as_deref()));
            }
        }
        if line.done != Some(true) {
            return Ok(Progress::More);
        }
        out.push_back(Delta::Usage(Usage {
            input_tokens: line.prompt_eval_count.or_zero(),
            output_tokens: line.eval_count.or_zero(),
            ..Usage::default()
        }));
        let word = line.done_reason.map(LooseText::into_text).unwrap_or_default();
        self.finish = Some(match word.as_str() {
            "length" => Finish::Length,
            "stop" | "" if self.calls > 0 => Finish::ToolCalls,
            // Older servers give no reason.
            "stop" | "" => Finish::Stop,
            other => Finish::Other(shortened(other)),
        });
        Ok(Progress::Last)
    }

    /// Calls come whole. A complete body with text or calls is a reply, although no line says that it is done.
    fn end(&mut self, ending: Ending, out: &mut VecDeque<Delta>) -> Option<Finish> {
        match std::mem::take(&mut self.thoughts).finish() {
            Ok(text) => self.write(text, out),
            Err(thought) => out.extend(Some(thought).filter(|text| !text.is_empty()).map(Delta::Reasoning)),
        }
        if self.finish.is_none() && ending != Ending::Cut && (self.has_text || self.calls > 0) {
            self.finish = Some(if self.calls > 0 { Finish::ToolCalls } else { Finish::Stop });
        }
        self.finish()
    }
}

impl OllamaReader {
    fn write(&mut self, text: String, out: &mut VecDeque<Delta>) {
        if !text.is_empty() {
            self.has_text = true;
            out.push_back(Delta::Content(text));
        }
    }

    /// Calls come whole; older servers give them no id, so they get one unlike those of other replies.
    fn call(&mut self, call: Call, time: Option<&str>) -> Delta {
        let text = |loose: Option<LooseText>| loose.map(LooseText::into_text).unwrap_or_default();
        let function = call.function.unwrap_or_default();
        let index = self.calls;
        self.calls += 1;
        let mut id = text(call.id);
        if id.is_empty() {
            let time: String = time.unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
            id = format!("call_{time}_{index}");
        }
        let arguments = Some(text(function.arguments)).filter(|text| !text.is_empty()).unwrap_or_else(|| "{}".to_owned());
        Delta::ToolCall { index, id: Some(id.into()), name: Some(text(function.name).into()), arguments }
    }
}
