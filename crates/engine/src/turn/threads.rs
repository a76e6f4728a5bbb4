//! Reading and changing threads. Every change is one append; every read is as of the turn's position in the log.

use std::sync::Arc;

use polis_domain::{
    Act, Command, EffectId, Event, Failure, History, MemoryChange, Message, MessageId, MessagePatch, Meta, MetaPath, PastStep,
    PastStepKind, Phase, Recorded, Sender, Seq, Settings, SubThreadPath, Thread, ThreadId,
};
use polis_ports::ThreadRange;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::Turn;

/// Ids and indices that this run has already looked up. It is a cache: a second run looks them up again.
#[derive(Default)]
pub(super) struct ThreadCache {
    threads: FxHashMap<SubThreadPath, ThreadId>,
    indices: FxHashMap<(ThreadId, MessageId), u32>,
    first_message: Option<Arc<str>>,
}

/// Among so many of its oldest events, a thread has its first message.
const FIRST_EVENTS: usize = 8;

/// How many events are read at first for each message that is wanted, and at least. More are read if that is too few.
pub(super) const EVENTS_OF_A_MESSAGE: usize = 4;
pub(super) const MIN_EVENTS: usize = 64;

/// How many commands a turn may send ahead before it waits for their commits.
pub(super) const MAX_AHEAD: usize = 16;

/// One of several changes that are made together (R117).
#[derive(Debug, Clone, PartialEq)]
pub enum BatchUpdate {
    /// Change fields of a message.
    UpdateMessage {
        /// The address of the thread.
        path: SubThreadPath,
        /// The message to change.
        message: MessageId,
        /// The fields to change; the others stay.
        patch: MessagePatch,
    },
    /// Add a message.
    AddMessage {
        /// The address of the thread.
        path: SubThreadPath,
        /// Whether it is a user or a bot message.
        sender: Sender,
        /// The text of the message.
        text: String,
    },
    /// Change fields of a sub-thread.
    UpdateSubThread {
        /// The address of the thread.
        path: SubThreadPath,
        /// The fields to change; the others stay.
        updates: ThreadPatch,
    },
}

/// The fields of a thread that change. Its id and meta are fixed when it is opened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThreadPatch {
    /// The new settings, complete.
    pub settings: Option<Settings>,
    /// All messages as they are to be. They can be added and changed, not removed or reordered.
    pub messages: Option<Vec<Arc<Message>>>,
}

/// A message to add to a turn's own thread.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    /// Whether it is a user or a bot message.
    pub sender: Sender,
    /// The text of the message.
    pub text: String,
    /// Free data about it.
    pub meta: Meta,
}

impl Turn {
    /// Adds messages to the turn's own thread and makes other changes, all with one append. Returns the ids of the messages.
    /// The turn does not wait for the append: whatever it sends next stands behind it in the log.
    pub async fn add_messages(
        &mut self,
        messages: Vec<NewMessage>,
        changes: Vec<BatchUpdate>,
    ) -> Result<Vec<MessageId>, Failure> {
        let mut acts = self.acts_of(changes).await?;
        let ids = self.adding(&mut acts, messages);
        if !acts.is_empty() {
            self.act_ahead(acts).await?;
        }
        Ok(ids)
    }

    /// Adds the last messages of a turn to its own thread and suggests the next phase, all with one append. Returns the last
    /// message.
    pub async fn conclude(&mut self, mut messages: Vec<NewMessage>, phase: Option<Phase>) -> Result<Arc<Message>, Failure> {
        let (path, thread) = (self.path(), self.start.thread.clone());
        let nothing = || Failure::new("no_bot_message", "nothing was said");
        let NewMessage { sender, text, meta } = messages.pop().ok_or_else(nothing)?;
        let mut acts = Vec::with_capacity(messages.len() + 2);
        self.adding(&mut acts, messages);
        let last = Arc::new(Message { meta, ..self.new_message(&path, sender, text) });
        acts.push(Act::AddMessage { thread: thread.clone(), message: last.clone() });
        acts.extend(phase.clone().map(|phase| Act::SuggestPhase { thread, phase }));
        self.act_ahead(acts).await?;
        self.suggested = phase.or(self.suggested.take());
        Ok(last)
    }

