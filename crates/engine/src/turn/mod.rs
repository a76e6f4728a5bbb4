//! A turn: one durable run of a handler. What a handler is given, and how it is run again after a crash.
//!
//! Every effect is numbered and logged. On a second run the logged answers are given until the log ends; then it goes on for
//! real. A turn sees the society as it stood at the last answer that it received: time, ids and threads are derived from that
//! place of the log, so that reading them needs no event and gives the same again.

mod artifacts;
mod ask;
mod call;
mod client_tools;
mod context;
mod conversation;
mod declined;
mod host;
mod journal;
mod model;
mod own;
mod phases;
mod plan;
mod request;
mod respond;
mod retry;
mod reuse;
mod society;
mod steer;
mod step_sink;
mod sub_threads;
mod threads;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use polis_domain::{
    AgentId, Command, Effect, EffectId, Era, Event, Failure, Limits, Meta, Origin, Outcome, Phase, Recorded, ReplyTo, Role,
    Seq, Shown, Spent, Spine, SubThreadPath, Task, ThreadId, Timestamp, TurnId, TurnResult, Usage, mix, unique_id,
};
use polis_ports::{Chosen, LogError, ToolSpec};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::RecvError;

use crate::cast::{Registration, Scope};
use crate::offer::Offer;
use crate::shared::{ActorMessage, Committed, PendingSend, Shared};
use crate::unread::UnreadEvents;
pub use context::Context;
use journal::{Entry, Journal};
pub use request::{Request, Requests};
pub use step_sink::StepSink;
pub use sub_threads::SubThreadGroup;
pub use threads::{BatchUpdate, NewMessage};

/// Which names of an agent another agent chose.
pub(crate) fn chosen(spine: &Spine, agent: &AgentId) -> Chosen {
    let Some(agent) = spine.agents.get(agent) else { return Chosen::default() };
    let founder = spine.founders.get(&agent.role);
    Chosen { agent: agent.by_agent, role: founder.is_some_and(|founder| !founder.created_by.is_user()) }
}

/// What a turn needs to begin.
pub(crate) struct TurnStart {
    pub(crate) id: TurnId,
    pub(crate) agent: AgentId,
    pub(crate) thread: ThreadId,
    pub(crate) role: Option<Arc<Role>>,
    pub(crate) chosen: Chosen,
    /// The roles that limit which tools it gets.
    pub(crate) fences: Arc<[Arc<Role>]>,
    pub(crate) seed: u64,
    /// Where ids came from before the forks in the society's past.
    pub(crate) eras: Arc<Vec<Era>>,
    pub(crate) limits: Limits,
    pub(crate) shared: Arc<Shared>,
    /// When it may begin, where its code has broken down before.
    pub(crate) rests_until: Option<Timestamp>,
    /// The event that started it, when it has just been appended; otherwise the journal is read from the log.
    pub(crate) first: Option<Arc<Recorded>>,
    /// Up to where the journal is read.
    pub(crate) through: Seq,
}

impl TurnStart {
    /// Where ids came from when the event at a place was written, or come from now.
    fn seed_at(&self, place: Seq) -> u64 {
        self.eras.iter().find(|era| place < era.ended).map_or(self.seed, |era| era.seed)
    }
}

