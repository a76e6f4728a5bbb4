//! A cache of the newest events of threads, so that a turn reads from the log only what is not in memory.
//!
//! Of a thread it holds all events after a position, so that a read gives exactly what the log would give.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polis_domain::{Event, Outcome, Recorded, Seq, ThreadId};
use polis_ports::ThreadRange;
use rustc_hash::FxHashMap;

/// The size of the cache in bytes, roughly.
const BYTES: usize = 16 * 1024 * 1024;

/// The size of one thread in it. A longer one loses its older half.
const THREAD_BYTES: usize = BYTES / 8;

/// The size of an event without its texts, roughly.
const EVENT_BYTES: usize = 512;

/// The cache of one society.
#[derive(Default)]
pub(crate) struct Recent(Mutex<Cache>);

#[derive(Default)]
struct Cache {
    threads: FxHashMap<ThreadId, Page>,
    /// The threads in the order in which they came in.
    order: VecDeque<ThreadId>,
    bytes: usize,
    /// The number of the last fill.
    fills: u64,
}

#[derive(Default)]
struct Page {
    /// All events of the thread after this position are here.
    after: Seq,
    events: Vec<Arc<Recorded>>,
    bytes: usize,
    /// The text of the thread's first message, once it can no longer change.
    first_message: Option<Arc<str>>,
    /// Set while older events are being read from the log; `after` is then not known yet.
    filling: Option<u64>,
}

impl Page {
    fn push(&mut self, event: Arc<Recorded>) -> usize {
        let bytes = weight(&event.event);
        self.events.push(event);
        self.bytes += bytes;
        bytes
    }

    /// The position up to which it has all events after its beginning.
    fn last(&self) -> Seq {
        self.events.last().map_or(self.after, |last| last.seq)
    }

    /// Removes the older half of a page that is too large. Gives the bytes that are free now.
    fn trim(&mut self) -> usize {
        if self.bytes <= THREAD_BYTES || self.filling.is_some() {
            return 0;
        }
        let (mut count, mut freed) = (0, 0);
        while self.bytes - freed > THREAD_BYTES / 2 {
            freed += weight(&self.events[count].event);
            count += 1;
        }
        self.after = self.events[count - 1].seq;
        self.events.drain(..count);
        self.bytes -= freed;
        freed
    }
}

impl Cache {
    fn insert(&mut self, thread: ThreadId, page: Page) {
        self.bytes += page.bytes;
        match self.threads.insert(thread.clone(), page) {
            Some(replaced) => self.bytes -= replaced.bytes,
            None => self.order.push_back(thread),
        }
    }

    fn make_room(&mut self) {
        while self.bytes > BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self.threads.remove(&oldest).map_or(0, |page| page.bytes);
        }
    }
}

impl Recent {
    /// Adds events that were just appended.
    pub(crate) fn extend(&self, events: &[Arc<Recorded>]) {
        let mut cache = self.lock();
        for recorded in events {
            let Some(thread) = &recorded.thread else { continue };
            if matches!(recorded.event, Event::ThreadOpened { .. }) {
                cache.insert(thread.clone(), Page::default());
            }
            let Some(page) = cache.threads.get_mut(thread) else { continue };
            // A fill may have read an event in the log that is released only now.
            if page.filling.is_none() && recorded.seq <= page.last() {
                continue;
            }
            let (added, freed) = (page.push(recorded.clone()), page.trim());
            cache.bytes = cache.bytes + added - freed;
        }
        cache.make_room();
    }

    /// Adds a thread that has no events yet. Its id must be new.
    pub(crate) fn begin(&self, thread: ThreadId) {
        self.lock().insert(thread, Page { bytes: EVENT_BYTES, ..Page::default() });
    }

