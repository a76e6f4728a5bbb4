//! Entries of the spine that nothing in progress uses. They leave memory for the store, and are loaded again when a command, an
//! event or a query names them; so the memory of a society follows its open work and not its history.
//!
//! Agents and threads share one namespace, so everything of one name is one entry. Idle are: a sub-thread, with all below it, as
//! soon as the thread that it hangs in has no open turn; the agent of a conversation without open work and without living agents
//! below it; a terminated agent. Agents below root, and root itself, stay in memory.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::inbox::InboxEntry;
use crate::spine::{Agent, Head, OpenKind, Spine, Termination};
use crate::{
    Account, Act, AgentId, BudgetScope, Command, ConversationPlace, Effect, Event, MemoryChange, MetaPath, OpenInquiry,
    PersonId, Recorded, Spent, ThreadId, Trail,
};

/// An idle entry: everything of one name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct IdleEntry {
    /// The agent, if it has not been terminated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<Agent>,
    /// The record of a terminated agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    termination: Option<Termination>,
    /// The head of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<Head>,
    /// The account of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<Account>,
    /// Which outside content the agent's context contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trail: Option<Trail>,
    /// The person that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    person: Option<PersonId>,
}

/// What an entry is found by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdleKey {
    /// The name of an agent or thread.
    Name(Arc<str>),
    /// The message that a sub-thread hangs in; there may be several.
    Message(ThreadId, u32),
}

impl IdleEntry {
    /// The message that it hangs in, if it is a sub-thread.
    pub fn message(&self) -> Option<(&ThreadId, u32)> {
        let place = self.head.as_ref()?.place.as_deref()?;
        Some((&place.parent, place.index))
    }

    /// The person that it belongs to.
    pub fn person(&self) -> Option<&PersonId> {
        self.person.as_ref()
    }

    /// The place in the list of conversations, if it is one.
    pub fn place(&self) -> Option<ConversationPlace> {
        Some(self.agent.as_ref()?.conversation.as_deref()?.place())
    }

    /// What the agent of a conversation has spent, with all below it.
    fn spent(&self) -> Option<(&PersonId, Spent)> {
        let of_top = self.agent.as_ref().is_some_and(|agent| agent.parent.is_none())
            || self.termination.as_ref().is_some_and(|gone| gone.parent.is_none());
        self.person.as_ref().zip(self.account.map(|account| account.spent)).filter(|_| of_top)
    }

    /// The agent, if it has not been terminated.
    pub fn agent(&self) -> Option<&Agent> {
        self.agent.as_ref()
    }

    /// The record of the agent, if it was terminated.
    pub fn termination(&self) -> Option<&Termination> {
        self.termination.as_ref()
    }

    /// The head of the thread.
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// The account of the agent.
    pub fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    /// Whether it is a terminated agent.
    pub fn is_terminated(&self) -> bool {
        self.termination.is_some()
    }

    /// The entries that this one refers to and that must be in memory with it.
    fn needs(&self) -> impl Iterator<Item = &str> {
        let head = self.head.as_ref();
        let parent = head.and_then(|head| head.place.as_deref()).map(|place| place.parent.as_str());
        let above = self.agent.as_ref().and_then(|agent| agent.parent.as_ref());
        let above = above.or_else(|| self.termination.as_ref()?.parent.as_ref());
        parent.into_iter().chain(head.map(|head| head.agent.as_str())).chain(above.map(AgentId::as_str))
    }
}

/// Messages whose sub-threads were looked up while some of them may be in the store.
#[derive(Debug, Default)]
pub(crate) struct MissedLinks(Mutex<Vec<(ThreadId, u32)>>);

