//! `plan`: the steps that an agent keeps in its thread, for itself and for whoever looks.

use polis_domain::{CallResult, EffectClass, Plan, Step, StepStatus};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::json;

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
}

impl TurnTool for PlanTool {
    fn spec(&self) -> ToolSpec {
        let status = json!({ "type": "string", "enum": ["pending", "in_progress", "completed", "failed", "skipped"] });
        ToolSpec {
            name: "plan".into(),
            description:
                "Keeps your plan for work of several steps, where the person can see it. Give steps to set all of it, or \
                          step and status to move one step on; give nothing to read it."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "steps": {
                        "type": "array",
                        "description": "All steps, in order",
                        "items": {
                            "type": "object",
                            "properties": { "text": { "type": "string" }, "status": status },
                            "required": ["text"],
                            "additionalProperties": false,
                        },
                    },
                    "step": { "type": "integer", "minimum": 1, "description": "The number of a step; the first is 1" },
                    "status": status,
                },
                "additionalProperties": false,
            }),
            class: EffectClass::Idempotent,
            volatile: false,
        }
    }

    async fn call(&self, turn: &mut Turn, arguments: &str) -> CallResult {
        let plan = match serde_json::from_str(arguments) {
            Ok(Arguments { steps: None, step: None, status: None }) => return CallResult::good(shown(&turn.plan().await)),
            Ok(arguments) => arguments.applied(turn).await,
            Err(error) => Err(format!("the arguments cannot be used: {error}")),
        };
        let set = match plan.and_then(checked) {
            Ok(plan) => turn.set_plan(plan.clone()).await.map(|()| shown(&plan)).map_err(|failure| failure.to_string()),
            Err(reason) => Err(reason),
        };
        set.map_or_else(CallResult::failed, CallResult::good)
    }
}

impl Arguments {
    async fn applied(self, turn: &mut Turn) -> Result<Plan, String> {
        match (self.steps, self.step, self.status) {
            (Some(steps), None, None) => Ok(Plan { steps, ..Plan::default() }),
            (None, Some(number), Some(status)) => {
                let mut plan = turn.plan().await;
                let count = plan.steps.len();
                let step = number.checked_sub(1).and_then(|place| plan.steps.get_mut(place));
                step.ok_or_else(|| format!("the plan has {count} steps, and none with the number {number}"))?.status = status;
                Ok(plan)
            }
            _ => Err("give either steps, or step and status, or nothing".to_owned()),
        }
    }
}

fn checked(plan: Plan) -> Result<Plan, String> {
    if plan.steps.len() > MAX_STEPS {
        return Err(format!("a plan has at most {MAX_STEPS} steps; put some together"));
    }
    match plan.steps.iter().position(|step| step.text.trim().is_empty() || step.text.chars().count() > MAX_CHARS) {
        Some(place) => Err(format!("step {} needs a text of at most {MAX_CHARS} characters", place + 1)),
        None => Ok(plan),
    }
}

fn shown(plan: &Plan) -> String {
    if plan.steps.is_empty() { "There is no plan.".to_owned() } else { plan.to_string().trim_end().to_owned() }
}
