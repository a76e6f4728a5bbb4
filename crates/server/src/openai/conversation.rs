//! Finds the request that belongs to a client's conversation. Clients send the whole conversation each time, without an id.
//!
//! A conversation is identified by its user's messages so far. Each message carries their fingerprint in its meta; a client
//! that sends more continues the request whose newest message has the fingerprint of the earlier part. A conversation that
//! starts like another one is a separate one; one that was edited or repeated in the middle is a branch, and separate as well. The
//! assistant's messages do not count: clients shorten and decorate them. An id from the client takes precedence.

use std::sync::Arc;

use axum::http::HeaderMap;
use polis_domain::{Digest, Envelope, PersonId, Recorded, TaskId};
use polis_engine::Society;

use super::error::ApiError;

/// The meta key with the fingerprint of the user's messages so far.
pub(super) const FINGERPRINT: &str = "chatPrint";

/// How many conversations that begin alike are looked through, the newest first.
const ALIKE: u64 = 32;

/// Headers by which clients name a conversation.
const NAMES: &[&str] = &["x-conversation-id", "x-openwebui-chat-id", "x-librechat-conversation-id"];

/// Identifies a conversation.
pub(super) struct ConversationKey<'a> {
    /// The agent or role that is addressed.
    pub(super) receiver: &'a str,
    /// Whose conversation it is: what another person has said in the same words is another one.
    pub(super) person: &'a PersonId,
    /// The client's own name for its user.
    pub(super) user: &'a str,
    /// The client's own name for the conversation.
    pub(super) name: Option<String>,
    /// The user's messages in order; each list ends where the assistant answered.
    pub(super) user_texts: &'a [Vec<String>],
}

impl ConversationKey<'_> {
    /// What every id of the key begins with. The owner's ids have no name of a person.
    fn parts(&self) -> impl Iterator<Item = &str> {
        let person = Some(self.person.as_str()).filter(|person| *person != PersonId::OWNER);
        [self.receiver, self.user].into_iter().chain(person)
    }
}

/// Where a conversation goes on.
#[derive(Debug)]
pub(super) struct ConversationMatch {
    pub(super) task: TaskId,
    pub(super) fingerprint: String,
    /// Whether the request already has the earlier messages.
    pub(super) is_known: bool,
    /// The message with exactly this content, if it was sent before.
    pub(super) repeated: Option<(Recorded, Arc<Envelope>)>,
}

/// The name that a client gives its conversation, in a header or in the metadata of the request.
pub(super) fn conversation_name(headers: &HeaderMap, metadata: &serde_json::Value) -> Option<String> {
    let header = NAMES.iter().find_map(|name| headers.get(*name)?.to_str().ok());
    let field = || ["conversation_id", "chat_id", "thread_id"].iter().find_map(|name| metadata.get(*name)?.as_str());
    header.or_else(field).map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Finds where a conversation goes on, or begins it.
pub(super) async fn find_conversation(society: &Society, key: &ConversationKey<'_>) -> Result<ConversationMatch, ApiError> {
    let all = fingerprint(key.user_texts.iter().flatten());
    if let Some(name) = &key.name {
        let task = TaskId::from(format!("chat-{}", hex(key.parts().chain([name.as_str()]))));
        let envelopes = society.messages(&task).await?;
        let repeated = last(&envelopes).filter(|(_, envelope)| has_fingerprint(envelope, &all)).cloned();
        return Ok(ConversationMatch { task, fingerprint: all, is_known: !envelopes.is_empty(), repeated });
    }
    let first = key.user_texts.first().map(Vec::as_slice).unwrap_or_default();
    let root = hex(key.parts().chain(first.iter().map(String::as_str)));
    let task = |n: u64| TaskId::from(format!("chat-{root}-{n}"));
    let free = first_free(society, &task).await?;
    let before: Vec<String> =
        (1..key.user_texts.len()).map(|end| fingerprint(key.user_texts[..end].iter().flatten())).collect();
    let mut repeated = None;
    for n in (free.saturating_sub(ALIKE)..free).rev() {
        let envelopes = society.messages(&task(n)).await?;
        let Some(newest) = last(&envelopes) else { continue };
        if has_fingerprint(&newest.1, &all) {
            repeated = repeated.or_else(|| Some(newest.clone()));
        } else if before.iter().any(|fingerprint| has_fingerprint(&newest.1, fingerprint)) {
            return Ok(ConversationMatch { task: task(n), fingerprint: all, is_known: true, repeated: None });
        }
    }
    Ok(ConversationMatch { task: task(free), fingerprint: all, is_known: false, repeated })
}

/// The first number that no request has. They are given without gaps.
async fn first_free(society: &Society, task: &impl Fn(u64) -> TaskId) -> Result<u64, ApiError> {
    let (mut taken, mut free) = (0, 1);
    if society.messages(&task(0)).await?.is_empty() {
        return Ok(0);
    }
    while !society.messages(&task(free)).await?.is_empty() {
        taken = free;
        free *= 2;
    }
    while free - taken > 1 {
        let middle = taken + (free - taken) / 2;
        match society.messages(&task(middle)).await?.is_empty() {
            true => free = middle,
            false => taken = middle,
        }
    }
    Ok(free)
}

fn last(envelopes: &[(Recorded, Arc<Envelope>)]) -> Option<&(Recorded, Arc<Envelope>)> {
    envelopes.iter().rev().find(|(_, envelope)| envelope.from.is_user())
}

fn has_fingerprint(envelope: &Envelope, fingerprint: &str) -> bool {
    envelope.payload.meta.get(FINGERPRINT).is_some_and(|known| known == fingerprint)
}

fn fingerprint<'a>(user_texts: impl Iterator<Item = &'a String>) -> String {
    hex(user_texts.map(|text| text.trim()))
}

fn hex<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let digest = serde_json::to_value(Digest::of(parts)).unwrap_or_default();
    digest.as_str().unwrap_or_default().to_owned()
}
