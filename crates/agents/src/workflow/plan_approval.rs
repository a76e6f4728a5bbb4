//! When a person is asked about a plan.

use polis_domain::Meta;
use serde::{Deserialize, Serialize};

use super::Plan;
use super::engine::open;

/// When a person is asked about a plan before it is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanApproval {
    /// Never.
    #[default]
    Never,
    /// When it may write, or has more todos than this. It may where a todo says so, names a tool that writes, or does not say
    /// and a tool on offer writes.
    Ask {
        /// Todos that need no asking.
        todos: usize,
    },
    /// Always.
    Always,
}

impl PlanApproval {
    /// Asks about plans that may write, and about those of more than five todos.
    pub const ASK: Self = Self::Ask { todos: 5 };

    /// The key of a request's meta that says `never`, `ask` or `always`, see [`PlanApproval::stricter`].
    pub const KEY: &str = "planApproval";

    /// What a request says; never where it says nothing. A word that nobody knows has every plan asked about.
    pub fn of(request: &Meta) -> Self {
        match request.get(Self::KEY).map(|word| word.as_str()) {
            None | Some(Some("never")) => Self::Never,
            Some(Some("ask")) => Self::ASK,
            Some(_) => Self::Always,
        }
    }

    /// Asks wherever one of the two asks: a request may be more careful than the node, not less.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Always, _) | (_, Self::Always) => Self::Always,
            (Self::Ask { todos: one }, Self::Ask { todos: two }) => Self::Ask { todos: one.min(two) },
            (Self::Never, other) | (other, Self::Never) => other,
        }
    }

    /// Whether a person is asked about a plan, of which this may write.
    pub(super) fn asks(self, plan: &Plan, writes: &[String]) -> bool {
        match self {
            Self::Never => false,
            Self::Ask { todos } => !writes.is_empty() || open(plan).count() > todos,
            Self::Always => true,
        }
    }
}
