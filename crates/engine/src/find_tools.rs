//! `find_tools` and `use_tool`: where an agent has many tools, most of them are not listed in each request. The model searches
//! them and calls what it finds by name. The list of tools stays the same, so that vendors can cache it.

use std::fmt::Write;
use std::sync::Arc;

use polis_domain::{CallResult, EffectClass, ToolCall};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::json;

use crate::offer::brief_description;
use crate::{Turn, TurnTool};

/// Tools are deferred where their descriptions have more characters than this.
const DEFER_ABOVE: usize = 5_000;

/// How many characters the names of the deferred tools take. A server with more tools is named alone.
const NAMES_CHARS: usize = 1_200;

/// The most tools, and characters of their descriptions, in one result.
const MAX_FOUND: usize = 8;
const MAX_FOUND_CHARS: usize = 24_000;

/// Most tools in a result that has their names alone, and the characters of each line about one.
const MAX_LISTED: usize = 100;
const LINE_CHARS: usize = 120;

/// Gives a model the descriptions of tools that are not listed in its requests.
#[derive(Debug, Clone, Copy, Default)]
pub struct FindTools;

impl FindTools {
    /// The name of this tool.
    pub const NAME: &str = "find_tools";
}

#[derive(Deserialize)]
struct Search {
    #[serde(default)]
    query: String,
}

impl TurnTool for FindTools {
    fn spec(&self) -> ToolSpec {
        spec(&[])
    }

    async fn call(&self, turn: &mut Turn, arguments: &str) -> CallResult {
        let query = serde_json::from_str::<Search>(arguments).map(|search| search.query).unwrap_or_default();
        CallResult::good(found(&turn.deferred_tools(), &query))
    }
}

/// The tools that a model is shown of all that it has: all of them if they are few, else without the deferred ones.
pub(crate) fn shown(tools: &Arc<[ToolSpec]>, is_deferred: impl Fn(&str) -> bool) -> Arc<[ToolSpec]> {
    let is_search = |tool: &ToolSpec| *tool.name == *FindTools::NAME;
    let Some(place) = tools.iter().position(is_search) else { return tools.clone() };
    let size = |tool: &ToolSpec| tool.name.len() + tool.description.chars().count() + tool.parameters.to_string().len();
    let total: usize = tools.iter().filter(|tool| !is_search(tool)).map(size).sum();
    let (deferred, direct): (Vec<_>, Vec<_>) = tools.iter().partition(|tool| is_deferred(&tool.name));
    if total <= DEFER_ABOVE || deferred.is_empty() {
        return tools.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, tool)| tool.clone()).collect();
    }
    let direct = direct.into_iter().filter(|tool| !is_search(tool)).cloned();
    direct.chain([spec(&deferred), use_tool()]).collect()
}

fn spec(deferred: &[&ToolSpec]) -> ToolSpec {
    let which = match deferred {
        [] => "that a request does not list, where an agent has many".to_owned(),
        deferred => format!("that are not listed here: {}", tool_names(deferred.iter().map(|tool| &*tool.name))),
    };
    let description =
        format!("Describes tools {which}. Search by words or names, then call what you found with {}.", ToolCall::USE_TOOL);
    ToolSpec {
        name: FindTools::NAME.into(),
        description,
        parameters: json!({
            "type": "object",
            "properties": { "query": { "type": "string", "description": "Words or tool names; all names if left out" } },
        }),
        class: EffectClass::Read,
        // Servers come and go.
        volatile: true,
    }
}

fn use_tool() -> ToolSpec {
    ToolSpec {
        name: ToolCall::USE_TOOL.into(),
        description: format!("Calls a tool that {} described.", FindTools::NAME),
        parameters: json!({
            "type": "object",
            "properties": {
                "tool": { "type": "string" },
                "arguments": { "type": "object", "description": "As the tool's parameters say" },
            },
            "required": ["tool"],
        }),
        class: EffectClass::Write,
        volatile: true,
    }
}

/// The names of tools in one line. Where they are too many, the tools of each server are counted.
pub fn tool_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.into_iter().collect();
    let whole = all.join(", ");
    if whole.len() <= NAMES_CHARS {
        return whole;
    }
    let mut groups: Vec<(String, usize)> = Vec::new();
    for name in all {
        let group = name.split_once("__").map_or_else(|| name.to_owned(), |(server, _)| format!("{server}__*"));
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, count)) => *count += 1,
            None => groups.push((group, 1)),
        }
    }
    let group = |(group, count): (String, usize)| if count == 1 { group } else { format!("{group} ({count} tools)") };
    groups.into_iter().map(group).collect::<Vec<_>>().join(", ")
}

