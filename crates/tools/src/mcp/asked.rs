//! What servers may ask of us: a word of a model, or of the person. The app decides; until it does, the answer is no.

use async_trait::async_trait;
use serde_json::Value;

/// Answers what servers ask. Requests and answers are those of the protocol, as JSON.
#[async_trait]
pub trait Asked: Send + Sync {
    /// Whether servers are told that they may ask a model (`sampling`).
    fn lends_models(&self) -> bool {
        false
    }

    /// Whether servers are told that they may ask the person (`elicitation`).
    fn asks_the_person(&self) -> bool {
        false
    }

    /// A server wants a model to write something: the parameters of `sampling/createMessage`, answered by its result.
    async fn sample(&self, server: &str, request: Value) -> Result<Value, String>;

    /// A server wants to know something of the person: the parameters of `elicitation/create`, answered by what the person
    /// filled in; nothing declines.
    async fn elicit(&self, server: &str, request: Value) -> Option<Value>;
}

/// Says no to everything, politely.
#[derive(Debug, Clone, Copy, Default)]
pub struct Declines;

#[async_trait]
impl Asked for Declines {
    async fn sample(&self, _: &str, _: Value) -> Result<Value, String> {
        Err("this client does not lend its models to servers".to_owned())
    }

    async fn elicit(&self, _: &str, _: Value) -> Option<Value> {
        None
    }
}
