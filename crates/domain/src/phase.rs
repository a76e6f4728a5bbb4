//! Phase: where a thread stands. `snake_case`, from `initial_phase` to `completed` (R052).

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::Failure;

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
        static INITIAL: LazyLock<Phase> = LazyLock::new(|| Phase(Phase::INITIAL.into()));
        INITIAL.clone()
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

/// So that a handler may say `Phase::new("data_preparation")?`.
impl From<BadPhase> for Failure {
    fn from(bad: BadPhase) -> Self {
        Self::new("bad_phase", bad.to_string())
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

    #[test]
    fn a_thread_begins_in_initial_phase_and_ends_in_completed() {
        assert_eq!(Phase::default().as_str(), "initial_phase");
        assert_eq!(crate::Thread::empty("t".into()).phase(), &Phase::default());
        assert!(Phase::new("completed").unwrap().is_terminal() && !Phase::default().is_terminal());
    }

    #[test]
    fn a_bad_name_is_a_failure_for_whoever_handles_it() {
        let handled = || -> Result<Phase, Failure> { Ok(Phase::new("Data Prep")?) };
        let failure = handled().unwrap_err();
        assert_eq!((&*failure.code, failure.message.contains("snake_case")), ("bad_phase", true));
    }
}
