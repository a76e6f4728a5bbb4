//! The limits of a society, which `decide` enforces.

use serde::{Deserialize, Serialize};

/// The limits of a society. A command that exceeds one is refused with a code and changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// Longest text of a message, in bytes.
    pub text_bytes: usize,
    /// Most entries that wait in one inbox.
    pub inbox_entries: usize,
    /// Most bytes of text that wait in one inbox.
    pub inbox_bytes: usize,
    /// Most effects that one turn may have open.
    pub open_effects: usize,
    /// How deep below root agents may spawn agents (P21).
    pub depth: usize,
    /// Most children of one agent.
    pub children: usize,
    /// Most agents in the society. Beyond it only a person can create more.
    pub agents: usize,
    /// Most agents that all agents together may spawn within a minute.
    pub spawns_a_minute: usize,
    /// How old a result may be to answer an identical call; 0 disables reuse.
    pub reuse_ms: u64,
    /// Similar calls with the same result within a turn before the agent is warned.
    pub nudge_repeats: u32,
    /// Similar calls with the same result within a turn before further ones are refused; a little later the turn ends.
    pub stop_repeats: u32,
    /// Longest chain of messages from agent to agent, each caused by the one before; the first is the person's.
    pub hops: u32,
    /// Most messages between two agents for one request since the last message of the person. Asks that the sender waits for
    /// do not count: a cycle of those is refused as a deadlock.
    pub messages_per_pair: u32,
    /// Most turns for a request since the last message of the person. Beyond it agents cannot send messages for it.
    pub turns_per_task: u32,
    /// Most memories of one scope.
    pub memories: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            text_bytes: 256 * 1024,
            inbox_entries: 1_000,
            inbox_bytes: 4 * 1024 * 1024,
            open_effects: 64,
            depth: 5,
            children: 32,
            agents: 1_000,
            spawns_a_minute: 60,
            reuse_ms: 10 * 60 * 1_000,
            nudge_repeats: 3,
            stop_repeats: 6,
            hops: 16,
            messages_per_pair: 10,
            turns_per_task: 1_000,
            memories: 1_000,
        }
    }
}
