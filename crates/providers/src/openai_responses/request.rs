//! A [`ModelRequest`] as the JSON body of this dialect.

use polis_domain::ToolCall;
use polis_ports::{CacheMode, ChatMessage, Effort, Media, ModelRequest, ToolSpec, VendorTool};
use serde_json::{Map, Value, json};

use super::reply::DIALECT;
use crate::media_parts::{MediaPart, data_url, not_sent};
use crate::request_parts::{
    ClosedSchema, body_bytes, cache_key, cache_retention, effort, is_sampled, is_strict, may_reason, openai_efforts,
    result_text, tool_choice, valid_arguments,
};
use crate::vendor_tools::{MAX_USES, is_sendable};
use crate::wire::echoed_items;

/// The least limit of output tokens that is taken.
const LEAST_TOKENS: u32 = 16;

/// Writes the body.
pub(crate) fn body(request: &ModelRequest, model: &str, stores: &[String]) -> Vec<u8> {
    let settings = &request.settings;
    let effort = effort(settings);
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("stream".to_owned(), true.into());
    body.insert("store".to_owned(), false.into());
    if settings.cache != Some(CacheMode::Off) {
        body.insert("prompt_cache_key".to_owned(), cache_key(request));
        body.extend(cache_retention(request).map(|time| ("prompt_cache_retention".to_owned(), time.into())));
    }
    if !request.system.is_empty() {
        body.insert("instructions".to_owned(), (&*request.system).into());
    }
    body.insert("input".to_owned(), request.messages.iter().flat_map(items).collect());
    let vendor_tools: Vec<_> = vendor_tools(request, stores).collect();
    let mut include: Vec<&str> = Vec::new();
    // xAI, whose interface is like this one, has no word for the first.
    if !vendor_tools.is_empty() && !model.starts_with("grok") {
        body.insert("max_tool_calls".to_owned(), MAX_USES.into());
        include = request.vendor_tools.iter().filter_map(|tool| included(*tool)).collect();
    }
    if !request.tools.is_empty() || !vendor_tools.is_empty() {
        let tools = vendor_tools.into_iter().chain(request.tools.iter().map(tool));
        body.insert("tools".to_owned(), tools.collect());
        if request.is_one_call() {
            body.insert("parallel_tool_calls".to_owned(), false.into());
        }
    }
    let choice = tool_choice(request, |name| json!({ "type": "function", "name": name }));
    body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
    if let Some(limit) = settings.max_tokens {
        body.insert("max_output_tokens".to_owned(), limit.max(LEAST_TOKENS).into());
    }
    if may_reason(model) {
        include.insert(0, "reasoning.encrypted_content");
        let effort = effort.and_then(|effort| effort.nearest(openai_efforts(model))).map(Effort::as_str);
        body.extend(effort.map(|effort| ("reasoning".to_owned(), json!({ "effort": effort }))));
    }
    if !include.is_empty() {
        body.insert("include".to_owned(), json!(include));
    }
    if is_sampled(model, effort) {
        body.extend(settings.temperature.map(|temperature| ("temperature".to_owned(), temperature.into())));
        body.extend(settings.top_p.map(|top_p| ("top_p".to_owned(), top_p.into())));
    }
    body.extend(settings.service_tier.as_deref().map(|tier| ("service_tier".to_owned(), tier.into())));
    if let Some(format) = &request.format {
        let (schema, strict) = (ClosedSchema::new(&format.schema), is_strict(&format.schema));
        let format = json!({ "type": "json_schema", "name": format.name, "schema": schema, "strict": strict });
        body.insert("text".to_owned(), json!({ "format": format }));
    }
    body_bytes(request, &body)
}

/// The tools that run at the vendor.
fn vendor_tools(request: &ModelRequest, stores: &[String]) -> impl Iterator<Item = Value> {
    let is_sent = |tool: &&VendorTool| is_sendable(request, **tool);
    request.vendor_tools.iter().filter(is_sent).filter_map(move |tool| match tool {
        VendorTool::WebSearch => Some(json!({ "type": "web_search" })),
        VendorTool::CodeExecution => Some(json!({ "type": "code_interpreter", "container": { "type": "auto" } })),
        VendorTool::FileSearch => Some(json!({ "type": "file_search", "vector_store_ids": stores })),
        VendorTool::WebFetch => None,
    })
}

