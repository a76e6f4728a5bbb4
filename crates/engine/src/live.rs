//! Live frames within one process.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream;
use polis_domain::{EffectId, Recorded, SocietyId, ThreadId, TurnId};
use polis_ports::{ComponentChunk, Delta, Frame, Live, LiveStream, StreamedDelta};

use crate::broadcast::{Broadcast, Lagged, Subscriber};
use crate::recent::weight;

/// How many bytes, roughly, a watcher may lag behind before it has to read the log again.
const MAX_BYTES: usize = 8 << 20;

/// The same for a watcher of one thread: there may be many of those, and little happens in each.
const MAX_THREAD_BYTES: usize = 256 << 10;

/// The size of a frame without its texts, roughly.
const FRAME_BYTES: usize = 128;

/// The longest partial reply that is remembered for late watchers. Of a longer one they only see what follows.
const MAX_REMEMBERED_BYTES: usize = 256 << 10;

/// How many partial replies are remembered.
const MAX_REMEMBERED: usize = 4_096;

/// Publishes to the watchers of this process. A slow watcher loses frames and gets `Frame::Missed`; publishing never waits.
#[derive(Debug, Default)]
pub struct LocalLive {
    societies: Arc<Mutex<Societies>>,
    /// Whether partial replies are remembered for late watchers.
    remembers: bool,
}

type Societies = HashMap<SocietyId, Channel>;

#[derive(Debug)]
struct Channel {
    /// For watchers of the whole society.
    all: Arc<Broadcast<Frame>>,
    /// For watchers of one thread.
    threads: HashMap<ThreadId, Arc<Broadcast<Frame>>>,
    /// The replies in progress.
    partial: BTreeMap<EffectId, PartialReply>,
}

impl Default for Channel {
    fn default() -> Self {
        Self { all: Arc::new(Broadcast::new(MAX_BYTES)), threads: HashMap::new(), partial: BTreeMap::new() }
    }
}

/// The deltas of a reply so far.
#[derive(Debug)]
struct PartialReply {
    thread: ThreadId,
    /// None when the reply is longer than `MAX_REMEMBERED_BYTES`.
    deltas: Option<Vec<Delta>>,
    bytes: usize,
}

impl LocalLive {
    /// Remembers replies in progress even while nobody watches, so that a late watcher gets them from their beginning.
    pub fn remembering() -> Self {
        Self { remembers: true, ..Self::default() }
    }
}

