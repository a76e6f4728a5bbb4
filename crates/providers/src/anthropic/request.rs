//! A [`ModelRequest`] as the JSON body of this dialect.

use polis_domain::ToolCall;
use polis_ports::{CacheMode, ChatMessage, Effort, Media, ModelRequest, ModelSettings, ToolChoice, ToolSpec, VendorTool};
use serde_json::{Map, Value, json};

use super::reply::DIALECT;
use crate::media_parts::{MediaPart, data_url, not_sent};
use crate::request_parts::{ClosedSchema, arguments_object, body_bytes, effort, thinking_budget};
use crate::vendor_tools::{MAX_USES, is_sendable};
use crate::wire::echoed_items;

/// The smallest thinking budget, in tokens, and the least that is left for the answer.
const LEAST_BUDGET: u32 = 1024;

/// Most tokens of a page that the vendor reads.
const FETCHED_TOKENS: u32 = 20_000;

/// Writes the body.
pub(crate) fn body(request: &ModelRequest, model: &str) -> Vec<u8> {
    body_bytes(request, &fields(request, model))
}

/// The fields of the body.
pub(crate) fn fields(request: &ModelRequest, model: &str) -> Map<String, Value> {
    let version = Version::of(model);
    let settings = &request.settings;
    let Thinking { thinking, effort, max_tokens } = version.thinking(settings);
    let is_on = thinking.as_ref().is_some_and(|thinking| thinking["type"] != "disabled");
    let mark = CacheMark(settings.cache);
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("max_tokens".to_owned(), max_tokens.into());
    body.insert("stream".to_owned(), true.into());
    if !request.system.is_empty() {
        body.insert("system".to_owned(), json!([mark.on(json!({ "type": "text", "text": &*request.system }))]));
    }
    let mut tools: Vec<_> = vendor_tools(request).chain(request.tools.iter().map(tool)).collect();
    if let Some(last) = tools.last_mut() {
        *last = mark.on(last.take());
        body.insert("tools".to_owned(), tools.into());
    }
    body.insert("messages".to_owned(), messages(request, mark).into());
    let mut output = Map::new();
    output.extend(effort.map(|effort| ("effort".to_owned(), effort.as_str().into())));
    if let Some(format) = &request.format {
        output.insert("format".to_owned(), json!({ "type": "json_schema", "schema": ClosedSchema::new(&format.schema) }));
    }
    if !output.is_empty() {
        body.insert("output_config".to_owned(), output.into());
    }
    body.extend(tool_choice(request, is_on).map(|choice| ("tool_choice".to_owned(), choice)));
    body.extend(thinking.map(|thinking| ("thinking".to_owned(), thinking)));
    let (temperature, top_p) = version.sampling(settings, is_on);
    body.extend(temperature.map(|temperature| ("temperature".to_owned(), temperature.min(1.0).into())));
    body.extend(top_p.map(|top_p| ("top_p".to_owned(), top_p.into())));
    // A text of spaces alone is refused.
    let stop: Vec<_> = settings.stop.iter().filter(|stop| !stop.trim().is_empty()).collect();
    if !stop.is_empty() {
        body.insert("stop_sequences".to_owned(), json!(stop));
    }
    body.extend(settings.service_tier.as_deref().map(|tier| ("service_tier".to_owned(), tier.into())));
    body
}

/// How a model is told to think.
pub(crate) struct Thinking {
    pub(crate) thinking: Option<Value>,
    pub(crate) effort: Option<Effort>,
    /// The limit of the reply, thinking included.
    pub(crate) max_tokens: u32,
}

/// The generation of a model, as in `claude-opus-4-6` or `claude-3-5-haiku-20241022`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u32, u32);

impl Version {
    /// Since when a model keeps to a JSON schema.
    pub(crate) const STRUCTURED: Self = Self(4, 5);
    /// Since when the beginning of a request is cached everywhere.
    pub(crate) const CACHED: Self = Self(3, 5);

    /// A name that does not tell is taken for a new one.
    pub(crate) fn of(model: &str) -> Self {
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

    /// The temperature and the share of tokens that may be sent.
    pub(crate) fn sampling(self, settings: &ModelSettings, thinks: bool) -> (Option<f64>, Option<f64>) {
        // A model that thinks takes neither, and the newest never do.
        if thinks || self >= Self(4, 7) {
            return (None, None);
        }
        // Since this generation only one of them.
        let top_p = settings.top_p.filter(|_| self < Self(4, 1) || settings.temperature.is_none());
        (settings.temperature, top_p)
    }

    fn usual_max_tokens(self) -> u32 {
        if self >= Self(4, 0) { 16_384 } else { 4096 }
    }

    fn efforts(self) -> &'static [Effort] {
        use Effort::{High, Low, Max, Medium, Xhigh};
        if self >= Self(4, 7) { &[Low, Medium, High, Xhigh, Max] } else { &[Low, Medium, High, Max] }
    }

