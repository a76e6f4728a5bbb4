//! The plans that agents keep, by request: where they stand, for people and for agents.

use axum::extract::State;
use polis_domain::{AgentId, Event, Plan, PlanRef, Seq, Spine, TaskId, ThreadId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::state::SocietyState;
use crate::tasks::of_task;
use crate::wanted::Wanted;

/// Most plans that are listed.
const MAX_LISTED: usize = 100;

/// Of which request; of all where none is named.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "PlansOf")]
pub(crate) struct Which {
    task_id: Option<TaskId>,
}

/// Plans.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Plans {
    plans: Vec<Shown>,
}

/// A plan, and whose it is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ShownPlan")]
pub(crate) struct Shown {
    task_id: TaskId,
    agent_id: AgentId,
    thread: ThreadId,
    updated_at: Timestamp,
    /// Whether its request is under way.
    is_open: bool,
    #[serde(flatten)]
    plan: Plan,
}

pub(crate) async fn plans(
    State(state): State<SocietyState>,
    Wanted(which): Wanted<Which>,
) -> Result<axum::Json<Plans>, Problem> {
    Ok(axum::Json(Plans { plans: of(&state, which.task_id).await? }))
}

/// The newest plans, or those of one request, newest first.
pub(crate) async fn of(state: &SocietyState, task: Option<TaskId>) -> Result<Vec<Shown>, Problem> {
    let wanted = move |planned: &&PlanRef| task.as_ref().is_none_or(|task| planned.task == *task);
    let look = move |spine: &Spine| {
        let newest = spine.plans.iter().rev().filter(wanted).take(MAX_LISTED);
        newest.map(|planned| (planned.clone(), of_task(spine, &planned.task).is_some())).collect::<Vec<_>>()
    };
    let places = state.society.look(look).await?;
    let mut plans = Vec::with_capacity(places.len());
    for (PlanRef { task, agent, thread, seq }, is_open) in places {
        let read = state.society.log().read(state.society.id(), Seq(seq.0 - 1), 1).await;
        let Some(recorded) = read.ok().and_then(|mut page| page.pop()) else { continue };
        if let Event::PlanSet { plan, .. } = recorded.event {
            plans.push(Shown { task_id: task, agent_id: agent, thread, updated_at: recorded.at, is_open, plan });
        }
    }
    Ok(plans)
}
