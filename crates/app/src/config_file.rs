//! Reads `polis.toml`. Its errors name the position and never quote the line: it may contain a key.

mod artifacts;
mod backup;
mod cluster;
mod memory;
mod network;
mod precedence;
mod providers;
mod retention;
mod store;
mod tools;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polis_domain::{Budget, Budgets, ModelSettings, RoleId};
use polis_engine::ForkError;
use polis_providers::{CommandGuard, ModelLine, vendors};
use polis_tools::mcp::ServerSettings;
use polis_tools::{Rule, RuleAction};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toml::Spanned;

use crate::config::FILE;
use crate::error::CliError;
use crate::mcp_servers::{self, McpServerSection};
use crate::out;
use crate::remotes::{Remote, RemoteSection};
use crate::suggest;
use crate::telemetry::TelemetrySection;
use crate::trust::{Trust, is_secret, visible};
use crate::workflow_settings::WorkflowSection;
pub(crate) use artifacts::{ArtifactSettings, ArtifactsSection};
pub(crate) use backup::BackupSection;
pub(crate) use cluster::ClusterSection;
pub(crate) use memory::{EmbeddingsSection, MemorySection};
pub(crate) use network::NetworkSection;
use precedence::combined;
pub(crate) use providers::ProviderSection;
pub(crate) use retention::RetentionSection;
pub(crate) use store::StoreSection;
pub(crate) use tools::{SearchSection, ToolsSection};

/// The contents of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfigFile {
    #[serde(default, deserialize_with = "one_or_many")]
    pub(crate) model: Vec<String>,
    pub(crate) listen: Option<String>,
    pub(crate) workspace: Option<PathBuf>,
    #[serde(default)]
    pub(crate) emulated_tools: Vec<String>,
    pub(crate) prices: Option<PathBuf>,
    /// How models are called, where nothing else is said.
    #[serde(default, deserialize_with = "settings")]
    pub(crate) model_settings: ModelSettings,
    /// What the user says about models, by name.
    #[serde(default)]
    pub(crate) models: BTreeMap<String, ModelLine>,
    #[serde(default)]
    policy: Vec<PolicyEntry>,
    #[serde(default)]
    pub(crate) budget: BudgetSection,
    #[serde(default)]
    pub(crate) providers: BTreeMap<Spanned<String>, ProviderSection>,
    #[serde(default)]
    pub(crate) network: Option<Spanned<NetworkSection>>,
    #[serde(default)]
    pub(crate) tools: ToolsSection,
    #[serde(default)]
    pub(crate) workflow: WorkflowSection,
    #[serde(default)]
    pub(crate) artifacts: ArtifactsSection,
    #[serde(default)]
    pub(crate) backup: BackupSection,
    #[serde(default)]
    pub(crate) retention: RetentionSection,
    #[serde(default)]
    pub(crate) store: StoreSection,
    #[serde(default)]
    pub(crate) cluster: ClusterSection,
    #[serde(default)]
    pub(crate) memory: MemorySection,
    #[serde(default)]
    pub(crate) embeddings: EmbeddingsSection,
    #[serde(default)]
    pub(crate) server: ServerSection,
    #[serde(default)]
    pub(crate) society: BTreeMap<Spanned<String>, SocietySection>,
    #[serde(default)]
    pub(crate) page: PageSection,
    #[serde(default)]
    pub(crate) telemetry: TelemetrySection,
    #[serde(default)]
    mcp: BTreeMap<Spanned<String>, McpServerSection>,
    /// The MCP servers, in the order of the file.
    #[serde(skip)]
    pub(crate) servers: Vec<ServerSettings>,
    #[serde(default)]
    a2a: BTreeMap<Spanned<String>, RemoteSection>,
    /// Remote A2A agents that are members of the society.
    #[serde(skip)]
    pub(crate) remotes: Vec<Remote>,
    #[serde(default)]
    pub(crate) trust: TrustSection,
    /// The whole file, to see what it sets.
    #[serde(skip)]
    table: toml::Table,
}

