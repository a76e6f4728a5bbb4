//! Whether agents survive a crash: a society is stopped after each of its commits in turn and opened again on what was there.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{Effect, Event, Outcome, Recorded, Seq, SocietyId, Spine};
use polis_engine::{Cast, CommandError, Ports, Sent, Society};
use polis_ports::{Log, LogError};

use crate::{Gate, GatedLog, MemoryLog, ScriptedModel, equivalence, open};

/// The outcome of an undisturbed run; every stopped run had the same one.
#[derive(Debug)]
pub struct CrashReport {
    /// Its log.
    pub log: Vec<Recorded>,
    /// How often it was stopped.
    pub stops: usize,
}

/// Asks the root of these agents (behaviour `root`), one request after another; then the same again for each commit of the
/// log, stopped right after it, and for each change that a turn made and went on: at another pace it might have been committed
/// alone. Each log must be equivalent, and the model must not be asked for anything that is in the log already.
pub async fn at_every_commit(cast: &Cast, model: impl Fn() -> ScriptedModel, requests: &[&str]) -> Result<CrashReport, String> {
    at_every_end(cast, model, |_| Ports::new(MemoryLog::new()), |_| {}, after_changes, requests).await
}

/// The same for agents with tools: `world` gives what is there when the society begins (none), or goes on after an event. Its
/// log and its model are not used. `committed` hears of each commit of the undisturbed society before anything follows it, and
/// can keep what the world is like then.
pub async fn at_every_commit_in(
    cast: &Cast,
    model: impl Fn() -> ScriptedModel,
    world: impl Fn(Option<Seq>) -> Ports,
    committed: impl Fn(Seq) + Send + Sync + 'static,
    requests: &[&str],
) -> Result<CrashReport, String> {
    at_every_end(cast, model, world, committed, |_| Vec::new(), requests).await
}

/// The same, stopped at other places of the undisturbed log as well.
async fn at_every_end(
    cast: &Cast,
    model: impl Fn() -> ScriptedModel,
    world: impl Fn(Option<Seq>) -> Ports,
    committed: impl Fn(Seq) + Send + Sync + 'static,
    others: impl Fn(&[Recorded]) -> Vec<Seq>,
    requests: &[&str],
) -> Result<CrashReport, String> {
    let log = Arc::new(MemoryLog::new());
    let ends = CommitEnds::default();
    let ports = Ports { log: ends.recording(log.clone(), committed), ..world(None) };
    let society = open(cast.clone(), ports.with_model(model())).await;
    live(&society, &log, requests).await?;
    let whole = events(&log);
    let ends: BTreeSet<_> = ends.all().into_iter().chain(others(&whole)).collect();
    for end in &ends {
        let at = |error: &dyn std::fmt::Display| format!("stopped after event {end}: {error}");
        let log = Arc::new(MemoryLog::new());
        let before: Vec<_> = whole.iter().take(end.0 as usize).cloned().map(Arc::new).collect();
        log.append(&"main".into(), Seq(0), &before).await.map_err(|error| at(&error))?;
        let model = model();
        let asked = model.counter();
        let ports = Ports { log: log.clone(), ..world(Some(*end)).with_model(model) };
        let society = open(cast.clone(), ports).await;
        live(&society, &log, requests).await.map_err(|error| at(&error))?;
        let after = events(&log);
        if let Some(difference) = equivalence::difference(&whole, &after) {
            let hint = "what a turn asks for must follow from the log alone, see docs/errors/agents.md#diverged";
            return Err(at(&format!("another story {difference}\n({hint})")));
        }
        let (asked, expected) = (asked.load(Ordering::Relaxed), replies(&after) - replies(&after[..before.len()]));
        if asked != expected {
            return Err(at(&format!("the model was asked {asked} times instead of {expected}")));
        }
    }
    Ok(CrashReport { log: whole, stops: ends.len() })
}