impl Clone for MissedLinks {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for MissedLinks {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What leaves memory, and what is loaded.
impl Spine {
    /// Takes the idle entries out. The caller stores them before it forgets them.
    pub fn unload(&mut self) -> Vec<(Arc<str>, IdleEntry)> {
        let mut names = Vec::new();
        let mains: Vec<_> = self.threads.iter().filter(|(_, head)| head.place.is_none()).map(|(id, _)| id.clone()).collect();
        for main in &mains {
            self.idle_below(main, &mut names);
        }
        let mut unloaded: Vec<_> = names.iter().filter_map(|name| self.unload_thread(name)).collect();
        let held = self.held();
        let is_idle = |id: &AgentId, agent: &Agent| {
            let is_open = agent.turn.is_some() || agent.inbox.is_some() || agent.termination.is_some();
            agent.conversation.is_some() && id.as_str() != AgentId::ROOT && !is_open && !held.contains(id)
        };
        let has_links =
            |id: &AgentId| self.threads.is_loaded(&id.main_thread()) && !self.threads[&id.main_thread()].links.is_empty();
        let agents = self.agents.iter().filter(|(id, agent)| is_idle(id, agent)).map(|(id, _)| id);
        let terminated = self.terminated.keys().filter(|id| !held.contains(*id));
        let names: Vec<_> = agents.chain(terminated).filter(|id| !has_links(id)).cloned().collect();
        unloaded.extend(names.into_iter().map(|name| self.unload_agent(&name)));
        if !unloaded.is_empty() {
            self.set_partial();
        }
        unloaded
    }

    /// Puts entries back. Those that are in memory already stay as they are, because they are newer.
    pub fn load(&mut self, entries: impl IntoIterator<Item = (Arc<str>, IdleEntry)>) {
        let mut linked = Vec::new();
        for (name, entry) in entries {
            let (id, thread) = (AgentId::new(name.clone()), ThreadId::new(name));
            if self.agents.is_loaded(&id) || self.terminated.is_loaded(&id) || self.threads.is_loaded(&thread) {
                continue;
            }
            if let Some((person, spent)) = entry.spent()
                && let Some(sum) = self.unloaded_spent.get_mut(person)
            {
                *sum = sum.minus(spent);
            }
            let IdleEntry { agent, termination, head, account, trail, person: _ } = entry;
            if let Some(agent) = agent {
                agent.conversation.iter().for_each(|it| self.conversations.insert(it.place(), id.clone()));
                self.agents.insert(id.clone(), agent);
            }
            termination.into_iter().for_each(|termination| self.terminated.insert(id.clone(), termination));
            self.ledger.extend(account.map(|account| (BudgetScope::Agent(id.clone()), account)));
            trail.into_iter().for_each(|trail| self.trails.put_back(&id, trail));
            if let Some(head) = head {
                linked.extend(head.place.clone().map(|place| (place, thread.clone())));
                self.threads.insert(thread, head);
            }
        }
        for (place, child) in linked {
            if let Some(parent) = self.threads.get_mut(&place.parent) {
                parent.link(place.index, place.slot, child);
            }
        }
    }

