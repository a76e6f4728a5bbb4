//! Conversations: lines of talk between a person and an agent that exists for it.

use std::sync::Arc;

use polis_domain::{AgentId, ModelSettings, PersonId, RoleId, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AgentActivity, Strategy};

/// A conversation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// Names the conversation, and the agent that exists for it.
    pub id: AgentId,
    /// The title; the beginning of the first message until it is renamed.
    pub title: Arc<str>,
    /// The person who started it.
    pub person: PersonId,
    /// The role of its agent.
    pub role_id: RoleId,
    /// The model that it asks, if not the one of the role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// How its requests are done, if they do not say so themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Arc<str>>,
    /// How it calls models, where its requests do not say so themselves.
    #[serde(default, skip_serializing_if = "ModelSettings::is_default")]
    pub settings: ModelSettings,
    /// Whether it is listed before the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Whether it is left out of the usual list. A message of its person takes it up again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// When it started.
    pub created_at: Timestamp,
    /// When a message went back or forth last.
    pub active_at: Timestamp,
    /// What its agent is doing.
    pub status: AgentActivity,
    /// The request that the agent works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// How many messages its thread has.
    pub messages: u32,
}

/// The conversations, those with the newest messages first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Conversations {
    /// The conversations.
    pub conversations: Vec<Conversation>,
    /// Where searched words are that are not in the title or the id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excerpts: Vec<Excerpt>,
    /// The `after` of the next page; none when there is no more. A search reads a part of the messages for each page, so a page
    /// may have few conversations and a `next`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A part of a message in which searched words are.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Excerpt {
    /// The conversation.
    pub conversation: AgentId,
    /// The request that the message is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The words with what is around them.
    pub text: String,
}

/// Which conversations are wanted.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationPaging {
    /// The `next` of the page before; the first page without it.
    pub after: Option<String>,
    /// Most entries of a page.
    pub limit: Option<u32>,
    /// Only those that contain all of these words in their title, id, messages or answers. Of long conversations the newest
    /// messages are searched.
    pub search: Option<String>,
    /// Whether the archived ones are wanted instead of the others.
    pub archived: Option<bool>,
}

/// Starts a conversation without a message.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartConversation {
    /// Its id; drawn if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<AgentId>,
    /// Its title; its id if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The role to talk to; that of root if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_id: Option<RoleId>,
    /// The model that it asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How its requests are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// How it calls models.
    #[serde(default, skip_serializing_if = "ModelSettings::is_default")]
    pub settings: ModelSettings,
}

/// Changes a conversation; what is not given stays.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeConversation {
    /// The new title, one line of at most 128 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether it is listed before the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Whether it is left out of the usual list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// The model that it asks; an empty text for the one of its role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How its requests are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// How it calls models, all settings; an empty object for those of its role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<ModelSettings>,
}

/// Deletes a conversation.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteConversation {}

/// The conversation that was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Deleted {
    /// Its id.
    pub id: AgentId,
}

/// Erases the content of a conversation.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EraseConversation {}

/// The conversation whose content was erased.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Erased {
    /// Its id.
    pub id: AgentId,
    /// Whether nothing was left to erase.
    pub already: bool,
}
