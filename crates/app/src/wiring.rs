//! Puts a society together: the store, a model, the tools, the agents.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use polis_agents::memory::with_memory_tools;
use polis_agents::role::{RoleParts, Sops};
use polis_agents::society::with_society_tools;
use polis_agents::workflow::{AgentWorkflowEngine, PromptManager, Workflow};
use polis_agents::{Converse, Environment, FileList, INSTRUCTIONS_FILE, PlanTool, ReadSkill, RoleAgent, root_role};
use polis_engine::{Cast, LocalLive, NoModel, Options, Ports, Society, SystemClock};
use polis_ports::{Artifacts, Documents, Embedder, Model, ServerState, ToolServer, Toolbox};
use polis_providers::vendors::{self, Setup};
use polis_providers::{CassetteError, Models, Prices, Recorder, Replayer};
use polis_server::{HostSettings, PageOptions, PolicyRule, PolicyThen, SocietyState, Vendor};
use polis_telemetry::FollowHandle;
use polis_tools::mcp::{JoinedTools, McpOptions, McpServers};
use polis_tools::{PolicyToolbox, Rule, RuleAction, ToolRegistry, Workspace, built_ins, local_date, top_level};

use crate::config::{CassetteMode, Config};
use crate::config_file::ProviderSection;
use crate::error::CliError;
use crate::purpose::Purpose;
use crate::roles::RoleFiles;
use crate::store::{OpenedLog, Store};
use crate::trust::{Trust, create_private};
use crate::{lineage, machine_tools, mcp_servers, out, protected_paths, remotes, retention, roles, skills, sops, suggest};

/// The code that runs plain conversations.
const CONVERSE: &str = "converse";

/// The code that every member of the society runs: it chooses a strategy, plans where that pays, and follows SOPs.
pub(crate) const ROLE: &str = "role";

/// The code of agents that plan, do and verify whatever they are asked.
const WORKFLOW: &str = "workflow";

/// Where the business contexts of the workflow stand, in the working directory. The first folder that has one counts.
pub(crate) const PROMPTS: [&str; 2] = ["prompts", "agents/prompts"];

/// The prompts of the workflow roles: the user's own files first, then trusted ones of the folder.
pub(crate) fn prompts(trust: &Trust) -> PromptManager {
    let users = trust.user().map(|user| user.join(PROMPTS[0]));
    let manager = users.into_iter().fold(PromptManager::default(), PromptManager::with_folder);
    PROMPTS.into_iter().fold(manager, PromptManager::with_folder).with_guard(trust.guard())
}

/// Reports faults of the prompt files.
fn announce_prompts(trust: &Trust) {
    for (file, warnings) in prompts(trust).files() {
        warnings.iter().for_each(|warning| out::note(&format!("polis: {file}: {warning}")));
    }
}

/// Where people put their procedures, in the working directory.
pub(crate) const SOPS: &str = "sops";
/// Where scripts with components for the page are, from the working directory.
pub(crate) const COMPONENTS: &str = "components";

/// A society that is open in this process.
pub(crate) struct OpenSociety {
    pub(crate) state: SocietyState,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    /// Where the log is.
    pub(crate) opened_log: OpenedLog,
    replayer: Option<Arc<Replayer>>,
    servers: Option<Arc<McpServers>>,
    followed: Option<FollowHandle>,
    /// Publishes live events to watchers.
    live: Arc<LocalLive>,
    works: bool,
    /// How the files of roles were when they were brought in.
    pub(crate) role_files: RoleFiles,
}

impl OpenSociety {
    /// Sends the remaining telemetry, within a second. The society must have stopped.
    pub(crate) async fn flush_telemetry(&self) {
        if let Some(followed) = &self.followed {
            followed.finish().await;
        }
    }

    /// The watchers of a society that is open for reading, to hand over when it is opened to run.
    pub(crate) fn watchers(&self) -> Option<Arc<LocalLive>> {
        (!self.works).then(|| self.live.clone())
    }

