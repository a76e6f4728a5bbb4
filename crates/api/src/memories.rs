//! Memories: what agents remember across conversations, as their person sees it.

use polis_domain::{AgentId, MemoryId, MemoryScopeKind, RoleId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A memory.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryRecord {
    /// Names it in routes, commands and the log.
    pub id: MemoryId,
    /// Its text; none if the text was erased and the society was rewound to a time before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Which agents recall it.
    pub scope: MemoryScopeKind,
    /// The role whose agents recall it, if it is for one role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_id: Option<RoleId>,
    /// The agent that remembered it; none if a person wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The conversation in which that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<AgentId>,
    /// When it was first remembered.
    pub kept_at: Timestamp,
    /// When it was last edited, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<Timestamp>,
}

/// The memories of the caller and of the society.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Memories {
    /// Whether agents remember for the caller: they neither store nor recall anything if not.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// The memories: newest first, or best first if words were searched.
    pub memories: Vec<MemoryRecord>,
    /// How many there are in all.
    pub total: usize,
    /// The `after` of the next page; none when there is no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
    /// What is to be known about the search, such as an embedding model that could not be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

fn enabled() -> bool {
    true
}

/// Switches memory on or off for the caller. What is stored stays.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchMemory {
    /// Whether agents remember for the caller from now on.
    pub enabled: bool,
}

/// Which memories are wanted.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryFilter {
    /// Words to search for.
    pub search: Option<String>,
    /// How many to skip.
    pub after: Option<u32>,
    /// Most entries of a page.
    pub limit: Option<u32>,
}

/// Stores a memory.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeepMemory {
    /// Its text, at most 4,096 bytes.
    pub text: String,
    /// Whether it is for all agents of everybody instead of the caller's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_society: bool,
}

/// Gives a memory another text.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditMemory {
    /// The new text, at most 4,096 bytes.
    pub text: String,
}

/// Erases a memory.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EraseMemory {}

/// A memory that was stored, edited or erased.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ChangedMemory {
    /// Names it in routes, commands and the log.
    pub id: MemoryId,
}