    /// Begins to hold a thread whose newest events are read from the log next: from now on no event of it is missed. None if the
    /// thread is being filled already.
    pub(crate) fn begin_fill<'a>(&'a self, thread: &'a ThreadId) -> Option<Fill<'a>> {
        let mut cache = self.lock();
        if cache.threads.get(thread).is_some_and(|page| page.filling.is_some()) {
            return None;
        }
        cache.fills += 1;
        let number = cache.fills;
        let first_message = cache.threads.get_mut(thread).and_then(|page| page.first_message.take());
        let page = Page { bytes: EVENT_BYTES, filling: Some(number), first_message, ..Page::default() };
        cache.insert(thread.clone(), page);
        Some(Fill { recent: self, thread, number })
    }

    /// How many events of a thread match; none if not all of the thread is here.
    pub(crate) fn count(&self, thread: &ThreadId, is_so: impl Fn(&Recorded) -> bool) -> Option<usize> {
        let cache = self.lock();
        let page = cache.threads.get(thread).filter(|page| page.filling.is_none() && page.after == Seq(0))?;
        Some(page.events.iter().filter(|recorded| is_so(recorded)).count())
    }

    /// The events of a thread in a range; none if they are not all here.
    pub(crate) fn read(&self, thread: &ThreadId, range: ThreadRange) -> Option<Vec<Arc<Recorded>>> {
        let cache = self.lock();
        let page = cache.threads.get(thread).filter(|page| page.filling.is_none())?;
        let events = &page.events;
        let begin = events.partition_point(|recorded| recorded.seq <= range.after);
        let end = events.partition_point(|recorded| recorded.seq <= range.through).max(begin);
        if range.after < page.after && (end - begin < range.newest || range.oldest != usize::MAX) {
            return None;
        }
        let end = end.min(begin.saturating_add(range.oldest));
        Some(events[begin.max(end.saturating_sub(range.newest))..end].to_vec())
    }

    /// The text of a thread's first message, if it was noted.
    pub(crate) fn first_message(&self, thread: &ThreadId) -> Option<Arc<str>> {
        self.lock().threads.get(thread)?.first_message.clone()
    }

    /// Notes the text of a thread's first message, which no later event may change.
    pub(crate) fn note_first_message(&self, thread: &ThreadId, text: &Arc<str>) {
        if let Some(page) = self.lock().threads.get_mut(thread) {
            page.first_message = Some(text.clone());
        }
    }

    /// Empties the cache: after a failed append it may hold events that are not in the log.
    pub(crate) fn clear(&self) {
        let mut cache = self.lock();
        *cache = Cache { fills: cache.fills, ..Cache::default() };
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A read of a thread's newest events that the cache waits for. Dropped before its end, it leaves nothing behind.
pub(crate) struct Fill<'a> {
    recent: &'a Recent,
    thread: &'a ThreadId,
    number: u64,
}

impl Fill<'_> {
    /// Hands over what the log has: all events of the thread after a position.
    pub(crate) fn end(self, after: Seq, older: &[Arc<Recorded>]) {
        let mut cache = self.recent.lock();
        let Some(page) = cache.threads.get_mut(self.thread).filter(|page| page.filling == Some(self.number)) else { return };
        let (before, read) = (page.bytes, older.last().map_or(after, |last| last.seq));
        let newer = std::mem::take(&mut page.events);
        (page.after, page.bytes, page.filling) = (after, EVENT_BYTES, None);
        for event in older.iter().cloned().chain(newer.into_iter().filter(|event| event.seq > read)) {
            page.push(event);
        }
        page.trim();
        let bytes = page.bytes;
        cache.bytes = cache.bytes + bytes - before;
        cache.make_room();
    }
}

impl Drop for Fill<'_> {
    fn drop(&mut self) {
        let mut cache = self.recent.lock();
        if cache.threads.get(self.thread).is_some_and(|page| page.filling == Some(self.number)) {
            let bytes = cache.threads.remove(self.thread).map_or(0, |page| page.bytes);
            cache.bytes -= bytes;
            cache.order.retain(|thread| thread != self.thread);
        }
    }
}

