//! The idle entries of a spine: loading them from the store when they are named, and saving them with a snapshot.
//!
//! What a snapshot stores leaves memory when the snapshot is begun, and is kept here until the store has it. From then on it is
//! read from the store. The store is a cache: if it has lost entries, the log is folded from its first event.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use polis_domain::{
    AgentId, ConversationPlace, IdleEntry, IdleKey, SPINE_VERSION, Seq, SocietyId, Spine, ThreadId, Visibility,
};
use polis_ports::{IdleList, IdleListed, IdleListing, Log, LogError, NewSnapshot, StoredEntry};
use tokio::sync::oneshot;

use crate::shared::{Look, Release};
use crate::{CommandError, Society};

type Entries = Arc<Vec<(Arc<str>, IdleEntry)>>;

/// Where the idle entries of one spine are.
pub(crate) struct IdleStore {
    log: Arc<dyn Log>,
    society: SocietyId,
    /// The last event of the snapshot that they belong to; 0 without one.
    pub(crate) at: Seq,
    saving: Option<Saving>,
}

/// A snapshot that is being saved.
struct Saving {
    seq: Seq,
    /// What left memory with it.
    entries: Entries,
    /// The size of the snapshot, when it has been serialised.
    bytes: Arc<AtomicU64>,
    done: oneshot::Receiver<Result<(), LogError>>,
}

impl IdleStore {
    pub(crate) fn new(log: Arc<dyn Log>, society: SocietyId, at: Seq) -> Self {
        Self { log, society, at, saving: None }
    }

    /// Loads what these keys find, with all that it refers to. Returns the keys that were asked for.
    pub(crate) async fn load(&self, spine: &mut Spine, keys: Vec<IdleKey>) -> Result<BTreeSet<IdleKey>, LogError> {
        let (mut asked, mut found, mut keys) = (BTreeSet::new(), Vec::new(), keys);
        // What is in memory is not in the store, or is older there.
        keys.retain(|key| !matches!(key, IdleKey::Name(name) if spine.has_name(name)));
        while !keys.is_empty() {
            keys.sort();
            keys.dedup();
            found.extend(self.find(&keys).await?);
            asked.extend(keys);
            keys = spine.missing_of(&found).into_iter().filter(|key| !asked.contains(key)).collect();
        }
        spine.load(found);
        Ok(asked)
    }

    /// Answers a query, after everything that it asks for has been loaded.
    pub(crate) async fn answer(&self, spine: &mut Spine, look: &Look) -> Result<Release, LogError> {
        let mut asked = BTreeSet::new();
        spine.take_misses();
        loop {
            let release = look(spine);
            let missing: Vec<_> = spine.take_misses().into_iter().filter(|key| !asked.contains(key)).collect();
            if missing.is_empty() {
                return Ok(release);
            }
            asked.extend(self.load(spine, missing).await?);
            spine.take_misses();
        }
    }

    async fn find(&self, keys: &[IdleKey]) -> Result<Vec<(Arc<str>, IdleEntry)>, LogError> {
        let unsaved = self.saving.iter().flat_map(|saving| saving.entries.iter());
        let mut found: Vec<_> =
            unsaved.filter(|(name, entry)| keys.iter().any(|key| finds(key, name, entry))).cloned().collect();
        // What is being saved is newer than what the store may still have of it.
        let is_found = |key: &&IdleKey| !matches!(key, IdleKey::Name(name) if found.iter().any(|(known, _)| known == name));
        let others: Vec<_> = keys.iter().filter(is_found).cloned().collect();
        if self.at == Seq(0) || others.is_empty() {
            return Ok(found);
        }
        for StoredEntry { name, body, .. } in self.log.idle_entries(&self.society, self.at, &others).await? {
            if found.iter().all(|(known, _)| *known != name) {
                let entry = self.read(&body).await?;
                found.push((name, entry));
            }
        }
        Ok(found)
    }

    /// Reads a stored entry. If it cannot be read, the snapshot is of no use, and is given up.
    async fn read(&self, body: &[u8]) -> Result<IdleEntry, LogError> {
        match serde_json::from_slice(body) {
            Ok(entry) => Ok(entry),
            Err(error) => {
                let write = Box::new(|| (Vec::new(), Vec::new()));
                let nothing = NewSnapshot { seq: self.at, version: 0, after: None, write };
                self.log.save_snapshot(&self.society, nothing).await?;
                Err(LogError::Failed(format!("a part of the snapshot cannot be read: {error}").into()))
            }
        }
    }

    /// Begins to save a snapshot; what is idle leaves the spine. The spine must be that of the committed log.
    pub(crate) fn begin_save(&mut self, spine: &mut Spine) {
        if self.saving.is_some() || self.at == spine.seq {
            return;
        }
        let entries: Entries = Arc::new(spine.unload());
        let bytes = Arc::new(AtomicU64::new(0));
        let (state, stored, size) = (spine.clone(), entries.clone(), bytes.clone());
        let write = Box::new(move || {
            let body = serde_json::to_vec(&state).unwrap_or_default();
            size.store(body.len() as u64, Ordering::Relaxed);
            (body, stored.iter().filter_map(|(name, entry)| stored_entry(name, entry)).collect())
        });
        let after = Some(self.at).filter(|at| *at > Seq(0));
        let snapshot = NewSnapshot { seq: spine.seq, version: SPINE_VERSION, after, write };
        let (log, society) = (self.log.clone(), self.society.clone());
        let (ended, done) = oneshot::channel();
        tokio::spawn(async move {
            // An error means that the society has ended meanwhile.
            let _ = ended.send(log.save_snapshot(&society, snapshot).await);
        });
        self.saving = Some(Saving { seq: spine.seq, entries, bytes, done });
    }

