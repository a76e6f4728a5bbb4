//! Memories as agents use them. A text goes into the store before the log names it, and the log never has it: what agents are
//! shown is a mark in the place of the text, and the text is put there when a request is sent to a model. So a text that is
//! erased later cannot be read in the log, and a replay needs no text.

use std::sync::Arc;

use polis_domain::{Act, Failure, Memory, MemoryId, MemoryScope, MemoryScopeKind, MemoryTextId, NewMemory, Refusal, Spine};
use polis_ports::{ChatMessage, ModelRequest, ThreadRange};
use serde_json::Value;

use super::Turn;
use crate::memory::{failure, rank_by_words, remove_erased, search};

/// How a mark begins and ends.
const BEGIN: &str = "⟦memory ";
const END: char = '⟧';

/// How the key of a text begins.
const KEY: &str = "memory-text";

/// What stands in the place of a text that is gone, or that the agent may not see.
const ERASED: &str = "(erased)";

/// What stands there while the person has switched memory off.
const SWITCHED_OFF: &str = "(not shown: memory is switched off)";

/// What stands there while another person has written in the request.
const ASKED_BY_ANOTHER: &str = "(not shown: another person has written in this request)";

/// Memories that an agent found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalled {
    /// The memories, best first. Show [`Recalled::mark`] for their texts.
    pub memories: Vec<Memory>,
    /// What the agent should know about the search.
    pub note: Option<String>,
}

impl Recalled {
    /// What stands for the text of a memory in results and messages.
    pub fn mark(memory: &Memory) -> String {
        format!("{BEGIN}{}{END}", memory.text)
    }
}

impl Turn {
    /// Whether only the person whose memories the agent sees has written in this request. If another person has, such as an
    /// administrator in their conversation, the agent must neither tell nor change what it remembers for them.
    async fn is_asked_by_own_person(&self) -> bool {
        let agent = self.agent().clone();
        let Some(own) = self.look(move |spine| spine.remembering_person(&agent)).await else { return false };
        let events = self.start.shared.read_thread(&self.task.id.thread(), ThreadRange::ALL).await.unwrap_or_default();
        let senders = events.iter().filter_map(|recorded| recorded.event.envelope()?.person.as_ref());
        senders.into_iter().all(|sender| *sender == own)
    }

    /// The memories that the agent may use in this request.
    async fn usable_memories(&self) -> Result<Vec<Memory>, Failure> {
        let agent = self.agent().clone();
        let see = move |spine: &Spine| {
            let is_enabled = spine.memories.is_enabled(&spine.remembering_person(&agent));
            is_enabled.then(|| spine.memories_for(&agent).into_iter().cloned().collect::<Vec<_>>())
        };
        let found = self.look(see).await.ok_or_else(|| Failure::new("memory_failed", "the society cannot be read"))?;
        let mut memories = found.ok_or_else(switched_off)?;
        if !memories.is_empty() && !self.is_asked_by_own_person().await {
            memories.retain(|memory| memory.scope == MemoryScope::Society);
        }
        Ok(memories)
    }

    /// The memories that fit a text best by their words, then the newest: at most so many, and so many bytes in all. No model is
    /// asked.
    pub async fn memories_about(&self, text: &str, most: usize, bytes: usize) -> Vec<Memory> {
        if !self.start.surroundings.has_memories {
            return Vec::new();
        }
        let memories = self.usable_memories().await.unwrap_or_default();
        let ranked = rank_by_words(&self.start.shared, memories, text).await.unwrap_or_default();
        let mut room = bytes;
        let fits = ranked.into_iter().filter(|memory| {
            let fits = memory.bytes as usize <= room;
            room -= if fits { memory.bytes as usize } else { 0 };
            fits
        });
        fits.take(most).collect()
    }

    /// Stores a memory for the person, the role or the society.
    pub async fn remember(&mut self, kind: MemoryScopeKind, text: &str) -> Result<MemoryId, Failure> {
        let (id, key): (String, String) = (self.new_id("memory"), self.new_id(KEY));
        let (id, key) = (MemoryId::from(id), MemoryTextId::from(key));
        // A second run must not store the text again: it may have been erased since.
        let is_new = !self.journal.has(self.n);
        let mut scope = MemoryScope::Society;
        let texts = self.start.shared.ports.memory_texts.clone();
        if is_new {
            let agent = self.agent().clone();
            let (of, is_own) = (agent.clone(), self.is_asked_by_own_person().await);
            let is_on = move |spine: &Spine| spine.memories.is_enabled(&spine.remembering_person(&of));
            if !self.look(is_on).await.unwrap_or_default() {
                return Err(switched_off());
            }
            if !is_own && kind != MemoryScopeKind::Society {
                return Err(asked_by_another());
            }
            let found = self.look(move |spine| spine.memory_scope(&agent, kind)).await;
            scope = found.ok_or_else(|| Failure::new("memory_failed", "the society cannot be read"))?;
            texts.put(&key, text).await.map_err(failure)?;
        }
        let memory = NewMemory { id: id.clone(), scope, text: key.clone(), bytes: text.len() };
        let done = self.act(vec![Act::KeepMemory { memory }]).await;
        if done.is_err() && is_new {
            let _ = texts.remove(vec![key]).await;
        }
        done.map(|_| id)
    }

