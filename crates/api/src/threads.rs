//! Threads: the list, and one by its address.

use polis_domain::{AgentId, Phase, ThreadId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which part of a thread is wanted.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadPart {
    /// The path of the sub-thread, from the thread named in the address.
    #[serde(default)]
    pub path: String,
    /// Whether everything below it is wanted too.
    #[serde(default)]
    pub tree: bool,
}

/// Threads by name.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Threads {
    /// The threads of this page.
    pub threads: Vec<ListedThread>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One thread of the list.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedThread {
    /// Its id.
    pub id: ThreadId,
    /// The agent whose it is.
    pub agent_id: AgentId,
    /// Its path below the agent's main thread; empty for that one.
    pub path: String,
    /// How many messages it has.
    pub messages: u32,
    /// Its phase.
    pub phase: Phase,
    /// Whether a turn works in it.
    pub is_open: bool,
}
