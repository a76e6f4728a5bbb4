//! The plan of an agent: a list of steps in the settings of its thread.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The key of the plan in a thread's settings.
pub const PLAN: &str = "plan";

/// The steps of a plan in order, with strategy and result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The id of the plan (`plan_id`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// The strategy that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Arc<Approach>>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The final status: `completed` or `failed`; none while it is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StepStatus>,
    /// A short result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<str>>,
}

/// The strategy of an agent for a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Approach {
    /// `simple`, `template` or `workflow`.
    pub name: Arc<str>,
    /// Why it was chosen.
    pub reason: String,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// The id within the plan (`task_id`); its number if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// What to do.
    pub text: String,
    /// The status of the step.
    #[serde(default)]
    pub status: StepStatus,
    /// The agent that does it, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Arc<str>>,
    /// A short result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<str>>,
}

/// The status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not started.
    #[default]
    Pending,
    /// In progress.
    InProgress,
    /// The step succeeded.
    Completed,
    /// Failed.
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
    /// Sets status and result of the step with this id or number (`update_task_status`). False if there is none.
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
