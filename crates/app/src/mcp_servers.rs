//! MCP servers as people write them down: `[mcp.NAME]` in `polis.toml`, and `.mcp.json` as other clients have it.
//!
//! A `.mcp.json` starts programs. It is read where the operator starts Polis or keeps its data, once its content is trusted, and
//! no file tool may touch it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use polis_domain::EffectClass;
use polis_providers::CommandGuard;
use polis_tools::mcp::{OAuth, ServerSettings, ServerTransport, StartGuard, variable_names};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::config_file::{admitted_text, withheld};
use crate::error::CliError;
use crate::trust::{CHANGED, Trust, is_secret, visible};

/// The file of other clients.
pub(crate) const FILE: &str = ".mcp.json";

/// The longest time-out that can be set, in seconds: a day.
const MAX_TIMEOUT_SECONDS: f64 = 86_400.0;

/// A server in `polis.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpServerSection {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default = "default_true")]
    enabled: bool,
    #[serde(default)]
    trusted: bool,
    /// The roots that it gets.
    roots: Option<Vec<PathBuf>>,
    /// Whether what it returns counts as outside content.
    #[serde(default = "default_true")]
    outside: bool,
    timeout_seconds: Option<f64>,
    start_wait_seconds: Option<f64>,
    #[serde(default)]
    tools: BTreeMap<String, McpToolEntry>,
    oauth: Option<OAuthSection>,
}

/// How polis introduces itself where people log in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OAuthSection {
    client_id: Option<String>,
    client_secret: Option<String>,
    client_metadata_url: Option<String>,
    #[serde(default)]
    scopes: Vec<String>,
    port: Option<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct McpToolEntry {
    effect: Option<EffectClass>,
    volatile: Option<bool>,
    /// An older way to write `volatile = false`.
    #[serde(default)]
    pure: bool,
}

fn default_true() -> bool {
    true
}

/// Shows nothing: its values may be secret.
impl fmt::Debug for McpServerSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServerSection").finish_non_exhaustive()
    }
}

impl McpServerSection {
    /// Its settings, or what is wrong with it.
    pub(crate) fn settings(self, name: &str) -> Result<ServerSettings, &'static str> {
        let Self { command, args, env, cwd, url, headers, enabled, trusted, roots, outside, tools, oauth, .. } = self;
        if name.trim().is_empty() {
            return Err("needs a name");
        }
        let transport = match (command, url) {
            (Some(command), None) if headers.is_empty() => ServerTransport::Command { command, args, env, cwd },
            (None, Some(url)) if args.is_empty() && env.is_empty() && cwd.is_none() => ServerTransport::Http { url, headers },
            (Some(_), None) => return Err("has a `command`, so it cannot have `headers`"),
            (None, Some(_)) => return Err("has a `url`, so it cannot have `args`, `env` or `cwd`"),
            (Some(_), Some(_)) => return Err("has both a `command` and a `url`"),
            (None, None) => return Err("needs a `command` or a `url`"),
        };
        let timeout = match self.timeout_seconds {
            None => ServerSettings::TIMEOUT,
            Some(seconds) if seconds > 0.0 && seconds <= MAX_TIMEOUT_SECONDS => Duration::from_secs_f64(seconds),
            Some(_) => return Err("has a `timeout_seconds` that is not above 0 and at most 86400"),
        };
        let start_wait = match self.start_wait_seconds {
            None => ServerSettings::START_WAIT,
            Some(seconds) if (0.0..=MAX_TIMEOUT_SECONDS).contains(&seconds) => Duration::from_secs_f64(seconds),
            Some(_) => return Err("has a `start_wait_seconds` that is not between 0 and 86400"),
        };
        let oauth = match (oauth, &transport) {
            (None, _) => OAuth::default(),
            (Some(_), ServerTransport::Command { .. }) => return Err("has a `command`, so it cannot have `oauth`"),
            (Some(it), ServerTransport::Http { .. }) if it.client_secret.is_some() && it.client_id.is_none() => {
                return Err("has a `client_secret` without a `client_id`");
            }
            (
                Some(OAuthSection { client_id, client_secret, client_metadata_url, scopes, port }),
                ServerTransport::Http { .. },
            ) => OAuth { client_id, client_secret, client_metadata_url, scopes, port },
        };
        let is_volatile = |entry: &McpToolEntry| entry.volatile.or(entry.pure.then_some(false));
        let volatile = tools.iter().filter_map(|(tool, entry)| Some((tool.clone(), is_volatile(entry)?))).collect();
        let effects = tools.into_iter().filter_map(|(tool, entry)| Some((tool, entry.effect?))).collect();
        let start_guard = StartGuard::default();
        Ok(ServerSettings {
            name: name.to_owned(),
            transport,
            enabled,
            trusted,
            timeout,
            start_wait,
            effects,
            oauth,
            volatile,
            roots,
            outside,
            start_guard,
        })
    }
}