    /// Erases a memory that the agent sees.
    pub async fn forget(&mut self, id: MemoryId) -> Result<(), Failure> {
        let is_new = !self.journal.has(self.n);
        if is_new && !self.usable_memories().await?.iter().any(|memory| memory.id == id) {
            return Err(Refusal::UnknownMemory(id).into());
        }
        self.act(vec![Act::EraseMemory { id }]).await?;
        if is_new { remove_erased(&self.start.shared).await } else { Ok(()) }
    }

    /// Searches the memories that the agent sees: its person's, those of its role for this person, and the society's. Only the
    /// result of a [`crate::TurnTool`] without effects may depend on it.
    pub async fn search_memories(&self, query: &str, limit: usize) -> Result<Recalled, Failure> {
        let memories = self.usable_memories().await?;
        let searched = search(&self.start.shared, memories, query, Some(self.agent())).await?;
        let there = searched.found.into_iter().filter(|found| found.text.is_some());
        Ok(Recalled { memories: there.map(|found| found.memory).take(limit).collect(), note: searched.note })
    }

    /// Puts the texts of memories in the place of their marks. Only those that the agent sees now are shown, wherever a mark
    /// comes from.
    pub(super) async fn show_memories(&self, request: &mut ModelRequest) {
        // Most requests have none, and what the agent may see is asked of the society.
        if !request.messages.iter().filter_map(text_of).any(|text| text.contains(BEGIN)) {
            return;
        }
        let usable = self.usable_memories().await;
        let is_on = usable.is_ok();
        let seen: Vec<_> = usable.unwrap_or_default().into_iter().map(|memory| memory.text).collect();
        let wanted = request.messages.iter().filter_map(text_of).flat_map(|text| marks(text)).map(MemoryTextId::from);
        let (wanted, unseen): (Vec<_>, Vec<_>) = wanted.partition(|key| seen.contains(key));
        let gone = match is_on {
            false => SWITCHED_OFF,
            // Who has written is read from the log.
            true if unseen.is_empty() || self.is_asked_by_own_person().await => ERASED,
            true => ASKED_BY_ANOTHER,
        };
        let texts = self.start.shared.ports.memory_texts.read(wanted).await.unwrap_or_default();
        for message in &mut request.messages {
            let (ChatMessage::User { text, .. } | ChatMessage::Tool { content: text, .. }) = message else { continue };
            if !text.contains(BEGIN) {
                continue;
            }
            let mut shown = text.to_string();
            for key in marks(text) {
                let found = texts.get(&MemoryTextId::from(key)).map_or(gone, |stored| &stored.text);
                // Marks stand inside JSON.
                let quoted = Value::from(found).to_string();
                shown = shown.replace(&format!("{BEGIN}{key}{END}"), &quoted[1..quoted.len() - 1]);
            }
            *text = Arc::from(shown);
        }
    }
}

fn switched_off() -> Failure {
    Failure::new("memory_off", "the person has switched memory off; they can switch it on with polis memory on")
}

fn asked_by_another() -> Failure {
    Failure::new(
        "policy_denied",
        "another person has written in this request, so nothing is remembered for the one you work for",
    )
}

/// Whether a request has marks of memories.
pub(super) fn has_memories(request: &ModelRequest) -> bool {
    request.messages.iter().filter_map(text_of).any(|text| text.contains(BEGIN))
}

fn text_of(message: &ChatMessage) -> Option<&Arc<str>> {
    match message {
        ChatMessage::User { text, .. } | ChatMessage::Tool { content: text, .. } => Some(text),
        ChatMessage::Assistant { .. } => None,
    }
}

/// The keys in the marks of a text. Other text between such brackets is none.
fn marks(text: &str) -> impl Iterator<Item = &str> {
    let is_key = |key: &&str| key.starts_with(KEY) && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    text.split(BEGIN).skip(1).filter_map(|rest| Some(rest.split_once(END)?.0)).filter(is_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_of_texts_are_marks() {
        let text = "⟦memory memory-text_0a-1b⟧ and ⟦memory of a trip⟧ and ⟦memory memory-text 7⟧";
        assert_eq!(marks(text).collect::<Vec<_>>(), ["memory-text_0a-1b"]);
    }
}
