//! Role files: a role has a plain id and a prompt, and a file that names tools never gives all of them.

use polis_agents::read_role;

use super::text;
use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "role_file",
    run,
    words: &[
        "---\n",
        "id: ",
        "name: ",
        "tools: ",
        "tools:",
        "model: ",
        "children: 3",
        "rounds: 0",
        "contextMessages: 2",
        "[a, b]",
        "#",
        "\u{feff}",
    ],
};

fn run(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let read = read_role("file", text, "role");
    let crlf = text.replace("\r\n", "\n").replace('\n', "\r\n");
    let unix = crlf.replace("\r\n", "\n");
    let told = |text: &str| read_role("file", text, "role").map(|role| (role.id, role.name, role.tools, role.models)).ok();
    assert_eq!(told(&crlf), told(&unix), "{text:?}");
    match read {
        Ok(role) => {
            let id = role.id.as_str();
            let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
            assert!(!id.is_empty() && id.chars().count() <= 128 && id.chars().all(is_plain), "{id:?}");
            assert!(!role.prompt.is_empty() && role.prompt.len() <= 64 << 10);
            assert_eq!(role.tools.is_some(), names_tools(text), "{text:?}");
            assert!(role.tools.iter().flat_map(|tools| tools.iter()).all(|tool| !tool.is_empty()));
        }
        Err(fault) => assert!(fault.line >= 1 && fault.line <= text.lines().count() + 2, "{fault}"),
    }
}

/// Whether the front matter has a line for tools.
fn names_tools(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.split('\n');
    if lines.next().map(str::trim_end) != Some("---") {
        return false;
    }
    let front = lines.map(str::trim).take_while(|line| *line != "---").filter(|line| !line.starts_with('#'));
    front.into_iter().any(|line| line.split_once(':').is_some_and(|(key, _)| key.trim() == "tools"))
}
