//! Runs one task with one kind of model in a society that is put together as the program does it, and checks what came of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use polis_agents::memory::with_memory_tools;
use polis_agents::role::RoleParts;
use polis_agents::society::with_society_tools;
use polis_agents::workflow::{AgentWorkflowEngine, PromptManager, Workflow};
use polis_agents::{Converse, Environment, FileList, PlanTool, RoleAgent, root_role};
use polis_domain::{AgentId, MessageKind};
use polis_engine::{Cast, Options, Ports, Society, SystemClock};
use polis_testkit::{MemoryArtifacts, MemoryLog, ScriptedModel};
use polis_tools::{PolicyToolbox, Rule, RuleAction, ToolRegistry, Workspace, built_ins, top_level};
use serde_json::{Map, Value};

use super::meter::Meter;
use super::mistakes::{self, Kind};
use super::task::{Ask, StepResult, Task};
use super::tools::{Made, Recorded, WorldTool};

const CONVERSE: &str = "converse";
const ROLE: &str = "role";
const WORKFLOW: &str = "workflow";

/// How long a request may take before the task counts as failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of a task.
pub(crate) struct Outcome {
    /// What is wrong; empty if it succeeded.
    pub(crate) faults: Vec<String>,
    /// The requests that ended with nothing.
    pub(crate) empty_handed: Vec<String>,
    pub(crate) calls: usize,
    /// Characters of the first request.
    pub(crate) first: usize,
    pub(crate) sent: usize,
    pub(crate) cached: usize,
}

pub(crate) async fn run(task: Arc<Task>, kind: Kind) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    for (path, content) in &task.files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        std::fs::write(path, content)?;
    }
    let (meter, made) = (Arc::new(Mutex::new(Meter::default())), Made::default());
    let society = open(&task, kind, folder.path(), &meter, &made).await?;
    let mut answers = Vec::new();
    for ask in &task.turns {
        answers.push(answer(&society, ask).await);
    }
    society.stop(Duration::ZERO).await;
    let mut faults = wrong_answers(&task, &answers);
    faults.extend(wrong_writes(&task, &made));
    for (path, content) in &task.files_after {
        let found = std::fs::read_to_string(folder.path().join(path)).unwrap_or_default();
        if found != *content {
            faults.push(format!("{path} has {found:?} instead of {content:?}"));
        }
    }
    let empty_handed = task.turns.iter().zip(&answers).filter_map(|(ask, answer)| emptiness(&task, ask, answer)).collect();
    let Meter { calls, first, sent, cached, .. } = *meter.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Outcome { faults, empty_handed, calls, first, sent, cached })
}

async fn open(
    task: &Arc<Task>,
    kind: Kind,
    folder: &std::path::Path,
    meter: &Arc<Mutex<Meter>>,
    made: &Made,
) -> Result<Society> {
    let environment = environment(Workspace::open(folder)?);
    let workflow = Workflow::new(AgentWorkflowEngine::new(PromptManager::default())).with_environment(environment.clone());
    let converse = Converse { environment: environment.clone(), ..Converse::default() };
    let parts = RoleParts::new(ROLE).with_environment(environment).with_workflow(workflow.clone());
    let cast = Cast::new().with(CONVERSE, converse).with(ROLE, RoleAgent { parts }).with(WORKFLOW, workflow.telling_role());
    let cast = with_memory_tools(with_society_tools(cast.with_tool(PlanTool), ROLE));
    let own_tools: Vec<_> = cast.tools().iter().map(|tool| tool.name.clone()).collect();
    let mut tools = built_ins(&Workspace::open(folder)?, Arc::new(SystemClock));
    tools.extend(task.tools.iter().map(|tool| Box::new(WorldTool::new(tool.clone())) as _));
    let tools = Recorded::new(ToolRegistry::new(tools)?, made.clone());
    // The person agrees to everything.
    let agreed = Rule { then: RuleAction::Allow, tainted: true, ..Rule::default() };
    let toolbox = PolicyToolbox::new(Arc::new(tools), vec![agreed]).with_own(own_tools);
    let (meter, scripted) = (meter.clone(), task.clone());
    let model = ScriptedModel::new(move |request| {
        meter.lock().unwrap_or_else(PoisonError::into_inner).count(request);
        mistakes::reply(kind, &scripted, request)
    });
    let ports = Ports {
        model: Arc::new(model),
        toolbox: Arc::new(toolbox),
        ..Ports::new(MemoryLog::new()).with_artifacts(MemoryArtifacts::default())
    };
    Ok(Society::open("main".into(), ports, cast, Options::new(7, root_role(ROLE))).await?)
}