/// `[trust]`: what the user allows the files of folders. It counts in the user's own configuration only.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustSection {
    /// Secret variables that trusted files of folders may name.
    #[serde(default)]
    pub(crate) variables: Vec<String>,
}

/// `[page]`: options of the page.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageSection {
    /// Whether documents of models may run scripts, in a frame that reaches nothing.
    #[serde(default)]
    pub(crate) live_html: bool,
}

/// One `[society.NAME]`: settings that differ from the rest of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SocietySection {
    #[serde(default, deserialize_with = "one_or_many")]
    pub(crate) model: Vec<String>,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) budget: Option<BudgetSection>,
    /// The prefix of the variables with its keys.
    pub(crate) keys: Option<String>,
}

/// `[server]`: who may ask over HTTP beside this machine.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerSection {
    /// Names that this server has beside its addresses.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    /// Origins of other pages that may call.
    #[serde(default)]
    pub(crate) cors: Vec<String>,
    /// The persons who decide the approvals of everybody.
    #[serde(default)]
    pub(crate) approvers: Vec<String>,
    /// Requests a second with each further token.
    pub(crate) requests_per_second: Option<NonZeroU32>,
    /// How long a client tool call waits for the client.
    pub(crate) client_tool_seconds: Option<NonZeroU32>,
}

/// One `[[policy]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyEntry {
    tool: Option<String>,
    server: Option<String>,
    agent: Option<String>,
    role: Option<String>,
    arguments: Option<String>,
    then: PolicyAction,
    #[serde(default)]
    why: String,
    /// Whether it holds also after outside content was read.
    #[serde(default)]
    tainted: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PolicyAction {
    Allow,
    Ask,
    Deny,
}

/// The budgets in the file.
#[derive(Debug, Clone)]
pub(crate) enum BudgetSection {
    /// `budget = "none"`: nothing is limited.
    None,
    /// `[budget]`: unless it says otherwise, a request has the default budget and nothing else has one.
    Table(Box<BudgetTable>),
}

/// `[budget]` is the society's own; below it stand those of each task, agent and call, and of roles.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BudgetTable {
    tokens: Option<Limit<u64>>,
    usd: Option<Limit<f64>>,
    requests: Option<Limit<u64>>,
    minutes: Option<Limit<f64>>,
    #[serde(default)]
    task: BudgetEntry,
    #[serde(default)]
    agent: BudgetEntry,
    #[serde(default)]
    call: BudgetEntry,
    #[serde(default)]
    roles: BTreeMap<RoleId, BudgetEntry>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetEntry {
    tokens: Option<Limit<u64>>,
    usd: Option<Limit<f64>>,
    requests: Option<Limit<u64>>,
    minutes: Option<Limit<f64>>,
}

/// The most of something, or `none` where it has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a number that is not negative, or \"none\"")]
enum Limit<T> {
    Number(T),
    Word(NoLimit),
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
enum NoLimit {
    #[serde(rename = "none")]
    None,
}

impl BudgetEntry {
    const NO_LIMITS: Self = Self {
        tokens: Some(Limit::Word(NoLimit::None)),
        usd: Some(Limit::Word(NoLimit::None)),
        requests: Some(Limit::Word(NoLimit::None)),
        minutes: Some(Limit::Word(NoLimit::None)),
    };
}

impl ConfigFile {
    /// Reads the file that was named, else the one here, else the one in the data directory, as far as the folder is trusted; and
    /// the user's own, which a folder's cannot weaken.
    pub(crate) fn read(named: Option<&Path>, data: &Path, trust: &Trust) -> Result<Self, CliError> {
        let mut user = match trust.user().map(|user| user.join(FILE)) {
            Some(path) => match std::fs::read_to_string(&path) {
                Ok(text) => {
                    let mut user = parse(&text, &path)?;
                    user.servers.iter_mut().for_each(|server| mcp_servers::set_working_dir(server, &path));
                    if let Some(folder) = path.parent() {
                        user.providers.values_mut().for_each(|provider| provider.set_folder(folder));
                        user.network.iter_mut().for_each(|network| network.get_mut().set_folder(folder));
                    }
                    user
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Self::default(),
                Err(error) => return Err(unreadable(&path, &error)),
            },
            None => Self::default(),
        };
        if let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) {
            let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
            return combined(user, parse(&text, path)?);
        }
        for path in [PathBuf::from(FILE), data.join(FILE)] {
            match admitted_text(&path, trust) {
                Ok(Some(text)) => {
                    let allowed = user.trust.variables.clone();
                    let mut folders = parse(&text, &path)?;
                    folders.withhold(trust, &allowed);
                    return combined(user, folders);
                }
                // What a trusted file forbade stays forbidden while its changed version is not trusted.
                Ok(None) => user = combined(user, Self::forbidding(trust.restrictions())?)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if path == data.join(FILE) => {
                    let message = format!("the data directory {}: {error}; choose another with --data", data.display());
                    return Err(CliError::usage("bad_folder", message));
                }
                Err(error) => return Err(unreadable(&path, &error)),
            }
        }
        Ok(user)
    }

