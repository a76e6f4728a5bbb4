//! A [`ModelRequest`] as the JSON body of this dialect.

use std::borrow::Cow;

use polis_domain::ToolCall;
use polis_ports::{ChatMessage, Effort, Media, MediaKind, ModelRequest, ModelSettings, ToolChoice, ToolSpec, VendorTool};
use serde_json::{Map, Value, json};

use super::reply::DIALECT;
use crate::media_parts::{media_line, not_sent};
use crate::request_parts::{arguments_object, body_bytes, effort, system_with_schema, thinking_budget};
use crate::wire::echoed_items;

/// Stands for the signature of a call that another model made; newer models refuse a call without one.
const FOREIGN: &str = "skip_thought_signature_validator";

/// Most stop texts that are taken.
const MAX_STOPS: usize = 5;

/// Writes the body.
pub(crate) fn body(request: &ModelRequest, model: &str, stores: &[String]) -> Vec<u8> {
    let mut body = Map::new();
    let mut config = Map::new();
    // Before the third generation, tools and a shape exclude each other.
    let describes_schema = !request.tools.is_empty() && !is_third(model);
    let system = if describes_schema { system_with_schema(request) } else { Cow::Borrowed(&*request.system) };
    if !system.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({ "parts": [{ "text": system }] }));
    }
    body.insert("contents".to_owned(), contents(request, model).into());
    let mut tools: Vec<_> = vendor_tools(request, model, stores).collect();
    let mut tool_config = Map::new();
    if !request.tools.is_empty() {
        // Then the calls of both are parts of the reply, which are sent back.
        if !tools.is_empty() {
            tool_config.insert("includeServerSideToolInvocations".to_owned(), true.into());
        }
        let functions: Vec<_> = request.tools.iter().map(tool).collect();
        tools.insert(0, json!({ "functionDeclarations": functions }));
        let calling = match request.choice() {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(json!({ "mode": "NONE" })),
            ToolChoice::Required => Some(json!({ "mode": "ANY" })),
            ToolChoice::Named(name) => Some(json!({ "mode": "ANY", "allowedFunctionNames": [&**name] })),
        };
        tool_config.extend(calling.map(|calling| ("functionCallingConfig".to_owned(), calling)));
    }
    for (name, part) in [("tools", Value::from(tools)), ("toolConfig", tool_config.into())] {
        let is_empty = part.as_array().is_some_and(Vec::is_empty) || part.as_object().is_some_and(Map::is_empty);
        if !is_empty {
            body.insert(name.to_owned(), part);
        }
    }
    let settings = &request.settings;
    config.extend(settings.temperature.map(|temperature| ("temperature".to_owned(), temperature.into())));
    config.extend(settings.top_p.map(|top_p| ("topP".to_owned(), top_p.into())));
    if !settings.stop.is_empty() {
        config.insert("stopSequences".to_owned(), json!(settings.stop.iter().take(MAX_STOPS).collect::<Vec<_>>()));
    }
    // It takes 32 bits.
    let seed = settings.seed.and_then(|seed| i32::try_from(seed).ok());
    config.extend(seed.map(|seed| ("seed".to_owned(), seed.into())));
    config.extend(settings.max_tokens.map(|limit| ("maxOutputTokens".to_owned(), limit.into())));
    if let Some(format) = request.format.as_ref().filter(|_| !describes_schema) {
        config.insert("responseMimeType".to_owned(), "application/json".into());
        config.insert("responseJsonSchema".to_owned(), format.schema.clone());
    }
    config.extend(thinking(model, settings).map(|thinking| ("thinkingConfig".to_owned(), thinking)));
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), config.into());
    }
    body_bytes(request, &body)
}

/// How much to think, and that we want to see it; nothing for models that do not think.
fn thinking(model: &str, settings: &ModelSettings) -> Option<Value> {
    let never = ["gemini-1", "gemini-2.0"].iter().any(|start| model.starts_with(start));
    let made_for_else = ["image", "tts", "audio", "embedding", "live"].iter().any(|part| model.contains(part));
    if !model.starts_with("gemini") || never || made_for_else {
        return None;
    }
    let mut thinking = json!({ "includeThoughts": true });
    let is_pro = model.contains("pro");
    if model.starts_with("gemini-2.5") {
        // The larger one cannot be kept from thinking.
        let range = if is_pro { 128..=32_768 } else { 0..=24_576 };
        if let Some(budget) = thinking_budget(settings) {
            let budget = budget.clamp(*range.start(), *range.end());
            // There is nothing to see of thoughts that are switched off.
            thinking = json!({ "includeThoughts": budget > 0, "thinkingBudget": budget });
        }
    } else if let Some(effort) = effort(settings).and_then(|effort| effort.nearest(levels(model, is_pro))) {
        thinking["thinkingLevel"] = effort.as_str().into();
    }
    Some(thinking)
}

