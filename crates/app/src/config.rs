//! What the program means to do: flags, then `POLIS_*`, then `polis.toml`, then defaults. Keys never come from the file, and a
//! folder's file counts only as far as the folder is trusted.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use polis_agents::workflow::RunSettings;
use polis_api::AskAboutPlans;
use polis_domain::{Budgets, SocietyId};
use polis_engine::{ForkError, is_society_name};
use polis_providers::Rate;
use polis_tools::Rule;
use polis_tools::mcp::ServerSettings;

use crate::budget::RequestBudget;
use crate::cli::{Command, Typed, With};
use crate::remotes::Remote;
use crate::servers;
use crate::telemetry::WrittenTelemetry;
use crate::trouble::Trouble;
use crate::trust::{DATA, Trust};
use crate::written::{self, Kept, Written, WrittenHttp, WrittenSociety, WrittenTools};

pub(crate) const FILE: &str = "polis.toml";

/// The society that is meant where none is named.
pub(crate) const SOCIETY: &str = "main";

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3000);

/// Everything that was decided about how to run.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) data: PathBuf,
    /// The society that is meant.
    pub(crate) society: SocietyId,
    /// Whether it was named.
    pub(crate) is_named: bool,
    /// What the names of the variables with its keys begin with.
    keys: String,
    /// The society that the command line means, and what was typed or set in the environment for it.
    meant: SocietyId,
    typed: Section,
    /// What `polis.toml` says of societies, and of all that it says nothing of.
    sections: BTreeMap<SocietyId, Section>,
    common: Section,
    /// A running polis to talk to.
    pub(crate) url: Option<String>,
    /// `vendor/name`, and those to turn to when it fails; none takes the first vendor with a key.
    pub(crate) models: Vec<String>,
    /// Which calls of tools may be made.
    pub(crate) rules: Vec<Rule>,
    /// What may be spent on models.
    pub(crate) budgets: Budgets,
    /// What was typed after `--budget`.
    typed_budget: Option<RequestBudget>,
    /// How fast vendors may be asked.
    pub(crate) rates: Vec<(String, Rate)>,
    /// A table of prices of one's own.
    pub(crate) prices: Option<PathBuf>,
    pub(crate) workspace: PathBuf,
    pub(crate) listen: SocketAddr,
    /// Models that have no tools of their own.
    pub(crate) emulated_tools: Vec<String>,
    /// The MCP servers; of two with one name the first counts.
    pub(crate) servers: Vec<ServerSettings>,
    /// The names of those that stand in `.mcp.json` alone.
    pub(crate) foreign_servers: Vec<String>,
    /// The agents of others that are members here.
    pub(crate) remotes: Vec<Remote>,
    /// The cassette, if there is one.
    pub(crate) tape: Option<Tape>,
    /// The files that a later start may read its configuration from.
    pub(crate) files: Vec<PathBuf>,
    /// The files that servers of the settings run.
    pub(crate) scripts: Vec<PathBuf>,
    /// The tools that touch the machine.
    pub(crate) tools: WrittenTools,
    /// How workflows run.
    pub(crate) workflow: RunSettings,
    /// What was typed after `--plan-approval`.
    pub(crate) typed_plan_approval: Option<AskAboutPlans>,
    /// What was typed of it that whoever goes on with the work must type again.
    repeated: String,
    /// What is kept outside the log.
    pub(crate) artifacts: Kept,
    /// Who may ask over HTTP beside this machine.
    pub(crate) http: WrittenHttp,
    /// Whether the page may show live documents of models.
    pub(crate) live_html: bool,
    /// Where spans and metrics go.
    pub(crate) telemetry: WrittenTelemetry,
    /// Which files of the folder count.
    pub(crate) trust: Trust,
    /// Addresses of vendors, by the variable that would set them.
    base_urls: BTreeMap<String, String>,
}

/// What may be otherwise from society to society.
#[derive(Debug, Clone, Default)]
struct Section {
    models: Vec<String>,
    workspace: Option<PathBuf>,
    budgets: Option<Budgets>,
    keys: Option<String>,
}

/// What a cassette is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tape {
    Record(PathBuf),
    Replay(PathBuf),
}

