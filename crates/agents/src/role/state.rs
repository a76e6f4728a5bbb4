//! Where an agent stands with its task (R351-R353). It is worked out by the turn from the log, again in each run.

use std::collections::BTreeMap;
use std::sync::Arc;

use polis_domain::{Failure, StepStatus};

use super::message::{ResponseStatus, TaskInfo};
use super::plan::{InternalPlan, InternalStep};

/// What an agent is at (R352).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgentStatus {
    /// The agent has no work.
    #[default]
    Idle,
    /// It makes a plan.
    Planning,
    /// It works on a step.
    ExecutingStep,
    /// It waits for others.
    WaitingForCollaboration,
}

/// The state of an agent while it works on a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentState {
    /// The task.
    pub current_task: Option<TaskInfo>,
    /// The plan.
    pub internal_plan: Option<InternalPlan>,
    /// The step that is worked on.
    pub current_step_index: usize,
    /// What the agent is at.
    pub status: AgentStatus,
    /// The requests that are not answered, and the steps that they are for. There may be several (D29).
    pub pending_collaboration_request_ids: BTreeMap<Arc<str>, usize>,
    /// The answers that came late or twice. They are noted and change nothing (D29).
    pub unexpected_answers: Vec<Arc<str>>,
}

impl AgentState {
    /// Begins a task.
    pub fn set_current_task(&mut self, task: TaskInfo) {
        *self = Self { current_task: Some(task), status: AgentStatus::Planning, ..Self::default() };
    }

    /// Takes a plan.
    pub fn set_plan(&mut self, plan: InternalPlan) {
        self.internal_plan = Some(plan);
        self.status = AgentStatus::ExecutingStep;
    }

    /// The steps of the plan.
    pub fn steps(&self) -> &[InternalStep] {
        self.internal_plan.as_ref().map_or(&[], |plan| &plan.steps)
    }

    /// The step that is worked on.
    pub fn current_step(&self) -> Option<&InternalStep> {
        self.steps().get(self.current_step_index)
    }

    /// Moves to the next step that can begin, if there is one: all steps before it are done, or it begins together with the one
    /// before it.
    pub fn get_next_step(&mut self) -> Option<&InternalStep> {
        let mut may_begin = true;
        let mut all_settled = true;
        let mut found = None;
        for (index, step) in self.steps().iter().enumerate() {
            if !step.together {
                may_begin = all_settled;
            }
            all_settled &= step.is_settled();
            if may_begin && step.status == StepStatus::Pending {
                found = Some(index);
                break;
            }
        }
        self.current_step_index = found?;
        self.status = AgentStatus::ExecutingStep;
        self.current_step()
    }

    /// Says what came of the step that is worked on. One that failed is begun again as its policy says.
    pub fn update_step_status(&mut self, result: Result<Arc<str>, Failure>) {
        self.settle(self.current_step_index, result);
    }

    /// Whether the step that is worked on has failed for good.
    pub fn current_step_failed(&self) -> bool {
        self.current_step().is_some_and(|step| step.status == StepStatus::Failed)
    }

    /// Leaves the step that is worked on.
    pub fn advance_step(&mut self) {
        self.current_step_index += 1;
    }

    /// Notes that the step that is worked on waits for an answer.
    pub fn set_waiting_for(&mut self, request_id: impl Into<Arc<str>>) {
        let index = self.current_step_index;
        if let Some(step) = self.step_mut(index) {
            step.status = StepStatus::InProgress;
        }
        self.pending_collaboration_request_ids.insert(request_id.into(), index);
        self.status = AgentStatus::WaitingForCollaboration;
    }

    /// Whether any answer is waited for.
    pub fn is_waiting(&self) -> bool {
        !self.pending_collaboration_request_ids.is_empty()
    }

    /// Whether the answer to this request is waited for.
    pub fn is_waiting_for(&self, request_id: &str) -> bool {
        self.pending_collaboration_request_ids.contains_key(request_id)
    }

    /// Waits for this answer no longer, and gives the step that it was for.
    pub fn clear_waiting_state(&mut self, request_id: &str) -> Option<usize> {
        let index = self.pending_collaboration_request_ids.remove(request_id);
        if !self.is_waiting() {
            self.status = AgentStatus::ExecutingStep;
        }
        index
    }

    /// Says what came of a step that another agent was asked to do.
    pub fn update_collaboration_step_status(&mut self, index: usize, status: ResponseStatus, result_data: &str) {
        let result = match status {
            ResponseStatus::Completed => Ok(result_data.into()),
            ResponseStatus::Error => Err(Failure::new("collaboration_failed", result_data)),
            ResponseStatus::Rejected => Err(Failure::new("collaboration_rejected", result_data)),
        };
        self.current_step_index = index;
        self.settle(index, result);
    }