    /// Whether a snapshot is being saved.
    pub(crate) fn is_saving(&self) -> bool {
        self.saving.is_some()
    }

    /// Whether the snapshot that is being saved has been.
    pub(crate) fn is_saved(&self) -> bool {
        self.saving.as_ref().is_some_and(|saving| !saving.done.is_empty() || saving.done.is_terminated())
    }

    /// Waits for the snapshot that is being saved. Returns its size; none if there is none or it was not saved.
    ///
    /// A snapshot is a cache: a failure costs time and is only logged, and what had left memory returns.
    pub(crate) async fn saved(&mut self, spine: &mut Spine) -> Option<u64> {
        let saving = self.saving.as_mut()?;
        let done = (&mut saving.done).await;
        let Saving { seq, entries, bytes, .. } = self.saving.take()?;
        let error = match done {
            Ok(Ok(())) => {
                self.at = seq;
                return Some(bytes.load(Ordering::Relaxed));
            }
            Ok(Err(error)) => error,
            Err(_) => LogError::Failed("the store has stopped".into()),
        };
        tracing::warn!(%error, "the snapshot was not saved; the next start folds more of the log");
        spine.load(Arc::unwrap_or_clone(entries));
        None
    }
}

fn finds(key: &IdleKey, name: &Arc<str>, entry: &IdleEntry) -> bool {
    match key {
        IdleKey::Name(wanted) => wanted == name,
        IdleKey::Message(thread, index) => entry.message() == Some((thread, *index)),
    }
}

/// An entry as the store has it.
pub(crate) fn stored_entry(name: &Arc<str>, entry: &IdleEntry) -> Option<StoredEntry> {
    let list = match entry.place() {
        Some(place) => Some(IdleList::Conversation(place)),
        None if entry.is_terminated() => Some(IdleList::Terminated),
        None => entry.head().map(|_| IdleList::Thread),
    };
    let message = entry.message().map(|(thread, index)| (thread.clone(), index));
    Some(StoredEntry {
        name: name.clone(),
        message,
        person: entry.person().cloned(),
        list,
        body: serde_json::to_vec(entry).ok()?,
    })
}

/// Lists of idle entries, as far as the caller may see them. An entry that has been loaded since it was stored is listed as well,
/// as it was then.
impl Society {
    /// The idle conversations after a place of the list.
    pub async fn idle_conversations(
        &self,
        after: ConversationPlace,
        limit: usize,
    ) -> Result<Vec<(AgentId, IdleEntry)>, CommandError> {
        self.idle(IdleListed::Conversations(after), limit).await
    }

    /// The terminated agents that are idle.
    pub async fn idle_terminated(&self) -> Result<Vec<(AgentId, IdleEntry)>, CommandError> {
        self.idle(IdleListed::Terminated("".into()), usize::MAX).await
    }

    /// The names of the threads after one, those in memory and the others, in order.
    pub async fn thread_names(&self, after: Option<ThreadId>, limit: usize) -> Result<Vec<ThreadId>, CommandError> {
        let from = after.as_ref().map_or_else(|| "".into(), ThreadId::shared);
        let visibility = self.visibility().clone();
        let loaded = move |spine: &Spine| {
            let is_next = |id: &&ThreadId| after.as_ref().is_none_or(|after| *id > after) && visibility.thread(spine, id);
            let mut names: Vec<_> = spine.threads.keys().filter(is_next).cloned().collect();
            names.sort();
            names.truncate(limit);
            names
        };
        let mut names: BTreeSet<ThreadId> = self.look(loaded).await?.into_iter().collect();
        let idle = self.idle(IdleListed::All(from), limit).await?;
        names.extend(idle.into_iter().filter(|(_, entry)| entry.head().is_some()).map(|(name, _)| name.main_thread()));
        Ok(names.into_iter().take(limit).collect())
    }

    /// Queries the committed state with all terminated agents in memory.
    pub async fn look_with_terminated<T: Send + 'static>(
        &self,
        question: impl Fn(&Spine) -> T + Send + Sync + 'static,
    ) -> Result<T, CommandError> {
        let names: Vec<_> = self.idle_terminated().await?.into_iter().map(|(name, _)| name).collect();
        self.look(move |spine| {
            // To ask for them is to load them.
            let _ = names.iter().filter(|name| spine.terminated.contains_key(name)).count();
            question(spine)
        })
        .await
    }

    async fn idle(&self, of: IdleListed, limit: usize) -> Result<Vec<(AgentId, IdleEntry)>, CommandError> {
        let person = match self.visibility() {
            Visibility::Everything => None,
            Visibility::Person(person) => Some(person.clone()),
        };
        let listed = self.ports().log.list_idle(self.id(), &IdleListing { person, of, limit }).await?;
        let named = |stored: StoredEntry| Some((AgentId::new(stored.name), serde_json::from_slice(&stored.body).ok()?));
        Ok(listed.into_iter().filter_map(named).collect())
    }
}