/// The degrees of thinking of a model from the third generation on.
fn levels(model: &str, is_pro: bool) -> &'static [Effort] {
    match model {
        // The first of the third generation knows only two degrees.
        _ if model.starts_with("gemini-3-pro") => &[Effort::Low, Effort::High],
        _ if is_pro => &[Effort::Low, Effort::Medium, Effort::High],
        _ => &[Effort::Minimal, Effort::Low, Effort::Medium, Effort::High],
    }
}

fn is_third(model: &str) -> bool {
    !["gemini-1", "gemini-2", "gemma"].iter().any(|start| model.starts_with(start))
}

/// The tools that run at the vendor. Before the third generation they exclude ours.
fn vendor_tools(request: &ModelRequest, model: &str, stores: &[String]) -> impl Iterator<Item = Value> {
    let may_have = *request.choice() != ToolChoice::None && (is_third(model) || request.tools.is_empty());
    request.vendor_tools.iter().filter(move |_| may_have).map(move |tool| match tool {
        VendorTool::WebSearch => json!({ "googleSearch": {} }),
        VendorTool::WebFetch => json!({ "urlContext": {} }),
        VendorTool::CodeExecution => json!({ "codeExecution": {} }),
        VendorTool::FileSearch => json!({ "fileSearch": { "fileSearchStoreNames": stores } }),
    })
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "name": &*tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters })
}

/// The conversation in turns: what follows on the same side is one content.
fn contents(request: &ModelRequest, model: &str) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut after_results = Vec::new();
    for message in &request.messages {
        let (role, parts): (_, Vec<Value>) = match message {
            ChatMessage::User { text, media } => ("user", media.iter().map(media_part).chain(text_part(text)).collect()),
            ChatMessage::Assistant { text, tool_calls, echo, .. } => {
                let parts = match echoed_items(DIALECT, echo.as_ref()) {
                    Some(parts) => echoed_parts(parts, tool_calls.len()),
                    None => text_part(text).into_iter().chain(calls(tool_calls, model)).collect(),
                };
                ("model", parts)
            }
            ChatMessage::Tool { call_id, name, content, is_error, media } => {
                let key = if *is_error { "error" } else { "result" };
                let mut response = json!({ "name": &**name, "response": { key: &**content } });
                if has_own_id(&turns, call_id) {
                    response["id"] = (&**call_id).into();
                }
                if media.is_empty() {
                    ("user", vec![json!({ "functionResponse": response })])
                } else if is_third(model) && media.iter().all(is_part_of_response) {
                    response["parts"] = media.iter().map(media_part).collect();
                    ("user", vec![json!({ "functionResponse": response })])
                } else {
                    // Older models take no media inside a result; they follow the results.
                    after_results.extend(text_part(&media_line(name, call_id, media.len())));
                    after_results.extend(media.iter().map(media_part));
                    ("user", vec![json!({ "functionResponse": response })])
                }
            }
        };
        if !matches!(message, ChatMessage::Tool { .. }) {
            open_turn(&mut turns, "user", std::mem::take(&mut after_results));
        }
        open_turn(&mut turns, role, parts);
    }
    open_turn(&mut turns, "user", after_results);
    turns.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect()
}

/// Whether it can be inside a result of a tool.
fn is_part_of_response(media: &Media) -> bool {
    matches!((media, media.kind()), (Media::Inline { .. }, Some(MediaKind::Image | MediaKind::Document)))
}

/// Adds parts to the last turn if it is of this side, else as a new one.
fn open_turn<'a>(turns: &mut Vec<(&'a str, Vec<Value>)>, role: &'a str, parts: Vec<Value>) {
    match turns.last_mut() {
        Some((last, open)) if *last == role => open.extend(parts),
        _ if parts.is_empty() => {}
        _ => turns.push((role, parts)),
    }
}

/// Whether the vendor itself gave a call this id.
fn has_own_id(turns: &[(&str, Vec<Value>)], id: &str) -> bool {
    turns.iter().rev().any(|(_, parts)| parts.iter().any(|part| part["functionCall"]["id"] == *id))
}