/// What agents are told about where they work, always with the same date.
fn environment(workspace: Workspace) -> Environment {
    let files = move |most| {
        let (names, total) = top_level(&workspace, most);
        FileList { names, total }
    };
    Environment::default().with_date(|_| "Wednesday, 2026-11-18, UTC".to_owned()).with_files(files)
}

/// What the person is told; an error if the request failed.
async fn answer(society: &Society, ask: &Ask) -> Result<String, String> {
    let strategy = ask.is_planned.then(|| ("strategy".to_owned(), Value::from(WORKFLOW)));
    let said = society.send_with_meta(AgentId::root(), &ask.says, None, Map::from_iter(strategy));
    let sent = said.await.map_err(|error| error.to_string())?;
    let answered = tokio::time::timeout(PATIENCE, society.answer(&sent)).await;
    let envelope = answered.map_err(|_| "it did not end".to_owned())?.map_err(|error| error.to_string())?;
    match &envelope.kind {
        MessageKind::Failure(failure) => Err(failure.to_string()),
        MessageKind::Answer | MessageKind::Message => Ok(envelope.payload.text.to_string()),
    }
}

fn wrong_answers(task: &Task, answers: &[Result<String, String>]) -> Vec<String> {
    let truth = task.truth();
    let mut faults = Vec::new();
    for (ask, answer) in task.turns.iter().zip(answers).filter(|(ask, _)| !ask.is_partial) {
        let text = match answer {
            Ok(text) => text,
            Err(failure) => {
                faults.push(format!("{:?} failed: {failure}", ask.cue()));
                continue;
            }
        };
        let lacks = |key: &&&str| !truth.0.get(**key).is_some_and(|value| text.contains(value));
        if let Some(key) = ask.keys().iter().find(lacks) {
            faults.push(format!("{:?} is answered without {key}: {text:?}", ask.cue()));
        }
    }
    faults
}

/// Writes that are missing, unwanted, or made twice.
fn wrong_writes(task: &Task, made: &Made) -> Vec<String> {
    let mut counts = BTreeMap::<(String, String), i64>::new();
    for write in made.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        *counts.entry(write.clone()).or_default() += 1;
    }
    for write in task.writes() {
        *counts.entry(write).or_default() -= 1;
    }
    let fault = |((tool, arguments), count): ((String, String), i64)| match count {
        0 => None,
        -1 => Some(format!("{tool} {arguments} was not called")),
        more => Some(format!("{tool} {arguments} was called {more} times too often")),
    };
    counts.into_iter().filter_map(fault).collect()
}

/// Why a request ended with nothing: it failed, or its answer should have facts and has none, nor what was done.
fn emptiness(task: &Task, ask: &Ask, answer: &Result<String, String>) -> Option<String> {
    let text = match answer {
        Ok(text) => text,
        Err(failure) => return Some(format!("{:?} failed: {failure}", ask.cue())),
    };
    let truth = task.truth();
    let jobs = ask.todos.iter().filter_map(|(job, _)| task.jobs.get(*job));
    let steps = ask.steps.iter().chain(jobs.flat_map(|job| &job.steps));
    let step_facts = steps.filter_map(|step| match &step.result {
        StepResult::Fact(key) => Some(key.as_str()),
        StepResult::Done(_) => None,
    });
    let mut facts = step_facts.chain(ask.keys());
    let mut has_fact = || facts.any(|key| truth.0.get(key).is_some_and(|value| text.contains(value)));
    let tells_work = || ["What it did", "it called", "I called"].iter().any(|words| text.contains(words));
    let is_empty = match ask.keys().is_empty() {
        true => text.trim().is_empty(),
        false => !has_fact() && !tells_work(),
    };
    is_empty.then(|| format!("{:?} is answered with {text:?}", ask.cue()))
}
