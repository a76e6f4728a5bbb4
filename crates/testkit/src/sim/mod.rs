//! The simulator: the production engine under a seeded world that kills it at any event, tears its last write, delays,
//! reorders and fails, and lets a person settle what is in doubt. The same seed gives the same run.

mod check;
mod fault_log;
mod fork;
mod owners;
mod plan;
mod rng;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polis_domain::{AgentId, EffectClass, Event, MessageId, Recorded, SocietyId, Target, TaskId, Timestamp, Usage};
use polis_engine::{Cast, ConversationStart, LocalLive, Options, Ports, Society};
use polis_ports::{Clock, Log, ModelError};

use crate::{
    GatedLog, ManualClock, MemoryArtifacts, MemoryLog, ProgrammedAgent, ScriptedModel, ScriptedReply, ScriptedTools,
    whole_state, worker_role, world,
};
pub use check::check;
use fault_log::{FaultGate, FaultSchedule};
pub use owners::run_owners;
pub use plan::{Plan, Submission};
use rng::SeededRng;

/// What a run came to.
#[derive(Debug)]
pub struct Report {
    /// The whole log.
    pub log: Vec<Recorded>,
    /// How often the process was killed; of two nodes, how often the other one took over.
    pub kills: usize,
    /// How often the log failed without a kill; of two nodes, how often one stood still or was cut off.
    pub failures: usize,
    /// How often a write was in doubt.
    pub doubts: usize,
}

/// Virtual time after which a society that has not finished is stuck.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Lives after which a run is not going to end.
const MAX_LIVES: usize = 200;

/// How often the last state is looked at, while what is written is on its way back.
const MAX_LOOKS: usize = 1_000;

/// Most versions that the agents get.
const MAX_UPGRADES: u64 = 4;

/// The world outside the process: it outlives every crash.
struct World {
    society: SocietyId,
    plan: Plan,
    log: Arc<MemoryLog>,
    artifacts: Arc<MemoryArtifacts>,
    /// What tools have done: the key of each call, once for every time that it was really done.
    ledger: Mutex<Vec<(EffectClass, String)>>,
    /// What was acknowledged: the place in the plan, and the message.
    accepted: Mutex<BTreeMap<usize, (MessageId, TaskId)>>,
    rng: Mutex<SeededRng>,
    time: AtomicU64,
}

/// Runs one plan to its end and checks everything that must hold.
pub fn run(plan: Plan) -> Result<Report, String> {
    compared(plan, live_through)
}

/// Runs a plan, and compares its log with that of an undisturbed run, where what happens follows from the requests.
fn compared(plan: Plan, live: impl FnOnce(Plan) -> Result<Report, String>) -> Result<Report, String> {
    let quiet = plan.is_comparable().then(|| plan.undisturbed());
    let report = live(plan)?;
    if let Some(quiet) = quiet {
        let undisturbed = live_through(quiet)?;
        if let Some(difference) = crate::equivalence::difference(&undisturbed.log, &report.log) {
            return Err(format!("the log differs from the undisturbed one {difference}"));
        }
    }
    Ok(report)
}

fn live_through(plan: Plan) -> Result<Report, String> {
    let world = World::new(plan);
    let mut schedule = FaultSchedule::new(&world.plan);
    for life in 0..MAX_LIVES {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let log = Arc::new(GatedLog { log: world.log.clone(), gate: FaultGate::new(schedule) });
        let done = runtime.block_on(world.clone().life(log.clone(), life as u64));
        drop(runtime);
        schedule = log.gate.schedule();
        if done? {
            return world.report(schedule.kills, schedule.failures);
        }
    }
    Err(format!("the society was not done after {MAX_LIVES} lives"))
}

impl World {
    fn new(plan: Plan) -> Arc<Self> {
        let seed = plan.seed;
        Arc::new(Self {
            society: "main".into(),
            plan,
            log: Arc::new(MemoryLog::new()),
            artifacts: Arc::default(),
            ledger: Mutex::default(),
            accepted: Mutex::default(),
            rng: Mutex::new(SeededRng::new(seed ^ 0x77)),
            time: AtomicU64::new(1_700_000_000_000),
        })
    }

    /// Checks a finished run.
    fn report(self: &Arc<Self>, kills: usize, failures: usize) -> Result<Report, String> {
        let log: Vec<_> = self.log.events(&self.society).iter().map(|recorded| Recorded::clone(recorded)).collect();
        self.check(&log)?;
        self.again(&log)?;
        let doubts = log.iter().filter(|recorded| matches!(recorded.event, Event::EffectDoubted { .. })).count();
        Ok(Report { log, kills, failures, doubts })
    }