fn with<T>(societies: &Mutex<Societies>, then: impl FnOnce(&mut Societies) -> T) -> T {
    then(&mut societies.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Live for LocalLive {
    fn publish(&self, society: &SocietyId, frame: Frame) {
        with(&self.societies, |societies| {
            if self.remembers {
                let channel = societies.entry(society.clone()).or_default();
                channel.remember(&frame);
                channel.send(frame);
            } else if let Some(channel) = societies.get_mut(society) {
                channel.send(frame);
                // The next watcher creates it again.
                if channel.is_unwatched() {
                    societies.remove(society);
                }
            }
        });
    }

    fn is_watched(&self, society: &SocietyId) -> bool {
        self.remembers || with(&self.societies, |societies| societies.contains_key(society))
    }

    fn watch(&self, society: &SocietyId, thread: Option<&ThreadId>) -> LiveStream {
        let (subscriber, first) = with(&self.societies, |societies| {
            let channel = societies.entry(society.clone()).or_default();
            (channel.subscribe(thread), channel.partial_replies(thread))
        });
        let (societies, thread) = (self.societies.clone(), thread.cloned());
        let watching = Watching { societies, society: society.clone(), thread, subscriber, first };
        Box::pin(stream::unfold(watching, |mut watching| async move { Some((watching.next().await, watching)) }))
    }

    fn partial_text(&self, society: &SocietyId, turn: TurnId) -> Option<String> {
        let of_turn = EffectId { turn, n: 0 }..=EffectId { turn, n: u32::MAX };
        with(&self.societies, |societies| {
            let (_, newest) = societies.get(society)?.partial.range(of_turn).next_back()?;
            let content = newest.deltas.iter().flatten().filter_map(|delta| match delta {
                Delta::Content(text) => Some(text.as_str()),
                _ => None,
            });
            Some(content.collect())
        })
    }
}

fn send(broadcast: &Broadcast<Frame>, frame: Frame) {
    let bytes = FRAME_BYTES
        + match &frame {
            Frame::Committed(events) => events.iter().map(|recorded| weight(&recorded.event)).sum(),
            Frame::Delta(streamed) => bytes_of(&streamed.delta),
            Frame::Step(streamed) => streamed.chunk.as_ref().map_or(0, bytes_of_chunk),
            Frame::Missed => 0,
        };
    broadcast.send(frame, bytes);
}

fn bytes_of(delta: &Delta) -> usize {
    match delta {
        Delta::Content(text) | Delta::Reasoning(text) => text.len(),
        Delta::ToolCall { arguments, .. } => arguments.len() + 64,
        _ => 64,
    }
}

fn bytes_of_chunk(chunk: &ComponentChunk) -> usize {
    match chunk {
        ComponentChunk::Again => 0,
        ComponentChunk::Text { text, .. } => text.len(),
        ComponentChunk::Item { value, .. } | ComponentChunk::Field { value, .. } => polis_domain::value_weight(value),
    }
}

/// One watcher.
struct Watching {
    societies: Arc<Mutex<Societies>>,
    society: SocietyId,
    /// The only thread that it watches; none for the whole society.
    thread: Option<ThreadId>,
    subscriber: Subscriber<Frame>,
    /// Partial replies to deliver before new frames.
    first: VecDeque<Frame>,
}

impl Watching {
    async fn next(&mut self) -> Frame {
        if let Some(frame) = self.first.pop_front() {
            return frame;
        }
        match self.subscriber.recv().await {
            Ok(frame) => frame,
            Err(Lagged) => {
                // Subscribe again and deliver partial replies from their beginning; new frames follow without a gap.
                with(&self.societies, |societies| {
                    let channel = societies.entry(self.society.clone()).or_default();
                    self.subscriber = channel.subscribe(self.thread.as_ref());
                    self.first = channel.partial_replies(self.thread.as_ref());
                });
                Frame::Missed
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let Some(thread) = &self.thread else { return };
        with(&self.societies, |societies| {
            self.subscriber.unsubscribe();
            // The last watcher of a thread removes its channel.
            if let Some(channel) = societies.get_mut(&self.society)
                && channel.threads.get(thread).is_some_and(|broadcast| broadcast.subscribers() == 0)
            {
                channel.threads.remove(thread);
            }
        });
    }
}

impl Channel {
    fn subscribe(&mut self, thread: Option<&ThreadId>) -> Subscriber<Frame> {
        let Some(thread) = thread else { return self.all.subscribe() };
        self.threads.entry(thread.clone()).or_insert_with(|| Arc::new(Broadcast::new(MAX_THREAD_BYTES))).subscribe()
    }

    fn is_unwatched(&self) -> bool {
        self.all.subscribers() == 0 && self.threads.is_empty()
    }

    /// Sends a frame to the watchers of the society and to those of its thread.
    fn send(&self, frame: Frame) {
        if !self.threads.is_empty() {
            match &frame {
                Frame::Committed(events) => self.send_to_threads(events),
                Frame::Delta(streamed) => self.send_to_thread(&streamed.thread, &frame),
                Frame::Step(streamed) => self.send_to_thread(&streamed.thread, &frame),
                Frame::Missed => self.threads.values().for_each(|broadcast| send(broadcast, Frame::Missed)),
            }
        }
        send(&self.all, frame);
    }

    fn send_to_thread(&self, thread: &ThreadId, frame: &Frame) {
        if let Some(broadcast) = self.threads.get(thread) {
            send(broadcast, frame.clone());
        }
    }

    /// Tells each thread that is watched what was recorded under it.
    fn send_to_threads(&self, events: &Arc<[Arc<Recorded>]>) {
        let mut parts = BTreeMap::<&ThreadId, Vec<Arc<Recorded>>>::new();
        for recorded in events.iter() {
            if let Some(thread) = &recorded.thread
                && self.threads.contains_key(thread)
            {
                parts.entry(thread).or_default().push(recorded.clone());
            }
        }
        for (thread, part) in parts {
            self.send_to_thread(thread, &Frame::Committed(part.into()));
        }
    }

    fn remember(&mut self, frame: &Frame) {
        match frame {
            Frame::Delta(streamed) => match &streamed.delta {
                Delta::Done(_) | Delta::Stopped | Delta::Error(_) => drop(self.partial.remove(&streamed.effect)),
                delta => {
                    if self.partial.len() >= MAX_REMEMBERED && !self.partial.contains_key(&streamed.effect) {
                        self.partial.pop_first();
                    }
                    let thread = || PartialReply { thread: streamed.thread.clone(), deltas: Some(Vec::new()), bytes: 0 };
                    self.partial.entry(streamed.effect).or_insert_with(thread).grow(delta);
                }
            },
            Frame::Committed(events) => {
                for recorded in events.iter() {
                    if let polis_domain::Event::EffectEnded { id, .. } | polis_domain::Event::EffectRetried { id, .. } =
                        &recorded.event
                    {
                        self.partial.remove(id);
                    }
                    if let polis_domain::Event::TurnSettled { turn, .. } = &recorded.event {
                        self.partial.retain(|id, _| id.turn != *turn);
                    }
                }
            }
            Frame::Step(_) | Frame::Missed => {}
        }
    }

    fn partial_replies(&self, thread: Option<&ThreadId>) -> VecDeque<Frame> {
        let streamed = |(effect, partial_replies): (&EffectId, &PartialReply)| {
            let (effect, thread) = (*effect, partial_replies.thread.clone());
            let deltas = partial_replies.deltas.clone().unwrap_or_default().into_iter();
            deltas.map(move |delta| Frame::Delta(Arc::new(StreamedDelta { effect, thread: thread.clone(), delta })))
        };
        let is_wanted =
            |(_, partial_replies): &(&EffectId, &PartialReply)| thread.is_none_or(|thread| partial_replies.thread == *thread);
        self.partial.iter().filter(is_wanted).flat_map(streamed).collect()
    }
}

impl PartialReply {
    fn grow(&mut self, delta: &Delta) {
        self.bytes += bytes_of(delta);
        if self.bytes > MAX_REMEMBERED_BYTES {
            self.deltas = None;
        }
        let Some(deltas) = &mut self.deltas else { return };
        match (deltas.last_mut(), delta) {
            (Some(Delta::Content(before)), Delta::Content(more)) => before.push_str(more),
            (Some(Delta::Reasoning(before)), Delta::Reasoning(more)) => before.push_str(more),
            (
                Some(Delta::ToolCall { index: before, arguments: partial_replies, .. }),
                Delta::ToolCall { index, id: None, name: None, arguments },
            ) if before == index => partial_replies.push_str(arguments),
            // Opaque data for the vendor is not shown.
            (_, Delta::Echo(_)) => {}
            (_, delta) => deltas.push(delta.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};
    use polis_domain::{Event, Seq, Timestamp};

    use super::*;

    fn delta(n: u32, delta: Delta) -> Frame {
        let effect = EffectId { turn: TurnId(Seq(1)), n };
        Frame::Delta(Arc::new(StreamedDelta { effect, thread: "root".into(), delta }))
    }

    fn text(frame: Option<Frame>) -> Option<String> {
        match frame? {
            Frame::Delta(streamed) => match &streamed.delta {
                Delta::Content(text) => Some(text.clone()),
                other => Some(format!("{other:?}")),
            },
            Frame::Missed => Some("missed".to_owned()),
            other => Some(format!("{other:?}")),
        }
    }

    #[tokio::test]
    async fn a_late_watcher_receives_a_reply_from_its_beginning() {
        let (live, society) = (LocalLive::remembering(), SocietyId::from("main"));
        assert!(live.is_watched(&society));
        live.publish(&society, delta(0, Delta::Content("gone".into())));
        live.publish(&society, delta(0, Delta::Stopped));
        live.publish(&society, delta(1, Delta::Content("Hel".into())));
        live.publish(&society, delta(1, Delta::Content("lo".into())));
        let mut late = live.watch(&society, None);
        live.publish(&society, delta(1, Delta::Content("!".into())));
        assert_eq!(text(late.next().await).as_deref(), Some("Hello"));
        assert_eq!(text(late.next().await).as_deref(), Some("!"));
        live.publish(&society, delta(1, Delta::Stopped));
        late.next().await;
        assert!(live.watch(&society, None).next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_watcher_that_lags_is_notified_and_then_receives_replies_from_their_beginning() {
        let (live, society) = (LocalLive::remembering(), SocietyId::from("main"));
        let mut slow = live.watch(&society, None);
        let more_than_fit = MAX_BYTES / FRAME_BYTES;
        for _ in 0..more_than_fit {
            live.publish(&society, delta(1, Delta::Content("a".into())));
        }
        assert_eq!(text(slow.next().await).as_deref(), Some("missed"));
        assert_eq!(text(slow.next().await).unwrap().len(), more_than_fit);
        live.publish(&society, delta(1, Delta::Content("b".into())));
        assert_eq!(text(slow.next().await).as_deref(), Some("b"));
    }

    fn committed(places: &[(u64, &str)]) -> Frame {
        let one = |&(seq, thread): &(u64, &str)| {
            Arc::new(Recorded { seq: Seq(seq), at: Timestamp(0), thread: Some(thread.into()), event: Event::SuggestionDropped })
        };
        Frame::Committed(places.iter().map(one).collect())
    }

    fn places(frame: Option<Frame>) -> Vec<u64> {
        match frame {
            Some(Frame::Committed(events)) => events.iter().map(|recorded| recorded.seq.0).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_watcher_of_a_thread_is_woken_by_that_thread_alone() {
        let (live, society) = (LocalLive::remembering(), SocietyId::from("main"));
        let send = |thread: &str, text: &str| {
            let effect = EffectId { turn: TurnId(Seq(1)), n: u32::from(thread == "b") };
            Frame::Delta(Arc::new(StreamedDelta { effect, thread: thread.into(), delta: Delta::Content(text.into()) }))
        };
        live.publish(&society, send("a", "so far in a"));
        live.publish(&society, send("b", "so far in b"));
        let (mut a, mut b) = (live.watch(&society, Some(&"a".into())), live.watch(&society, Some(&"b".into())));
        assert_eq!(text(a.next().await).as_deref(), Some("so far in a"));
        assert_eq!(text(b.next().await).as_deref(), Some("so far in b"));
        live.publish(&society, committed(&[(1, "a"), (2, "c"), (3, "b"), (4, "a")]));
        live.publish(&society, committed(&[(5, "b"), (6, "c")]));
        live.publish(&society, send("b", "!"));
        assert_eq!(places(a.next().await), [1, 4]);
        assert!(a.next().now_or_never().is_none());
        assert_eq!(places(b.next().await), [3]);
        assert_eq!(places(b.next().await), [5]);
        assert_eq!(text(b.next().await).as_deref(), Some("!"));
        let more_than_fit = MAX_THREAD_BYTES / FRAME_BYTES;
        for _ in 0..more_than_fit {
            live.publish(&society, send("a", "."));
        }
        assert_eq!(text(a.next().await).as_deref(), Some("missed"));
        assert_eq!(text(a.next().await).unwrap().len(), "so far in a".len() + more_than_fit);
        assert!(b.next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_watcher_of_a_thread_leaves_nothing_behind() {
        let (live, society) = (LocalLive::default(), SocietyId::from("main"));
        let watch = || live.watch(&society, Some(&"a".into()));
        let (first, second) = (watch(), watch());
        drop(first);
        live.publish(&society, committed(&[(1, "a")]));
        assert!(live.is_watched(&society), "the second still watches");
        drop(second);
        live.publish(&society, committed(&[(2, "a")]));
        assert!(!live.is_watched(&society));
    }

    #[test]
    fn a_society_that_is_neither_watched_nor_remembered_publishes_nothing() {
        assert!(!LocalLive::default().is_watched(&"main".into()));
    }
}