    /// Stops the MCP servers that were started. The society must have stopped.
    pub(crate) async fn close_servers(&self) {
        if let Some(servers) = &self.servers {
            servers.close().await;
        }
    }

    /// Says which recorded interactions nobody asked for.
    pub(crate) fn report_unused(&self) {
        let unused = self.replayer.as_ref().map(|replayer| replayer.unused()).unwrap_or_default();
        if !unused.is_empty() {
            let count = out::count(unused.len(), "recorded interaction");
            let were = if unused.len() == 1 { "was" } else { "were" };
            out::note(&format!("polis: {count} {were} not used:\n  {}", unused.join("\n  ")));
        }
    }
}

/// A random number.
pub(crate) fn entropy() -> Result<u64, CliError> {
    getrandom::u64().map_err(|error| CliError::new("no_randomness", format!("the system provides no random numbers: {error}")))
}

/// What a replay needs: agents that run again, and ports that only identify themselves. Nothing is started or called.
pub(crate) async fn to_replay(config: &Config, store: &Store) -> Result<(Ports, Cast), CliError> {
    let mut alone = config.clone();
    alone.servers.clear();
    let ports = Ports {
        log: store.log.clone(),
        model: open_model(&alone).await?.model,
        // The servers are left out on purpose, so rules that name them are not reported.
        toolbox: unannounced_tools(&alone, None).await?.toolbox,
        live: Arc::new(LocalLive::default()),
        clock: Arc::new(SystemClock),
        artifacts: store.artifacts.clone(),
        memory_texts: store.memory_texts.clone(),
        embedder: None,
    };
    Ok((ports, cast(config)))
}

/// Opens the society of a store for a purpose.
pub(crate) async fn open(config: &Config, store: &Store, purpose: Purpose) -> Result<OpenSociety, CliError> {
    open_for(config, store, purpose, None).await
}

/// The same for watchers that are there already.
pub(crate) async fn open_for(
    config: &Config,
    store: &Store,
    purpose: Purpose,
    watchers: Option<Arc<LocalLive>>,
) -> Result<OpenSociety, CliError> {
    if purpose != Purpose::Read {
        store.own(&config.society).await?;
    }
    let ancestors = match purpose {
        Purpose::Run | Purpose::Import => lineage::ancestors(&*store.log, &config.society).await?,
        Purpose::Read | Purpose::Enqueue => Vec::new(),
    };
    let config = &config.with_ancestors(&config.society, &ancestors);
    let idle = || ModelSetup {
        model: Arc::new(NoModel),
        host: HostSettings { model: vendors::OFFLINE.to_owned(), is_offline: true, ..HostSettings::default() },
        replayer: None,
    };
    let (setup, Tools { toolbox, servers, .. }) = match purpose {
        Purpose::Run => (open_model(config).await?, tools(config, Some(store.logins.clone())).await?),
        // Nobody is asked; but whether a model can be is known.
        Purpose::Import => {
            let known = models(config).await.ok().map(|models| ModelSetup { model: Arc::new(models), ..idle() });
            (known.unwrap_or_else(idle), Tools { toolbox: workbench(Vec::new())?, servers: None, idle_rules: Vec::new() })
        }
        Purpose::Read | Purpose::Enqueue => {
            (idle(), Tools { toolbox: workbench(Vec::new())?, servers: None, idle_rules: Vec::new() })
        }
    };
    if purpose == Purpose::Run {
        announce(config, &setup.host);
        announce_servers(config);
        if !config.is_other_society() {
            sops::faults(Path::new(SOPS), &config.trust)
                .iter()
                .for_each(|fault| out::note(&format!("polis: {fault} (bad_sop)")));
            skills::faults(config).iter().for_each(|fault| out::note(&format!("polis: {fault} (bad_skill)")));
        }
    }
    let telemetry = if purpose == Purpose::Run { store.telemetry(config)? } else { None };
    let before = store.log.head(&config.society).await?;
    let Store { log, artifacts, memory_texts, .. } = store.clone();
    let live = watchers.unwrap_or_else(|| Arc::new(LocalLive::remembering()));
    let model = match &telemetry {
        Some(telemetry) => telemetry.observe(&config.society, setup.model),
        None => setup.model,
    };
    let embedder = if purpose == Purpose::Run { embedder(config).await? } else { None };
    let ports = Ports {
        log,
        model,
        toolbox,
        live: live.clone(),
        clock: Arc::new(SystemClock),
        artifacts: artifacts.clone(),
        memory_texts,
        embedder,
    };
    let id = config.society.clone();
    let society = match purpose {
        Purpose::Read => Society::open_read_only(id, ports, cast(config)).await?,
        Purpose::Enqueue | Purpose::Import => {
            Society::open(id, ports, cast(config), Options { max_running: 0, ..options(config)? }).await?
        }
        Purpose::Run => Society::open(id, ports, cast(config), options(config)?).await?,
    };
    if purpose != Purpose::Read {
        society.take_requests(retention::beyond_quota(config));
    }
    let followed = match telemetry {
        Some(telemetry) => telemetry.follow(&society, before, store.documents.clone()).await,
        None => None,
    };
    let mut role_files = RoleFiles::default();
    if purpose == Purpose::Run {
        announce_prompts(&config.trust);
        role_files = roles::state(&config.trust);
        roles::apply(&society, &config.trust).await;
        remotes::apply(&society, &config.remotes).await;
    }
    let host = HostSettings { policy: config.rules.iter().map(rule).collect(), ..setup.host };
    let page = PageOptions { components: Some(COMPONENTS.into()), guard: config.trust.guard(), live_html: config.live_html };
    let state = SocietyState::new(society, host).with_page(page);
    let works = purpose == Purpose::Run;
    let opened_log = store.opened.clone();
    Ok(OpenSociety { state, artifacts, opened_log, replayer: setup.replayer, servers, followed, live, works, role_files })
}

