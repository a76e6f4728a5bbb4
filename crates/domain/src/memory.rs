//! What agents remember across conversations. The log and the spine have ids, scopes and origins; the texts are stored outside
//! the log, so that an erased text cannot be read anywhere any more.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{AgentId, MemoryId, MemoryTextId, PersonId, RoleId, Spent, Spine, Timestamp};

/// The longest text of a memory, in bytes.
pub const MAX_MEMORY_BYTES: usize = 4_096;

/// For whom something is remembered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum MemoryScope {
    /// For all agents that work for a person.
    Person(PersonId),
    /// For the agents of one role that work for a person. Agents of the same role that work for others do not see it.
    Role {
        /// The person.
        person: PersonId,
        /// The role.
        role: RoleId,
    },
    /// For all agents, whomever they work for.
    Society,
}

impl MemoryScope {
    /// The person whose memory it is; none if it is the society's.
    pub fn person(&self) -> Option<&PersonId> {
        match self {
            Self::Person(person) | Self::Role { person, .. } => Some(person),
            Self::Society => None,
        }
    }

    /// The kind of the scope.
    pub fn kind(&self) -> MemoryScopeKind {
        match self {
            Self::Person(_) => MemoryScopeKind::Person,
            Self::Role { .. } => MemoryScopeKind::Role,
            Self::Society => MemoryScopeKind::Society,
        }
    }
}

/// A scope as agents and people name it; whose it is follows from the agent or person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MemoryScopeKind {
    /// For all agents that work for the person.
    #[default]
    Person,
    /// For the agents of one role that work for the person.
    Role,
    /// For all agents.
    Society,
}

/// One memory, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Names it in commands and the log, for good.
    pub id: MemoryId,
    /// For whom it is.
    pub scope: MemoryScope,
    /// The key of its text in the store. Each edit has a new one.
    pub text: MemoryTextId,
    /// The length of its text.
    pub bytes: u32,
    /// The agent that remembered it; none if a person wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The conversation in which that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<AgentId>,
    /// When it was first remembered.
    pub kept_at: Timestamp,
    /// When it was last edited, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<Timestamp>,
}

/// What happened to memories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum MemoryChange {
    /// A memory was stored or edited.
    Kept {
        /// The memory as it is from now on.
        memory: Memory,
    },
    /// A memory is erased. Its text is removed from the store next.
    Erased {
        /// Which memory is meant.
        id: MemoryId,
        /// For whom it was.
        scope: MemoryScope,
        /// The person who erased it; none if an agent did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        person: Option<PersonId>,
    },
    /// The texts of erased and edited memories are no longer in the store.
    TextsRemoved {
        /// Keys under which the store had them.
        texts: Vec<MemoryTextId>,
    },
    /// A person switched memory on or off for the agents that work for them. What is stored stays.
    Switched {
        /// The person.
        person: PersonId,
        /// Whether their agents remember from now on.
        enabled: bool,
    },
    /// An embedding model was called for a search. The vectors are derived from texts and may be computed again, so only the
    /// cost is recorded.
    Embedded {
        /// The embedding model.
        model: std::sync::Arc<str>,
        /// How many texts it was given.
        texts: u32,
        /// What it cost.
        spent: Spent,
        /// The agent that searched; none if a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
    },
}

impl MemoryChange {
    /// The person that it concerns.
    pub(crate) fn person<'a>(&'a self, spine: &'a Spine) -> Option<&'a PersonId> {
        match self {
            Self::Kept { memory } => memory.scope.person(),
            Self::Erased { scope, .. } => scope.person(),
            Self::Switched { person, .. } => Some(person),
            Self::TextsRemoved { .. } => None,
            Self::Embedded { agent, .. } => spine.person(agent.as_ref()?),
        }
    }
}

/// A change of memories that is asked for from outside any turn.
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryCommand {
    /// Store a memory. Its text is in the store.
    Keep(NewMemory),
    /// Give a memory another text, which is in the store.
    Edit {
        /// Which memory is meant.
        id: MemoryId,
        /// The key of the new text.
        text: MemoryTextId,
        /// Its length.
        bytes: usize,
    },
    /// Erase memories, all or none of them.
    Erase {
        /// The memories.
        ids: Vec<MemoryId>,
    },
    /// Switch memory on or off for the agents that work for the person.
    Switch {
        /// Whether they remember from now on.
        enabled: bool,
    },
    /// These texts have been removed from the store.
    ConfirmRemoved {
        /// Keys under which the store had them.
        texts: Vec<MemoryTextId>,
    },
    /// An embedding model was called; see [`MemoryChange::Embedded`].
    Book(MemoryChange),
}

impl MemoryCommand {
    /// The agent that it names.
    pub(crate) fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Book(MemoryChange::Embedded { agent, .. }) => agent.as_ref(),
            _ => None,
        }
    }
}

/// A memory that is about to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMemory {
    /// Names it in commands and the log, for good.
    pub id: MemoryId,
    /// For whom it is.
    pub scope: MemoryScope,
    /// The key of its text.
    pub text: MemoryTextId,
    /// The length of its text.
    pub bytes: usize,
}

/// The memories of a society, and the texts that still have to be removed from the store.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "StoredMemories", into = "StoredMemories")]
pub struct Memories {
    kept: BTreeMap<MemoryScope, BTreeMap<MemoryId, Memory>>,
    removing: BTreeSet<MemoryTextId>,
    /// The persons who have switched memory off.
    off: BTreeSet<PersonId>,
}

