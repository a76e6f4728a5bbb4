//! A [`ModelRequest`] as the JSON body of Converse.

use std::borrow::Cow;
use std::collections::BTreeSet;

use polis_domain::ToolCall;
use polis_ports::{CacheMode, ChatMessage, Effort, Media, ModelRequest, ModelSettings, ToolChoice, ToolSpec};
use serde_json::{Map, Value, json};

use super::is_claude;
use super::reply::DIALECT;
use crate::anthropic::{Thinking, Version};
use crate::media_parts::{MediaPart, not_sent};
use crate::request_parts::{ClosedSchema, arguments_object, body_bytes, effort, result_text, system_with_schema};
use crate::wire::echoed_items;

/// Longest name of a document, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// Stands where an empty text would be refused.
const EMPTY: &str = "(empty)";

/// The makers whose models have fields of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Claude(Version),
    /// Amazon's own, and whether it can reason.
    Nova {
        reasons: bool,
    },
    GptOss,
    Other,
}

impl Family {
    fn of(model: &str) -> Self {
        match model {
            _ if is_claude(model) => Self::Claude(Version::of(model)),
            _ if model.contains("amazon.nova") => Self::Nova { reasons: model.contains("nova-2") },
            _ if model.contains("openai.gpt-oss") => Self::GptOss,
            _ => Self::Other,
        }
    }

    /// Whether a result can say in a field that it is a failure.
    fn has_status(self) -> bool {
        matches!(self, Self::Claude(_) | Self::Nova { .. })
    }

    /// Whether a shape is told in a field; others are told in words.
    fn has_format(self) -> bool {
        matches!(self, Self::Claude(version) if version >= Version::STRUCTURED)
    }
}

/// Writes the body.
pub(crate) fn body(request: &ModelRequest, model: &str) -> Vec<u8> {
    let family = Family::of(model);
    let settings = &request.settings;
    let mark = CacheMark { family, mode: settings.cache };
    let mut body = Map::new();
    let system = if family.has_format() { Cow::Borrowed(&*request.system) } else { system_with_schema(request) };
    if !system.trim().is_empty() {
        let blocks: Vec<_> = std::iter::once(json!({ "text": system })).chain(mark.point()).collect();
        body.insert("system".to_owned(), blocks.into());
    }
    body.insert("messages".to_owned(), messages(request, family, mark).into());
    let reasoning = Reasoning::of(family, settings);
    body.extend(tool_config(request, mark, reasoning.is_on).map(|tools| ("toolConfig".to_owned(), tools)));
    let inference = inference(family, settings, &reasoning);
    if !inference.is_empty() {
        body.insert("inferenceConfig".to_owned(), inference.into());
    }
    let mut output = Map::new();
    if let Some(format) = request.format.as_ref().filter(|_| family.has_format()) {
        let schema = serde_json::to_string(&ClosedSchema::new(&format.schema)).unwrap_or_default();
        let structure = json!({ "jsonSchema": { "name": format.name, "schema": schema } });
        output.insert("textFormat".to_owned(), json!({ "type": "json_schema", "structure": structure }));
    }
    output.extend(reasoning.effort.map(|effort| ("effort".to_owned(), effort.as_str().into())));
    if !output.is_empty() {
        body.insert("outputConfig".to_owned(), output.into());
    }
    body.extend(reasoning.fields.map(|fields| ("additionalModelRequestFields".to_owned(), fields)));
    body.extend(settings.service_tier.as_deref().map(|tier| ("serviceTier".to_owned(), json!({ "type": tier }))));
    body_bytes(request, &body)
}

/// How a model is told to reason.
#[derive(Debug, Default)]
struct Reasoning {
    /// The fields that only this maker knows.
    fields: Option<Value>,
    effort: Option<Effort>,
    max_tokens: Option<u32>,
    is_on: bool,
    /// Whether it refuses limits of its own, because they are part of how much it reasons.
    is_unlimited: bool,
}

