//! Memories of a society: searching their texts, and removing the texts of erased ones from the store.

mod rank;
mod search;
mod society;

use std::sync::Arc;

use polis_domain::{Command, Failure, Memory, MemoryCommand, MemoryTextId};
use polis_ports::MemoryError;
use tokio::sync::oneshot;

pub(crate) use search::{rank_by_words, search};

use crate::shared::{ActorMessage, Committed, Shared};

/// A memory with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMemory {
    /// What the log has of it.
    pub memory: Memory,
    /// Its text; none if it is not in the store: it was erased, and the society was rewound to a time before that.
    pub text: Option<Arc<str>>,
}

/// Removes the texts that the log says are to be removed, and records that. Does nothing if there are none. A process that
/// ends in between does it again at its next opening.
pub(crate) async fn remove_erased(shared: &Shared) -> Result<(), Failure> {
    let removing = |spine: &polis_domain::Spine| spine.memories.removing().cloned().collect::<Vec<MemoryTextId>>();
    let texts = shared.look(removing).await.unwrap_or_default();
    if texts.is_empty() {
        return Ok(());
    }
    shared.ports.memory_texts.remove(texts.clone()).await.map_err(failure)?;
    // If this fails, the texts are removed once more at the next opening, which changes nothing.
    let _ = send(shared, MemoryCommand::ConfirmRemoved { texts }).await;
    Ok(())
}

/// Sends a command about memories that belongs to no turn and to no person.
pub(crate) async fn send(shared: &Shared, change: MemoryCommand) -> Option<Committed> {
    let (reply, answer) = oneshot::channel();
    let command = Command::ChangeMemories { change };
    shared.actor.send(ActorMessage::Command { command, reply: Some(reply) }).await.ok()?;
    answer.await.ok()
}

pub(crate) fn failure(error: MemoryError) -> Failure {
    Failure::new(error.code(), error.to_string())
}