/// The servers of a `.mcp.json` here, else in the data directory, as far as it is trusted.
pub(crate) fn read_mcp_json(data: &Path, trust: &Trust, allowed: &[String]) -> Result<Vec<ServerSettings>, CliError> {
    for path in [PathBuf::from(FILE), data.join(FILE)] {
        match admitted_text(&path, trust) {
            Ok(Some(text)) => {
                let mut servers = parse(&text, &path)?;
                servers.iter_mut().for_each(|server| restrict(server, trust, allowed));
                return Ok(servers);
            }
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&path, &error)),
        }
    }
    Ok(Vec::new())
}

/// The servers of the user's own `.mcp.json`, which count in every folder.
pub(crate) fn read_user_file(user: &Path) -> Result<Vec<ServerSettings>, CliError> {
    let path = user.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let mut servers = parse(&text, &path)?;
            servers.iter_mut().for_each(|server| set_working_dir(server, &path));
            Ok(servers)
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(unreadable(&path, &error)),
    }
}

/// Has a server of the user's own file work in the folder of that file: in a stranger's folder its program could load what lies
/// there, such as `node_modules/.bin` or a module.
pub(crate) fn set_working_dir(server: &mut ServerSettings, file: &Path) {
    if let ServerTransport::Command { cwd: cwd @ None, .. } = &mut server.transport {
        *cwd = file.parent().map(Path::to_owned);
    }
}

fn unreadable(path: &Path, error: &io::Error) -> CliError {
    CliError::usage("bad_config", format!("{} cannot be read: {error}", path.display()))
}

/// Switches a folder's server off if it asks for a secret variable that it is not given, and keeps it from being started while a
/// file that its program runs is not what was trusted.
pub(crate) fn restrict(server: &mut ServerSettings, trust: &Trust, allowed: &[String]) {
    if !server.enabled || trust.trusts_everything() {
        return;
    }
    let who = format!("the MCP server {}", server.name);
    let is_withheld = |name: &String| is_secret(name) && !allowed.contains(name);
    if let Some(name) = texts(server).iter().flat_map(|text| variable_names(text)).find(is_withheld) {
        withheld(&who, &name);
        server.enabled = false;
    }
    let ServerTransport::Command { command, args, env, cwd } = &server.transport else { return };
    let guard = program_guard(serde_json::json!({ "command": command, "args": args, "env": env, "cwd": cwd }), trust);
    server.start_guard = StartGuard::new(move || guard());
}

/// Refuses a program of a folder's file while a file that it runs is not what was trusted. It is asked at each start: an agent may
/// have written meanwhile, and the user may have trusted what it wrote.
pub(crate) fn program_guard(program: serde_json::Value, trust: &Trust) -> CommandGuard {
    let trust = trust.clone();
    Arc::new(move || match trust.changed_file_of(&program) {
        Some(file) => Err(format!("{} is not trusted as it is now; run polis trust ({CHANGED})", visible(&file))),
        None => Ok(()),
    })
}

/// What agents may not write because a server loads it that trust does not bind.
pub(crate) fn closed(server: &ServerSettings, workspace: &Path, trust: &Trust) -> (Vec<&'static str>, Vec<PathBuf>) {
    let ServerTransport::Command { command, args, env, cwd } = &server.transport else { return Default::default() };
    if !server.enabled || trust.trusts_everything() {
        return Default::default();
    }
    let cwd = cwd.as_ref().map_or_else(|| trust.folder().to_owned(), |cwd| trust.folder().join(cwd));
    let program = serde_json::json!({ "command": command, "args": args, "env": env, "cwd": cwd });
    trust.closed_for(workspace, &program, server.start_guard.is_set())
}

/// Everything of a server that may hold variables.
fn texts(server: &ServerSettings) -> Vec<&String> {
    let OAuth { client_id, client_secret, client_metadata_url, .. } = &server.oauth;
    let mut texts: Vec<&String> = [client_id, client_secret, client_metadata_url].into_iter().flatten().collect();
    match &server.transport {
        ServerTransport::Command { command, args, env, .. } => {
            texts.extend(std::iter::once(command).chain(args).chain(env.values()))
        }
        ServerTransport::Http { url, headers } => texts.extend(std::iter::once(url).chain(headers.values())),
    }
    texts
}

/// `{"mcpServers": {"name": {…}}}`, or `servers` as some have it. What other clients have beyond that is passed over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct McpJsonFile {
    #[serde(default, alias = "servers")]
    mcp_servers: OrderedServers,
}

#[derive(Default)]
struct OrderedServers(Vec<(String, McpJsonServer)>);

#[derive(Deserialize)]
struct McpJsonServer {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    disabled: bool,
    #[serde(default = "default_true")]
    enabled: bool,
    r#type: Option<String>,
}

