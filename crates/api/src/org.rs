//! The organisation: roles and agents as one document, and terminating an agent.

use polis_domain::{AgentId, Children, OrgRole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest document of an organisation, as JSON.
pub const MAX_ORG_BYTES: usize = 16 << 20;

/// The roles, by id.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Roles {
    /// The roles of this page.
    pub roles: Vec<OrgRole>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Terminates an agent.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Terminate {
    /// What becomes of its children.
    #[serde(default)]
    pub children: Children,
    /// Why, for the log.
    #[serde(default)]
    pub reason: String,
    /// Whether it ends with its work undone.
    #[serde(default)]
    pub now: bool,
}

/// Whether the agent has ended already; otherwise it ends when its work is done (R181).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Terminated {
    /// Whether it has ended.
    pub ok: bool,
    /// The agent.
    pub terminated_agent_id: AgentId,
}

/// How a document is imported.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportRequest {
    /// Whether root's role becomes what the document says.
    #[serde(default)]
    pub root: bool,
}

/// What an import has changed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Imported {
    /// New roles.
    pub roles: usize,
    /// New agents.
    pub agents: usize,
    /// Roles that were changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<usize>,
    /// What of the document was left out, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
}
