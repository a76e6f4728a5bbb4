//! Follows a society and sends what it makes of it. The log is the queue: a collector that is slow or down is waited for without
//! holding anything but one batch, and nobody else waits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polis_domain::{Event, Recorded, Seq, SocietyId, ThreadId};
use polis_engine::{Society, SystemClock, Watch};
use polis_ports::{Clock, Documents, Log, LogError, Model, ThreadRange};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::Settings;
use crate::agent_tree::AgentTree;
use crate::exporter::{BadCollector, ExportError, OtlpExporter};
use crate::ids::Ids;
use crate::meters::Meters;
use crate::requests::{ObservedModel, Requests};
use crate::sent_position::SentPosition;
use crate::tracer::{self, FinishedSpan, Tracer};

/// Most spans in a batch, and most bytes.
const BATCH_SPANS: usize = 512;
const BATCH_BYTES: usize = 1 << 20;

/// How long a span waits for others.
const BATCH_WAIT: Duration = Duration::from_secs(2);

/// How long to wait after a batch was not taken: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long the rest may take when we stop.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// How many events back something may have begun. What began before is let go, so that a start never reads the whole log.
const MOST_BEHIND: u64 = 1_000_000;

/// Sends the telemetry of societies to one collector. Clones are the same.
#[derive(Clone)]
pub struct Telemetry(Arc<Shared>);

struct Shared {
    settings: Settings,
    exporter: OtlpExporter,
    /// What models were asked, if spans carry content.
    asked: Arc<Requests>,
    /// Whether it was logged that the collector does not answer.
    is_reported: AtomicBool,
    dropped: AtomicU64,
}

/// The handle of a society that is followed until [`FollowHandle::finish`].
pub struct FollowHandle {
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Telemetry {
    /// Telemetry for this collector. Nothing is sent yet.
    pub fn new(settings: Settings) -> Result<Self, BadCollector> {
        let exporter = OtlpExporter::new(&settings)?;
        let (asked, is_reported, dropped) = Default::default();
        Ok(Self(Arc::new(Shared { settings, exporter, asked, is_reported, dropped })))
    }

    /// The model of a society, whose spans show what it is asked if they carry content.
    pub fn observe(&self, society: &SocietyId, model: Arc<dyn Model>) -> Arc<dyn Model> {
        if !self.0.settings.content {
            return model;
        }
        Arc::new(ObservedModel { model, society: society.clone(), requests: self.0.asked.clone() })
    }

    /// Whether the collector answers; why not, if it does not.
    pub async fn check(&self) -> Result<(), String> {
        self.0.exporter.check().await
    }

    /// Follows a society from where it was followed last. `opened` is where its log ended just before it was opened; of a
    /// society that was never followed, what ended before that is not told. None when it has ended already.
    ///
    /// `documents` say how far the spans of each society were sent.
    pub async fn follow(&self, society: &Society, opened: Seq, documents: Arc<dyn Documents>) -> Option<FollowHandle> {
        let (id, log) = (society.id().clone(), society.log().clone());
        let name = id.clone();
        let looked = society.look(move |spine| {
            let tasks: Vec<_> = spine.activities.keys().map(polis_domain::TaskId::thread).collect();
            (Ids::of(name.clone(), spine), AgentTree::of(spine), tasks, spine.turns.keys().next().map(|turn| turn.0))
        });
        let (ids, tree, tasks, turn) = looked.await.ok()?;
        let place = match SentPosition::read(&*documents, &id).await {
            Some(place) if place.seed == ids.seed() => place,
            before => {
                // After a rewind everything is new from the fork on.
                let sent = if before.is_some() { ids.forked() } else { opened };
                SentPosition { seed: ids.seed(), from: beginning(&*log, &id, &tasks, turn, sent).await, sent }
            }
        };
        save(&place, &*documents, &id).await;
        let now = SystemClock.now();
        let follower = Follower {
            shared: self.0.clone(),
            watch: society.watch(place.from),
            tracer: Tracer::new(ids, tree, self.0.settings.content, self.0.asked.clone()),
            meters: Meters::new(id.as_str(), now),
            seen: place.from,
            sent: place.sent,
            batch: Vec::new(),
            bytes: 0,
            pause: None,
            opened,
            log,
            documents,
            id,
        };
        let stop = CancellationToken::new();
        let task = tokio::spawn(follower.run(stop.clone()));
        Some(FollowHandle { stop, task: Mutex::new(Some(task)) })
    }
}

impl FollowHandle {
    /// Sends the rest, within a second. The society must have come to rest; what is not sent is sent after the next start.
    pub async fn finish(&self) {
        self.stop.cancel();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut task) = task else { return };
        if timeout(FINISH_TIMEOUT, &mut task).await.is_err() {
            task.abort();
            // An error means that it was cut, which is what was wanted.
            let _ = task.await;
            tracing::warn!("the telemetry collector took too long; the rest is sent after the next start");
        }
    }
}

