//! The base of all roles (R328-R331, R354-R356): everything has a default, and everything can be said otherwise.

use std::future::Future;
use std::sync::Arc;

use polis_domain::{Failure, Response, StepStatus, SubThreadRequest};
use polis_engine::{Agent, Operation, SubThreads, Turn};

use crate::conversation::tell_environment;
use crate::converse::compress_operation;

use super::message::{StructuredMessage, TaskInfo};
use super::options::RoleParts;
use super::plan::{InternalPlan, InternalStep, shortened};
use super::state::AgentState;
use super::strategy::{self, Choice, PlanningStrategy, STRATEGY, WORKFLOW};
use super::{action, execute, planner};

/// What every role does: it takes a task in, chooses a strategy, plans, carries the plan out, asks others, and says what came
/// of it. A role that differs says where; [`RoleAgent`] says nothing and is whole.
///
/// The state is worked out anew in each run of the turn: all that it depends on is in the log. An implementation is registered
/// as `Member(role)`; one that is part of something else calls [`AgentBaseRole::process_message`] itself.
pub trait AgentBaseRole: Send + Sync + 'static {
    /// Its actions, tools, model settings and procedures.
    fn parts(&self) -> &RoleParts;

    /// Whether a message is a task (R331): whatever is no answer.
    fn is_task_assignment(&self, message: &StructuredMessage) -> bool {
        message.response.is_none()
    }

    /// The task of a message.
    fn parse_task(&self, message: &StructuredMessage) -> TaskInfo {
        let word = |key: &str| message.meta.get(key).and_then(|value| value.as_str()).map(Arc::from);
        TaskInfo {
            task_id: word("taskId").unwrap_or_else(|| message.task_id.clone()),
            plan_id: word("planId"),
            description: message.text.to_string(),
        }
    }

    /// Whether a message answers a request.
    fn is_collaboration_response(&self, message: &StructuredMessage) -> bool {
        message.response.is_some()
    }

    /// The plan for a simple task: one step.
    fn create_simple_plan(&self, task: &TaskInfo) -> InternalPlan {
        InternalPlan::new([InternalStep::action("step_1", action::CONVERSE, task.description.clone())])
    }

    /// Does what a message asks for: a task is carried out, an answer is taken in where it is waited for (R330). An answer that
    /// is not waited for is noted and changes nothing (D29).
    ///
    /// Write `async fn process_message(&self, turn: &mut Turn, state: &mut AgentState, message: &StructuredMessage) ->
    /// Result<Option<Response>, Failure>`.
    fn process_message(
        &self,
        turn: &mut Turn,
        state: &mut AgentState,
        message: &StructuredMessage,
    ) -> impl Future<Output = Result<Option<Response>, Failure>> + Send {
        async move {
            if self.is_task_assignment(message) {
                let task = self.parse_task(message);
                return self.execute_task(turn, state, task).await.map(Some);
            }
            if self.is_collaboration_response(message) {
                self.handle_collaboration_response(state, message);
            }
            Ok(None)
        }
    }

    /// Carries a task out: strategy, plan, steps, end (R333).
    fn execute_task(
        &self,
        turn: &mut Turn,
        state: &mut AgentState,
        task: TaskInfo,
    ) -> impl Future<Output = Result<Response, Failure>> + Send {
        async move {
            state.set_current_task(task.clone());
            let choice = self.determine_planning_strategy(turn, &task).await?;
            match self.follow_strategy(turn, state, &task, &choice).await {
                Err(failure) if strategy::is_handed_over(&failure) => {
                    state.reset();
                    state.set_current_task(task.clone());
                    self.follow_strategy(turn, state, &task, &Choice::by_model(&failure)).await
                }
                done => done,
            }
        }
    }

    /// Plans a task as the choice says, and carries the plan out.
    fn follow_strategy(
        &self,
        turn: &mut Turn,
        state: &mut AgentState,
        task: &TaskInfo,
        choice: &Choice,
    ) -> impl Future<Output = Result<Response, Failure>> + Send {
        async move {
            let is_free = choice.strategy == PlanningStrategy::ComplexFreeform;
            if let (true, Some(_)) = (is_free, &self.parts().workflow) {
                // The roles of the workflow are shown what this thread was told.
                tell_environment(turn, &self.parts().view(turn)).await?;
                return self.follow_workflow(turn, state, task, choice).await;
            }
            let record = execute::Record::new(turn, choice);
            if is_free {
                record.write(turn, state).await?;
            }
            let made = async {
                let plan = match choice.strategy {
                    PlanningStrategy::Simple => self.create_simple_plan(task),
                    _ => self.generate_internal_plan(turn, task, choice).await?,
                };
                state.set_plan(plan);
                self.execute_internal_plan(turn, state, &record).await
            };
            match made.await {
                Ok(made) => self.finalize_task(turn, state, &record, made).await,
                Err(failure) if strategy::is_handed_over(&failure) => Err(failure),
                Err(failure) => {
                    let why = Some(failure.message.as_str());
                    self.update_task_status_in_plan_tool(turn, state, &record, StepStatus::Failed, why).await?;
                    Err(failure)
                }
            }
        }
    }

    /// Has the workflow plan a task and carry it out, in a sub-thread.
    fn follow_workflow(
        &self,
        turn: &mut Turn,
        state: &mut AgentState,
        task: &TaskInfo,
        choice: &Choice,
    ) -> impl Future<Output = Result<Response, Failure>> + Send {
        async move {
            let record = execute::Record::new(turn, choice);
            let request = SubThreadRequest::new(WORKFLOW, &*task.description);
            let result = execute::in_workflow(turn, state, &record, request).await?;
            let status = if result.failure.is_none() { StepStatus::Completed } else { StepStatus::Failed };
            self.update_task_status_in_plan_tool(turn, state, &record, status, Some(&result.text)).await?;
            match result.failure.clone() {
                Some(failure) => Err(failure),
                None => Ok(result.into()),
            }
        }
    }

    /// Chooses how to go about a task (R334, R335). What it depends on beside the log must be noted with [`Turn::once`].
    fn determine_planning_strategy(
        &self,
        turn: &mut Turn,
        task: &TaskInfo,
    ) -> impl Future<Output = Result<Choice, Failure>> + Send {
        strategy::choose(self.parts(), turn, task)
    }

    /// Makes the plan for a task that is not simple (R337): the procedure's, or one by the model.
    fn generate_internal_plan(
        &self,
        turn: &mut Turn,
        task: &TaskInfo,
        choice: &Choice,
    ) -> impl Future<Output = Result<InternalPlan, Failure>> + Send {
        async move {
            match &choice.plan {
                Some(plan) => Ok(plan.clone()),
                None => planner::plan(self.parts(), turn, task).await,
            }
        }
    }

    /// Carries the plan out until no step is open (R341), or one has failed for good. Gives the response of the last step that
    /// was the agent's own.
    fn execute_internal_plan(
        &self,
        turn: &mut Turn,
        state: &mut AgentState,
        record: &execute::Record,
    ) -> impl Future<Output = Result<Option<Response>, Failure>> + Send {
        execute::run(self, turn, state, record)
    }

    /// Takes in what came of a request (R345). Gives whether it was waited for.
    fn handle_collaboration_response(&self, state: &mut AgentState, message: &StructuredMessage) -> bool {
        let Some(response) = &message.response else { return false };
        match state.clear_waiting_state(&response.request_id) {
            Some(index) => {
                state.update_collaboration_step_status(index, response.status, &response.result_data);
                true
            }
            None => {
                state.unexpected_answers.push(response.request_id.clone());
                false
            }
        }
    }

    /// Records what became of a task with the tool [`super::PLAN_TOOL`] of the role (R349): `task_id`, `status`, `result`,
    /// `plan_id` and `plan`. The role's own [`crate::PlanTool`] writes it into the plan; a simple task has none,
    /// and the end of its turn is its record.
    fn update_task_status_in_plan_tool(
        &self,
        turn: &mut Turn,
        state: &AgentState,
        record: &execute::Record,
        status: StepStatus,
        result: Option<&str>,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let params = record.end(state, status, result.map(shortened).as_deref());
        self.parts().tools.update_task_status(turn, params)
    }

    /// Ends the task (R348, R350): the plan says how, and the state is forgotten.
    fn finalize_task(
        &self,
        turn: &mut Turn,
        state: &mut AgentState,
        record: &execute::Record,
        made: Option<Response>,
    ) -> impl Future<Output = Result<Response, Failure>> + Send {
        async move {
            let failed = state.failed_step().map(|(index, step)| execute::step_failed(record, index, step));
            let (status, told) = match &failed {
                Some(failure) => (StepStatus::Failed, Some(failure.message.clone())),
                None => (StepStatus::Completed, state.answer().map(|answer| answer.to_string())),
            };
            self.update_task_status_in_plan_tool(turn, state, record, status, told.as_deref()).await?;
            let answer = state.answer().map_or_else(|| state.get_result_summary(), |answer| answer.to_string());
            state.reset();
            if let Some(failure) = failed {
                return Err(failure);
            }
            let mut response = match made {
                Some(made) if made.full_message() == answer => made,
                _ => Response::new(answer),
            };
            record.note(&mut response);
            Ok(response)
        }
    }
}

