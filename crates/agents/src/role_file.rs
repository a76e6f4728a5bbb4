//! Roles that people write: Markdown with front matter, one file each in a folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use polis_domain::{ModelSettings, Role};

/// The folder of role files, from the working directory.
pub const ROLES_FOLDER: &str = "roles";

/// The keys that a role's front matter may have.
const KEYS: &str = "id, name, model, tools, skills, children, rounds, contextMessages";

/// Whether a key of the front matter is a setting of model calls.
fn is_setting(key: &str) -> bool {
    ModelSettings::NAMES.contains(&key)
}

/// Longest prompt, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// What is wrong with a role's file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {wrong}; {remedy}")]
pub struct BadRoleFile {
    /// Where, from 1.
    pub line: usize,
    /// What is wrong in that line.
    pub wrong: String,
    /// What to do.
    pub remedy: String,
}

fn bad(line: usize, wrong: impl Into<String>, remedy: impl Into<String>) -> BadRoleFile {
    BadRoleFile { line, wrong: wrong.into(), remedy: remedy.into() }
}

/// The role files in a folder, in order. A folder that cannot be read has none.
pub fn role_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(|path| is_role(path) && path.is_file()).collect();
    files.sort();
    files
}

/// Whether a file is one of a role by its name.
fn is_role(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    path.extension().is_some_and(|ending| ending == "md") && !stem.eq_ignore_ascii_case("readme") && !stem.starts_with('.')
}

/// Reads a role from the text of its file; `stem` is the file's name without `.md`, and the role's id where none is given. Its
/// agents are run by this code.
pub fn read_role(stem: &str, text: &str, behaviour: &str) -> Result<Role, BadRoleFile> {
    let text = text.trim_start_matches('\u{FEFF}');
    let (head, first_of_body, body) = parts(text)?;
    let mut role = Role::new(stem, behaviour);
    let mut name = None;
    for (line, key, value) in head {
        match key {
            "id" => role.id = plain(line, value)?.into(),
            "name" => name = Some(value),
            "model" => role.models = list(value),
            "tools" => role.tools = Some(list(value).into()),
            "skills" => role.skills = Some(list(value).into()),
            "children" => role.limits.children = Some(count(line, key, value, 0)?),
            "rounds" => role.limits.rounds = Some(count(line, key, value, 1)?),
            "contextMessages" => role.limits.context_messages = Some(count(line, key, value, 2)?),
            _ if is_setting(key) => role.settings.set(key, value).map_err(|wrong| {
                bad(line, wrong.to_string(), format!("the settings of models are {}", ModelSettings::NAMES.join(", ")))
            })?,
            _ => {
                let remedy = format!("write one of {KEYS}, {}", ModelSettings::NAMES.join(", "));
                return Err(bad(line, format!("`{key}` is not known"), remedy));
            }
        }
    }
    plain(1, role.id.as_str())?;
    role.name = name.map_or_else(|| role.id.as_str().into(), Into::into);
    let prompt = body.trim();
    if prompt.is_empty() {
        return Err(bad(first_of_body, "the role has no prompt", "write below the front matter what its agents are for"));
    }
    if prompt.len() > MAX_BYTES {
        return Err(bad(first_of_body, format!("the prompt has {} bytes", prompt.len()), format!("keep it below {MAX_BYTES}")));
    }
    Ok(role.with_prompt(prompt))
}

/// What the file of a new role says.
pub fn role_file(id: &str, name: &str) -> String {
    format!(
        "---\nid: {id}\nname: {name}\n# The tools that its agents get; * stands for any text. Without this line: all.\n\
         tools: read_file, list_files, search_files, request_collaboration\n\
         # model: vendor/name\n# effort: high\n# rounds: 25\n---\nYou hold the role {name}.\n\n\
         Say here what its agents are for, what they are given, what they must deliver and in which form, and what they must\nnot do.\n"
    )
}

type Line<'a> = (usize, &'a str, &'a str);

