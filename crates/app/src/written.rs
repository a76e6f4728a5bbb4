//! What `polis.toml` says. Its errors name the place and never quote the line: somebody may have written a key there.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use polis_domain::{Budget, Budgets, RoleId};
use polis_engine::NotForked;
use polis_providers::Rate;
use polis_providers::vendors::{VENDORS, Vendor};
use polis_store_local::ArtifactLimits;
use polis_tools::mcp::ServerSettings;
use polis_tools::{Rule, Then};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::config::FILE;
use crate::planning::WrittenWorkflow;
use crate::remotes::{Remote, WrittenRemote};
use crate::servers::WrittenServer;
use crate::telemetry::WrittenTelemetry;
use crate::trouble::Trouble;

/// What the file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    #[serde(default, deserialize_with = "one_or_many")]
    pub(crate) model: Vec<String>,
    pub(crate) listen: Option<String>,
    pub(crate) workspace: Option<PathBuf>,
    #[serde(default)]
    pub(crate) emulated_tools: Vec<String>,
    pub(crate) prices: Option<PathBuf>,
    #[serde(default)]
    policy: Vec<WrittenRule>,
    #[serde(default)]
    pub(crate) budget: WrittenBudgets,
    #[serde(default)]
    pub(crate) providers: BTreeMap<Spanned<String>, Provider>,
    #[serde(default)]
    pub(crate) tools: Tools,
    #[serde(default)]
    pub(crate) workflow: WrittenWorkflow,
    #[serde(default)]
    pub(crate) artifacts: WrittenArtifacts,
    #[serde(default)]
    pub(crate) server: WrittenDoor,
    #[serde(default)]
    pub(crate) society: BTreeMap<Spanned<String>, WrittenSociety>,
    #[serde(default)]
    pub(crate) page: WrittenPage,
    #[serde(default)]
    pub(crate) telemetry: WrittenTelemetry,
    #[serde(default)]
    mcp: BTreeMap<Spanned<String>, WrittenServer>,
    /// The MCP servers, in the order of the file.
    #[serde(skip)]
    pub(crate) servers: Vec<ServerSettings>,
    #[serde(default)]
    a2a: BTreeMap<Spanned<String>, WrittenRemote>,
    /// The agents of others that are members here.
    #[serde(skip)]
    pub(crate) remotes: Vec<Remote>,
}

/// What the page may do.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenPage {
    /// Whether documents of models may run scripts, in a frame that reaches nothing.
    #[serde(default)]
    pub(crate) live_html: bool,
}

/// One `[society.NAME]`: what is otherwise in it than in the rest of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenSociety {
    #[serde(default, deserialize_with = "one_or_many")]
    pub(crate) model: Vec<String>,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) budget: Option<WrittenBudgets>,
    /// What the names of the variables with its keys begin with.
    pub(crate) keys: Option<String>,
}

/// Which tools that touch the machine are offered, and what they may use.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tools {
    #[serde(default)]
    pub(crate) commands: bool,
    /// Whether commands may ask for the network.
    #[serde(default)]
    pub(crate) network: bool,
    /// Folders that commands may read beside those of the system.
    #[serde(default)]
    pub(crate) readable: Vec<PathBuf>,
    /// Variables that commands are told.
    #[serde(default)]
    pub(crate) environment: Vec<String>,
    pub(crate) seconds: Option<NonZeroU32>,
    pub(crate) memory_mb: Option<NonZeroU32>,
    pub(crate) file_mb: Option<NonZeroU32>,
    pub(crate) processes: Option<NonZeroU32>,
    #[serde(default)]
    pub(crate) fetch: bool,
    #[serde(default)]
    pub(crate) fetch_allow: Vec<String>,
}

/// `[server]`: who may ask over HTTP beside this machine.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenDoor {
    /// Names that this server has beside its addresses.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    /// Pages of others that may ask.
    #[serde(default)]
    pub(crate) cors: Vec<String>,
    /// Requests a second with each further token.
    pub(crate) requests_per_second: Option<NonZeroU32>,
    /// How long a call of a tool of whoever asks waits for them.
    pub(crate) client_tool_seconds: Option<NonZeroU32>,
}

/// How much is kept outside the log, and how long what nothing names is spared.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenArtifacts {
    max_mb: Option<NonZeroU32>,
    max_total_mb: Option<NonZeroU32>,
    max_count: Option<NonZeroU32>,
    grace_hours: Option<u32>,
}

