//! Strict replay: folds the log and runs every settled turn again against its journal. No model or tool is called and nothing
//! is written; anything that a turn does now and did not do then is a divergence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{
    AgentId, CallResult, Command, ERASED, EffectId, Event, FailureCode, IdleKey, Recorded, Role, Ruling, Seq, Settlement,
    SocietyId, Spine, ThreadId, Timestamp, Turn, TurnId, decide,
};
use polis_ports::{
    CallContext, Caller, Clock, DeltaStream, LogError, Model, ModelDescription, ModelError, ModelRequest, ToolError,
    ToolOrigin, ToolSpec, Toolbox,
};
use tokio::sync::{Notify, mpsc};

use crate::fold::{fold, fold_from_zero};
use crate::shared::Ports;
use crate::shared::{ActorMessage, Shared};
use crate::turn::{self, End, TurnStart};
use crate::unread::UnreadEvents;
use crate::{Cast, LocalLive};

/// Events read at a time.
const PAGE: usize = 1_000;

/// The mailbox capacity for a replayed turn; the replay ends at the first command.
const MAX_COMMANDS: usize = 8;

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replayed {
    /// How many events were folded.
    pub events: u64,
    /// How many settled turns were run again: all but those that were dead-lettered because they killed processes.
    pub turns: usize,
    /// How many effects these turns have in the log.
    pub effects: usize,
    /// How many settled turns were not run again because what was said in their thread was erased.
    pub erased: usize,
    /// How many turns are not settled. They are not run again.
    pub open: usize,
    /// How many settled turns began with a version of their behaviour that is not registered any more. They are not run again.
    pub retired: usize,
    /// The divergences, in the order of the log.
    pub divergences: Vec<Divergence>,
}

/// Where code or state differs from what the log says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The turn that diverged.
    pub turn: TurnId,
    /// The agent of the turn.
    pub agent: AgentId,
    /// The thread of the turn.
    pub thread: ThreadId,
    /// The effect that differs, if it is one.
    pub effect: Option<EffectId>,
    /// A description of the difference.
    pub what: String,
}

/// A turn that has started and is not settled at the present position.
struct StartedTurn {
    agent: AgentId,
    thread: ThreadId,
    role: Option<Arc<Role>>,
    effects: u32,
}

/// How a second run of a turn ended.
enum Rerun {
    /// It settled or parked.
    Ended(Command),
    /// It issued a command that the log does not have.
    Issued(Command),
    /// It called a model or a tool.
    Called(String),
    /// It waits for an event that the log does not have.
    Waits,
}

/// Replays a society's log with these agents. Only the log and the artifact port are used as they are; models and tools may be
/// queried for their properties but never called.
pub async fn replay(society: &SocietyId, ports: &Ports, cast: &Cast) -> Result<Replayed, LogError> {
    let (mut from_snapshot, idle) = fold(ports, society).await?;
    let live = fold_from_zero(&*ports.log, society, from_snapshot.seq).await?;
    idle.load(&mut from_snapshot, live.names().map(IdleKey::Name).collect()).await?;
    from_snapshot.forget_unloaded();
    let mut spine = Spine::default();
    let mut started = BTreeMap::<TurnId, StartedTurn>::new();
    let mut replayed = Replayed::default();
    // The requests of later turns show what was said in the thread before.
    let mut erased = BTreeSet::new();
    loop {
        let page = ports.log.read(society, spine.seq, PAGE).await?;
        if page.is_empty() {
            break;
        }
        for recorded in &page {
            if let Event::TurnSettled { turn, settlement, .. } = &recorded.event
                && let Some(started_turn) = started.remove(turn)
                && !ends_process(&spine, *turn, settlement)
            {
                if erased.contains(&started_turn.thread) {
                    replayed.erased += 1;
                } else if is_retired(&spine, cast, *turn) {
                    replayed.retired += 1;
                } else {
                    replayed.turns += 1;
                    replayed.effects += started_turn.effects as usize;
                    let replayer = Replayer { society, ports, cast, spine: &live, is_strict: true };
                    let rerun = replayer.run(*turn, &started_turn, recorded.seq).await;
                    let differs = difference(&spine, recorded, *turn, settlement, rerun);
                    replayed.divergences.extend(differs.map(|(effect, what)| {
                        let effect = effect.map(|n| EffectId { turn: *turn, n });
                        Divergence { turn: *turn, agent: started_turn.agent, thread: started_turn.thread, effect, what }
                    }));
                }
            }
            if let Some(id) = recorded.event.effect()
                && let Some(started_turn) = started.get_mut(&id.turn)
            {
                started_turn.effects = started_turn.effects.max(id.n + 1);
            }
            spine.evolve(recorded);
            if let (Event::TurnStarted { agent, task, .. }, Some(thread)) = (&recorded.event, &recorded.thread) {
                if *task.message == *ERASED {
                    erased.insert(thread.clone());
                }
                let role = spine.agents.get(agent).and_then(|agent| spine.roles.get(&agent.role)).cloned();
                let started_turn = StartedTurn { agent: agent.clone(), thread: thread.clone(), role, effects: 0 };
                started.insert(TurnId(recorded.seq), started_turn);
            }
        }
    }
    replayed.events = spine.seq.0;
    replayed.open = started.len();
    if live != from_snapshot {
        let what = "the log folded from zero is not the state that a snapshot of it leads to; delete the snapshots".to_owned();
        let (turn, agent) = (TurnId(spine.seq), AgentId::root());
        replayed.divergences.push(Divergence { turn, thread: agent.main_thread(), agent, effect: None, what });
    }
    Ok(replayed)
}