impl Drop for FollowHandle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct Follower {
    documents: Arc<dyn Documents>,
    shared: Arc<Shared>,
    id: SocietyId,
    log: Arc<dyn Log>,
    watch: Watch,
    tracer: Tracer,
    meters: Meters,
    /// Where the log ended before this process.
    opened: Seq,
    /// The last event that was taken.
    seen: Seq,
    /// Whatever ended up to here was sent before.
    sent: Seq,
    /// Encoded spans.
    batch: Vec<Vec<u8>>,
    bytes: usize,
    /// How long was waited last, if the collector takes nothing.
    pause: Option<Duration>,
}

impl Follower {
    async fn run(mut self, stop: CancellationToken) {
        let interval = self.shared.settings.metric_interval;
        let (mut send_at, mut measure_at) = (Instant::now() + BATCH_WAIT, Instant::now() + interval);
        loop {
            let (is_empty, is_full) = (self.batch.is_empty(), self.is_full());
            let due = if is_full && self.pause.is_none() { Instant::now() } else { send_at };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = sleep_until(due), if !is_empty => {
                    let after = self.send().await;
                    send_at = Instant::now() + after;
                }
                () = sleep_until(measure_at) => {
                    self.measure().await;
                    measure_at = Instant::now() + interval;
                }
                event = self.watch.next_event(), if !is_full => match event {
                    Ok(Some(recorded)) => {
                        self.take(&recorded).await;
                        if is_empty && self.pause.is_none() {
                            send_at = Instant::now() + BATCH_WAIT;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        tracing::debug!(%error, "the log cannot be read for telemetry just now");
                        sleep(FIRST_PAUSE).await;
                    }
                },
            }
        }
        if let Err(error) = self.finish_sending().await {
            tracing::debug!(%error, "the log cannot be read for telemetry; the rest is sent after the next start");
        }
    }

    /// What is left, as long as the collector takes it.
    async fn finish_sending(&mut self) -> Result<(), LogError> {
        let head = self.log.head(&self.id).await?;
        while self.seen < head {
            if self.is_full() {
                self.send().await;
                if self.pause.is_some() {
                    return Ok(());
                }
            }
            let Some(recorded) = self.watch.next_event().await? else { break };
            self.take(&recorded).await;
        }
        self.send().await;
        if self.pause.is_none() {
            self.measure().await;
        }
        Ok(())
    }

    async fn take(&mut self, recorded: &Recorded) {
        self.seen = recorded.seq;
        let finished = trace(&mut self.tracer, &*self.log, &self.id, recorded).await;
        for FinishedSpan { span, chat } in finished {
            if let Some(chat) = chat.filter(|_| recorded.seq > self.opened) {
                self.meters.count(&chat);
            }
            if recorded.seq > self.sent {
                let span = self.shared.exporter.encode(&span);
                self.bytes += span.len();
                self.batch.push(span);
            }
        }
        let before = self.seen.0.saturating_sub(MOST_BEHIND);
        if self.tracer.oldest().is_some_and(|oldest| oldest.0 < before) {
            let gone = self.tracer.let_go(Seq(before));
            self.shared.drop_spans(gone as u64, "a request has been open for too long");
        }
    }

    fn is_full(&self) -> bool {
        self.batch.len() >= BATCH_SPANS || self.bytes >= BATCH_BYTES
    }