    /// One life of the process: until everything is answered, or until it is killed.
    async fn life(self: Arc<Self>, log: Arc<GatedLog<FaultGate>>, life: u64) -> Result<bool, String> {
        let clock = Arc::new(ManualClock::at(Timestamp(self.time.load(Ordering::Relaxed))));
        let killed = log.gate.killed();
        let ended = tokio::select! {
            biased;
            () = killed.notified() => Ok(false),
            ended = self.clone().work(log, clock.clone(), life) => ended,
            () = tokio::time::sleep(PATIENCE) => {
                Err("the society is stuck: a wait was forgotten or a turn is not run".to_owned())
            }
        };
        self.time.store(clock.now().0 + 1_000, Ordering::Relaxed);
        ended
    }

    fn ports(self: &Arc<Self>, log: Arc<dyn Log>, clock: Arc<ManualClock>) -> Ports {
        Ports {
            log,
            model: Arc::new(self.model()),
            toolbox: Arc::new(self.tools()),
            live: Arc::new(LocalLive::default()),
            clock,
            artifacts: self.artifacts.clone(),
            memory_texts: Arc::new(polis_ports::NoMemoryTexts),
            embedder: None,
        }
    }

    async fn work(self: Arc<Self>, log: Arc<GatedLog<FaultGate>>, clock: Arc<ManualClock>, life: u64) -> Result<bool, String> {
        let society = self.open(self.ports(log, clock), life).await;
        self.attend_until_done(&society, async || {}).await?;
        society.stop(Duration::ZERO).await;
        Ok(true)
    }

    /// Opens the society, as soon as its log lets it.
    async fn open(&self, ports: Ports, life: u64) -> Society {
        let cast = cast(life);
        let entropy = polis_domain::mix(self.plan.seed ^ life);
        let mut options = Options { max_running: self.plan.max_running, ..Options::new(entropy, worker_role()) };
        options.max_lingering = self.plan.max_lingering;
        // Parts of the state leave memory all the time.
        options.snapshot_every = 1 + entropy % 48;
        options.budgets = self.plan.budgets.clone();
        loop {
            match Society::open(self.society.clone(), ports.clone(), cast.clone(), options.clone()).await {
                Ok(society) => return society,
                Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
            }
        }
    }

