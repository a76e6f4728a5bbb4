//! Requests of a person: the open ones, the state of one, cancelling and retrying it.

use polis_domain::{AgentId, Failure, FailureCode, PersonId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::AgentPlan;

/// The state of a request.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskState {
    /// The request.
    pub id: TaskId,
    /// Whether it is under way, waits, or has ended.
    pub status: TaskStatus,
    /// The text that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Why it failed or was cancelled, or why a part of it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The agent that is busy with another request, which waits for a person: this one comes after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<AgentId>,
    /// The conversation that it belongs to, or the agent that it was sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<AgentId>,
    /// The plans that agents keep for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<AgentPlan>,
}

impl TaskState {
    /// The state of a request, with nothing else known about it.
    pub fn new(id: TaskId, status: TaskStatus) -> Self {
        Self { id, status, answer: None, failure: None, behind: None, conversation: None, plans: Vec::new() }
    }
}

/// The status of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// An agent works on it.
    Running,
    /// It waits for time or for another agent.
    Waiting,
    /// It is blocked until a person acts.
    NeedsPerson,
    /// It was answered.
    Done,
    /// It was answered, but a part of the work failed and was not done since: an agent failed at a message whose result nobody
    /// waited for. `failure` says which agent and why.
    Partial,
    /// It ended without an answer.
    Failed,
    /// A person cancelled it.
    Cancelled,
}

impl TaskStatus {
    /// The status that a failure leaves a request in: cancelling is told apart from failing.
    pub fn after(failure: &Failure) -> Self {
        if failure.code == FailureCode::Cancelled { Self::Cancelled } else { Self::Failed }
    }

    /// Whether the request has ended.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Partial | Self::Failed | Self::Cancelled)
    }
}

/// The requests that are under way.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Tasks {
    /// By id.
    pub tasks: Vec<OpenTask>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A request that is under way.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct OpenTask {
    /// The request.
    pub id: TaskId,
    /// Its status.
    pub status: TaskStatus,
    /// Turns that were taken for it or wait to be, since the person last wrote.
    pub turns: u32,
    /// Of those, how many are not settled.
    pub open: u32,
    /// The beginning of what was asked.
    #[serde(default)]
    pub text: String,
    /// The person who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonId>,
    /// The conversation, or the agent that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<AgentId>,
}

/// Cancels a request.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// Why, for the log.
    #[serde(default)]
    pub reason: String,
    /// Only this turn and what it started; the request itself goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
}

/// The request that was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// Its id.
    pub task_id: TaskId,
}

/// Retries a request that has ended.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {}
