//! `polis tasks`: the requests that are under way, the plans that agents keep, how far they are, and what was set aside.

use polis_domain::{DeadLetter, Plan, StepStatus};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::address::encoded;
use crate::cli::Tasks;
use crate::config::Config;
use crate::describe;
use crate::door::{Door, Purpose};
use crate::out;
use crate::trouble::{Exit, Trouble};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    tasks: Vec<Task>,
    plans: Vec<Shown>,
    dead_letters: Vec<DeadLetter>,
}

/// A request that is under way.
#[derive(Deserialize)]
struct Task {
    id: String,
    status: String,
    turns: u32,
    open: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    task_id: String,
    agent_id: String,
    is_open: bool,
    #[serde(flatten)]
    plan: Plan,
}

pub(crate) async fn tasks(config: &Config, args: &Tasks) -> Result<Exit, Trouble> {
    let door = Door::open(config, Purpose::Look).await?;
    let wanted = args.task.as_ref().map(|task| format!("?taskId={}", encoded(task))).unwrap_or_default();
    let mut tasks: Value = door.get("/api/tasks").await?;
    let mut plans: Value = door.get(&format!("/api/plans{wanted}")).await?;
    let mut dead: Value = door.get("/api/dead-letters").await?;
    if let Some(task) = &args.task {
        // One that is not there is an error.
        door.get::<Value>(&format!("/api/tasks/{}", encoded(task))).await?;
        keep(&mut tasks["tasks"], "id", task);
        keep(&mut dead["deadLetters"], "task", task);
    }
    let listed =
        json!({ "tasks": tasks["tasks"].take(), "plans": plans["plans"].take(), "deadLetters": dead["deadLetters"].take() });
    if args.json {
        out::line(&format!("{listed:#}"))?;
        return Ok(Exit::Done);
    }
    let bad = |error: serde_json::Error| Trouble::new("output_failed", error.to_string());
    let Listed { tasks, plans, dead_letters } = serde_json::from_value(listed).map_err(bad)?;
    for Task { id, status, turns, open } in tasks {
        out::line(&format!("{id}  {status:<12}  {turns} turns, {open} open"))?;
    }
    for DeadLetter { agent, task, turn, failure, at } in dead_letters {
        let when = describe::time(at);
        out::line(&format!("{task}  {agent}  set aside at {when}: {failure}; event {turn} has the message"))?;
    }
    if plans.is_empty() {
        out::note("polis: no agent keeps a plan; what is short is done without one");
    }
    for Shown { task_id, agent_id, is_open, plan } in plans {
        let standing = match plan.status {
            Some(StepStatus::Completed) => "done",
            Some(_) => "failed",
            None if is_open => "under way",
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

/// Keeps what is about one request.
fn keep(list: &mut Value, key: &str, task: &str) {
    if let Some(list) = list.as_array_mut() {
        list.retain(|known| known[key] == task);
    }
}