/// What the vendor tells about its tools only when it is asked to.
fn included(tool: VendorTool) -> Option<&'static str> {
    match tool {
        VendorTool::WebSearch => Some("web_search_call.action.sources"),
        VendorTool::CodeExecution => Some("code_interpreter_call.outputs"),
        VendorTool::FileSearch => Some("file_search_call.results"),
        VendorTool::WebFetch => None,
    }
}

fn tool(tool: &ToolSpec) -> Value {
    // Without the last word the schema would have to be a strict one.
    json!({ "type": "function", "name": &*tool.name, "description": tool.description, "parameters": tool.parameters, "strict": false })
}

fn items(message: &ChatMessage) -> Vec<Value> {
    match message {
        ChatMessage::User { text, media } => vec![json!({ "role": "user", "content": content(text, media) })],
        ChatMessage::Assistant { text, tool_calls, echo, .. } => match echoed_items(DIALECT, echo.as_ref()) {
            Some(items) => {
                let is_new = |call: &&ToolCall| !items.iter().any(|item| item["call_id"] == *call.id);
                let new = tool_calls.iter().filter(is_new).map(call);
                items.iter().filter_map(|item| echoed_parts(item, tool_calls)).chain(new).collect()
            }
            None => text_part(text).into_iter().chain(tool_calls.iter().map(call)).collect(),
        },
        ChatMessage::Tool { call_id, content: text, is_error, media, .. } => {
            let output = content(&result_text(text, *is_error), media);
            vec![json!({ "type": "function_call_output", "call_id": &**call_id, "output": output })]
        }
    }
}

/// An item of a reply as it was; calls that were dropped are left out.
fn echoed_parts(item: &Value, calls: &[ToolCall]) -> Option<Value> {
    if item["type"] != "function_call" {
        return Some(item.clone());
    }
    calls.iter().find(|other| item["call_id"] == *other.id).map(call)
}

fn text_part(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({ "role": "assistant", "content": text }))
}

/// A text, or the parts of one with media.
fn content(text: &str, media: &[Media]) -> Value {
    if media.is_empty() {
        return text.into();
    }
    let text = (!text.is_empty()).then(|| json!({ "type": "input_text", "text": text }));
    text.into_iter().chain(media.iter().map(media_part)).collect()
}

fn media_part(media: &Media) -> Value {
    match MediaPart::of(media) {
        MediaPart::Image(image) => json!({ "type": "input_image", "image_url": data_url(image) }),
        MediaPart::Document { name, .. } => json!({ "type": "input_file", "filename": name, "file_data": data_url(media) }),
        MediaPart::Audio { .. } => {
            json!({ "type": "input_text", "text": not_sent(media) })
        }
        MediaPart::Absent(line) => json!({ "type": "input_text", "text": line }),
    }
}