/// What a handler is given: its task, and every effect that it may have.
///
/// All effects take `&mut self`, so that they happen one after another and are numbered alike in every run; what may happen at
/// once is asked for at once ([`Turn::call_tools`], [`Turn::run_units`], [`Turn::run_sub_threads`]).
pub struct Turn {
    start: Box<TurnStart>,
    origin: Origin,
    reply_to: ReplyTo,
    task: Task,
    /// The address of its own thread.
    path: SubThreadPath,
    phase: Phase,
    /// Messages in the thread when the turn began, its own user message included.
    length_at_start: u32,
    /// The place of its own user message, or of the next message where it has none.
    own_index: u32,
    /// What of the thread is compressed.
    shown: Shown,
    journal: Journal,
    unread: Arc<UnreadEvents>,
    /// The number of the next effect.
    n: u32,
    /// Ids drawn so far.
    draws: u64,
    /// The last event that the turn knows of.
    position: (Seq, Timestamp),
    /// Answers and changes that are on their way into the log. The turn has gone on with them: whatever it wants next comes after
    /// them in the log, so nothing happens on account of something that is not there.
    reported: Vec<oneshot::Receiver<Committed>>,
    /// The phase that the turn has suggested for its own thread.
    suggested: Option<Phase>,
    /// The code that runs, and what it can reach just now.
    registration: Arc<Registration>,
    scope: Arc<Scope>,
    /// Whether it has run units or asked several at once, some of which may be open while it waits for something else.
    has_units: bool,
    /// What its model calls have cost so far.
    used: Usage,
    thread_cache: threads::ThreadCache,
    /// What goes along with whatever it sends.
    forwarded_meta: Option<Meta>,
    /// What it has called so far, if anything.
    repeats: Option<Box<reuse::Repeats>>,
}

/// The end of a turn.
pub(crate) struct End {
    /// What is asked for.
    pub(crate) command: Command,
    /// Whether the turn has asked for nothing before: then there is nothing that must be in the log first.
    pub(crate) is_first: bool,
}

impl From<Command> for End {
    fn from(command: Command) -> Self {
        Self { command, is_first: false }
    }
}

/// Runs a turn to its end, or until it is dropped.
pub(crate) async fn run(start: Box<TurnStart>, unread: Arc<UnreadEvents>) -> End {
    let id = start.id;
    if let Some(until) = start.rests_until {
        start.shared.ports.clock.sleep_until(until).await;
    }
    match AssertUnwindSafe(work(start, unread)).catch_unwind().await {
        Ok(end) => end,
        Err(panic) => Command::Crash { turn: id, failure: panicked(&*panic) }.into(),
    }
}

/// What a panic comes to.
fn panicked(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Failure::new("panicked", format!("the agent's code panicked: {text}"))
}

async fn work(mut start: Box<TurnStart>, unread: Arc<UnreadEvents>) -> End {
    let id = start.id;
    let park = |code: &'static str, message: String| Command::Park { turn: id, reason: Failure::new(code, message) }.into();
    let (first, journal) = match start.first.take() {
        Some(first) => (first, Journal::default()),
        // Boxed, as whatever few turns need: every turn pays for the room of the largest step in it.
        None => match Box::pin(Journal::read(&start)).await {
            Ok(found) => found,
            Err(error) => return park(error.code(), error.to_string()),
        },
    };
    let Event::TurnStarted { behaviour, phase, task, origin, reply_to, message, index, shown, .. } = &first.event else {
        return park("data_damaged", format!("event {} does not start a turn", first.seq));
    };
    let Some(registration) = start.shared.cast.find(behaviour) else {
        return park("no_behaviour", format!("no code is registered for `{behaviour}`; register it and resume the turn"));
    };
    let mut turn = Turn {
        origin: *origin,
        reply_to: *reply_to,
        task: task.clone(),
        path: match origin {
            Origin::Inbox => SubThreadPath::main(),
            Origin::Unit(_) => task.sub_thread_path(),
        },
        phase: phase.clone(),
        length_at_start: index + u32::from(message.is_some()),
        own_index: *index,
        shown: *shown,
        journal,
        unread,
        n: 0,
        draws: 0,
        position: (first.seq, first.at),
        reported: Vec::new(),
        suggested: None,
        scope: registration.scope.clone(),
        registration: registration.clone(),
        has_units: false,
        used: Usage::default(),
        thread_cache: threads::ThreadCache::default(),
        forwarded_meta: None,
        repeats: None,
        start,
    };
    let responded = registration.run(&mut turn).await;
    let result = match responded {
        Ok(response) => turn.result_of(response).await,
        Err(failure) => TurnResult::Failed(failure),
    };
    if let Some(n) = turn.journal.first() {
        return turn.diverged(n, "the turn's end").into();
    }
    End { command: Command::Settle { turn: id, result }, is_first: turn.n == 0 }
}