/// What a model is told about the tools that a query finds.
fn found(tools: &[ToolSpec], query: &str) -> String {
    let mut ranked: Vec<(usize, &ToolSpec)> = tools.iter().map(|tool| (score(tool, query), tool)).collect();
    ranked.retain(|(score, _)| *score > 0);
    let names = query.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    if !ranked.is_empty() && names.clone().all(|name| tools.iter().any(|tool| *tool.name == *name)) {
        ranked.retain(|(_, tool)| names.clone().any(|name| *tool.name == *name));
    }
    ranked.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let mut told = String::new();
    let mut rest = Vec::new();
    for (place, (_, tool)) in ranked.iter().enumerate() {
        let ToolSpec { name, description, parameters, .. } = tool;
        let line = json!({ "name": name, "description": description, "parameters": parameters }).to_string();
        match place < MAX_FOUND && (told.is_empty() || told.len() + line.len() <= MAX_FOUND_CHARS) {
            true => told.push_str(&(line + "\n")),
            false => rest.push(&*tool.name),
        }
    }
    if told.is_empty() {
        let why = if query.trim().is_empty() { "These tools can be searched" } else { "Nothing fits; there are these tools" };
        let _ = writeln!(told, "{why}:");
        for tool in tools.iter().take(MAX_LISTED) {
            let _ = writeln!(told, "{}: {}", tool.name, brief_description(&tool.description, LINE_CHARS));
        }
        if tools.len() > MAX_LISTED {
            let _ = writeln!(told, "and {} more; search by words", tools.len() - MAX_LISTED);
        }
        let _ = write!(told, "Search for a name to see its parameters.");
        return told;
    }
    if !rest.is_empty() {
        let _ = writeln!(told, "Also found: {}", rest.join(", "));
    }
    let _ = write!(told, "Call one with {}.", ToolCall::USE_TOOL);
    told
}

/// How well a tool fits a query: its whole name counts most, words of its name more than words of its description.
fn score(tool: &ToolSpec, query: &str) -> usize {
    let query = query.to_lowercase();
    let (name, description) = (tool.name.to_lowercase(), tool.description.to_lowercase());
    let words = query.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| word.chars().count() > 1);
    let score = |word: &str| match word {
        _ if word == name => 100,
        _ if name.contains(word) => 10,
        _ if word.split('_').any(|part| part.len() > 2 && name.split('_').any(|own| own == part)) => 5,
        _ if description.contains(word) => 1,
        _ => 0,
    };
    words.map(score).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> ToolSpec {
        let (parameters, class) = (json!({ "type": "object" }), EffectClass::Read);
        ToolSpec { name: name.into(), description: description.to_owned(), parameters, class, volatile: false }
    }

    fn shown_names(tools: Vec<ToolSpec>) -> Vec<String> {
        shown(&tools.into(), |name| name.contains("__")).iter().map(|tool| tool.name.to_string()).collect()
    }

    #[test]
    fn only_a_long_list_is_deferred_and_only_in_part() {
        let long = "x".repeat(DEFER_ABOVE);
        let few = vec![tool("read", "Reads."), spec(&[]), tool("git__log", "Shows.")];
        assert_eq!(shown_names(few), ["read", "git__log"]);
        let many = vec![tool("read", "Reads."), spec(&[]), tool("git__log", &long)];
        assert_eq!(shown_names(many.clone()), ["read", "find_tools", "use_tool"]);
        assert_eq!(shown_names(vec![many[0].clone(), many[2].clone()]), ["read", "git__log"], "nothing could find it");
        assert_eq!(shown_names(vec![tool("read", &long), spec(&[])]), ["read"], "there is nothing to find");
    }

    #[test]
    fn without_deferred_tools_the_description_is_whole() {
        assert!(
            spec(&[]).description.starts_with("Describes tools that a request does not list, where an agent has many. Search")
        );
    }

    #[test]
    fn names_are_told_and_of_many_servers_the_counts() {
        let names: Vec<_> = (0..200).map(|n| format!("git__command_{n}")).chain(["now".to_owned()]).collect();
        assert_eq!(tool_names(names.iter().map(String::as_str)), "git__* (200 tools), now");
        assert_eq!(tool_names([&*names[0], &*names[200]]), "git__command_0, now");
    }

    #[test]
    fn a_query_finds_names_before_descriptions_and_nothing_gives_the_list() {
        let tools = [tool("mail__send", "Sends a message."), tool("message_log", "Shows."), tool("clock", "Tells the time.")];
        let lines = |query: &str| found(&tools, query).lines().map(str::to_owned).collect::<Vec<_>>();
        let found = lines("message");
        assert!(found[0].contains("\"message_log\"") && found[1].contains("\"mail__send\""), "{found:?}");
        assert_eq!(found[2..], ["Call one with use_tool."]);
        assert_eq!(lines("mail__send, clock").len(), 3, "names find these tools alone");
        assert!(lines("mail_sender")[0].contains("\"mail__send\""), "a name that is nearly right");
        assert_eq!(lines("发邮件")[..2], ["Nothing fits; there are these tools:", "mail__send: Sends a message."]);
        assert_eq!(lines("").len(), 5);
    }

    #[test]
    fn a_result_is_bounded() {
        let tools: Vec<_> = (0..50).map(|n| tool(&format!("mail__{n}"), &"mail ".repeat(1_000))).collect();
        let told = found(&tools, "mail");
        assert!(told.len() < MAX_FOUND_CHARS + 2_000, "{}", told.len());
        assert!(told.contains("Also found: "));
    }
}
