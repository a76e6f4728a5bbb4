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
    if args.json {
        let all = json!({ "tasks": tasks, "plans": plans, "deadLetters": dead_letters });
        return out::json(&all).map(|()| Exit::Done);
    }
    for OpenTask { id, status, turns, open } in tasks {
        out::line(&format!("{id}  {:<12}  {turns} turns, {open} open", out::name_of(&status)))?;
    }
    for DeadLetter { agent, task, turn, failure, at } in dead_letters {
        let when = describe::time(at);
        out::line(&format!("{task}  {agent}  dead-lettered at {when}: {failure}; event {turn} has the message"))?;
    }
    if plans.is_empty() {
        out::note("polis: no agent has a plan; short requests have none");
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
