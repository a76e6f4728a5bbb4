//! CodeVersions of behaviours and the open turns that need them.

use polis_domain::{AgentId, Behaviour, CodeVersion, FailureCode, ThreadId, TurnId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The versions of behaviours that this program has or that an open turn needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Deployment {
    /// By behaviour and version.
    pub versions: Vec<BehaviourVersion>,
}

/// One version of a behaviour.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct BehaviourVersion {
    /// The behaviour. Its units have the same versions.
    pub behaviour: Behaviour,
    /// The version.
    pub version: CodeVersion,
    /// Whether this program has its code.
    pub registered: bool,
    /// Whether new turns begin with it.
    pub newest: bool,
    /// Whether its code can be removed: a newer version is registered, and no open turn needs this one.
    pub removable: bool,
    /// The open turns that began with it, oldest first.
    pub turns: Vec<OpenTurn>,
}

/// An open turn.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct OpenTurn {
    /// Its id.
    pub id: TurnId,
    /// The agent that runs it.
    pub agent: AgentId,
    /// Its thread.
    pub thread: ThreadId,
    /// Why it is parked, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked: Option<FailureCode>,
}

impl BehaviourVersion {
    /// Whether an open turn needs this version although it is old or missing.
    pub fn is_behind(&self) -> bool {
        !self.newest && !self.turns.is_empty()
    }
}
