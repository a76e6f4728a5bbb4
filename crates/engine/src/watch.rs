//! Watching a society, or one thread of it: the log after N, then live, joined by sequence number. Nothing twice, nothing missing.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::StreamExt;
use polis_domain::{Recorded, Seq, SocietyId, ThreadId};
use polis_ports::{Frame, LiveStream, Log, LogError, StreamedDelta, StreamedStep, ThreadRange};
use tokio::sync::watch::Receiver;

use crate::shared::Ports;

/// Events read from the log at a time.
const PAGE: usize = 256;

/// A watcher of a society.
pub struct Watch {
    society: SocietyId,
    /// The only thread of interest, if there is one.
    thread: Option<ThreadId>,
    log: Arc<dyn Log>,
    live: LiveStream,
    /// Closed when the society has ended.
    ended: Receiver<Option<Arc<LogError>>>,
    /// It has: what the log has is seen, and then nothing more comes.
    is_over: bool,
    seen: Seq,
    is_behind: bool,
    ready: VecDeque<Arc<Recorded>>,
    missed: u64,
}

/// What a watcher sees next.
#[derive(Debug, Clone)]
pub enum WatchEvent {
    /// The next event of the log.
    Event(Arc<Recorded>),
    /// A chunk of a reply that is being written.
    Delta(Arc<StreamedDelta>),
    /// What somebody in a workflow is seen doing.
    Step(Arc<StreamedStep>),
}

impl Watch {
    pub(crate) fn new(
        society: SocietyId,
        thread: Option<ThreadId>,
        ports: &Ports,
        ended: Receiver<Option<Arc<LogError>>>,
        after: Seq,
    ) -> Self {
        // Live first, the log second: whatever is appended in between is seen in both and told once.
        let live = ports.live.watch(&society, thread.as_ref());
        let (log, ready) = (ports.log.clone(), VecDeque::new());
        Self { society, thread, log, live, ended, is_over: false, seen: after, is_behind: true, ready, missed: 0 }
    }

    /// The next thing to see; none when the society has ended and everything that its log has was seen.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, LogError> {
        loop {
            if let Some(recorded) = self.ready.pop_front() {
                if recorded.seq <= self.seen {
                    continue;
                }
                // Between two events of one thread there may be any number of others.
                if self.thread.is_some() || recorded.seq == self.seen.next() {
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
            let frame = tokio::select! {
                // What was told before the end is seen before it.
                biased;
                frame = self.live.next() => frame,
                _ = self.ended.changed() => None,
            };
            match frame {
                Some(Frame::Committed(events)) => self.ready.extend(events.iter().cloned()),
                Some(Frame::Delta(delta)) => return Ok(Some(WatchEvent::Delta(delta))),
                Some(Frame::Step(step)) => return Ok(Some(WatchEvent::Step(step))),
                Some(Frame::Missed) => {
                    self.is_behind = true;
                    self.missed += 1;
                }
                // Not all that the log has need have been told.
                None => (self.is_over, self.is_behind) = (true, true),
            }
        }
    }

    /// What the log has next.
    async fn page(&mut self) -> Result<Vec<Recorded>, LogError> {
        match &self.thread {
            None => self.log.read(&self.society, self.seen, PAGE).await,
            Some(thread) => {
                let range = ThreadRange { after: self.seen, oldest: PAGE, ..ThreadRange::ALL };
                self.log.read_thread(&self.society, thread, range).await
            }
        }
    }

    /// How often chunks of replies were lost, because whoever watches was too slow or the log failed. No event of the log ever is.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The next event, passing over chunks of replies.
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