    fn adding(&mut self, acts: &mut Vec<Act>, messages: Vec<NewMessage>) -> Vec<MessageId> {
        let (path, thread) = (self.path(), self.start.thread.clone());
        let mut ids = Vec::with_capacity(messages.len());
        for NewMessage { sender, text, meta } in messages {
            let message = Message { meta, ..self.new_message(&path, sender, text) };
            ids.push(message.id.clone());
            acts.push(Act::AddMessage { thread: thread.clone(), message: Arc::new(message) });
        }
        ids
    }

    /// Adds a bot message to the turn's own thread.
    pub async fn say(&mut self, text: impl Into<String>) -> Result<Arc<Message>, Failure> {
        self.add_message(&self.path(), Sender::Bot, text).await
    }

    /// Adds a message to a thread of this agent.
    pub async fn add_message(
        &mut self,
        path: &SubThreadPath,
        sender: Sender,
        text: impl Into<String>,
    ) -> Result<Arc<Message>, Failure> {
        let thread = self.resolve(path).await?;
        let message = Arc::new(self.new_message(path, sender, text.into()));
        self.act(vec![Act::AddMessage { thread, message: message.clone() }]).await?;
        Ok(message)
    }

    /// Changes fields of a message and leaves the others (R022).
    pub async fn update_message(
        &mut self,
        path: &SubThreadPath,
        message: &MessageId,
        patch: MessagePatch,
    ) -> Result<(), Failure> {
        let thread = self.resolve(path).await?;
        let index = self.index_of(&thread, message).await?;
        self.act(vec![Act::UpdateMessage { thread, index, patch }]).await.map(drop)
    }

    /// A thread's settings (R020).
    pub async fn thread_settings(&mut self, path: &SubThreadPath) -> Result<Settings, Failure> {
        let thread = self.resolve(path).await?;
        let range = ThreadRange::through(self.committed_position().await);
        let events = self.read(&thread, range).await;
        Ok(Settings::fold(events.iter().map(|recorded| &**recorded)))
    }

    /// Replaces a thread's settings (R021).
    pub async fn update_thread_settings(&mut self, path: &SubThreadPath, settings: Settings) -> Result<(), Failure> {
        let thread = self.resolve(path).await?;
        self.act(vec![Act::UpdateSettings { thread, settings }]).await.map(drop)
    }

    /// Suggests the phase for the next task of the turn's own thread (R044). The last suggestion wins (D04).
    pub async fn suggest_phase(&mut self, phase: Phase) -> Result<(), Failure> {
        self.suggest_phase_in(&self.path(), phase.clone()).await?;
        self.suggested = Some(phase);
        Ok(())
    }

    /// Suggests the phase for the next task of a thread (D03).
    pub async fn suggest_phase_in(&mut self, path: &SubThreadPath, phase: Phase) -> Result<(), Failure> {
        let thread = self.resolve(path).await?;
        self.act(vec![Act::SuggestPhase { thread, phase }]).await.map(drop)
    }

    /// Opens a sub-thread in `meta._thread` of a message, in its own first phase (D02), and returns its address.
    pub async fn open_sub_thread(&mut self, path: &SubThreadPath, message: &MessageId) -> Result<SubThreadPath, Failure> {
        self.open_sub_thread_at(path, message, MetaPath::default(), Settings::default(), Meta::new()).await
    }

    /// Opens a sub-thread anywhere in the meta of a message, with initial settings and meta.
    pub async fn open_sub_thread_at(
        &mut self,
        path: &SubThreadPath,
        message: &MessageId,
        slot: MetaPath,
        settings: Settings,
        meta: Meta,
    ) -> Result<SubThreadPath, Failure> {
        let parent = self.resolve(path).await?;
        let index = self.index_of(&parent, message).await?;
        let child = self.sub_thread_id(path, &parent);
        let (at, place) = (Some(index), slot.clone());
        let act = Act::OpenSubThread { parent, index: at, slot: place, child: child.clone(), settings, meta, held: None };
        self.act(vec![act]).await?;
        let address = path.child_at(index, slot);
        self.thread_cache.threads.insert(address.clone(), child);
        Ok(address)
    }