    /// Hands everything in and does what a person would, each time when the process is `ready`, until everything is answered.
    async fn attend_until_done(&self, society: &Society, ready: impl AsyncFn()) -> Result<(), String> {
        ready().await;
        self.nothing_is_lost()?;
        for agent in 1..self.plan.agents {
            let name = AgentId::from(format!("a{agent}"));
            // Refused when an earlier life has made it; tried again when the log fails just now.
            while let Err(polis_engine::CommandError::Unavailable(_)) =
                society.spawn(name.clone(), worker_role().id, AgentId::root()).await
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        loop {
            self.submit(society).await;
            self.nothing_is_lost()?;
            self.attend(society).await;
            if self.is_done() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(7)).await;
            ready().await;
        }
        // While the log is out of order, what is seen is the last state that is certain; the log may have more.
        // So that it has heard of what is written.
        for _ in 0..MAX_LOOKS {
            let standby = society.standby();
            let live = whole_state(society, &self.log.events(&self.society)).await;
            let folded = polis_domain::Spine::from_iter(self.log.events(&self.society));
            if live.is_ok_and(|live| live == folded) && standby.is_none() && society.standby().is_none() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err("the live state differs from the fold of the log".to_owned())
    }

    /// What was acknowledged, in this life or an earlier one, is in the log.
    fn nothing_is_lost(&self) -> Result<(), String> {
        let events = self.log.events(&self.society);
        let has =
            |id: &MessageId| events.iter().any(|recorded| recorded.event.envelope().is_some_and(|envelope| envelope.id == *id));
        match lock(&self.accepted).iter().find(|(_, (id, _))| !has(id)) {
            Some((i, _)) => Err(format!("an accepted message is missing: request {i}")),
            None => Ok(()),
        }
    }

    /// Hands in what is due, in order, and notes what was acknowledged. What was not, but is in the log, counts as well.
    async fn submit(&self, society: &Society) {
        for (i, submission) in self.plan.submissions.iter().enumerate() {
            if lock(&self.accepted).contains_key(&i) {
                continue;
            }
            let text = submission.program.text();
            let found = self.log.events(&self.society).iter().find_map(|recorded| match &recorded.event {
                Event::MessageSent { envelope, .. } if envelope.from.is_user() && *envelope.payload.text == *text => {
                    Some((envelope.id.clone(), envelope.task_id.clone()))
                }
                _ => None,
            });
            let sent = match found {
                Some(found) => Some(found),
                None => {
                    let to = &submission.agent;
                    // Every other request to root is a conversation of its own.
                    let sent = if *to == AgentId::root() && i % 2 == 1 {
                        let start = ConversationStart { id: Some(format!("talk{i}").into()), ..ConversationStart::default() };
                        society.converse(start, &text, None, serde_json::Map::new()).await
                    } else {
                        society.send(to.clone(), &text, None).await
                    };
                    sent.ok().map(|sent| (sent.message_id, sent.task_id))
                }
            };
            let Some(sent) = sent else { return };
            lock(&self.accepted).insert(i, sent);
        }
    }

    /// Does what a person would: looks after what waits, and calls off what the plan says.
    async fn attend(&self, society: &Society) {
        world::resolve_open_decisions(society, |key| lock(&self.ledger).iter().any(|(_, done)| done == key)).await;
        for (i, submission) in self.plan.submissions.iter().enumerate() {
            let task = lock(&self.accepted).get(&i).map(|(_, task)| task.clone());
            if let Some(task) = task.filter(|_| submission.cancel && lock(&self.rng).chance(10)) {
                let _ = society.cancel(Target::Task(task), "the plan says so").await;
            }
        }
    }

    fn is_done(&self) -> bool {
        let events = self.log.events(&self.society);
        let accepted = lock(&self.accepted);
        let answered = |task: &TaskId| {
            events.iter().any(|recorded| {
                matches!(&recorded.event, Event::MessageSent { envelope, .. }
                if envelope.to.is_user() && envelope.task_id == *task && envelope.kind != polis_domain::MessageKind::Message)
            })
        };
        accepted.len() == self.plan.submissions.len()
            && accepted.values().all(|(_, task)| answered(task))
            && self.is_quiet(&events)
    }

    /// Nobody is owed anything, not even a late answer that no longer matters.
    fn is_quiet(&self, events: &[Arc<Recorded>]) -> bool {
        polis_domain::Spine::from_iter(events.iter().cloned()).turns.is_empty()
    }

    fn model(self: &Arc<Self>) -> ScriptedModel {
        let world = self.clone();
        ScriptedModel::new(move |request| {
            let mut rng = lock(&world.rng);
            let delay = Duration::from_millis(rng.below(world.plan.max_delay_ms + 1));
            if world.plan.model_fails && rng.chance(20) {
                return ScriptedReply::error(ModelError::Failed { reason: "the weather".to_owned(), retry_after: None })
                    .after(delay);
            }
            // The same request costs the same in every life, and each another sum.
            let thought = world::model_reply(request);
            let written = thought.bytes().map(u64::from).sum::<u64>() % u64::from(ProgrammedAgent::REPLY_TOKENS) + 1;
            let usage = Usage { input_tokens: 1, output_tokens: written, ..Usage::default() };
            ScriptedReply::text(&thought).after(delay).costing(usage)
        })
    }

    fn tools(self: &Arc<Self>) -> ScriptedTools {
        let (ledger, rng) = (self.clone(), self.clone());
        let tools = world::tools(move |class, key| lock(&ledger.ledger).push((class, key.to_owned())));
        tools.delayed(move |_| Duration::from_millis(lock(&rng.rng).below(rng.plan.max_delay_ms + 1)))
    }

    fn check(&self, log: &[Recorded]) -> Result<(), String> {
        let named = polis_domain::Spine::from_iter(log).artifacts;
        if let Some(lost) = named.entries().iter().find(|entry| !self.artifacts.holds(&entry.artifact.id)) {
            return Err(format!("an artifact is named and not kept: {}", lost.artifact));
        }
        let ledger = lock(&self.ledger).clone();
        let accepted = lock(&self.accepted).clone();
        check(&self.plan, log, &ledger, &accepted)
    }
}

/// The agents of a life: each life of a society is an upgrade of the one before.
fn cast(life: u64) -> Cast {
    let versions = 1..=1 + life.min(MAX_UPGRADES) as u32;
    versions.fold(Cast::new(), |cast, version| cast.with_version(ProgrammedAgent::NAME, version, ProgrammedAgent))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