/// Says who answers, where nobody has chosen it or where it is not a real model.
fn announce(config: &Config, host: &HostSettings) {
    let of =
        if config.is_other_society() { format!("polis: for the society {}: ", config.society) } else { "polis: ".to_owned() };
    match (host.is_offline, config.models.is_empty()) {
        (true, true) => out::note(&OFFLINE_NOTE.replacen("polis: ", &of, 1)),
        (true, false) => out::note(&OFFLINE_CHOSEN.replacen("polis: ", &of, 1)),
        (false, _) if !host.note.is_empty() => out::note(&format!("{of}{}", host.note)),
        (false, _) => {}
    }
}

/// Names the servers of a file that Polis did not define: it may come from elsewhere.
fn announce_servers(config: &Config) {
    if !config.foreign_servers.is_empty() {
        out::note(&format!("polis: {} brings the MCP servers {}", mcp_servers::FILE, config.foreign_servers.join(", ")));
    }
}

const OFFLINE_CHOSEN: &str = "polis: the offline model answers, as chosen: CSV files, counts, summaries, arithmetic, the time, reading and writing files.";

const OFFLINE_NOTE: &str =
    "polis: no model is set, so the offline model answers: CSV files, counts, summaries, arithmetic, the time, reading and writing files.
polis: for real answers set a vendor's key, for example OPENAI_API_KEY, or choose a model with --model vendor/name or in polis.toml.
polis: or run a small model on this machine: `ollama pull qwen3:4b` (`polis models pull` tells more).";

struct ModelSetup {
    model: Arc<dyn Model>,
    host: HostSettings,
    replayer: Option<Arc<Replayer>>,
}