    /// The keys that were looked up in vain since the last time, and that the store may have.
    pub fn take_misses(&self) -> Vec<IdleKey> {
        let names = self.agents.take_misses().into_iter().chain(self.terminated.take_misses()).map(|id| id.shared());
        let threads = self.threads.take_misses().into_iter().map(|id| id.shared());
        let links = std::mem::take(&mut *self.missed_links.0.lock().unwrap_or_else(PoisonError::into_inner));
        let links = links.into_iter().map(|(thread, index)| IdleKey::Message(thread, index));
        // An entry that is in memory may lack what is asked for: an agent that has done nothing yet has no thread.
        let is_stored = |name: &Arc<str>| &**name != AgentId::USER && !self.has_name(name);
        let names = names.chain(threads).filter(is_stored).map(IdleKey::Name);
        let mut keys: Vec<_> = names.chain(links).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// The entries that loaded ones refer to and that are not in memory.
    pub fn missing_of(&self, entries: &[(Arc<str>, IdleEntry)]) -> Vec<IdleKey> {
        let known: FxHashSet<&str> = entries.iter().map(|(name, _)| &**name).collect();
        let needed = entries.iter().flat_map(|(_, entry)| entry.needs());
        needed.filter(|name| !known.contains(name) && !self.has_name(name)).map(|name| IdleKey::Name(name.into())).collect()
    }

    /// What the conversations of a person have spent that are not in memory.
    pub fn unloaded_spent(&self, person: &PersonId) -> Spent {
        self.unloaded_spent.get(person).copied().unwrap_or_default()
    }

    /// Whether entries may be in the store.
    pub fn is_partial(&self) -> bool {
        self.has_idle
    }

    /// Drops the marks that tell what was unloaded, after everything has been loaded.
    pub fn forget_unloaded(&mut self) {
        self.has_idle = false;
        self.unloaded_spent.clear();
        self.threads.values_mut().for_each(|head| head.unloaded_before = 0);
    }

    /// The names of everything in memory.
    pub fn names(&self) -> impl Iterator<Item = Arc<str>> {
        let agents = self.agents.keys().chain(self.terminated.keys()).map(AgentId::shared);
        agents.chain(self.threads.keys().map(ThreadId::shared))
    }

    pub(crate) fn set_partial(&mut self) {
        self.has_idle = true;
        self.agents.set_partial();
        self.terminated.set_partial();
        self.threads.set_partial();
    }

    /// The sub-threads in a message.
    pub(crate) fn links(&self, thread: &ThreadId, index: u32) -> &[(MetaPath, ThreadId)] {
        let Some(head) = self.threads.get(thread) else { return &[] };
        if index < head.unloaded_before {
            self.missed_links.0.lock().unwrap_or_else(PoisonError::into_inner).push((thread.clone(), index));
        }
        head.links.get(&index).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether an entry of this name is in memory.
    pub fn has_name(&self, name: &str) -> bool {
        let (agent, thread) = (AgentId::from(name), ThreadId::from(name));
        self.agents.is_loaded(&agent) || self.terminated.is_loaded(&agent) || self.threads.is_loaded(&thread)
    }

    /// Collects the sub-threads below a thread that are idle, those further down first. Returns whether all of them are, and the
    /// thread itself.
    fn idle_below(&self, thread: &ThreadId, idle: &mut Vec<ThreadId>) -> bool {
        let Some(head) = self.threads.get(thread) else { return true };
        let is_open = head.turn.is_some();
        let mut is_idle = !is_open;
        for (_, child) in head.links.values().flatten() {
            let child_is_idle = self.idle_below(child, idle);
            if child_is_idle && !is_open {
                idle.push(child.clone());
            }
            is_idle &= child_is_idle;
        }
        is_idle
    }

    fn unload_thread(&mut self, thread: &ThreadId) -> Option<(Arc<str>, IdleEntry)> {
        let person = self.threads.get(thread).and_then(|head| self.person(&head.agent)).cloned();
        let head = self.threads.remove(thread)?;
        if let Some(place) = head.place.as_deref()
            && let Some(parent) = self.threads.get_mut(&place.parent)
        {
            if let Some(links) = parent.links.get_mut(&place.index) {
                links.retain(|(_, child)| child != thread);
            }
            parent.links.retain(|_, links| !links.is_empty());
            parent.unloaded_before = parent.unloaded_before.max(place.index + 1);
        }
        Some((thread.shared(), IdleEntry { head: Some(head), person, ..IdleEntry::default() }))
    }

    fn unload_agent(&mut self, id: &AgentId) -> (Arc<str>, IdleEntry) {
        let person = self.person(id).cloned();
        let agent = self.agents.remove(id);
        let conversation = agent.as_ref().and_then(|agent| agent.conversation.as_deref());
        conversation.into_iter().for_each(|conversation| self.conversations.remove(conversation.place()));
        let entry = IdleEntry {
            agent,
            termination: self.terminated.remove(id),
            head: self.threads.remove(&id.main_thread()),
            account: self.ledger.remove(&BudgetScope::Agent(id.clone())),
            trail: self.trails.take_out(id),
            person,
        };
        if let Some((person, spent)) = entry.spent() {
            let sum = self.unloaded_spent.entry(person.clone()).or_default();
            *sum = sum.plus(spent);
        }
        (id.shared(), entry)
    }

    /// The agents that open work refers to, with all above them, and those that have living agents below them.
    fn held(&self) -> FxHashSet<AgentId> {
        let mut held: FxHashSet<&AgentId> = self.agents.values().filter_map(|agent| agent.parent.as_ref()).collect();
        for turn in self.turns.values() {
            held.insert(&turn.agent);
            held.extend(turn.cause.as_ref().map(|cause| &cause.from));
            held.extend(turn.open.iter().filter_map(|open| match &open.kind {
                OpenKind::Ask(agent) | OpenKind::Terminate(agent) => Some(agent),
                _ => None,
            }));
            // An agent may be terminated while a call has a reservation in its account.
            held.extend(turn.open.iter().flat_map(|open| open.kind.scopes()).filter_map(BudgetScope::agent));
        }
        for inquiry in self.inquiries.values() {
            if let OpenInquiry::Model(reserved) = inquiry {
                held.extend(reserved.scopes.iter().filter_map(BudgetScope::agent));
            }
        }
        for agent in self.agents.values() {
            held.extend(agent.termination.as_ref().map(|termination| &termination.caller));
            held.extend(agent.inbox.iter().flat_map(|inbox| &inbox.entries).filter_map(|due| match due {
                InboxEntry::Envelope(envelope) => Some(&envelope.from),
                InboxEntry::FollowUp { cause, .. } => cause.as_ref().map(|cause| &cause.from),
            }));
        }
        for activity in self.activities.values() {
            held.extend(&activity.conversation);
            held.extend(activity.messages.iter().flat_map(|(from, sent)| std::iter::once(from).chain(sent.keys())));
        }
        let above: FxHashSet<AgentId> = held.iter().flat_map(|id| self.with_ancestors(id)).cloned().collect();
        above
    }
}

/// Which entries are named.
impl Spine {
    /// The entries that a command names and that are not in memory.
    pub fn missing_for(&self, command: &Command) -> Vec<IdleKey> {
        if !self.has_idle {
            return Vec::new();
        }
        let mut names = Names { spine: self, keys: Vec::new() };
        names.command(command);
        names.keys
    }

    /// The entries that an event names and that are not in memory.
    pub fn missing_for_event(&self, recorded: &Recorded) -> Vec<IdleKey> {
        if !self.has_idle {
            return Vec::new();
        }
        let mut names = Names { spine: self, keys: Vec::new() };
        names.event(recorded);
        names.keys
    }
}

/// Collects the names that are not in memory.
struct Names<'a> {
    spine: &'a Spine,
    keys: Vec<IdleKey>,
}

impl Names<'_> {
    fn agent(&mut self, id: &AgentId) {
        if !id.is_user() && !self.spine.agents.is_loaded(id) && !self.spine.terminated.is_loaded(id) {
            self.keys.push(IdleKey::Name(id.shared()));
        }
    }

