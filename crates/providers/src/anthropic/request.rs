//! A [`ModelRequest`] as the JSON body of this dialect.

use polis_domain::ToolCall;
use polis_ports::{ChatMessage, Effort, Media, ModelRequest, ToolChoice, ToolSpec};
use serde_json::{Map, Value, json};

use super::reply::DIALECT;
use crate::media_parts::{MediaPart, data_url, not_sent};
use crate::request_parts::{ClosedSchema, arguments_object, body_bytes, effort_name};
use crate::wire::echoed_items;

/// Smallest and usual thinking budgets, in tokens, where the model does not choose for itself.
const LEAST_BUDGET: u32 = 1024;
const MEDIUM_BUDGET: u32 = 4096;
const HIGH_BUDGET: u32 = 16_384;

/// Writes the body.
pub(crate) fn body(request: &ModelRequest, model: &str) -> Vec<u8> {
    let version = Version::of(model);
    let max_tokens = request.max_tokens.unwrap_or_else(|| version.usual_max_tokens());
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("max_tokens".to_owned(), max_tokens.into());
    body.insert("stream".to_owned(), true.into());
    if !request.system.is_empty() {
        body.insert("system".to_owned(), json!([with_cache_mark(json!({ "type": "text", "text": &*request.system }))]));
    }
    if let Some((last, others)) = request.tools.split_last() {
        let tools: Vec<_> = others.iter().map(tool).chain([with_cache_mark(tool(last))]).collect();
        body.insert("tools".to_owned(), tools.into());
    }
    body.insert("messages".to_owned(), messages(request).into());
    let mut output = Map::new();
    let thinking = request.effort.and_then(|effort| version.thinking(effort, max_tokens));
    if let (Some(effort), true) = (request.effort, version.is_adaptive()) {
        output.insert("effort".to_owned(), effort_name(effort).into());
    }
    if let Some(format) = &request.format {
        output.insert("format".to_owned(), json!({ "type": "json_schema", "schema": ClosedSchema::new(&format.schema) }));
    }
    if !output.is_empty() {
        body.insert("output_config".to_owned(), output.into());
    }
    body.extend(tool_choice(request, thinking.is_some()).map(|choice| ("tool_choice".to_owned(), choice)));
    match thinking {
        Some(thinking) => {
            body.insert("thinking".to_owned(), thinking);
        }
        None => {
            // Who thinks takes no temperature, and neither do the newest.
            if let Some(temperature) = request.temperature.filter(|_| version < Version(4, 7)) {
                body.insert("temperature".to_owned(), temperature.into());
            }
        }
    }
    body_bytes(request, &body)
}

/// The generation of a model, as in `claude-opus-4-6` or `claude-3-5-haiku-20241022`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

impl Version {
    /// A name that does not tell is taken for a new one.
    fn of(model: &str) -> Self {
        let numbers = model.split(['-', '.', '@', ':']).filter(|part| part.len() <= 2);
        let mut numbers = numbers.filter_map(|part| part.parse().ok());
        match numbers.next() {
            Some(major) => Self(major, numbers.next().unwrap_or_default()),
            None => Self(u32::MAX, 0),
        }
    }

    fn is_adaptive(self) -> bool {
        self >= Self(4, 6)
    }

    fn usual_max_tokens(self) -> u32 {
        if self >= Self(4, 0) { 16_384 } else { 4096 }
    }

    fn thinking(self, effort: Effort, max_tokens: u32) -> Option<Value> {
        if self >= Self(4, 7) {
            // Without the last word it would think in secret.
            return Some(json!({ "type": "adaptive", "display": "summarized" }));
        }
        if self.is_adaptive() {
            return Some(json!({ "type": "adaptive" }));
        }
        let budget = match effort {
            _ if self < Self(3, 7) => return None,
            Effort::Low => return None,
            Effort::Medium => MEDIUM_BUDGET,
            Effort::High => HIGH_BUDGET,
        };
        // The budget is part of the limit and must leave room for the answer.
        let budget = budget.min(max_tokens.saturating_sub(LEAST_BUDGET));
        (budget >= LEAST_BUDGET).then(|| json!({ "type": "enabled", "budget_tokens": budget }))
    }
}