/// A role as an agent: `Cast::new().with("analyst", Member(AnalystRole))`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Member<R>(pub R);

impl<R: AgentBaseRole> Agent for Member<R> {
    fn sub_threads(&self) -> SubThreads {
        self.0.parts().workflow.clone().unwrap_or_default()
    }

    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        receive(&self.0, turn).await
    }
}

/// The role that ships: all defaults.
#[derive(Clone, Default)]
pub struct RoleAgent {
    /// What it is made of.
    pub parts: RoleParts,
}

impl AgentBaseRole for RoleAgent {
    fn parts(&self) -> &RoleParts {
        &self.parts
    }
}

impl Agent for RoleAgent {
    fn sub_threads(&self) -> SubThreads {
        self.parts.workflow.clone().unwrap_or_default()
    }

    fn operations(&self) -> Vec<Operation> {
        vec![compress_operation()]
    }

    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        receive(self, turn).await
    }
}

/// Routes what a turn has to do to the role (R354).
async fn receive<R: AgentBaseRole>(role: &R, turn: &mut Turn) -> Result<Response, Failure> {
    let message = StructuredMessage::of(turn);
    let mut state = AgentState::default();
    match role.process_message(turn, &mut state, &message).await? {
        Some(response) => Ok(response),
        None => {
            // It stands in the thread as what was said; nobody waits for it.
            let ids = state.unexpected_answers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let mut response = Response::new(format!("Noted; no request {ids} is open (没有等待中的请求)."));
            response.meta.insert(STRATEGY.to_owned(), serde_json::Value::Null);
            Ok(response)
        }
    }
}
