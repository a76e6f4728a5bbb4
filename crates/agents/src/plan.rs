//! `plan`: the steps that an agent keeps in its thread, for itself and for whoever looks.

use polis_domain::{CallResult, EffectClass, Failure, Plan, Step, StepStatus};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::role::{Action, ActionResult};

/// Most steps of a plan.
const MAX_STEPS: usize = 50;

/// Longest text of a step, in characters.
const MAX_CHARS: usize = 400;

/// Keeps a plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    steps: Option<Vec<Step>>,
    step: Option<usize>,
    status: Option<StepStatus>,
    plan_id: Option<String>,
    task_id: Option<String>,
    result: Option<String>,
}

impl TurnTool for PlanTool {
    fn spec(&self) -> ToolSpec {
        let status = json!({ "type": "string", "enum": ["pending", "in_progress", "completed", "failed", "skipped"] });
        ToolSpec {
            name: "plan".into(),
            description: "Keeps your plan for work of several steps; the person sees it. Give steps to set it, or step, status and result to \
                          update one; nothing to read it."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "steps": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": { "text": { "type": "string" }, "status": { "type": "string" } },
                            "required": ["text"],
                        },
                    },
                    "step": { "type": "integer", "minimum": 1 },
                    "status": status,
                    "result": { "type": "string" },
                },
            }),
            class: EffectClass::Idempotent,
            volatile: false,
        }
    }

    async fn call(&self, turn: &mut Turn, arguments: &str) -> CallResult {
        let plan = match serde_json::from_str::<Arguments>(arguments) {
            Ok(arguments) if arguments.is_empty() => return CallResult::good(render(&turn.plan().await)),
            Ok(arguments) => arguments.applied(turn).await,
            Err(error) => Err(format!("the arguments cannot be used: {error}")),
        };
        let set = match plan.and_then(checked) {
            Ok(plan) => turn.set_plan(plan.clone()).await.map(|()| render(&plan)).map_err(|failure| failure.to_string()),
            Err(reason) => Err(reason),
        };
        set.map_or_else(CallResult::failed, CallResult::good)
    }
}

/// `PlanTool.update_task_status` of a role (R349): with `plan`, it records how a whole plan ended. Other calls are those
/// of models.
impl Action for PlanTool {
    async fn run(&self, turn: &mut Turn, params: &Map<String, Value>) -> Result<ActionResult, Failure> {
        if let Some(plan) = params.get("plan") {
            let unreadable = |error| Failure::new("bad_plan", format!("the plan cannot be read: {error}"));
            // A simple task has no plan to write into.
            let Some(mut plan) = Option::<Plan>::deserialize(plan).map_err(unreadable)? else { return Ok("".into()) };
            plan.status = params.get("status").and_then(|status| StepStatus::deserialize(status).ok());
            plan.result = params.get("result").and_then(Value::as_str).map(Into::into);
            turn.set_plan(plan.clone()).await?;
            return Ok(render(&plan).into());
        }
        let result = self.call(turn, &Value::Object(params.clone()).to_string()).await;
        if result.is_error { Err(Failure::new("tool_failed", &*result.content)) } else { Ok((*result.content).into()) }
    }
}

impl Arguments {
    fn is_empty(&self) -> bool {
        self.steps.is_none() && self.step.is_none() && self.status.is_none() && self.task_id.is_none() && self.result.is_none()
    }

    async fn applied(self, turn: &mut Turn) -> Result<Plan, String> {
        let Self { steps, step, status, plan_id, task_id, result } = self;
        let task = task_id.or_else(|| step.map(|number| number.to_string()));
        match (steps, task, status) {
            (Some(steps), None, None) if plan_id.is_none() && result.is_none() => {
                Ok(Plan { id: Some(turn.new_id("plan").into()), steps, ..Plan::default() })
            }
            (None, Some(task), Some(status)) => {
                let mut plan = turn.plan().await;
                if let Some(id) = plan_id.filter(|id| plan.id.as_deref() != Some(id.as_str())) {
                    return Err(format!(
                        "`{id}` is not your plan; the one you have is {}",
                        plan.id.as_deref().unwrap_or("without an id")
                    ));
                }
                let count = plan.steps.len();
                if plan.update_task_status(&task, status, result.map(Into::into)) {
                    Ok(plan)
                } else {
                    Err(format!("the plan has {count} steps, and none with the number {task}"))
                }
            }
            _ => Err("give either steps, or step and status, or nothing".to_owned()),
        }
    }
}

fn checked(plan: Plan) -> Result<Plan, String> {
    if plan.steps.len() > MAX_STEPS {
        return Err(format!("a plan has at most {MAX_STEPS} steps; put some together"));
    }
    match plan.steps.iter().position(|step| !fits(step)) {
        Some(place) => Err(format!("step {} needs a text of at most {MAX_CHARS} characters, and no longer result", place + 1)),
        None => Ok(plan),
    }
}

fn fits(step: &Step) -> bool {
    let short = |text: &str| text.chars().count() <= MAX_CHARS;
    !step.text.trim().is_empty() && short(&step.text) && step.result.as_deref().is_none_or(short)
}

fn render(plan: &Plan) -> String {
    if plan.steps.is_empty() { "There is no plan.".to_owned() } else { plan.to_string().trim_end().to_owned() }
}