/// The same, meant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) limits: ArtifactLimits,
    pub(crate) grace: Duration,
}

impl From<WrittenArtifacts> for Kept {
    fn from(written: WrittenArtifacts) -> Self {
        let default = ArtifactLimits::default();
        let bytes = |megabytes: Option<NonZeroU32>, default| megabytes.map_or(default, |n| u64::from(n.get()) << 20);
        let limits = ArtifactLimits {
            max_bytes: bytes(written.max_mb, default.max_bytes),
            max_total_bytes: bytes(written.max_total_mb, default.max_total_bytes),
            max_count: written.max_count.map_or(default.max_count, |count| count.get().into()),
        };
        Self { limits, grace: Duration::from_secs(u64::from(written.grace_hours.unwrap_or(24)) * 3_600) }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    pub(crate) base_url: Option<String>,
    requests_per_minute: Option<u32>,
    tokens_per_minute: Option<u64>,
}

/// One `[[policy]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    tool: Option<String>,
    server: Option<String>,
    agent: Option<String>,
    role: Option<String>,
    arguments: Option<String>,
    then: WrittenThen,
    #[serde(default)]
    why: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenThen {
    Allow,
    Ask,
    Deny,
}

/// `[budget]` is the society's own; below it stand those of each task, agent and call, and of roles.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenBudgets {
    tokens: Option<u64>,
    usd: Option<f64>,
    requests: Option<u64>,
    minutes: Option<f64>,
    #[serde(default)]
    task: WrittenBudget,
    #[serde(default)]
    agent: WrittenBudget,
    #[serde(default)]
    call: WrittenBudget,
    #[serde(default)]
    roles: BTreeMap<RoleId, WrittenBudget>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBudget {
    tokens: Option<u64>,
    usd: Option<f64>,
    requests: Option<u64>,
    minutes: Option<f64>,
}

impl Written {
    /// Reads the file that was named, else the one here, else the one in the data directory.
    pub(crate) fn read(named: Option<&Path>, data: &Path) -> Result<Self, Trouble> {
        let in_data = data.join(FILE);
        let candidates = match named.filter(|path| !path.as_os_str().is_empty()) {
            Some(path) => vec![path],
            None => vec![Path::new(FILE), &in_data],
        };
        for path in &candidates {
            match std::fs::read_to_string(path) {
                Ok(text) => return parse(&text, path),
                Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => {}
                Err(error) if *path == in_data => {
                    let message = format!("the data directory {}: {error}; choose another with --data", data.display());
                    return Err(Trouble::usage("bad_folder", message));
                }
                Err(error) => {
                    let message = format!("the configuration {} cannot be read: {error}", path.display());
                    return Err(Trouble::usage("bad_config", message));
                }
            }
        }
        Ok(Self::default())
    }
}

fn parse(text: &str, path: &Path) -> Result<Written, Trouble> {
    let bad = |at: usize, what: String| {
        let before = &text[..at.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Trouble::usage("bad_config", format!("{} line {line}, column {column}: {what}", path.display()))
    };
    let mut written: Written =
        toml::from_str(text).map_err(|error| bad(error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
    for name in written.providers.keys() {
        if address_variable(name.get_ref()).is_none() {
            let known: Vec<_> = VENDORS.iter().map(|vendor| vendor.name).collect();
            let what = format!("unknown provider `{}`, expected one of {}", name.get_ref(), known.join(", "));
            return Err(bad(name.span().start, what));
        }
    }
    for name in written.society.keys() {
        if !polis_engine::is_society_name(name.get_ref()) {
            return Err(bad(name.span().start, NotForked::BadName(name.get_ref().as_str().into()).to_string()));
        }
    }
    let mut servers: Vec<_> = std::mem::take(&mut written.mcp).into_iter().collect();
    servers.sort_by_key(|(name, _)| name.span().start);
    for (name, server) in servers {
        let (at, name) = (name.span().start, name.into_inner());
        let settings = server.settings(&name).map_err(|what| bad(at, format!("the MCP server `{name}` {what}")))?;
        written.servers.push(settings);
    }
    for (name, remote) in std::mem::take(&mut written.a2a) {
        let (at, name) = (name.span().start, name.into_inner());
        let remote = remote.meant(&name).map_err(|what| bad(at, format!("the A2A agent `{name}` {what}")))?;
        written.remotes.extend(remote);
    }
    Ok(written)
}

/// The variable that sets a vendor's address.
pub(crate) fn address_variable(name: &str) -> Option<String> {
    let vendor = VENDORS.iter().find(|vendor| vendor.name == name || vendor.aliases.contains(&name));
    vendor.map(Vendor::base_url_variable)
}

impl Written {
    /// Which calls may be made.
    pub(crate) fn rules(&mut self) -> Vec<Rule> {
        let rule = |WrittenRule { tool, server, agent, role, arguments, then, why }| {
            let then = match then {
                WrittenThen::Allow => Then::Allow,
                WrittenThen::Ask => Then::Ask,
                WrittenThen::Deny => Then::Deny,
            };
            Rule { tool, server, agent, role, arguments, then, why }
        };
        std::mem::take(&mut self.policy).into_iter().map(rule).collect()
    }
}

impl Provider {
    /// How fast it may be asked, if the file says so.
    pub(crate) fn rate(&self) -> Option<Rate> {
        let rate = Rate { requests_per_minute: self.requests_per_minute, tokens_per_minute: self.tokens_per_minute };
        Some(rate).filter(|rate| *rate != Rate::default())
    }
}

impl TryFrom<WrittenBudgets> for Budgets {
    type Error = Trouble;

    fn try_from(written: WrittenBudgets) -> Result<Self, Trouble> {
        let WrittenBudgets { tokens, usd, requests, minutes, task, agent, call, roles } = written;
        let roles = roles.into_iter().map(|(role, budget)| Ok((role, budget.try_into()?)));
        Ok(Self {
            society: WrittenBudget { tokens, usd, requests, minutes }.try_into()?,
            task: task.try_into()?,
            agent: agent.try_into()?,
            call: call.try_into()?,
            roles: roles.collect::<Result<_, Trouble>>()?,
        })
    }
}

impl TryFrom<WrittenBudget> for Budget {
    type Error = Trouble;

    fn try_from(written: WrittenBudget) -> Result<Self, Trouble> {
        let whole = |number: Option<f64>, unit: f64| match number {
            Some(number) if !(number.is_finite() && (0.0..=1e9).contains(&number)) => {
                let message = format!("a budget of {number} cannot be kept; write a number from 0 to 1,000,000,000");
                Err(Trouble::usage("bad_config", message))
            }
            number => Ok(number.map(|number| (number * unit).round() as u64)),
        };
        let (cost_nanos, time_ms) = (whole(written.usd, 1e9)?, whole(written.minutes, 60_000.0)?);
        Ok(Self { tokens: written.tokens, cost_nanos, requests: written.requests, time_ms })
    }
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a model is vendor/name, or a list of such names")]
    enum Names {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Names::deserialize(deserializer)? {
        Names::One(name) => vec![name],
        Names::Many(names) => names,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text, Path::new("polis.toml")).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_is_an_error_with_its_place_and_without_its_line() {
        let said = error("model = \"offline\"\n\n[providers.openai]\n  api_key = \"sk-secret\"\n");
        assert!(said.contains("polis.toml line 4, column 3: unknown field `api_key`"), "{said}");
        assert!(!said.contains("sk-secret"), "{said}");
        assert!(error("modle = 1\n").contains("line 1, column 1: unknown field `modle`"));
        assert!(error("a = \n").contains("line 1, column"));
        let said = error("[providers.opnai]\nbase_url = \"http://127.0.0.1\"\n");
        assert!(said.contains("line 1, column 12: unknown provider `opnai`, expected one of openai"), "{said}");
    }

    #[test]
    fn an_address_of_a_vendor_stands_in_for_its_variable() {
        let written = parse("[providers.qwen]\nbase_url = \"http://h/v1\"\n", Path::new("x")).unwrap();
        let named: Vec<_> = written.providers.keys().map(|name| address_variable(name.get_ref())).collect();
        assert_eq!(named, [Some("DASHSCOPE_BASE_URL".to_owned())]);
    }

    #[test]
    fn mcp_servers_are_read_in_the_order_of_the_file() {
        let text = "[mcp.time]\ncommand = \"uvx\"\nargs = [\"mcp-server-time\"]\ntrusted = true\ntimeout_seconds = 1.5\ntools.now.effect = \"read\"\n[mcp.a]\nurl = \"https://h/mcp\"\nheaders = { Authorization = \"Bearer ${KEY}\" }\nenabled = false\n";
        let servers = parse(text, Path::new("x")).unwrap().servers;
        let names: Vec<_> = servers.iter().map(|server| (&*server.name, server.enabled, server.trusted)).collect();
        assert_eq!(names, [("time", true, true), ("a", false, false)]);
        assert_eq!(servers[0].timeout, std::time::Duration::from_millis(1_500));
        assert_eq!(servers[0].effects["now"], polis_domain::EffectClass::Read);
        for (text, want) in [
            ("\n[mcp.x]\nargs = []\n", "line 2, column 6: the MCP server `x` needs a `command` or a `url`"),
            ("[mcp.\"\"]\ncommand = \"a\"\n", "needs a name"),
            ("[mcp.x]\ncommand = \"a\"\nurl = \"b\"\n", "has both a `command` and a `url`"),
            ("[mcp.x]\ncommand = \"a\"\nheaders.A = \"b\"\n", "cannot have `headers`"),
            ("[mcp.x]\ncommand = \"a\"\noauth = {}\n", "cannot have `oauth`"),
            ("[mcp.x]\nurl = \"a\"\noauth.client_secret = \"${S}\"\n", "a `client_secret` without a `client_id`"),
            ("[mcp.x]\nurl = \"a\"\ncwd = \"b\"\n", "cannot have `args`, `env` or `cwd`"),
            ("[mcp.x]\ncommand = \"a\"\ntimeout_seconds = 0\n", "`timeout_seconds`"),
            ("[mcp.x]\ncommand = \"a\"\ntools.y.effect = \"none\"\n", "line 3, column 18: unknown variant `none`"),
            ("[mcp.x]\ncomand = \"a\"\n", "line 2, column 1: unknown field `comand`"),
        ] {
            assert!(error(text).contains(want), "{}", error(text));
        }
    }

    #[test]
    fn models_and_budgets_are_read() {
        let text = "model = [\"a/x\", \"b/y\"]\n[budget]\nusd = 1.5\n[budget.task]\ntokens = 9\nminutes = 0.5\n[budget.roles.writer]\nrequests = 3\n[providers.groq]\nrequests_per_minute = 30\n";
        let written = parse(text, Path::new("x")).unwrap();
        assert_eq!(written.model, ["a/x", "b/y"]);
        let rates: Vec<_> = written.providers.values().map(Provider::rate).collect();
        assert_eq!(rates, [Some(Rate { requests_per_minute: Some(30), tokens_per_minute: None })]);
        let budgets = Budgets::try_from(written.budget).unwrap();
        assert_eq!(budgets.society, Budget { cost_nanos: Some(1_500_000_000), ..Budget::default() });
        assert_eq!(budgets.task, Budget { tokens: Some(9), time_ms: Some(30_000), ..Budget::default() });
        assert_eq!(budgets.roles[&"writer".into()].requests, Some(3));
        assert_eq!(parse("model = \"a/x\"\n", Path::new("x")).unwrap().model, ["a/x"]);
        assert!(error("model = 3\n").contains("a model is vendor/name, or a list of such names"));
        assert!(error("[budget]\nmoney = 3\n").contains("unknown field `money`"));
        let bad = parse("[budget.call]\nusd = -1.0\n", Path::new("x")).unwrap();
        assert!(Budgets::try_from(bad.budget).unwrap_err().to_string().contains("a budget of -1 cannot be kept"));
    }

    #[test]
    fn tools_that_touch_the_machine_are_offered_only_where_it_is_written() {
        let tools = parse("model = \"a/x\"\n", Path::new("x")).unwrap().tools;
        assert!(!tools.commands && !tools.network && !tools.fetch);
        let tools =
            parse("[tools]\ncommands = true\nseconds = 9\nfetch_allow = [\"10.0.0.0/8\"]\n", Path::new("x")).unwrap().tools;
        assert_eq!((tools.commands, tools.seconds.map(NonZeroU32::get), tools.fetch_allow.len()), (true, Some(9), 1));
        assert!(error("[tools]\nshell = true\n").contains("unknown field `shell`"));
        assert!(error("[tools]\nseconds = 0\n").contains("line 2, column"));
    }
}
