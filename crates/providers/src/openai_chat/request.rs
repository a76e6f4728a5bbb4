//! A [`ModelRequest`] as the JSON body of this dialect.

use std::borrow::Cow;
use std::sync::Arc;

use polis_domain::{Text, ToolCall};
use polis_ports::{ChatMessage, Effort, Format, Image, ModelRequest, ToolSpec};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::reply::DIALECT;
use super::{EffortField, FormatField, Quirks, TokenLimit};
use crate::request_parts::{
    ClosedSchema, body_bytes, cache_key, effort_name, image_url, is_openai_reasoning, is_strict, result_text,
    system_with_schema, tool_choice, valid_arguments,
};
use crate::wire::echoed_items;

/// Writes the body.
pub(crate) fn body(request: &ModelRequest, model: &str, quirks: Quirks) -> Vec<u8> {
    let (max_tokens, max_completion_tokens) = match quirks.token_limit {
        TokenLimit::MaxTokens => (request.max_tokens, None),
        TokenLimit::MaxCompletionTokens => (None, request.max_tokens),
    };
    let thinks = match quirks.effort {
        EffortField::OpenAi => is_openai_reasoning(model),
        _ => model.contains("gpt-oss"),
    };
    let body = Body {
        model,
        messages: Messages(request, quirks),
        stream: true,
        stream_options: quirks.stream_options.then_some(StreamOptions { include_usage: true }),
        tools: request.tools.iter().map(tool).collect(),
        tool_choice: tool_choice(request, |name| json!({ "type": "function", "function": { "name": name } })),
        parallel_tool_calls: (request.one_call && !request.tools.is_empty()).then_some(false),
        temperature: request.temperature.filter(|_| !(thinks && quirks.effort == EffortField::OpenAi)),
        max_tokens,
        max_completion_tokens,
        response_format: request.format.as_deref().and_then(|format| response_format(format, quirks.format)),
        effort: request.effort.map_or_else(Thought::default, |effort| thought(effort, quirks.effort, thinks)),
        prompt_cache_key: quirks.cache_key.then(|| cache_key(request)),
        reasoning_split: quirks.reasoning_split.then_some(true),
    };
    body_bytes(request, &body)
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
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(flatten)]
    effort: Thought,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_split: Option<bool>,
}

#[derive(Default, Serialize)]
struct Thought {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enable_thinking: Option<bool>,
}

