//! The parts of a request that all dialects build alike: schemas, arguments, ids, results.

use std::borrow::Cow;

use polis_domain::Digest;
use polis_ports::{CacheMode, ChatMessage, Effort, ModelRequest, ModelSettings, ToolChoice};
use serde::de::IgnoredAny;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// Serializes a schema with `additionalProperties: false` on every object, as vendors with structured output require.
pub(crate) struct ClosedSchema<'a> {
    schema: &'a Value,
    depth: usize,
}

/// How deep a schema is looked into.
const MAX_DEPTH: usize = 64;

impl<'a> ClosedSchema<'a> {
    pub(crate) fn new(schema: &'a Value) -> Self {
        Self { schema, depth: MAX_DEPTH }
    }
}

impl Serialize for ClosedSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(depth) = self.depth.checked_sub(1) else { return self.schema.serialize(serializer) };
        let below = |schema| ClosedSchema { schema, depth };
        match self.schema {
            Value::Object(fields) => {
                let mut map = serializer.serialize_map(None)?;
                for (name, field) in fields {
                    map.serialize_entry(name, &below(field))?;
                }
                if properties(fields).is_some() && !fields.contains_key(OTHERS) {
                    map.serialize_entry(OTHERS, &false)?;
                }
                map.end()
            }
            Value::Array(parts) => serializer.collect_seq(parts.iter().map(below)),
            plain => plain.serialize(serializer),
        }
    }
}

/// The field of a schema that says whether an object may have other properties.
const OTHERS: &str = "additionalProperties";

fn properties(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// Whether OpenAI's strict mode takes the schema when it is closed: no object takes other properties, every one is required.
pub(crate) fn is_strict(schema: &Value) -> bool {
    fn check(schema: &Value, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        match schema {
            Value::Object(fields) => {
                let whole = properties(fields).is_none_or(|properties| {
                    let required = fields.get("required").and_then(Value::as_array);
                    let is_required = |name: &String| required.is_some_and(|names| names.iter().any(|other| other == name));
                    fields.get(OTHERS).is_none_or(|others| *others == false) && properties.keys().all(is_required)
                });
                whole && fields.values().all(|field| check(field, depth))
            }
            Value::Array(parts) => parts.iter().all(|part| check(part, depth)),
            _ => true,
        }
    }
    schema.get("type").is_some_and(|kind| kind == "object") && check(schema, MAX_DEPTH)
}

/// A request's body as JSON text.
pub(crate) fn body_bytes(request: &ModelRequest, body: &impl Serialize) -> Vec<u8> {
    let mut text = Vec::with_capacity(estimated_bytes(request));
    serde_json::to_writer(&mut text, body).expect("strings and finite numbers can always be written");
    text
}

/// Bytes that most bodies of a request fit into: a text that grows as it is written is copied again and again.
fn estimated_bytes(request: &ModelRequest) -> usize {
    let text_lengths = request.messages.iter().map(|message| match message {
        ChatMessage::User { text, .. } => text.len(),
        ChatMessage::Assistant { text, reasoning, tool_calls, .. } => {
            let calls = tool_calls.iter().map(|call| call.arguments.len() + 128);
            text.len() + reasoning.len() + calls.sum::<usize>()
        }
        ChatMessage::Tool { content, .. } => content.len(),
    });
    let media = request.messages.iter().flat_map(ChatMessage::media).map(|media| media.bytes() as usize / 3 * 4 + 128);
    let text = request.system.len() + text_lengths.sum::<usize>();
    let tools = request.tools.iter().map(|tool| tool.description.len() + 512);
    let shape = if request.format.is_some() { 2_048 } else { 0 };
    media.sum::<usize>() + text + text / 8 + 64 * request.messages.len() + tools.sum::<usize>() + shape + 512
}

/// The instructions that ask for structured output where the vendor has no field for it.
pub(crate) fn schema_instructions(schema: &Value) -> String {
    format!("Answer with JSON alone, without any words around it, that fits this JSON schema:\n{schema}")
}

/// The system prompt, with instructions for structured output if the request asks for it.
pub(crate) fn system_with_schema(request: &ModelRequest) -> Cow<'_, str> {
    match &request.format {
        Some(format) if request.system.is_empty() => schema_instructions(&format.schema).into(),
        Some(format) => format!("{}\n\n{}", request.system, schema_instructions(&format.schema)).into(),
        None => Cow::Borrowed(&*request.system),
    }
}

/// The choice of tools as OpenAI's dialects have it; `named` writes that of one tool. None where the model chooses.
pub(crate) fn tool_choice(request: &ModelRequest, named: impl Fn(&str) -> Value) -> Option<Value> {
    match request.choice() {
        _ if request.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => Some(named(name)),
    }
}