    /// Sends the batch, if there is anything in it; how long to wait before the next one.
    async fn send(&mut self) -> Duration {
        if !self.batch.is_empty() {
            match self.shared.exporter.spans(&self.batch).await {
                Ok(rejected) => self.shared.drop_spans(rejected, "the collector rejected them"),
                Err(ExportError::Refused(why)) => self.shared.drop_spans(self.batch.len() as u64, &why),
                Err(ExportError::Later { why, after }) => {
                    self.shared.tell(&why);
                    let pause = self.pause.map_or(FIRST_PAUSE, |before| (before * 2).min(LONGEST_PAUSE));
                    self.pause = Some(pause);
                    return after.unwrap_or_default().max(pause);
                }
            }
            self.batch.clear();
            self.bytes = 0;
            self.pause = None;
        }
        self.sent = self.seen.max(self.sent);
        let from = self.tracer.oldest().map_or(self.seen, |oldest| Seq(oldest.0.saturating_sub(1)));
        save(&SentPosition { seed: self.tracer.seed(), from, sent: self.sent }, &*self.documents, &self.id).await;
        BATCH_WAIT
    }

    /// Sends the metrics. They are sums, so what is not taken now is part of what is sent next.
    async fn measure(&mut self) {
        let metrics = self.meters.metrics(SystemClock.now(), self.tracer.open_counts());
        match self.shared.exporter.metrics(&metrics).await {
            Ok(()) => {}
            Err(ExportError::Refused(why) | ExportError::Later { why, .. }) => {
                // Many collectors take traces alone.
                tracing::debug!(%why, "the collector rejected metrics");
            }
        }
    }
}

impl Shared {
    /// Says once that nothing is taken.
    fn tell(&self, why: &str) {
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            let collector = self.settings.endpoint.as_str();
            tracing::warn!(collector, why, "the telemetry collector does not accept data; spans stay in the log until it does");
        }
    }

    fn drop_spans(&self, count: u64, why: &str) {
        if count > 0 && self.dropped.fetch_add(count, Ordering::Relaxed) == 0 {
            tracing::warn!(count, why, "spans are dropped; further drops are not reported");
        }
    }
}

async fn save(place: &SentPosition, documents: &dyn Documents, id: &SocietyId) {
    if let Err(error) = place.write(documents, id).await {
        tracing::warn!(%error, "the telemetry position cannot be stored; spans will be sent again");
    }
}

/// Where to begin with a society that was not followed before: what is under way is told whole.
async fn beginning(log: &dyn Log, society: &SocietyId, tasks: &[ThreadId], turn: Option<Seq>, sent: Seq) -> Seq {
    let mut first = turn.unwrap_or(sent.next()).min(sent.next());
    for thread in tasks {
        let envelopes = log.read_thread(society, thread, ThreadRange::ALL).await.unwrap_or_default();
        first = envelopes.first().map_or(first, |envelope| envelope.seq.min(first));
    }
    Seq(first.0.saturating_sub(1).max(sent.0.saturating_sub(MOST_BEHIND)))
}

/// Folds one event, with what must be known from before.
async fn trace(tracer: &mut Tracer, log: &dyn Log, society: &SocietyId, recorded: &Recorded) -> Vec<FinishedSpan> {
    let before = ThreadRange::through(Seq(recorded.seq.0.saturating_sub(1)));
    while let Some(thread) = tracer.lacks(recorded) {
        let Some(place) = place_of(log, society, &thread, before).await else { break };
        tracer.learn(thread, place);
    }
    let is_first = match tracer.unknown_request(recorded) {
        None => true,
        Some(task) => {
            let newest = ThreadRange { newest: 1, ..before };
            log.read_thread(society, &task.thread(), newest).await.is_ok_and(|envelopes| envelopes.is_empty())
        }
    };
    tracer.take(recorded, is_first)
}

/// Where a sub-thread hangs, as the log has it.
async fn place_of(log: &dyn Log, society: &SocietyId, thread: &ThreadId, range: ThreadRange) -> Option<tracer::SubThreadPlace> {
    let events = log.read_thread(society, thread, range).await.ok()?;
    let parent = events.iter().find_map(|recorded| match &recorded.event {
        Event::ThreadOpened { parent, .. } => Some(parent.clone()),
        _ => None,
    })?;
    let above = log.read_thread(society, &parent, range).await.ok()?;
    above.iter().find_map(|recorded| match &recorded.event {
        Event::ThreadLinked { index, slot, child, .. } if child == thread => {
            Some(tracer::SubThreadPlace { parent: parent.clone(), index: *index, slot: slot.clone() })
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests;
