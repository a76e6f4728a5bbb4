//! `polis new tool`: an MCP server in Python, and its section in the settings.

use std::path::PathBuf;

use super::NewFiles;
use super::ScaffoldError;

/// The folder of programs with tools.
const FOLDER: &str = "tools";

/// The program of a tool of this name, below the working directory.
pub fn tool(name: &str) -> Result<NewFiles, ScaffoldError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(fits) {
        let message = format!("`{name}` cannot be a tool's name; use lower-case letters, digits and `_`, such as word_count");
        return Err(ScaffoldError::usage("bad_name", message));
    }
    let text = include_str!("templates/tool.py.txt").replace("__name__", name);
    let path = PathBuf::from(FOLDER).join(format!("{name}.py"));
    let advice = vec![
        format!("edit {}, then type polis trust: each change has to be trusted before agents can call it", path.display()),
        format!("the tool is called {name}__{name}; polis tools lists it"),
        "its section in polis.toml says that it only reads, so calls need no approval; remove that line if it does more"
            .to_owned(),
    ];
    Ok(NewFiles { files: vec![(path, text)], advice })
}

/// The section of the settings that starts it.
pub fn tool_section(name: &str) -> String {
    format!("[mcp.{name}]\ncommand = \"python3\"\nargs = [\"{FOLDER}/{name}.py\"]\ntools.{name}.effect = \"read\"\n")
}
