//! The MCP servers of `polis tools add`: the table `ready_tools.toml`, and what one of its entries becomes in `polis.toml`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use polis_tools::mcp::variable_names;
use serde::Deserialize;
use toml::Value;

/// One entry; the table says what its fields mean.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadyServer {
    pub(crate) about: String,
    pub(crate) needs: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    trusted: bool,
    pub(crate) argument: Option<Argument>,
    pub(crate) program: Option<Program>,
    #[serde(default)]
    read: Vec<String>,
    #[serde(default)]
    volatile: bool,
    #[serde(default)]
    pub(crate) advice: Vec<String>,
    pub(crate) example: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) example: String,
    #[serde(default)]
    pub(crate) is_folder: bool,
    #[serde(default)]
    pub(crate) without_polis: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    pub(crate) names: Vec<String>,
    flag: String,
}

/// All entries by name.
pub(crate) fn all() -> BTreeMap<String, ReadyServer> {
    toml::from_str(include_str!("ready_tools.toml")).expect("a test reads the table")
}

impl ReadyServer {
    /// The command line, or the address.
    pub(crate) fn shown(&self, args: &[String]) -> String {
        match &self.command {
            Some(command) => std::iter::once(command).chain(args).cloned().collect::<Vec<_>>().join(" "),
            None => self.url.clone().unwrap_or_default(),
        }
    }

    /// Whether it runs on this machine.
    pub(crate) fn is_program(&self) -> bool {
        self.command.is_some()
    }

    /// Its arguments, with what the person typed in its place, the program that was found, and `more` at the end.
    pub(crate) fn args(&self, argument: Option<&str>, found: Option<&Path>, more: &[String]) -> Vec<String> {
        let mut args: Vec<String> =
            self.args.iter().map(|arg| arg.replace("{argument}", argument.unwrap_or_default())).collect();
        if let (Some(program), Some(found)) = (&self.program, found) {
            args.extend([program.flag.clone(), found.display().to_string()]);
        }
        args.extend(more.iter().cloned());
        args
    }

    /// The environment variables that it is given.
    pub(crate) fn variables(&self) -> Vec<String> {
        self.env.values().chain(self.headers.values()).flat_map(|text| variable_names(text)).collect()
    }

    /// The section for `polis.toml`.
    pub(crate) fn section(&self, name: &str, args: &[String]) -> String {
        let text = |value: &str| Value::from(value).to_string();
        let table = |pairs: &BTreeMap<String, String>| {
            let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key} = {}", text(value))).collect();
            format!("{{ {} }}", pairs.join(", "))
        };
        let mut section = format!("[mcp.{name}]\n");
        // Writing to a string does not fail.
        if let Some(command) = &self.command {
            let args: Vec<String> = args.iter().map(|arg| text(arg)).collect();
            let _ = writeln!(section, "command = {}\nargs = [{}]", text(command), args.join(", "));
        }
        if let Some(url) = &self.url {
            let _ = writeln!(section, "url = {}", text(url));
        }
        for (key, pairs) in [("env", &self.env), ("headers", &self.headers)].iter().filter(|(_, pairs)| !pairs.is_empty()) {
            let _ = writeln!(section, "{key} = {}", table(pairs));
        }
        if self.trusted {
            section.push_str("trusted = true\n");
        }
        let volatile = if self.volatile { ", volatile = true" } else { "" };
        for tool in &self.read {
            let _ = writeln!(section, "tools.{tool} = {{ effect = \"read\"{volatile} }}");
        }
        section
    }
}

/// The first of these programs on `PATH`.
pub(crate) fn find_program(names: &[String]) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    names.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()))
}

/// Why a section was not removed.
#[derive(Debug, PartialEq)]
pub(crate) enum NotRemoved {
    /// The file has no such server.
    Missing,
    /// The server is not written as sections of its own.
    Entangled,
}

