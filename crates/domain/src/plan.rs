//! A plan: the few steps that an agent keeps in its thread, for itself and for whoever looks.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Where a plan stands in a thread's settings.
pub const PLAN: &str = "plan";

/// Steps, in order; and for whom, how and with what result they are done, where that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// Its name (`plan_id`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// How it was made: by which strategy, and why that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Arc<Approach>>,
    /// All steps.
    pub steps: Vec<Step>,
    /// What became of all of it: `completed` or `failed`; none while it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StepStatus>,
    /// What came of it, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<str>>,
}

/// How an agent goes about a task, and why so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Approach {
    /// `simple`, `template` or `workflow`.
    pub name: Arc<str>,
    /// What decided it.
    pub reason: String,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// Its name within the plan (`task_id`); where it has none, its number is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// What is to be done.
    pub text: String,
    /// How far it is.
    #[serde(default)]
    pub status: StepStatus,
    /// Who does it, where that is another agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Arc<str>>,
    /// What came of it, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<str>>,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
    /// It came to nothing.
    Failed,
    /// Not needed any more.
    Skipped,
}

impl StepStatus {
    /// A mark for lists.
    fn mark(self) -> char {
        match self {
            Self::Pending => ' ',
            Self::InProgress => '>',
            Self::Completed => 'x',
            Self::Failed => '!',
            Self::Skipped => '-',
        }
    }
}

impl Plan {
    /// Moves the step of this name or number on, and notes what came of it (`update_task_status`). False when there is none.
    pub fn update_task_status(&mut self, task: &str, status: StepStatus, result: Option<Arc<str>>) -> bool {
        let named = self.steps.iter().position(|step| step.id.as_deref() == Some(task));
        let numbered = || task.parse::<usize>().ok()?.checked_sub(1);
        let Some(step) = named.or_else(numbered).and_then(|place| self.steps.get_mut(place)) else { return false };
        step.status = status;
        step.result = result.or(step.result.take());
        true
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, step) in (1..).zip(&self.steps) {
            let target = step.target.as_ref().map(|target| format!("@{target} ")).unwrap_or_default();
            writeln!(f, "{n}. [{}] {target}{}", step.status.mark(), step.text)?;
        }
        Ok(())
    }
}