/// The front matter, the line on which the body begins, and the body.
fn parts(text: &str) -> Result<(Vec<Line<'_>>, usize, &str), BadRoleFile> {
    let mut lines = text.split_inclusive('\n');
    let Some(opening) = lines.next().filter(|line| line.trim_end() == "---") else { return Ok((Vec::new(), 1, text)) };
    let mut head = Vec::new();
    let mut read = opening.len();
    for (at, line) in lines.enumerate() {
        let number = at + 2;
        read += line.len();
        let line = line.trim();
        if line == "---" {
            return Ok((head, number + 1, &text[read..]));
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.split_once(':') else {
            return Err(bad(number, format!("`{line}` is no `key: value`"), "write lists on one line, with commas"));
        };
        head.push((number, key.trim(), value.trim().trim_matches(['"', '\''])));
    }
    Err(bad(1, "the front matter has no second `---`", "close it"))
}

fn list(value: &str) -> Vec<Arc<str>> {
    let inner = value.trim_start_matches('[').trim_end_matches(']');
    inner.split(',').map(|part| part.trim().trim_matches(['"', '\''])).filter(|part| !part.is_empty()).map(Into::into).collect()
}

fn count(line: usize, key: &str, value: &str, least: usize) -> Result<usize, BadRoleFile> {
    let number = value.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| bad(line, format!("`{value}` cannot be {key}"), format!("write a number from {least} on")))
}

fn plain(line: usize, id: &str) -> Result<&str, BadRoleFile> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if id.is_empty() || id.chars().count() > 128 || !id.chars().all(fits) {
        return Err(bad(line, format!("`{id}` cannot be a role's id"), "use letters, digits, `-`, `_` or `.`"));
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use polis_domain::{Effort, RoleLimits};

    use super::*;

    #[test]
    fn a_role_is_read_with_everything_that_people_may_write() {
        let text = "\u{FEFF}---\r\nid: reviewer\r\nname: \"Code Reviewer\"\r\n# note\r\nmodel: a/x, b/y\r\ntools: [read_file, git__*]\r\n\
                    children: 0\r\nrounds: 5\r\ncontextMessages: 40\r\neffort: high\r\ntemperature: 0.2\r\nstop: END|\\n\r\n---\r\n# You review\n---\nmore\n";
        let role = read_role("file", text, "converse").unwrap();
        assert_eq!((role.id.as_str(), &*role.name, &*role.prompt), ("reviewer", "Code Reviewer", "# You review\n---\nmore"));
        assert_eq!(role.models.len(), 2);
        assert_eq!(role.limits, RoleLimits { children: Some(0), rounds: Some(5), context_messages: Some(40) });
        let settings = ModelSettings {
            effort: Some(Effort::High),
            temperature: Some(0.2),
            stop: vec!["END".into(), "\n".into()],
            ..ModelSettings::default()
        };
        assert_eq!(role.settings, settings);
        let has: Vec<_> = ["read_file", "git__push", "write_file"].into_iter().map(|tool| role.has_tool(tool)).collect();
        assert_eq!(has, [true, true, false]);
        let plain = read_role("helper", "Help.", "converse").unwrap();
        assert_eq!((plain.id.as_str(), &*plain.name, plain.tools), ("helper", "helper", None));
    }

    #[test]
    fn a_new_roles_file_can_be_read() {
        let role = read_role("qa", &role_file("qa", "Quality"), "converse").unwrap();
        assert_eq!((role.id.as_str(), &*role.name), ("qa", "Quality"));
        assert!(role.has_tool("read_file") && !role.has_tool("run_command"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, expected) in [
            ("---\nid: a\n", "line 1: the front matter has no second `---`; close it"),
            (
                "---\nid: a\ntools:\n  - read_file\n---\nx",
                "line 4: `- read_file` is no `key: value`; write lists on one line, with commas",
            ),
            ("---\nheat: 1\n---\nx", "line 2: `heat` is not known; write one of id, name, model, tools, skills, children"),
            ("---\neffort: much\n---\nx", "line 2: `much` cannot be `effort`; write none, minimal, low"),
            ("---\ntemperature: 3\n---\nx", "line 2: `temperature` is a number from 0 to 2; the settings of models are effort"),
            ("---\nid: a b\n---\nx", "line 2: `a b` cannot be a role's id"),
            ("---\nrounds: many\n---\nx", "line 2: `many` cannot be rounds; write a number from 1 on"),
            ("---\nid: a\n---\n \n", "line 4: the role has no prompt"),
            ("", "line 1: the role has no prompt"),
        ] {
            let error = read_role("role", text, "converse").unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
        assert!(read_role("a b", "x", "converse").is_err(), "the file's name counts where it is the id");
    }
}