fn call(call: &ToolCall) -> Value {
    json!({ "type": "function_call", "call_id": &*call.id, "name": &*call.name, "arguments": valid_arguments(&call.arguments) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use polis_domain::EffectClass;
    use polis_ports::{Format, ModelSettings, ToolChoice};

    use super::*;

    fn called(id: &str, arguments: &str) -> ToolCall {
        ToolCall { id: id.into(), name: "f".into(), arguments: arguments.into() }
    }

    #[test]
    fn the_body_is_as_documented() {
        let thought = json!({ "type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e" });
        let request = ModelRequest {
            system: "be brief".into(),
            messages: vec![
                ChatMessage::User {
                    text: "look".into(),
                    media: vec![Media::Inline { media_type: "image/png".into(), name: "".into(), data: "QUJD".into() }],
                },
                ChatMessage::Assistant {
                    text: "".into(),
                    reasoning: "".into(),
                    tool_calls: vec![called("a", "{\"x\":1}")],
                    echo: Some(Arc::new(json!({ "dialect": DIALECT, "items": [
                        thought,
                        { "type": "function_call", "call_id": "a" },
                        { "type": "function_call", "call_id": "torn" },
                    ] }))),
                },
                ChatMessage::Tool {
                    call_id: "a".into(),
                    name: "f".into(),
                    content: "gone".into(),
                    is_error: true,
                    media: vec![],
                },
                ChatMessage::Assistant {
                    text: "again".into(),
                    reasoning: "".into(),
                    tool_calls: vec![called("b", "")],
                    echo: Some(Arc::new(json!({ "dialect": "gemini", "items": [1] }))),
                },
                ChatMessage::Tool {
                    call_id: "b".into(),
                    name: "f".into(),
                    content: "ok".into(),
                    is_error: false,
                    media: vec![],
                },
                ChatMessage::user("and?"),
            ],
            tools: Arc::new([ToolSpec {
                name: "f".into(),
                description: "Does.".into(),
                parameters: json!({ "type": "object" }),
                class: EffectClass::Read,
                volatile: false,
            }]),
            settings: ModelSettings {
                temperature: Some(0.5),
                max_tokens: Some(9),
                effort: Some(Effort::Max),
                service_tier: Some("priority".into()),
                ..ModelSettings::default()
            },
            format: Some(Arc::new(Format {
                name: "n".to_owned(),
                schema: json!({ "type": "object", "properties": { "a": {} } }),
            })),
            ..ModelRequest::default()
        };
        let wire = |model: &str| serde_json::from_slice::<Value>(&body(&request, model, &[])).unwrap();
        let mut got = wire("gpt-5.6-sol");
        assert!(got["prompt_cache_key"].take().is_string());
        let want = json!({
            "model": "gpt-5.6-sol", "stream": true, "store": false, "prompt_cache_key": null,
            "instructions": "be brief", "max_output_tokens": 16,
            "include": ["reasoning.encrypted_content"], "reasoning": { "effort": "xhigh" }, "service_tier": "priority",
            "input": [
                { "role": "user", "content": [
                    { "type": "input_text", "text": "look" },
                    { "type": "input_image", "image_url": "data:image/png;base64,QUJD" },
                ] },
                thought,
                { "type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"x\":1}" },
                { "type": "function_call_output", "call_id": "a", "output": "error: gone" },
                { "role": "assistant", "content": "again" },
                { "type": "function_call", "call_id": "b", "name": "f", "arguments": "{}" },
                { "type": "function_call_output", "call_id": "b", "output": "ok" },
                { "role": "user", "content": "and?" },
            ],
            "tools": [{ "type": "function", "name": "f", "description": "Does.", "parameters": { "type": "object" }, "strict": false }],
            "text": { "format": { "type": "json_schema", "name": "n", "strict": false,
                "schema": { "type": "object", "properties": { "a": {} }, "additionalProperties": false } } },
        });
        assert_eq!(got, want);
        let choosing = ModelRequest { tool_choice: ToolChoice::Named("f".into()), one_call: true, ..request.clone() };
        let choosing: Value = serde_json::from_slice(&body(&choosing, "gpt-4o", &[])).unwrap();
        assert_eq!(
            (&choosing["tool_choice"], &choosing["parallel_tool_calls"]),
            (&json!({ "type": "function", "name": "f" }), &json!(false))
        );
        let plain = wire("gpt-4o");
        assert_eq!(plain["temperature"], 0.5);
        assert_eq!((plain.get("include"), plain.get("reasoning")), (None, None));
    }

    #[test]
    fn sampling_is_set_where_the_model_does_not_think_and_the_cache_as_asked() {
        let with = |model: &str, settings: ModelSettings| {
            let request = ModelRequest { settings, ..ModelRequest::default() };
            let body: Value = serde_json::from_slice(&body(&request, model, &[])).unwrap();
            let names = ["temperature", "top_p", "reasoning", "prompt_cache_retention", "parallel_tool_calls"];
            let sent: Value = names.iter().filter_map(|&name| Some((name.to_owned(), body.get(name)?.clone()))).collect();
            (sent, body.get("prompt_cache_key").is_some())
        };
        let sampled = ModelSettings { temperature: Some(0.2), top_p: Some(0.5), ..ModelSettings::default() };
        assert_eq!(with("gpt-5.2", sampled.clone()), (json!({}), true));
        let unthinking = ModelSettings { effort: Some(Effort::None), cache: Some(CacheMode::Long), ..sampled };
        let want =
            json!({ "temperature": 0.2, "top_p": 0.5, "reasoning": { "effort": "none" }, "prompt_cache_retention": "24h" });
        assert_eq!(with("gpt-5.2", unthinking), (want, true));
        let uncached = ModelSettings { cache: Some(CacheMode::Off), ..ModelSettings::default() };
        assert_eq!(with("gpt-4o", uncached), (json!({}), false));
    }
}
