//! Memories as a person handles them: their own, and those of the society.

use polis_domain::{
    Command, Event, Memory, MemoryChange, MemoryCommand, MemoryId, MemoryScope, MemoryTextId, NewMemory, Refusal, Visibility,
    unique_id,
};

use super::{FoundMemory, failure, remove_erased, search};
use crate::error::CommandError;
use crate::society::Society;

impl Society {
    /// The memories of the person who acts through this handle, and those of the society: all, newest first, or those that fit
    /// a query, best first. Those of other persons are never among them, whatever the handle may see otherwise.
    pub async fn memories(&self, query: &str) -> Result<(Vec<FoundMemory>, Option<String>), CommandError> {
        let person = self.person.clone();
        let find = move |spine: &polis_domain::Spine| spine.memories.of_person(&person).cloned().collect::<Vec<_>>();
        let memories = self.look(find).await?;
        let searched = search(self.shared(), memories, query, None).await.map_err(CommandError::Unavailable)?;
        let sees_origins = self.visibility == Visibility::Everything;
        let found = searched.found.into_iter().map(|found| match found.memory.scope {
            // In whose conversation the society learnt something is not for everybody.
            MemoryScope::Society if !sees_origins => {
                FoundMemory { memory: Memory { agent: None, conversation: None, ..found.memory }, ..found }
            }
            _ => found,
        });
        Ok((found.collect(), searched.note))
    }

    /// Stores a memory for the person who acts through this handle, or for the society if the handle has no limits.
    pub async fn keep_memory(&self, for_society: bool, text: &str) -> Result<MemoryId, CommandError> {
        if for_society && self.visibility != Visibility::Everything {
            return Err(not_for_society());
        }
        let scope = if for_society { MemoryScope::Society } else { MemoryScope::Person(self.person.clone()) };
        let id: MemoryId = self.draw(|seed, at, draw| unique_id("memory", seed, at, draw));
        let key = self.put_text(text).await?;
        let new = NewMemory { id: id.clone(), scope, text: key.clone(), bytes: text.len() };
        let stored = self.change(MemoryCommand::Keep(new), Some(key)).await?;
        Ok(stored.map_or(id, |memory| memory.id))
    }

    /// Gives a memory another text. The old one is removed from the store.
    pub async fn edit_memory(&self, id: MemoryId, text: &str) -> Result<(), CommandError> {
        self.check_memories(std::slice::from_ref(&id)).await?;
        let key = self.put_text(text).await?;
        self.change(MemoryCommand::Edit { id, text: key.clone(), bytes: text.len() }, Some(key)).await.map(drop)
    }

    /// Whether agents remember for the person who acts through this handle.
    pub async fn is_memory_enabled(&self) -> Result<bool, CommandError> {
        let person = self.person.clone();
        self.look(move |spine| spine.memories.is_enabled(&person)).await
    }

    /// Switches memory on or off for the agents that work for the person who acts through this handle. What is stored stays.
    pub async fn switch_memory(&self, enabled: bool) -> Result<(), CommandError> {
        self.change(MemoryCommand::Switch { enabled }, None).await.map(drop)
    }

    /// Erases memories, all or none of them, and removes their texts from the store.
    pub async fn erase_memories(&self, ids: Vec<MemoryId>) -> Result<(), CommandError> {
        self.check_memories(&ids).await?;
        self.change(MemoryCommand::Erase { ids }, None).await.map(drop)
    }

    /// Refuses memories that are not the person's, as if they did not exist, and those of the society for limited handles.
    async fn check_memories(&self, ids: &[MemoryId]) -> Result<(), CommandError> {
        if self.done_before().await?.is_some() {
            return Ok(());
        }
        let (person, ids, limited) = (self.person.clone(), ids.to_vec(), self.visibility != Visibility::Everything);
        self.look(move |spine| {
            ids.iter().try_for_each(|id| match spine.memories.find(&person, id) {
                None => Err(Refusal::UnknownMemory(id.clone()).into()),
                Some(memory) if limited && memory.scope == MemoryScope::Society => Err(not_for_society()),
                Some(_) => Ok(()),
            })
        })
        .await?
    }

    async fn put_text(&self, text: &str) -> Result<MemoryTextId, CommandError> {
        let key: MemoryTextId = self.draw(|seed, at, draw| unique_id("memory-text", seed, at, draw));
        self.shared().ports.memory_texts.put(&key, text).await.map_err(|error| CommandError::Unavailable(failure(error)))?;
        Ok(key)
    }

    /// Sends a command for the person, and gives the memory that it stored. A text that the log does not name after all, because
    /// the command was refused or is a repeat, is removed again.
    async fn change(&self, change: MemoryCommand, new: Option<MemoryTextId>) -> Result<Option<Memory>, CommandError> {
        let command = Command::ChangeMemories { change };
        let done = self.command(Command::By { person: self.person.clone(), command: Box::new(command) }).await;
        let stored = done.as_ref().ok().and_then(|events| events.iter().find_map(|recorded| kept(&recorded.event)));
        let is_refused = matches!(done, Ok(_) | Err(CommandError::Refused(_)));
        if let Some(key) = new.filter(|key| is_refused && stored.is_none_or(|memory| memory.text != *key)) {
            let _ = self.shared().ports.memory_texts.remove(vec![key]).await;
        }
        let stored = stored.cloned();
        done?;
        remove_erased(self.shared()).await.map_err(CommandError::Unavailable)?;
        Ok(stored)
    }
}

fn kept(event: &Event) -> Option<&Memory> {
    match event {
        Event::MemoryChanged { change: MemoryChange::Kept { memory }, .. } => Some(memory),
        _ => None,
    }
}

fn not_for_society() -> CommandError {
    let why = "this needs the scope `everyone`".to_owned();
    CommandError::Refused(Refusal::Denied { what: "what the society remembers".into(), why })
}
