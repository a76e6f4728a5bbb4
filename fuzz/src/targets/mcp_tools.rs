//! Lists of tools as MCP servers send them: names that every model API takes, each once, descriptions and schemas within limits, and no
//! word of an untrusted server about itself is believed.

use std::collections::BTreeSet;

use polis_domain::EffectClass;
use polis_tools::fuzzing::mcp_tools;
use polis_tools::mcp::{ServerSettings, ServerTransport};
use serde_json::Value;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "mcp_tools",
    run,
    words: &[
        "{\"name\":\"a\",\"inputSchema\":{}}",
        "\"description\":\"",
        "\"inputSchema\":{\"type\":\"object\"}",
        "\"annotations\":{",
        "\"readOnlyHint\":true",
        "\"destructiveHint\":true",
        "\"idempotentHint\":true",
        "\"title\":",
        "\"properties\":",
        "__",
        ",",
    ],
};

fn run(input: &[u8]) {
    let Ok(Value::Array(entries)) = serde_json::from_slice(input) else { return };
    let transport = ServerTransport::Http { url: "http://127.0.0.1:9/".to_owned(), headers: Default::default() };
    let mut settings = ServerSettings::new("server", transport);
    let count = entries.len();
    for trusted in [false, true] {
        settings.trusted = trusted;
        let tools = mcp_tools(&settings, entries.clone());
        assert!(tools.len() <= count);
        let names: BTreeSet<_> = tools.iter().map(|tool| tool.name.clone()).collect();
        assert_eq!(names.len(), tools.len(), "each name once");
        for tool in &tools {
            let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(tool.name.len() <= 64 && tool.name.chars().all(is_safe), "{}", tool.name);
            assert!(!tool.name.starts_with('_'), "{}: code calls such names", tool.name);
            assert!(tool.description.len() <= 4 << 10 && tool.parameters.to_string().len() <= 64 << 10);
            assert!(tool.parameters["type"] == "object" && tool.parameters["properties"].is_object());
            assert!(trusted || tool.class == EffectClass::Write, "{}: {:?}", tool.name, tool.class);
            assert!(trusted || tool.volatile, "{}: only a trusted server says that its results can be reused", tool.name);
        }
    }
}