    /// Takes out what a folder's file asks for and is not given: secret variables, and programs that are no longer what was
    /// trusted.
    fn withhold(&mut self, trust: &Trust, allowed: &[String]) {
        if trust.trusts_everything() {
            return;
        }
        let is_withheld = |name: &String| is_secret(name) && !allowed.contains(name);
        self.servers.iter_mut().for_each(|server| mcp_servers::restrict(server, trust, allowed));
        self.remotes.retain(|remote| match remote.token_variable().filter(|name| is_withheld(name)) {
            Some(name) => {
                withheld(&format!("the A2A agent {}", remote.name()), name);
                false
            }
            None => true,
        });
        self.providers.retain(|name, provider| {
            let name = name.get_ref();
            if let Some(variable) = provider.variables(name).into_iter().find(is_withheld) {
                withheld(&format!("[providers.{name}]"), &variable);
                return false;
            }
            if let Some(guard) = provider.key_file().map(|file| key_file_guard(file, trust)) {
                if let Err(reason) = guard() {
                    out::note(&format!("polis: [providers.{}] is left out: {reason}", visible(name)));
                    return false;
                }
                provider.set_guard(guard);
            }
            if let Some(program) = provider.program() {
                provider.set_guard(mcp_servers::program_guard(program, trust));
            }
            provider.network().certificate_files().all(|file| trust.admits_file(file))
        });
        if let Some(network) = &self.network {
            let network = network.get_ref();
            let variable = network.variables().into_iter().find(is_withheld);
            variable.iter().for_each(|variable| withheld("[network]", variable));
            if variable.is_some() || !network.certificate_files().all(|file| trust.admits_file(file)) {
                self.network = None;
            }
        }
        if std::mem::take(&mut self.store).url.is_some() {
            out::note(
                "polis: [store] in a folder's file is not used, because all conversations would be stored there; set it in your own \
                 polis.toml, by --store or by POLIS_STORE (store_withheld)",
            );
        }
        if std::mem::take(&mut self.cluster) != ClusterSection::default() {
            out::note(
                "polis: [cluster] in a folder's file is not used, because other machines would be listened to; set it in your own \
                 polis.toml, by --node-listen or by POLIS_NODE_LISTEN (store_withheld)",
            );
        }
        self.tools.withhold(self.table.get_mut("tools").and_then(toml::Value::as_table_mut), is_withheld);
        if let Some(name) = self.telemetry.variables().into_iter().find(is_withheld) {
            withheld("[telemetry]", &name);
            self.telemetry = TelemetrySection::default();
            self.table.remove("telemetry");
        }
    }

