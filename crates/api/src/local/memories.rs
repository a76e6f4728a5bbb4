//! Memories of the caller.

use polis_domain::{MemoryId, MemoryScope, Refusal};
use polis_engine::{CommandError, FoundMemory};

use super::Local;
use crate::{ApiError, ChangedMemory, EditMemory, KeepMemory, Memories, MemoryFilter, MemoryRecord, Scope, SwitchMemory};

/// How many are listed where nobody says.
const USUAL: usize = 100;

impl Local {
    /// The memories of the caller and of the society: newest first, or best first if words are searched.
    pub async fn memories(&self, filter: MemoryFilter) -> Result<Memories, ApiError> {
        self.caller.needs(Scope::Read)?;
        let limit = filter.limit.map_or(USUAL, |limit| (limit as usize).min(crate::paging::MOST));
        let (found, note) = self.society.memories(filter.search.as_deref().unwrap_or_default()).await?;
        let total = found.len();
        let after = filter.after.unwrap_or_default() as usize;
        let memories: Vec<_> = found.into_iter().skip(after).take(limit).map(record).collect();
        let last = after + memories.len();
        let next = (!memories.is_empty() && last < total).then(|| u32::try_from(last).unwrap_or(u32::MAX));
        let enabled = self.society.is_memory_enabled().await?;
        Ok(Memories { enabled, memories, total, next, note })
    }

    /// Stores a memory for the caller, or for the society.
    pub async fn keep_memory(&self, request: KeepMemory) -> Result<ChangedMemory, ApiError> {
        self.caller.needs(Scope::Send)?;
        if request.for_society {
            self.caller.needs(Scope::Everyone)?;
        }
        Ok(ChangedMemory { id: self.society.keep_memory(request.for_society, request.text.trim()).await? })
    }

    /// Gives a memory another text.
    pub async fn edit_memory(&self, id: &MemoryId, request: EditMemory) -> Result<ChangedMemory, ApiError> {
        self.caller.needs(Scope::Send)?;
        self.society.edit_memory(id.clone(), request.text.trim()).await.map_err(|error| self.missing_scope(error))?;
        Ok(ChangedMemory { id: id.clone() })
    }

    /// Erases a memory and its text.
    pub async fn erase_memory(&self, id: &MemoryId) -> Result<ChangedMemory, ApiError> {
        self.caller.needs(Scope::Send)?;
        self.society.erase_memories(vec![id.clone()]).await.map_err(|error| self.missing_scope(error))?;
        Ok(ChangedMemory { id: id.clone() })
    }

    /// Switches memory on or off for the caller.
    pub async fn switch_memory(&self, request: SwitchMemory) -> Result<SwitchMemory, ApiError> {
        self.caller.needs(Scope::Send)?;
        self.society.switch_memory(request.enabled).await?;
        Ok(request)
    }

    /// The problem of a caller who may not change what the society remembers, instead of a refusal by policy.
    fn missing_scope(&self, error: CommandError) -> ApiError {
        match (&error, self.caller.needs(Scope::Everyone)) {
            (CommandError::Refused(Refusal::Denied { .. }), Err(missing)) => missing,
            _ => error.into(),
        }
    }
}

fn record(found: FoundMemory) -> MemoryRecord {
    let FoundMemory { memory, text } = found;
    let scope = memory.scope.kind();
    let role_id = match memory.scope {
        MemoryScope::Role { role, .. } => Some(role),
        MemoryScope::Person(_) | MemoryScope::Society => None,
    };
    MemoryRecord {
        id: memory.id,
        text: text.map(|text| text.to_string()),
        scope,
        role_id,
        agent_id: memory.agent,
        conversation: memory.conversation,
        kept_at: memory.kept_at,
        edited_at: memory.edited_at,
    }
}