/// The models as they are set up.
pub(crate) async fn models(config: &Config) -> Result<Models, CliError> {
    let bad = |error: vendors::OpenError| suggest::about_model(&error);
    let network = config.network()?;
    let endpoint = |(name, section): (&String, &ProviderSection)| section.endpoint(name, &network);
    let endpoints = config.providers.iter().map(endpoint).collect::<Result<_, String>>();
    let endpoints = endpoints.map_err(|what| CliError::usage("bad_config", what))?;
    let setup = Setup { network, endpoints };
    let model = config.models.first().map(String::as_str);
    let opened = vendors::open_with(model, &|name| config.variable(name), setup).await.map_err(bad)?;
    let opened = opened.with_emulated_tools(&config.emulated_tools).map_err(bad)?;
    let opened = opened.with_table(config.model_lines.clone(), config.model_settings.clone());
    config.models.iter().try_for_each(|model| opened.find(model).map(drop)).map_err(bad)?;
    match &config.prices {
        Some(path) => Ok(opened.with_prices(prices(path, &config.trust)?)),
        None => Ok(opened),
    }
}

/// The embedding model, if one is set. A cassette has no embeddings, so memories are found by words then.
pub(crate) async fn embedder(config: &Config) -> Result<Option<Arc<dyn Embedder>>, CliError> {
    let Some(model) = config.embeddings.model.as_deref().filter(|_| config.memory.is_enabled() && config.cassette.is_none())
    else {
        return Ok(None);
    };
    let bad = |error: vendors::OpenError| CliError::usage(error.code(), format!("[embeddings] {error}"));
    let embedder = models(config).await?.embedder(model, config.embeddings.settings()).map_err(bad)?;
    Ok(Some(Arc::new(embedder)))
}

/// A rule as it is shown.
fn rule(Rule { tool, server, agent, role, arguments, then, why, tainted }: &Rule) -> PolicyRule {
    let then = match then {
        RuleAction::Allow => PolicyThen::Allow,
        RuleAction::Ask => PolicyThen::Ask,
        RuleAction::Deny => PolicyThen::Deny,
    };
    let (tool, server, agent, role) = (tool.clone(), server.clone(), agent.clone(), role.clone());
    PolicyRule { tool, server, agent, role, arguments: arguments.clone(), then, why: why.clone(), tainted: *tainted }
}

/// The description of the models for the API.
pub(crate) fn host_settings(models: &Models) -> HostSettings {
    let is_here = |address: &&str| ["//127.", "//localhost", "//[::1]"].iter().any(|here| address.contains(here));
    let vendor = |(name, needs): (&str, Option<&vendors::OpenError>)| Vendor {
        name: name.to_owned(),
        needs: needs.map(ToString::to_string),
        key: match needs {
            Some(vendors::OpenError::NoKey { variable, .. }) => Some(variable.clone()),
            _ => None,
        },
        address: models.address(name).filter(is_here).map(str::to_owned),
    };
    let vendors = models.all().map(vendor).collect();
    HostSettings {
        model: models.default_name().to_string(),
        is_offline: models.is_offline(),
        note: choice_note(models),
        vendors,
        ..HostSettings::default()
    }
}

/// What the user should know about the model that answers.
fn choice_note(models: &Models) -> String {
    let name = models.default_name();
    match models.choice() {
        Some(why) => format!("no model is set; {name} answers: {why}. Choose with --model vendor/name."),
        None if models.description("").capabilities.tools == Some(false) => {
            format!("{name} cannot call tools; they are described to it in words, which works less well.")
        }
        None => String::new(),
    }
}

fn prices(path: &Path, trust: &Trust) -> Result<Prices, CliError> {
    let bad = |what: String| CliError::usage("bad_prices", format!("the prices {}: {what}", path.display()));
    // A file elsewhere, or one that trusted settings did not name, is one that the user named.
    let text = if trust.governs(path) { trust.read(path) } else { std::fs::read_to_string(path).map(Some) };
    let text =
        text.map_err(|error| bad(error.to_string()))?.ok_or_else(|| bad("it has changed since you trusted it".to_owned()))?;
    Prices::read(&text).map_err(|error| bad(error.to_string()))
}

/// A person reads at a human pace; a program does not.
#[cfg(feature = "offline")]
fn pace() -> polis_providers::Pace {
    use std::io::IsTerminal;

    let is_watched = std::io::stdout().is_terminal() || std::io::stderr().is_terminal();
    if is_watched { polis_providers::Pace::HUMAN } else { polis_providers::Pace::Instant }
}

