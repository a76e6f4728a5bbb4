//! Storing, editing and erasing memories. Their texts are in the store before a command names them, and are removed from it
//! after the log says so.

use super::draft::Draft;
use crate::spine::Turn;
use crate::{
    EffectId, Event, MAX_MEMORY_BYTES, Memory, MemoryChange, MemoryCommand, MemoryId, MemoryScope, NewMemory, PersonId,
    Refusal, ThreadId,
};

pub(super) fn change(draft: &mut Draft<'_>, command: MemoryCommand) -> Result<(), Refusal> {
    let person = draft.person.clone().unwrap_or_else(PersonId::owner);
    match command {
        MemoryCommand::Keep(memory) => keep(draft, None, memory)?,
        MemoryCommand::Edit { id, text, bytes } => {
            check_bytes(bytes)?;
            let old = draft.spine.memories.find(&person, &id).ok_or(Refusal::UnknownMemory(id))?.clone();
            let memory = Memory { text, bytes: bytes as u32, edited_at: Some(draft.at), ..old };
            push(draft, None, None, MemoryChange::Kept { memory });
        }
        MemoryCommand::Erase { ids } => {
            for id in ids {
                let found = draft.spine.memories.find(&person, &id).ok_or_else(|| Refusal::UnknownMemory(id.clone()))?;
                let scope = found.scope.clone();
                push(draft, None, None, MemoryChange::Erased { id, scope, person: Some(person.clone()) });
            }
        }
        MemoryCommand::Switch { enabled } => push(draft, None, None, MemoryChange::Switched { person, enabled }),
        MemoryCommand::ConfirmRemoved { texts } => push(draft, None, None, MemoryChange::TextsRemoved { texts }),
        MemoryCommand::Book(change) => push(draft, None, None, change),
    }
    Ok(())
}

/// Stores a memory for a turn, or for a person. Only agents that work for the owner may store something for the whole society:
/// it would show what one person said to all others.
pub(super) fn keep(draft: &mut Draft<'_>, by: Option<(&Turn, EffectId)>, new: NewMemory) -> Result<(), Refusal> {
    let NewMemory { id, scope, text, bytes } = new;
    check_bytes(bytes)?;
    let agent = by.map(|(turn, _)| turn.agent.clone());
    if let Some(agent) = &agent
        && draft.spine.remembering_person(agent) != *scope.person().unwrap_or(&PersonId::owner())
    {
        let why = "an agent remembers for the person that it works for, and only the owner's agents for the society".to_owned();
        return Err(Refusal::Denied { what: "this scope".into(), why });
    }
    if let Some(agent) = &agent
        && !draft.spine.memories.is_enabled(&draft.spine.remembering_person(agent))
    {
        let why = "the person has switched memory off".to_owned();
        return Err(Refusal::Denied { what: "remembering".into(), why });
    }
    let limit = draft.spine.limits.memories;
    if draft.spine.memories.count(&scope) >= limit {
        return Err(Refusal::TooManyMemories { limit });
    }
    if draft.spine.memories.of(&scope).any(|known| known.id == id) {
        return Err(Refusal::NameTaken(id.to_string()));
    }
    let conversation = agent.as_ref().map(|agent| draft.spine.top(agent).clone());
    let (bytes, kept_at) = (bytes as u32, draft.at);
    let memory = Memory { id, scope, text, bytes, agent, conversation, kept_at, edited_at: None };
    push(draft, by.map(|(turn, _)| &turn.thread), by.map(|(_, id)| id), MemoryChange::Kept { memory });
    Ok(())
}

/// Erases a memory for a turn. An agent erases what it sees, except what belongs to the society and not to its person.
pub(super) fn erase_seen(draft: &mut Draft<'_>, turn: &Turn, by: EffectId, id: MemoryId) -> Result<(), Refusal> {
    let spine = draft.spine;
    let found = spine.memories_for(&turn.agent).into_iter().find(|memory| memory.id == id);
    let scope = found.ok_or_else(|| Refusal::UnknownMemory(id.clone()))?.scope.clone();
    if scope == MemoryScope::Society && spine.remembering_person(&turn.agent) != PersonId::owner() {
        let why = "only the owner's agents erase what the society remembers".to_owned();
        return Err(Refusal::Denied { what: "this memory".into(), why });
    }
    push(draft, Some(&turn.thread), Some(by), MemoryChange::Erased { id, scope, person: None });
    Ok(())
}

fn push(draft: &mut Draft<'_>, thread: Option<&ThreadId>, by: Option<EffectId>, change: MemoryChange) {
    draft.push(thread, Event::MemoryChanged { change, by });
}

fn check_bytes(bytes: usize) -> Result<(), Refusal> {
    match bytes {
        0 => Err(Refusal::EmptyText),
        1..=MAX_MEMORY_BYTES => Ok(()),
        _ => Err(Refusal::TextTooLong { bytes, limit: MAX_MEMORY_BYTES }),
    }
}
