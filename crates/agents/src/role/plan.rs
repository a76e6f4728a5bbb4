//! An internal plan: steps that an agent does itself and steps that others do for it, and what to do when one fails (D29).

use std::sync::Arc;

use polis_domain::{Approach, Plan, Step, StepStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::action::{REQUEST_COLLABORATION, WORK};

/// Longest result of a step that a recorded plan shows, in characters. The whole one is in the log.
const SHOWN_CHARS: usize = 300;

/// What kind of step it is (R339).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StepType {
    /// An action of the agent's own.
    #[default]
    ExecuteAction,
    /// One call of a tool.
    UseTool,
    /// Another agent is asked.
    RequestCollaboration,
}

/// What follows when a step fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The task fails.
    Fail,
    /// It is tried so many times more.
    Retry(u32),
    /// Another agent is asked.
    Another(Arc<str>),
    /// The agent does it itself.
    Myself,
}

/// One step (R340).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InternalStep {
    /// Its name within the plan.
    pub id: Arc<str>,
    /// What kind of step it is.
    #[serde(rename = "type")]
    pub kind: StepType,
    /// The action, by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_name: Option<Arc<str>>,
    /// The tool, by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<Arc<str>>,
    /// What the action or tool is given.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// Who is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Arc<str>>,
    /// What is to be done.
    pub description: String,
    /// What whoever does it should know.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// Whether it begins together with the step before it instead of after it.
    pub together: bool,
    /// How long another agent's answer is waited for; the role's usual time if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What to do when it fails, one after another; the task fails when nothing is left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_failure: Vec<OnFailure>,
    /// How far it is.
    pub status: StepStatus,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<str>>,
}

/// Steps, in order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InternalPlan {
    /// All of them.
    pub steps: Vec<InternalStep>,
}

impl InternalStep {
    /// A step that the agent does by an action.
    pub fn action(id: impl Into<Arc<str>>, action: &str, description: impl Into<String>) -> Self {
        let (id, description) = (id.into(), description.into());
        Self { id, action_name: Some(action.into()), description, ..Self::default() }
    }

    /// A step that is one call of a tool.
    pub fn tool(id: impl Into<Arc<str>>, tool: &str, params: Map<String, Value>) -> Self {
        let description = format!("{tool} {}", Value::Object(params.clone()));
        let (id, tool_name) = (id.into(), Some(tool.into()));
        Self { id, kind: StepType::UseTool, tool_name, params, description, ..Self::default() }
    }

    /// A step that another agent does.
    pub fn collaboration(id: impl Into<Arc<str>>, target: &str, description: impl Into<String>) -> Self {
        let (id, description) = (id.into(), description.into());
        let mut step = Self { id, description, ..Self::default() };
        step.ask(target.into());
        step
    }

    /// The same step, with what to do when it fails.
    pub fn or_else(mut self, policy: impl IntoIterator<Item = OnFailure>) -> Self {
        self.on_failure.extend(policy);
        self
    }

    /// Whether nothing is left to do for it.
    pub fn is_settled(&self) -> bool {
        !matches!(self.status, StepStatus::Pending | StepStatus::InProgress)
    }

    fn ask(&mut self, target: Arc<str>) {
        self.kind = StepType::RequestCollaboration;
        self.action_name = Some(REQUEST_COLLABORATION.into());
        self.tool_name = None;
        self.target = Some(target);
    }

    /// Takes in that it failed: its policy says whether it is begun again, and how. False when nothing is left to try.
    pub(super) fn fail(&mut self, why: &str) -> bool {
        self.result = Some(why.into());
        self.status = StepStatus::Pending;
        let Some(policy) = self.on_failure.first().cloned() else {
            self.status = StepStatus::Failed;
            return false;
        };
        match policy {
            OnFailure::Retry(times @ 2..) => self.on_failure[0] = OnFailure::Retry(times - 1),
            OnFailure::Retry(1) => drop(self.on_failure.remove(0)),
            OnFailure::Retry(0) => {
                self.on_failure.remove(0);
                return self.fail(why);
            }
            OnFailure::Another(agent) => {
                self.on_failure.remove(0);
                self.ask(agent);
            }
            OnFailure::Myself => {
                self.on_failure.remove(0);
                self.kind = StepType::ExecuteAction;
                (self.action_name, self.tool_name, self.target) = (Some(WORK.into()), None, None);
            }
            OnFailure::Fail => self.status = StepStatus::Failed,
        }
        self.status == StepStatus::Pending
    }
}

impl InternalPlan {
    /// A plan of these steps.
    pub fn new(steps: impl IntoIterator<Item = InternalStep>) -> Self {
        Self { steps: steps.into_iter().collect() }
    }

    /// What people and agents can read of it.
    pub(super) fn to_plan(&self, id: &Arc<str>, strategy: &Arc<Approach>) -> Plan {
        let steps = self.steps.iter().map(|step| Step {
            id: Some(step.id.clone()),
            text: step.description.clone(),
            status: step.status,
            target: step.target.clone(),
            result: step.result.as_deref().map(shortened),
        });
        Plan { id: Some(id.clone()), strategy: Some(strategy.clone()), steps: steps.collect(), ..Plan::default() }
    }
}

/// The beginning of a text that is too long to be shown.
pub(super) fn shortened(text: &str) -> Arc<str> {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_used_up_from_its_front() {
        let policy = [OnFailure::Retry(2), OnFailure::Another("editor".into()), OnFailure::Myself];
        let mut step = InternalStep::collaboration("s1", "writer", "write").or_else(policy);
        let mut told = Vec::new();
        while step.fail("no") {
            told.push((step.kind, step.target.clone().unwrap_or_default().to_string()));
        }
        let asked = |who: &str| (StepType::RequestCollaboration, who.to_owned());
        let own = (StepType::ExecuteAction, String::new());
        assert_eq!(told, [asked("writer"), asked("writer"), asked("editor"), own]);
        assert_eq!(step.status, StepStatus::Failed);
    }

    #[test]
    fn a_step_that_says_fail_tries_nothing_that_stands_after_it() {
        let mut step = InternalStep::action("s1", WORK, "x").or_else([OnFailure::Fail, OnFailure::Myself]);
        assert!(!step.fail("no"));
        assert_eq!((step.status, step.result.as_deref()), (StepStatus::Failed, Some("no")));
    }
}