    /// Caches the addresses of sub-threads that an act has opened below the turn's own thread, and returns them in order.
    pub(super) fn linked(&mut self, events: &[Arc<Recorded>]) -> Vec<SubThreadPath> {
        let here = self.path();
        let mut addresses = Vec::new();
        for recorded in events {
            if let Event::ThreadLinked { index, slot, child, .. } = &recorded.event {
                let address = here.child_at(*index, slot.clone());
                self.thread_cache.threads.insert(address.clone(), child.clone());
                addresses.push(address);
            }
        }
        addresses
    }

    /// Makes several changes with one append: all or nothing (R117).
    pub async fn batch_update(&mut self, updates: Vec<BatchUpdate>) -> Result<(), Failure> {
        let acts = self.acts_of(updates).await?;
        self.act(acts).await.map(drop)
    }

    pub(super) async fn acts_of(&mut self, updates: Vec<BatchUpdate>) -> Result<Vec<Act>, Failure> {
        let mut acts = Vec::with_capacity(updates.len());
        for update in updates {
            acts.push(match update {
                BatchUpdate::UpdateMessage { path, message, patch } => {
                    let thread = self.resolve(&path).await?;
                    let index = self.index_of(&thread, &message).await?;
                    Act::UpdateMessage { thread, index, patch }
                }
                BatchUpdate::AddMessage { path, sender, text } => {
                    let thread = self.resolve(&path).await?;
                    Act::AddMessage { thread, message: Arc::new(self.new_message(&path, sender, text)) }
                }
                BatchUpdate::UpdateSubThread { path, updates: ThreadPatch { settings, messages } } => {
                    let thread = self.resolve(&path).await?;
                    if let Some(messages) = messages {
                        acts.extend(changes(&thread, &self.thread(&path).await?.messages, &messages)?);
                    }
                    acts.extend(settings.map(|settings| Act::UpdateSettings { thread, settings }));
                    continue;
                }
            });
        }
        Ok(acts)
    }

    /// Saves a changed thread: appends the differences, all or nothing (R023, D08). Messages can be added and changed, not
    /// removed; sub-threads are saved at their own address.
    pub async fn save_thread(&mut self, path: &SubThreadPath, changed: &Thread) -> Result<(), Failure> {
        let thread = self.resolve(path).await?;
        let saved = self.thread(path).await?;
        let mut acts = changes(&thread, &saved.messages, &changed.messages)?;
        if changed.settings != saved.settings {
            acts.push(Act::UpdateSettings { thread, settings: changed.settings.clone() });
        }
        if acts.is_empty() { Ok(()) } else { self.act(acts).await.map(drop) }
    }

    /// A thread of this agent, as of the turn's position in the log. Sub-threads appear by id only.
    pub async fn thread(&mut self, path: &SubThreadPath) -> Result<Thread, Failure> {
        let thread = self.resolve(path).await?;
        let range = ThreadRange::through(self.committed_position().await);
        let events = self.read(&thread, range).await;
        let view = Thread::fold(thread.clone(), events.iter().map(|recorded| &**recorded));
        let indices = (0..).zip(&view.messages).map(|(index, message)| ((thread.clone(), message.id.clone()), index));
        self.thread_cache.indices.extend(indices);
        Ok(view)
    }

    /// The turn's own thread.
    pub async fn own_thread(&mut self) -> Result<Thread, Failure> {
        self.thread(&self.path()).await
    }

    /// The newest messages of the turn's own thread with their indices, oldest first. The cost does not depend on the length
    /// of the thread.
    pub async fn recent(&mut self, limit: usize) -> Result<Vec<(u32, Arc<Message>)>, Failure> {
        Ok(self.history(0, limit).await?.0)
    }