/// The size of an event in bytes, roughly.
pub(crate) fn weight(event: &Event) -> usize {
    EVENT_BYTES
        + match event {
            Event::ThreadOpened { meta, .. } => meta.weight(),
            Event::MessageAdded { message, .. } | Event::TurnSettled { message: Some(message), .. } => {
                message.text.len() + message.meta.weight()
            }
            Event::MessageUpdated { patch, .. } => patch.text.as_ref().map_or(0, String::len) + patch.meta.weight(),
            Event::TurnStarted { task, .. } => task.message.len() + task.meta.weight(),
            Event::EffectEnded { outcome: Outcome::Reply(reply), .. } => reply.text.len() + reply.reasoning.len(),
            Event::EffectEnded { outcome: Outcome::Result(result), .. } => result.content.len(),
            event => event.envelope().map_or(0, |envelope| envelope.payload.text.len() + envelope.payload.meta.weight()),
        }
}

#[cfg(test)]
mod tests {
    use polis_domain::{AgentId, EffectId, Seq, Settings, Timestamp, TurnId};
    use serde_json::{Map, json};

    use super::*;

    const BY: EffectId = EffectId { turn: TurnId(Seq(1)), n: 0 };

    fn recorded(seq: u64, thread: &str, event: Event) -> Arc<Recorded> {
        Arc::new(Recorded { seq: Seq(seq), at: Timestamp(seq), thread: Some(thread.into()), event })
    }

    fn opened(seq: u64, thread: &str, bytes: usize) -> Arc<Recorded> {
        let meta = Map::from_iter([("order".to_owned(), json!(["x".repeat(bytes)]))]);
        let (agent, parent) = (AgentId::root(), "root".into());
        recorded(seq, thread, Event::ThreadOpened { by: BY, agent, parent, settings: Settings::default(), meta: meta.into() })
    }

    fn acted(seq: u64, thread: &str) -> Arc<Recorded> {
        recorded(seq, thread, Event::Acted { id: BY })
    }

    fn places(recent: &Recent, thread: &str, range: ThreadRange) -> Option<Vec<u64>> {
        Some(recent.read(&thread.into(), range)?.iter().map(|recorded| recorded.seq.0).collect())
    }

    #[test]
    fn a_thread_is_read_as_from_the_log_and_one_whose_beginning_is_not_known_is_not() {
        let recent = Recent::default();
        recent.extend(&[acted(1, "old"), opened(2, "new", 8), acted(3, "old"), acted(4, "new")]);
        recent.extend(&[acted(5, "new"), acted(6, "old"), acted(7, "new")]);
        let range =
            |after, through, newest| ThreadRange { after: Seq(after), through: Seq(through), newest, ..ThreadRange::ALL };
        assert_eq!(places(&recent, "old", ThreadRange::ALL), None);
        assert_eq!(places(&recent, "new", ThreadRange::ALL), Some(vec![2, 4, 5, 7]));
        assert_eq!(places(&recent, "new", ThreadRange::through(Seq(6))), Some(vec![2, 4, 5]));
        assert_eq!(places(&recent, "new", range(2, 7, 2)), Some(vec![5, 7]));
        assert_eq!(places(&recent, "new", range(5, 4, 9)), Some(vec![]));
        let oldest = |oldest, newest| ThreadRange { oldest, ..range(0, 9, newest) };
        assert_eq!(places(&recent, "new", oldest(2, 9)), Some(vec![2, 4]));
        assert_eq!(places(&recent, "new", oldest(3, 2)), Some(vec![4, 5]));
        recent.clear();
        recent.extend(&[acted(8, "new")]);
        assert_eq!(places(&recent, "new", ThreadRange::ALL), None);
    }

    #[test]
    fn a_thread_that_was_begun_is_here_from_its_first_event_on() {
        let recent = Recent::default();
        recent.begin("task:new".into());
        assert_eq!(places(&recent, "task:new", ThreadRange::ALL), Some(vec![]));
        recent.extend(&[acted(1, "task:new"), acted(2, "task:old")]);
        assert_eq!(places(&recent, "task:new", ThreadRange::ALL), Some(vec![1]));
        assert_eq!(recent.count(&"task:new".into(), |recorded| recorded.seq.0 > 1), Some(0));
        assert_eq!(recent.count(&"task:new".into(), |recorded| recorded.seq.0 == 1), Some(1));
        assert_eq!(recent.count(&"task:old".into(), |_| true), None);
    }

