//! Conversations: lines of talk between a person and an agent that exists for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{AgentId, Message, ModelSettings, PersonId, RoleId, Seq, Timestamp};

/// How the ids of conversations begin that clients of other protocols start. Nobody else may choose such a name, so that nobody
/// can lie in wait for another person's messages.
pub const RESERVED_PREFIXES: [&str; 3] = ["chat-", "agui-", "a2a-"];

/// The conversation of an agent that a person talks to. The struct is small because a society may have very many of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// The person who started it.
    pub person: PersonId,
    /// What lists show for it, one line.
    pub title: Arc<str>,
    /// Its model, strategy and model settings, if they are not those of its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Box<ConversationSettings>>,
    /// Whether it is listed before the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Whether it is left out of the usual list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// The last message between the person and the agent; where the conversation started if there is none.
    pub active: Seq,
    /// When that was.
    pub active_at: Timestamp,
}

/// How the requests of a conversation are done unless they say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ConversationSettings {
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The strategy: `auto`, `simple`, `template` or `workflow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Arc<str>>,
    /// How models are called.
    #[serde(skip_serializing_if = "ModelSettings::is_default")]
    pub model_settings: ModelSettings,
}

impl ConversationSettings {
    /// Whether nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A conversation that is about to start.
#[derive(Debug, Clone, PartialEq)]
pub struct NewConversation {
    /// The id of the agent that is made for it.
    pub agent: AgentId,
    /// The role of that agent; that of root if none.
    pub role: Option<RoleId>,
    /// The person who started it.
    pub person: PersonId,
    /// What lists show for it, one line.
    pub title: Arc<str>,
    /// Its model, strategy and model settings.
    pub settings: ConversationSettings,
    /// What was said before, elsewhere.
    pub messages: Vec<Arc<Message>>,
}

/// What changes about a conversation; what is `None` stays.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ConversationChange {
    /// The new title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// Whether it is listed before the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Whether it is left out of the usual list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// Its model, strategy and model settings, all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<ConversationSettings>,
}

/// The place of a conversation in the list: pinned ones come first, then those with the newest messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConversationPlace {
    /// Whether it is pinned.
    pub pinned: bool,
    /// Its last message.
    pub active: Seq,
}

impl ConversationPlace {
    /// Before the first one of the list.
    pub const START: Self = Self { pinned: true, active: Seq(u64::MAX) };
}

/// The conversations in the order of the list, so that a listing reads only what it shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conversations(BTreeMap<ConversationPlace, AgentId>);

impl Conversations {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The conversations after a place of the list.
    pub fn after(&self, place: ConversationPlace) -> impl Iterator<Item = (ConversationPlace, &AgentId)> {
        self.0.range(..place).rev().map(|(place, agent)| (*place, agent))
    }

    /// The list of all that there are.
    pub(crate) fn of(all: impl Iterator<Item = (ConversationPlace, AgentId)>) -> Self {
        Self(all.collect())
    }

    pub(crate) fn insert(&mut self, place: ConversationPlace, agent: AgentId) {
        self.0.insert(place, agent);
    }

    pub(crate) fn remove(&mut self, place: ConversationPlace) {
        self.0.remove(&place);
    }
}

impl Conversation {
    /// A conversation that an event at this position starts.
    pub(crate) fn new(person: PersonId, title: Arc<str>, active: Seq, active_at: Timestamp) -> Self {
        Self { person, title, settings: None, pinned: false, archived: false, active, active_at }
    }

    /// Its place in the list.
    pub fn place(&self) -> ConversationPlace {
        ConversationPlace { pinned: self.pinned, active: self.active }
    }

    /// Changes what is to change.
    pub(crate) fn change(&mut self, change: &ConversationChange) {
        let ConversationChange { title, pinned, archived, settings } = change.clone();
        self.title = title.unwrap_or_else(|| self.title.clone());
        self.pinned = pinned.unwrap_or(self.pinned);
        self.archived = archived.unwrap_or(self.archived);
        if let Some(settings) = settings {
            self.settings = (!settings.is_default()).then(|| Box::new(settings));
        }
    }
}
