//! A turn: one durable run of a handler, and how it is run again after a crash.
//!
//! Every effect is numbered and logged. A second run of the handler gets the logged answers until the journal ends; from there
//! on effects are real. A turn sees the society as of the last answer that it received: time, ids and threads are derived from
//! that position of the log, so reading them needs no event and gives the same in every run.

mod artifacts;
mod ask;
mod call;
mod client_tools;
mod context;
mod conversation;
mod declined;
mod host;
mod journal;
mod media;
mod memory;
mod model;
mod own;
mod phases;
mod plan;
mod request;
mod respond;
mod retry;
mod reuse;
mod servers;
mod society;
mod steer;
mod step_sink;
mod sub_threads;
mod threads;
mod vendor_tools;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use polis_domain::{
    AgentId, AnswerRules, Command, ContextState, ConversationSettings, Effect, EffectId, Era, Event, Failure, Limits, Meta,
    Origin, Outcome, Phase, Recorded, ReplyTo, Role, Seq, Spent, Spine, SubThreadPath, Task, ThreadId, Timestamp, TurnId,
    TurnResult, Usage, VendorTool, mix, unique_id,
};
use polis_ports::{Chosen, LogError, ToolSpec};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::RecvError;

use crate::FindTools;
use crate::cast::{CodeScope, Registration};
use crate::offer::Offer;
use crate::shared::{ActorMessage, Committed, PendingSend, Shared};
use crate::unread::UnreadEvents;
pub use context::Context;
use journal::{Entry, Journal};
pub use memory::Recalled;
pub use request::{OpenRequest, Request, Requests};
pub use reuse::{REUSED_NOTE, asking_fresh, take_fresh};
pub use step_sink::StepSink;
pub use sub_threads::SubThreadGroup;
pub use threads::{BatchUpdate, NewMessage, ThreadPatch};

/// Whether the names of this agent and of its role were chosen by an agent instead of a person.
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
    /// The settings of the conversation, if a person talks to the agent.
    pub(crate) conversation: Option<ConversationSettings>,
    /// The roles whose tool lists limit this turn: those of its agent and of all agents above it.
    pub(crate) limiting_roles: Arc<[Arc<Role>]>,
    pub(crate) seed: u64,
    /// The seeds that were in use before each fork of the society.
    pub(crate) eras: Arc<Vec<Era>>,
    pub(crate) limits: Limits,
    pub(crate) shared: Arc<Shared>,
    /// When it may run, if its code has crashed before.
    pub(crate) delayed_until: Option<Timestamp>,
    /// The event that started it, when it has just been appended; otherwise the journal is read from the log.
    pub(crate) first: Option<Arc<Recorded>>,
    /// The last event that the journal may contain.
    pub(crate) through: Seq,
    pub(crate) surroundings: Surroundings,
}

/// What there was in the society when a turn was started in this process. What there was not, it is not asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings {
    /// Agents below others. All others have conversations of their own.
    has_helpers: bool,
    has_memories: bool,
}

impl Surroundings {
    pub(crate) fn of(spine: &Spine) -> Self {
        let has_helpers = spine.agents.values().any(|agent| agent.parent.is_some());
        Self { has_helpers, has_memories: spine.memories.all().next().is_some() }
    }
}

impl TurnStart {
    /// The seed for ids that was in use at a position of the log.
    fn seed_at(&self, place: Seq) -> u64 {
        self.eras.iter().find(|era| place < era.ended).map_or(self.seed, |era| era.seed)
    }
}

/// The settings of an agent's conversation, if a person talks to it.
pub(crate) fn settings(spine: &Spine, agent: &AgentId) -> Option<ConversationSettings> {
    spine.conversation(agent).map(|conversation| conversation.settings.as_deref().cloned().unwrap_or_default())
}

