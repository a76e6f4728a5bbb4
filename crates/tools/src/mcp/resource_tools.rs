//! A server's resources and prompts as tools, so that any model can use them. Nothing is kept: every list is read anew.

use polis_domain::{CallResult, EffectClass};
use polis_ports::{Artifacts, ToolSpec};
use rmcp::model::{GetPromptRequestParams, JsonObject, ReadResourceRequestParams, ServerCapabilities};
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::McpRequest;
use super::listing::{List, Prompt, Resource, Template};
use super::names::wire_name;
use super::settings::ServerSettings;
use super::tools::{ServerTool, ToolAction, identity};
use crate::results::{good, on_one_line};
use crate::spill::fitted;

/// Longest line about one entry, in bytes.
const MAX_LINE_BYTES: usize = 500;

/// What stands before a name that the server has given to a tool of its own.
const RENAMED_PREFIX: &str = "mcp_";

/// Which entries of a list the model wants.
#[derive(Deserialize)]
pub(super) struct ListFilter {
    #[serde(default)]
    contains: String,
}

/// Which resource.
#[derive(Deserialize)]
pub(super) struct ReadResourceArguments {
    uri: String,
}

/// Which prompt, and what to fill in.
#[derive(Deserialize)]
pub(super) struct GetPromptArguments {
    name: String,
    #[serde(default)]
    arguments: JsonObject,
}

/// The tools by which a model reads a server's resources and prompts.
pub(super) fn resource_tools(settings: &ServerSettings, can: &ServerCapabilities, own: &[ServerTool]) -> Vec<ServerTool> {
    let contains = json!({ "contains": { "type": "string", "description": "Only entries with this text." } });
    let one = |action, name: &str, about: &str, properties: Value, required: &[&str]| {
        let mut name = name.to_owned();
        while own.iter().any(|found| found.name == name) {
            name.insert_str(0, RENAMED_PREFIX);
        }
        let identity = identity([settings.transport.full().as_str(), &settings.name, &name]);
        let definition = format!("server: {} ({})\ntool: {name}, lent by Polis", settings.name, settings.transport).into();
        let spec = ToolSpec {
            name: wire_name(&settings.name, &name).into(),
            description: format!("{about} (server `{}`)", settings.name),
            parameters: json!({ "type": "object", "properties": properties, "required": required }),
            class: settings.effects.get(&name).copied().unwrap_or(EffectClass::Read),
            volatile: true,
        };
        ServerTool { name, spec, action, claims_read: true, claims_harmless: true, identity, definition }
    };
    let mut tools = Vec::new();
    if can.resources.is_some() {
        let uri = json!({ "uri": { "type": "string", "description": "Its address; a template with everything filled in." } });
        let about = "Lists what can be read with read_resource: addresses, and templates of addresses.";
        tools.push(one(ToolAction::ListResources, "list_resources", about, contains.clone(), &[]));
        tools.push(one(ToolAction::ReadResource, "read_resource", "Reads a resource as text.", uri, &["uri"]));
    }
    if can.prompts.is_some() {
        let filled = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        let parameters = json!({ "name": { "type": "string" }, "arguments": filled });
        let about = "Lists prompts that the server has prepared, with their arguments.";
        tools.push(one(ToolAction::ListPrompts, "list_prompts", about, contains, &[]));
        tools.push(one(ToolAction::GetPrompt, "get_prompt", "Gives the messages of a prepared prompt.", parameters, &["name"]));
    }
    tools
}

/// The lists that make up what is told.
pub(super) fn lists(action: ToolAction) -> &'static [List] {
    match action {
        ToolAction::ListResources => &[List::Resources, List::Templates],
        ToolAction::ListPrompts => &[List::Prompts],
        ToolAction::Call | ToolAction::ReadResource | ToolAction::GetPrompt => &[],
    }
}

impl ReadResourceArguments {
    pub(super) fn request(self) -> McpRequest {
        McpRequest::Resource(ReadResourceRequestParams::new(self.uri))
    }
}

impl GetPromptArguments {
    /// Prompts take texts; what a model wrote otherwise becomes one.
    pub(super) fn request(self) -> McpRequest {
        let text = |value: Value| if value.is_string() { value } else { Value::String(value.to_string()) };
        let filled = self.arguments.into_iter().map(|(name, value)| (name, text(value))).collect();
        McpRequest::Prompt(GetPromptRequestParams::new(self.name).with_arguments(filled))
    }
}

