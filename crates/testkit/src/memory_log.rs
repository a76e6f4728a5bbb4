//! The log in memory: typed events, no serialisation, nothing survives.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use polis_domain::{ConversationPlace, IdleKey, Recorded, Seq, SocietyId, ThreadId};
use polis_ports::{
    Fork, ForkOrigin, IdleList, IdleListed, IdleListing, Log, LogError, NewSnapshot, Snapshot, SocietyListing, StoredEntry,
    StoredSociety, ThreadListing, ThreadRange,
};
use rustc_hash::FxHashMap;

/// Keeps the events of many societies until it is dropped.
#[derive(Debug, Default)]
pub struct MemoryLog {
    societies: Mutex<FxHashMap<SocietyId, Society>>,
    thread_events_read: AtomicUsize,
}

#[derive(Debug, Default)]
struct Society {
    events: Vec<Arc<Recorded>>,
    /// The places of each thread's events, of those that were looked through so far: whoever reads a thread looks through the rest.
    threads: FxHashMap<ThreadId, Vec<Seq>>,
    looked_through: usize,
    snapshot: Option<Snapshot>,
    /// The idle entries of the snapshot, by name.
    idle: BTreeMap<Arc<str>, StoredEntry>,
    /// Where appends ended.
    ends: Vec<Seq>,
    /// Whose events it has from before it was forked.
    origin: Option<ForkOrigin>,
}

impl MemoryLog {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// All events of a society, as they were appended.
    pub fn events(&self, society: &SocietyId) -> Vec<Arc<Recorded>> {
        self.lock().get(society).map(|society| society.events.clone()).unwrap_or_default()
    }

