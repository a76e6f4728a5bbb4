//! A plan by the model, for a task that no procedure fits (R337, R338).

use std::sync::Arc;

use polis_domain::{Failure, StepStatus};
use polis_engine::Turn;
use polis_ports::{ChatMessage, Format, ModelRequest};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::action::WORK;
use super::message::TaskInfo;
use super::options::RoleParts;
use super::plan::{InternalPlan, InternalStep, OnFailure, StepType};
use super::strategy::language;
use crate::conversation::conversation;
use crate::converse::system_prompt;
use crate::workflow::Language;

/// Most steps of a plan.
const MAX_STEPS: usize = 20;

const EN: &str = include_str!("../../prompts/role_planner.en.md");
const ZH: &str = include_str!("../../prompts/role_planner.zh.md");

/// A step as the model writes it.
#[derive(Deserialize)]
struct ProposedStep {
    #[serde(rename = "type", default)]
    kind: StepType,
    description: String,
    #[serde(default)]
    target: String,
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    together: bool,
}

/// Has the model plan. What cannot be read is said to it once; then the task is one step.
pub(super) async fn plan(parts: &RoleParts, turn: &mut Turn, task: &TaskInfo) -> Result<InternalPlan, Failure> {
    let messages = conversation(turn, &parts.view(turn)).await?;
    let prompt = system_prompt(turn).await;
    let template = match language(task) {
        Language::En => EN,
        Language::Zh => ZH,
    };
    let people: Vec<_> = parts.collaborators.iter().map(|(name, what)| format!("- {name}: {what}")).collect();
    let tools: Vec<_> = turn.tools().iter().map(|tool| format!("- {}: {}", tool.name, tool.description)).collect();
    let listed = |lines: Vec<String>| if lines.is_empty() { "-".to_owned() } else { lines.join("\n") };
    let instructions = template.replace("{{collaborators}}", &listed(people)).replace("{{tools}}", &listed(tools));
    let mut request = ModelRequest {
        system: format!("{prompt}\n\n{instructions}").trim().into(),
        messages,
        format: Some(Arc::new(Format { name: "plan".to_owned(), schema: schema() })),
        aside: true,
        purpose: "plan".into(),
        ..ModelRequest::default()
    };
    for _ in 0..2 {
        let reply = turn.model(request.clone()).await?;
        match read(parts, &reply.text) {
            Ok(plan) => return Ok(plan),
            Err(wrong) => {
                request.messages.push(ChatMessage::said(&reply));
                request.messages.push(ChatMessage::user(format!("That is no plan: {wrong}. Write the JSON object again.")));
            }
        }
    }
    Ok(InternalPlan::new([InternalStep::action("step_1", WORK, task.description.clone())]))
}

fn read(parts: &RoleParts, text: &str) -> Result<InternalPlan, String> {
    #[derive(Deserialize)]
    struct Reply {
        steps: Vec<ProposedStep>,
    }
    let object = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
    let Reply { steps } = serde_json::from_str(object.ok_or("it has no JSON object")?).map_err(|error| error.to_string())?;
    if steps.is_empty() || steps.len() > MAX_STEPS {
        return Err(format!("it has {} steps; write 1 to {MAX_STEPS}", steps.len()));
    }
    Ok(InternalPlan::new((1..).zip(steps).map(|(n, step)| step.checked(parts, &format!("step_{n}")))))
}

impl ProposedStep {
    /// The step as it can be done: what names nobody and no tool is the agent's own.
    fn checked(self, parts: &RoleParts, id: &str) -> InternalStep {
        let Self { kind, description, target, tool_name, params, together } = self;
        let target = target.trim_start_matches('@').trim().to_owned();
        let known = parts.collaborators.iter().any(|(name, _)| **name == *target);
        let mut step = match kind {
            StepType::RequestCollaboration if known => {
                InternalStep::collaboration(id, &target, description).or_else([OnFailure::Retry(1), OnFailure::Myself])
            }
            StepType::UseTool if !tool_name.trim().is_empty() => {
                let step = InternalStep::tool(id, tool_name.trim(), params).or_else([OnFailure::Myself]);
                InternalStep { description, ..step }
            }
            _ => InternalStep::action(id, WORK, description),
        };
        step.together = together;
        step.status = StepStatus::Pending;
        step
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "steps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "type": { "type": "string", "enum": ["EXECUTE_ACTION", "USE_TOOL", "REQUEST_COLLABORATION"] },
                        "description": { "type": "string" },
                        "target": { "type": "string" },
                        "tool_name": { "type": "string" },
                        "params": { "type": "object" },
                        "together": { "type": "boolean" },
                    },
                    "required": ["type", "description"],
                },
            },
        },
        "required": ["steps"],
    })
}