/// Arguments that vendors accept in a history. Many refuse the whole request when one earlier call of the model was no
/// JSON, and the conversation would be stuck for ever.
pub(crate) fn valid_arguments(arguments: &str) -> Cow<'_, str> {
    if arguments.trim().is_empty() {
        return "{}".into();
    }
    match serde_json::from_str::<IgnoredAny>(arguments) {
        Ok(_) => arguments.into(),
        Err(_) => json!({ "unreadable": arguments }).to_string().into(),
    }
}

/// Arguments as the object that some dialects want.
pub(crate) fn arguments_object(arguments: &str) -> Value {
    match serde_json::from_str(&valid_arguments(arguments)) {
        Ok(Value::Object(fields)) => Value::Object(fields),
        Ok(Value::Null) | Err(_) => Value::Object(Map::new()),
        Ok(other) => json!({ "value": other }),
    }
}

/// The text of a tool result, for dialects that have no field to mark a failure.
pub(crate) fn result_text(content: &str, is_error: bool) -> Cow<'_, str> {
    let says_so =
        content.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error")) || content.starts_with("not made: ");
    if is_error && !says_so { format!("error: {content}").into() } else { content.into() }
}

/// The same for all requests that begin alike, so that OpenAI sends them to where their beginning is cached.
pub(crate) fn cache_key(request: &ModelRequest) -> Value {
    let names = request.tools.iter().map(|tool| &*tool.name);
    let digest = Digest::of(std::iter::once(&*request.system).chain(names));
    serde_json::to_value(digest).unwrap_or_default()
}

/// How long OpenAI is to keep the beginning of a request, where that is longer than usual.
pub(crate) fn cache_retention(request: &ModelRequest) -> Option<&'static str> {
    (request.settings.cache == Some(CacheMode::Long)).then_some("24h")
}

/// The tokens of reasoning that an effort stands for, where a vendor takes a number.
fn budget_of(effort: Effort) -> u32 {
    match effort {
        Effort::None => 0,
        Effort::Minimal => 1_024,
        Effort::Low => 2_048,
        Effort::Medium => 8_192,
        Effort::High => 16_384,
        Effort::Xhigh => 24_576,
        Effort::Max => 32_768,
    }
}

/// The tokens of reasoning that settings ask for; none if they leave it to the model.
pub(crate) fn thinking_budget(settings: &ModelSettings) -> Option<u32> {
    settings.thinking_budget.or_else(|| settings.effort.map(budget_of))
}

/// The effort that settings ask for, where a vendor takes no number.
pub(crate) fn effort(settings: &ModelSettings) -> Option<Effort> {
    let Some(budget) = settings.thinking_budget else { return settings.effort };
    let fits = |effort: &Effort| budget_of(*effort) >= budget;
    let efforts = [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::Xhigh];
    Some(efforts.into_iter().find(fits).unwrap_or(Effort::Max))
}

/// Whether a vendor that only knows thinking and not thinking is to think.
pub(crate) fn thinks(effort: Effort) -> bool {
    effort > Effort::Minimal
}

/// The efforts of an OpenAI model that thinks. A name that does not tell is taken for a new one.
pub(crate) fn openai_efforts(model: &str) -> &'static [Effort] {
    use Effort::{High, Low, Medium, Minimal, None, Xhigh};
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_pro = name.contains("-pro");
    match name {
        _ if name.starts_with("o1") || name.starts_with("o3") || name.starts_with("o4") || name.contains("gpt-oss") => {
            &[Low, Medium, High]
        }
        _ if is_pro && name.starts_with("gpt-5-") => &[High],
        _ if is_pro => &[Medium, High, Xhigh],
        _ if name == "gpt-5" || name.starts_with("gpt-5-") => &[Minimal, Low, Medium, High],
        _ if name.starts_with("gpt-5.1") && !name.contains("max") => &[None, Low, Medium, High],
        _ => &[None, Low, Medium, High, Xhigh],
    }
}

/// Whether an OpenAI model takes `temperature` and `top_p`: one that thinks takes them only while it is told not to.
pub(crate) fn is_sampled(model: &str, effort: Option<Effort>) -> bool {
    !is_openai_reasoning(model) || (effort == Some(Effort::None) && openai_efforts(model).contains(&Effort::None))
}

/// Whether a model behind the responses interface may reason. A name that does not tell is taken for a new one.
pub(crate) fn may_reason(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let speaks = ["gpt-3", "gpt-4", "chatgpt", "davinci", "babbage"].iter().any(|start| name.starts_with(start));
    !speaks && !name.contains("-chat")
}

