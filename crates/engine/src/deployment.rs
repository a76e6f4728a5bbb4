//! Which versions of behaviours open turns need, and which of them this program has.

use std::collections::BTreeMap;

use polis_domain::{AgentId, Behaviour, CodeVersion, FailureCode, Spine, ThreadId, TurnId, Visibility};

use crate::Cast;

/// One version of a behaviour: whether this program has it, and the open turns that began with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployedVersion {
    /// The behaviour that has versions. Its units have the same.
    pub behaviour: Behaviour,
    /// The version.
    pub version: CodeVersion,
    /// Whether it is registered in this program.
    pub is_registered: bool,
    /// Whether new turns begin with it.
    pub is_newest: bool,
    /// The open turns that began with it, oldest first.
    pub turns: Vec<DeployedTurn>,
}

/// An open turn and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployedTurn {
    /// Its id.
    pub id: TurnId,
    /// The agent that runs it.
    pub agent: AgentId,
    /// Its thread.
    pub thread: ThreadId,
    /// Why it is parked, if it is.
    pub parked: Option<FailureCode>,
}

impl DeployedVersion {
    /// Whether the code of this version can be removed: new turns begin with a newer one, and no open turn needs it.
    pub fn is_removable(&self) -> bool {
        self.is_registered && !self.is_newest && self.turns.is_empty()
    }
}

/// All versions that are registered or that an open turn needs, by behaviour and version.
pub(crate) fn deployment(spine: &Spine, cast: &Cast, visibility: &Visibility) -> Vec<DeployedVersion> {
    let mut found = BTreeMap::new();
    let unused = |behaviour: &Behaviour, version, is_registered, is_newest| DeployedVersion {
        behaviour: behaviour.clone(),
        version,
        is_registered,
        is_newest,
        turns: Vec::new(),
    };
    for (behaviour, versions) in cast.versions() {
        let newest = versions.clone().next_back();
        for version in versions {
            found.insert((behaviour.clone(), version), unused(behaviour, version, true, Some(version) == newest));
        }
    }
    for (id, turn) in &spine.turns {
        if !visibility.agent(spine, &turn.agent) {
            continue;
        }
        let (behaviour, version) = (Behaviour::from(turn.behaviour.owner()), turn.version);
        let parked = turn.parked().map(|failure| failure.code.clone());
        let (agent, thread) = (turn.agent.clone(), turn.thread.clone());
        let missing = || unused(&behaviour, version, false, false);
        let deployed = found.entry((behaviour.clone(), version)).or_insert_with(missing);
        deployed.turns.push(DeployedTurn { id: *id, agent, thread, parked });
    }
    found.into_values().collect()
}
