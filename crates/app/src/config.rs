//! What the program means to do: flags, then `POLIS_*`, then `polis.toml`, then defaults. Keys never come from the file, and a
//! folder's file counts only as far as the folder is trusted.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use polis_agents::workflow::RunSettings;
use polis_api::AskAboutPlans;
use polis_domain::{Budgets, ModelSettings, SocietyId};
use polis_engine::{ForkError, is_society_name};
use polis_http::HttpOptions;
use polis_providers::vendors::VENDORS;
use polis_providers::{ACCOUNT_VARIABLES, ModelLine};
use polis_tools::Rule;
use polis_tools::mcp::ServerSettings;
use toml::Spanned;

use crate::budget::RequestBudget;
use crate::cli::{Cli, Command, RunOptions};
use crate::config_file::{
    ArtifactSettings, BackupSection, ConfigFile, EmbeddingsSection, MemorySection, NetworkSection, ProviderSection,
    RetentionSection, ServerSection, SocietySection, ToolsSection,
};
use crate::error::CliError;
use crate::own_node::NodeSettings;
use crate::postgres_store::StoreAddress;
use crate::remotes::Remote;
use crate::telemetry::TelemetrySection;
use crate::trust::{DATA, Trust};
use crate::{OwnAgents, mcp_servers, out};

/// The variables that name files with the credentials of clouds, which no agent may read.
const CREDENTIAL_FILES: [&str; 3] =
    ["GOOGLE_APPLICATION_CREDENTIALS", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE"];

pub(crate) const FILE: &str = "polis.toml";

/// The default society.
pub(crate) const SOCIETY: &str = "main";

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3000);

/// Everything that was decided about how to run.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) data: PathBuf,
    /// The society of this configuration.
    pub(crate) society: SocietyId,
    /// Whether it was named.
    pub(crate) is_named: bool,
    /// The prefix of the variables with its keys.
    keys: String,
    /// The society that the command line names, and the flags and environment variables for it.
    target: SocietyId,
    flags: SocietySettings,
    /// The `[society.NAME]` sections of `polis.toml`, and the settings for all others.
    sections: BTreeMap<SocietyId, SocietySettings>,
    common: SocietySettings,
    /// A running polis to talk to.
    pub(crate) url: Option<String>,
    /// `vendor/name`, and those to turn to when it fails; none takes the first vendor with a key.
    pub(crate) models: Vec<String>,
    /// Which calls of tools may be made.
    pub(crate) rules: Vec<Rule>,
    /// The budgets for models.
    pub(crate) budgets: Budgets,
    /// The value of `--budget`.
    budget_flag: Option<RequestBudget>,
    /// The endpoints of models that have settings, by name.
    pub(crate) providers: BTreeMap<String, ProviderSection>,
    /// Proxies and certificates for everything that goes out.
    network: NetworkSection,
    /// A table of prices of one's own.
    pub(crate) prices: Option<PathBuf>,
    /// How models are called, where nothing else is said.
    pub(crate) model_settings: ModelSettings,
    /// What the user says about models, by name.
    pub(crate) model_lines: BTreeMap<String, ModelLine>,
    pub(crate) workspace: PathBuf,
    pub(crate) listen: SocketAddr,
    /// Models that have no tools of their own.
    pub(crate) emulated_tools: Vec<String>,
    /// The MCP servers; of two with one name the first counts.
    pub(crate) servers: Vec<ServerSettings>,
    /// The names of those that stand in `.mcp.json` alone.
    pub(crate) foreign_servers: Vec<String>,
    /// Remote A2A agents that are members of the society.
    pub(crate) remotes: Vec<Remote>,
    /// The cassette, if there is one.
    pub(crate) cassette: Option<CassetteMode>,
    /// The files that a later start may read its configuration from.
    pub(crate) files: Vec<PathBuf>,
    /// The files that servers of the settings run.
    pub(crate) scripts: Vec<PathBuf>,
    /// The tools that touch the machine.
    pub(crate) tools: ToolsSection,
    /// How workflows run.
    pub(crate) workflow: RunSettings,
    /// The value of `--plan-approval`.
    pub(crate) plan_approval_flag: Option<AskAboutPlans>,
    /// Flags to repeat in commands that continue the work.
    repeated: String,
    /// Limits of the artifact store.
    pub(crate) artifacts: ArtifactSettings,
    /// Where copies go while a server runs.
    pub(crate) backup: BackupSection,
    /// From which age on events are archived.
    pub(crate) retention: RetentionSection,
    /// Where the log is; none if it is in the data directory.
    pub(crate) store: Option<StoreAddress>,
    /// How the other nodes reach this one, if it is one of several.
    pub(crate) node: Option<NodeSettings>,
    /// The value of `--store` to repeat in commands.
    store_flag: Option<String>,
    /// Whether agents remember and recall.
    pub(crate) memory: MemorySection,
    /// The model that makes vectors of memories.
    pub(crate) embeddings: EmbeddingsSection,
    /// Who may call over HTTP beside this machine.
    pub(crate) http: ServerSection,
    /// Whether the page may show live documents of models.
    pub(crate) live_html: bool,
    /// Where spans and metrics go.
    pub(crate) telemetry: TelemetrySection,
    /// Which files of the folder count.
    pub(crate) trust: Trust,
    /// The agents of the program that runs.
    pub(crate) own: OwnAgents,
}

