//! A [`ModelRequest`] as the JSON body of this dialect.

use std::borrow::Cow;
use std::sync::Arc;

use polis_domain::{Text, ToolCall};
use polis_ports::{CacheMode, ChatMessage, Format, Media, ModelRequest, ToolChoice, ToolSpec};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::effort::{self, EffortFields};
use super::reply::DIALECT;
use super::{EffortField, FormatField, Quirks, SeedField, TokenLimit, VendorToolNames};
use crate::media_parts::{MediaPart, data_url, with_media_after_results};
use crate::request_parts::{
    ClosedSchema, body_bytes, cache_key, cache_retention, effort as asked_effort, is_openai_reasoning, is_sampled, is_strict,
    result_text, system_with_schema, tool_choice, valid_arguments,
};
use crate::wire::echoed_items;

/// Writes the body.
pub(crate) fn body(request: &ModelRequest, model: &str, quirks: Quirks) -> Vec<u8> {
    let settings = &request.settings;
    let (max_tokens, max_completion_tokens) = match quirks.token_limit {
        TokenLimit::MaxTokens => (settings.max_tokens, None),
        TokenLimit::MaxCompletionTokens => (None, settings.max_tokens),
    };
    let (seed, random_seed) = match quirks.seed {
        SeedField::Absent => (None, None),
        SeedField::Seed => (settings.seed, None),
        SeedField::RandomSeed => (None, settings.seed),
    };
    let is_openai = quirks.effort == EffortField::OpenAi;
    let is_sampled = !is_openai || is_sampled(model, asked_effort(settings));
    // OpenAI's models that think refuse it.
    let takes_stop = !(is_openai && is_openai_reasoning(model));
    let is_cached = quirks.cache_key && settings.cache != Some(CacheMode::Off);
    let body = Body {
        model,
        messages: Messages(request, quirks),
        stream: true,
        stream_options: quirks.stream_options.then_some(StreamOptions { include_usage: true }),
        tools: vendor_tools(request, quirks.vendor_tools).chain(request.tools.iter().map(tool)).collect(),
        tool_choice: tool_choice(request, |name| json!({ "type": "function", "function": { "name": name } })),
        parallel_tool_calls: (request.is_one_call() && !request.tools.is_empty()).then_some(false),
        temperature: settings.temperature.filter(|_| is_sampled),
        top_p: settings.top_p.filter(|_| is_sampled),
        stop: if takes_stop { &settings.stop } else { &[] },
        seed,
        random_seed,
        max_tokens,
        max_completion_tokens,
        service_tier: settings.service_tier.as_deref().filter(|_| quirks.service_tier),
        response_format: request.format.as_deref().and_then(|format| response_format(format, quirks.format)),
        effort: effort::fields(settings, quirks.effort, model),
        prompt_cache_key: is_cached.then(|| cache_key(request)),
        prompt_cache_retention: cache_retention(request).filter(|_| is_cached),
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
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [Arc<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    random_seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(flatten)]
    effort: EffortFields,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_split: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_retention: Option<&'static str>,
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
        let messages = with_media_after_results(&self.0.messages);
        let messages = messages.iter().map(|each| message(each, self.1));
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
    /// None for a tool of the vendor.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<Function<'a>>,
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
        ChatMessage::User { text, media } if media.is_empty() => text_message("user", &**text),
        ChatMessage::User { text, media } => {
            Message { content: Some(Content::Parts(content_parts(text, media))), ..text_message("user", &**text) }
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

fn content_parts(text: &str, media: &[Media]) -> Vec<Value> {
    let text = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
    text.into_iter().chain(media.iter().map(media_part)).collect()
}

fn media_part(media: &Media) -> Value {
    match MediaPart::of(media) {
        MediaPart::Image(image) => json!({ "type": "image_url", "image_url": { "url": data_url(image) } }),
        MediaPart::Document { name, .. } => {
            json!({ "type": "file", "file": { "filename": name, "file_data": data_url(media) } })
        }
        MediaPart::Audio { media_type, data } => match audio_format(media_type) {
            Some(format) => json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } }),
            None => json!({ "type": "text", "text": media.not_shown("this model takes wav and mp3 alone") }),
        },
        MediaPart::Absent(line) => json!({ "type": "text", "text": line }),
    }
}

