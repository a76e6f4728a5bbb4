//! A server's resources and prompts as tools, so that any model can use them. Nothing is kept: every list is read anew.

use polis_domain::{CallResult, EffectClass};
use polis_ports::{Artifacts, ToolSpec};
use rmcp::model::{GetPromptRequestParams, JsonObject, ReadResourceRequestParams, ServerCapabilities};
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::Question;
use super::listing::{List, Prompt, Resource, Template};
use super::names::wire_name;
use super::settings::ServerSettings;
use super::tools::{Does, Found, identity};
use crate::results::{good, on_one_line};
use crate::spill::fitted;

/// Longest line about one entry, in bytes.
const MAX_LINE_BYTES: usize = 500;

/// What stands before a name that the server has given to a tool of its own.
const OTHERWISE: &str = "mcp_";

/// What the model may leave out of a list.
#[derive(Deserialize)]
pub(super) struct Wanted {
    #[serde(default)]
    contains: String,
}

/// Which resource.
#[derive(Deserialize)]
pub(super) struct WantedResource {
    uri: String,
}

/// Which prompt, and what to fill in.
#[derive(Deserialize)]
pub(super) struct WantedPrompt {
    name: String,
    #[serde(default)]
    arguments: JsonObject,
}

/// The tools that stand for what a server can do beside calling its own.
pub(super) fn lent(settings: &ServerSettings, can: &ServerCapabilities, own: &[Found]) -> Vec<Found> {
    let contains = json!({ "contains": { "type": "string", "description": "Only entries with this text." } });
    let one = |does, name: &str, about: &str, properties: Value, required: &[&str]| {
        let mut name = name.to_owned();
        while own.iter().any(|found| found.name == name) {
            name.insert_str(0, OTHERWISE);
        }
        let identity = identity([settings.reach.full().as_str(), &settings.name, &name]);
        let definition = format!("server: {} ({})\ntool: {name}, lent by Polis", settings.name, settings.reach).into();
        let spec = ToolSpec {
            name: wire_name(&settings.name, &name).into(),
            description: format!("{about} (server `{}`)", settings.name),
            parameters: json!({ "type": "object", "properties": properties, "required": required }),
            class: settings.effects.get(&name).copied().unwrap_or(EffectClass::Read),
            volatile: true,
        };
        Found { name, spec, does, claims_read: true, claims_harmless: true, identity, definition }
    };
    let mut tools = Vec::new();
    if can.resources.is_some() {
        let uri = json!({ "uri": { "type": "string", "description": "Its address; a template with everything filled in." } });
        let about = "Lists what can be read with read_resource: addresses, and templates of addresses.";
        tools.push(one(Does::ListResources, "list_resources", about, contains.clone(), &[]));
        tools.push(one(Does::ReadResource, "read_resource", "Reads a resource as text.", uri, &["uri"]));
    }
    if can.prompts.is_some() {
        let filled = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        let wanted = json!({ "name": { "type": "string" }, "arguments": filled });
        let about = "Lists prompts that the server has prepared, with their arguments.";
        tools.push(one(Does::ListPrompts, "list_prompts", about, contains, &[]));
        tools.push(one(Does::GetPrompt, "get_prompt", "Gives the messages of a prepared prompt.", wanted, &["name"]));
    }
    tools
}

/// The lists that make up what is told.
pub(super) fn lists(does: Does) -> &'static [List] {
    match does {
        Does::ListResources => &[List::Resources, List::Templates],
        Does::ListPrompts => &[List::Prompts],
        Does::Call | Does::ReadResource | Does::GetPrompt => &[],
    }
}

impl WantedResource {
    pub(super) fn question(self) -> Question {
        Question::Resource(ReadResourceRequestParams::new(self.uri))
    }
}

impl WantedPrompt {
    /// Prompts take texts; what a model wrote otherwise becomes one.
    pub(super) fn question(self) -> Question {
        let text = |value: Value| if value.is_string() { value } else { Value::String(value.to_string()) };
        let filled = self.arguments.into_iter().map(|(name, value)| (name, text(value))).collect();
        Question::Prompt(GetPromptRequestParams::new(self.name).with_arguments(filled))
    }
}

/// A list, one entry a line.
pub(super) async fn told(lists: Vec<(List, Vec<Value>)>, wanted: &Wanted, store: &dyn Artifacts) -> CallResult {
    let lines = lists.into_iter().flat_map(|(list, entries)| entries.into_iter().filter_map(move |entry| line(list, entry)));
    let sought = wanted.contains.to_lowercase();
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
    use crate::mcp::Reach;

    fn names(can: Value, own: &[&str]) -> Vec<String> {
        let settings = ServerSettings::new("s", Reach::command("x", [""; 0]));
        let entries = own.iter().map(|name| json!({ "name": name, "inputSchema": {} })).collect();
        let own = super::super::tools::found(&settings, entries);
        let lent = lent(&settings, &serde_json::from_value(can).unwrap(), &own);
        assert!(lent.iter().all(|tool| tool.spec.class == EffectClass::Read));
        lent.into_iter().map(|tool| tool.spec.name.to_string()).collect()
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
        let told = async |contains: &str| {
            let lists = vec![(List::Resources, resources.clone()), (List::Templates, templates.clone())];
            super::told(lists, &Wanted { contains: contains.to_owned() }, &polis_ports::NoArtifacts).await.content.to_string()
        };
        let all = told("").await;
        let lines: Vec<_> = all.lines().collect();
        assert_eq!((lines.len(), lines[1]), (2, "a:{n} (template any)"), "{all}");
        assert!(lines[0].starts_with(r"a:1 (one\ntwo, text/plain): xxx") && lines[0].len() == MAX_LINE_BYTES, "{all}");
        assert_eq!(told("TEMPLATE").await, "a:{n} (template any)");
        assert_eq!(told("nowhere").await, "(nothing)");
        let prompt = json!({ "name": "p", "arguments": [{ "name": "city", "required": true }, { "name": "unit" }] });
        assert_eq!(line(List::Prompts, prompt).unwrap(), "p (city, unit?)");
    }
}
