//! What a person does with a component on the page: a message to the agent that showed it, or the answer to what waits (D25).

use polis_domain::{AgentId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Accepted;

/// An action of a component.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ComponentAction {
    /// The component, such as `todo-list`.
    pub component: String,
    /// What was done with it, such as `select`.
    pub action: String,
    /// What goes with it.
    #[serde(default)]
    pub data: Value,
    /// Whose component it is; root's if not given.
    #[serde(default = "AgentId::root")]
    pub agent_id: AgentId,
    /// The request that it belongs to; a new one if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The question that it answers, as `/api/approvals` lists it; then `data` is the answer, and nothing a plain yes. Needs the scope `approve` too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
}

/// What became of it: a message, or the answer to what waited.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Acted {
    /// The message that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Accepted>,
    /// What was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
}
