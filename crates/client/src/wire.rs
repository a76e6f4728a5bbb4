//! What the routes answer, as far as a client needs it. What is new in a later server is passed over.

use polis_domain::{AgentId, Failure, MessageId, Payload, RoleId, Seq, TaskId, Timestamp};
use serde::Deserialize;

/// What was accepted is in the log; events after `seq` tell what comes of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The request.
    pub task_id: TaskId,
    /// The message.
    pub message_id: MessageId,
    /// Its place in the log.
    pub seq: Seq,
}

/// Where a request stands.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// The request.
    pub id: TaskId,
    /// `running`, `waiting`, `needs_person`, `done`, `failed` or `cancelled`.
    pub status: String,
    /// The text that ended it.
    pub answer: Option<String>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// The agent that is busy with another request, where that one waits for somebody to act.
    pub behind: Option<AgentId>,
}

/// What the society said about a request.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Messages {
    /// Oldest first.
    pub messages: Vec<UserMessage>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// A message to the person.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// Its name.
    pub message_id: MessageId,
    /// Who sent it.
    pub from: AgentId,
    /// Who got it.
    pub to: AgentId,
    /// The request.
    pub task_id: TaskId,
    /// `message`, `answer` or `failure`.
    pub kind: String,
    /// What it says.
    pub payload: Payload,
    /// Why the request failed.
    pub failure: Option<Failure>,
    /// Its place in the log.
    pub seq: Seq,
    /// When.
    pub at: Timestamp,
}

/// Who is there.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Agents {
    /// In the order in which they came.
    pub agents: Vec<Agent>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Its name.
    pub id: AgentId,
    /// Its role.
    pub role_id: RoleId,
    /// The role's name, for people.
    pub role_name: String,
    /// `idle`, `running`, `waiting` or `parked`.
    pub status: String,
    /// Who made it; none for root.
    pub parent_agent_id: Option<AgentId>,
    /// The request that it works on.
    pub task_id: Option<TaskId>,
    /// Messages that wait for it.
    pub pending: usize,
}
