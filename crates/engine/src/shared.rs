//! What the actor, its turns and the handle of a society share: the ports, the options, and the channel to the actor.
//!
//! Nothing here decides anything. It is a leaf, so that `actor`, `scheduler`, `society` and `turn` need not import each other
//! for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polis_domain::{Budgets, Command, Failure, Limits, PersonId, Recorded, Role, Seq, SocietyId, Spine, ThreadId, TurnId};
use polis_ports::{
    Artifacts, Clock, Embedder, Live, Log, LogError, MemoryTexts, Model, NoArtifacts, NoMemoryTexts, ThreadRange, Toolbox,
};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::offer::Offers;
use crate::recent::Recent;
use crate::{Cast, CommandError, LocalLive, NoModel, NoTools, SystemClock};

/// The adapters that a society runs on.
#[derive(Clone)]
pub struct Ports {
    /// Stores the events.
    pub log: Arc<dyn Log>,
    /// Answers model requests.
    pub model: Arc<dyn Model>,
    /// Runs tools.
    pub toolbox: Arc<dyn Toolbox>,
    /// Publishes events and deltas to watchers.
    pub live: Arc<dyn Live>,
    /// Tells the time and waits for it.
    pub clock: Arc<dyn Clock>,
    /// Stores contents that are too long for the log.
    pub artifacts: Arc<dyn Artifacts>,
    /// Stores the texts of memories.
    pub memory_texts: Arc<dyn MemoryTexts>,
    /// Makes vectors of texts, so that memories are found by meaning too.
    pub embedder: Option<Arc<dyn Embedder>>,
}

impl Ports {
    /// Ports with this log, the system clock and in-process watchers; no model, no tools and no artifact store yet.
    pub fn new(log: impl Log + 'static) -> Self {
        Self {
            log: Arc::new(log),
            model: Arc::new(NoModel),
            toolbox: Arc::new(NoTools),
            live: Arc::new(LocalLive::default()),
            clock: Arc::new(SystemClock),
            artifacts: Arc::new(NoArtifacts),
            memory_texts: Arc::new(NoMemoryTexts),
            embedder: None,
        }
    }

    /// Sets the model.
    pub fn with_model(self, model: impl Model + 'static) -> Self {
        Self { model: Arc::new(model), ..self }
    }

    /// Sets the tools.
    pub fn with_tools(self, toolbox: impl Toolbox + 'static) -> Self {
        Self { toolbox: Arc::new(toolbox), ..self }
    }

    /// Sets the artifact store.
    pub fn with_artifacts(self, artifacts: impl Artifacts + 'static) -> Self {
        Self { artifacts: Arc::new(artifacts), ..self }
    }
}

/// The default of [`Options::client_patience`].
const CLIENT_PATIENCE: Duration = Duration::from_secs(600);

/// How a society is run in this process.
#[derive(Debug, Clone)]
pub struct Options {
    /// A random number, new for each opening. Ids of messages and requests that arrive from outside are derived from it.
    pub entropy: u64,
    /// The limits of a society that is founded by this opening. An existing society keeps its own.
    pub limits: Limits,
    /// The role of root in a society that is founded by this opening.
    pub role: Arc<Role>,
    /// The models for roles that name none: the first choice, then the fallbacks. When empty, the model port chooses.
    pub models: Vec<Arc<str>>,
    /// The budgets for model calls. They replace what the log says from this opening on.
    pub budgets: Budgets,
    /// How long a call of a client's tool waits for the client to return its result.
    pub client_patience: Duration,
    /// The persons who decide the approvals of everybody. When empty, each person decides those of their own conversations.
    pub approvers: Vec<PersonId>,
    /// How many turns may run at the same time; the others queue.
    pub max_running: usize,
    /// How many waiting turns may stay in memory; the others are dropped, and run again from their journals when an answer
    /// arrives.
    pub max_lingering: usize,
    /// The capacity of the actor's mailbox; a full mailbox makes senders wait.
    pub mailbox: usize,
    /// The least number of events between two snapshots, which is also how long the idle parts of the state stay in memory.
    pub snapshot_every: u64,
    /// How long to wait before a log that failed is tried again.
    pub retry_ms: u64,
    /// Whether the society and its turns run on a thread of their own instead of the caller's runtime. Messages between its
    /// loop and its turns then never cross threads, which is most of what a short turn costs.
    pub own_thread: bool,
}

