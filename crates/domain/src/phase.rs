//! Phase: where a thread stands. `snake_case`, from `initial_phase` to `completed` (R052).

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Where a thread stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Arc<str>", into = "Arc<str>")]
pub struct Phase(Arc<str>);

/// A phase has a name in `snake_case`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a phase; use snake_case, for example data_preparation")]
pub struct BadPhase(String);

impl Phase {
    /// Where every thread starts.
    pub const INITIAL: &'static str = "initial_phase";
    /// Where every thread ends.
    pub const COMPLETED: &'static str = "completed";

    /// Takes a name in `snake_case`.
    pub fn new(name: &str) -> Result<Self, BadPhase> {
        Self::try_from(Arc::from(name))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing follows this phase.
    pub fn is_terminal(&self) -> bool {
        self.as_str() == Self::COMPLETED
    }
}

impl Default for Phase {
    fn default() -> Self {
        Self(Self::INITIAL.into())
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<Arc<str>> for Phase {
    type Error = BadPhase;

    fn try_from(name: Arc<str>) -> Result<Self, BadPhase> {
        let snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
        if starts && name.len() <= 64 && name.chars().all(snake) {
            Ok(Self(name))
        } else {
            Err(BadPhase(name.chars().take(64).collect()))
        }
    }
}

impl From<Phase> for Arc<str> {
    fn from(phase: Phase) -> Self {
        phase.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_snake_case() {
        for good in ["initial_phase", "completed", "step_2", "a"] {
            assert_eq!(Phase::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "Draft", "data-prep", "_x", "2nd", "数据", "a b"] {
            assert!(Phase::new(bad).is_err(), "{bad}");
        }
    }
}
