//! Live frames within one process.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream;
use polis_domain::{EffectId, SocietyId, ThreadId};
use polis_ports::{Delta, Frame, Live, LiveStream, StreamedDelta};
use tokio::sync::broadcast;

/// Frames that a watcher may lag behind before it is told to read the log again.
const BUFFER: usize = 8_192;

/// Longest part of a reply that is remembered for late comers; of a longer one they see what follows.
const MAX_REMEMBERED_BYTES: usize = 256 << 10;

/// Most replies under way that are remembered.
const MAX_REMEMBERED: usize = 4_096;

/// Tells the watchers of this process. A slow one loses frames and is told so; nobody waits for it.
#[derive(Debug, Default)]
pub struct LocalLive {
    societies: Arc<Mutex<Societies>>,
    /// Whether replies under way are remembered for late comers.
    remembers: bool,
}

type Societies = HashMap<SocietyId, Channel>;

#[derive(Debug)]
struct Channel {
    sender: broadcast::Sender<Frame>,
    /// The replies that are being written.
    under_way: BTreeMap<EffectId, SoFar>,
}

impl Default for Channel {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(BUFFER), under_way: BTreeMap::new() }
    }
}

/// What of a reply was told so far.
#[derive(Debug)]
struct SoFar {
    thread: ThreadId,
    /// None once it has become too long.
    deltas: Option<Vec<Delta>>,
    bytes: usize,
}

impl LocalLive {
    /// Remembers the replies that are being written, also while nobody watches: whoever comes late is told them from their beginning.
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
                // An error means that nobody watches just now.
                let _ = channel.sender.send(frame);
                return;
            }
            // An error means that nobody watches any more; the next watcher makes a new channel.
            if let Some(channel) = societies.get(society)
                && channel.sender.send(frame).is_err()
            {
                societies.remove(society);
            }
        });
    }

    fn is_watched(&self, society: &SocietyId) -> bool {
        self.remembers || with(&self.societies, |societies| societies.contains_key(society))
    }

    fn watch(&self, society: &SocietyId) -> LiveStream {
        let (receiver, first) = with(&self.societies, |societies| {
            let channel = societies.entry(society.clone()).or_default();
            (channel.sender.subscribe(), channel.so_far())
        });
        let watching = Watching { societies: self.societies.clone(), society: society.clone(), receiver, first };
        Box::pin(stream::unfold(watching, |mut watching| async move { Some((watching.next().await?, watching)) }))
    }
}

/// One watcher.
struct Watching {
    societies: Arc<Mutex<Societies>>,
    society: SocietyId,
    receiver: broadcast::Receiver<Frame>,
    /// What is told before anything new.
    first: VecDeque<Frame>,
}