/// The parts of a reply as they were, without the calls that were dropped.
fn echoed_parts(parts: &[Value], calls: usize) -> Vec<Value> {
    let mut left = calls;
    let mut is_kept = |part: &&Value| {
        let is_call = part.get("functionCall").is_some();
        let kept = !is_call || left > 0;
        left = left.saturating_sub(usize::from(is_call));
        kept
    };
    parts.iter().filter(|part| is_kept(part)).cloned().collect()
}

fn text_part(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({ "text": text }))
}

fn media_part(media: &Media) -> Value {
    match media {
        Media::Inline { media_type, data, .. } => json!({ "inlineData": { "mimeType": &**media_type, "data": &**data } }),
        Media::Url(url) => json!({ "fileData": { "fileUri": &**url } }),
        Media::Stored(_) => json!({ "text": not_sent(media) }),
    }
}

/// Calls that another model made.
fn calls(calls: &[ToolCall], model: &str) -> impl Iterator<Item = Value> {
    let is_third = is_third(model);
    calls.iter().enumerate().map(move |(place, call)| {
        let mut part = json!({ "functionCall": { "name": &*call.name, "args": arguments_object(&call.arguments) } });
        if is_third && place == 0 {
            part["thoughtSignature"] = FOREIGN.into();
        }
        part
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use polis_domain::EffectClass;
    use polis_ports::Format;

    use super::*;

    fn wire(request: &ModelRequest, model: &str) -> Value {
        serde_json::from_slice(&body(request, model, &[])).unwrap()
    }

    fn call(id: &str, arguments: &str) -> ToolCall {
        ToolCall { id: id.into(), name: "f".into(), arguments: arguments.into() }
    }

    fn result(id: &str, content: &str, is_error: bool) -> ChatMessage {
        ChatMessage::Tool { call_id: id.into(), name: "f".into(), content: content.into(), is_error, media: vec![] }
    }

    fn asking() -> ModelRequest {
        let schema = json!({ "type": "object" });
        let signed = json!({ "functionCall": { "name": "f", "args": {}, "id": "own" }, "thoughtSignature": "s" });
        let torn = json!({ "functionCall": { "name": "f", "args": {} } });
        ModelRequest {
            system: "be brief".into(),
            messages: vec![
                ChatMessage::User {
                    text: "look".into(),
                    media: vec![
                        Media::Inline { media_type: "image/png".into(), name: "".into(), data: "QUJD".into() },
                        Media::Url("https://h/i.png".into()),
                    ],
                },
                ChatMessage::Assistant {
                    text: "".into(),
                    reasoning: "hm".into(),
                    tool_calls: vec![call("own", "{}")],
                    echo: Some(Arc::new(json!({ "dialect": DIALECT, "items": [signed, torn] }))),
                },
                result("own", "text", false),
                ChatMessage::Assistant {
                    text: "again".into(),
                    reasoning: "".into(),
                    tool_calls: vec![call("b", "{\"x\":1}"), call("c", "")],
                    echo: Some(Arc::new(json!({ "dialect": "anthropic", "items": [1] }))),
                },
                result("b", "gone", true),
                result("c", "", false),
            ],
            tools: Arc::new([ToolSpec {
                name: "f".into(),
                description: "Does.".into(),
                parameters: schema.clone(),
                class: EffectClass::Read,
                volatile: false,
            }]),
            settings: ModelSettings { temperature: Some(0.5), max_tokens: Some(9), ..ModelSettings::default() },
            format: Some(Arc::new(Format { name: "n".to_owned(), schema })),
            ..ModelRequest::default()
        }
    }

    #[test]
    fn a_model_is_made_to_call_one_tool_or_any() {
        let choice = |tool_choice| {
            let body = body(&ModelRequest { tool_choice, ..asking() }, "gemini-3-pro", &[]);
            serde_json::from_slice::<Value>(&body).unwrap().get("toolConfig").cloned()
        };
        assert_eq!(choice(ToolChoice::Auto), None);
        assert_eq!(choice(ToolChoice::Required), Some(json!({ "functionCallingConfig": { "mode": "ANY" } })));
        let named = json!({ "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["f"] } });
        assert_eq!(choice(ToolChoice::Named("f".into())), Some(named));
    }

    #[test]
    fn the_body_is_as_documented() {
        let want = json!({
            "systemInstruction": { "parts": [{ "text": "be brief" }] },
            "contents": [
                { "role": "user", "parts": [
                    { "inlineData": { "mimeType": "image/png", "data": "QUJD" } },
                    { "fileData": { "fileUri": "https://h/i.png" } },
                    { "text": "look" },
                ] },
                { "role": "model", "parts": [
                    { "functionCall": { "name": "f", "args": {}, "id": "own" }, "thoughtSignature": "s" },
                ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "name": "f", "response": { "result": "text" }, "id": "own" } },
                ] },
                { "role": "model", "parts": [
                    { "text": "again" },
                    { "functionCall": { "name": "f", "args": { "x": 1 } }, "thoughtSignature": FOREIGN },
                    { "functionCall": { "name": "f", "args": {} } },
                ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "name": "f", "response": { "error": "gone" } } },
                    { "functionResponse": { "name": "f", "response": { "result": "" } } },
                ] },
            ],
            "tools": [{ "functionDeclarations": [
                { "name": "f", "description": "Does.", "parametersJsonSchema": { "type": "object" } },
            ] }],
            "generationConfig": {
                "temperature": 0.5, "maxOutputTokens": 9,
                "responseMimeType": "application/json", "responseJsonSchema": { "type": "object" },
                "thinkingConfig": { "includeThoughts": true },
            },
        });
        assert_eq!(wire(&asking(), "gemini-3-flash-preview"), want);
    }

    #[test]
    fn a_shape_beside_tools_is_said_in_words_to_those_who_cannot_have_both() {
        let got = wire(&asking(), "gemini-2.5-flash");
        assert_eq!(got["generationConfig"].get("responseMimeType"), None);
        let system = got["systemInstruction"]["parts"][0]["text"].as_str().unwrap();
        assert!(system.starts_with("be brief\n\nAnswer with JSON alone"), "{system}");
        let alone = ModelRequest { tools: Arc::new([]), ..asking() };
        assert_eq!(wire(&alone, "gemini-2.5-flash")["generationConfig"]["responseMimeType"], "application/json");
    }

    #[test]
    fn effort_is_a_budget_or_a_level() {
        let budget = |budget: u32| Some(json!({ "includeThoughts": budget > 0, "thinkingBudget": budget }));
        let level = |level: &str| Some(json!({ "includeThoughts": true, "thinkingLevel": level }));
        let cases = [
            ("gemini-2.5-flash", Some(Effort::None), budget(0)),
            ("gemini-2.5-pro", Some(Effort::None), budget(128)),
            ("gemini-2.5-pro", Some(Effort::High), budget(16_384)),
            ("gemini-2.5-flash", Some(Effort::Max), budget(24_576)),
            ("gemini-3-pro-preview", Some(Effort::Xhigh), level("high")),
            ("gemini-3.1-pro", Some(Effort::None), level("low")),
            ("gemini-3.8-flash", Some(Effort::Medium), level("medium")),
            ("gemini-3.8-flash", Some(Effort::None), level("minimal")),
            ("gemini-flash-latest", None, Some(json!({ "includeThoughts": true }))),
            ("gemini-2.0-flash", Some(Effort::High), None),
            ("gemini-2.5-flash-image", Some(Effort::High), None),
            ("gemma-3-27b-it", Some(Effort::High), None),
        ];
        for (model, effort, want) in cases {
            let settings = ModelSettings { effort, ..ModelSettings::default() };
            assert_eq!(thinking(model, &settings), want, "{model}");
        }
        let own = ModelSettings { thinking_budget: Some(5000), ..ModelSettings::default() };
        assert_eq!(thinking("gemini-2.5-flash", &own), budget(5000));
        assert_eq!(thinking("gemini-3.8-flash", &own), level("medium"));
    }

    #[test]
    fn sampling_is_part_of_the_configuration() {
        let settings = ModelSettings {
            top_p: Some(0.9),
            stop: (0..7).map(|n| format!("{n}").into()).collect(),
            seed: Some(7),
            tool_choice: Some(ToolChoice::None),
            ..ModelSettings::default()
        };
        let request = ModelRequest { settings, messages: Vec::new(), format: None, ..asking() };
        let body = wire(&request, "gemini-2.0-flash");
        assert_eq!(body["generationConfig"], json!({ "topP": 0.9, "stopSequences": ["0", "1", "2", "3", "4"], "seed": 7 }));
        assert_eq!(body["toolConfig"], json!({ "functionCallingConfig": { "mode": "NONE" } }));
        let settings = ModelSettings { seed: Some(1 << 40), ..ModelSettings::default() };
        let large = ModelRequest { settings, format: None, ..asking() };
        assert_eq!(wire(&large, "gemini-2.0-flash").get("generationConfig"), None);
    }
}