fn thought(effort: Effort, field: EffortField, thinks: bool) -> Thought {
    let word = effort_name(effort);
    let on = effort != Effort::Low;
    match field {
        EffortField::Absent => Thought::default(),
        EffortField::ReasoningEffort => Thought { reasoning_effort: Some(word), ..Thought::default() },
        EffortField::OpenAi | EffortField::GptOss => Thought { reasoning_effort: thinks.then_some(word), ..Thought::default() },
        EffortField::Reasoning => Thought { reasoning: Some(json!({ "effort": word })), ..Thought::default() },
        EffortField::Thinking => {
            let r#type = if on { "enabled" } else { "disabled" };
            Thought { thinking: Some(json!({ "type": r#type })), ..Thought::default() }
        }
        EffortField::EnableThinking => Thought { enable_thinking: Some(on), ..Thought::default() },
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: Shape<'a> },
}

#[derive(Serialize)]
struct Shape<'a> {
    name: &'a str,
    schema: ClosedSchema<'a>,
    strict: bool,
}

fn response_format(format: &Format, field: FormatField) -> Option<ResponseFormat<'_>> {
    let Format { name, schema } = format;
    match field {
        // Any object will do, and a strict schema must say more.
        FormatField::JsonSchema if *schema == serde_json::json!({ "type": "object" }) => Some(ResponseFormat::JsonObject),
        FormatField::Absent => None,
        FormatField::JsonObject => Some(ResponseFormat::JsonObject),
        FormatField::JsonSchema => {
            let json_schema = Shape { name, schema: ClosedSchema::new(schema), strict: is_strict(schema) };
            Some(ResponseFormat::JsonSchema { json_schema })
        }
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

struct Messages<'a>(&'a ModelRequest, Quirks);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let system = match self.1.format {
            FormatField::JsonObject | FormatField::Absent if self.0.format.is_some() => {
                Some(Content::Text(system_with_schema(self.0)))
            }
            _ => (!self.0.system.is_empty()).then_some(Content::Prompt(&self.0.system)),
        };
        let system = system.map(|content| Message { content: Some(content), ..text_message("system", "") });
        let messages = self.0.messages.iter().map(|each| message(each, self.1));
        serializer.collect_seq(system.into_iter().chain(messages))
    }
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a Vec<Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Prompt(&'a Text),
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
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

fn text_message<'a>(role: &'static str, content: impl Into<Cow<'a, str>>) -> Message<'a> {
    Message {
        role,
        content: Some(Content::Text(content.into())),
        reasoning_content: None,
        reasoning_details: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    }
}

fn message(message: &ChatMessage, quirks: Quirks) -> Message<'_> {
    match message {
        ChatMessage::User { text, images } if images.is_empty() => text_message("user", &**text),
        ChatMessage::User { text, images } => {
            Message { content: Some(Content::Parts(content_parts(text, images))), ..text_message("user", &**text) }
        }
        ChatMessage::Assistant { text, tool_calls, echo, .. } if tool_calls.is_empty() => {
            Message { reasoning_details: echoed_details(echo.as_ref(), quirks), ..text_message("assistant", &**text) }
        }
        ChatMessage::Assistant { text, reasoning, tool_calls, echo } => Message {
            content: (!text.is_empty()).then(|| Content::Text(Cow::Borrowed(&**text))),
            // An empty one is sent too: some refuse a call without it.
            reasoning_content: quirks.wants_reasoning.then_some(&**reasoning),
            reasoning_details: echoed_details(echo.as_ref(), quirks),
            tool_calls: tool_calls.iter().map(call).collect(),
            ..text_message("assistant", "")
        },
        ChatMessage::Tool { call_id, content, is_error, .. } => {
            Message { tool_call_id: Some(call_id), ..text_message("tool", result_text(content, *is_error)) }
        }
    }
}

fn echoed_details(echo: Option<&Arc<Value>>, quirks: Quirks) -> Option<&Vec<Value>> {
    echoed_items(DIALECT, echo).filter(|_| quirks.wants_details)
}

fn content_parts(text: &str, images: &[Image]) -> Vec<Value> {
    let text = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
    let image = |image| json!({ "type": "image_url", "image_url": { "url": image_url(image) } });
    text.into_iter().chain(images.iter().map(image)).collect()
}

fn call(call: &ToolCall) -> Call<'_> {
    let function = CalledFunction { name: &call.name, arguments: valid_arguments(&call.arguments) };
    Call { id: &call.id, r#type: "function", function }
}

fn tool(tool: &ToolSpec) -> Tool<'_> {
    let function = Function { name: &tool.name, description: &tool.description, parameters: &tool.parameters };
    Tool { r#type: "function", function }
}

#[cfg(test)]
mod tests {
    use polis_domain::EffectClass;
    use polis_ports::ToolChoice;
    use serde_json::json;

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
                volatile: false,
            }]),
            temperature: Some(0.2),
            max_tokens: Some(9),
            ..ModelRequest::default()
        };
        let called = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "read_file", "arguments": arguments } });
        check(
            &request,
            Quirks { token_limit: TokenLimit::MaxCompletionTokens, ..Quirks::PLAIN },
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

    #[test]
    fn the_choice_of_tools_is_said_where_there_are_tools() {
        let with = |tool_choice, one_call, tools: usize| {
            let spec = ToolSpec {
                name: "f".into(),
                description: String::new(),
                parameters: json!({}),
                class: EffectClass::Read,
                volatile: false,
            };
            let request = ModelRequest { tools: vec![spec; tools].into(), tool_choice, one_call, ..asking(false, None) };
            fields(&request, "m", Quirks::PLAIN, &["tool_choice", "parallel_tool_calls"])
        };
        assert_eq!(with(ToolChoice::Auto, false, 1), json!({}));
        assert_eq!(with(ToolChoice::Required, true, 1), json!({ "tool_choice": "required", "parallel_tool_calls": false }));
        let named = json!({ "tool_choice": { "type": "function", "function": { "name": "f" } } });
        assert_eq!(with(ToolChoice::Named("f".into()), false, 1), named);
        assert_eq!(with(ToolChoice::Required, true, 0), json!({}));
    }

    fn asking(format: bool, effort: Option<Effort>) -> ModelRequest {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
        let format = format.then(|| Arc::new(Format { name: "f".to_owned(), schema }));
        ModelRequest {
            messages: vec![ChatMessage::user("hi")],
            temperature: Some(0.5),
            format,
            effort,
            ..ModelRequest::default()
        }
    }

    fn fields(request: &ModelRequest, model: &str, quirks: Quirks, names: &[&str]) -> Value {
        let body: Value = serde_json::from_slice(&body(request, model, quirks)).unwrap();
        names.iter().filter_map(|&name| Some((name.to_owned(), body.get(name)?.clone()))).collect()
    }

    #[test]
    fn effort_is_said_as_each_vendor_wants_it() {
        let names = &["reasoning_effort", "reasoning", "thinking", "enable_thinking", "temperature"];
        let check = |model: &str, effort, field, want: Value| {
            let got = fields(&asking(false, Some(effort)), model, Quirks { effort: field, ..Quirks::PLAIN }, names);
            assert_eq!(got, want, "{model} {effort:?} {field:?}");
        };
        check("m", Effort::High, EffortField::Absent, json!({ "temperature": 0.5 }));
        check("m", Effort::Medium, EffortField::ReasoningEffort, json!({ "reasoning_effort": "medium", "temperature": 0.5 }));
        check("gpt-5", Effort::Low, EffortField::OpenAi, json!({ "reasoning_effort": "low" }));
        check("gpt-4o", Effort::Low, EffortField::OpenAi, json!({ "temperature": 0.5 }));
        check(
            "openai/gpt-oss-20b",
            Effort::High,
            EffortField::GptOss,
            json!({ "reasoning_effort": "high", "temperature": 0.5 }),
        );
        check("llama", Effort::High, EffortField::GptOss, json!({ "temperature": 0.5 }));
        check("m", Effort::High, EffortField::Reasoning, json!({ "reasoning": { "effort": "high" }, "temperature": 0.5 }));
        check("m", Effort::Low, EffortField::Thinking, json!({ "thinking": { "type": "disabled" }, "temperature": 0.5 }));
        check("m", Effort::High, EffortField::EnableThinking, json!({ "enable_thinking": true, "temperature": 0.5 }));
    }

    #[test]
    fn a_shape_is_asked_for_by_schema_or_else_in_words() {
        let shut = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"],
            "additionalProperties": false });
        assert_eq!(
            fields(&asking(true, None), "m", Quirks::PLAIN, &["response_format"]),
            json!({ "response_format": { "type": "json_schema",
                "json_schema": { "name": "f", "strict": true, "schema": shut } } })
        );
        let schema_instructions = fields(
            &asking(true, None),
            "m",
            Quirks { format: FormatField::JsonObject, ..Quirks::PLAIN },
            &["response_format", "messages"],
        );
        assert_eq!(schema_instructions["response_format"], json!({ "type": "json_object" }));
        let system = schema_instructions["messages"][0]["content"].as_str().unwrap();
        assert!(system.contains("JSON") && system.contains("\"required\":[\"a\"]"), "{system}");
    }

    #[test]
    fn pictures_failures_and_what_the_vendor_wants_back_are_sent() {
        let image = Image::Inline { media_type: "image/png".into(), data: "QUJD".into() };
        let request = ModelRequest {
            messages: vec![
                ChatMessage::User { text: "look".into(), images: vec![image, Image::Url("https://h/i.png".into())] },
                ChatMessage::Assistant {
                    text: "".into(),
                    reasoning: "hm".into(),
                    tool_calls: vec![call("a", "{}")],
                    echo: Some(Arc::new(json!({ "dialect": DIALECT, "items": [{ "type": "reasoning.text" }] }))),
                },
                ChatMessage::Tool { call_id: "a".into(), name: "read_file".into(), content: "gone".into(), is_error: true },
                ChatMessage::Assistant {
                    text: "no".into(),
                    reasoning: "hm".into(),
                    tool_calls: vec![],
                    echo: Some(Arc::new(json!({ "dialect": "another", "items": [1] }))),
                },
            ],
            ..ModelRequest::default()
        };
        let quirks = Quirks { wants_reasoning: true, wants_details: true, cache_key: true, ..Quirks::PLAIN };
        let got = fields(&request, "m", quirks, &["messages", "prompt_cache_key"]);
        assert_eq!(
            got["messages"],
            json!([
                { "role": "user", "content": [
                    { "type": "text", "text": "look" },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,QUJD" } },
                    { "type": "image_url", "image_url": { "url": "https://h/i.png" } },
                ] },
                { "role": "assistant", "content": null, "reasoning_content": "hm",
                  "reasoning_details": [{ "type": "reasoning.text" }],
                  "tool_calls": [{ "id": "a", "type": "function", "function": { "name": "read_file", "arguments": "{}" } }] },
                { "role": "tool", "tool_call_id": "a", "content": "error: gone" },
                { "role": "assistant", "content": "no" },
            ])
        );
        assert!(got["prompt_cache_key"].as_str().is_some_and(|key| key.len() == 16), "{got}");
    }
}
