//! Reads that are under way. An identical read of the same request waits for the first one, whose result then answers it (D40).
//!
//! This is memory of the actor, not of the log: a turn that waits has declared nothing yet, and is simply owed after a crash.

use polis_domain::{Call, Command, Digest, Effect, EffectId, Event, Ruling, Spine, Stage, TaskId};
use rustc_hash::FxHashMap;

/// The newest of the identical reads that are under way, for each request.
#[derive(Default)]
pub(crate) struct ReadsInFlight(FxHashMap<(TaskId, Digest), EffectId>);

impl ReadsInFlight {
    /// Notes what an event begins or ends. The spine has the event already.
    pub(crate) fn note(&mut self, spine: &Spine, event: &Event) {
        match event {
            Event::EffectStarted { id, effect: Effect::Tool(call), .. } if call.from.is_none() => {
                let task = spine.turns.get(&id.turn).map(|turn| turn.task.clone());
                if let (Some(task), Some(key)) = (task, shared_key(call)) {
                    self.0.insert((task, key), *id);
                }
            }
            Event::EffectEnded { id, .. } if !self.0.is_empty() => self.0.retain(|_, open| open != id),
            _ => {}
        }
    }

    /// Whether a command declares a read that another turn is making at this moment.
    pub(crate) fn holds_back(&self, spine: &Spine, command: &Command) -> bool {
        let Command::DeclareEffects { turn, effects, .. } = command else { return false };
        if self.0.is_empty() || spine.limits.reuse_ms == 0 {
            return false;
        }
        let Some(task) = spine.turns.get(turn).map(|turn| &turn.task) else { return false };
        effects.iter().any(|effect| match effect {
            Effect::Tool(call) if call.fresh.is_none() && matches!(call.ruling, Ruling::Allow | Ruling::Approved) => {
                let open = shared_key(call).and_then(|key| self.0.get(&(task.clone(), key)));
                open.is_some_and(|open| open.turn != *turn && is_under_way(spine, *open))
            }
            _ => false,
        })
    }

    /// Forgets everything, because the spine is folded anew.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The key of a read that runs outside of turns.
fn shared_key(call: &Call) -> Option<Digest> {
    call.key.filter(|_| !call.own)
}

/// Whether a read still runs and nothing was written since it began. A turn that was cancelled or parked makes it no more.
fn is_under_way(spine: &Spine, id: EffectId) -> bool {
    let turn = spine.turns.get(&id.turn).filter(|turn| !turn.is_parked());
    let open = turn.and_then(|turn| turn.open.iter().find(|open| open.n == id.n && open.stage == Stage::Working));
    open.and_then(|open| open.recallable.as_deref()).is_some_and(|(_, began)| *began > spine.reusable.since)
}
