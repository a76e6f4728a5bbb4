//! Watching a society or one thread: the log after a position, then live frames, joined by sequence number without gaps or
//! duplicates.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::StreamExt;
use polis_domain::{Recorded, Seq, SocietyId, Spine, ThreadId, Visibility};
use polis_ports::{Frame, LiveStream, Log, LogError, StreamedDelta, StreamedStep, ThreadRange};
use tokio::sync::watch::Receiver;

use crate::shared::Shared;

/// Events read from the log at a time.
const PAGE: usize = 256;

/// Most threads whose visibility is remembered.
const MAX_THREADS: usize = 1_024;

/// A watcher of a society.
pub struct Watch {
    society: SocietyId,
    /// The only thread that is watched; none for the whole society.
    thread: Option<ThreadId>,
    log: Arc<dyn Log>,
    live: LiveStream,
    /// A frame that was received and not looked at yet.
    frame: Option<Frame>,
    /// Closed when the society has ended.
    ended: Receiver<Option<Arc<LogError>>>,
    /// The society has ended: the rest of the log is still read, then the watch ends.
    is_over: bool,
    /// The last event that was returned.
    seen: Seq,
    /// Whether the log may have events that were not read yet.
    is_behind: bool,
    /// Events to return next.
    ready: VecDeque<Arc<Recorded>>,
    missed: u64,
    shared: Arc<Shared>,
    /// What may be seen.
    visibility: Visibility,
    /// Threads that were asked about, and whether they may be seen.
    threads: HashMap<ThreadId, bool>,
}

/// The next item of a [`Watch`].
#[derive(Debug, Clone)]
pub enum WatchEvent {
    /// The next event of the log.
    Event(Arc<Recorded>),
    /// A chunk of a reply in progress.
    Delta(Arc<StreamedDelta>),
    /// A step of a workflow.
    Step(Arc<StreamedStep>),
}

impl Watch {
    pub(crate) fn new(
        shared: Arc<Shared>,
        thread: Option<ThreadId>,
        log: Arc<dyn Log>,
        visibility: Visibility,
        ended: Receiver<Option<Arc<LogError>>>,
        after: Seq,
    ) -> Self {
        // Subscribed before the log is read: an event appended in between is in both and is dropped once.
        let society = shared.society.clone();
        let live = shared.ports.live.watch(&society, thread.as_ref());
        Self {
            society,
            thread,
            log,
            live,
            frame: None,
            ended,
            is_over: false,
            seen: after,
            is_behind: true,
            ready: VecDeque::new(),
            missed: 0,
            shared,
            visibility,
            threads: HashMap::new(),
        }
    }

    /// Waits for the next item; none when the society has ended and its whole log was returned.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, LogError> {
        loop {
            if let Some(recorded) = self.ready.pop_front() {
                if recorded.seq <= self.seen {
                    continue;
                }
                // Events of one thread or person have gaps between their numbers; only a whole log has none.
                if self.thread.is_some() || self.visibility != Visibility::Everything || recorded.seq == self.seen.next() {
                    self.seen = recorded.seq;
                    return Ok(Some(WatchEvent::Event(recorded)));
                }
                self.is_behind = true;
                self.ready.clear();
            }
            if self.is_behind {
                let page = self.page().await?;
                self.is_behind = page.len() == PAGE;
                self.ready.extend(page.into_iter().map(Arc::new));
                if !self.ready.is_empty() {
                    continue;
                }
            }
            if self.is_over {
                return Ok(None);
            }
            if self.frame.is_none() {
                let frame = tokio::select! {
                    // Frames that were published before the end come before it.
                    biased;
                    frame = self.live.next() => frame,
                    _ = self.ended.changed() => None,
                };
                match frame {
                    Some(frame) => self.frame = Some(frame),
                    // The log may have events that were never published.
                    None => {
                        (self.is_over, self.is_behind) = (true, true);
                        continue;
                    }
                }
            }
            // The frame stays here until it is known what of it may be seen: this future may be dropped meanwhile.
            let visible = self.visible_part().await;
            self.frame = None;
            match visible {
                Some(Frame::Committed(events)) => self.ready.extend(events.iter().cloned()),
                Some(Frame::Delta(delta)) => return Ok(Some(WatchEvent::Delta(delta))),
                Some(Frame::Step(step)) => return Ok(Some(WatchEvent::Step(step))),
                Some(Frame::Missed) => {
                    self.is_behind = true;
                    self.missed += 1;
                }
                None => {}
            }
        }
    }

    /// What may be seen of the frame that was received last. When the society has ended nothing is; the rest of its log is read
    /// then.
    async fn visible_part(&mut self) -> Option<Frame> {
        let frame = self.frame.clone()?;
        if self.visibility == Visibility::Everything {
            return Some(frame);
        }
        match frame {
            Frame::Committed(events) => {
                let visibility = self.visibility.clone();
                let filter = move |spine: &Spine| -> Arc<[Arc<Recorded>]> {
                    let visible = events.iter().filter(|recorded| visibility.event(spine, recorded));
                    visible.cloned().collect()
                };
                self.shared.look(filter).await.map(Frame::Committed)
            }
            Frame::Delta(delta) => self.is_visible(&delta.thread).await.then_some(Frame::Delta(delta)),
            Frame::Step(step) => self.is_visible(&step.thread).await.then_some(Frame::Step(step)),
            Frame::Missed => Some(Frame::Missed),
        }
    }

    /// Whether a thread may be seen.
    async fn is_visible(&mut self, thread: &ThreadId) -> bool {
        if self.visibility == Visibility::Everything {
            return true;
        }
        if let Some(known) = self.threads.get(thread) {
            return *known;
        }
        let (asked, visibility) = (thread.clone(), self.visibility.clone());
        let is_visible = self.shared.look(move |spine| visibility.thread(spine, &asked)).await.unwrap_or_default();
        if self.threads.len() >= MAX_THREADS {
            self.threads.clear();
        }
        self.threads.insert(thread.clone(), is_visible);
        is_visible
    }

    /// Reads the next events from the log.
    async fn page(&mut self) -> Result<Vec<Recorded>, LogError> {
        match &self.thread {
            None => self.log.read(&self.society, self.seen, PAGE).await,
            Some(thread) => {
                let range = ThreadRange { after: self.seen, oldest: PAGE, ..ThreadRange::ALL };
                self.log.read_thread(&self.society, thread, range).await
            }
        }
    }

    /// How often deltas and steps were lost because this watcher was too slow or the log failed. Events are never lost.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Waits for the next event, ignoring deltas and steps.
    pub async fn next_event(&mut self) -> Result<Option<Arc<Recorded>>, LogError> {
        loop {
            match self.next().await? {
                Some(WatchEvent::Event(recorded)) => return Ok(Some(recorded)),
                Some(WatchEvent::Delta(_) | WatchEvent::Step(_)) => {}
                None => return Ok(None),
            }
        }
    }
}