    /// The messages of the turn's own thread from an index on, at most `limit` of the newest, and what happened between them in
    /// earlier turns. No more of the thread is read than that.
    pub(super) async fn history(
        &mut self,
        from: u32,
        limit: usize,
    ) -> Result<(Vec<(u32, Arc<Message>)>, Vec<PastStep>), Failure> {
        let thread = self.start.thread.clone();
        let wanted = limit.min(self.length_at_start.saturating_sub(from) as usize);
        let mut newest = wanted.saturating_mul(EVENTS_OF_A_MESSAGE).max(MIN_EVENTS);
        loop {
            let through = self.committed_position().await;
            let events = self.read_newest(&thread, newest, through).await;
            let mut history = History::default();
            events.iter().for_each(|event| history.apply(event));
            let History { messages, mut steps, .. } = history;
            let found = messages.indexed().count();
            let is_enough = found >= limit || messages.indexed().next().is_some_and(|(index, _)| index <= from);
            if !is_enough && events.len() == newest {
                newest = newest.saturating_mul(2);
                continue;
            }
            let from = from.max(messages.indexed().nth(found.saturating_sub(limit)).map_or(0, |(index, _)| index));
            let shown = messages.indexed().filter(|(index, _)| *index >= from);
            let recent: Vec<_> = shown.map(|(index, message)| (index, message.clone())).collect();
            let indices = recent.iter().map(|(index, message)| ((thread.clone(), message.id.clone()), *index));
            self.thread_cache.indices.extend(indices);
            // A step before the first message that is shown belongs to a turn that is not shown.
            let first = recent.first().map_or(u32::MAX, |(index, _)| *index);
            let is_told = |step: &PastStep| matches!(step.kind, PastStepKind::Environment(_));
            steps.retain(|step| match is_told(step) {
                true => step.before >= first,
                false => step.before > first && step.turn != self.start.id,
            });
            return Ok((recent, steps));
        }
    }

    /// The text of the first message of the turn's own thread.
    pub async fn first_message(&mut self) -> Arc<str> {
        if self.is_first_message() {
            return self.task.message.clone();
        }
        if let Some(first) = &self.thread_cache.first_message {
            return first.clone();
        }
        let thread = self.start.thread.clone();
        if let Some(first) = self.start.shared.recent.first_message(&thread) {
            return first;
        }
        let range = ThreadRange { oldest: FIRST_EVENTS, ..ThreadRange::through(self.position.0) };
        let mut history = History::default();
        let events = self.read(&thread, range).await;
        events.iter().for_each(|event| history.apply(event));
        let first = history.messages.indexed().next().map(|(_, message)| message.text.as_str().into());
        let first: Arc<str> = first.unwrap_or_else(|| self.task.message.clone());
        self.thread_cache.first_message = Some(first.clone());
        // With fewer events, the next one may still change it.
        if events.len() == FIRST_EVENTS {
            self.start.shared.recent.note_first_message(&thread, &first);
        }
        first
    }

    /// What the model was told about its environment in this turn, as a step before the turn's own message.
    pub fn environment_step(&self, told: Arc<str>) -> PastStep {
        PastStep { turn: self.start.id, before: self.own_index, kind: PastStepKind::Environment(told) }
    }

    /// Whether the turn's own message is the first of its thread.
    pub fn is_first_message(&self) -> bool {
        self.length_at_start <= 1
    }

    pub(super) fn new_message(&mut self, path: &SubThreadPath, sender: Sender, text: String) -> Message {
        let prefix = match (path.is_main(), sender) {
            (true, Sender::Bot) => "bot",
            (true, Sender::User) => "user",
            (false, Sender::Bot) => "sub_bot",
            (false, Sender::User) => "sub_user",
        };
        Message { id: self.draw_id(prefix), sender, text, timestamp: self.now(), meta: Meta::new() }
    }

