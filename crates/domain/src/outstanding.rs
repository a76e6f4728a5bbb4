//! The work that the state owes: the turns that should be running, and the deadlines to wait for.
//!
//! Recovery needs nothing else. After a crash the engine folds the log and applies [`outstanding`]; during normal operation
//! it applies [`Owed::of`] to each turn whose events it has just committed. Both are the same rule on the same state, so a
//! recovered society cannot differ from one that never stopped. A turn that is owed a run gets its handler run from the first
//! line; its journal then tells how far it had got.

use crate::spine::{Spine, Turn};
use crate::{EffectId, Timestamp, TurnId};

/// What one turn is owed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owed {
    /// Whether the turn should be running.
    pub run: bool,
    /// The deadlines of its open waits.
    pub timers: Vec<(Timestamp, EffectId)>,
}

impl Owed {
    /// What this turn is owed. It depends on the events of this turn only.
    pub fn of(id: TurnId, turn: &Turn) -> Self {
        let timer = |open: &crate::OpenEffect| open.deadline.map(|at| (at, EffectId { turn: id, n: open.n }));
        Self { run: turn.is_owed(), timers: turn.open.iter().filter_map(timer).collect() }
    }
}

/// What all open turns are owed, oldest turn first.
pub fn outstanding(spine: &Spine) -> impl Iterator<Item = (TurnId, Owed)> {
    spine.turns.iter().map(|(id, turn)| (*id, Owed::of(*id, turn)))
}