/// Runs every open turn of a society's log with these agents as far as the log goes, to see which of them this code could not
/// continue. Nothing is called and nothing is written, so a society that another program runs can be asked as well.
pub async fn replay_open(society: &SocietyId, ports: &Ports, cast: &Cast) -> Result<Replayed, LogError> {
    let (spine, _) = fold(ports, society).await?;
    let mut replayed = Replayed { events: spine.seq.0, open: spine.turns.len(), ..Replayed::default() };
    let replayer = Replayer { society, ports, cast, spine: &spine, is_strict: false };
    for (id, turn) in &spine.turns {
        let now = || spine.agents.get(&turn.agent).and_then(|agent| spine.roles.get(&agent.role)).cloned();
        let (agent, thread) = (turn.agent.clone(), turn.thread.clone());
        let started = StartedTurn { agent, thread, role: turn.role.clone().or_else(now), effects: turn.next };
        replayed.effects += turn.next as usize;
        let (Rerun::Ended(command) | Rerun::Issued(command)) = replayer.run(*id, &started, spine.seq).await else { continue };
        let Command::Park { reason, .. } = command else { continue };
        let effect = effect_of(&reason.message).map(|n| EffectId { turn: *id, n });
        let StartedTurn { agent, thread, .. } = started;
        replayed.divergences.push(Divergence { turn: *id, agent, thread, effect, what: reason.message });
    }
    Ok(replayed)
}

/// The effect that the reason of a divergence names.
fn effect_of(message: &str) -> Option<u32> {
    message.strip_prefix("effect ")?.split(' ').next()?.parse().ok()
}

/// Runs turns again.
struct Replayer<'a> {
    society: &'a SocietyId,
    ports: &'a Ports,
    cast: &'a Cast,
    spine: &'a Spine,
    /// Whether a named model call must have the logged prompt as well.
    is_strict: bool,
}

impl Replayer<'_> {
    async fn run(&self, id: TurnId, started_turn: &StartedTurn, through: Seq) -> Rerun {
        // Each run has its own ports: a late report of a call must not count for the next turn.
        let (called, mut calls) = mpsc::channel(MAX_COMMANDS);
        let ports = Ports {
            model: Arc::new(NoCalls { port: self.ports.model.clone(), called: called.clone() }),
            toolbox: Arc::new(NoCalls { port: self.ports.toolbox.clone(), called }),
            clock: Arc::new(NoTime(self.ports.clock.clone())),
            live: Arc::new(LocalLive::default()),
            ..self.ports.clone()
        };
        let (actor, mut mailbox) = mpsc::channel(MAX_COMMANDS);
        let mut shared = Shared::new(self.society.clone(), ports, self.cast.clone(), actor);
        shared.is_strict = self.is_strict;
        let shared = Arc::new(shared);
        let start = Box::new(TurnStart {
            id,
            agent: started_turn.agent.clone(),
            thread: started_turn.thread.clone(),
            role: started_turn.role.clone(),
            chosen: turn::chosen(self.spine, &started_turn.agent),
            conversation: turn::settings(self.spine, &started_turn.agent),
            limiting_roles: self.spine.limiting_roles(&started_turn.agent).into(),
            seed: self.spine.seed,
            eras: self.spine.eras.clone(),
            limits: self.spine.limits,
            shared,
            delayed_until: None,
            first: None,
            through,
            surroundings: turn::Surroundings::of(self.spine),
        });
        let idle = Arc::new(Notify::new());
        let ended = turn::run(start, Arc::new(UnreadEvents::watched(idle.clone())));
        tokio::pin!(ended);
        loop {
            let message = tokio::select! {
                biased;
                Some(call) = calls.recv() => return Rerun::Called(call),
                Some(message) = mailbox.recv() => message,
                End { command, .. } = &mut ended => {
                    // A command that it sent ahead comes before its end.
                    return match mailbox.try_recv() {
                        Ok(ActorMessage::Command { command, .. }) => Rerun::Issued(command),
                        _ => Rerun::Ended(command),
                    };
                }
                () = idle.notified() => return Rerun::Waits,
            };
            match message {
                ActorMessage::Command { command, .. } => return Rerun::Issued(command),
                ActorMessage::Look(look) => look(self.spine)(),
                ActorMessage::Rest { .. }
                | ActorMessage::Refold { .. }
                | ActorMessage::Flush { .. }
                | ActorMessage::Stop { .. } => return Rerun::Waits,
            }
        }
    }
}