/// The context of a handler: its task, and every effect that it can have.
///
/// All effects take `&mut self`, so they happen one after another and get the same numbers in every run. What may run in
/// parallel is requested with one call ([`Turn::call_tools`], [`Turn::run_units`], [`Turn::run_sub_threads`]).
///
/// A handler has no other way to threads, models and tools: the ports of the society are private (R019, R085).
///
/// ```
/// fn names_its_agent(turn: &polis_engine::Turn) {
///     let _ = turn.agent();
/// }
/// ```
///
/// ```compile_fail,E0616
/// fn takes_the_ports(turn: &polis_engine::Turn) {
///     let _ = &turn.start;
/// }
/// ```
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
    /// The index of its own user message, or of the next message if it has none.
    own_index: u32,
    /// Which part of the thread is compressed.
    context_state: ContextState,
    journal: Journal,
    unread: Arc<UnreadEvents>,
    /// The number of the next effect.
    n: u32,
    /// How many ids were made so far.
    draws: u64,
    /// The position in the log, and its time, as of which the turn sees the society.
    position: (Seq, Timestamp),
    /// Commands whose results the turn did not wait for. Whatever it sends next stands behind them in the log, so nothing can
    /// happen because of something that is not there.
    reported: Vec<oneshot::Receiver<Committed>>,
    /// The phase that the turn has suggested for its own thread.
    suggested: Option<Phase>,
    /// The code that runs.
    registration: Arc<Registration>,
    /// What that code can reach; changes while a sub-thread agent runs inside this turn.
    scope: Arc<CodeScope>,
    /// Whether it has run units, sent several requests or needed several approvals: some may be open while it acts on others.
    has_parallel_waits: bool,
    /// The usage of its model calls so far.
    used: Usage,
    /// Whether the last model call was probably the last one within a budget.
    ends_budget: bool,
    thread_cache: threads::ThreadCache,
    /// The meta that every message of this turn carries; made when first needed.
    forwarded_meta: Option<Meta>,
    /// The calls so far, for detecting loops; none before the first.
    repeats: Option<Box<reuse::Repeats>>,
    /// What the client prescribes for the answer.
    rules: Option<Arc<AnswerRules>>,
    /// Whether the client wants no answer any more.
    is_left: bool,
    /// The vendors' tools of which the person was told that they are not offered.
    told_vendor_tools: Vec<VendorTool>,
}

/// How a turn ended.
pub(crate) struct End {
    /// Settles, parks or crashes the turn.
    pub(crate) command: Command,
    /// Whether the turn has sent no command before, so that this one cannot overtake any.
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
    if let Some(until) = start.delayed_until {
        start.shared.ports.clock.sleep_until(until).await;
    }
    match AssertUnwindSafe(work(start, unread)).catch_unwind().await {
        Ok(end) => end,
        Err(panic) => Command::Crash { turn: id, failure: panicked(&*panic) }.into(),
    }
}