/// The file without the sections of a server. All other lines stay as they are; comments directly above the next section belong
/// to that section.
pub(crate) fn without(text: &str, name: &str) -> Result<String, NotRemoved> {
    let table = |text: &str| text.parse::<toml::Table>().ok();
    let mut wanted = table(text).ok_or(NotRemoved::Entangled)?;
    let servers = wanted.get_mut("mcp").and_then(Value::as_table_mut).ok_or(NotRemoved::Missing)?;
    servers.remove(name).ok_or(NotRemoved::Missing)?;
    if servers.is_empty() {
        wanted.remove("mcp");
    }
    let is_own =
        |header: &[String]| header.first().is_some_and(|part| part == "mcp") && header.get(1).is_some_and(|part| part == name);
    let (mut kept, mut held) = (String::new(), String::new());
    let mut skips = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if let Some(header) = header(trimmed) {
            let own = is_own(&header);
            if !own {
                kept.push_str(&held);
            }
            held.clear();
            // The empty line above it goes too.
            if own && kept.ends_with("\n\n") {
                kept.pop();
            }
            skips = own;
        }
        match skips {
            false => kept.push_str(line),
            // What follows decides whose comment it is.
            true if trimmed.is_empty() || trimmed.starts_with('#') => held.push_str(line),
            true => held.clear(),
        }
    }
    // A comment at the very end belongs to nothing else.
    let kept = if skips { format!("{}\n", kept.trim_end()) } else { kept };
    let kept = if kept.trim().is_empty() { String::new() } else { kept };
    let mut left = table(&kept).ok_or(NotRemoved::Entangled)?;
    if left.get("mcp").and_then(Value::as_table).is_some_and(toml::Table::is_empty) {
        left.remove("mcp");
    }
    if left == wanted { Ok(kept) } else { Err(NotRemoved::Entangled) }
}

/// The parts of a line such as `[mcp."a b".tools]`, if it is a header.
fn header(line: &str) -> Option<Vec<String>> {
    if !line.starts_with('[') {
        return None;
    }
    let mut table = &line.parse::<toml::Table>().ok()?;
    let mut parts = Vec::new();
    while let Some((key, value)) = table.iter().next() {
        parts.push(key.clone());
        table = match value {
            Value::Table(below) => below,
            Value::Array(several) => several.first().and_then(Value::as_table)?,
            _ => return None,
        };
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config_file::parse;

    #[test]
    fn every_entry_is_pinned_and_becomes_a_section_that_polis_reads() {
        let all = all();
        for wanted in
            ["playwright", "fetch", "filesystem", "git", "github", "brave-search", "tavily", "exa", "postgres", "memory"]
        {
            assert!(all.contains_key(wanted), "{wanted}");
        }
        for (name, server) in &all {
            let args = server.args(Some("/srv"), None, &["--more".to_owned()]);
            let section = server.section(name, &args);
            let settings =
                parse(&section, Path::new("polis.toml")).unwrap_or_else(|error| panic!("{name}: {error}\n{section}"));
            assert_eq!(settings.servers[0].name, *name);
            assert_eq!(settings.servers[0].effects.len(), server.read.len(), "{section}");
            assert_eq!(section.contains("\"--more\""), server.is_program(), "{section}");
            assert!(!section.contains("{argument}"), "{section}");
            // A package without a version would be another one tomorrow.
            let is_pinned = |arg: &String| {
                arg.rsplit_once('@').is_some_and(|(_, version)| version.starts_with(|c: char| c.is_ascii_digit()))
            };
            assert!(!server.is_program() || server.args.iter().any(is_pinned), "{name}");
            assert_eq!(server.argument.is_some(), server.args.iter().any(|arg| arg.contains("{argument}")), "{name}");
        }
    }

    #[test]
    fn a_program_that_was_found_is_passed_with_its_flag() {
        let all = all();
        let args = all["playwright"].args(None, Some(Path::new("/opt/chromium")), &["--no-sandbox".to_owned()]);
        assert!(args.ends_with(&["--executable-path", "/opt/chromium", "--no-sandbox"].map(str::to_owned)), "{args:?}");
    }

    #[test]
    fn a_server_is_removed_with_its_parts_and_everything_else_stays() {
        let rest = "# mine\nmodel = \"offline\"   # here\n\n[mcp.b]\ncommand = \"b\"\n";
        let own = "\n[mcp.a]   # note\nargs = [\n  \"[mcp.b]\",\n]\ncommand = \"a\"\n\n[mcp.a.tools.x]\neffect = \"read\"\n";
        let tools = "\n# the tools\n[tools]\nfetch = true\n";
        let both = format!("{rest}{own}{tools}");
        assert_eq!(without(&both, "a").unwrap(), format!("{rest}{tools}"));
        assert_eq!(without(&format!("{rest}{own}"), "a").unwrap(), format!("{}\n", rest.trim_end()));
        assert_eq!(without("[mcp.\"a b\"]\ncommand = \"a\"\n", "a b").unwrap(), "");
        for (text, want) in [
            ("model = \"x\"\n", NotRemoved::Missing),
            ("[mcp.b]\ncommand = \"b\"\n", NotRemoved::Missing),
            ("mcp = { a = { command = \"a\" } }\n", NotRemoved::Entangled),
            ("[mcp]\na.command = \"a\"\nb.command = \"b\"\n", NotRemoved::Entangled),
        ] {
            assert_eq!(without(text, "a").unwrap_err(), want, "{text}");
        }
    }
}