impl Reasoning {
    fn of(family: Family, settings: &ModelSettings) -> Self {
        use Effort::{High, Low, Medium};
        let without = Self { max_tokens: settings.max_tokens, ..Self::default() };
        match family {
            Family::Claude(version) => {
                let Thinking { thinking, effort, max_tokens } = version.thinking(settings);
                let is_on = thinking.as_ref().is_some_and(|thinking| thinking["type"] != "disabled");
                let fields = thinking.map(|thinking| json!({ "thinking": thinking }));
                Self { fields, effort, max_tokens: Some(max_tokens), is_on, is_unlimited: false }
            }
            Family::Nova { reasons: true } => match effort(settings) {
                None => without,
                Some(Effort::None) => Self { fields: Some(json!({ "reasoningConfig": { "type": "disabled" } })), ..without },
                Some(asked) => {
                    let asked = asked.nearest(&[Low, Medium, High]).unwrap_or(Medium);
                    let config = json!({ "type": "enabled", "maxReasoningEffort": asked.as_str() });
                    let fields = Some(json!({ "reasoningConfig": config }));
                    Self { fields, is_on: true, is_unlimited: asked == High, ..without }
                }
            },
            Family::GptOss => {
                let asked = effort(settings).and_then(|effort| effort.nearest(&[Low, Medium, High]));
                Self { fields: asked.map(|asked| json!({ "reasoning_effort": asked.as_str() })), ..without }
            }
            Family::Nova { reasons: false } | Family::Other => without,
        }
    }
}

fn inference(family: Family, settings: &ModelSettings, reasoning: &Reasoning) -> Map<String, Value> {
    let mut inference = Map::new();
    if reasoning.is_unlimited {
        return inference;
    }
    inference.extend(reasoning.max_tokens.map(|limit| ("maxTokens".to_owned(), limit.into())));
    let sampling = match family {
        Family::Claude(version) => version.sampling(settings, reasoning.is_on),
        Family::Nova { .. } | Family::GptOss | Family::Other => (settings.temperature, settings.top_p),
    };
    inference.extend(sampling.0.map(|temperature| ("temperature".to_owned(), temperature.min(1.0).into())));
    inference.extend(sampling.1.map(|top_p| ("topP".to_owned(), top_p.into())));
    let stop: Vec<_> = settings.stop.iter().filter(|stop| !stop.trim().is_empty()).collect();
    if !stop.is_empty() {
        inference.insert("stopSequences".to_owned(), json!(stop));
    }
    inference
}

/// The tools and the choice among them. A conversation with calls in it is refused without tools.
fn tool_config(request: &ModelRequest, mark: CacheMark, reasons: bool) -> Option<Value> {
    let is_call =
        |message: &ChatMessage| matches!(message, ChatMessage::Assistant { tool_calls, .. } if !tool_calls.is_empty());
    let has_calls = request.messages.iter().any(is_call);
    let is_none = *request.choice() == ToolChoice::None;
    if (request.tools.is_empty() || is_none) && !has_calls {
        return None;
    }
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if tools.is_empty() {
        tools = called_tools(request);
    }
    tools.extend(mark.point_after_tools());
    let choice = match request.choice() {
        ToolChoice::Required if !reasons => Some(json!({ "any": {} })),
        ToolChoice::Named(name) if !reasons => Some(json!({ "tool": { "name": &**name } })),
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Required | ToolChoice::Named(_) => None,
    };
    let mut config = json!({ "tools": tools });
    if let Some(choice) = choice.filter(|_| !request.tools.is_empty()) {
        config["toolChoice"] = choice;
    }
    Some(config)
}

fn tool(tool: &ToolSpec) -> Value {
    let mut spec = json!({ "name": &*tool.name, "inputSchema": { "json": tool.parameters } });
    if !tool.description.trim().is_empty() {
        spec["description"] = tool.description.as_str().into();
    }
    json!({ "toolSpec": spec })
}

/// The tools that were called before, for a request that offers none.
fn called_tools(request: &ModelRequest) -> Vec<Value> {
    let calls = request.messages.iter().filter_map(|message| match message {
        ChatMessage::Assistant { tool_calls, .. } => Some(tool_calls),
        ChatMessage::User { .. } | ChatMessage::Tool { .. } => None,
    });
    let names: BTreeSet<&str> = calls.flatten().map(|call| &*call.name).collect();
    let schema = json!({ "type": "object" });
    let spec = |name| json!({ "name": name, "description": "No longer available.", "inputSchema": { "json": schema } });
    names.into_iter().map(|name| json!({ "toolSpec": spec(name) })).collect()
}

