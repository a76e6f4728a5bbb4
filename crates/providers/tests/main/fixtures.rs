//! One small reply in every dialect, of our own making in the documented format: reasoning, text, two calls, usage.

use std::sync::Arc;

use polis_domain::{Finish, Reply, ToolCall, Usage};
use polis_providers::Dialect;
use serde_json::json;

/// A reply on the wire, and how that vendor reports an error inside a stream.
pub(crate) struct Fixture {
    pub(crate) dialect: Dialect,
    pub(crate) media: &'static str,
    pub(crate) body: &'static str,
    /// What parts events.
    pub(crate) between: &'static str,
    /// An event that says that the vendor is overloaded.
    pub(crate) overloaded: &'static str,
    /// An event that nobody knows.
    pub(crate) unknown: &'static str,
    /// An event with `null` for everything.
    pub(crate) nulls: &'static str,
}

const SSE: &str = "text/event-stream";

pub(crate) const FIXTURES: &[Fixture] = &[
    Fixture {
        dialect: Dialect::OpenAiChat,
        media: SSE,
        body: include_str!("../fixtures/openai_chat.sse"),
        between: "\n\n",
        overloaded: "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n",
        unknown: "event: new\ndata: {\"new\":{\"a\":[1]}}\n\n",
        nulls: "data: null\n\ndata: {\"id\":null,\"choices\":null,\"usage\":null,\"error\":null}\n\n",
    },
    Fixture {
        dialect: Dialect::OpenAiResponses,
        media: SSE,
        body: include_str!("../fixtures/openai_responses.sse"),
        between: "\n\n",
        overloaded: "event: error\ndata: {\"type\":\"error\",\"code\":\"server_is_overloaded\",\"message\":\"overloaded\"}\n\n",
        unknown: "event: response.new\ndata: {\"type\":\"response.new\",\"output_index\":7}\n\n",
        nulls: "data: null\n\ndata: {\"type\":\"response.output_text.delta\",\"delta\":null,\"item\":null,\"response\":null}\n\n",
    },
    Fixture {
        dialect: Dialect::Anthropic,
        media: SSE,
        body: include_str!("../fixtures/anthropic.sse"),
        between: "\n\n",
        overloaded: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"overloaded\"}}\n\n",
        unknown: "event: new\ndata: {\"type\":\"new\",\"index\":9}\n\n",
        nulls: "data: null\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":null,\"usage\":null,\"error\":null}\n\n",
    },
    Fixture {
        dialect: Dialect::Gemini,
        media: SSE,
        body: include_str!("../fixtures/gemini.sse"),
        between: "\n\n",
        overloaded: "data: {\"error\":{\"code\":503,\"message\":\"overloaded\",\"status\":\"UNAVAILABLE\"}}\n\n",
        unknown: "data: {\"new\":1}\n\n",
        nulls: "data: null\n\ndata: {\"candidates\":null,\"usageMetadata\":null,\"error\":null}\n\n",
    },
    Fixture {
        dialect: Dialect::Ollama,
        media: "application/x-ndjson",
        body: include_str!("../fixtures/ollama.ndjson"),
        between: "\n",
        overloaded: "{\"error\":\"overloaded\"}\n",
        unknown: "{\"new\":1}\n",
        nulls: "null\n{\"message\":null,\"done\":null,\"error\":null}\n",
    },
];

impl Fixture {
    /// The places between its events, the end not among them.
    pub(crate) fn seams(&self) -> impl Iterator<Item = usize> {
        let ends = self.body.match_indices(self.between).map(|(at, between)| at + between.len());
        std::iter::once(0).chain(ends.filter(|&at| at < self.body.len()))
    }

    /// What the vendor wants back.
    fn echo(&self) -> Option<serde_json::Value> {
        match self.dialect {
            Dialect::Anthropic => Some(json!({ "dialect": "anthropic", "items": [
                { "type": "thinking", "thinking": "想", "signature": "sealed" },
                { "type": "text", "text": "你好" },
                { "type": "tool_use", "id": "a", "name": "add", "input": { "x": 1 } },
                { "type": "tool_use", "id": "b", "name": "end", "input": {} },
            ] })),
            Dialect::Gemini => Some(json!({ "dialect": "gemini", "items": [
                { "text": "你好" },
                { "functionCall": { "name": "add", "args": { "x": 1 }, "id": "a" }, "thoughtSignature": "sealed" },
                { "functionCall": { "name": "end", "args": {}, "id": "b" } },
            ] })),
            Dialect::OpenAiResponses => Some(json!({ "dialect": "openai_responses", "items": [
                { "type": "reasoning", "id": "rs", "summary": [{ "type": "summary_text", "text": "想" }], "encrypted_content": "sealed" },
                { "type": "message", "id": "m", "role": "assistant", "content": [{ "type": "output_text", "text": "你好" }] },
                { "type": "function_call", "call_id": "a" },
                { "type": "function_call", "call_id": "b" },
            ] })),
            Dialect::OpenAiChat | Dialect::Ollama | Dialect::Bedrock | Dialect::Vertex => None,
        }
    }

    /// The reply in it.
    pub(crate) fn reply(&self) -> Reply {
        let call =
            |id: &str, name: &str, arguments: &str| ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() };
        let is_plain = self.dialect == Dialect::Ollama;
        let writes = matches!(self.dialect, Dialect::Anthropic | Dialect::OpenAiResponses);
        Reply {
            text: "你好".to_owned(),
            reasoning: "想".to_owned(),
            tool_calls: vec![call("a", "add", "{\"x\":1}"), call("b", "end", "{}")],
            finish: Finish::ToolCalls,
            usage: Usage {
                input_tokens: 9,
                output_tokens: 8,
                cached_tokens: if is_plain { 0 } else { 4 },
                reasoning_tokens: if is_plain { 0 } else { 3 },
                cache_write_tokens: if writes { 2 } else { 0 },
                ..Usage::default()
            },
            model: "test/small".into(),
            echo: self.echo().map(Arc::new),
            ..Reply::default()
        }
    }
}