    fn thread(&mut self, id: &ThreadId) {
        // An agent that has done nothing yet has no head, and is in memory all the same.
        if !self.spine.threads.is_loaded(id) && !self.spine.has_name(id.as_str()) {
            self.keys.push(IdleKey::Name(id.shared()));
        }
    }

    fn message(&mut self, thread: &ThreadId, index: Option<u32>) {
        self.thread(thread);
        // A message that this pass adds has no sub-threads in the store.
        let head = self.spine.threads.is_loaded(thread).then(|| &self.spine.threads[thread]);
        let index = index.or_else(|| head?.messages.checked_sub(1));
        if let Some(index) = index.filter(|index| head.is_none_or(|head| *index < head.unloaded_before)) {
            self.keys.push(IdleKey::Message(thread.clone(), index));
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Once { command, .. } | Command::By { command, .. } => self.command(command),
            Command::Spawn { agent, parent, .. } => {
                self.agent(agent);
                self.agent(parent);
            }
            Command::Terminate { agent, .. }
            | Command::ChangeConversation { agent, .. }
            | Command::EraseConversation { agent, .. }
            | Command::ConfirmErased { agent, .. } => self.agent(agent),
            Command::Import { org, .. } => org.agents.iter().for_each(|agent| self.agent(&agent.id)),
            Command::RestoreContext { thread } => self.thread(thread),
            Command::StartConversation { conversation, .. } => self.agent(&conversation.agent),
            Command::ChangeMemories { change } => change.agent().into_iter().for_each(|agent| self.agent(agent)),
            Command::Send { envelope } => self.agent(&envelope.to),
            Command::DeclareEffects { effects, .. } => effects.iter().for_each(|effect| self.effect(effect)),
            Command::Act { acts, .. } => acts.iter().for_each(|act| self.act(act)),
            // These concern open turns, whose entries are in memory, or the society as a whole.
            Command::Found { .. }
            | Command::Fork { .. }
            | Command::SetVersions { .. }
            | Command::SetBudgets { .. }
            | Command::CreateRole { .. }
            | Command::ChangeRole { .. }
            | Command::Retry { .. }
            | Command::Inquire { .. }
            | Command::Answer { .. }
            | Command::End { .. }
            | Command::Doubt { .. }
            | Command::Restart { .. }
            | Command::Resolve { .. }
            | Command::Expire { .. }
            | Command::Settle { .. }
            | Command::Revive
            | Command::Rest { .. }
            | Command::Crash { .. }
            | Command::Park { .. }
            | Command::Resume { .. }
            | Command::Cancel { .. } => {}
        }
    }