/// Whether the version that a turn began with was removed since.
fn is_retired(spine: &Spine, cast: &Cast, turn: TurnId) -> bool {
    let Some(Turn { behaviour, version, .. }) = spine.turns.get(&turn).map(|turn| &**turn) else { return false };
    cast.find(behaviour, *version).is_none() && cast.missing(behaviour, *version).code == FailureCode::VersionMissing
}

/// Whether a turn was dead-lettered because it killed processes. Running it again might kill this one.
fn ends_process(spine: &Spine, turn: TurnId, settlement: &Settlement) -> bool {
    let was_run_again = spine.turns.get(&turn).is_some_and(|turn| turn.revived > 0);
    was_run_again && matches!(settlement, Settlement::Failed(failure) if failure.code == FailureCode::EndsProcess)
}

/// How a second run differs from the log, and at which effect.
fn difference(
    spine: &Spine,
    settled: &Recorded,
    turn: TurnId,
    settlement: &Settlement,
    rerun: Rerun,
) -> Option<(Option<u32>, String)> {
    // A cancelled turn may have been at any point.
    let is_cut = matches!(settlement, Settlement::Cancelled(_));
    match rerun {
        Rerun::Ended(Command::Park { reason, .. }) | Rerun::Issued(Command::Park { reason, .. }) => {
            Some((effect_of(&reason.message), reason.message))
        }
        _ if is_cut => None,
        Rerun::Ended(command) => {
            let decided = decide(spine, command, settled.at).unwrap_or_default();
            let is_end = |event: &Event| matches!(event, Event::TurnSettled { turn: it, .. } if *it == turn);
            match decided.iter().find(|recorded| is_end(&recorded.event)) {
                Some(now) if now.event == settled.event => None,
                Some(now) => Some((
                    None,
                    format!("it ended with {} and ends with {} now", describe_settlement(settled), describe_settlement(now)),
                )),
                None => Some((None, "it was settled and cannot be settled now".to_owned())),
            }
        }
        Rerun::Issued(Command::DeclareEffects { n, effects, .. }) => {
            let kind = effects.first().map_or("nothing", |effect| effect.kind());
            Some((Some(n), format!("effect {n} is {kind} now, and there was none in the log")))
        }
        Rerun::Issued(Command::Act { id, .. }) => {
            Some((Some(id.n), format!("effect {} is a change now, and there was none in the log", id.n)))
        }
        Rerun::Issued(command) => {
            let issued = format!("{command:?}");
            let name = issued.split([' ', '{']).next().unwrap_or_default().to_owned();
            Some((None, format!("it issues a command that it did not issue then ({name})")))
        }
        Rerun::Called(call) => Some((None, format!("it calls {call}, although the log has what came of everything"))),
        Rerun::Waits => Some((None, "it waits for something that the log does not have".to_owned())),
    }
}

fn describe_settlement(settled: &Recorded) -> String {
    match &settled.event {
        Event::TurnSettled { settlement, message, next, .. } => {
            let text = message.as_ref().map_or("", |message| &message.text);
            format!("{settlement:?}, the message {text:?} and {} tasks", next.len())
        }
        _ => "nothing".to_owned(),
    }
}

/// A port that answers what it is and is never called.
struct NoCalls<P: ?Sized> {
    called: mpsc::Sender<String>,
    port: Arc<P>,
}

impl<P: ?Sized> NoCalls<P> {
    async fn refuse<T>(&self, what: String) -> T {
        // Whoever listens ends the turn at once.
        let _ = self.called.try_send(what);
        std::future::pending().await
    }
}

#[async_trait]
impl Model for NoCalls<dyn Model> {
    async fn stream(&self, _: ModelRequest) -> Result<DeltaStream, ModelError> {
        self.refuse("a model".to_owned()).await
    }

    fn estimate(&self, request: &ModelRequest) -> polis_domain::Usage {
        self.port.estimate(request)
    }

    fn name(&self, model: &str) -> Arc<str> {
        self.port.name(model)
    }

    fn refuses(&self, model: &str) -> Option<String> {
        self.port.refuses(model)
    }

    fn description(&self, model: &str) -> ModelDescription {
        self.port.description(model)
    }
}

#[async_trait]
impl Toolbox for NoCalls<dyn Toolbox> {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.port.tools()
    }

    fn origin(&self, tool: &str) -> Option<ToolOrigin> {
        self.port.origin(tool)
    }

    fn is_deferred(&self, tool: &str) -> bool {
        self.port.is_deferred(tool)
    }

    fn ruling(&self, tool: &str, arguments: &str, who: &Caller<'_>) -> Ruling {
        self.port.ruling(tool, arguments, who)
    }

    fn flow(&self, tool: &str, arguments: &str, who: &Caller<'_>) -> polis_domain::Flow {
        self.port.flow(tool, arguments, who)
    }

    async fn call(&self, tool: &str, _: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        self.refuse(format!("the tool {tool}")).await
    }
}

/// Time that nobody waits for.
struct NoTime(Arc<dyn Clock>);

#[async_trait]
impl Clock for NoTime {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn sleep_until(&self, _: Timestamp) {}
}
