//! A [`ModelRequest`] as the JSON body of this dialect.

use std::borrow::Cow;

use polis_domain::ToolCall;
use polis_ports::{ChatMessage, ModelRequest, ToolSpec};
use serde::de::IgnoredAny;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{Quirks, TokenLimit};

/// Writes the body.
pub(super) fn body(request: &ModelRequest, model: &str, quirks: Quirks) -> Vec<u8> {
    let (max_tokens, max_completion_tokens) = match quirks.token_limit {
        TokenLimit::MaxTokens => (request.max_tokens, None),
        TokenLimit::MaxCompletionTokens => (None, request.max_tokens),
    };
    let body = Body {
        model,
        messages: Messages(request),
        stream: true,
        stream_options: quirks.stream_options.then_some(StreamOptions { include_usage: true }),
        tools: request.tools.iter().map(tool).collect(),
        temperature: request.temperature,
        max_tokens,
        max_completion_tokens,
        response_format: request.format.as_deref().map(|format| {
            json!({ "type": "json_schema", "json_schema": { "name": format.name, "schema": format.schema, "strict": true } })
        }),
    };
    serde_json::to_vec(&body).expect("strings and finite numbers can always be written")
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Messages<'a>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

struct Messages<'a>(&'a ModelRequest);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let system = (!self.0.system.is_empty()).then(|| said("system", &self.0.system));
        serializer.collect_seq(system.into_iter().chain(self.0.messages.iter().map(message)))
    }
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

fn said<'a>(role: &'static str, content: &'a str) -> Message<'a> {
    Message { role, content: Some(content), tool_calls: Vec::new(), tool_call_id: None }
}

fn message(message: &ChatMessage) -> Message<'_> {
    match message {
        ChatMessage::User { text, images: _ } => said("user", text),
        ChatMessage::Assistant { text, tool_calls, .. } if tool_calls.is_empty() => said("assistant", text),
        ChatMessage::Assistant { text, tool_calls, .. } => Message {
            content: (!text.is_empty()).then_some(text),
            tool_calls: tool_calls.iter().map(call).collect(),
            ..said("assistant", text)
        },
        ChatMessage::Tool { call_id, content, .. } => Message { tool_call_id: Some(call_id), ..said("tool", content) },
    }
}

fn call(call: &ToolCall) -> Call<'_> {
    let function = CalledFunction { name: &call.name, arguments: readable(&call.arguments) };
    Call { id: &call.id, r#type: "function", function }
}

fn tool(tool: &ToolSpec) -> Tool<'_> {
    let function = Function { name: &tool.name, description: &tool.description, parameters: &tool.parameters };
    Tool { r#type: "function", function }
}

/// Arguments that vendors accept in a history. Many refuse the whole request when one earlier call of the model was no
/// JSON, and the conversation would be stuck for ever.
fn readable(arguments: &str) -> Cow<'_, str> {
    if arguments.trim().is_empty() {
        return "{}".into();
    }
    match serde_json::from_str::<IgnoredAny>(arguments) {
        Ok(_) => arguments.into(),
        Err(_) => serde_json::json!({ "unreadable": arguments }).to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use polis_domain::EffectClass;

    use super::*;

    fn check(request: &ModelRequest, quirks: Quirks, want: Value) {
        let body: Value = serde_json::from_slice(&body(request, "m", quirks)).unwrap();
        assert_eq!(body, want);
    }

    fn call(id: &str, arguments: &str) -> ToolCall {
        ToolCall { id: id.into(), name: "read_file".into(), arguments: arguments.into() }
    }

    #[test]
    fn a_bare_request_holds_only_what_is_needed() {
        let request = ModelRequest { messages: vec![ChatMessage::user("hi")], ..ModelRequest::default() };
        check(
            &request,
            Quirks { stream_options: false, ..Quirks::default() },
            json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }] }),
        );
    }

    #[test]
    fn a_full_request_holds_the_conversation_the_tools_and_the_limits() {
        let parameters = json!({ "type": "object" });
        let request = ModelRequest {
            model: "v/m".into(),
            system: "be brief".into(),
            messages: vec![
                ChatMessage::user("读"),
                ChatMessage::Assistant {
                    text: "".into(),
                    reasoning: "".into(),
                    echo: None,
                    tool_calls: vec![call("a", "{\"path\":1}"), call("b", ""), call("c", "{\"pa")],
                },
                ChatMessage::Tool { call_id: "a".into(), name: "read_file".into(), content: "text".into(), is_error: false },
                ChatMessage::assistant("done"),
            ],
            tools: Arc::new([ToolSpec {
                name: "read_file".into(),
                description: "Reads.".into(),
                parameters: parameters.clone(),
                class: EffectClass::Read,
            }]),
            temperature: Some(0.2),
            max_tokens: Some(9),
            ..ModelRequest::default()
        };
        let called = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "read_file", "arguments": arguments } });
        check(
            &request,
            Quirks { stream_options: true, token_limit: TokenLimit::MaxCompletionTokens },
            json!({
                "model": "m",
                "stream": true,
                "stream_options": { "include_usage": true },
                "temperature": 0.2,
                "max_completion_tokens": 9,
                "messages": [
                    { "role": "system", "content": "be brief" },
                    { "role": "user", "content": "读" },
                    { "role": "assistant", "content": null, "tool_calls": [
                        called("a", "{\"path\":1}"), called("b", "{}"), called("c", "{\"unreadable\":\"{\\\"pa\"}"),
                    ] },
                    { "role": "tool", "tool_call_id": "a", "content": "text" },
                    { "role": "assistant", "content": "done" },
                ],
                "tools": [{ "type": "function", "function": {
                    "name": "read_file", "description": "Reads.", "parameters": parameters,
                } }],
            }),
        );
    }
}
