//! What the state owes the world: the turns that should be running and the times to wait for.

use crate::spine::{Spine, Turn};
use crate::{EffectId, Timestamp, TurnId};

/// What is owed on account of one turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owed {
    /// Whether the turn should be running.
    pub run: bool,
    /// The waits that end by themselves, and when.
    pub timers: Vec<(Timestamp, EffectId)>,
}

impl Owed {
    /// What is owed on account of this turn. Only events of a turn change it.
    pub fn of(id: TurnId, turn: &Turn) -> Self {
        let timer = |open: &crate::OpenEffect| open.deadline.map(|at| (at, EffectId { turn: id, n: open.n }));
        Self { run: turn.is_owed(), timers: turn.open.iter().filter_map(timer).collect() }
    }
}

/// Everything that is owed, oldest turn first.
pub fn outstanding(spine: &Spine) -> impl Iterator<Item = (TurnId, Owed)> {
    spine.turns.iter().map(|(id, turn)| (*id, Owed::of(*id, turn)))
}