/// A list, one entry a line.
pub(super) async fn list_entries(lists: Vec<(List, Vec<Value>)>, filter: &ListFilter, store: &dyn Artifacts) -> CallResult {
    let lines = lists.into_iter().flat_map(|(list, entries)| entries.into_iter().filter_map(move |entry| line(list, entry)));
    let sought = filter.contains.to_lowercase();
    let lines: Vec<String> = lines.filter(|line| line.to_lowercase().contains(&sought)).collect();
    let text = if lines.is_empty() { "(nothing)".to_owned() } else { lines.join("\n") };
    let (text, whole) = fitted(text, "list.txt", store).await;
    good(text).with_artifacts(whole.into_iter().collect())
}

/// One entry; nothing for one that cannot be read.
fn line(list: List, entry: Value) -> Option<String> {
    let (name, more, description) = match list {
        List::Tools => return None,
        List::Resources => {
            let Resource { uri, name, description, mime_type } = serde_json::from_value(entry).ok()?;
            (uri, [Some(name), mime_type].into_iter().flatten().collect::<Vec<_>>().join(", "), description)
        }
        List::Templates => {
            let Template { uri_template, name, description, mime_type } = serde_json::from_value(entry).ok()?;
            let named = [Some(format!("template {name}")), mime_type];
            (uri_template, named.into_iter().flatten().collect::<Vec<_>>().join(", "), description)
        }
        List::Prompts => {
            let Prompt { name, description, arguments } = serde_json::from_value(entry).ok()?;
            let argument = |argument: &Value| {
                let needed = if argument["required"] == true { "" } else { "?" };
                Some(format!("{}{needed}", argument["name"].as_str()?))
            };
            (name, arguments.iter().filter_map(argument).collect::<Vec<_>>().join(", "), description)
        }
    };
    let described = description.filter(|text| !text.is_empty()).map(|text| format!(": {text}")).unwrap_or_default();
    let mut line = on_one_line(&format!("{name} ({more}){described}")).into_owned();
    line.truncate(line.floor_char_boundary(MAX_LINE_BYTES));
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::ServerTransport;

    fn names(can: Value, own: &[&str]) -> Vec<String> {
        let settings = ServerSettings::new("s", ServerTransport::command("x", [""; 0]));
        let entries = own.iter().map(|name| json!({ "name": name, "inputSchema": {} })).collect();
        let own = super::super::tools::server_tools(&settings, entries);
        let resource_tools = resource_tools(&settings, &serde_json::from_value(can).unwrap(), &own);
        assert!(resource_tools.iter().all(|tool| tool.spec.class == EffectClass::Read));
        resource_tools.into_iter().map(|tool| tool.spec.name.to_string()).collect()
    }

    #[test]
    fn what_a_server_has_is_lent_under_names_that_it_does_not_use_itself() {
        assert_eq!(names(json!({ "tools": {} }), &[]), [""; 0]);
        assert_eq!(names(json!({ "resources": {} }), &["echo"]), ["s__list_resources", "s__read_resource"]);
        assert_eq!(names(json!({ "prompts": {} }), &["list_prompts"]), ["s__mcp_list_prompts", "s__get_prompt"]);
        let taken = ["get_prompt", "mcp_get_prompt"];
        assert_eq!(names(json!({ "prompts": {} }), &taken), ["s__list_prompts", "s__mcp_mcp_get_prompt"]);
    }

    #[tokio::test]
    async fn a_list_is_one_line_an_entry_bounded_and_without_what_cannot_be_read() {
        let resources = vec![
            json!({ "uri": "a:1", "name": "one\ntwo", "mimeType": "text/plain", "description": "x".repeat(9_000) }),
            json!({ "uri": 7 }),
        ];
        let templates = vec![json!({ "uriTemplate": "a:{n}", "name": "any" })];
        let list_entries = async |contains: &str| {
            let lists = vec![(List::Resources, resources.clone()), (List::Templates, templates.clone())];
            super::list_entries(lists, &ListFilter { contains: contains.to_owned() }, &polis_ports::NoArtifacts)
                .await
                .content
                .to_string()
        };
        let all = list_entries("").await;
        let lines: Vec<_> = all.lines().collect();
        assert_eq!((lines.len(), lines[1]), (2, "a:{n} (template any)"), "{all}");
        assert!(lines[0].starts_with(r"a:1 (one\ntwo, text/plain): xxx") && lines[0].len() == MAX_LINE_BYTES, "{all}");
        assert_eq!(list_entries("TEMPLATE").await, "a:{n} (template any)");
        assert_eq!(list_entries("nowhere").await, "(nothing)");
        let prompt = json!({ "name": "p", "arguments": [{ "name": "city", "required": true }, { "name": "unit" }] });
        assert_eq!(line(List::Prompts, prompt).unwrap(), "p (city, unit?)");
    }
}