impl Config {
    /// Puts together what was typed, the environment and the file.
    pub(crate) fn resolve(typed: &Typed) -> Result<Self, Trouble> {
        Self::with_trust(typed, Trust::open(typed, &data(typed))?)
    }

    /// The same, where it is known what is trusted.
    pub(crate) fn with_trust(typed: &Typed, trust: Trust) -> Result<Self, Trouble> {
        let data = data(typed);
        let mut written = Written::read(typed.config.as_deref(), &data, &trust)?;
        let rules = written.rules();
        let (society, is_named) = match typed.society.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
            Some(name) if is_society_name(name) => (SocietyId::from(name), true),
            Some(name) => {
                let bad = ForkError::BadName(name.into());
                return Err(Trouble::usage(bad.code(), bad.to_string()));
            }
            None => (SocietyId::from(SOCIETY), false),
        };
        let mut sections = BTreeMap::new();
        for (name, said) in std::mem::take(&mut written.society) {
            let WrittenSociety { model, workspace, budget, keys } = said;
            let budgets = budget.map(TryInto::try_into).transpose()?;
            sections.insert(name.into_inner().into(), Section { models: model, workspace, budgets, keys });
        }
        let common = Section {
            models: std::mem::take(&mut written.model),
            workspace: written.workspace.take(),
            budgets: Some(std::mem::take(&mut written.budget).try_into()?),
            keys: None,
        };
        let with = typed.command.with();
        let typed_plan_approval = with.and_then(|with| with.plan_approval).map(AskAboutPlans::from);
        let flag = |pick: fn(&With) -> Option<String>| with.and_then(pick).filter(|value| !value.trim().is_empty());
        let listen = match &typed.command {
            Command::Serve(serve) => serve.listen.clone().filter(|listen| !listen.trim().is_empty()),
            _ => None,
        };
        let listen = listen.or(written.listen).map_or(Ok(LISTEN), |text| parse_listen(&text))?;
        let path = |pick: fn(&With) -> &Option<PathBuf>| {
            with.and_then(|with| pick(with).clone()).filter(|path| !path.as_os_str().is_empty())
        };
        let (record, replay) = (path(|with| &with.record), path(|with| &with.replay));
        let read_later = [FILE, servers::FILE].map(PathBuf::from);
        let files = typed.config.iter().chain(&record).chain(&replay).chain(&written.prices).cloned().chain(read_later);
        let (files, scripts) = (files.collect(), trust.named_files().collect());
        let mut servers = match trust.user() {
            Some(user) => servers::of_user(user)?,
            None => Vec::new(),
        };
        let of_file =
            written.servers.into_iter().filter(|it| servers.iter().all(|own| own.name != it.name)).collect::<Vec<_>>();
        servers.extend(of_file);
        let mut foreign = servers::of_other_clients(&data, &trust, &written.trust.variables)?;
        foreign.retain(|theirs| servers.iter().all(|ours| ours.name != theirs.name));
        let foreign_servers = foreign.iter().filter(|server| server.enabled).map(|server| server.name.clone()).collect();
        servers.extend(foreign);
        let base = Self {
            data,
            society: SocietyId::from(SOCIETY),
            is_named,
            keys: String::new(),
            meant: society.clone(),
            typed: Section {
                models: flag(|with| with.model.clone()).map(|models| listed(&models)).unwrap_or_default(),
                workspace: path(|with| &with.workspace),
                ..Section::default()
            },
            sections,
            common,
            tape: record.map(Tape::Record).or(replay.map(Tape::Replay)),
            files,
            scripts,
            url: typed.url.clone().filter(|url| !url.trim().is_empty()),
            models: Vec::new(),
            rules,
            budgets: Budgets::default(),
            typed_budget: with.and_then(|with| with.budget),
            rates: written.providers.iter().filter_map(|(name, it)| Some((name.get_ref().clone(), it.rate()?))).collect(),
            prices: written.prices,
            workspace: PathBuf::new(),
            listen,
            emulated_tools: written.emulated_tools,
            tools: written.tools,
            workflow: written.workflow.settings(typed_plan_approval),
            typed_plan_approval,
            repeated: with.map(repeated).unwrap_or_default(),
            artifacts: written.artifacts.into(),
            http: written.server,
            live_html: written.page.live_html,
            telemetry: written.telemetry,
            servers,
            foreign_servers,
            trust,
            remotes: written.remotes,
            base_urls: written
                .providers
                .into_iter()
                .filter_map(|(name, it)| Some((written::address_variable(name.get_ref())?, it.base_url?)))
                .collect(),
        };
        Ok(base.of(&society))
    }

    /// The same for another society.
    pub(crate) fn of(&self, society: &SocietyId) -> Self {
        self.with_kin(society, &[])
    }

    /// The same for a society that comes from others, the nearest first: what nothing is said of is as it is for those. What was
    /// typed counts for the society that was meant, however often it is opened.
    pub(crate) fn with_kin(&self, society: &SocietyId, forebears: &[SocietyId]) -> Self {
        let mut layers = Vec::new();
        for one in std::iter::once(society).chain(forebears) {
            layers.extend((*one == self.meant).then_some(&self.typed));
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
                let typed = self.typed_budget.filter(|_| *society == self.meant);
                typed.map_or(budgets.clone(), |typed| typed.apply(budgets))
            },
            keys: layers.iter().find_map(|layer| layer.keys.clone()).unwrap_or_default(),
            ..self.clone()
        }
    }

    /// Whether this is about another society than the command line means.
    pub(crate) fn is_of_another(&self) -> bool {
        self.society != self.meant
    }

    /// The societies that `polis.toml` names.
    pub(crate) fn societies(&self) -> impl Iterator<Item = &SocietyId> {
        self.sections.keys()
    }

    /// The folder with the logins at MCP servers.
    pub(crate) fn logins(&self) -> PathBuf {
        self.data.join("logins")
    }

    /// An environment variable, or what the file says in its place.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let name = if name.ends_with("_KEY") { format!("{}{name}", self.keys) } else { name.to_owned() };
        let name = name.as_str();
        let set = std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        set.or_else(|| self.base_urls.get(name).cloned())
    }

    /// How to call the program again so that it goes on with the work: on the same data, with the same model and workspace.
    pub(crate) fn again_with(&self, command: &str) -> String {
        self.again(&format!("{command}{}", self.repeated))
    }

    /// How to call the program again on the same data.
    pub(crate) fn again(&self, command: &str) -> String {
        let named = self.is_named && std::env::var("POLIS_SOCIETY").is_ok_and(|name| name == self.society.as_str());
        let command = match self.is_named && !named {
            true => &format!("--society {} {command}", self.society),
            false => command,
        };
        if self.data == Path::new(DATA) || std::env::var_os("POLIS_DATA").is_some_and(|dir| dir == self.data) {
            return format!("polis {command}");
        }
        format!("polis --data {} {command}", self.data.display())
    }
}

