//! Turns whose code panics or kills the process. They are retried with a delay and then dead-lettered, so that the messages
//! behind them do not wait for ever. An agent with several dead letters in a row is parked until a person acts, and its
//! parent is notified.

use super::{Draft, message, turn};
use crate::{
    Agent, AgentId, Envelope, Event, Failure, FailureCode, MessageKind, Origin, Payload, Refusal, ReplyTo, Settlement,
    Timestamp, TurnId, TurnResult, unique_id,
};

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

/// This many dead letters in a row park an agent.
const MAX_DEAD_LETTERS: u8 = 3;

pub(super) fn crash(draft: &mut Draft<'_>, id: TurnId, failure: Failure) -> Result<(), Refusal> {
    let broken = draft.turn(id)?;
    let thread = broken.thread.clone();
    if broken.crashes + 1 < ATTEMPTS {
        let until = Timestamp(draft.at.0 + (REST_MS << broken.crashes));
        draft.push(Some(&thread), Event::TurnCrashed { turn: id, failure, until });
        return Ok(());
    }
    dead_letter(draft, id, failure, ATTEMPTS)
}

/// Counts one more process for every turn that is about to run, before it runs. Suspects are run one after another. A turn
/// that has reached the limit is dead-lettered instead, and nothing else is done: the caller issues the command again.
pub(super) fn revive(draft: &mut Draft<'_>) -> Result<(), Refusal> {
    let owed = || draft.spine.turns.iter().filter(|(_, turn)| turn.is_owed());
    if let Some(id) = owed().find(|(_, turn)| turn.revived >= PROCESSES).map(|(id, _)| *id) {
        let message = format!("{PROCESSES} processes have ended while they ran this, and it came no further");
        return dead_letter(draft, id, Failure::new(FailureCode::EndsProcess, message), PROCESSES);
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

/// Gives up a turn that failed in every run, and lets its agent go on with its next message.
fn dead_letter(draft: &mut Draft<'_>, id: TurnId, failure: Failure, attempts: u8) -> Result<(), Refusal> {
    let broken = draft.turn(id)?;
    let (agent, task, thread) = (broken.agent.clone(), broken.task.clone(), broken.thread.clone());
    let (is_message, waits, hops) = (broken.origin == Origin::Inbox, broken.reply_to, broken.hops.saturating_add(1));
    if is_message {
        let (agent, failure) = (agent.clone(), failure.clone());
        draft.push(Some(&thread), Event::MessageDeadLettered { agent, task: task.clone(), turn: id, failure });
    }
    let answer = format!("{failure}");
    turn::settle(draft, id, TurnResult::Failed(failure))?;
    let state = draft.spine.agents.get(&agent);
    // A waiting caller was answered by the settlement.
    if let (true, ReplyTo::Nobody, Some(state)) = (is_message, waits, state)
        && let Some(parent) = state.parent.clone()
    {
        let still = if is_crashing(draft, &agent, state) { "; it stands still now until a person acts" } else { "" };
        let text =
            format!("`{agent}` could not do what it was asked, {attempts} times: {answer}. The message is set aside{still}.");
        let draw = draft.spine.seq.0 + draft.events.len() as u64;
        let envelope = Envelope {
            id: unique_id("msg", draft.spine.seed, draft.at, draw),
            from: agent,
            to: parent,
            task_id: task,
            kind: MessageKind::Message,
            payload: Payload::text(text),
            reply_to: ReplyTo::Nobody,
            hops,
        };
        // A parent that cannot take messages is not notified; the log has the event.
        message::send_if_allowed(draft, envelope, Some(&thread));
    }
    Ok(())
}

/// Parks the turn that was just started if its agent crashes again and again. Root is never parked: without it the society
/// could not be reached.
pub(super) fn park_if_crashing(draft: &mut Draft<'_>, agent: &AgentId, state: &Agent) {
    let Some(started) = draft.events.last().filter(|last| matches!(last.event, Event::TurnStarted { .. })) else { return };
    if state.parent.is_some() && is_crashing(draft, agent, state) {
        let (turn, thread) = (TurnId(started.seq), started.thread.clone());
        let message =
            format!("the last {MAX_DEAD_LETTERS} tasks of `{agent}` broke its code down; correct it and resume, or cancel");
        draft.push(thread.as_ref(), Event::TurnParked { turn, reason: Failure::new("agent_crashing", message) });
    }
}

fn is_crashing(draft: &Draft<'_>, agent: &AgentId, state: &Agent) -> bool {
    let is_own = |turn: &TurnId| draft.spine.turns.get(turn).is_some_and(|turn| turn.agent == *agent);
    let done = |event: &Event| matches!(event, Event::TurnSettled { turn, settlement: Settlement::Done, .. } if is_own(turn));
    let is_dead_letter = |event: &Event| matches!(event, Event::MessageDeadLettered { agent: other, .. } if other == agent);
    let drafted = draft.events.iter().filter(|recorded| is_dead_letter(&recorded.event)).count() as u8;
    state.dead_letters.saturating_add(drafted) >= MAX_DEAD_LETTERS && !draft.events.iter().any(|recorded| done(&recorded.event))
}