    /// `sub_<parent>_<unique>`, or `nested_…` below another sub-thread (R024, R025). Only the unique part of a nested
    /// parent's id is used, so that ids do not grow with depth.
    pub(super) fn sub_thread_id(&mut self, path: &SubThreadPath, parent: &ThreadId) -> ThreadId {
        let prefix = if path.is_main() { "sub" } else { "nested" };
        let tail = if path.is_main() { parent.as_str() } else { parent.as_str().rsplit('_').next().unwrap_or_default() };
        let prefix = format!("{prefix}_{tail}");
        self.draw_id(&prefix)
    }

    /// The id of the thread at an address, as of the turn's position in the log.
    pub(super) async fn resolve(&mut self, path: &SubThreadPath) -> Result<ThreadId, Failure> {
        if *path == self.path() {
            return Ok(self.start.thread.clone());
        }
        if let Some(thread) = self.thread_cache.threads.get(path) {
            return Ok(thread.clone());
        }
        let Some((parent, segment)) = path.parent().zip(path.segments().last()) else {
            return Ok(self.start.agent.main_thread());
        };
        let above = Box::pin(self.resolve(&parent)).await?;
        let range = ThreadRange::through(self.committed_position().await);
        let events = self.read(&above, range).await;
        let linked = events.iter().find_map(|recorded| match &recorded.event {
            Event::ThreadLinked { index, slot, child, .. } if *index == segment.message_index && *slot == segment.meta_path => {
                Some(child.clone())
            }
            _ => None,
        });
        let child = linked.ok_or_else(|| Failure::new("no_such_thread", format!("there is no sub-thread at {path}")))?;
        self.thread_cache.threads.insert(path.clone(), child.clone());
        Ok(child)
    }

    pub(super) async fn index_of(&mut self, thread: &ThreadId, message: &MessageId) -> Result<u32, Failure> {
        let key = (thread.clone(), message.clone());
        if let Some(index) = self.thread_cache.indices.get(&key) {
            return Ok(*index);
        }
        let range = ThreadRange::through(self.committed_position().await);
        // `committed_position` may have processed the event that added this message.
        if let Some(index) = self.thread_cache.indices.get(&key) {
            return Ok(*index);
        }
        let events = self.read(thread, range).await;
        let messages = Thread::fold(thread.clone(), events.iter().map(|recorded| &**recorded)).messages;
        let found = (0..).zip(&messages).find(|(_, found)| found.id == *message).map(|(index, _)| index);
        let index =
            found.ok_or_else(|| Failure::new("no_such_message", format!("thread `{thread}` has no message `{message}`")))?;
        self.thread_cache.indices.insert(key, index);
        Ok(index)
    }

    pub(super) async fn read(&mut self, thread: &ThreadId, range: ThreadRange) -> Vec<Arc<Recorded>> {
        match self.start.shared.read_thread(thread, range).await {
            Ok(events) => events,
            Err(error) => self.park_unread(error).await,
        }
    }

    pub(super) async fn read_newest(&mut self, thread: &ThreadId, newest: usize, through: Seq) -> Vec<Arc<Recorded>> {
        match self.start.shared.read_newest(thread, newest, through).await {
            Ok(events) => events,
            Err(error) => self.park_unread(error).await,
        }
    }

    /// Makes changes with one append, or takes them from the journal if an earlier run made them.
    pub(super) async fn act(&mut self, acts: Vec<Act>) -> Result<Vec<Arc<Recorded>>, Failure> {
        let id = EffectId { turn: self.start.id, n: self.n };
        self.n += 1;
        let events = if self.journal.has(id.n) {
            let events = self.acted_before(id, &acts).await;
            if refusal(&events).is_none() && !agree(&acts, &events) {
                return self.park_diverged(id.n, "another change").await;
            }
            events
        } else {
            self.commit(Command::Act { id, acts, at: None }).await
        };
        let own: Vec<_> = events.into_iter().filter(|recorded| recorded.event.effect() == Some(id)).collect();
        self.take_in(&own);
        match refusal(&own) {
            Some(failure) => Err(failure.clone()),
            None => Ok(own),
        }
    }

