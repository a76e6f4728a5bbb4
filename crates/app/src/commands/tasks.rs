//! `polis tasks`: open requests, the plans of agents with their progress, and dead letters.

use polis_api::{AgentPlan, OpenTask, Paging, PlanFilter};
use polis_domain::{DeadLetter, StepStatus, TaskId};
use serde_json::json;

use crate::cli::Tasks;
use crate::config::Config;
use crate::describe;
use crate::error::{CliError, Exit};
use crate::out;
use crate::purpose::Purpose;
use crate::transport::Transport;

/// Longest beginning of a request that is shown, in characters.
const WORDS: usize = 60;

pub(crate) async fn tasks(config: &Config, args: &Tasks) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    let (api, task_id) = (transport.api(), args.task.as_deref().map(TaskId::from));
    let mut tasks = api.tasks(&Paging::default()).await?.tasks;
    let plans = api.plans(PlanFilter { task_id: task_id.clone() }).await?.plans;
    let mut dead_letters = api.dead_letters().await?.dead_letters;
    if let Some(task) = &task_id {
        // One that is not there is an error.
        api.task(task).await?;
        tasks.retain(|open| open.id == *task);
        dead_letters.retain(|dead| dead.task == *task);
    }
    // Without a server nobody works on anything until the next start.
    let is_served = matches!(transport, Transport::Http(_));
    if args.json {
        let all = json!({ "tasks": tasks, "plans": plans, "deadLetters": dead_letters, "isServed": is_served });
        return out::json(&all).map(|()| Exit::Done);
    }
    if !is_served && !tasks.is_empty() {
        out::note("polis: no society is running, so nobody works on these; follow one with `polis attach TASK`");
    }
    for task in &tasks {
        out::line(&line(task, is_served))?;
    }
    if tasks.is_empty() {
        out::note("polis: there are no open requests");
    }
    for DeadLetter { agent, task, turn, failure, at, handled } in dead_letters {
        let when = describe::time(at);
        let done = if handled { " (handled)" } else { "" };
        out::line(&format!("{task}  {agent}  dead-lettered at {when}{done}: {failure}; event {turn} has the message"))?;
    }
    if plans.is_empty() {
        out::note("polis: there are no plans; short requests have none");
    }
    for AgentPlan { task_id, agent_id, is_open, plan, .. } in plans {
        let standing = match plan.status {
            Some(StepStatus::Completed) => "done",
            Some(_) => "failed",
            None if is_open => "open",
            None => "ended before it was done",
        };
        let how = plan.strategy.as_ref().map(|how| format!("  {}: {}", how.name, how.reason)).unwrap_or_default();
        out::line(&format!("{task_id}  {agent_id}  {standing}{how}"))?;
        for (line, step) in plan.to_string().lines().zip(&plan.steps) {
            out::line(&format!("    {line}"))?;
            if let Some(result) = &step.result {
                out::line(&format!("       {}", out::short(result, 100)))?;
            }
        }
    }
    Ok(Exit::Done)
}

/// A request as a line: its status, who asked what in which conversation, and whether an agent works on it.
fn line(task: &OpenTask, is_served: bool) -> String {
    let OpenTask { id, status, turns, open, text, person, conversation } = task;
    let by = person.as_ref().map(|person| format!("  by {person}")).unwrap_or_default();
    let place = conversation.as_ref().map(|conversation| format!("  in {conversation}")).unwrap_or_default();
    let work = if is_served { "" } else { "  nobody works on it" };
    let status = out::name_of(status);
    let turns = out::count(*turns as usize, "turn");
    format!("{id}  {status:<12}  {turns}, {open} open{by}{place}{work}  {}", out::short(text, WORDS))
}