/// Settings that can differ between societies.
#[derive(Debug, Clone, Default)]
struct SocietySettings {
    models: Vec<String>,
    workspace: Option<PathBuf>,
    budgets: Option<Budgets>,
    keys: Option<String>,
}

/// Whether a cassette is recorded or replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CassetteMode {
    Record(PathBuf),
    Replay(PathBuf),
}

impl Config {
    /// Combines the command line, the environment and the file.
    pub(crate) fn resolve(cli: &Cli) -> Result<Self, CliError> {
        Self::with_trust(cli, Trust::open(cli, &data(cli))?)
    }

    /// The same with a known trust.
    pub(crate) fn with_trust(cli: &Cli, trust: Trust) -> Result<Self, CliError> {
        let data = data(cli);
        let mut file = ConfigFile::read(cli.config.as_deref(), &data, &trust)?;
        let rules = file.rules();
        let (society, is_named) = match cli.society.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
            Some(name) if is_society_name(name) => (SocietyId::from(name), true),
            Some(name) => {
                let bad = ForkError::BadName(name.into());
                return Err(CliError::usage(bad.code(), bad.to_string()));
            }
            None => (SocietyId::from(SOCIETY), false),
        };
        let mut sections = BTreeMap::new();
        for (name, section) in std::mem::take(&mut file.society) {
            let SocietySection { model, workspace, budget, keys } = section;
            let budgets = budget.map(TryInto::try_into).transpose()?;
            sections.insert(name.into_inner().into(), SocietySettings { models: model, workspace, budgets, keys });
        }
        let common = SocietySettings {
            models: std::mem::take(&mut file.model),
            workspace: file.workspace.take(),
            budgets: Some(std::mem::take(&mut file.budget).try_into()?),
            keys: None,
        };
        let with = cli.command.run_options();
        let plan_approval_flag = with.and_then(|with| with.plan_approval).map(AskAboutPlans::from);
        let flag = |pick: fn(&RunOptions) -> Option<String>| with.and_then(pick).filter(|value| !value.trim().is_empty());
        let listen = match &cli.command {
            Command::Serve(serve) => serve.listen.clone().filter(|listen| !listen.trim().is_empty()),
            _ => None,
        };
        let listen = listen.or(file.listen).map_or(Ok(LISTEN), |text| parse_listen(&text))?;
        let path = |pick: fn(&RunOptions) -> &Option<PathBuf>| {
            with.and_then(|with| pick(with).clone()).filter(|path| !path.as_os_str().is_empty())
        };
        let (record, replay) = (path(|with| &with.record), path(|with| &with.replay));
        let read_later = [FILE, mcp_servers::FILE].map(PathBuf::from);
        let files = cli.config.iter().chain(&record).chain(&replay).chain(&file.prices).cloned().chain(read_later);
        let providers: BTreeMap<_, _> =
            std::mem::take(&mut file.providers).into_iter().map(|(name, section)| (name.into_inner(), section)).collect();
        let network = file.network.take().map(Spanned::into_inner).unwrap_or_default();
        let secrets = providers.values().flat_map(ProviderSection::private_files).chain(network.private_files()).cloned();
        let secrets = secrets.chain(CREDENTIAL_FILES.iter().filter_map(std::env::var_os).map(PathBuf::from));
        let (files, scripts) = (files.chain(secrets).collect(), trust.named_files().collect());
        let mut servers = match trust.user() {
            Some(user) => mcp_servers::read_user_file(user)?,
            None => Vec::new(),
        };
        let of_file = file.servers.into_iter().filter(|it| servers.iter().all(|own| own.name != it.name)).collect::<Vec<_>>();
        servers.extend(of_file);
        let mut foreign = mcp_servers::read_mcp_json(&data, &trust, &file.trust.variables)?;
        foreign.retain(|theirs| servers.iter().all(|ours| ours.name != theirs.name));
        let foreign_servers = foreign.iter().filter(|server| server.enabled).map(|server| server.name.clone()).collect();
        servers.extend(foreign);
        let store_flag = cli.store.clone().filter(|url| !url.trim().is_empty());
        let of_file = file.store.url.filter(|url| !url.trim().is_empty());
        if of_file.as_deref().is_some_and(StoreAddress::has_password) {
            let message = "in [store] of polis.toml url has a password; set it in POLIS_STORE_PASSWORD instead";
            return Err(CliError::usage("bad_config", message));
        }
        let password = std::env::var("POLIS_STORE_PASSWORD").ok().filter(|password| !password.is_empty());
        let store = store_flag.as_ref().or(of_file.as_ref());
        let store = store.map(|url| StoreAddress::parse(url, password.as_deref(), file.store.lease)).transpose()?;
        let node = match &cli.command {
            Command::Serve(serve) => NodeSettings::resolve(&serve.node, file.cluster, store.is_some())?,
            _ => None,
        };
        let of_command = |url: &String| std::env::var("POLIS_STORE").ok().as_ref() != Some(url);
        let store_flag = store_flag.filter(of_command);
        if store_flag.as_deref().is_some_and(StoreAddress::has_password) {
            out::note(
                "polis: every user of this machine can read the password in --store; use POLIS_STORE or POLIS_STORE_PASSWORD",
            );
        }
        let base = Self {
            data,
            society: SocietyId::from(SOCIETY),
            is_named,
            keys: String::new(),
            target: society.clone(),
            flags: SocietySettings {
                models: flag(|with| with.model.clone()).map(|models| split_names(&models)).unwrap_or_default(),
                workspace: path(|with| &with.workspace),
                ..SocietySettings::default()
            },
            sections,
            common,
            cassette: record.map(CassetteMode::Record).or(replay.map(CassetteMode::Replay)),
            files,
            scripts,
            url: cli.url.clone().filter(|url| !url.trim().is_empty()),
            models: Vec::new(),
            rules,
            budgets: Budgets::default(),
            budget_flag: with.and_then(|with| with.budget),
            providers,
            network,
            prices: file.prices,
            model_settings: file.model_settings,
            model_lines: file.models,
            workspace: PathBuf::new(),
            listen,
            emulated_tools: file.emulated_tools,
            tools: file.tools,
            workflow: file.workflow.settings(plan_approval_flag),
            plan_approval_flag,
            repeated: with.map(repeated_flags).unwrap_or_default(),
            artifacts: file.artifacts.into(),
            backup: file.backup,
            retention: file.retention,
            store,
            node,
            store_flag,
            own: OwnAgents::default(),
            memory: file.memory,
            embeddings: file.embeddings,
            http: file.server,
            live_html: file.page.live_html,
            telemetry: file.telemetry,
            servers,
            foreign_servers,
            trust,
            remotes: file.remotes,
        };
        Ok(base.of(&society))
    }

    /// The same for another society.
    pub(crate) fn of(&self, society: &SocietyId) -> Self {
        self.with_ancestors(society, &[])
    }

    /// The same for a society with ancestors, the nearest first: settings that it lacks come from them. Flags apply to the
    /// society that the command line names, however often it is opened.
    pub(crate) fn with_ancestors(&self, society: &SocietyId, ancestors: &[SocietyId]) -> Self {
        let mut layers = Vec::new();
        for one in std::iter::once(society).chain(ancestors) {
            layers.extend((*one == self.target).then_some(&self.flags));
            layers.extend(self.sections.get(one));
        }
        layers.push(&self.common);
        let models = layers.iter().map(|layer| &layer.models).find(|models| !models.is_empty());
        let workspace = layers.iter().find_map(|layer| layer.workspace.clone());
        Self {
            society: society.clone(),
            models: models.cloned().unwrap_or_default(),
            workspace: workspace.unwrap_or_else(|| ".".into()),
            budgets: {
                let budgets = layers.iter().find_map(|layer| layer.budgets.clone()).unwrap_or_default();
                let flag = self.budget_flag.filter(|_| *society == self.target);
                flag.map_or(budgets.clone(), |flag| flag.apply(budgets))
            },
            keys: layers.iter().find_map(|layer| layer.keys.clone()).unwrap_or_default(),
            ..self.clone()
        }
    }

    /// Whether this is about another society than the command line means.
    pub(crate) fn is_other_society(&self) -> bool {
        self.society != self.target
    }

    /// The societies that `polis.toml` names.
    pub(crate) fn societies(&self) -> impl Iterator<Item = &SocietyId> {
        self.sections.keys()
    }

    /// An environment variable; one with a key is the society's own.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let named_by =
            |(provider, section): (&String, &ProviderSection)| section.key_variable(provider).is_some_and(|it| it == name);
        // Nobody else's account at a cloud counts for a society with keys of its own.
        let is_key = name.ends_with("_KEY")
            || ACCOUNT_VARIABLES.contains(&name)
            || VENDORS.iter().any(|vendor| vendor.key_variable == name)
            || self.providers.iter().any(named_by);
        let name = if is_key { format!("{}{name}", self.keys) } else { name.to_owned() };
        std::env::var(name).ok().filter(|value| !value.trim().is_empty())
    }

    /// Proxies and certificates: `[network]`, and the environment for what it does not set.
    pub(crate) fn network(&self) -> Result<HttpOptions, CliError> {
        let applied = self.network.apply(HttpOptions::from_env());
        applied.map_err(|what| CliError::usage("bad_config", format!("in [network] of polis.toml {what}")))
    }

    /// The command line that continues the work: on the same data, with the same model and workspace.
    pub(crate) fn command_to_continue(&self, command: &str) -> String {
        self.command_line(&format!("{command}{}", self.repeated))
    }

    /// How to call the program again on the same data.
    pub(crate) fn command_line(&self, command: &str) -> String {
        let named = self.is_named && std::env::var("POLIS_SOCIETY").is_ok_and(|name| name == self.society.as_str());
        let command = match self.is_named && !named {
            true => &format!("--society {} {command}", self.society),
            false => command,
        };
        let command = match self.store_flag.as_ref().filter(|url| !StoreAddress::has_password(url)) {
            Some(url) => &format!("--store {} {command}", shell_quote(url)),
            None => command,
        };
        if self.data == Path::new(DATA) || std::env::var_os("POLIS_DATA").is_some_and(|dir| dir == self.data) {
            return format!("polis {command}");
        }
        format!("polis --data {} {command}", self.data.display())
    }
}

