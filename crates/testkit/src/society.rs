//! A whole society for a test, in one line: scripted model, log in memory, no I/O.

use std::sync::Arc;

use polis_domain::{AgentId, Failure, MessageKind, Recorded, Role, Spine, ThreadId, Timestamp};
use polis_engine::{Agent, Cast, CommandError, Options, Ports, Society};

use crate::{ManualClock, MemoryLog, ScriptedModel};

/// When tests happen.
const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// A society whose root is this agent, with nothing else in it. In a test with paused time it lives in virtual time.
///
/// # Panics
/// When the agent does not fit together, with what is wrong with it.
pub async fn society(agent: impl Agent, model: ScriptedModel) -> Society {
    open(Cast::new().with("root", agent), Ports::new(MemoryLog::new()).with_model(model)).await
}

/// A society over these ports, whose root runs the behaviour `root`; the clock is one that tests can move.
///
/// # Panics
/// When the agents do not fit together, with what is wrong with them.
pub async fn open(cast: Cast, ports: Ports) -> Society {
    let ports = Ports { clock: Arc::new(ManualClock::at(NOW)), ..ports };
    let opened = Society::open("main".into(), ports, cast, Options::new(1, Role::new("root", "root"))).await;
    opened.unwrap_or_else(|error| panic!("{error}"))
}

/// Asks root and waits for what the person is told in the end.
pub async fn ask(society: &Society, text: &str) -> Result<String, Failure> {
    let refused = |error: polis_engine::CommandError| Failure::new(error.code(), error.to_string());
    let sent = society.submit(text).await.map_err(refused)?;
    let envelope = society.answer(&sent).await.map_err(refused)?;
    match &envelope.kind {
        MessageKind::Failure(failure) => Err(failure.clone()),
        MessageKind::Answer | MessageKind::Message => Ok(envelope.payload.text.to_string()),
    }
}

/// The state of a society with all its parts in memory, as the fold of its log from zero has it.
pub async fn whole_state(society: &Society, events: &[Arc<Recorded>]) -> Result<Spine, CommandError> {
    let names: Vec<_> = Spine::from_iter(events.iter().cloned()).names().collect();
    let everything = move |spine: &Spine| {
        for name in &names {
            let (agent, thread) = (AgentId::new(name.clone()), ThreadId::new(name.clone()));
            let _ = (spine.agents.get(&agent), spine.threads.get(&thread));
        }
        spine.clone()
    };
    let mut whole = society.look(everything).await?;
    whole.forget_unloaded();
    Ok(whole)
}