/// [`Memories`] in a snapshot.
#[derive(Serialize, Deserialize)]
struct StoredMemories {
    kept: Vec<Memory>,
    removing: BTreeSet<MemoryTextId>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    off: BTreeSet<PersonId>,
}

impl From<StoredMemories> for Memories {
    fn from(stored: StoredMemories) -> Self {
        let mut memories = Self { kept: BTreeMap::new(), removing: stored.removing, off: stored.off };
        for memory in stored.kept {
            memories.kept.entry(memory.scope.clone()).or_default().insert(memory.id.clone(), memory);
        }
        memories
    }
}

impl From<Memories> for StoredMemories {
    fn from(memories: Memories) -> Self {
        let kept = memories.kept.into_values().flat_map(BTreeMap::into_values).collect();
        Self { kept, removing: memories.removing, off: memories.off }
    }
}

impl Memories {
    /// The memories of one scope, oldest first.
    pub fn of(&self, scope: &MemoryScope) -> impl Iterator<Item = &Memory> {
        self.kept.get(scope).into_iter().flat_map(BTreeMap::values)
    }

    /// The memories of all scopes.
    pub fn all(&self) -> impl Iterator<Item = &Memory> {
        self.kept.values().flat_map(BTreeMap::values)
    }

    /// How many memories a scope has.
    pub fn count(&self, scope: &MemoryScope) -> usize {
        self.kept.get(scope).map_or(0, BTreeMap::len)
    }

    /// The memories of a person in all scopes, and those of the society.
    pub fn of_person(&self, person: &PersonId) -> impl Iterator<Item = &Memory> {
        let first_role = MemoryScope::Role { person: person.clone(), role: "".into() };
        let roles = self.kept.range(first_role..).map(|(scope, _)| scope);
        let theirs = roles.take_while(|scope| scope.person() == Some(person)).cloned();
        let scopes: Vec<_> =
            [MemoryScope::Person(person.clone())].into_iter().chain(theirs).chain([MemoryScope::Society]).collect();
        scopes.into_iter().filter_map(|scope| self.kept.get(&scope)).flat_map(BTreeMap::values)
    }

    /// One memory of a person or of the society. Those of others do not exist for them.
    pub fn find(&self, person: &PersonId, id: &MemoryId) -> Option<&Memory> {
        self.of_person(person).find(|memory| memory.id == *id)
    }

    /// The texts that still have to be removed from the store.
    pub fn removing(&self) -> impl Iterator<Item = &MemoryTextId> {
        self.removing.iter()
    }

    /// Whether agents remember for a person.
    pub fn is_enabled(&self, person: &PersonId) -> bool {
        !self.off.contains(person)
    }

    pub(crate) fn change(&mut self, change: &MemoryChange) {
        match change {
            MemoryChange::Kept { memory } => {
                let old = self.kept.entry(memory.scope.clone()).or_default().insert(memory.id.clone(), memory.clone());
                self.removing.extend(old.map(|old| old.text).filter(|old| *old != memory.text));
            }
            MemoryChange::Erased { id, scope, .. } => {
                let Some(of_scope) = self.kept.get_mut(scope) else { return };
                self.removing.extend(of_scope.remove(id).map(|memory| memory.text));
                if of_scope.is_empty() {
                    self.kept.remove(scope);
                }
            }
            MemoryChange::TextsRemoved { texts } => self.removing.retain(|text| !texts.contains(text)),
            MemoryChange::Switched { person, enabled: true } => drop(self.off.remove(person)),
            MemoryChange::Switched { person, enabled: false } => drop(self.off.insert(person.clone())),
            MemoryChange::Embedded { .. } => {}
        }
    }
}

impl Spine {
    /// The person whose memories an agent sees; the owner's if it belongs to no conversation.
    pub fn remembering_person(&self, agent: &AgentId) -> PersonId {
        self.person(agent).cloned().unwrap_or_else(PersonId::owner)
    }

    /// The scope that an agent means by a kind of scope.
    pub fn memory_scope(&self, agent: &AgentId, kind: MemoryScopeKind) -> MemoryScope {
        let person = self.remembering_person(agent);
        match (kind, self.agents.get(agent)) {
            (MemoryScopeKind::Role, Some(agent)) => MemoryScope::Role { person, role: agent.role.clone() },
            (MemoryScopeKind::Society, _) => MemoryScope::Society,
            (MemoryScopeKind::Person | MemoryScopeKind::Role, _) => MemoryScope::Person(person),
        }
    }

    /// The memories that an agent sees: those of its person, of its role for this person, and of the society. It sees none if its
    /// person has switched memory off.
    pub fn memories_for(&self, agent: &AgentId) -> Vec<&Memory> {
        if !self.memories.is_enabled(&self.remembering_person(agent)) {
            return Vec::new();
        }
        let kinds = [MemoryScopeKind::Person, MemoryScopeKind::Role, MemoryScopeKind::Society];
        let scopes: BTreeSet<_> = kinds.into_iter().map(|kind| self.memory_scope(agent, kind)).collect();
        scopes.iter().flat_map(|scope| self.memories.of(scope)).collect()
    }
}