/// A panic as a failure.
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
        // Boxed, like everything that few turns need: the future of every turn is as large as its largest step.
        None => match Box::pin(Journal::read(&start)).await {
            Ok(found) => found,
            Err(error) => return park(error.code(), error.to_string()),
        },
    };
    let Event::TurnStarted { behaviour, version, phase, task, origin, reply_to, message, index, shown, .. } = &first.event
    else {
        return park("data_damaged", format!("event {} does not start a turn", first.seq));
    };
    let Some(registration) = start.shared.cast.find(behaviour, *version) else {
        return Command::Park { turn: id, reason: start.shared.cast.missing(behaviour, *version) }.into();
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
        context_state: *shown,
        journal,
        unread,
        n: 0,
        draws: 0,
        position: (first.seq, first.at),
        reported: Vec::new(),
        suggested: None,
        scope: registration.scope.clone(),
        registration: registration.clone(),
        has_parallel_waits: false,
        used: Usage::default(),
        ends_budget: false,
        thread_cache: threads::ThreadCache::default(),
        forwarded_meta: None,
        repeats: None,
        rules: task.answer_rules().map(Arc::new),
        is_left: false,
        told_vendor_tools: Vec::new(),
        start,
    };
    // Boxed, because few turns wait.
    Box::pin(turn.wait_for_offered_servers()).await;
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
    /// What this turn is asked to do.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The phase of the thread when the turn began.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The agent that this turn belongs to.
    pub fn agent(&self) -> &AgentId {
        &self.start.agent
    }

    /// Whether a person talks to the agent: it is root, or was made for a conversation.
    pub fn is_conversation(&self) -> bool {
        self.start.conversation.is_some()
    }

    /// Whether there may be other agents that this one can reach. If not, the society need not be asked for them.
    pub fn may_have_colleagues(&self) -> bool {
        self.start.surroundings.has_helpers
    }

    /// The role of the agent as it was when the turn began.
    pub fn role(&self) -> Option<&Arc<Role>> {
        self.start.role.as_ref()
    }

    /// The tools to show a model: those that the roles of the agent and of all agents above it allow, and those of the client.
    pub fn tools(&self) -> Arc<[ToolSpec]> {
        self.with_client_tools(self.offer().shown)
    }

    /// [`Self::tools`], followed by those that the turn's code handles itself.
    pub fn tools_and(&self, extra: &[ToolSpec]) -> Arc<[ToolSpec]> {
        let shown = self.offer().shown;
        let tools = self.with_client_tools(shown.clone());
        match (extra, Arc::ptr_eq(&tools, &shown)) {
            ([], _) => tools,
            (extra, true) => self.start.shared.offers.extended(&shown, extra),
            (extra, false) => tools.iter().chain(extra).cloned().collect(),
        }
    }

    /// The tools that a model can call, listed or not.
    pub fn callable_tools(&self) -> Arc<[ToolSpec]> {
        self.offer().tools
    }

    /// Whether a model can call a tool of this name, listed or not.
    pub fn has_tool(&self, name: &str) -> bool {
        self.offer().tools.iter().any(|tool| *tool.name == *name)
    }

    /// The tools that models find by [`crate::FindTools`] alone.
    pub(crate) fn deferred_tools(&self) -> Vec<ToolSpec> {
        let Offer { tools, shown, .. } = self.offer();
        let is_shown = |tool: &ToolSpec| shown.iter().any(|other| other.name == tool.name);
        tools.iter().filter(|tool| !is_shown(tool) && *tool.name != *FindTools::NAME).cloned().collect()
    }

    fn offer(&self) -> Offer {
        let Shared { offers, ports, cast, .. } = &*self.start.shared;
        offers.now(&*ports.toolbox, cast, &self.start.limiting_roles)
    }

    /// The address of the turn's own thread.
    pub fn path(&self) -> SubThreadPath {
        self.path.clone()
    }

    /// The time of the last answer that the turn received. It stands still between answers, so that a second run sees the same.
    pub fn now(&self) -> Timestamp {
        self.position.1
    }

    /// A new id with this prefix: unique, time-ordered, and the same in a second run.
    pub fn new_id(&mut self, prefix: &str) -> String {
        self.draw_id(prefix)
    }

    fn draw_id<T: for<'a> From<&'a str>>(&mut self, prefix: &str) -> T {
        // Whether an id belongs before or after a fork depends on the next effect, which is the same in every run.
        let place = self.journal.place(self.n).unwrap_or(self.start.through);
        let seed = mix(self.start.seed_at(place) ^ self.start.id.0.0);
        self.draws += 1;
        unique_id(prefix, seed, self.now(), self.draws)
    }

    /// Whether the turn has suggested a phase for its own thread.
    pub fn has_suggested(&self) -> bool {
        self.suggested.is_some()
    }

    /// Declares effects, or takes them from the journal if an earlier run declared them. They get consecutive numbers.
    ///
    /// An effect that differs from the logged one of the same number parks the turn as diverged: going on would attach the
    /// logged answer to a different question.
    async fn declare(&mut self, effects: Vec<Effect>) -> Vec<Entry> {
        let first = self.n;
        self.n += effects.len() as u32;
        let turn = self.start.id;
        let ids = (first..self.n).map(move |n| EffectId { turn, n });
        if self.journal.has(first) {
            let is_strict = self.start.shared.is_strict;
            let mut entries = Vec::with_capacity(effects.len());
            for (id, effect) in ids.zip(&effects) {
                match self.journal.take(id).filter(|entry| entry.agrees_with(effect, is_strict)) {
                    Some(entry) => entries.push(entry),
                    None => return self.park_diverged(id.n, effect.kind()).await,
                }
            }
            return entries;
        }
        let events = self.commit(Command::DeclareEffects { turn, n: first, effects }).await;
        ids.map(|id| Entry::new(id, events.iter().filter(|event| event.event.effect() == Some(id)).cloned())).collect()
    }

    /// The result of an entry that has ended or was refused; none while it is open.
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

    /// Reports an answer without waiting for the commit. Whatever follows from the answer stands behind it in the log.
    fn report(&mut self, id: EffectId, outcome: Outcome, spent: Option<Spent>) -> impl Future<Output = ()> + Send {
        let at = self.start.shared.ports.clock.now();
        self.send_ahead(Command::End { id, outcome, spent, at }, at)
    }

    /// Sends a command that happens at time `at` and goes on without waiting for its commit.
    ///
    /// This saves one commit for each step of a turn, and it is safe because the mailbox keeps order: every later command of
    /// this turn is appended behind this one or, if the append fails, not at all. The command carries its own time, so that a
    /// second run, which reads it from the log, sees the same clock.
    fn send_ahead(&mut self, command: Command, at: Timestamp) -> impl Future<Output = ()> + Send {
        let mut sent = send(&self.start.shared, command);
        self.position.1 = at;
        async move {
            sent.enqueued().await;
            self.reported.push(sent.answer);
        }
    }

    /// The turn's position in the log, after everything that it has sent ahead is committed.
    async fn committed_position(&mut self) -> Seq {
        if !self.reported.is_empty() {
            self.start.shared.flush().await;
        }
        for reported in std::mem::take(&mut self.reported) {
            let events = committed(reported).await;
            self.arrived(&events).await;
        }
        self.position.0
    }

    /// Sends a command and waits for its events. Never resolves if it is rejected: the turn has ended or is parked, and the
    /// actor drops it.
    fn commit(&mut self, command: Command) -> impl Future<Output = Vec<Arc<Recorded>>> + Send {
        let mut sent = send(&self.start.shared, command);
        async move {
            sent.enqueued().await;
            let events = committed(sent.answer).await;
            if events.last().is_none_or(|last| self.start.shared.is_released(last.seq)) {
                // What was sent ahead was committed no later than this command, so its results are there.
                for mut reported in std::mem::take(&mut self.reported) {
                    if let Ok(Ok(events)) = reported.try_recv() {
                        self.arrived(&events).await;
                    }
                }
            } else if self.reported.len() >= threads::MAX_AHEAD {
                // Intents that may be repeated are not in the log yet.
                Box::pin(self.committed_position()).await;
            }
            events
        }
    }

    /// Processes the events of a command that was sent ahead. If it was refused after all, the turn is parked: it has gone on
    /// as if the change were there.
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

    /// Parks the turn because the log cannot be read.
    async fn park_unread<T>(&mut self, error: LogError) -> T {
        let reason = Failure::new(error.code(), error.to_string());
        self.commit(Command::Park { turn: self.start.id, reason }).await;
        std::future::pending().await
    }
}

/// A command that was sent to the actor, and the channel that receives its result. See [`Shared::enqueue`] for why the send is
/// split.
struct PendingCommand {
    pending_send: Option<PendingSend>,
    answer: oneshot::Receiver<Committed>,
}

impl PendingCommand {
    /// Waits until the mailbox has taken the command. If the actor has stopped, it never resolves: the turn is about to be
    /// dropped.
    async fn enqueued(&mut self) {
        if let Some(pending_send) = self.pending_send.take()
            && !pending_send.await
        {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for the result.
    async fn answer(mut self) -> Result<Committed, RecvError> {
        self.enqueued().await;
        self.answer.await
    }
}

/// Sends a command to the actor.
fn send(shared: &Shared, command: Command) -> PendingCommand {
    let (reply, answer) = oneshot::channel();
    PendingCommand { pending_send: shared.enqueue(ActorMessage::Command { command, reply: Some(reply) }), answer }
}

/// The events of a command. Never resolves if it is rejected, see [`Turn::commit`].
async fn committed(answer: oneshot::Receiver<Committed>) -> Vec<Arc<Recorded>> {
    match answer.await {
        Ok(Ok(events)) => events,
        Ok(Err(_)) | Err(_) => std::future::pending().await,
    }
}