async fn open_model(config: &Config) -> Result<ModelSetup, CliError> {
    let bad = |error: CassetteError| CliError::usage("bad_cassette", error.to_string());
    if let Some(CassetteMode::Replay(file)) = &config.cassette {
        let replayer = Arc::new(Replayer::open(file).map_err(bad)?);
        out::note(&format!("polis: answering from the cassette {}; no key is needed and no model is called.", file.display()));
        let host = HostSettings { model: "cassette".to_owned(), ..HostSettings::default() };
        return Ok(ModelSetup { model: replayer.clone(), host, replayer: Some(replayer) });
    }
    let models = models(config).await?;
    #[cfg(feature = "offline")]
    let models = models.with_pace(pace());
    let host = host_settings(&models);
    let mut model: Arc<dyn Model> = Arc::new(models);
    if let Some(CassetteMode::Record(file)) = &config.cassette {
        model = Arc::new(Recorder::open(model, file).map_err(bad)?);
        out::note(&format!("polis: recording requests and replies in {}.", file.display()));
    }
    Ok(ModelSetup { model, host, replayer: None })
}

/// The tools of a society, and the servers that bring some of them.
pub(crate) struct Tools {
    pub(crate) toolbox: Arc<dyn Toolbox>,
    servers: Option<Arc<McpServers>>,
    /// What is wrong with rules that can fit nothing.
    idle_rules: Vec<String>,
}

/// How long servers may start before the caller is told that they are waited for.
const QUIET_WAIT: Duration = Duration::from_secs(10);

impl Tools {
    /// Waits for slow servers, because the caller wants to know about each.
    pub(crate) async fn settled(&self) {
        let Some(servers) = &self.servers else { return };
        servers.settled(QUIET_WAIT).await;
        let is_starting = |server: &ToolServer| server.state == ServerState::Starting;
        if servers.servers().iter().any(is_starting) {
            out::note("polis: waiting for servers that are still starting");
            servers.settled(McpOptions::default().start_timeout).await;
        }
    }

    /// Ends the servers.
    pub(crate) async fn close(&self) {
        if let Some(servers) = &self.servers {
            servers.close().await;
        }
    }
}

/// The tools, with the servers where `logins` are stored. Reports rules that can fit nothing.
pub(crate) async fn tools(config: &Config, logins: Option<Arc<dyn Documents>>) -> Result<Tools, CliError> {
    let tools = unannounced_tools(config, logins).await?;
    tools.idle_rules.iter().for_each(|what| out::note(&format!("polis: {what}")));
    Ok(tools)
}

async fn unannounced_tools(config: &Config, logins: Option<Arc<dyn Documents>>) -> Result<Tools, CliError> {
    let bad = |error: std::io::Error| {
        CliError::usage("bad_workspace", format!("the workspace {}: {error}", config.workspace.display()))
    };
    let workspace = Workspace::open(&config.workspace).map_err(bad)?;
    let closed: Vec<_> = config.files.iter().cloned().chain(trust_folder(config)).collect();
    let real = config.workspace.canonicalize().map_err(bad)?;
    let (names, loaded): (Vec<_>, Vec<_>) =
        config.servers.iter().map(|server| mcp_servers::closed(server, &real, &config.trust)).unzip();
    let protected =
        protected_paths::protected(&config.workspace, &config.data, &closed, &config.scripts, &loaded.concat()).map_err(bad)?;
    let protected = protected.with_loaded_names(names.concat());
    let mut tools = machine_tools::tools(config, &protected).await?;
    tools.splice(..0, built_ins(&workspace.with_protected(protected), Arc::new(SystemClock)));
    tools.extend(remotes::tools(&config.remotes, &config.network()?)?);
    let own = workbench(tools)?;
    let done_by_turns: Vec<_> = cast(config).tools().iter().map(|tool| tool.name.clone()).collect();
    let ruled = |toolbox, servers| {
        let ruled = PolicyToolbox::new(toolbox, config.rules.clone()).with_own(done_by_turns);
        Tools { idle_rules: ruled.idle(), toolbox: Arc::new(ruled), servers }
    };
    if config.servers.is_empty() {
        return Ok(ruled(own, None));
    }
    let closed = closed.into_iter().chain([config.data.clone()]).collect();
    let options = McpOptions { closed, logins, network: config.network()?, ..McpOptions::default() };
    let servers = McpServers::open(config.servers.iter().cloned(), options);
    let servers = Arc::new(servers);
    Ok(ruled(Arc::new(JoinedTools::new(own, servers.clone())), Some(servers)))
}

