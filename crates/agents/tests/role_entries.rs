//! What a role can replace: its actions, its tools, and the hooks of document 004 (R331, R342, R345, R349, R355).

use std::sync::{Arc, Mutex};

use polis_agents::RoleAgent;
use polis_agents::role::{
    Action, ActionResult, AgentBaseRole, AgentState, AskAgent, CONVERSE, Choice, InternalPlan, InternalStep, PLAN_TOOL,
    PlanningStrategy, REQUEST_COLLABORATION, ResponseStatus, RoleParts, Sops, StructuredMessage, TaskInfo, WORK,
};
use polis_domain::{Failure, StepStatus};
use polis_engine::Turn;
use serde_json::{Map, Value, json};

use crate::role::{COLLEAGUES, Founder, bed, sop};

type Seen = Arc<Mutex<Vec<Value>>>;
type Answers = Arc<Mutex<Vec<(ResponseStatus, Arc<str>)>>>;

/// Notes what it is given, and answers with a text.
struct Noting(Seen, &'static str);

impl Action for Noting {
    async fn run(&self, _: &mut Turn, params: &Map<String, Value>) -> Result<ActionResult, Failure> {
        self.0.lock().unwrap().push(Value::Object(params.clone()));
        Ok(self.1.into())
    }
}

fn parts_of(steps: &str) -> RoleParts {
    sop(steps).parts
}

#[tokio::test(start_paused = true)]
async fn each_action_can_be_replaced() {
    let seen = Seen::default();
    let instead = |name: &str, steps: &str| parts_of(steps).with_action(name, Noting(seen.clone(), "mine"));
    for (name, steps, request) in [
        (REQUEST_COLLABORATION, "1. @nobody Write about {what}. (within 5 minutes)", "write about fish"),
        (WORK, "1. outline {what}", "write about fish"),
        (CONVERSE, "1. outline {what}", "hello"),
    ] {
        let bed = bed(Founder(RoleAgent { parts: instead(name, steps) }, COLLEAGUES)).await;
        assert_eq!(bed.ask(request).await.unwrap(), "mine", "{name}");
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    let asked = json!({
        "target_name": "nobody",
        "subtask_description": "Write about fish.",
        "context": "This is a part of: write about fish",
        "timeout_ms": 300_000,
        "plan_id": seen[0]["plan_id"],
        "task_id": "step_1",
    });
    assert_eq!(seen[0], asked);
    assert!(seen[0]["plan_id"].as_str().unwrap().starts_with("plan_"));
}

/// Sends every request to the reader.
struct Redirect;

impl Action for Redirect {
    async fn run(&self, turn: &mut Turn, params: &Map<String, Value>) -> Result<ActionResult, Failure> {
        let mut params = params.clone();
        params.insert("target_name".to_owned(), "reader".into());
        AskAgent.run(turn, &params).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_that_asks_another_agent_leaves_its_step_pending_until_the_answer() {
    let parts =
        parts_of("1. @writer Write.\n2. @failing Read. (at the same time)").with_action(REQUEST_COLLABORATION, Redirect);
    let bed = bed(Founder(RoleAgent { parts }, COLLEAGUES)).await;
    assert_eq!(bed.ask("write about fish").await.unwrap(), "reader did: Read.");
    let pending = |plan: &polis_domain::Plan| plan.steps.iter().all(|step| step.status == StepStatus::InProgress);
    assert!(bed.plans().iter().any(pending), "two requests are pending at once");
}

#[tokio::test(start_paused = true)]
async fn a_replaced_plan_tool_records_the_end_of_every_task_and_nothing_else_does() {
    let seen = Seen::default();
    let parts = parts_of("1. @failing do").with_tool(PLAN_TOOL, Noting(seen.clone(), ""));
    let parts = parts.with_action(CONVERSE, Noting(Seen::default(), "hello yourself"));
    let bed = bed(Founder(RoleAgent { parts }, COLLEAGUES)).await;
    assert_eq!(bed.ask("hello").await.unwrap(), "hello yourself");
    let failure = bed.ask("write about fish").await.unwrap_err();
    assert!(bed.plans().iter().all(|plan| plan.status.is_none()), "the plan has no end that the tool did not write");
    let seen = seen.lock().unwrap();
    let [simple, planned] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((&simple["status"], &simple["result"]), (&json!("completed"), &json!("hello yourself")));
    assert_eq!((&simple["plan_id"], &simple["plan"]), (&Value::Null, &Value::Null));
    assert!(simple["task_id"].is_string());
    assert_eq!((&planned["status"], &planned["result"]), (&json!("failed"), &json!(failure.message)));
    assert_eq!(planned["plan_id"], bed.plans()[0].id.as_deref().unwrap());
    assert_eq!(planned["plan"]["steps"][0]["status"], "failed");
}

/// Fails each time.
struct Broken;

impl Action for Broken {
    async fn run(&self, _: &mut Turn, _: &Map<String, Value>) -> Result<ActionResult, Failure> {
        Err(Failure::new("broken", "it is broken"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_simple_task_that_fails_is_recorded_as_failed_with_its_own_reason() {
    let seen = Seen::default();
    let parts = RoleParts::default().with_action(CONVERSE, Broken).with_tool(PLAN_TOOL, Noting(seen.clone(), ""));
    assert_eq!(&*bed(RoleAgent { parts }).await.ask("hello").await.unwrap_err().code, "broken");
    let seen = seen.lock().unwrap();
    assert_eq!((seen.len(), &seen[0]["status"], &seen[0]["result"]), (1, &json!("failed"), &json!("it is broken")));
}

#[tokio::test(start_paused = true)]
async fn a_step_uses_a_tool_of_the_role_or_one_of_the_society_by_another_name() {
    let seen = Seen::default();
    let mut parts =
        parts_of("1. tool `Scale` {\"kg\":2}\n2. tool `Notes` {}").with_tool("Scale", Noting(seen.clone(), "heavy"));
    parts.tools = parts.tools.with_alias("Notes", "plan");
    let bed = bed(Founder(RoleAgent { parts }, COLLEAGUES)).await;
    assert!(bed.ask("write about fish").await.unwrap().contains("[>] Notes {}"), "the society's tool reads the plan");
    assert_eq!(*seen.lock().unwrap(), [json!({ "kg": 2 })]);
}

/// A role that overrides all four hooks: tasks begin with `do`, answers are those of a certain agent, and so on.
struct Strict {
    parts: RoleParts,
    answers: Answers,
}

impl AgentBaseRole for Strict {
    fn parts(&self) -> &RoleParts {
        &self.parts
    }

    fn is_task_assignment(&self, message: &StructuredMessage) -> bool {
        message.text.starts_with("do ")
    }

    fn parse_task(&self, message: &StructuredMessage) -> TaskInfo {
        let description = message.text.trim_start_matches("do ").to_owned();
        TaskInfo { task_id: message.task_id.clone(), plan_id: None, description }
    }

    fn is_collaboration_response(&self, message: &StructuredMessage) -> bool {
        message.response.as_ref().is_some_and(|response| &*response.result_data != "writer did: hidden")
    }

    fn create_simple_plan(&self, task: &TaskInfo) -> InternalPlan {
        InternalPlan::new([InternalStep::action("twice", "Twice", format!("{0} {0}", task.description))])
    }

    async fn determine_planning_strategy(&self, _: &mut Turn, task: &TaskInfo) -> Result<Choice, Failure> {
        let step = |id: &str, agent: &str| InternalStep::collaboration(id, agent, task.description.clone());
        let (strategy, plan) = match &*task.description {
            "plan" => {
                (PlanningStrategy::ComplexTemplate, Some(InternalPlan::new([step("a", "writer"), step("b", "rejecting")])))
            }
            "hidden" => (PlanningStrategy::ComplexTemplate, Some(InternalPlan::new([step("a", "writer")]))),
            _ => (PlanningStrategy::Simple, None),
        };
        Ok(Choice { strategy, reason: "it says so".to_owned(), plan })
    }

    fn handle_collaboration_response(&self, state: &mut AgentState, message: &StructuredMessage) -> bool {
        let response = message.response.as_ref().unwrap();
        self.answers.lock().unwrap().push((response.status, response.result_data.clone()));
        let Some(index) = state.clear_waiting_state(&response.request_id) else { return false };
        state.update_collaboration_step_status(index, response.status, &response.result_data);
        true
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_overrides_each_hook_and_sees_the_status_of_each_answer() {
    let answers = Answers::default();
    let seen = Seen::default();
    let parts = RoleParts::new("strict").with_sops(Sops::default()).with_action("Twice", Noting(seen.clone(), "twice it is"));
    let bed = bed(Founder(Strict { parts, answers: Arc::clone(&answers) }, COLLEAGUES)).await;
    assert_eq!(bed.ask("good morning").await.unwrap(), "", "it is no task");
    assert_eq!(bed.ask("do jump").await.unwrap(), "twice it is");
    assert_eq!(seen.lock().unwrap().len(), 1);
    let failure = bed.ask("do plan").await.unwrap_err();
    assert!(failure.message.contains("that is the writer's work"), "{failure}");
    let completed = (ResponseStatus::Completed, "writer did: plan".into());
    let rejected = (ResponseStatus::Rejected, "that is the writer's work".into());
    assert_eq!(*answers.lock().unwrap(), [completed, rejected]);
    // What the role does not take for an answer changes nothing: its step stays open.
    bed.ask("do hidden").await.unwrap();
    assert_eq!(bed.plans().pop().unwrap().steps[0].status, StepStatus::InProgress);
    assert_eq!(answers.lock().unwrap().len(), 2);
}