    /// The budget is part of the limit: an own limit bounds it, and the usual one grows with it.
    pub(crate) fn thinking(self, settings: &ModelSettings) -> Thinking {
        let max_tokens = settings.max_tokens.unwrap_or_else(|| self.usual_max_tokens());
        let without = Thinking { thinking: None, effort: None, max_tokens };
        let asked = effort(settings);
        let takes_budget = self < Self(4, 7) && settings.thinking_budget.is_some();
        if self.is_adaptive() && !takes_budget {
            return match asked {
                None => without,
                Some(Effort::None) => Thinking { thinking: Some(json!({ "type": "disabled" })), ..without },
                Some(asked) => {
                    let mut thinking = json!({ "type": "adaptive" });
                    if self >= Self(4, 7) {
                        // Otherwise the thoughts are not shown.
                        thinking["display"] = "summarized".into();
                    }
                    Thinking { thinking: Some(thinking), effort: asked.nearest(self.efforts()), max_tokens }
                }
            };
        }
        let Some(budget) = thinking_budget(settings).filter(|budget| *budget > 0 && self >= Self(3, 7)) else { return without };
        let budget = budget.max(LEAST_BUDGET);
        let (budget, max_tokens) = match settings.max_tokens {
            Some(limit) => (budget.min(limit.saturating_sub(LEAST_BUDGET)), limit),
            None => (budget, max_tokens.saturating_add(budget)),
        };
        if budget < LEAST_BUDGET {
            return without;
        }
        Thinking { thinking: Some(json!({ "type": "enabled", "budget_tokens": budget })), effort: None, max_tokens }
    }
}

/// The tools that run at the vendor. Their results have citations, which exclude structured output.
fn vendor_tools(request: &ModelRequest) -> impl Iterator<Item = Value> {
    let is_sent = |tool: &&VendorTool| request.format.is_none() && is_sendable(request, **tool);
    request.vendor_tools.iter().filter(is_sent).filter_map(|tool| match tool {
        VendorTool::WebSearch => Some(json!({ "type": "web_search_20250305", "name": "web_search", "max_uses": MAX_USES })),
        VendorTool::WebFetch => Some(json!({
            "type": "web_fetch_20250910", "name": "web_fetch", "max_uses": MAX_USES,
            "max_content_tokens": FETCHED_TOKENS, "citations": { "enabled": true },
        })),
        VendorTool::CodeExecution => Some(json!({ "type": "code_execution_20250825", "name": "code_execution" })),
        VendorTool::FileSearch => None,
    })
}

/// The choice of tools; none where the model chooses freely. A model that thinks cannot be made to call one.
fn tool_choice(request: &ModelRequest, thinks: bool) -> Option<Value> {
    let mut choice = match request.choice() {
        _ if request.tools.is_empty() => return None,
        ToolChoice::None => return Some(json!({ "type": "none" })),
        ToolChoice::Required if !thinks => json!({ "type": "any" }),
        ToolChoice::Named(name) if !thinks => json!({ "type": "tool", "name": &**name }),
        _ if request.is_one_call() => json!({ "type": "auto" }),
        _ => return None,
    };
    if request.is_one_call() {
        choice["disable_parallel_tool_use"] = true.into();
    }
    Some(choice)
}

/// Marks up to where the vendor caches a request.
#[derive(Clone, Copy)]
struct CacheMark(Option<CacheMode>);

impl CacheMark {
    /// Asks for everything up to this block to be cached.
    fn on(self, mut block: Value) -> Value {
        match self.0 {
            Some(CacheMode::Off) => {}
            None | Some(CacheMode::On) => block["cache_control"] = json!({ "type": "ephemeral" }),
            Some(CacheMode::Long) => block["cache_control"] = json!({ "type": "ephemeral", "ttl": "1h" }),
        }
        block
    }
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "name": &*tool.name, "description": tool.description, "input_schema": tool.parameters })
}

