//! What is counted of a request while it is in progress.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::AgentId;

/// The counters of a request in progress.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskActivity {
    /// Turns since the last message of the person, including those that wait in inboxes.
    pub turns: u32,
    /// How many of those are not settled.
    pub open: u32,
    /// The conversation that the person wrote in last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<AgentId>,
    /// Model calls, by agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<AgentId, u32>,
    /// Messages from agent to agent since the last message of the person, by sender and receiver. Asks that are waited for do
    /// not count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub messages: BTreeMap<AgentId, BTreeMap<AgentId, u32>>,
    /// Whether the person was notified, since their last message, that messages were blocked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_reported: bool,
}

impl TaskActivity {
    /// How many messages one agent has sent another.
    pub fn sent(&self, from: &AgentId, to: &AgentId) -> u32 {
        self.messages.get(from).and_then(|sent| sent.get(to)).copied().unwrap_or_default()
    }
}

fn is_false(value: &bool) -> bool {
    !value
}