/// Its errors name the place and never quote it: keys stand in such files.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Vec<ServerSettings>, CliError> {
    let bad = |what: String| CliError::usage("bad_config", format!("{} {what}", path.display()));
    // What a person is asked to trust is read as a whole; what fails there must not count here.
    let file = serde_json::from_str::<serde_json::Value>(text).and_then(|_| serde_json::from_str::<McpJsonFile>(text));
    let file = file.map_err(|error| {
        let what = match error.classify() {
            serde_json::error::Category::Data => "this is not what belongs here",
            _ => "this is not JSON",
        };
        bad(format!("line {}, column {}: {what}", error.line(), error.column()))
    })?;
    let one = |(name, it): (String, McpJsonServer)| {
        if name.trim().is_empty() {
            return Err(bad("has an MCP server without a name".to_owned()));
        }
        if it.r#type.as_deref() == Some("sse") && it.enabled && !it.disabled {
            return Err(bad(format!(
                "the MCP server `{name}` has the type `sse`, which is not supported; use its address for streamable HTTP (`http`), \
                 or set `disabled` to true"
            )));
        }
        let transport = match (it.command, it.url) {
            (Some(command), _) => ServerTransport::Command { command, args: it.args, env: it.env, cwd: it.cwd },
            (None, Some(url)) => ServerTransport::Http { url, headers: it.headers },
            (None, None) => return Err(bad(format!("the MCP server `{name}` needs a `command` or a `url`"))),
        };
        Ok(ServerSettings { enabled: it.enabled && !it.disabled, ..ServerSettings::new(name, transport) })
    };
    file.mcp_servers.0.into_iter().map(one).collect()
}

/// The first server that has a tool is the first of the file, so the order counts. Of two with one name a person could be shown
/// the other one.
impl<'de> Deserialize<'de> for OrderedServers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = OrderedServers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("servers by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedServers, A::Error> {
                let mut all: Vec<(String, McpJsonServer)> = Vec::new();
                while let Some(entry) = map.next_entry::<String, McpJsonServer>()? {
                    if all.iter().any(|(name, _)| *name == entry.0) {
                        return Err(serde::de::Error::custom("a name that stands there twice"));
                    }
                    all.push(entry);
                }
                Ok(OrderedServers(all))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_other_clients_is_read_in_order() {
        let text = r#"{ "mcpServers": {
            "web": { "type": "http", "url": "https://h/mcp", "headers": { "Authorization": "Bearer ${KEY}" } },
            "files": { "command": "npx", "args": ["-y", "x"], "env": { "A": "b" }, "autoApprove": [] },
            "off": { "command": "x", "disabled": true }
        }, "other": 1 }"#;
        let servers = parse(text, Path::new(FILE)).unwrap();
        let headers = [("Authorization".to_owned(), "Bearer ${KEY}".to_owned())].into();
        let web = ServerSettings::new("web", ServerTransport::Http { url: "https://h/mcp".to_owned(), headers });
        let (args, env) = (vec!["-y".to_owned(), "x".to_owned()], [("A".to_owned(), "b".to_owned())].into());
        let files = ServerSettings::new("files", ServerTransport::Command { command: "npx".to_owned(), args, env, cwd: None });
        let off = ServerSettings { enabled: false, ..ServerSettings::new("off", ServerTransport::command("x", [""; 0])) };
        assert_eq!(servers, [web, files, off]);
        assert_eq!(parse("{}", Path::new(FILE)).unwrap(), []);
        assert_eq!(parse(&text.replace("mcpServers", "servers"), Path::new(FILE)).unwrap().len(), 3);
        assert!(parse(&text.replace("files", " "), Path::new(FILE)).is_err());
    }

    #[test]
    fn what_a_person_would_be_shown_otherwise_is_refused() {
        let server = r#"{ "command": "x" }"#;
        for text in [
            format!(r#"{{ "mcpServers": {{ "a": {server}, "a": {server} }} }}"#),
            format!(r#"{{ "mcpServers": {{ "a": {server} }}, "mcpServers": {{}} }}"#),
            format!(r#"{{ "mcpServers": {{ "a": {server} }}, "x": 1e999 }}"#),
            format!(r#"{{ "mcpServers": {{ "a": {server} }}, "x": "\ud800" }}"#),
            format!(r#"{{ "mcpServers": {{ "a": {server} }}, "x": {}{} }}"#, "[".repeat(200), "]".repeat(200)),
        ] {
            assert!(parse(&text, Path::new(FILE)).is_err(), "{text}");
        }
        let off = parse(r#"{ "mcpServers": { "a": { "command": "x", "enabled": false } } }"#, Path::new(FILE)).unwrap();
        assert!(!off[0].enabled);
    }

    #[test]
    fn a_bad_file_is_an_error_with_its_place_and_without_its_values() {
        let message = |text: &str| parse(text, Path::new(FILE)).unwrap_err().to_string();
        let wrong = message("{ \"mcpServers\": {\n \"a\": { \"env\": \"sk-secret\" } } }");
        assert!(wrong.contains(".mcp.json line 2, column ") && !wrong.contains("sk-secret"), "{wrong}");
        assert!(message("{").contains("this is not JSON"));
        assert!(message(r#"{"mcpServers":{"a":{}}}"#).contains("the MCP server `a` needs a `command` or a `url`"));
        let old = message(r#"{"mcpServers":{"a":{"type":"sse","url":"https://h/sse"}}}"#);
        assert!(old.contains("`a` has the type `sse`, which is not supported"), "{old}");
        let off = r#"{"mcpServers":{"a":{"type":"sse","url":"https://h/sse","disabled":true}}}"#;
        assert_eq!(parse(off, Path::new(FILE)).unwrap().len(), 1);
    }
}