    /// How many events were read of threads so far.
    pub fn thread_events_read(&self) -> usize {
        self.thread_events_read.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<SocietyId, Society>> {
        self.societies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Log for MemoryLog {
    async fn append(&self, society: &SocietyId, expected: Seq, events: &[Arc<Recorded>]) -> Result<(), LogError> {
        let mut societies = self.lock();
        if !societies.contains_key(society) {
            societies.insert(society.clone(), Society::default());
        }
        let kept = societies.get_mut(society).expect("it was put there just now");
        let actual = kept.head();
        if actual != expected {
            return Err(LogError::Conflict { society: society.clone(), expected, actual });
        }
        refuse_gaps(expected, events)?;
        kept.events.extend_from_slice(events);
        kept.ends.extend(events.last().map(|last| last.seq));
        Ok(())
    }

    async fn head(&self, society: &SocietyId) -> Result<Seq, LogError> {
        Ok(self.lock().get(society).map_or(Seq(0), Society::head))
    }

    async fn read(&self, society: &SocietyId, after: Seq, limit: usize) -> Result<Vec<Recorded>, LogError> {
        let societies = self.lock();
        let Some(kept) = societies.get(society) else { return Ok(Vec::new()) };
        let skipped = usize::try_from(after.0).unwrap_or(usize::MAX);
        Ok(kept.events.iter().skip(skipped).take(limit).map(|recorded| Recorded::clone(recorded)).collect())
    }

    async fn read_thread(&self, society: &SocietyId, thread: &ThreadId, range: ThreadRange) -> Result<Vec<Recorded>, LogError> {
        let mut societies = self.lock();
        let Some(kept) = societies.get_mut(society) else { return Ok(Vec::new()) };
        kept.look_through();
        let Some(places) = kept.threads.get(thread) else { return Ok(Vec::new()) };
        let begin = places.partition_point(|seq| *seq <= range.after);
        let end = places.partition_point(|seq| *seq <= range.through).max(begin);
        let end = end.min(begin.saturating_add(range.oldest));
        let begin = begin.max(end.saturating_sub(range.newest));
        self.thread_events_read.fetch_add(end - begin, Ordering::Relaxed);
        Ok(places[begin..end].iter().map(|seq| Recorded::clone(kept.at(*seq))).collect())
    }

    async fn threads(&self, society: &SocietyId, listing: &ThreadListing) -> Result<Vec<ThreadId>, LogError> {
        let mut societies = self.lock();
        let Some(kept) = societies.get_mut(society) else { return Ok(Vec::new()) };
        kept.look_through();
        let began = |thread: &ThreadId| kept.threads.get(thread).and_then(|places| places.first()).copied();
        let before = listing.before.as_ref().map_or(Some(Seq(u64::MAX)), began).unwrap_or(Seq(0));
        let mut found: Vec<(Seq, &ThreadId)> = kept
            .threads
            .keys()
            .filter(|thread| thread.as_str().starts_with(&listing.prefix))
            .filter_map(|thread| Some((began(thread).filter(|seq| *seq < before)?, thread)))
            .collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        Ok(found.into_iter().take(listing.limit).map(|(_, thread)| thread.clone()).collect())
    }

    async fn load_snapshot(&self, society: &SocietyId) -> Result<Option<Snapshot>, LogError> {
        Ok(self.lock().get(society).and_then(|kept| kept.snapshot.clone()))
    }

    async fn save_snapshot(&self, society: &SocietyId, snapshot: NewSnapshot) -> Result<(), LogError> {
        let NewSnapshot { seq, version, after, write } = snapshot;
        let mut societies = self.lock();
        let kept = societies.entry(society.clone()).or_default();
        let old = kept.snapshot.as_ref().map(|old| old.seq);
        if old.is_some_and(|old| old > seq) {
            return Ok(());
        }
        if after.is_none() {
            kept.idle.clear();
        } else if after != old {
            return Err(LogError::Failed("the snapshot that this one goes on from is not there".into()));
        }
        let (body, entries) = write();
        kept.snapshot = Some(Snapshot { seq, version, body });
        kept.idle.extend(entries.into_iter().map(|entry| (entry.name.clone(), entry)));
        Ok(())
    }

    async fn idle_entries(&self, society: &SocietyId, at: Seq, keys: &[IdleKey]) -> Result<Vec<StoredEntry>, LogError> {
        let societies = self.lock();
        let kept = societies.get(society).filter(|kept| kept.snapshot.as_ref().is_some_and(|kept| kept.seq >= at));
        let kept = kept.ok_or_else(|| LogError::Failed("the snapshot is not there".into()))?;
        let by_name = keys.iter().filter_map(|key| match key {
            IdleKey::Name(name) => kept.idle.get(name),
            IdleKey::Message(..) => None,
        });
        let is_in = |entry: &StoredEntry| {
            keys.iter().any(|key| match (key, &entry.message) {
                (IdleKey::Message(thread, index), Some(place)) => (thread, *index) == (&place.0, place.1),
                _ => false,
            })
        };
        let has_messages = keys.iter().any(|key| matches!(key, IdleKey::Message(..)));
        let by_message = kept.idle.values().filter(|entry| has_messages && is_in(entry));
        Ok(by_name.chain(by_message).cloned().collect())
    }

    async fn list_idle(&self, society: &SocietyId, listing: &IdleListing) -> Result<Vec<StoredEntry>, LogError> {
        let societies = self.lock();
        let Some(kept) = societies.get(society) else { return Ok(Vec::new()) };
        let IdleListing { person, of, limit } = listing;
        let is_theirs = |entry: &&StoredEntry| person.is_none() || entry.person == *person;
        let mut listed: Vec<_> = kept.idle.values().filter(is_theirs).filter(|entry| lists(of, entry)).cloned().collect();
        if let IdleListed::Conversations(_) = of {
            listed.sort_by_key(|entry| std::cmp::Reverse(place_of(entry)));
        }
        listed.truncate(*limit);
        Ok(listed)
    }

    async fn whole(&self, society: &SocietyId, through: Seq) -> Result<Seq, LogError> {
        Ok(self.lock().get(society).map_or(Seq(0), |kept| kept.whole(through)))
    }

    async fn fork(&self, fork: &Fork) -> Result<(), LogError> {
        let Fork { from, at, to, aside, first } = fork;
        let mut societies = self.lock();
        let source = societies.get(from).ok_or_else(|| LogError::Failed(format!("there is no society `{from}`").into()))?;
        if source.whole(*at) != *at {
            return Err(LogError::Failed(format!("no append of `{from}` ended at {at}").into()));
        }
        refuse_gaps(*at, std::slice::from_ref(first))?;
        let free = aside.as_ref().unwrap_or(to);
        let is_there = |name: &SocietyId| societies.get(name).is_some_and(|kept| !kept.events.is_empty());
        if is_there(free) || (aside.is_some() && !is_there(to)) {
            let actual = societies.get(free).map_or(Seq(0), Society::head);
            return Err(LogError::Conflict { society: free.clone(), expected: Seq(0), actual });
        }
        let mut forked = Society::default();
        forked.events.extend_from_slice(&source.events[..at.0 as usize]);
        forked.events.push(first.clone());
        forked.ends = source.ends.iter().copied().filter(|end| end <= at).chain([first.seq]).collect();
        let mut origin = ForkOrigin { from: from.clone(), at: *at };
        while let Some(above) =
            societies.get(&origin.from).and_then(|above| above.origin.clone()).filter(|above| above.at >= *at)
        {
            origin.from = above.from;
        }
        if let (Some(aside), Some(old)) = (aside, societies.remove(to)) {
            societies.insert(aside.clone(), Society { snapshot: None, idle: BTreeMap::new(), ..old });
            let origins = societies.values_mut().filter_map(|kept| kept.origin.as_mut()).chain([&mut origin]);
            origins.filter(|origin| origin.from == *to).for_each(|origin| origin.from = aside.clone());
        }
        forked.origin = Some(origin);
        societies.insert(to.clone(), forked);
        Ok(())
    }

    async fn societies(&self) -> Result<Vec<SocietyId>, LogError> {
        let societies = self.lock();
        let with_events = societies.iter().filter(|(_, kept)| !kept.events.is_empty());
        let mut names: Vec<SocietyId> = with_events.map(|(name, _)| name.clone()).collect();
        names.sort();
        Ok(names)
    }

    async fn list_societies(&self, listing: &SocietyListing) -> Result<Vec<StoredSociety>, LogError> {
        let names = self.societies().await?;
        let societies = self.lock();
        let listed = names.into_iter().filter(|name| listing.after.as_ref().is_none_or(|after| name > after)).map(|name| {
            let kept = &societies[&name];
            StoredSociety { head: kept.head(), origin: kept.origin.clone(), name }
        });
        Ok(listed.take(listing.limit).collect())
    }

    async fn origin(&self, society: &SocietyId) -> Result<Option<ForkOrigin>, LogError> {
        Ok(self.lock().get(society).and_then(|kept| kept.origin.clone()))
    }

    async fn redact(&self, society: &SocietyId, events: &[Recorded]) -> Result<(), LogError> {
        let mut societies = self.lock();
        let kept = societies.get(society).ok_or_else(|| LogError::Failed("there is no such society".into()))?;
        let is_wrong = |recorded: &Recorded| recorded.seq.0 == 0 || recorded.seq >= kept.head();
        if let Some(wrong) = events.iter().find(|recorded| is_wrong(recorded)) {
            return Err(LogError::Failed(format!("event {} cannot be redacted", wrong.seq).into()));
        }
        for recorded in events {
            let (old, new) = (kept_at(&societies, society, recorded.seq), Arc::new(recorded.clone()));
            // A fork shares its events by reference.
            for kept in societies.values_mut() {
                if let Some(shared) =
                    kept.events.get_mut(recorded.seq.0 as usize - 1).filter(|shared| Arc::ptr_eq(shared, &old))
                {
                    *shared = new.clone();
                }
            }
        }
        Ok(())
    }

    async fn forget_redacted(&self, society: &SocietyId) -> Result<(), LogError> {
        let mut societies = self.lock();
        let Some(kept) = societies.get(society) else { return Ok(()) };
        let first = kept.events.first().cloned();
        for (name, other) in societies.iter_mut() {
            let is_related = other.events.first().zip(first.as_ref()).is_some_and(|(one, first)| Arc::ptr_eq(one, first));
            if name != society && is_related {
                (other.snapshot, other.idle) = (None, BTreeMap::new());
            }
        }
        Ok(())
    }
}

fn kept_at(societies: &FxHashMap<SocietyId, Society>, society: &SocietyId, seq: Seq) -> Arc<Recorded> {
    societies[society].at(seq).clone()
}

fn lists(of: &IdleListed, entry: &StoredEntry) -> bool {
    match of {
        IdleListed::Conversations(after) => place_of(entry).is_some_and(|place| place < *after),
        IdleListed::Terminated(after) => entry.list == Some(IdleList::Terminated) && entry.name > *after,
        IdleListed::All(after) => entry.name > *after,
    }
}

fn place_of(entry: &StoredEntry) -> Option<ConversationPlace> {
    match entry.list {
        Some(IdleList::Conversation(place)) => Some(place),
        _ => None,
    }
}

impl Society {
    fn head(&self) -> Seq {
        Seq(self.events.len() as u64)
    }

    fn whole(&self, through: Seq) -> Seq {
        let behind = self.ends.partition_point(|end| *end <= through);
        self.ends[..behind].last().copied().unwrap_or(Seq(0))
    }

    fn look_through(&mut self) {
        for recorded in &self.events[self.looked_through..] {
            let Some(thread) = &recorded.thread else { continue };
            match self.threads.get_mut(thread) {
                Some(places) => places.push(recorded.seq),
                None => {
                    self.threads.insert(thread.clone(), vec![recorded.seq]);
                }
            }
        }
        self.looked_through = self.events.len();
    }

    fn at(&self, seq: Seq) -> &Arc<Recorded> {
        &self.events[seq.0 as usize - 1]
    }
}

fn refuse_gaps(expected: Seq, events: &[Arc<Recorded>]) -> Result<(), LogError> {
    let mut last = expected;
    for recorded in events {
        if recorded.seq != last.next() {
            return Err(LogError::Failed(format!("event {} cannot follow event {last}", recorded.seq).into()));
        }
        last = recorded.seq;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;

    #[tokio::test]
    async fn the_memory_log_keeps_the_contract_of_the_log() {
        conformance::check(|| Arc::new(MemoryLog::new())).await;
    }
}