/// The conversation in turns: what follows on the same side is one message.
fn messages(request: &ModelRequest, mark: CacheMark) -> Vec<Value> {
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
                    json!({ "type": "tool_result", "tool_use_id": &**call_id, "content": content, "is_error": is_error });
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
        *block = mark.on(block.take());
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
    json!({ "type": "tool_use", "id": &*call.id, "name": &*call.name, "input": arguments_object(&call.arguments) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use polis_ports::Format;

    use super::*;

    fn check(request: &ModelRequest, model: &str, want: Value) {
        let body: Value = serde_json::from_slice(&body(&crate::CallIds::Words.fit(request), model)).unwrap();
        assert_eq!(body, want);
    }

    fn call(id: &str, arguments: &str) -> ToolCall {
        ToolCall { id: id.into(), name: "read_file".into(), arguments: arguments.into() }
    }

    fn result(id: &str, content: &str, is_error: bool) -> ChatMessage {
        ChatMessage::Tool { call_id: id.into(), name: "read_file".into(), content: content.into(), is_error, media: vec![] }
    }

    fn half() -> ModelSettings {
        ModelSettings { temperature: Some(0.5), ..ModelSettings::default() }
    }

    #[test]
    fn a_bare_request_has_the_limit_that_must_be_there() {
        let request = ModelRequest { messages: vec![ChatMessage::user("hi")], settings: half(), ..ModelRequest::default() };
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
            settings: ModelSettings { max_tokens: Some(9000), ..ModelSettings::default() },
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
            let settings = ModelSettings { effort, ..ModelSettings::default() };
            let request = ModelRequest { tools: [tool].into(), tool_choice, one_call, settings, ..ModelRequest::default() };
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
                settings: ModelSettings { effort: Some(effort), max_tokens, ..half() },
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
        let disabled = json!({ "type": "disabled" });
        assert_eq!(ask("claude-opus-4-6", Effort::Minimal, None), (adaptive.clone(), json!("low"), null.clone()));
        assert_eq!(ask("claude-opus-4-6", Effort::Xhigh, None), (adaptive, json!("high"), null.clone()));
        assert_eq!(ask("claude-opus-4-6", Effort::None, None), (disabled.clone(), null.clone(), half.clone()));
        let shown = json!({ "type": "adaptive", "display": "summarized" });
        assert_eq!(ask("claude-opus-4-8", Effort::Xhigh, None), (shown.clone(), json!("xhigh"), null.clone()));
        assert_eq!(ask("claude-opus-5", Effort::None, None), (disabled, null.clone(), null.clone()));
        assert_eq!(ask("claude-sonnet-5", Effort::Medium, None).0, shown);
        assert_eq!(ask("claude-sonnet-4-5", Effort::None, None), (null.clone(), null.clone(), half.clone()));
        assert_eq!(ask("claude-sonnet-4-5", Effort::Low, None), (enabled(2048), null.clone(), null.clone()));
        assert_eq!(ask("claude-opus-4-20250514", Effort::High, Some(4000)), (enabled(2976), null.clone(), null.clone()));
        assert_eq!(ask("claude-opus-4-1", Effort::High, Some(2000)), (null.clone(), null.clone(), half.clone()));
        assert_eq!(ask("claude-3-5-haiku-20241022", Effort::High, None), (null.clone(), null, half));
    }

    fn sent(model: &str, settings: ModelSettings, names: &[&str]) -> Value {
        let request = ModelRequest { system: "s".into(), settings, ..ModelRequest::default() };
        let body: Value = serde_json::from_slice(&body(&request, model)).unwrap();
        names.iter().filter_map(|&name| Some((name.to_owned(), body.get(name)?.clone()))).collect()
    }

    #[test]
    fn the_limit_lies_above_the_thinking_budget() {
        let ask = |model: &str, budget, max_tokens| {
            let settings = ModelSettings { thinking_budget: Some(budget), max_tokens, ..ModelSettings::default() };
            sent(model, settings, &["max_tokens", "thinking", "output_config"])
        };
        let enabled = |budget: u32| json!({ "type": "enabled", "budget_tokens": budget });
        assert_eq!(ask("claude-sonnet-4-5", 30_000, None), json!({ "max_tokens": 46_384, "thinking": enabled(30_000) }));
        assert_eq!(
            ask("claude-sonnet-4-5", 30_000, Some(20_000)),
            json!({ "max_tokens": 20_000, "thinking": enabled(18_976) })
        );
        assert_eq!(ask("claude-sonnet-4-6", 9, None), json!({ "max_tokens": 17_408, "thinking": enabled(1024) }));
        assert_eq!(ask("claude-sonnet-4-6", 0, None), json!({ "max_tokens": 16_384 }));
        let shown = json!({ "type": "adaptive", "display": "summarized" });
        let high = json!({ "max_tokens": 16_384, "thinking": shown, "output_config": { "effort": "high" } });
        assert_eq!(ask("claude-opus-5", 10_000, None), high);
    }

    #[test]
    fn sampling_stops_and_the_cache_are_as_asked() {
        let names = ["temperature", "top_p", "stop_sequences", "service_tier", "system"];
        let text = |mark: Value| {
            let mut text = json!({ "type": "text", "text": "s" });
            if !mark.is_null() {
                text["cache_control"] = mark;
            }
            json!([text])
        };
        let settings = ModelSettings {
            temperature: Some(1.5),
            top_p: Some(0.9),
            stop: vec!["END".into(), "\n".into()],
            service_tier: Some("standard_only".into()),
            cache: Some(CacheMode::Long),
            ..ModelSettings::default()
        };
        let long = text(json!({ "type": "ephemeral", "ttl": "1h" }));
        let want = json!({ "temperature": 1.0, "stop_sequences": ["END"], "service_tier": "standard_only", "system": long });
        assert_eq!(sent("claude-sonnet-4-5", settings.clone(), &names), want);
        let uncached = ModelSettings { temperature: None, cache: Some(CacheMode::Off), stop: Vec::new(), ..settings };
        let want = json!({ "top_p": 0.9, "service_tier": "standard_only", "system": text(Value::Null) });
        assert_eq!(sent("claude-sonnet-4-5", uncached, &names), want);
    }
}