impl Watching {
    async fn next(&mut self) -> Option<Frame> {
        if let Some(frame) = self.first.pop_front() {
            return Some(frame);
        }
        match self.receiver.recv().await {
            Ok(frame) => Some(frame),
            Err(broadcast::error::RecvError::Lagged(_)) => {
                // Replies under way are told again from their beginning, and then only what comes after that.
                with(&self.societies, |societies| {
                    if let Some(channel) = societies.get(&self.society) {
                        self.receiver = channel.sender.subscribe();
                        self.first = channel.so_far();
                    }
                });
                Some(Frame::Missed)
            }
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl Channel {
    fn remember(&mut self, frame: &Frame) {
        match frame {
            Frame::Delta(told) => match &told.delta {
                Delta::Done(_) | Delta::Stopped | Delta::Error(_) => drop(self.under_way.remove(&told.effect)),
                delta => {
                    if self.under_way.len() >= MAX_REMEMBERED && !self.under_way.contains_key(&told.effect) {
                        self.under_way.pop_first();
                    }
                    let thread = || SoFar { thread: told.thread.clone(), deltas: Some(Vec::new()), bytes: 0 };
                    self.under_way.entry(told.effect).or_insert_with(thread).grow(delta);
                }
            },
            Frame::Committed(events) => {
                for recorded in events.iter() {
                    if let polis_domain::Event::EffectEnded { id, .. } | polis_domain::Event::EffectRetried { id, .. } =
                        &recorded.event
                    {
                        self.under_way.remove(id);
                    }
                    if let polis_domain::Event::TurnSettled { turn, .. } = &recorded.event {
                        self.under_way.retain(|id, _| id.turn != *turn);
                    }
                }
            }
            Frame::Piece(_) | Frame::Missed => {}
        }
    }

    fn so_far(&self) -> VecDeque<Frame> {
        let told = |(effect, so_far): (&EffectId, &SoFar)| {
            let (effect, thread) = (*effect, so_far.thread.clone());
            let deltas = so_far.deltas.clone().unwrap_or_default().into_iter();
            deltas.map(move |delta| Frame::Delta(Arc::new(StreamedDelta { effect, thread: thread.clone(), delta })))
        };
        self.under_way.iter().flat_map(told).collect()
    }
}

impl SoFar {
    fn grow(&mut self, delta: &Delta) {
        self.bytes += match delta {
            Delta::Content(text) | Delta::Reasoning(text) => text.len(),
            Delta::ToolCall { arguments, .. } => arguments.len() + 64,
            _ => 64,
        };
        if self.bytes > MAX_REMEMBERED_BYTES {
            self.deltas = None;
        }
        let Some(deltas) = &mut self.deltas else { return };
        match (deltas.last_mut(), delta) {
            (Some(Delta::Content(before)), Delta::Content(more)) => before.push_str(more),
            (Some(Delta::Reasoning(before)), Delta::Reasoning(more)) => before.push_str(more),
            (
                Some(Delta::ToolCall { index: before, arguments: so_far, .. }),
                Delta::ToolCall { index, id: None, name: None, arguments },
            ) if before == index => so_far.push_str(arguments),
            // What only the vendor reads is no text.
            (_, Delta::Echo(_)) => {}
            (_, delta) => deltas.push(delta.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};
    use polis_domain::{Seq, TurnId};

    use super::*;

    fn delta(n: u32, delta: Delta) -> Frame {
        let effect = EffectId { turn: TurnId(Seq(1)), n };
        Frame::Delta(Arc::new(StreamedDelta { effect, thread: "root".into(), delta }))
    }

    fn text(frame: Option<Frame>) -> Option<String> {
        match frame? {
            Frame::Delta(told) => match &told.delta {
                Delta::Content(text) => Some(text.clone()),
                other => Some(format!("{other:?}")),
            },
            Frame::Missed => Some("missed".to_owned()),
            other => Some(format!("{other:?}")),
        }
    }

    #[tokio::test]
    async fn whoever_comes_late_is_told_a_reply_from_its_beginning() {
        let (live, society) = (LocalLive::remembering(), SocietyId::from("main"));
        assert!(live.is_watched(&society));
        live.publish(&society, delta(0, Delta::Content("gone".into())));
        live.publish(&society, delta(0, Delta::Stopped));
        live.publish(&society, delta(1, Delta::Content("Hel".into())));
        live.publish(&society, delta(1, Delta::Content("lo".into())));
        let mut late = live.watch(&society);
        live.publish(&society, delta(1, Delta::Content("!".into())));
        assert_eq!(text(late.next().await).as_deref(), Some("Hello"));
        assert_eq!(text(late.next().await).as_deref(), Some("!"));
        live.publish(&society, delta(1, Delta::Stopped));
        late.next().await;
        assert!(live.watch(&society).next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn who_lags_is_told_so_and_then_everything_from_its_beginning() {
        let (live, society) = (LocalLive::remembering(), SocietyId::from("main"));
        let mut slow = live.watch(&society);
        for _ in 0..BUFFER + 10 {
            live.publish(&society, delta(1, Delta::Content("a".into())));
        }
        assert_eq!(text(slow.next().await).as_deref(), Some("missed"));
        assert_eq!(text(slow.next().await).unwrap().len(), BUFFER + 10);
        live.publish(&society, delta(1, Delta::Content("b".into())));
        assert_eq!(text(slow.next().await).as_deref(), Some("b"));
    }

    #[test]
    fn nobody_pays_for_a_society_that_is_not_watched_unless_it_is_remembered() {
        assert!(!LocalLive::default().is_watched(&"main".into()));
    }
}