/// The choice of tools; none where the model chooses freely. A model that thinks cannot be made to call one.
fn tool_choice(request: &ModelRequest, thinks: bool) -> Option<Value> {
    let mut choice = match &request.tool_choice {
        _ if request.tools.is_empty() => return None,
        ToolChoice::Required if !thinks => json!({ "type": "any" }),
        ToolChoice::Named(name) if !thinks => json!({ "type": "tool", "name": &**name }),
        _ if request.one_call => json!({ "type": "auto" }),
        _ => return None,
    };
    if request.one_call {
        choice["disable_parallel_tool_use"] = true.into();
    }
    Some(choice)
}

/// Asks for everything up to this block to be cached.
fn with_cache_mark(mut block: Value) -> Value {
    block["cache_control"] = json!({ "type": "ephemeral" });
    block
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "name": &*tool.name, "description": tool.description, "input_schema": tool.parameters })
}

/// The conversation in turns: what follows on the same side is one message.
fn messages(request: &ModelRequest) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, blocks) = match message {
            ChatMessage::User { text, media } => ("user", media.iter().map(media_block).chain(text_part(text)).collect()),
            ChatMessage::Assistant { text, tool_calls, echo, .. } => {
                let blocks = match echoed_items(DIALECT, echo.as_ref()) {
                    Some(blocks) => echoed_parts(blocks, tool_calls),
                    None => text_part(text).into_iter().chain(tool_calls.iter().map(call)).collect(),
                };
                ("assistant", blocks)
            }
            ChatMessage::Tool { call_id, content, is_error, media, .. } => {
                let content: Value = match &**media {
                    [] => (&**content).into(),
                    media => text_part(content).into_iter().chain(media.iter().map(media_block)).collect(),
                };
                let result =
                    json!({ "type": "tool_result", "tool_use_id": id(call_id), "content": content, "is_error": is_error });
                ("user", vec![result])
            }
        };
        match turns.last_mut() {
            Some((last, open)) if *last == role => open.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => turns.push((role, blocks)),
        }
    }
    if let Some(block) = turns.last_mut().and_then(|(_, blocks)| blocks.last_mut())
        && !is_thought(block)
    {
        *block = with_cache_mark(block.take());
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn is_thought(block: &Value) -> bool {
    ["thinking", "redacted_thinking"].iter().any(|kind| block["type"] == *kind)
}

/// The blocks of a reply as they were, without the calls that were dropped.
fn echoed_parts(blocks: &[Value], calls: &[ToolCall]) -> Vec<Value> {
    let is_kept = |block: &&Value| block["type"] != "tool_use" || calls.iter().any(|call| block["id"] == *call.id);
    blocks.iter().filter(is_kept).cloned().collect()
}

/// Empty text is refused.
fn text_part(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn media_block(media: &Media) -> Value {
    let base64 = |media_type: &str, data: &str| json!({ "type": "base64", "media_type": media_type, "data": data });
    match MediaPart::of(media) {
        MediaPart::Image(Media::Inline { media_type, data, .. }) => {
            json!({ "type": "image", "source": base64(media_type, data) })
        }
        MediaPart::Image(image) => json!({ "type": "image", "source": { "type": "url", "url": data_url(image) } }),
        MediaPart::Document { name, media_type, data } => {
            json!({ "type": "document", "source": base64(media_type, data), "title": name })
        }
        MediaPart::Audio { .. } => json!({ "type": "text", "text": not_sent(media) }),
        MediaPart::Absent(line) => json!({ "type": "text", "text": line }),
    }
}

fn call(call: &ToolCall) -> Value {
    json!({ "type": "tool_use", "id": id(&call.id), "name": &*call.name, "input": arguments_object(&call.arguments) })
}

/// Other vendors' ids hold characters that are refused here.
fn id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use polis_ports::Format;

    use super::*;

    fn check(request: &ModelRequest, model: &str, want: Value) {
        let body: Value = serde_json::from_slice(&body(request, model)).unwrap();
        assert_eq!(body, want);
    }

    fn call(id: &str, arguments: &str) -> ToolCall {
        ToolCall { id: id.into(), name: "read_file".into(), arguments: arguments.into() }
    }

    fn result(id: &str, content: &str, is_error: bool) -> ChatMessage {
        ChatMessage::Tool { call_id: id.into(), name: "read_file".into(), content: content.into(), is_error, media: vec![] }
    }

    #[test]
    fn a_bare_request_has_the_limit_that_must_be_there() {
        let request =
            ModelRequest { messages: vec![ChatMessage::user("hi")], temperature: Some(0.5), ..ModelRequest::default() };
        let messages = json!([{ "role": "user", "content": [
            { "type": "text", "text": "hi", "cache_control": { "type": "ephemeral" } }] }]);
        check(
            &request,
            "claude-sonnet-4-5-20250929",
            json!({ "model": "claude-sonnet-4-5-20250929", "max_tokens": 16384, "stream": true, "temperature": 0.5, "messages": messages }),
        );
        check(
            &request,
            "claude-opus-4-8",
            json!({ "model": "claude-opus-4-8", "max_tokens": 16384, "stream": true, "messages": messages }),
        );
    }

    #[test]
    fn a_full_request_holds_marks_pictures_results_and_signed_thoughts() {
        let thought = json!({ "type": "thinking", "thinking": "hm", "signature": "s" });
        let used = json!({ "type": "tool_use", "id": "a", "name": "read_file", "input": { "x": 1 } });
        let torn = json!({ "type": "tool_use", "id": "torn", "name": "read_file", "input": {} });
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
                ChatMessage::Assistant {
                    text: "".into(),
                    reasoning: "hm".into(),
                    tool_calls: vec![call("a", "{\"x\":1}")],
                    echo: Some(Arc::new(json!({ "dialect": DIALECT, "items": [thought, used, torn] }))),
                },
                result("a", "text", false),
                ChatMessage::Assistant {
                    text: "again".into(),
                    reasoning: "from elsewhere".into(),
                    tool_calls: vec![call("functions.f:0", "{\"pa"), call("c", "")],
                    echo: Some(Arc::new(json!({ "dialect": "gemini", "items": [{ "text": "x" }] }))),
                },
                result("functions.f:0", "gone", true),
                result("c", "", false),
                ChatMessage::user("and?"),
            ],
            tools: Arc::new([ToolSpec {
                name: "read_file".into(),
                description: "Reads.".into(),
                parameters: json!({ "type": "object" }),
                class: polis_domain::EffectClass::Read,
                volatile: false,
            }]),
            max_tokens: Some(9000),
            ..ModelRequest::default()
        };
        let mark = json!({ "type": "ephemeral" });
        check(
            &request,
            "claude-sonnet-4-6",
            json!({
                "model": "claude-sonnet-4-6", "max_tokens": 9000, "stream": true,
                "system": [{ "type": "text", "text": "be brief", "cache_control": mark }],
                "tools": [{ "name": "read_file", "description": "Reads.", "input_schema": { "type": "object" }, "cache_control": mark }],
                "messages": [
                    { "role": "user", "content": [
                        { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "QUJD" } },
                        { "type": "image", "source": { "type": "url", "url": "https://h/i.png" } },
                        { "type": "text", "text": "look" },
                    ] },
                    { "role": "assistant", "content": [thought, used] },
                    { "role": "user", "content": [
                        { "type": "tool_result", "tool_use_id": "a", "content": "text", "is_error": false },
                    ] },
                    { "role": "assistant", "content": [
                        { "type": "text", "text": "again" },
                        { "type": "tool_use", "id": "functions_f_0", "name": "read_file", "input": { "unreadable": "{\"pa" } },
                        { "type": "tool_use", "id": "c", "name": "read_file", "input": {} },
                    ] },
                    { "role": "user", "content": [
                        { "type": "tool_result", "tool_use_id": "functions_f_0", "content": "gone", "is_error": true },
                        { "type": "tool_result", "tool_use_id": "c", "content": "", "is_error": false },
                        { "type": "text", "text": "and?", "cache_control": mark },
                    ] },
                ],
            }),
        );
    }

    #[test]
    fn a_model_is_made_to_call_a_tool_unless_it_thinks() {
        let choice = |tool_choice, one_call, effort| {
            let tool = ToolSpec {
                name: "f".into(),
                description: String::new(),
                parameters: json!({}),
                class: polis_domain::EffectClass::Read,
                volatile: false,
            };
            let request = ModelRequest { tools: [tool].into(), tool_choice, one_call, effort, ..ModelRequest::default() };
            serde_json::from_slice::<Value>(&body(&request, "claude-sonnet-4-6")).unwrap().get("tool_choice").cloned()
        };
        assert_eq!(choice(ToolChoice::Auto, false, None), None);
        assert_eq!(choice(ToolChoice::Required, false, None), Some(json!({ "type": "any" })));
        let named = json!({ "type": "tool", "name": "f", "disable_parallel_tool_use": true });
        assert_eq!(choice(ToolChoice::Named("f".into()), true, None), Some(named));
        assert_eq!(choice(ToolChoice::Required, false, Some(Effort::High)), None);
        let single = json!({ "type": "auto", "disable_parallel_tool_use": true });
        assert_eq!(choice(ToolChoice::Required, true, Some(Effort::High)), Some(single));
    }

    #[test]
    fn effort_and_shape_are_said_as_the_generation_wants_it() {
        let ask = |model: &str, effort, max_tokens| {
            let schema = json!({ "type": "object", "properties": {} });
            let request = ModelRequest {
                effort: Some(effort),
                max_tokens,
                temperature: Some(0.5),
                format: Some(Arc::new(Format { name: "f".to_owned(), schema })),
                ..ModelRequest::default()
            };
            let mut body: Value = serde_json::from_slice(&body(&request, model)).unwrap();
            assert_eq!(
                body["output_config"]["format"],
                json!({ "type": "json_schema",
                "schema": { "type": "object", "properties": {}, "additionalProperties": false } })
            );
            (body["thinking"].take(), body["output_config"]["effort"].take(), body["temperature"].take())
        };
        let (null, half) = (Value::Null, json!(0.5));
        let adaptive = json!({ "type": "adaptive" });
        let enabled = |budget: u32| json!({ "type": "enabled", "budget_tokens": budget });
        assert_eq!(ask("claude-opus-4-6", Effort::Low, None), (adaptive, json!("low"), null.clone()));
        let shown = json!({ "type": "adaptive", "display": "summarized" });
        assert_eq!(ask("claude-opus-4-8", Effort::High, None), (shown.clone(), json!("high"), null.clone()));
        assert_eq!(ask("claude-sonnet-5", Effort::Medium, None).0, shown);
        assert_eq!(ask("claude-sonnet-4-5", Effort::Low, None), (null.clone(), null.clone(), half.clone()));
        assert_eq!(ask("claude-sonnet-4-5", Effort::Medium, None), (enabled(4096), null.clone(), null.clone()));
        assert_eq!(ask("claude-opus-4-20250514", Effort::High, Some(4000)), (enabled(2976), null.clone(), null.clone()));
        assert_eq!(ask("claude-opus-4-1", Effort::High, Some(2000)), (null.clone(), null.clone(), half.clone()));
        assert_eq!(ask("claude-3-5-haiku-20241022", Effort::High, None), (null.clone(), null, half));
    }
}
