//! A [`ModelRequest`] as the JSON body of this dialect.

use std::borrow::Cow;

use polis_domain::ToolCall;
use polis_ports::{ChatMessage, Effort, Media, MediaKind, ModelRequest, ToolChoice, ToolSpec};
use serde_json::{Map, Value, json};

use crate::media_parts::{not_sent, with_media_after_results};
use crate::request_parts::{arguments_object, body_bytes, effort, result_text, system_with_schema, thinks};

/// Writes the body.
pub(crate) fn body(request: &ModelRequest, model: &str) -> Vec<u8> {
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("stream".to_owned(), true.into());
    // There is no field for the choice of tools; one that may not be called is not shown.
    let has_tools = !request.tools.is_empty() && *request.choice() != ToolChoice::None;
    // The format would keep the model from calling tools, so that it is described in words beside them.
    let describes_schema = has_tools;
    let system = if describes_schema { system_with_schema(request) } else { Cow::Borrowed(&*request.system) };
    let system = (!system.is_empty()).then(|| json!({ "role": "system", "content": system }));
    let messages = with_media_after_results(&request.messages);
    let messages: Vec<_> = system.into_iter().chain(messages.iter().map(message)).collect();
    body.insert("messages".to_owned(), messages.into());
    if has_tools {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    if let Some(format) = request.format.as_ref().filter(|_| !describes_schema) {
        body.insert("format".to_owned(), format.schema.clone());
    }
    let settings = &request.settings;
    if let Some(effort) = effort(settings) {
        // Only this family knows degrees; the others think or do not.
        let degrees = [Effort::Low, Effort::Medium, Effort::High];
        let degree = effort.nearest(&degrees).filter(|_| model.contains("gpt-oss")).map(|degree| degree.as_str().into());
        body.insert("think".to_owned(), degree.unwrap_or(Value::Bool(thinks(effort))));
    }
    let mut options = Map::new();
    options.extend(settings.temperature.map(|temperature| ("temperature".to_owned(), temperature.into())));
    options.extend(settings.top_p.map(|top_p| ("top_p".to_owned(), top_p.into())));
    options.extend(settings.seed.map(|seed| ("seed".to_owned(), seed.into())));
    options.extend(settings.max_tokens.map(|limit| ("num_predict".to_owned(), limit.into())));
    if !settings.stop.is_empty() {
        options.insert("stop".to_owned(), json!(settings.stop));
    }
    if !options.is_empty() {
        body.insert("options".to_owned(), options.into());
    }
    body_bytes(request, &body)
}

fn message(message: &ChatMessage) -> Value {
    match message {
        ChatMessage::User { text, media } => {
            let (mut text, mut inline) = (text.to_string(), Vec::new());
            for media in media {
                match media {
                    Media::Inline { data, .. } if media.kind() == Some(MediaKind::Image) => inline.push(&**data),
                    // It fetches nothing; the model is told at least where the picture is.
                    Media::Url(url) => text.push_str(&format!("\n(image: {url})")),
                    other => text.push_str(&format!("\n{}", not_sent(other))),
                }
            }
            let mut entry = json!({ "role": "user", "content": text });
            if !inline.is_empty() {
                entry["images"] = inline.into();
            }
            entry
        }
        ChatMessage::Assistant { text, reasoning, tool_calls, .. } => {
            let mut entry = json!({ "role": "assistant", "content": &**text });
            if !tool_calls.is_empty() {
                entry["tool_calls"] = tool_calls.iter().map(call).collect();
                if !reasoning.is_empty() {
                    entry["thinking"] = (&**reasoning).into();
                }
            }
            entry
        }
        ChatMessage::Tool { name, content, is_error, call_id, .. } => {
            json!({ "role": "tool", "tool_name": &**name, "tool_call_id": &**call_id, "content": result_text(content, *is_error) })
        }
    }
}

fn call(call: &ToolCall) -> Value {
    json!({ "id": &*call.id, "function": { "name": &*call.name, "arguments": arguments_object(&call.arguments) } })
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "type": "function", "function": {
        "name": &*tool.name, "description": tool.description, "parameters": tool.parameters } })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use polis_domain::EffectClass;
    use polis_ports::{Format, ModelSettings};

    use super::*;

    #[test]
    fn the_body_is_as_documented() {
        let schema = json!({ "type": "object", "properties": { "a": {} } });
        let call = ToolCall { id: "x".into(), name: "f".into(), arguments: "{\"a\":1}".into() };
        let request = ModelRequest {
            system: "be brief".into(),
            messages: vec![
                ChatMessage::User {
                    text: "look".into(),
                    media: vec![
                        Media::Inline { media_type: "image/png".into(), name: "".into(), data: "QUJD".into() },
                        Media::Url("https://h/i.png".into()),
                    ],
                },
                ChatMessage::Assistant { text: "".into(), reasoning: "hm".into(), tool_calls: vec![call], echo: None },
                ChatMessage::Tool {
                    call_id: "x".into(),
                    name: "f".into(),
                    content: "gone".into(),
                    is_error: true,
                    media: vec![],
                },
                ChatMessage::assistant("so"),
            ],
            tools: Arc::new([ToolSpec {
                name: "f".into(),
                description: "Does.".into(),
                parameters: schema.clone(),
                class: EffectClass::Read,
                volatile: false,
            }]),
            format: Some(Arc::new(Format { name: "n".to_owned(), schema: schema.clone() })),
            settings: ModelSettings {
                temperature: Some(0.5),
                top_p: Some(0.9),
                stop: vec!["END".into()],
                seed: Some(7),
                max_tokens: Some(9),
                effort: Some(Effort::High),
                ..ModelSettings::default()
            },
            ..ModelRequest::default()
        };
        let got: Value = serde_json::from_slice(&body(&request, "qwen3:4b")).unwrap();
        let want = json!({
            "model": "qwen3:4b", "stream": true, "think": true,
            "options": { "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "seed": 7, "num_predict": 9 },
            "tools": [{ "type": "function", "function": { "name": "f", "description": "Does.", "parameters": schema } }],
            "messages": [
                { "role": "system", "content": format!("be brief\n\n{}", crate::request_parts::schema_instructions(&schema)) },
                { "role": "user", "content": "look\n(image: https://h/i.png)", "images": ["QUJD"] },
                { "role": "assistant", "content": "", "thinking": "hm",
                  "tool_calls": [{ "id": "x", "function": { "name": "f", "arguments": { "a": 1 } } }] },
                { "role": "tool", "tool_name": "f", "tool_call_id": "x", "content": "error: gone" },
                { "role": "assistant", "content": "so" },
            ],
        });
        assert_eq!(got, want);
        let request = ModelRequest { tools: Arc::default(), ..request };
        let without_tools: Value = serde_json::from_slice(&body(&request, "qwen3:4b")).unwrap();
        assert_eq!((&without_tools["format"], &without_tools["messages"][0]["content"]), (&schema, &json!("be brief")));
        let think = |model: &str, effort| {
            let settings = ModelSettings { effort, ..ModelSettings::default() };
            let request = ModelRequest { settings, ..ModelRequest::default() };
            serde_json::from_slice::<Value>(&body(&request, model)).unwrap().get("think").cloned()
        };
        assert_eq!(think("gpt-oss:20b", Some(Effort::None)), Some(json!("low")));
        assert_eq!(think("qwen3", Some(Effort::None)), Some(json!(false)));
        assert_eq!(think("qwen3", Some(Effort::Low)), Some(json!(true)));
        assert_eq!(think("qwen3", None), None);
    }
}
