//! Agents: the list, one in detail, its operations, and compressing its conversation.

use std::collections::BTreeMap;
use std::sync::Arc;

use polis_domain::{AgentId, DeadLetter, OrgRole, OrgStatus, RoleId, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The agents, in the order in which they were spawned.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Agents {
    /// The agents of this page.
    pub agents: Vec<Agent>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// Its role.
    pub role_id: RoleId,
    /// The role's name, for people.
    pub role_name: Arc<str>,
    /// How far it is with its task.
    pub state: AgentState,
    /// `active`: agents that were terminated are listed by `GET /api/org` only.
    pub status: OrgStatus,
    /// Whether it works, waits or is blocked.
    pub activity: AgentActivity,
    /// The agent that spawned it; none for root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_agent_id: Option<AgentId>,
    /// When it was spawned.
    pub created_at: Timestamp,
    /// The request that it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Messages that wait in its inbox.
    pub pending: usize,
    /// How full its conversation is.
    pub context: AgentContext,
}

/// How far an agent is with its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// It has no task.
    Idle,
    /// It plans.
    Planning,
    /// It carries a step out.
    ExecutingStep,
    /// It waits for other agents.
    WaitingForCollaboration,
}

/// Whether an agent works, waits or is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentActivity {
    /// It has nothing to do.
    Idle,
    /// It works.
    Running,
    /// It waits for time, another agent or a person's decision.
    Waiting,
    /// It is blocked until a person acts.
    Parked,
}

/// How full an agent's conversation is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct AgentContext {
    /// Messages in it.
    pub messages: u32,
    /// Of those, how many the model is shown; summaries stand for the others.
    pub shown: u32,
    /// How many compressions apply.
    pub compressions: usize,
}

/// One agent in detail.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentDetail {
    /// The agent.
    #[serde(flatten)]
    pub agent: Agent,
    /// Its role: prompt, models and tools.
    pub role: Option<OrgRole>,
    /// The agents that it has spawned.
    pub children: Vec<AgentId>,
    /// Whether it is being terminated: it accepts nothing new and ends when its work is done.
    pub leaving: bool,
    /// What it offers to a person at one touch.
    pub operations: Vec<AgentOperation>,
}

/// Something that an agent offers to a person; `POST /api/agents/{id}/operate` has it done.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct AgentOperation {
    /// Its name, for programs.
    pub name: Arc<str>,
    /// Its name, for people.
    pub label: Arc<str>,
    /// The message that is sent to the agent.
    pub message: Arc<str>,
    /// Data that goes into the task's meta.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// Its label in other languages, by their short names such as `zh`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
}

/// Runs an operation of an agent.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Operate {
    /// The name of the operation, as the agent lists it.
    pub operation: String,
    /// The request that it belongs to; a new one if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The language of the message, such as `zh`, where the operation knows it.
    #[serde(default)]
    pub language: String,
}

/// Has an agent compress its conversation.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compress {
    /// Whether the last compression is undone instead.
    #[serde(default)]
    pub undo: bool,
}

/// The request that compresses.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compressing {
    /// Always true.
    pub ok: bool,
    /// None where a compression was undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
}

/// Dead-lettered messages, newest first.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetters {
    /// Messages whose agents broke down over them.
    pub dead_letters: Vec<DeadLetter>,
}