    /// Whether no step is open (D29).
    pub fn is_plan_finished(&self) -> bool {
        self.steps().iter().all(InternalStep::is_settled)
    }

    /// The step that has failed for good, if one has.
    pub fn failed_step(&self) -> Option<(usize, &InternalStep)> {
        self.steps().iter().enumerate().find(|(_, step)| step.status == StepStatus::Failed)
    }

    /// The steps that came to something, with that.
    pub(super) fn results(&self) -> impl Iterator<Item = (&InternalStep, &str)> {
        self.steps().iter().filter_map(|step| Some((step, step.result.as_deref()?)))
    }

    /// What came of the steps, one line each.
    pub fn get_result_summary(&self) -> String {
        let lines: Vec<_> = self.results().map(|(step, result)| format!("- {}: {result}", step.description)).collect();
        lines.join("\n")
    }

    /// What the plan comes to: the result of its last step.
    pub fn answer(&self) -> Option<Arc<str>> {
        let done = |step: &&InternalStep| step.status == StepStatus::Completed;
        self.steps().iter().rev().find(done).and_then(|step| step.result.clone())
    }

    /// Forgets the task.
    pub fn reset(&mut self) {
        *self = Self { unexpected_answers: std::mem::take(&mut self.unexpected_answers), ..Self::default() };
    }

    fn settle(&mut self, index: usize, result: Result<Arc<str>, Failure>) {
        let Some(step) = self.step_mut(index) else { return };
        match result {
            Ok(text) => {
                step.status = StepStatus::Completed;
                step.result = Some(text);
            }
            Err(failure) => {
                step.fail(&failure.to_string());
            }
        }
    }

    fn step_mut(&mut self, index: usize) -> Option<&mut InternalStep> {
        self.internal_plan.as_mut()?.steps.get_mut(index)
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::OnFailure;
    use super::*;

    fn step(id: &str) -> InternalStep {
        InternalStep::collaboration(id, "writer", id)
    }

    fn state(steps: Vec<InternalStep>) -> AgentState {
        let mut state = AgentState::default();
        state.set_current_task(TaskInfo { task_id: "t".into(), plan_id: None, description: "x".to_owned() });
        assert_eq!(state.status, AgentStatus::Planning);
        state.set_plan(InternalPlan::new(steps));
        state
    }

    fn next(state: &mut AgentState) -> Option<String> {
        state.get_next_step().map(|step| step.id.to_string())
    }

    #[test]
    fn steps_begin_in_order_and_together_where_they_say_so() {
        let mut state = state(vec![step("a"), InternalStep { together: true, ..step("b") }, step("c")]);
        assert_eq!(next(&mut state).unwrap(), "a");
        state.set_waiting_for("1.0");
        assert_eq!(next(&mut state).unwrap(), "b");
        state.set_waiting_for("1.1");
        assert_eq!((next(&mut state), state.status), (None, AgentStatus::WaitingForCollaboration));
        let index = state.clear_waiting_state("1.1").unwrap();
        state.update_collaboration_step_status(index, ResponseStatus::Completed, "B");
        assert_eq!((next(&mut state), state.is_waiting(), state.is_plan_finished()), (None, true, false));
        let index = state.clear_waiting_state("1.0").unwrap();
        state.update_collaboration_step_status(index, ResponseStatus::Completed, "A");
        assert_eq!(next(&mut state).unwrap(), "c");
        state.update_step_status(Ok("C".into()));
        assert!(state.is_plan_finished() && next(&mut state).is_none());
        assert_eq!((state.answer().as_deref(), &*state.get_result_summary()), (Some("C"), "- a: A\n- b: B\n- c: C"));
        state.reset();
        assert_eq!(state, AgentState::default());
    }

    #[test]
    fn a_plan_whose_last_step_waits_is_not_finished() {
        let mut state = state(vec![step("a")]);
        next(&mut state);
        state.set_waiting_for("1.0");
        state.advance_step();
        assert!(!state.is_plan_finished() && state.is_waiting_for("1.0") && !state.is_waiting_for("1.1"));
    }

    #[test]
    fn a_step_that_fails_is_begun_again_as_its_policy_says() {
        let mut state = state(vec![step("a").or_else([OnFailure::Retry(1)])]);
        for outcome in [Some("a"), Some("a"), None] {
            assert_eq!(next(&mut state).as_deref(), outcome);
            state.update_step_status(Err(Failure::new("no", "no")));
        }
        assert!(state.current_step_failed() && state.is_plan_finished());
    }
}
