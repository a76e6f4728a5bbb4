//! The plans that agents keep, by request.

use polis_domain::{AgentId, Plan, TaskId, ThreadId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose plans are wanted.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "PlansOf")]
pub struct PlanFilter {
    /// Of this request; of all without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
}

/// Plans, newest first.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Plans {
    /// At most 100.
    pub plans: Vec<AgentPlan>,
}

/// A plan, and whose it is.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ShownPlan")]
pub struct AgentPlan {
    /// The request that it is for.
    pub task_id: TaskId,
    /// The agent that keeps it.
    pub agent_id: AgentId,
    /// The thread that it belongs to.
    pub thread: ThreadId,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Whether its request is under way.
    pub is_open: bool,
    /// The plan.
    #[serde(flatten)]
    pub plan: Plan,
}