    fn effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Ask { envelope, .. } => self.agent(&envelope.to),
            Effect::Terminate { agent, .. } => self.agent(agent),
            Effect::Unit { thread, .. } => self.thread(thread),
            _ => {}
        }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::AddMessage { thread, .. }
            | Act::UpdateMessage { thread, .. }
            | Act::UpdateSettings { thread, .. }
            | Act::SetPlan { thread, .. }
            | Act::SuggestPhase { thread, .. }
            | Act::CompressContext { thread, .. }
            | Act::RestoreContext { thread }
            | Act::KeepContext { thread, .. } => self.thread(thread),
            Act::OpenSubThread { parent, index, child, .. } => {
                self.message(parent, *index);
                self.thread(child);
            }
            Act::Send { envelope } => self.agent(&envelope.to),
            Act::Spawn { agent, .. } => self.agent(agent),
            Act::TakeMessages | Act::CreateRole { .. } | Act::KeepMemory { .. } | Act::EraseMemory { .. } => {}
        }
    }

    fn event(&mut self, recorded: &Recorded) {
        recorded.thread.iter().filter(|thread| !thread.is_of_task()).for_each(|thread| self.thread(thread));
        match &recorded.event {
            Event::AgentSpawned { agent, parent, .. } => {
                self.agent(agent);
                parent.iter().for_each(|parent| self.agent(parent));
            }
            Event::ConversationStarted { agent, .. }
            | Event::ConversationChanged { agent, .. }
            | Event::ConversationErased { agent, .. }
            | Event::ErasureDone { agent, .. }
            | Event::AgentDismissed { agent, .. }
            | Event::AgentTerminated { agent }
            | Event::InboxCleared { agent, .. }
            | Event::TurnStarted { agent, .. }
            | Event::MessagesTaken { agent, .. }
            | Event::MessageDeadLettered { agent, .. }
            | Event::BudgetGranted { scope: BudgetScope::Agent(agent), .. }
            | Event::MemoryChanged { change: MemoryChange::Embedded { agent: Some(agent), .. }, .. } => self.agent(agent),
            Event::MessageSent { envelope, .. } => {
                self.agent(&envelope.to);
                self.agent(&envelope.from);
            }
            Event::EffectStarted { effect, .. } => self.effect(effect),
            Event::ThreadOpened { agent, parent, .. } => {
                self.agent(agent);
                self.thread(parent);
            }
            Event::ThreadLinked { child, .. } => self.thread(child),
            _ => {}
        }
    }
}
