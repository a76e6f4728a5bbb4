//! The messages between a person and the society about one request.

use polis_domain::{AgentId, Failure, MessageId, Payload, Seq, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which messages are wanted.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessagePaging {
    /// Which way they went.
    #[serde(default)]
    pub direction: Direction,
    /// The `next` of the page before; the first page without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Most messages of a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Which way messages went (D16).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the person.
    #[default]
    Received,
    /// Both ways.
    All,
}

/// Messages about a request, oldest first.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Messages {
    /// The messages of this page.
    pub messages: Vec<UserMessage>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A message from or to the person.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// Its id.
    pub message_id: MessageId,
    /// The sender.
    pub from: AgentId,
    /// The receiver.
    pub to: AgentId,
    /// The request.
    pub task_id: TaskId,
    /// Whether it ends the request.
    pub kind: UserMessageKind,
    /// Text and data.
    pub payload: Payload,
    /// Why the request failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Its position in the log.
    pub seq: Seq,
    /// When it was sent.
    pub at: Timestamp,
}

/// What a message is to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "UserMessageKind")]
pub enum UserMessageKind {
    /// A message along the way.
    Message,
    /// The answer, which ends it.
    Answer,
    /// Its failure or cancellation, which ends it.
    Failure,
}