/// Marks up to where a request is cached, for models that can do it.
#[derive(Clone, Copy)]
struct CacheMark {
    family: Family,
    mode: Option<CacheMode>,
}

impl CacheMark {
    fn point(self) -> Option<Value> {
        let is_able = match self.family {
            Family::Claude(version) => version >= Version::CACHED,
            Family::Nova { .. } => true,
            Family::GptOss | Family::Other => false,
        };
        match self.mode {
            _ if !is_able => None,
            Some(CacheMode::Off) => None,
            Some(CacheMode::Long) if matches!(self.family, Family::Claude(_)) => {
                Some(json!({ "cachePoint": { "type": "default", "ttl": "1h" } }))
            }
            None | Some(CacheMode::On | CacheMode::Long) => Some(json!({ "cachePoint": { "type": "default" } })),
        }
    }

    /// Amazon's own models take none among the tools.
    fn point_after_tools(self) -> Option<Value> {
        self.point().filter(|_| matches!(self.family, Family::Claude(_)))
    }
}

/// The conversation in turns: what follows on the same side is one message.
fn messages(request: &ModelRequest, family: Family, mark: CacheMark) -> Vec<Value> {
    let mut names = BTreeSet::new();
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, blocks): (_, Vec<Value>) = match message {
            ChatMessage::User { text, media } => {
                let mut blocks: Vec<_> = media.iter().map(|media| media_block(media, &mut names)).collect();
                let has_document = blocks.iter().any(|block| block.get("document").is_some());
                // A document without a text beside it is refused.
                blocks.extend(text_block(text).or_else(|| has_document.then(|| json!({ "text": EMPTY }))));
                ("user", blocks)
            }
            ChatMessage::Assistant { text, tool_calls, echo, .. } => {
                let blocks = match echoed_items(DIALECT, echo.as_ref()) {
                    Some(blocks) => echoed_blocks(blocks, tool_calls),
                    None => text_block(text).into_iter().chain(tool_calls.iter().map(call)).collect(),
                };
                ("assistant", blocks)
            }
            ChatMessage::Tool { call_id, content, is_error, media, .. } => {
                let text = if family.has_status() { Cow::Borrowed(&**content) } else { result_text(content, *is_error) };
                let mut blocks: Vec<_> = text_block(&text).into_iter().collect();
                blocks.extend(media.iter().map(|media| media_block(media, &mut names)));
                if blocks.is_empty() {
                    blocks.push(json!({ "text": EMPTY }));
                }
                let mut result = json!({ "toolUseId": &**call_id, "content": blocks });
                if family.has_status() && *is_error {
                    result["status"] = "error".into();
                }
                ("user", vec![json!({ "toolResult": result })])
            }
        };
        match turns.last_mut() {
            Some((last, open)) if *last == role => open.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => turns.push((role, blocks)),
        }
    }
    if let Some((_, blocks)) = turns.last_mut().filter(|(role, _)| *role == "user") {
        blocks.extend(mark.point());
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

/// The blocks of a reply as they were, without the calls that were dropped.
fn echoed_blocks(blocks: &[Value], calls: &[ToolCall]) -> Vec<Value> {
    let is_kept = |block: &&Value| match block.get("toolUse") {
        Some(used) => calls.iter().any(|call| used["toolUseId"] == *call.id),
        None => true,
    };
    blocks.iter().filter(is_kept).cloned().collect()
}

/// A text of blanks alone is refused.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "text": text }))
}

fn call(call: &ToolCall) -> Value {
    let input = arguments_object(&call.arguments);
    json!({ "toolUse": { "toolUseId": &*call.id, "name": &*call.name, "input": input } })
}

