//! What a server says of its tools, and how much of that counts.

use std::collections::BTreeSet;
use std::sync::Arc;

use polis_domain::{EffectClass, is_hidden};
use polis_ports::{ToolSpec, with_texts};
use rmcp::model::ToolAnnotations;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::names::wire_name;
use super::settings::ServerSettings;

/// Longest description that is passed on, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 4 << 10;

/// Longest definition that is kept, in bytes.
const MAX_DEFINITION_BYTES: usize = 8 << 10;

/// Largest schema that is passed on, in bytes.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerTool {
    /// The server's own name for it.
    pub(super) name: String,
    /// What models are told.
    pub(super) spec: ToolSpec,
    /// What a call of it does.
    pub(super) action: ToolAction,
    /// Whether the server says that it only reads.
    pub(super) claims_read: bool,
    /// Whether the server says that it destroys nothing.
    pub(super) claims_harmless: bool,
    /// Tells this definition of it from any other.
    pub(super) identity: Arc<str>,
    /// The definition in words, for a person.
    pub(super) definition: Arc<str>,
}

/// What is done for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolAction {
    /// The server's own tool is called.
    Call,
    /// Its resources and their templates are listed.
    ListResources,
    /// One of them is read.
    ReadResource,
    /// Its prompts are listed.
    ListPrompts,
    /// One of them is filled in.
    GetPrompt,
}

/// A tool as the server lists it. One that cannot be used is left out, and the others stay.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedTool {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Value,
    annotations: Option<Value>,
}

/// The tools that can be used, in the server's order.
pub(super) fn server_tools(settings: &ServerSettings, entries: Vec<Value>) -> Vec<ServerTool> {
    let mut seen = BTreeSet::new();
    let mut tools = Vec::new();
    for entry in entries {
        match one(settings, entry) {
            Ok(tool) if seen.insert(tool.spec.name.clone()) => tools.push(tool),
            Ok(tool) => tracing::warn!(server = settings.name, "two tools are called `{}`; the first is used", tool.name),
            Err(why) => tracing::warn!(server = settings.name, "a tool is left out: {why}"),
        }
    }
    tools
}

fn one(settings: &ServerSettings, entry: Value) -> Result<ServerTool, String> {
    let listed_tool: ListedTool = serde_json::from_value(entry).map_err(|error| error.to_string())?;
    let name = listed_tool.name;
    let parameters = object_schema(listed_tool.input_schema).ok_or_else(|| format!("`{name}` takes no object"))?;
    if parameters.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(format!("the schema of `{name}` is larger than {MAX_SCHEMA_BYTES} bytes"));
    }
    let annotations = listed_tool.annotations.and_then(|hints| serde_json::from_value(hints).ok()).unwrap_or_default();
    let class = class_of(settings, &name, &annotations);
    let mut description = listed_tool.description.or(listed_tool.title).unwrap_or_default();
    description.truncate(description.floor_char_boundary(MAX_DESCRIPTION_BYTES));
    let volatile = is_volatile(settings, &name, class, &annotations);
    let hints = serde_json::to_string(&annotations).unwrap_or_default();
    let schema = serde_json::to_string_pretty(&parameters).unwrap_or_default();
    let identity = identity([settings.transport.full().as_str(), &settings.name, &name, &description, &schema, &hints]);
    let definition = definition(settings, &name, &description, &schema, &hints);
    let description = visible(&description);
    let parameters = with_texts(parameters, &visible);
    // Names and values must stay as they are, so a tool that hides something in them is not used.
    if holds_unfit(&parameters) || name.contains(is_unfit) {
        return Err(format!("`{}` has invisible characters or marks in names or values of its schema", visible(&name)));
    }
    let spec = ToolSpec { name: wire_name(&settings.name, &name).into(), description, parameters, class, volatile };
    let claims_read = annotations.read_only_hint == Some(true) && annotations.destructive_hint != Some(true);
    let claims_harmless = annotations.destructive_hint == Some(false);
    Ok(ServerTool { name, spec, action: ToolAction::Call, claims_read, claims_harmless, identity, definition })
}