/// The names of the two forms of audio that this dialect has.
fn audio_format(media_type: &str) -> Option<&'static str> {
    match media_type {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

fn call(call: &ToolCall) -> Call<'_> {
    let function = CalledFunction { name: &call.name, arguments: valid_arguments(&call.arguments) };
    Call { id: &call.id, r#type: "function", function }
}

fn tool(tool: &ToolSpec) -> Tool<'_> {
    let function = Function { name: &tool.name, description: &tool.description, parameters: &tool.parameters };
    Tool { r#type: "function", function: Some(function) }
}

/// The tools that run at the vendor.
fn vendor_tools(request: &ModelRequest, names: VendorToolNames) -> impl Iterator<Item = Tool<'_>> {
    let is_sent = *request.choice() != ToolChoice::None;
    let names = request.vendor_tools.iter().filter(move |_| is_sent).filter_map(move |tool| names.name(*tool));
    names.map(|name| Tool { r#type: name, function: None })
}

#[cfg(test)]
mod tests {
    use polis_domain::EffectClass;
    use polis_ports::{Effort, ModelSettings};
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
                ChatMessage::Tool {
                    call_id: "a".into(),
                    name: "read_file".into(),
                    content: "text".into(),
                    is_error: false,
                    media: vec![],
                },
                ChatMessage::assistant("done"),
            ],
            tools: Arc::new([ToolSpec {
                name: "read_file".into(),
                description: "Reads.".into(),
                parameters: parameters.clone(),
                class: EffectClass::Read,
                volatile: false,
            }]),
            settings: ModelSettings { temperature: Some(0.2), max_tokens: Some(9), ..ModelSettings::default() },
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
            format,
            settings: ModelSettings { temperature: Some(0.5), effort, ..ModelSettings::default() },
            ..ModelRequest::default()
        }
    }

    fn fields(request: &ModelRequest, model: &str, quirks: Quirks, names: &[&str]) -> Value {
        let body: Value = serde_json::from_slice(&body(request, model, quirks)).unwrap();
        names.iter().filter_map(|&name| Some((name.to_owned(), body.get(name)?.clone()))).collect()
    }

    #[test]
    fn settings_are_sent_under_the_names_that_the_vendor_knows() {
        let settings = ModelSettings {
            temperature: Some(0.2),
            top_p: Some(0.9),
            stop: vec!["END".into()],
            seed: Some(7),
            max_tokens: Some(5),
            service_tier: Some("flex".into()),
            cache: Some(CacheMode::Long),
            ..ModelSettings::default()
        };
        let names = &[
            "temperature",
            "top_p",
            "stop",
            "seed",
            "random_seed",
            "service_tier",
            "prompt_cache_retention",
            "reasoning_effort",
        ];
        let sent = |settings: &ModelSettings, model: &str, quirks| {
            let request = ModelRequest { settings: settings.clone(), ..ModelRequest::default() };
            fields(&request, model, quirks, names)
        };
        let plain = json!({ "temperature": 0.2, "top_p": 0.9, "stop": ["END"], "seed": 7 });
        assert_eq!(sent(&settings, "m", Quirks::PLAIN), plain);
        let mistral = Quirks { seed: SeedField::RandomSeed, ..Quirks::PLAIN };
        assert_eq!(
            sent(&settings, "m", mistral),
            json!({ "temperature": 0.2, "top_p": 0.9, "stop": ["END"], "random_seed": 7 })
        );
        let openai = Quirks { effort: EffortField::OpenAi, service_tier: true, cache_key: true, ..Quirks::PLAIN };
        let thinking = json!({ "seed": 7, "service_tier": "flex", "prompt_cache_retention": "24h" });
        assert_eq!(sent(&settings, "gpt-5.2", openai), thinking);
        let unthinking = ModelSettings { effort: Some(Effort::None), stop: Vec::new(), cache: None, ..settings };
        let want = json!({ "temperature": 0.2, "top_p": 0.9, "seed": 7, "service_tier": "flex", "reasoning_effort": "none" });
        assert_eq!(sent(&unthinking, "gpt-5.2", openai), want);
        let uncached = ModelSettings { cache: Some(CacheMode::Off), ..ModelSettings::default() };
        let request = ModelRequest { settings: uncached, ..ModelRequest::default() };
        assert_eq!(fields(&request, "gpt-5.2", openai, &["prompt_cache_key"]), json!({}));
    }

    #[test]
    fn settings_choose_tools_until_a_tool_has_answered() {
        let tool = ToolSpec {
            name: "f".into(),
            description: String::new(),
            parameters: json!({}),
            class: EffectClass::Read,
            volatile: false,
        };
        let choice = |tool_choice, parallel_calls, messages: Vec<ChatMessage>| {
            let settings = ModelSettings { tool_choice: Some(tool_choice), parallel_calls, ..ModelSettings::default() };
            let request = ModelRequest { tools: [tool.clone()].into(), messages, settings, ..ModelRequest::default() };
            fields(&request, "m", Quirks::PLAIN, &["tool_choice", "parallel_tool_calls"])
        };
        let asked = || vec![ChatMessage::user("hi")];
        let answered = || {
            vec![ChatMessage::Tool {
                call_id: "c".into(),
                name: "f".into(),
                content: "1".into(),
                is_error: false,
                media: Vec::new(),
            }]
        };
        let both = json!({ "tool_choice": "required", "parallel_tool_calls": false });
        assert_eq!(choice(ToolChoice::Required, Some(false), asked()), both);
        assert_eq!(choice(ToolChoice::Required, None, answered()), json!({}));
        assert_eq!(choice(ToolChoice::None, None, answered()), json!({ "tool_choice": "none" }));
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
        let image = Media::Inline { media_type: "image/png".into(), name: "".into(), data: "QUJD".into() };
        let request = ModelRequest {
            messages: vec![
                ChatMessage::User { text: "look".into(), media: vec![image, Media::Url("https://h/i.png".into())] },
                ChatMessage::Assistant {
                    text: "".into(),
                    reasoning: "hm".into(),
                    tool_calls: vec![call("a", "{}")],
                    echo: Some(Arc::new(json!({ "dialect": DIALECT, "items": [{ "type": "reasoning.text" }] }))),
                },
                ChatMessage::Tool {
                    call_id: "a".into(),
                    name: "read_file".into(),
                    content: "gone".into(),
                    is_error: true,
                    media: vec![],
                },
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
