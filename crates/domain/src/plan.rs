//! A plan: the few steps that an agent keeps in its thread, for itself and for whoever looks.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a plan stands in a thread's settings.
pub const PLAN: &str = "plan";

/// Steps, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// All of them.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    #[serde(default)]
    pub status: StepStatus,
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

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, step) in (1..).zip(&self.steps) {
            writeln!(f, "{n}. [{}] {}", step.status.mark(), step.text)?;
        }
        Ok(())
    }
}
