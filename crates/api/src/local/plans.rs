//! Reading plans.

use polis_domain::{Event, PlanRef, Seq, Spine, TaskId};

use super::Local;
use super::tasks::open_task;
use crate::{AgentPlan, ApiError, PlanFilter, Plans, Scope};

/// Most plans that are listed.
const MAX_LISTED: usize = 100;

impl Local {
    /// The newest plans, or those of one request, newest first.
    pub async fn plans(&self, filter: PlanFilter) -> Result<Plans, ApiError> {
        self.caller.needs(Scope::Read)?;
        Ok(Plans { plans: self.plans_of(filter.task_id).await? })
    }

    pub(super) async fn plans_of(&self, task: Option<TaskId>) -> Result<Vec<AgentPlan>, ApiError> {
        let is_for_task = move |plan: &&PlanRef| task.as_ref().is_none_or(|task| plan.task == *task);
        let visibility = self.society.visibility().clone();
        let look = move |spine: &Spine| {
            let is_visible = |plan: &&PlanRef| visibility.agent(spine, &plan.agent);
            let newest = spine.plans.iter().rev().filter(&is_for_task).filter(is_visible).take(MAX_LISTED);
            newest.map(|plan| (plan.clone(), open_task(spine, &plan.task).is_some())).collect::<Vec<_>>()
        };
        let places = self.society.look(look).await?;
        let mut plans = Vec::with_capacity(places.len());
        for (PlanRef { task, agent, thread, seq }, is_open) in places {
            let read = self.society.log().read(self.society.id(), Seq(seq.0 - 1), 1).await;
            let Some(recorded) = read.ok().and_then(|mut page| page.pop()).filter(|it| it.seq == seq) else { continue };
            if let Event::PlanSet { plan, .. } = recorded.event {
                plans.push(AgentPlan { task_id: task, agent_id: agent, thread, updated_at: recorded.at, is_open, plan });
            }
        }
        Ok(plans)
    }
}