    /// The rules and budgets of a file that was trusted once.
    fn forbidding(restrictions: Value) -> Result<Self, CliError> {
        #[derive(Default, Deserialize)]
        struct Restrictions {
            #[serde(default)]
            policy: Vec<PolicyEntry>,
            #[serde(default)]
            budget: BudgetSection,
        }
        if restrictions.is_null() {
            return Ok(Self::default());
        }
        let bad = |error: serde_json::Error| CliError::new("bad_trust_store", format!("what a folder forbade: {error}"));
        let Restrictions { policy, budget } = serde_json::from_value(restrictions).map_err(bad)?;
        Ok(Self { policy, budget, ..Self::default() })
    }
}

/// Reports what a folder's file is not given.
pub(crate) fn withheld(who: &str, variable: &str) {
    let (who, variable) = (visible(who), visible(variable));
    out::note(&format!(
        "polis: {who} needs the variable {variable}, which is withheld from a folder's file; list it in [trust] variables of your own \
         polis.toml if it should have it (variable_withheld)"
    ));
}

/// Refuses a key file of a folder's file that is not what was trusted, or that leads out of the folder: what a person reads
/// elsewhere is not the folder's to send.
fn key_file_guard(file: &Path, trust: &Trust) -> CommandGuard {
    let (file, trust) = (file.to_owned(), trust.clone());
    Arc::new(move || match trust.is_inside(&file) && trust.admits_file(&file) {
        true => Ok(()),
        false => Err(format!(
            "its key file {} leads out of this folder or is not trusted as it is now; set it in your own polis.toml, or run polis trust",
            visible(&file.to_string_lossy())
        )),
    })
}

/// The text of a file of settings: none if it is there and not trusted.
pub(crate) fn admitted_text(path: &Path, trust: &Trust) -> io::Result<Option<String>> {
    let text = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))?;
        Ok(Some(text.to_owned()))
    };
    match trust.is_inside(path) {
        true if trust.governs(path) => trust.trusted_bytes(path).map_or(Ok(None), text),
        true => trust.read(path),
        false => std::fs::read(path).and_then(|bytes| text(&bytes)),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> CliError {
    CliError::usage("bad_config", format!("the configuration {} cannot be read: {error}", path.display()))
}

pub(crate) fn parse(text: &str, path: &Path) -> Result<ConfigFile, CliError> {
    let bad = |at: usize, what: String| {
        let before = &text[..at.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let hint = suggest::about_key(&what);
        CliError::usage("bad_config", format!("{} line {line}, column {column}: {what}{hint}", path.display()))
    };
    let mut file: ConfigFile =
        toml::from_str(text).map_err(|error| bad(error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
    for (name, provider) in std::mem::take(&mut file.providers) {
        let (span, written) = (name.span(), name.into_inner());
        provider.check(&written).map_err(|what| bad(span.start, what))?;
        let name = vendors::find(&written).map_or(written.clone(), |vendor| vendor.name.to_owned());
        if file.providers.insert(Spanned::new(span.clone(), name), provider).is_some() {
            return Err(bad(span.start, format!("the provider `{written}` has another section under its other name")));
        }
    }
    if let Some(network) = &file.network {
        let what = network.get_ref().check();
        what.map_err(|what| bad(network.span().start, format!("in [network] {what}")))?;
    }
    for name in file.society.keys() {
        if !polis_engine::is_society_name(name.get_ref()) {
            return Err(bad(name.span().start, ForkError::BadName(name.get_ref().as_str().into()).to_string()));
        }
    }
    file.table = toml::from_str(text).unwrap_or_default();
    let mut servers: Vec<_> = std::mem::take(&mut file.mcp).into_iter().collect();
    servers.sort_by_key(|(name, _)| name.span().start);
    for (name, server) in servers {
        let (at, name) = (name.span().start, name.into_inner());
        let settings = server.settings(&name).map_err(|what| bad(at, format!("the MCP server `{name}` {what}")))?;
        file.servers.push(settings);
    }
    for (name, remote) in std::mem::take(&mut file.a2a) {
        let (at, name) = (name.span().start, name.into_inner());
        let remote = remote.into_remote(&name).map_err(|wrong| {
            let error = bad(at, format!("the A2A agent `{name}` {}", wrong.what));
            CliError { code: wrong.code.into(), ..error }
        })?;
        file.remotes.extend(remote);
    }
    Ok(file)
}

impl ConfigFile {
    /// Which calls may be made.
    pub(crate) fn rules(&mut self) -> Vec<Rule> {
        let rule = |PolicyEntry { tool, server, agent, role, arguments, then, why, tainted }| {
            let then = match then {
                PolicyAction::Allow => RuleAction::Allow,
                PolicyAction::Ask => RuleAction::Ask,
                PolicyAction::Deny => RuleAction::Deny,
            };
            Rule { tool, server, agent, role, arguments, then, why, tainted }
        };
        std::mem::take(&mut self.policy).into_iter().map(rule).collect()
    }
}

impl TryFrom<BudgetSection> for Budgets {
    type Error = CliError;

    fn try_from(section: BudgetSection) -> Result<Self, CliError> {
        let BudgetSection::Table(table) = section else { return Ok(Self::default()) };
        let BudgetTable { tokens, usd, requests, minutes, task, agent, call, roles } = *table;
        let open = Budget::default();
        let roles = roles.into_iter().map(|(role, budget)| Ok((role, budget.over(open)?)));
        Ok(Self {
            society: BudgetEntry { tokens, usd, requests, minutes }.over(open)?,
            task: task.over(Self::recommended().task)?,
            agent: agent.over(open)?,
            call: call.over(open)?,
            roles: roles.collect::<Result<_, CliError>>()?,
        })
    }
}

impl BudgetEntry {
    /// The budget that it sets, with defaults for the rest.
    fn over(self, usual: Budget) -> Result<Budget, CliError> {
        let whole = |number: f64, unit: f64| {
            if number.is_finite() && (0.0..=1e9).contains(&number) {
                return Ok((number * unit).round() as u64);
            }
            let message = format!("a budget of {number} is not possible; write a number from 0 to 1,000,000,000");
            Err(CliError::usage("bad_config", message))
        };
        Ok(Budget {
            tokens: most(self.tokens, usual.tokens, Ok)?,
            cost_nanos: most(self.usd, usual.cost_nanos, |usd| whole(usd, 1e9))?,
            requests: most(self.requests, usual.requests, Ok)?,
            time_ms: most(self.minutes, usual.time_ms, |minutes| whole(minutes, 60_000.0))?,
        })
    }
}

fn most<T>(
    setting: Option<Limit<T>>,
    usual: Option<u64>,
    whole: impl Fn(T) -> Result<u64, CliError>,
) -> Result<Option<u64>, CliError> {
    match setting {
        None => Ok(usual),
        Some(Limit::Word(NoLimit::None)) => Ok(None),
        Some(Limit::Number(number)) => whole(number).map(Some),
    }
}

impl Default for BudgetSection {
    fn default() -> Self {
        Self::Table(Box::default())
    }
}

impl<'de> Deserialize<'de> for BudgetSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NoneOrTable;

        impl<'de> Visitor<'de> for NoneOrTable {
            type Value = BudgetSection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of limits, or \"none\"")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<BudgetSection, E> {
                if word == "none" { Ok(BudgetSection::None) } else { Err(E::invalid_value(Unexpected::Str(word), &self)) }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<BudgetSection, A::Error> {
                BudgetTable::deserialize(MapAccessDeserializer::new(map)).map(|table| BudgetSection::Table(Box::new(table)))
            }
        }

        deserializer.deserialize_any(NoneOrTable)
    }
}

/// Settings of model calls, checked.
fn settings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ModelSettings, D::Error> {
    let settings = ModelSettings::deserialize(deserializer)?;
    settings.check().map_err(serde::de::Error::custom)?;
    Ok(settings)
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
        let message = error("model = \"offline\"\n\n[providers.openai]\n  api_key = \"sk-secret\"\n");
        assert!(message.contains("polis.toml line 4, column 3: unknown field `api_key`"), "{message}");
        assert!(!message.contains("sk-secret"), "{message}");
        assert!(error("modle = 1\n").contains("line 1, column 1: unknown field `modle`"));
        assert!(error("a = \n").contains("line 1, column"));
        let message = error("[providers.opnai]\nbase_url = \"http://127.0.0.1\"\n");
        assert!(message.contains("line 1, column 12: unknown provider `opnai`, expected one of openai"), "{message}");
    }

    #[test]
    fn mcp_servers_are_read_in_the_order_of_the_file() {
        let text = "[mcp.time]\ncommand = \"uvx\"\nargs = [\"mcp-server-time\"]\ntrusted = true\ntimeout_seconds = 1.5\nstart_wait_seconds = 0\ntools.now.effect = \"read\"\n[mcp.a]\nurl = \"https://h/mcp\"\nheaders = { Authorization = \"Bearer ${KEY}\" }\nenabled = false\n";
        let servers = parse(text, Path::new("x")).unwrap().servers;
        let names: Vec<_> = servers.iter().map(|server| (&*server.name, server.enabled, server.trusted)).collect();
        assert_eq!(names, [("time", true, true), ("a", false, false)]);
        assert_eq!(servers[0].timeout, std::time::Duration::from_millis(1_500));
        assert_eq!(servers[0].start_wait, std::time::Duration::ZERO);
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
            ("[mcp.x]\ncommand = \"a\"\nstart_wait_seconds = -1\n", "`start_wait_seconds`"),
            ("[mcp.x]\ncommand = \"a\"\ntools.y.effect = \"none\"\n", "line 3, column 18: unknown variant `none`"),
            ("[mcp.x]\ncomand = \"a\"\n", "line 2, column 1: unknown field `comand`"),
        ] {
            assert!(error(text).contains(want), "{}", error(text));
        }
    }

    #[test]
    fn models_and_budgets_are_read() {
        let text = "model = [\"a/x\", \"b/y\"]\n[budget]\nusd = 1.5\n[budget.task]\ntokens = 9\nminutes = 0.5\n[budget.roles.writer]\nrequests = 3\n[providers.groq]\nrequests_per_minute = 30\n";
        let file = parse(text, Path::new("x")).unwrap();
        assert_eq!(file.model, ["a/x", "b/y"]);
        let rates: Vec<_> = file.providers.values().map(ProviderSection::rate).collect();
        assert_eq!(rates, [polis_providers::Rate { requests_per_minute: Some(30), tokens_per_minute: None }]);
        let budgets = Budgets::try_from(file.budget).unwrap();
        assert_eq!(budgets.society, Budget { cost_nanos: Some(1_500_000_000), ..Budget::default() });
        assert_eq!(budgets.task, Budget { tokens: Some(9), time_ms: Some(30_000), ..Budgets::recommended().task });
        assert_eq!(budgets.roles[&"writer".into()].requests, Some(3));
        assert_eq!(parse("model = \"a/x\"\n", Path::new("x")).unwrap().model, ["a/x"]);
        assert!(error("model = 3\n").contains("a model is vendor/name, or a list of such names"));
        assert!(error("[budget]\nmoney = 3\n").contains("unknown field `money`"));
        let bad = parse("[budget.call]\nusd = -1.0\n", Path::new("x")).unwrap();
        assert!(Budgets::try_from(bad.budget).unwrap_err().to_string().contains("a budget of -1 is not possible"));
    }

    #[test]
    fn a_request_has_its_usual_budget_unless_the_file_lifts_it() {
        let budgets = |text: &str| Budgets::try_from(parse(text, Path::new("x")).unwrap().budget).unwrap();
        assert_eq!(budgets("model = \"a/x\"\n"), Budgets::recommended());
        assert_eq!(budgets("budget = \"none\"\n"), Budgets::default());
        let lifted = budgets("[budget.task]\ntokens = \"none\"\nusd = 20\n").task;
        let usual = Budgets::recommended().task;
        assert_eq!(lifted, Budget { tokens: None, cost_nanos: Some(20_000_000_000), ..usual });
        assert!(error("budget = \"much\"\n").contains("a table of limits, or \"none\""));
        assert!(error("[budget.task]\ntokens = \"much\"\n").contains("a number that is not negative, or \"none\""));
    }
}