    #[test]
    fn the_oldest_threads_make_room() {
        let recent = Recent::default();
        let names: Vec<String> = (0..20).map(|n| format!("t{n}")).collect();
        for (seq, name) in (1..).zip(&names) {
            recent.extend(&[opened(seq, name, THREAD_BYTES / 2)]);
        }
        assert_eq!(places(&recent, "t4", ThreadRange::ALL), None);
        assert_eq!(places(&recent, "t5", ThreadRange::ALL), Some(vec![6]));
        recent.extend(&[opened(21, "huge", 2 * BYTES), acted(22, "huge"), opened(23, "small", 8)]);
        assert_eq!(places(&recent, "huge", ThreadRange::ALL), None);
        assert_eq!(places(&recent, "small", ThreadRange::ALL), Some(vec![23]));
        assert!(recent.lock().bytes <= BYTES);
    }

    #[test]
    fn a_thread_is_held_from_where_it_was_read_and_what_came_meanwhile_is_not_missed() {
        let recent = Recent::default();
        let (old, lost) = (ThreadId::from("old"), ThreadId::from("lost"));
        let fill = recent.begin_fill(&old).unwrap();
        assert!(recent.begin_fill(&old).is_none(), "one fill at a time");
        recent.extend(&[acted(7, "old"), acted(8, "other")]);
        assert_eq!(places(&recent, "old", ThreadRange::ALL), None, "not before it is known where it begins");
        recent.extend(&[acted(9, "old")]);
        fill.end(Seq(3), &[acted(5, "old"), acted(6, "old"), acted(7, "old")]);
        let newest = |newest| ThreadRange { newest, ..ThreadRange::ALL };
        assert_eq!(places(&recent, "old", newest(4)), Some(vec![5, 6, 7, 9]));
        assert_eq!(places(&recent, "old", newest(5)), None, "an older event may be in the log");
        assert_eq!(places(&recent, "old", ThreadRange { after: Seq(3), ..ThreadRange::ALL }), Some(vec![5, 6, 7, 9]));
        assert_eq!(places(&recent, "old", ThreadRange { oldest: 2, ..newest(2) }), None);
        assert_eq!(places(&recent, "old", ThreadRange { through: Seq(6), ..newest(2) }), Some(vec![5, 6]));
        assert_eq!(recent.count(&"old".into(), |_| true), None);

        let fill = recent.begin_fill(&lost).unwrap();
        recent.clear();
        fill.end(Seq(0), &[acted(5, "lost")]);
        assert_eq!(places(&recent, "lost", ThreadRange::ALL), None, "the log was read anew meanwhile");
        assert_eq!(recent.lock().bytes, 0);

        drop(recent.begin_fill(&lost));
        recent.extend(&[acted(9, "lost")]);
        assert!(recent.lock().threads.is_empty() && recent.lock().order.is_empty(), "a read that was given up leaves nothing");
    }

    #[test]
    fn a_long_thread_loses_its_older_half() {
        let recent = Recent::default();
        recent.extend(&[opened(1, "long", THREAD_BYTES / 2), opened(2, "other", 8)]);
        let many = THREAD_BYTES / EVENT_BYTES;
        recent.extend(&(0..many as u64).map(|n| acted(3 + n, "long")).collect::<Vec<_>>());
        assert_eq!(places(&recent, "long", ThreadRange::ALL), None);
        let newest = places(&recent, "long", ThreadRange { newest: 100, ..ThreadRange::ALL }).unwrap();
        assert_eq!((newest.len(), newest[99]), (100, 2 + many as u64));
        assert!(recent.lock().threads[&ThreadId::from("long")].bytes <= THREAD_BYTES);
        let bytes: usize = recent.lock().threads.values().map(|page| page.bytes).sum();
        assert_eq!(recent.lock().bytes, bytes);
    }
}