/// The data directory that was named, else the usual one.
pub(crate) fn data(cli: &Cli) -> PathBuf {
    cli.data.clone().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or_else(|| DATA.into())
}

/// The flags to repeat in a command that continues the work. Values from the environment need no flag.
fn repeated_flags(with: &RunOptions) -> String {
    let workspace = with.workspace.as_ref().map(|dir| dir.display().to_string());
    let budget = with.budget.map(|budget| budget.to_string());
    let flags = [
        ("--model", "POLIS_MODEL", &with.model),
        ("--workspace", "POLIS_WORKSPACE", &workspace),
        ("--budget", "POLIS_BUDGET", &budget),
    ];
    let cli = flags.into_iter().filter_map(|(flag, variable, value)| {
        let value = value.as_ref().filter(|value| std::env::var(variable).ok().as_ref() != Some(value))?;
        Some(format!(" {flag} {}", shell_quote(value)))
    });
    cli.collect()
}

/// A word quoted for the shell.
pub(crate) fn shell_quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,@%+=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// One name, or several with commas between.
fn split_names(names: &str) -> Vec<String> {
    names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, CliError> {
    let numeric = match text.trim().strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.trim().to_owned(),
    };
    numeric.parse().map_err(|_| {
        CliError::usage("bad_listen", format!("`{text}` is not an address to listen on; write for example 127.0.0.1:3000"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_to_listen_on_is_read() {
        assert_eq!(parse_listen("127.0.0.1:0").unwrap().port(), 0);
        assert_eq!(parse_listen("localhost:81").unwrap().to_string(), "127.0.0.1:81");
        assert!(parse_listen("3000").is_err());
        assert_eq!(LISTEN.to_string(), "127.0.0.1:3000", "what the documents say");
    }
}