impl Options {
    /// The defaults, for a root agent with this role.
    pub fn new(entropy: u64, role: Role) -> Self {
        Self {
            entropy,
            limits: Limits::default(),
            role: Arc::new(role),
            models: Vec::new(),
            budgets: Budgets::default(),
            client_patience: CLIENT_PATIENCE,
            approvers: Vec::new(),
            max_running: 4_096,
            max_lingering: 1_024,
            mailbox: 1_024,
            snapshot_every: 4_000,
            retry_ms: 1_000,
            own_thread: false,
        }
    }
}

/// A query of the spine. It runs on the actor, so it must be short. It runs again if it asks for entries that are not in memory.
pub(crate) type Look = Box<dyn Fn(&Spine) -> Release + Send + Sync>;

/// Sends the answer of a query.
pub(crate) type Release = Box<dyn FnOnce() + Send>;

/// A query whose answer arrives at the receiver.
pub(crate) fn query<T: Send + 'static>(question: impl Fn(&Spine) -> T + Send + Sync + 'static) -> (Look, oneshot::Receiver<T>) {
    let (reply, answer) = oneshot::channel();
    let reply = Arc::new(Mutex::new(Some(reply)));
    let look = move |spine: &Spine| -> Release {
        let (found, reply) = (question(spine), reply.clone());
        Box::new(move || {
            let reply = reply.lock().unwrap_or_else(PoisonError::into_inner).take();
            // An error means that nobody waits for the answer any more.
            let _ = reply.map(|reply| reply.send(found));
        })
    };
    (Box::new(look), answer)
}

/// The events that a command appended, or why it appended none.
pub(crate) type Committed = Result<Vec<Arc<Recorded>>, CommandError>;

/// A message to the actor.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all messages are commands; a box for each would cost more than the space"
)]
pub(crate) enum ActorMessage {
    /// A command and the channel that receives its result.
    Command { command: Command, reply: Option<oneshot::Sender<Committed>> },
    /// A turn has processed all answers so far and only waits for more, so its slot is free.
    Rest { turn: TurnId },
    /// A query of the spine, answered after the commit of the pass that it arrives in.
    Look(Look),
    /// A request to write what is held back. The reply comes when everything sent before is in the log.
    Flush { reply: oneshot::Sender<Committed> },
    /// The state folded anew from the log up to some position. It takes the place of the present one, and is saved; the reply says
    /// whether it was.
    Refold { spine: Box<Spine>, reply: oneshot::Sender<bool> },
    /// Accept no more commands from outside, let turns reach a safe point within `grace`, then stop.
    Stop { grace: Duration },
}

/// A message that waits for space in the mailbox. Resolves to whether the actor took it; `false` means that it has stopped.
pub(crate) type PendingSend = Pin<Box<dyn Future<Output = bool> + Send>>;

/// What the actor, its turns and the handle share.
pub(crate) struct Shared {
    pub(crate) society: SocietyId,
    pub(crate) ports: Ports,
    pub(crate) cast: Cast,
    /// See [`Options::models`].
    pub(crate) models: Vec<Arc<str>>,
    /// See [`Options::client_patience`].
    pub(crate) client_patience: Duration,
    /// See [`Options::approvers`].
    pub(crate) approvers: Vec<PersonId>,
    /// The tool lists that agents are offered.
    pub(crate) offers: Offers,
    /// The newest threads, so that a read right after a write does not go to the log.
    pub(crate) recent: Recent,
    /// The channel to the actor.
    pub(crate) actor: mpsc::Sender<ActorMessage>,
    /// The last event that is in the log and was published.
    pub(crate) released: AtomicU64,
    /// Why nothing can be written at present; set while the log is failing.
    pub(crate) standby: Mutex<Option<Failure>>,
    /// Why no new requests are taken, if the host takes none.
    pub(crate) closed_because: Mutex<Option<Failure>>,
    /// Held during an erasure.
    pub(crate) erasing: tokio::sync::Mutex<()>,
    /// Set when the last handle was dropped.
    pub(crate) abandoned: AtomicBool,
    /// Whether a named model call must have the logged prompt as well.
    pub(crate) is_strict: bool,
}