/// Whether this is an OpenAI reasoning model: those refuse `temperature`, the others `reasoning_effort`. A name of another maker is
/// none, because many serve models of their own behind the same interface.
pub(crate) fn is_openai_reasoning(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let generation =
        |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse::<u32>().ok());
    let is_gpt = name.strip_prefix("gpt-").and_then(generation).is_some_and(|generation| generation >= 5);
    let is_o = name.strip_prefix('o').and_then(generation).is_some();
    (is_gpt || is_o || name.starts_with("codex")) && !name.contains("-chat")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_closed_at_every_depth_and_then_strict_if_all_is_required() {
        let open = json!({ "type": "object", "required": ["a"], "properties": {
            "a": { "type": "array", "items": { "type": "object", "properties": { "b": {} } } } } });
        let closed = |schema: &Value| serde_json::to_value(ClosedSchema::new(schema)).unwrap();
        let shut = closed(&open);
        assert_eq!(shut["additionalProperties"], false);
        assert_eq!(shut["properties"]["a"]["items"]["additionalProperties"], false);
        assert!(!is_strict(&open) && !is_strict(&shut), "b is not required");
        let mut strict = open;
        strict["properties"]["a"]["items"]["required"] = json!(["b"]);
        assert!(is_strict(&strict) && is_strict(&closed(&strict)));
        assert!(!is_strict(&json!({ "type": "string" })));
        let free = json!({ "type": "object", "properties": {}, "additionalProperties": true });
        assert_eq!(closed(&free), free);
        assert!(!is_strict(&free));
    }

    #[test]
    fn a_schema_without_bottom_is_no_trouble() {
        let deep = (0..100).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }));
        assert!(!is_strict(&deep));
        assert!(serde_json::to_string(&ClosedSchema::new(&deep)).is_ok());
    }

    #[test]
    fn arguments_become_what_vendors_take_back() {
        assert_eq!(arguments_object(""), json!({}));
        assert_eq!(arguments_object("{\"a\":1}"), json!({ "a": 1 }));
        assert_eq!(arguments_object("[1]"), json!({ "value": [1] }));
        assert_eq!(arguments_object("{\"a"), json!({ "unreadable": "{\"a" }));
    }

    #[test]
    fn a_failure_says_so_once() {
        assert_eq!(result_text("gone", true), "error: gone");
        assert_eq!(result_text("Error: gone", true), "Error: gone");
        assert_eq!(result_text("not made: the person said no", true), "not made: the person said no");
        assert_eq!(result_text("gone", false), "gone");
        assert_eq!(result_text("坏了坏了", true), "error: 坏了坏了");
    }

    #[test]
    fn the_models_that_think_are_known_by_name() {
        let names =
            ["gpt-5.6-sol", "o3-mini", "openai/gpt-5", "gpt-4.1-mini", "gpt-4o", "gpt-5-chat-latest", "chatgpt-4o-latest"];
        assert_eq!(names.map(is_openai_reasoning), [true, true, true, false, false, false, false]);
        let near = |model: &str, effort: Effort| effort.nearest(openai_efforts(model)).map(Effort::as_str);
        assert_eq!(near("gpt-5", Effort::None), Some("minimal"));
        assert_eq!(near("gpt-5-mini", Effort::Max), Some("high"));
        assert_eq!(near("gpt-5-pro", Effort::Low), Some("high"));
        assert_eq!(near("gpt-5.1", Effort::Minimal), Some("none"));
        assert_eq!(near("gpt-5.1-codex-max", Effort::Max), Some("xhigh"));
        assert_eq!(near("gpt-5.6-sol", Effort::None), Some("none"));
        assert_eq!(near("o3-mini", Effort::Minimal), Some("low"));
        let sampled = [("gpt-4o", None), ("gpt-5", Some(Effort::None)), ("gpt-5.2", Some(Effort::None)), ("gpt-5.2", None)];
        assert_eq!(sampled.map(|(model, effort)| is_sampled(model, effort)), [true, false, true, false]);
    }

    #[test]
    fn a_budget_becomes_an_effort_and_an_effort_a_budget() {
        let set = |effort, thinking_budget| ModelSettings { effort, thinking_budget, ..ModelSettings::default() };
        assert_eq!((effort(&set(None, None)), thinking_budget(&set(None, None))), (None, None));
        assert_eq!(thinking_budget(&set(Some(Effort::Low), None)), Some(2_048));
        assert_eq!(thinking_budget(&set(Some(Effort::Low), Some(7))), Some(7));
        assert_eq!(effort(&set(Some(Effort::Low), Some(0))), Some(Effort::None));
        assert_eq!(effort(&set(None, Some(10_000))), Some(Effort::High));
        assert_eq!(effort(&set(None, Some(99_000))), Some(Effort::Max));
    }
}
