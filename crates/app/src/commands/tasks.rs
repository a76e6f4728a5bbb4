//! `polis tasks`: the requests that are under way, the plans that agents keep, how far they are, and what was set aside.

use polis_api::{AgentPlan, DeadLetters, OpenTask, Plans, TaskState};
use polis_domain::{DeadLetter, StepStatus};
use serde_json::json;

use crate::address::encoded;
use crate::cli::Tasks;
use crate::config::Config;
use crate::describe;
use crate::door::{Door, Purpose};
use crate::out;
use crate::trouble::{Exit, Trouble};

pub(crate) async fn tasks(config: &Config, args: &Tasks) -> Result<Exit, Trouble> {
    let door = Door::open(config, Purpose::Look).await?;
    let wanted = args.task.as_ref().map(|task| format!("?taskId={}", encoded(task))).unwrap_or_default();
    let mut tasks = door.get::<polis_api::Tasks>("/api/tasks").await?.tasks;
    let plans = door.get::<Plans>(&format!("/api/plans{wanted}")).await?.plans;
    let mut dead_letters = door.get::<DeadLetters>("/api/dead-letters").await?.dead_letters;
    if let Some(task) = &args.task {
        // One that is not there is an error.
        door.get::<TaskState>(&format!("/api/tasks/{}", encoded(task))).await?;
        tasks.retain(|open| open.id.as_str() == task);
        dead_letters.retain(|dead| dead.task.as_str() == task);
    }
    if args.json {
        out::line(&format!("{:#}", json!({ "tasks": tasks, "plans": plans, "deadLetters": dead_letters })))?;
        return Ok(Exit::Done);
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
