//! What must hold of a finished run when it is looked at again: a replay calls nothing (P18), and a fork at any place shares the past
//! and nothing else, and comes to its own end (P19).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use polis_domain::{Event, Recorded, Seq, SocietyId, Timestamp};
use polis_engine::{Branch, fork, replay};
use polis_ports::Log;

use super::{FaultGate, FaultSchedule, MAX_UPGRADES, PATIENCE, SeededRng, World, cast, lock};
use crate::{GatedLog, ManualClock};

/// A life number that no run reaches.
const ANOTHER_LIFE: u64 = 1 << 32;

impl World {
    /// Replays a finished run, and lives a fork of it to its end.
    pub(super) fn again(self: &Arc<Self>, log: &[Recorded]) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(async {
            self.replays(&self.society).await?;
            self.forks(log).await
        })
    }

    async fn replays(self: &Arc<Self>, society: &SocietyId) -> Result<(), String> {
        let before = lock(&self.ledger).len();
        let ports = self.ports(self.log.clone(), Arc::new(ManualClock::at(Timestamp(0))));
        let replayed = replay(society, &ports, &cast(MAX_UPGRADES)).await.map_err(|error| error.to_string())?;
        if let Some(divergence) = replayed.divergences.first() {
            return Err(format!("a replay of {society} differs at turn {}: {}", divergence.turn, divergence.what));
        }
        if lock(&self.ledger).len() != before {
            return Err("a replay called a tool".to_owned());
        }
        Ok(())
    }

    async fn forks(self: &Arc<Self>, log: &[Recorded]) -> Result<(), String> {
        let asked = Seq(SeededRng::new(self.plan.seed ^ 0xf02c).below(log.len() as u64) + 1);
        if self.log.whole(&self.society, asked).await.map_err(|error| error.to_string())? == Seq(0) {
            return Ok(());
        }
        let clock = Arc::new(ManualClock::at(Timestamp(self.time.load(Ordering::Relaxed))));
        let other = SocietyId::from("fork");
        let branch = Branch { from: self.society.clone(), at: Some(asked), to: other.clone(), aside: None, request: None };
        let forked = fork(&*self.log, &*clock, &branch, self.plan.seed).await.map_err(|error| error.to_string())?;
        let plan = self.plan.undisturbed();
        let schedule = FaultSchedule::new(&plan);
        // The same world: whoever looks whether a write was done sees what the first one did.
        let world = Arc::new(Self {
            society: other.clone(),
            plan,
            log: self.log.clone(),
            artifacts: self.artifacts.clone(),
            ledger: Mutex::new(lock(&self.ledger).clone()),
            accepted: Mutex::default(),
            rng: Mutex::new(SeededRng::new(self.plan.seed ^ 0x78)),
            time: AtomicU64::new(self.time.load(Ordering::Relaxed)),
        });
        let gated = Arc::new(GatedLog { log: self.log.clone(), gate: FaultGate::new(schedule) });
        let stuck = format!("the fork at {} is stuck: a wait was forgotten or a turn is not run", forked.at);
        let lived = tokio::time::timeout(PATIENCE, world.clone().work(gated, clock, ANOTHER_LIFE)).await;
        lived.map_err(|_| stuck)??;
        let theirs: Vec<_> = self.log.events(&other).iter().map(|recorded| Recorded::clone(recorded)).collect();
        let at = |error: String| format!("forked at {}: {error}", forked.at);
        world.check(&theirs).map_err(at)?;
        world.replays(&other).await.map_err(at)?;
        let ours: Vec<_> = self.log.events(&self.society).iter().map(|recorded| Recorded::clone(recorded)).collect();
        if ours != log {
            return Err(at("the fork changed the society that it comes from".to_owned()));
        }
        let shared = forked.at.0 as usize;
        if ours[..shared] != theirs[..shared] {
            return Err(at("the fork has another past".to_owned()));
        }
        let (ours, theirs) = (ids(&ours[shared..]), ids(&theirs[shared..]));
        match ours.intersection(&theirs).next() {
            Some(id) => Err(at(format!("both have drawn {id}"))),
            None => Ok(()),
        }
    }
}

/// The ids that turns and commands have drawn.
fn ids(log: &[Recorded]) -> BTreeSet<String> {
    let drawn = |recorded: &Recorded| match &recorded.event {
        Event::MessageAdded { message, .. } => Some(message.id.to_string()),
        Event::TurnSettled { message: Some(message), .. } => Some(message.id.to_string()),
        Event::ThreadLinked { child, .. } => Some(child.to_string()),
        event => event.envelope().map(|envelope| envelope.id.to_string()),
    };
    log.iter().filter_map(drawn).collect()
}
