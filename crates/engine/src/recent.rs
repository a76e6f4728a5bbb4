//! A cache of the newest threads, so that a read right after a write does not go to the log.
//!
//! A thread is cached from its first event on or not at all, so that a read gives exactly what the log would give.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polis_domain::{Event, Outcome, Recorded, ThreadId};
use polis_ports::ThreadRange;
use rustc_hash::FxHashMap;

/// The size of the cache in bytes, roughly.
const BYTES: usize = 16 * 1024 * 1024;

/// The size of an event without its texts, roughly.
const EVENT_BYTES: usize = 512;

/// The cache of one society.
#[derive(Default)]
pub(crate) struct Recent(Mutex<Cache>);

#[derive(Default)]
struct Cache {
    threads: FxHashMap<ThreadId, Page>,
    /// The threads in the order in which they were opened.
    order: VecDeque<ThreadId>,
    bytes: usize,
}

#[derive(Default)]
struct Page {
    events: Vec<Arc<Recorded>>,
    bytes: usize,
}

impl Recent {
    /// Adds events that were just appended.
    pub(crate) fn extend(&self, events: &[Arc<Recorded>]) {
        let mut cache = self.lock();
        for recorded in events {
            let Some(thread) = &recorded.thread else { continue };
            if matches!(recorded.event, Event::ThreadOpened { .. }) {
                cache.threads.insert(thread.clone(), Page::default());
                cache.order.push_back(thread.clone());
            }
            let Some(page) = cache.threads.get_mut(thread) else { continue };
            let bytes = weight(&recorded.event);
            page.events.push(recorded.clone());
            page.bytes += bytes;
            cache.bytes += bytes;
        }
        while cache.bytes > BYTES
            && let Some(oldest) = cache.order.pop_front()
        {
            cache.bytes -= cache.threads.remove(&oldest).map_or(0, |page| page.bytes);
        }
    }

    /// Adds a thread that has no events yet. Its id must be new.
    pub(crate) fn begin(&self, thread: ThreadId) {
        let mut cache = self.lock();
        cache.bytes += EVENT_BYTES;
        cache.threads.insert(thread.clone(), Page { bytes: EVENT_BYTES, ..Page::default() });
        cache.order.push_back(thread);
    }

    /// How many events of a thread match; none if the thread is not cached.
    pub(crate) fn count(&self, thread: &ThreadId, is_so: impl Fn(&Recorded) -> bool) -> Option<usize> {
        Some(self.lock().threads.get(thread)?.events.iter().filter(|recorded| is_so(recorded)).count())
    }

    /// The events of a thread in a range; none if the thread is not cached.
    pub(crate) fn read(&self, thread: &ThreadId, range: ThreadRange) -> Option<Vec<Arc<Recorded>>> {
        let cache = self.lock();
        let events = &cache.threads.get(thread)?.events;
        let begin = events.partition_point(|recorded| recorded.seq <= range.after);
        let end = events.partition_point(|recorded| recorded.seq <= range.through).max(begin);
        let end = end.min(begin.saturating_add(range.oldest));
        Some(events[begin.max(end.saturating_sub(range.newest))..end].to_vec())
    }

    /// Empties the cache: after a failed append it may hold events that are not in the log.
    pub(crate) fn clear(&self) {
        *self.lock() = Cache::default();
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        recent.extend(&[opened(1, "first", BYTES / 2), opened(2, "second", BYTES / 4)]);
        recent.extend(&[opened(3, "third", BYTES / 2)]);
        assert_eq!(places(&recent, "first", ThreadRange::ALL), None);
        assert_eq!(places(&recent, "second", ThreadRange::ALL), Some(vec![2]));
        recent.extend(&[opened(4, "huge", 2 * BYTES), acted(5, "huge"), opened(6, "small", 8)]);
        assert_eq!(places(&recent, "huge", ThreadRange::ALL), None);
        recent.extend(&[opened(7, "next", 8)]);
        assert_eq!(places(&recent, "next", ThreadRange::ALL), Some(vec![7]));
        assert!(recent.lock().bytes < BYTES / 2);
    }
}