impl Turn {
    /// What is asked.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Where the thread stands.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Who works.
    pub fn agent(&self) -> &AgentId {
        &self.start.agent
    }

    /// The agent's role.
    pub fn role(&self) -> Option<&Arc<Role>> {
        self.start.role.as_ref()
    }

    /// The tools that a model can be shown: what the agent's role has, and the roles of everybody above it; and what the task brings
    /// along.
    pub fn tools(&self) -> Arc<[ToolSpec]> {
        self.with_client_tools(self.offer().tools)
    }

    fn offer(&self) -> Offer {
        let Shared { offers, ports, cast, .. } = &*self.start.shared;
        offers.now(&*ports.toolbox, cast, &self.start.fences)
    }

    /// The address of the turn's own thread.
    pub fn path(&self) -> SubThreadPath {
        self.path.clone()
    }

    /// The time of the last answer that the turn received. It does not move in between, so that a second run sees the same.
    pub fn now(&self) -> Timestamp {
        self.position.1
    }

    /// A new id with this prefix, unique and time-ordered, the same in a second run.
    pub fn new_id(&mut self, prefix: &str) -> String {
        self.draw_id(prefix)
    }

    fn draw_id<T: for<'a> From<&'a str>>(&mut self, prefix: &str) -> T {
        // Whether it is drawn before or after a fork depends on the effect that comes next, which every run finds alike.
        let place = self.journal.place(self.n).unwrap_or(self.start.through);
        let seed = mix(self.start.seed_at(place) ^ self.start.id.0.0);
        self.draws += 1;
        unique_id(prefix, seed, self.now(), self.draws)
    }

    /// Whether the turn has suggested a phase for its own thread.
    pub fn has_suggested(&self) -> bool {
        self.suggested.is_some()
    }

    /// States effects, or finds that they were stated in an earlier run. They are numbered in this order.
    async fn state(&mut self, effects: Vec<Effect>) -> Vec<Entry> {
        let first = self.n;
        self.n += effects.len() as u32;
        let turn = self.start.id;
        let ids = (first..self.n).map(move |n| EffectId { turn, n });
        if self.journal.has(first) {
            let mut entries = Vec::with_capacity(effects.len());
            for (id, effect) in ids.zip(&effects) {
                match self.journal.take(id).filter(|entry| entry.agrees_with(effect)) {
                    Some(entry) => entries.push(entry),
                    None => return self.park_diverged(id.n, effect.kind()).await,
                }
            }
            return entries;
        }
        let events = self.commit(Command::Begin { turn, n: first, effects }).await;
        ids.map(|id| Entry::new(id, events.iter().filter(|event| event.event.effect() == Some(id)).cloned())).collect()
    }

    /// What came of an entry that has ended or was refused.
    fn result(&mut self, entry: &Entry) -> Option<Result<Outcome, Failure>> {
        let last = entry.last()?;
        let result = match &last.event {
            Event::EffectEnded { outcome: Outcome::Failed(failure), .. } => Err(failure.clone()),
            Event::EffectEnded { outcome, .. } => Ok(outcome.clone()),
            Event::EffectRefused { failure, .. } => {
                self.note_refusal(failure);
                Err(failure.clone())
            }
            _ => return None,
        };
        self.advance(last.seq, last.at);
        Some(result)
    }

    fn advance(&mut self, seq: Seq, at: Timestamp) {
        if seq > self.position.0 {
            self.position = (seq, at);
        }
    }

    /// Reports an answer and goes on: it is in the log before anything that follows from it.
    fn report(&mut self, id: EffectId, outcome: Outcome, spent: Option<Spent>) -> impl Future<Output = ()> + Send {
        let at = self.start.shared.ports.clock.now();
        self.send_ahead(Command::End { id, outcome, spent, at }, at)
    }