/// A picture or a document; in words what cannot be sent. Pictures behind an address are not fetched there.
fn media_block(media: &Media, names: &mut BTreeSet<String>) -> Value {
    match MediaPart::of(media) {
        MediaPart::Image(Media::Inline { media_type, data, .. }) => {
            let format = media_type.strip_prefix("image/").map(|format| if format == "jpg" { "jpeg" } else { format });
            match format.filter(|format| ["png", "jpeg", "gif", "webp"].contains(format)) {
                Some(format) => json!({ "image": { "format": format, "source": { "bytes": &**data } } }),
                None => json!({ "text": not_sent(media) }),
            }
        }
        MediaPart::Document { name, data, .. } => {
            json!({ "document": { "format": "pdf", "name": document_name(name, names), "source": { "bytes": data } } })
        }
        MediaPart::Image(_) | MediaPart::Audio { .. } => json!({ "text": not_sent(media) }),
        MediaPart::Absent(line) => json!({ "text": line }),
    }
}

/// A name of letters, digits, single spaces, hyphens and brackets, which no other document of the request has.
fn document_name(name: &str, names: &mut BTreeSet<String>) -> String {
    let is_taken = |c: char| c.is_ascii_alphanumeric() || "-()[]".contains(c);
    let plain: String = name.chars().map(|c| if is_taken(c) { c } else { ' ' }).collect();
    let mut plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    plain.truncate(MAX_NAME_BYTES - 8);
    let plain = if plain.is_empty() { "document".to_owned() } else { plain };
    let mut candidates = (1..).map(|number| if number == 1 { plain.clone() } else { format!("{plain} {number}") });
    candidates.find(|candidate| names.insert(candidate.clone())).expect("a number makes it a name of its own")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use polis_ports::Format;

    use super::*;

    fn wire(request: &ModelRequest, model: &str) -> Value {
        serde_json::from_slice(&body(request, model)).unwrap()
    }

    fn asked(settings: ModelSettings) -> ModelRequest {
        ModelRequest { messages: vec![ChatMessage::user("hi")], settings, ..ModelRequest::default() }
    }

    fn read_tool() -> ToolSpec {
        ToolSpec {
            name: "read".into(),
            description: String::new(),
            parameters: json!({ "type": "object" }),
            class: polis_domain::EffectClass::Read,
            volatile: false,
        }
    }

    const CLAUDE: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";

    #[test]
    fn thinking_is_said_in_the_fields_of_the_maker() {
        let ask = |model: &str, effort, budget| {
            let settings = ModelSettings {
                effort,
                thinking_budget: budget,
                temperature: Some(0.5),
                max_tokens: Some(9_000),
                ..ModelSettings::default()
            };
            let mut body = wire(&asked(settings), model);
            (body["additionalModelRequestFields"].take(), body["outputConfig"].take(), body["inferenceConfig"].take())
        };
        let (null, limit) = (Value::Null, json!({ "maxTokens": 9_000 }));
        let sampled = json!({ "maxTokens": 9_000, "temperature": 0.5 });
        let enabled = json!({ "thinking": { "type": "enabled", "budget_tokens": 2_048 } });
        assert_eq!(ask(CLAUDE, Some(Effort::Low), None), (enabled.clone(), null.clone(), limit.clone()));
        assert_eq!(ask(CLAUDE, None, Some(2_048)), (enabled, null.clone(), limit.clone()));
        assert_eq!(ask(CLAUDE, None, None), (null.clone(), null.clone(), sampled.clone()));
        let adaptive = json!({ "thinking": { "type": "adaptive" } });
        let effort = json!({ "effort": "high" });
        assert_eq!(ask("global.anthropic.claude-opus-4-6-v1", Some(Effort::High), None), (adaptive, effort, limit.clone()));
        let low = json!({ "reasoningConfig": { "type": "enabled", "maxReasoningEffort": "low" } });
        assert_eq!(ask("us.amazon.nova-2-lite-v1:0", Some(Effort::Low), None), (low, null.clone(), sampled.clone()));
        let high = json!({ "reasoningConfig": { "type": "enabled", "maxReasoningEffort": "high" } });
        assert_eq!(ask("us.amazon.nova-2-lite-v1:0", Some(Effort::Max), None), (high, null.clone(), null.clone()));
        assert_eq!(ask("amazon.nova-pro-v1:0", Some(Effort::High), None), (null.clone(), null.clone(), sampled.clone()));
        let gpt = json!({ "reasoning_effort": "medium" });
        assert_eq!(ask("openai.gpt-oss-120b-1:0", Some(Effort::Medium), None), (gpt, null.clone(), sampled.clone()));
        assert_eq!(ask("meta.llama3-3-70b-instruct-v1:0", Some(Effort::High), None), (null.clone(), null, sampled));
    }

    #[test]
    fn a_request_is_cached_where_the_model_can_do_it() {
        let marks = |model: &str, cache| {
            let settings = ModelSettings { cache, ..ModelSettings::default() };
            let request = ModelRequest { system: "s".into(), tools: [read_tool()].into(), ..asked(settings) };
            let body = wire(&request, model);
            let last = |list: &Value| list.as_array().unwrap().last().unwrap().get("cachePoint").cloned().unwrap_or_default();
            [last(&body["system"]), last(&body["toolConfig"]["tools"]), last(&body["messages"][0]["content"])]
        };
        let (null, point) = (Value::Null, json!({ "type": "default" }));
        assert_eq!(marks(CLAUDE, None), [point.clone(), point.clone(), point.clone()]);
        let long = json!({ "type": "default", "ttl": "1h" });
        assert_eq!(marks(CLAUDE, Some(CacheMode::Long)), [long.clone(), long.clone(), long]);
        assert_eq!(marks("amazon.nova-pro-v1:0", Some(CacheMode::Long)), [point.clone(), null.clone(), point]);
        for (model, cache) in [
            (CLAUDE, Some(CacheMode::Off)),
            ("anthropic.claude-3-haiku-20240307-v1:0", None),
            ("meta.llama3-3-70b-instruct-v1:0", None),
        ] {
            assert_eq!(marks(model, cache), [null.clone(), null.clone(), null.clone()], "{model}");
        }
    }

    #[test]
    fn a_conversation_with_calls_always_names_tools() {
        let call = ToolCall { id: "c1".into(), name: "read".into(), arguments: "".into() };
        let result = |content: &str, is_error| ChatMessage::Tool {
            call_id: "c1".into(),
            name: "read".into(),
            content: content.into(),
            is_error,
            media: Vec::new(),
        };
        let calling = |tools: &[ToolSpec], tool_choice| ModelRequest {
            messages: vec![
                ChatMessage::user("hi"),
                ChatMessage::Assistant { text: " ".into(), reasoning: "".into(), tool_calls: vec![call.clone()], echo: None },
                result("gone", true),
                result("", false),
            ],
            tools: tools.into(),
            tool_choice,
            ..ModelRequest::default()
        };
        let body = wire(&calling(&[], ToolChoice::Auto), "mistral.mistral-large-2407-v1:0");
        let gone =
            json!({ "name": "read", "description": "No longer available.", "inputSchema": { "json": { "type": "object" } } });
        assert_eq!(body["toolConfig"], json!({ "tools": [{ "toolSpec": gone }] }));
        let results = json!([
            { "toolResult": { "toolUseId": "c1", "content": [{ "text": "error: gone" }] } },
            { "toolResult": { "toolUseId": "c1", "content": [{ "text": EMPTY }] } },
        ]);
        let used = json!({ "toolUse": { "toolUseId": "c1", "name": "read", "input": {} } });
        assert_eq!(body["messages"][1], json!({ "role": "assistant", "content": [used] }));
        assert_eq!(body["messages"][2], json!({ "role": "user", "content": results }));
        let body = wire(&calling(&[read_tool()], ToolChoice::Required), "anthropic.claude-3-haiku-20240307-v1:0");
        let spec = json!({ "name": "read", "inputSchema": { "json": { "type": "object" } } });
        assert_eq!(body["toolConfig"], json!({ "tools": [{ "toolSpec": spec }], "toolChoice": { "any": {} } }));
        let failed = json!({ "toolUseId": "c1", "content": [{ "text": "gone" }], "status": "error" });
        assert_eq!(body["messages"][2]["content"][0]["toolResult"], failed);
        let none =
            ModelRequest { tools: [read_tool()].into(), tool_choice: ToolChoice::None, ..asked(ModelSettings::default()) };
        assert_eq!(wire(&none, CLAUDE).get("toolConfig"), None);
        let thinking = ModelSettings { effort: Some(Effort::High), ..ModelSettings::default() };
        let named =
            ModelRequest { tools: [read_tool()].into(), tool_choice: ToolChoice::Named("read".into()), ..asked(thinking) };
        assert_eq!(wire(&named, CLAUDE)["toolConfig"].get("toolChoice"), None, "a model that thinks cannot be made to");
        let named = wire(&named, "amazon.nova-pro-v1:0");
        assert_eq!(named["toolConfig"]["toolChoice"], json!({ "tool": { "name": "read" } }));
    }

    #[test]
    fn pictures_and_documents_are_sent_in_their_forms() {
        let inline = |media_type: &str, name: &str| Media::Inline {
            media_type: media_type.into(),
            name: name.into(),
            data: "QQ==".into(),
        };
        let media = vec![
            inline("image/jpg", "a.jpg"),
            inline("application/pdf", "Jahres_bericht (2).pdf"),
            inline("application/pdf", "Jahres.bericht (2)/pdf"),
            inline("audio/wav", "c.wav"),
            inline("image/tiff", "d.tiff"),
            Media::Url("https://h/i.png".into()),
        ];
        let request = ModelRequest { messages: vec![ChatMessage::User { text: "".into(), media }], ..ModelRequest::default() };
        let body = wire(&request, "amazon.nova-lite-v1:0");
        let blocks = body["messages"][0]["content"].as_array().unwrap();
        assert_eq!(blocks[0], json!({ "image": { "format": "jpeg", "source": { "bytes": "QQ==" } } }));
        let names = [&blocks[1], &blocks[2]].map(|block| block["document"]["name"].as_str().unwrap());
        assert_eq!(names, ["Jahres bericht (2) pdf", "Jahres bericht (2) pdf 2"]);
        assert!(blocks[3..6].iter().all(|block| block["text"].as_str().unwrap().starts_with("[not shown")), "{blocks:?}");
        assert_eq!(blocks[6], json!({ "text": EMPTY }), "a document needs a text");
    }

    #[test]
    fn a_shape_is_a_field_for_newer_claude_models_and_words_for_others() {
        let schema = json!({ "type": "object", "properties": {} });
        let format = Some(Arc::new(Format { name: "f".to_owned(), schema }));
        let request = ModelRequest { format, ..asked(ModelSettings::default()) };
        let text = wire(&request, CLAUDE)["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"].take();
        let closed: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
        assert_eq!(closed["additionalProperties"], false);
        let other = wire(&request, "meta.llama3-3-70b-instruct-v1:0");
        assert_eq!(other.get("outputConfig"), None);
        assert!(other["system"][0]["text"].as_str().unwrap().starts_with("Answer with JSON alone"), "{other}");
    }

    #[test]
    fn thoughts_come_back_as_they_were_without_dropped_calls() {
        let thought = json!({ "reasoningContent": { "reasoningText": { "text": "hm", "signature": "s" } } });
        let kept = json!({ "toolUse": { "toolUseId": "a", "name": "read", "input": {} } });
        let torn = json!({ "toolUse": { "toolUseId": "torn", "name": "read", "input": {} } });
        let echo = json!({ "dialect": DIALECT, "items": [thought, kept, torn] });
        let call = ToolCall { id: "a".into(), name: "read".into(), arguments: "{}".into() };
        let said = ChatMessage::Assistant {
            text: "".into(),
            reasoning: "hm".into(),
            tool_calls: vec![call],
            echo: Some(Arc::new(echo)),
        };
        let request = ModelRequest { messages: vec![ChatMessage::user("hi"), said], ..ModelRequest::default() };
        assert_eq!(wire(&request, CLAUDE)["messages"][1], json!({ "role": "assistant", "content": [thought, kept] }));
    }
}