/// Where the changes of a turn end.
fn after_changes(log: &[Recorded]) -> Vec<Seq> {
    let change = |recorded: &Recorded| match &recorded.event {
        Event::MessageAdded { .. }
        | Event::MessageUpdated { .. }
        | Event::SettingsUpdated { .. }
        | Event::PhaseSuggested { .. }
        | Event::Acted { .. } => recorded.event.effect(),
        _ => None,
    };
    let ends = log.windows(2).filter(|pair| change(&pair[0]).is_some() && pair[0].event.effect() != pair[1].event.effect());
    ends.map(|pair| pair[0].seq).collect()
}

/// Asks what was not asked yet, and waits until everything is answered and nobody is at work.
async fn live(society: &Society, log: &MemoryLog, requests: &[&str]) -> Result<(), String> {
    for (place, request) in requests.iter().enumerate() {
        // By its place, for a request may be made twice in the same words.
        let mut envelopes = events(log).into_iter().filter_map(|recorded| match &recorded.event {
            Event::MessageSent { envelope, .. } if envelope.from.is_user() => Some(Sent {
                message_id: envelope.id.clone(),
                to: envelope.to.clone(),
                task_id: envelope.task_id.clone(),
                seq: recorded.seq,
            }),
            _ => None,
        });
        let describe = |error: CommandError| error.to_string();
        let sent = match envelopes.nth(place) {
            Some(sent) => sent,
            None => society.submit(request).await.map_err(describe)?,
        };
        let answered = tokio::time::timeout(Duration::from_secs(86_400), society.answer(&sent)).await;
        answered.map_err(|_| format!("nobody answered `{request}`"))?.map_err(describe)?;
    }
    // Agents may work on after the answer, where nobody waits for their results.
    for _ in 0..3_600 {
        if society.look(|spine| spine.turns.is_empty()).await.map_err(|error| error.to_string())? {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    society.stop(Duration::ZERO).await;
    let open = Spine::from_iter(&events(log)).turns.len();
    if open == 0 { Ok(()) } else { Err(format!("{open} turns are open in the end")) }
}

fn events(log: &MemoryLog) -> Vec<Recorded> {
    log.events(&"main".into()).iter().map(|recorded| Recorded::clone(recorded)).collect()
}

/// How often a model has answered or refused.
fn replies(log: &[Recorded]) -> usize {
    let asked = log.iter().filter_map(|recorded| match &recorded.event {
        Event::EffectStarted { id, effect: Effect::Model { .. }, .. } => Some(*id),
        _ => None,
    });
    let asked: BTreeSet<_> = asked.collect();
    let is_reply = |recorded: &&Recorded| match &recorded.event {
        Event::EffectEnded { id, outcome: Outcome::Reply(_) | Outcome::Failed(_), .. } => asked.contains(id),
        _ => false,
    };
    log.iter().filter(is_reply).count()
}

/// Where each commit of a log ended.
#[derive(Debug, Clone, Default)]
pub struct CommitEnds(Arc<Mutex<Vec<Seq>>>);

impl CommitEnds {
    /// The same log; from now on it is noted where its commits end.
    pub fn of(&self, log: Arc<MemoryLog>) -> Arc<dyn Log> {
        self.recording(log, |_| {})
    }

    /// Where they ended so far.
    pub fn all(&self) -> Vec<Seq> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn recording(&self, log: Arc<MemoryLog>, committed: impl Fn(Seq) + Send + Sync + 'static) -> Arc<dyn Log> {
        Arc::new(GatedLog { log, gate: RecordingGate { ends: self.clone(), committed: Box::new(committed) } })
    }
}

/// Records where each commit ends, and calls back.
struct RecordingGate {
    ends: CommitEnds,
    committed: Box<dyn Fn(Seq) + Send + Sync>,
}

#[async_trait]
impl Gate for RecordingGate {
    async fn append(
        &self,
        log: &dyn Log,
        society: &SocietyId,
        expected: Seq,
        events: &[Arc<Recorded>],
    ) -> Result<(), LogError> {
        log.append(society, expected, events).await?;
        if let Some(last) = events.last().map(|last| last.seq) {
            self.ends.0.lock().unwrap_or_else(PoisonError::into_inner).push(last);
            (self.committed)(last);
        }
        Ok(())
    }
}
