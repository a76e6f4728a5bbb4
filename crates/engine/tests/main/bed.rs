//! A test bed: a society over a log in memory, in virtual time, with a world that remembers what was done to it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polis_domain::{
    AgentId, EffectClass, EffectId, Failure, MessageKind, OpenKind, Recorded, Seq, Spine, Stage, Timestamp, TurnId,
};
use polis_engine::{Cast, LocalLive, Options, Ports, Sent, Society};
use polis_ports::Log;
use polis_testkit::{
    ManualClock, MemoryArtifacts, MemoryLog, Op, Program, ProgrammedAgent, ScriptedModel, ScriptedReply, worker_role, world,
};

/// What a society needs, and what outlives it.
pub(crate) struct Bed {
    pub(crate) log: Arc<MemoryLog>,
    pub(crate) done: Arc<Mutex<Vec<(EffectClass, String)>>>,
    pub(crate) thoughts: Arc<AtomicUsize>,
    pub(crate) artifacts: Arc<MemoryArtifacts>,
    pub(crate) cast: Cast,
    pub(crate) options: Options,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self {
            log: Arc::new(MemoryLog::new()),
            done: Arc::default(),
            thoughts: Arc::default(),
            artifacts: Arc::default(),
            cast: Cast::new().with(ProgrammedAgent::NAME, ProgrammedAgent),
            options: Options::new(7, worker_role()),
        }
    }

    pub(crate) async fn open(&self) -> Society {
        self.open_on(self.log.clone()).await
    }

    pub(crate) async fn open_on(&self, log: Arc<dyn Log>) -> Society {
        Society::open("main".into(), self.ports(log), self.cast.clone(), self.options.clone()).await.unwrap()
    }

    pub(crate) fn ports(&self, log: Arc<dyn Log>) -> Ports {
        let (done, thoughts) = (self.done.clone(), self.thoughts.clone());
        let model = ScriptedModel::new(move |request| {
            thoughts.fetch_add(1, Ordering::Relaxed);
            ScriptedReply::text(&world::model_reply(request))
        });
        let tools = world::tools(move |class, key| done.lock().unwrap().push((class, key.to_owned())));
        Ports {
            log,
            model: Arc::new(model),
            toolbox: Arc::new(tools),
            live: Arc::new(LocalLive::default()),
            clock: Arc::new(ManualClock::at(Timestamp(1_700_000_000_000))),
            artifacts: self.artifacts.clone(),
            memory_texts: Arc::new(polis_ports::NoMemoryTexts),
            embedder: None,
        }
    }

    pub(crate) fn events(&self) -> Vec<Recorded> {
        self.log.events(&"main".into()).iter().map(|recorded| Recorded::clone(recorded)).collect()
    }

    pub(crate) fn writes(&self) -> usize {
        self.done.lock().unwrap().iter().filter(|(class, _)| *class == EffectClass::Write).count()
    }
}

/// Asks root to run a program.
pub(crate) async fn submit(society: &Society, ops: Vec<Op>) -> Sent {
    society.submit(&Program(ops).text()).await.unwrap()
}

/// What the person is told in the end: the text, or the failure's code.
pub(crate) async fn answer(society: &Society, sent: &Sent) -> Result<String, String> {
    let envelope = society.answer(sent).await.unwrap();
    match &envelope.kind {
        MessageKind::Failure(failure) => Err(failure.code.to_string()),
        MessageKind::Answer | MessageKind::Message => Ok(envelope.payload.text.to_string()),
    }
}

/// Submits a program and waits for its answer.
pub(crate) async fn ask(society: &Society, ops: Vec<Op>) -> Result<String, String> {
    let sent = submit(society, ops).await;
    answer(society, &sent).await
}

pub(crate) async fn spawn(society: &Society, names: &[&str]) {
    for name in names {
        society.spawn((*name).into(), worker_role().id, AgentId::root()).await.unwrap();
    }
}

/// How long anything may take that a test waits for, in virtual time: without an end a test would hang instead of failing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(86_400 * 365);

/// Waits until the spine shows what is looked for. It goes by events, so that time stands still only while something happens.
pub(crate) async fn until<T: Send + 'static>(
    society: &Society,
    find: impl Fn(&Spine) -> Option<T> + Send + Sync + 'static,
) -> T {
    let find = Arc::new(find);
    let mut watch = society.watch(Seq(0));
    loop {
        let look = find.clone();
        if let Some(found) = society.look(move |spine| look(spine)).await.unwrap() {
            return found;
        }
        let news = tokio::time::timeout(PATIENCE, watch.next_event()).await;
        news.expect("what was looked for never came").unwrap();
    }
}

/// Waits until an effect is open that satisfies `which`, and names it.
pub(crate) async fn open_effect(society: &Society, which: fn(&OpenKind, Stage) -> bool) -> EffectId {
    let find = move |spine: &Spine| {
        spine.turns.iter().find_map(|(turn, state)| {
            let open = state.open.iter().find(|open| which(&open.kind, open.stage))?;
            Some(EffectId { turn: *turn, n: open.n })
        })
    };
    until(society, find).await
}

/// Waits until a turn is parked, and tells which and why.
pub(crate) async fn parked(society: &Society) -> (TurnId, Failure) {
    until(society, |spine| spine.turns.iter().find_map(|(id, turn)| turn.parked().map(|reason| (*id, reason.clone())))).await
}

pub(crate) fn is_approval(kind: &OpenKind, _: Stage) -> bool {
    matches!(kind, OpenKind::Approval(_))
}

pub(crate) fn call(tool: &str, argument: &str) -> Op {
    Op::Call(vec![(tool.to_owned(), argument.to_owned())])
}