/// The folder in which trust is kept. Whoever could write there could trust anything, so it is made before anybody else can.
fn trust_folder(config: &Config) -> Option<PathBuf> {
    let user = config.trust.user()?;
    if config.workspace.canonicalize().is_ok_and(|workspace| user.starts_with(workspace)) {
        // Where it cannot be made, nobody else can make it either.
        let _ = create_private(user);
    }
    Some(user.to_owned())
}

fn workbench(tools: Vec<Box<dyn polis_ports::Tool>>) -> Result<Arc<dyn Toolbox>, CliError> {
    let bench = ToolRegistry::new(tools).map_err(|error| CliError::new("duplicate_tool", error.to_string()))?;
    Ok(Arc::new(bench))
}

pub(crate) fn cast(config: &Config) -> Cast {
    let engine = AgentWorkflowEngine::new(prompts(&config.trust)).with_settings(config.workflow);
    let environment = environment(config);
    let workflow = Workflow::new(engine).with_environment(environment.clone());
    let users = config.trust.user().map(|user| user.join(SOPS));
    let sops = users.into_iter().fold(Sops::default(), Sops::with_folder).with_folder(SOPS).with_guard(config.trust.guard());
    let converse = Converse { environment: environment.clone(), ..Converse::default() };
    let parts = RoleParts::new(ROLE).with_sops(sops).with_environment(environment).with_workflow(workflow.clone());
    let cast = Cast::new().with(CONVERSE, converse).with(ROLE, RoleAgent { parts }).with(WORKFLOW, workflow.telling_role());
    let cast = cast.with(remotes::BEHAVIOUR, polis_agents::A2aAgent);
    let skills = skills::skills(config);
    // The tool would be of no use to most: it is offered where there is a place for skills.
    let has_skills = skills.folders().any(Path::is_dir);
    let cast = if has_skills { cast.with_tool(ReadSkill::new(skills)) } else { cast };
    let cast = with_society_tools(cast.with_tool(PlanTool), ROLE);
    let cast = if config.memory.is_enabled() { with_memory_tools(cast) } else { cast };
    cast.and(config.own.cast.clone())
}

/// What agents are told about where they work. A cassette knows requests by their content, so date and files are left out with one.
fn environment(config: &Config) -> Environment {
    let environment =
        Environment::default().with_instructions(INSTRUCTIONS_FILE, config.trust.guard()).with_skills(skills::skills(config));
    match Workspace::open(&config.workspace) {
        Ok(workspace) if config.cassette.is_none() => environment.with_date(local_date).with_files(move |most| {
            let (names, total) = top_level(&workspace, most);
            FileList { names, total }
        }),
        _ => environment,
    }
}

fn options(config: &Config) -> Result<Options, CliError> {
    let entropy = entropy()?;
    let root = config.own.root.clone().unwrap_or_else(|| root_role(ROLE));
    // One alone is the port's own choice, and nothing that a request needs to say.
    let several = Some(&config.models).filter(|models| models.len() > 1);
    let models = several.into_iter().flatten().map(|model| model.as_str().into()).collect();
    let usual = Options::new(entropy, root);
    let patience = config.http.client_tool_seconds.map(|seconds| Duration::from_secs(seconds.get().into()));
    let client_patience = patience.unwrap_or(usual.client_patience);
    let approvers = config.http.approvers.iter().map(|person| person.as_str().into()).collect();
    Ok(Options { own_thread: true, models, budgets: config.budgets.clone(), client_patience, approvers, ..usual })
}