impl Shared {
    pub(crate) fn new(society: SocietyId, ports: Ports, cast: Cast, actor: mpsc::Sender<ActorMessage>) -> Self {
        Self {
            society,
            ports,
            cast,
            models: Vec::new(),
            client_patience: CLIENT_PATIENCE,
            approvers: Vec::new(),
            offers: Offers::default(),
            recent: Recent::default(),
            actor,
            released: AtomicU64::new(0),
            standby: Mutex::new(None),
            closed_because: Mutex::new(None),
            erasing: tokio::sync::Mutex::default(),
            abandoned: AtomicBool::new(false),
            is_strict: false,
        }
    }

    /// The events recorded under one thread, in order: from memory if they are all there, otherwise from the log.
    pub(crate) async fn read_thread(&self, thread: &ThreadId, range: ThreadRange) -> Result<Vec<Arc<Recorded>>, LogError> {
        match self.recent.read(thread, range) {
            Some(events) => Ok(events),
            None => self.read_log(thread, range).await,
        }
    }

    /// The newest events of a thread up to a position. They are kept in memory from then on, so that the next turn of the thread
    /// reads only what is new.
    pub(crate) async fn read_newest(
        &self,
        thread: &ThreadId,
        newest: usize,
        through: Seq,
    ) -> Result<Vec<Arc<Recorded>>, LogError> {
        let range = ThreadRange { newest, ..ThreadRange::through(through) };
        if let Some(events) = self.recent.read(thread, range) {
            return Ok(events);
        }
        let Some(fill) = self.recent.begin_fill(thread) else { return self.read_log(thread, range).await };
        // What was appended after `through` is read as well: nothing may be missing between the page and what follows it.
        let events = self.read_log(thread, ThreadRange { newest, ..ThreadRange::ALL }).await?;
        let after = if events.len() < newest { Seq(0) } else { Seq(events[0].seq.0 - 1) };
        fill.end(after, &events);
        if events.last().is_none_or(|last| last.seq <= through) {
            return Ok(events);
        }
        self.read_thread(thread, range).await
    }

    async fn read_log(&self, thread: &ThreadId, range: ThreadRange) -> Result<Vec<Arc<Recorded>>, LogError> {
        let events = self.ports.log.read_thread(&self.society, thread, range).await?;
        Ok(events.into_iter().map(Arc::new).collect())
    }

    /// Runs a query on the actor, against the committed state. None when that cannot be read or the society has stopped.
    pub(crate) async fn look<T: Send + 'static>(&self, question: impl Fn(&Spine) -> T + Send + Sync + 'static) -> Option<T> {
        let (look, answer) = query(question);
        self.actor.send(ActorMessage::Look(look)).await.ok()?;
        answer.await.ok()
    }

    /// Whether an event is in the log and was published.
    pub(crate) fn is_released(&self, seq: Seq) -> bool {
        self.released.load(Ordering::Acquire) >= seq.0
    }

    /// Waits until everything that was sent to the actor before is in the log and was published.
    pub(crate) async fn flush(&self) {
        let (reply, answer) = oneshot::channel();
        // An error means that the society stops, and with it the turn.
        let _ = self.actor.send(ActorMessage::Flush { reply }).await;
        let _ = answer.await;
    }

    /// Waits for ever if this process may not own the society any more: before each call that leaves the process.
    pub(crate) async fn may_act(&self) {
        if !self.ports.log.is_owned(&self.society) {
            std::future::pending::<()>().await;
        }
    }

    /// Puts a message into the actor's mailbox. Only when the mailbox is full or closed is there something left to await.
    ///
    /// The split keeps the futures of turns small: a future that holds a command across an await is as large as the largest
    /// command, and nearly every send succeeds at once.
    pub(crate) fn enqueue(&self, message: ActorMessage) -> Option<PendingSend> {
        match self.actor.try_send(message) {
            Ok(()) => None,
            Err(TrySendError::Full(message)) => {
                let actor = self.actor.clone();
                Some(Box::pin(async move { actor.send(message).await.is_ok() }))
            }
            Err(TrySendError::Closed(_)) => Some(Box::pin(std::future::ready(false))),
        }
    }
}