    /// Makes changes without waiting for the commit (see [`Turn::send_ahead`]). Changes that could be refused, and those of
    /// an earlier run, are waited for.
    pub(super) async fn act_ahead(&mut self, acts: Vec<Act>) -> Result<(), Failure> {
        if self.journal.has(self.n) || !self.takes(&acts) {
            return self.act(acts).await.map(drop);
        }
        if self.reported.len() >= MAX_AHEAD {
            self.committed_position().await;
        }
        let id = EffectId { turn: self.start.id, n: self.n };
        self.n += 1;
        let at = self.start.shared.ports.clock.now();
        self.send_ahead(Command::Act { id, acts, at: Some(at) }, at).await;
        Ok(())
    }

    /// Whether these changes cannot be refused, whatever else is committed before them.
    fn takes(&self, acts: &[Act]) -> bool {
        let fits = |text: &str| text.len() <= self.start.limits.text_bytes;
        acts.iter().all(|act| match act {
            Act::AddMessage { thread, message } => *thread == self.start.thread && fits(&message.text),
            Act::UpdateMessage { thread, patch, .. } => *thread == self.start.thread && patch.text.as_deref().is_none_or(fits),
            // Threads are never removed, and this one exists.
            Act::UpdateSettings { .. } => true,
            Act::SuggestPhase { thread, .. } => *thread == self.start.thread,
            _ => false,
        })
    }

    /// Advances the turn to the last of these events and caches the indices of added messages.
    pub(super) fn take_in(&mut self, events: &[Arc<Recorded>]) {
        if let Some(last) = events.last() {
            self.advance(last.seq, last.at);
        }
        for recorded in events {
            if let (Event::MessageAdded { index, message, .. }, Some(thread)) = (&recorded.event, &recorded.thread) {
                self.thread_cache.indices.insert((thread.clone(), message.id.clone()), *index);
            }
        }
    }

    /// The events of an effect of an earlier run, including those recorded under other threads.
    async fn acted_before(&mut self, id: EffectId, acts: &[Act]) -> Vec<Arc<Recorded>> {
        let mut events = self.journal.take(id).map(|entry| entry.events).unwrap_or_default();
        let through = events.last().map_or(Seq(0), |last| last.seq);
        let mut elsewhere: Vec<_> = acts.iter().filter_map(|act| self.thread_of(act)).collect();
        elsewhere.sort();
        elsewhere.dedup();
        for thread in elsewhere {
            let range = ThreadRange { after: Seq(id.turn.0.0), ..ThreadRange::through(through) };
            let found = self.read(&thread, range).await;
            events.extend(found.into_iter().filter(|recorded| recorded.event.effect() == Some(id)));
        }
        events.sort_by_key(|recorded| recorded.seq);
        events
    }

    /// The thread that a change is recorded under, if it is not the turn's own.
    fn thread_of(&self, act: &Act) -> Option<ThreadId> {
        let thread = match act {
            Act::AddMessage { thread, .. }
            | Act::UpdateMessage { thread, .. }
            | Act::UpdateSettings { thread, .. }
            | Act::SetPlan { thread, .. }
            | Act::SuggestPhase { thread, .. }
            | Act::CompressContext { thread, .. }
            | Act::RestoreContext { thread }
            | Act::KeepContext { thread, .. } => thread.clone(),
            Act::OpenSubThread { parent, .. } => parent.clone(),
            Act::Send { envelope } if envelope.to.is_user() => envelope.task_id.thread(),
            Act::Send { .. } | Act::CreateRole { .. } | Act::Spawn { .. } | Act::TakeMessages => return None,
            Act::KeepMemory { .. } | Act::EraseMemory { .. } => return None,
        };
        Some(thread).filter(|thread| *thread != self.start.thread)
    }
}

/// The refusal among these events, if there is one.
pub(super) fn refusal(events: &[Arc<Recorded>]) -> Option<&Failure> {
    events.iter().find_map(|recorded| match &recorded.event {
        Event::EffectRefused { failure, .. } => Some(failure),
        _ => None,
    })
}

