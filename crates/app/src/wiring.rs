//! Puts a society together: the store, a model, the tools, the agents.

use std::io::{IsTerminal, stderr, stdout};
use std::sync::Arc;

use polis_agents::Converse;
use polis_domain::{AgentId, Role, SocietyId};
use polis_engine::{Cast, LocalLive, Options, Ports, Society, SystemClock};
use polis_ports::{Model, Toolbox};
use polis_providers::{Offline, Pace, vendors};
use polis_server::{About, Desk};
use polis_store_local::LocalLog;
use polis_tools::{Workbench, Workspace, built_ins};

use crate::config::Config;
use crate::door::Purpose;
use crate::fence::Fence;
use crate::out;
use crate::trouble::Trouble;

/// The society of a data directory.
const SOCIETY: &str = "main";

/// The code that runs plain conversations.
const CONVERSE: &str = "converse";

const ROOT_PROMPT: &str = include_str!("prompts/root.md");

/// Opens the society of a store for a purpose.
pub(crate) async fn open(config: &Config, log: Arc<LocalLog>, purpose: Purpose) -> Result<Desk, Trouble> {
    let idle = || Thinking {
        model: Arc::new(Offline::default()),
        about: About { model: vendors::OFFLINE.to_owned(), is_offline: true },
    };
    let (thinking, toolbox) = match purpose {
        Purpose::Work => (thinking(config)?, tools(config)?),
        Purpose::Look | Purpose::Tell => (idle(), workbench(Vec::new())?),
    };
    if purpose == Purpose::Work && thinking.about.is_offline {
        out::note(if config.model.is_some() { OFFLINE_CHOSEN } else { OFFLINE_NOTE });
    }
    let ports =
        Ports { log, model: thinking.model, toolbox, live: Arc::new(LocalLive::default()), clock: Arc::new(SystemClock) };
    let id = SocietyId::from(SOCIETY);
    let society = match purpose {
        Purpose::Look => Society::open_to_look(id, ports).await?,
        Purpose::Tell => Society::open(id, ports, cast(), Options { max_running: 0, ..options()? }).await?,
        Purpose::Work => Society::open(id, ports, cast(), options()?).await?,
    };
    Ok(Desk::new(society, thinking.about))
}

const OFFLINE_CHOSEN: &str = "polis: the offline model answers, as chosen: CSV files, counts, summaries, arithmetic, the time, reading and writing files.";

const OFFLINE_NOTE: &str =
    "polis: no model is set, so the offline model answers: CSV files, counts, summaries, arithmetic, the time, reading and writing files.
polis: for real answers set a vendor's key, for example OPENAI_API_KEY, or choose a model with --model vendor/name or in polis.toml.";

struct Thinking {
    model: Arc<dyn Model>,
    about: About,
}

fn thinking(config: &Config) -> Result<Thinking, Trouble> {
    let opened = vendors::open(config.model.as_deref(), &|name| config.variable(name));
    let models = opened.map_err(|error| Trouble::usage("bad_model", error.to_string()))?;
    let about = About { model: models.default_name().to_string(), is_offline: models.is_offline() };
    // Whoever reads along wants to; a program does not.
    let is_watched = stdout().is_terminal() || stderr().is_terminal();
    let models = models.with_pace(if is_watched { Pace::HUMAN } else { Pace::Instant });
    Ok(Thinking { model: Arc::new(models), about })
}

fn tools(config: &Config) -> Result<Arc<dyn Toolbox>, Trouble> {
    let bad = |error: std::io::Error| {
        Trouble::usage("bad_workspace", format!("the workspace {}: {error}", config.workspace.display()))
    };
    let workspace = Workspace::open(&config.workspace).map_err(bad)?;
    let fence = Fence::new(&config.workspace, &config.data, &config.files).map_err(bad)?;
    workbench(built_ins(&fence.around(workspace), Arc::new(SystemClock)))
}

fn workbench(tools: Vec<Box<dyn polis_ports::Tool>>) -> Result<Arc<dyn Toolbox>, Trouble> {
    let bench = Workbench::new(tools).map_err(|error| Trouble::new("duplicate_tool", error.to_string()))?;
    Ok(Arc::new(bench))
}

fn cast() -> Cast {
    Cast::new().with(CONVERSE, Converse::default())
}

fn options() -> Result<Options, Trouble> {
    let entropy = getrandom::u64()
        .map_err(|error| Trouble::new("no_randomness", format!("the system gives no random numbers: {error}")))?;
    let root = Role {
        id: AgentId::ROOT.into(),
        name: "Root".into(),
        prompt: ROOT_PROMPT.trim().into(),
        behaviour: CONVERSE.into(),
        model: None,
    };
    Ok(Options::new(entropy, root))
}
