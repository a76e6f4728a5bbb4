//! What came of the code of each bot message. It stands in the message's meta, where later rounds find it.

use std::sync::Arc;

use polis::domain::MessagePatch;
use polis::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Where a handler says whose code it is.
const AUTHORSHIP: &str = "code";
/// Where a unit says what came of it.
const TRIAL: &str = "trial";

/// Whose code it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Author {
    /// The model's.
    Model,
    /// The script of this example, and why it is used.
    BuiltIn(String),
}

/// One run of code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Trial {
    pub(super) phase: String,
    pub(super) author: Author,
    /// What went wrong, if something did.
    pub(super) problem: Option<String>,
}

/// One run, with the message whose code it was and what was said about it.
pub(super) type Tried = (Trial, Arc<Message>, Option<Arc<Message>>);

impl Author {
    /// As the meta of a bot message.
    pub(super) fn into_meta(self) -> Map<String, Value> {
        let value = serde_json::to_value(self).unwrap_or_default();
        Map::from_iter([(AUTHORSHIP.to_owned(), value)])
    }

    /// Whose code a bot message has.
    pub(super) fn of(message: &Message) -> Self {
        let said = message.meta.get(AUTHORSHIP).and_then(|value| Self::deserialize(value).ok());
        said.unwrap_or(Self::Model)
    }
}

impl Trial {
    /// The runs so far, in order, with the messages whose code it was and what was said about them.
    pub(super) async fn all(turn: &mut Turn) -> Result<Vec<Tried>, Failure> {
        let messages = turn.own_thread().await?.messages;
        let trial = |message: &Message| message.meta.get(TRIAL).and_then(|value| Self::deserialize(value).ok());
        let all = messages.iter().enumerate().filter_map(|(at, message)| {
            let trial: Self = trial(message)?;
            Some((trial, message.clone(), messages.get(at + 1).cloned()))
        });
        Ok(all.collect())
    }

    /// Writes it down beside the code.
    pub(super) async fn note(&self, message: &Message, turn: &mut Turn) -> Result<(), Failure> {
        let value = serde_json::to_value(self).unwrap_or_default();
        let patch = MessagePatch { text: None, meta: Map::from_iter([(TRIAL.to_owned(), value)]).into() };
        turn.update_message(&turn.path(), &message.id, patch).await
    }
}
