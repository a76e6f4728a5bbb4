//! Which request of ours a conversation of a client is. Clients send everything that was said each time, and no name for it.
//!
//! A conversation is known by what its user has said so far. Each message carries the print of that in its meta; a client that
//! sends more continues the request whose newest message has the print of what came before. A conversation that begins like
//! another one is another; one that was edited or asked again in the middle is a branch, and so another as well. What the
//! assistant said does not count: clients shorten and decorate it. A client that names its conversation is believed.

use std::sync::Arc;

use axum::http::HeaderMap;
use polis_domain::{AgentId, Digest, Envelope, Recorded, TaskId};
use polis_engine::Society;

use super::error::ApiError;

/// Where a message says what the user had said.
pub(super) const PRINT: &str = "chatPrint";

/// How many conversations that begin alike are looked through, the newest first.
const ALIKE: u64 = 32;

/// Headers by which clients name a conversation.
const NAMES: &[&str] = &["x-conversation-id", "x-openwebui-chat-id", "x-librechat-conversation-id"];

/// What tells a conversation from others.
pub(super) struct Marks<'a> {
    pub(super) agent: &'a AgentId,
    /// The client's own name for its user.
    pub(super) user: &'a str,
    /// The client's own name for the conversation.
    pub(super) name: Option<String>,
    /// What the user said, in the order of it; each list ends where the assistant spoke.
    pub(super) said: &'a [Vec<String>],
}

/// Where a conversation goes on.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) task: TaskId,
    pub(super) print: String,
    /// Whether the request knows what was said before.
    pub(super) is_known: bool,
    /// The message that says exactly this already.
    pub(super) repeated: Option<(Recorded, Arc<Envelope>)>,
}

/// The name that a client gives its conversation, in a header or in the metadata of the request.
pub(super) fn named(headers: &HeaderMap, metadata: &serde_json::Value) -> Option<String> {
    let header = NAMES.iter().find_map(|name| headers.get(*name)?.to_str().ok());
    let field = || ["conversation_id", "chat_id", "thread_id"].iter().find_map(|name| metadata.get(*name)?.as_str());
    header.or_else(field).map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Finds where a conversation goes on, or begins it.
pub(super) async fn place(society: &Society, marks: &Marks<'_>) -> Result<Place, ApiError> {
    let all = print(marks.said.iter().flatten());
    if let Some(name) = &marks.name {
        let task = TaskId::from(format!("chat-{}", hex([marks.agent.as_str(), marks.user, name])));
        let envelopes = society.messages(&task).await?;
        let repeated = last(&envelopes).filter(|(_, envelope)| has(envelope, &all)).cloned();
        return Ok(Place { task, print: all, is_known: !envelopes.is_empty(), repeated });
    }
    let first = marks.said.first().map(Vec::as_slice).unwrap_or_default();
    let root = hex([marks.agent.as_str(), marks.user].into_iter().chain(first.iter().map(String::as_str)));
    let task = |n: u64| TaskId::from(format!("chat-{root}-{n}"));
    let free = first_free(society, &task).await?;
    let before: Vec<String> = (1..marks.said.len()).map(|end| print(marks.said[..end].iter().flatten())).collect();
    let mut repeated = None;
    for n in (free.saturating_sub(ALIKE)..free).rev() {
        let envelopes = society.messages(&task(n)).await?;
        let Some(newest) = last(&envelopes) else { continue };
        if has(&newest.1, &all) {
            repeated = repeated.or_else(|| Some(newest.clone()));
        } else if before.iter().any(|print| has(&newest.1, print)) {
            return Ok(Place { task: task(n), print: all, is_known: true, repeated: None });
        }
    }
    Ok(Place { task: task(free), print: all, is_known: false, repeated })
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

fn has(envelope: &Envelope, print: &str) -> bool {
    envelope.payload.meta.get(PRINT).is_some_and(|known| known == print)
}

fn print<'a>(said: impl Iterator<Item = &'a String>) -> String {
    hex(said.map(|text| text.trim()))
}

fn hex<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let digest = serde_json::to_value(Digest::of(parts)).unwrap_or_default();
    digest.as_str().unwrap_or_default().to_owned()
}