/// The data directory that was named, else the usual one.
pub(crate) fn data(typed: &Typed) -> PathBuf {
    typed.data.clone().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or_else(|| DATA.into())
}

/// The flags that count for whoever goes on with the work. What the environment says, it says again.
fn repeated(with: &With) -> String {
    let workspace = with.workspace.as_ref().map(|dir| dir.display().to_string());
    let budget = with.budget.map(|budget| budget.to_string());
    let flags = [
        ("--model", "POLIS_MODEL", &with.model),
        ("--workspace", "POLIS_WORKSPACE", &workspace),
        ("--budget", "POLIS_BUDGET", &budget),
    ];
    let typed = flags.into_iter().filter_map(|(flag, variable, value)| {
        let value = value.as_ref().filter(|value| std::env::var(variable).ok().as_ref() != Some(value))?;
        Some(format!(" {flag} {}", in_shell(value)))
    });
    typed.collect()
}

/// A word as a shell takes it.
fn in_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,@%+=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// One name, or several with commas between.
fn listed(names: &str) -> Vec<String> {
    names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn parse_listen(text: &str) -> Result<SocketAddr, Trouble> {
    let numeric = match text.trim().strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.trim().to_owned(),
    };
    numeric.parse().map_err(|_| {
        Trouble::usage("bad_listen", format!("`{text}` is not an address to listen on; write for example 127.0.0.1:3000"))
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