    /// Hands in a command that happens at this time, and goes on from there.
    fn send_ahead(&mut self, command: Command, at: Timestamp) -> impl Future<Output = ()> + Send {
        let mut sent = send(&self.start.shared, command);
        self.position.1 = at;
        async move {
            sent.enqueued().await;
            self.reported.push(sent.answer);
        }
    }

    /// The turn's place in the log, once what it has sent ahead is there.
    async fn place(&mut self) -> Seq {
        for reported in std::mem::take(&mut self.reported) {
            let events = committed(reported).await;
            self.arrived(&events).await;
        }
        self.position.0
    }

    /// Has a command committed. When it cannot be, the turn is about to be dropped: it stands still here.
    fn commit(&mut self, command: Command) -> impl Future<Output = Vec<Arc<Recorded>>> + Send {
        let mut sent = send(&self.start.shared, command);
        async move {
            sent.enqueued().await;
            let events = committed(sent.answer).await;
            // What was sent before is in the log as well.
            for mut reported in std::mem::take(&mut self.reported) {
                if let Ok(Ok(events)) = reported.try_recv() {
                    self.arrived(&events).await;
                }
            }
            events
        }
    }

    /// Takes in what became of something that was sent ahead. What was refused all the same must not be passed over: the turn
    /// has gone on as if it were there.
    async fn arrived(&mut self, events: &[Arc<Recorded>]) {
        self.take_in(events);
        if let Some(reason) = threads::refusal(events).cloned() {
            send(&self.start.shared, Command::Park { turn: self.start.id, reason }).enqueued().await;
            std::future::pending().await
        }
    }

    async fn park_diverged<T>(&mut self, n: u32, asked: &str) -> T {
        let diverged = self.diverged(n, asked);
        self.commit(diverged).await;
        std::future::pending().await
    }

    fn diverged(&self, n: u32, asked: &str) -> Command {
        let logged = self.journal.describe(n);
        let message = format!(
            "effect {n} was {logged} in an earlier run and is {asked} now; the code has changed or does not depend on the log \
             alone. Put the old code back and resume, or cancel the turn"
        );
        Command::Park { turn: self.start.id, reason: Failure::new("diverged", message) }
    }

    /// The log cannot be read: the turn stands still, and is run again when the society has recovered.
    async fn park_unread<T>(&mut self, error: LogError) -> T {
        let reason = Failure::new(error.code(), error.to_string());
        self.commit(Command::Park { turn: self.start.id, reason }).await;
        std::future::pending().await
    }
}

/// A command on its way into the log. Handing one in waits for nobody, nearly always: a future that holds commands is large, and
/// every turn pays for the room of the largest step in it.
struct PendingCommand {
    pending_send: Option<PendingSend>,
    answer: oneshot::Receiver<Committed>,
}

impl PendingCommand {
    /// Waits until it is handed in. Where nobody takes it the society has ended, and so will whoever waits.
    async fn enqueued(&mut self) {
        if let Some(pending_send) = self.pending_send.take()
            && !pending_send.await
        {
            std::future::pending::<()>().await;
        }
    }

    /// What comes of it.
    async fn answer(mut self) -> Result<Committed, RecvError> {
        self.enqueued().await;
        self.answer.await
    }
}

/// Hands a command in; what comes of it is heard later.
fn send(shared: &Shared, command: Command) -> PendingCommand {
    let (reply, answer) = oneshot::channel();
    PendingCommand { pending_send: shared.enqueue(ActorMessage::Command { command, reply: Some(reply) }), answer }
}

/// The events of a command that was handed in. Where there are none, the turn is about to be dropped: it stands still here.
async fn committed(answer: oneshot::Receiver<Committed>) -> Vec<Arc<Recorded>> {
    match answer.await {
        Ok(Ok(events)) => events,
        Ok(Err(_)) | Err(_) => std::future::pending().await,
    }
}
