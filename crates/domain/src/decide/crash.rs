//! Turns whose code panics or kills the process. They are retried with a delay and then dead-lettered, so that the messages
//! behind them do not wait for ever. An agent with several dead letters in a row is parked until a person acts.

use super::draft::Draft;
use super::turn;
use crate::{Event, Failure, FailureCode, Refusal, Timestamp, TurnId};

/// How often a turn that panics is run.
const ATTEMPTS: u8 = 3;

/// The delay after the first panic; it doubles with each further one.
const REST_MS: u64 = 500;

/// How many processes may run a turn without progress. It is more than `ATTEMPTS`, because processes also end for other
/// reasons.
const PROCESSES: u8 = 6;

/// After this many processes a turn is suspected of killing them.
const SUSPECT: u8 = 3;

/// The delay between suspects, so that each can prove itself before the next one runs.
const APART_MS: u64 = 30_000;

pub(super) fn crash(draft: &mut Draft<'_>, id: TurnId, failure: Failure) -> Result<(), Refusal> {
    let broken = draft.turn(id)?;
    let thread = broken.thread.clone();
    if broken.crashes + 1 < ATTEMPTS {
        let until = Timestamp(draft.at.0 + (REST_MS << broken.crashes));
        draft.push(Some(&thread), Event::TurnCrashed { turn: id, failure, until });
        return Ok(());
    }
    turn::give_up(draft, id, failure, ATTEMPTS)
}

/// Counts one more process for every turn that is about to run, before it runs. Suspects are run one after another. A turn
/// that has reached the limit is dead-lettered instead, and nothing else is done: the caller issues the command again.
pub(super) fn revive(draft: &mut Draft<'_>) -> Result<(), Refusal> {
    let owed = || draft.spine.turns.iter().filter(|(_, turn)| turn.is_owed());
    if let Some(id) = owed().find(|(_, turn)| turn.revived >= PROCESSES).map(|(id, _)| *id) {
        let message = format!("{PROCESSES} processes have ended while they ran this, and it came no further");
        return turn::give_up(draft, id, Failure::new(FailureCode::EndsProcess, message), PROCESSES);
    }
    let mut suspects = 0;
    let mut revived = Vec::new();
    for (id, turn) in owed() {
        let before = suspects;
        suspects += u64::from(turn.revived >= SUSPECT);
        let waits = before > 0 && suspects > before;
        let until = waits.then(|| Timestamp(draft.at.0 + APART_MS * before));
        revived.push((turn.thread.clone(), Event::TurnRevived { turn: *id, until }));
    }
    revived.into_iter().for_each(|(thread, event)| draft.push(Some(&thread), event));
    Ok(())
}