/// Whether the log has exactly these changes, in this order. Marks and openings of threads belong to the changes beside them.
fn agree(acts: &[Act], events: &[Arc<Recorded>]) -> bool {
    let is_change = |recorded: &&Arc<Recorded>| !matches!(recorded.event, Event::Acted { .. } | Event::ThreadOpened { .. });
    let mut events = events.iter().filter(is_change);
    acts.iter().all(|act| events.next().is_some_and(|recorded| agrees(act, recorded))) && events.next().is_none()
}

fn agrees(act: &Act, recorded: &Recorded) -> bool {
    match (act, &recorded.event) {
        (Act::AddMessage { message, .. }, Event::MessageAdded { message: logged, .. }) => message == logged,
        (Act::UpdateMessage { index, patch, .. }, Event::MessageUpdated { index: at, patch: logged, .. }) => {
            index == at && patch == logged
        }
        (Act::UpdateSettings { settings, .. }, Event::SettingsUpdated { settings: logged, .. }) => settings == logged,
        (Act::SetPlan { plan, .. }, Event::PlanSet { plan: logged, .. }) => plan == logged,
        (Act::SuggestPhase { phase, .. }, Event::PhaseSuggested { phase: logged, .. }) => phase == logged,
        (Act::CompressContext { from, summaries, .. }, Event::ContextCompressed { from: at, summaries: logged, .. }) => {
            from == at && summaries == logged
        }
        (Act::RestoreContext { .. }, Event::ContextRestored { .. }) => true,
        (Act::KeepContext { failure, .. }, Event::ContextKept { failure: logged, .. }) => failure == logged,
        (Act::OpenSubThread { index, slot, child, .. }, Event::ThreadLinked { index: at, slot: place, child: logged, .. }) => {
            index.is_none_or(|index| index == *at) && (slot, child) == (place, logged)
        }
        (Act::TakeMessages, Event::MessagesTaken { .. }) => true,
        (Act::KeepMemory { memory }, Event::MemoryChanged { change: MemoryChange::Kept { memory: logged }, .. }) => {
            (&memory.id, &memory.text) == (&logged.id, &logged.text)
        }
        (Act::EraseMemory { id }, Event::MemoryChanged { change: MemoryChange::Erased { id: logged, .. }, .. }) => id == logged,
        (Act::Send { envelope }, Event::MessageSent { envelope: logged, .. }) => envelope == logged,
        (Act::CreateRole { role }, Event::RoleCreated { role: logged, .. }) => role == logged,
        (Act::Spawn { agent, role }, Event::AgentSpawned { agent: logged, role: its, .. }) => (agent, role) == (logged, its),
        _ => false,
    }
}

/// The acts that make messages of what a thread has saved into these.
fn changes(thread: &ThreadId, saved: &[Arc<Message>], wanted: &[Arc<Message>]) -> Result<Vec<Act>, Failure> {
    let is_same_order = wanted.iter().zip(saved).all(|(new, old)| new.id == old.id && new.sender == old.sender);
    if wanted.len() < saved.len() || !is_same_order {
        return Err(Failure::new("not_saved", "messages can be added and changed, not removed or reordered"));
    }
    let (same, added) = wanted.split_at(saved.len());
    let changed = (0..).zip(same.iter().zip(saved)).filter(|(_, (new, old))| new != old);
    let changed =
        changed.map(|(index, (new, old))| Act::UpdateMessage { thread: thread.clone(), index, patch: difference(old, new) });
    let added = added.iter().map(|message| Act::AddMessage { thread: thread.clone(), message: message.clone() });
    Ok(changed.chain(added).collect())
}

/// The patch that turns one message into another.
fn difference(old: &Message, new: &Message) -> MessagePatch {
    let text = (old.text != new.text).then(|| new.text.clone());
    let mut meta: Map<String, Value> = new
        .meta
        .iter()
        .filter(|(key, value)| old.meta.get(key) != Some(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    meta.extend(old.meta.keys().filter(|key| !new.meta.contains_key(key)).map(|key| (key.clone(), Value::Null)));
    MessagePatch { text, meta: meta.into() }
}
