//! Which conversation an agent belongs to.

use std::collections::HashMap;

use polis_domain::{AgentId, Spine};

/// The parents of agents. It is filled once from the spine and then by events, so that the answer does not depend on when a span
/// is made.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentTree(HashMap<AgentId, AgentId>);

impl AgentTree {
    pub(crate) fn of(spine: &Spine) -> Self {
        let alive = spine.agents.iter().map(|(id, agent)| (id, &agent.parent));
        let terminated = spine.terminated.iter().map(|(id, agent)| (id, &agent.parent));
        let pairs = alive.chain(terminated).filter_map(|(id, parent)| Some((id.clone(), parent.clone()?)));
        Self(pairs.collect())
    }

    pub(crate) fn spawned(&mut self, agent: &AgentId, parent: &AgentId) {
        self.0.insert(agent.clone(), parent.clone());
    }

    /// The agent at the top of the tree: `root`, or the agent of a conversation.
    pub(crate) fn top<'a>(&'a self, agent: &'a AgentId) -> &'a AgentId {
        std::iter::successors(Some(agent), |id| self.0.get(*id)).last().unwrap_or(agent)
    }
}