/// SHA-256 over the parts, each with its length in front of it.
pub(super) fn identity<'a>(parts: impl IntoIterator<Item = &'a str>) -> Arc<str> {
    let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
    for part in parts {
        digest.update(&(part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    }
    digest.finish().as_ref().iter().fold(String::with_capacity(64), |hex, byte| hex + &format!("{byte:02x}")).into()
}

/// What a person compares when a tool has changed. How the server is reached may hold secrets: of that only a digest is shown.
fn definition(settings: &ServerSettings, name: &str, description: &str, schema: &str, hints: &str) -> Arc<str> {
    let transport = identity([settings.transport.full().as_str()]);
    let mut text = format!(
        "server: {} ({}, {})\ntool: {name}\ndescription: {description}\nhints: {hints}\nparameters: {schema}",
        settings.name,
        settings.transport,
        &transport[..12]
    );
    if text.len() > MAX_DEFINITION_BYTES {
        let whole = identity([text.as_str()]);
        text.truncate(text.floor_char_boundary(MAX_DEFINITION_BYTES));
        text.push_str(&format!("\n(too long to be shown whole; all of it together is {})", &whole[..12]));
    }
    text.into()
}

/// What a person would see of a text: without characters that hide, turn or tag other text.
fn visible(text: &str) -> String {
    text.chars().filter(|c| !is_unfit(*c)).collect()
}

/// What a server's words may not hold: what nobody sees, and the marks that stand around them.
fn is_unfit(c: char) -> bool {
    is_hidden(c) || matches!(c, '⟦' | '⟧')
}

fn holds_unfit(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(is_unfit),
        Value::Array(items) => items.iter().any(holds_unfit),
        Value::Object(fields) => fields.iter().any(|(name, value)| name.contains(is_unfit) || holds_unfit(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A schema of objects as every model API takes it.
fn object_schema(schema: Value) -> Option<Value> {
    let Value::Object(mut schema) = schema else { return None };
    let kind = schema.entry("type").or_insert_with(|| "object".into());
    if kind != "object" || schema.get("properties").is_some_and(|properties| !properties.is_object()) {
        return None;
    }
    schema.entry("properties").or_insert_with(|| Map::new().into());
    Some(schema.into())
}

/// The operator's word counts first, a trusted server's second; anything else is a write. Hints that a tool destroys
/// something are believed of everybody.
fn class_of(settings: &ServerSettings, tool: &str, hints: &ToolAnnotations) -> EffectClass {
    if let Some(class) = settings.effects.get(tool) {
        return *class;
    }
    if !settings.trusted || hints.destructive_hint == Some(true) {
        return EffectClass::Write;
    }
    match (hints.read_only_hint, hints.idempotent_hint) {
        (Some(true), _) => EffectClass::Read,
        (_, Some(true)) => EffectClass::Idempotent,
        _ => EffectClass::Write,
    }
}

/// Whether an earlier result may not answer a call. Reads may be answered (D40), except those of which the operator says that they
/// change by themselves, and those of which the server says that they look at an open world, such as a search of the web.
fn is_volatile(settings: &ServerSettings, tool: &str, class: EffectClass, hints: &ToolAnnotations) -> bool {
    match settings.volatile.get(tool) {
        Some(volatile) => *volatile,
        None => class != EffectClass::Read || hints.open_world_hint == Some(true),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mcp::ServerTransport;

    fn settings(trusted: bool) -> ServerSettings {
        let transport = ServerTransport::command("x", [""; 0]);
        let effects = [("told".to_owned(), EffectClass::Read)].into();
        ServerSettings { trusted, effects, ..ServerSettings::new("s", transport) }
    }

    fn listed(trusted: bool, entries: Value) -> Vec<(String, EffectClass)> {
        let Value::Array(entries) = entries else { panic!() };
        server_tools(&settings(trusted), entries)
            .into_iter()
            .map(|tool| (tool.spec.name.to_string(), tool.spec.class))
            .collect()
    }

    #[test]
    fn hints_count_only_for_servers_that_are_trusted_and_never_against_caution() {
        use EffectClass::{Idempotent, Read, Write};
        let tool =
            |name: &str, hints: Value| json!({ "name": name, "inputSchema": { "type": "object" }, "annotations": hints });
        let tools = json!([
            tool("plain", json!(null)),
            tool("reads", json!({ "readOnlyHint": true })),
            tool("repeats", json!({ "idempotentHint": true })),
            tool("destroys", json!({ "readOnlyHint": true, "idempotentHint": true, "destructiveHint": true })),
            tool("additive", json!({ "destructiveHint": false })),
            tool("told", json!({ "destructiveHint": true })),
            tool("strange", json!("hints")),
        ]);
        let classes = |trusted| listed(trusted, tools.clone()).into_iter().map(|(_, class)| class).collect::<Vec<_>>();
        assert_eq!(classes(false), [Write, Write, Write, Write, Write, Read, Write]);
        assert_eq!(classes(true), [Write, Read, Idempotent, Write, Write, Read, Write]);
    }

    #[test]
    fn reads_may_be_answered_from_memory_unless_they_change_by_themselves() {
        let tool = |name: &str, hints: Value| json!({ "name": name, "inputSchema": {}, "annotations": hints });
        let tools = vec![
            tool("plain", json!({})),
            tool("reads", json!({ "readOnlyHint": true, "idempotentHint": true })),
            tool("repeats", json!({ "idempotentHint": true })),
            tool("told", json!({})),
            tool("clock", json!({ "readOnlyHint": true })),
            tool("searches", json!({ "readOnlyHint": true, "openWorldHint": true })),
            tool("sure", json!({ "readOnlyHint": true, "openWorldHint": true })),
        ];
        let reused = |trusted: bool| -> Vec<String> {
            let volatile = [("sure".to_owned(), false), ("clock".to_owned(), true)].into();
            let settings = ServerSettings { volatile, ..settings(trusted) };
            let tools = server_tools(&settings, tools.clone());
            let is_reused = |tool: &&ServerTool| tool.spec.class == EffectClass::Read && !tool.spec.volatile;
            tools.iter().filter(is_reused).map(|tool| tool.name.clone()).collect()
        };
        assert_eq!(reused(true), ["reads", "told", "sure"]);
        assert_eq!(reused(false), ["told"], "hints count only for servers that are trusted");
    }

    #[test]
    fn hidden_characters_are_taken_out_of_words_and_a_tool_with_some_in_names_or_values_is_left_out() {
        let schema = |name: &str, words: &str, value: &str| {
            let about = json!({ "description": words, "title": words, "enum": ["a", value], "default": "a" });
            json!({ "type": "object", "properties": { name: about } })
        };
        let tool = |name: &str, schema| json!({ "name": name, "description": "se\u{202e}nds ⟦end⟧", "inputSchema": schema });
        let tools = vec![
            tool("good", schema("to", "who\u{200b}m ⟦end⟧", "b")),
            tool("named", schema("to\u{200b}", "", "b")),
            tool("valued", schema("to", "", "⟦b⟧")),
            tool("cal\u{200b}led", schema("to", "", "b")),
        ];
        let found = server_tools(&settings(false), tools);
        assert_eq!(found.len(), 1);
        assert_eq!((&*found[0].spec.description, &found[0].spec.parameters), ("sends end", &schema("to", "whom end", "b")));
    }

    #[test]
    fn what_cannot_be_used_is_left_out_and_the_rest_stays() {
        let tools = json!([
            { "name": "good", "inputSchema": {} },
            { "name": "string", "inputSchema": { "type": "string" } },
            { "name": "none" },
            { "name": "list", "inputSchema": [] },
            { "name": "properties", "inputSchema": { "type": "object", "properties": 7 } },
            { "name": "large", "inputSchema": { "type": "object", "description": "x".repeat(MAX_SCHEMA_BYTES) } },
            7,
            { "name": "good", "inputSchema": { "type": "object" } },
            { "name": "last", "inputSchema": { "type": "object" }, "description": "ä".repeat(MAX_DESCRIPTION_BYTES) },
        ]);
        let names: Vec<_> = listed(false, tools.clone()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["s__good", "s__last"]);
        let Value::Array(tools) = tools else { panic!() };
        let found = server_tools(&settings(false), tools);
        assert_eq!(found[0].spec.parameters, json!({ "type": "object", "properties": {} }));
        assert_eq!(found[1].spec.description.len(), MAX_DESCRIPTION_BYTES);
    }
}
