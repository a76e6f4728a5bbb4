//! How turns end, park, rest and resume.

use std::sync::Arc;

use super::draft::Draft;
use super::{cancel, message, pending, report};
use crate::inbox::InboxEntry;
use crate::spine::{OpenEffect, OpenKind, Turn};
use crate::{Event, Failure, Origin, Refusal, ReplyTo, Settlement, TurnId, TurnResult};

/// A turn's handler returned.
pub(super) fn settle(draft: &mut Draft<'_>, id: TurnId, result: TurnResult) -> Result<(), Refusal> {
    end(draft, id, result, None)
}

/// Gives up a turn whose code crashed in each of `runs` runs.
pub(super) fn give_up(draft: &mut Draft<'_>, id: TurnId, failure: Failure, runs: u8) -> Result<(), Refusal> {
    end(draft, id, TurnResult::Failed(failure), Some(runs))
}

/// Ends a turn: answers the person or effect that waits, reports a failure that nobody waits for, and starts the agent's next
/// turn.
fn end(draft: &mut Draft<'_>, id: TurnId, result: TurnResult, crashes: Option<u8>) -> Result<(), Refusal> {
    let turn = draft.turn(id)?;
    let thread = turn.thread.clone();
    cancel_units(draft, turn)?;
    let (settlement, message, mut next, answer) = match checked_result(draft, turn, result) {
        TurnResult::Done { message, answer, next } => (Settlement::Done, message, next, Ok(answer)),
        TurnResult::Failed(failure) => (Settlement::Failed(failure.clone()), None, Vec::new(), Err(failure)),
    };
    if let Err(failure) = &answer {
        cancel::fail_placeholders(draft, id, failure);
        let is_awaited = draft.spine.waiter(turn) != ReplyTo::Nobody;
        if turn.origin == Origin::Inbox && (!is_awaited || crashes.is_some()) {
            let (agent, task, failure, crashed) = (turn.agent.clone(), turn.task.clone(), failure.clone(), crashes.is_some());
            draft.push(Some(&thread), Event::MessageDeadLettered { agent, task, turn: id, failure, crashed });
        }
        // Before the turn is settled: with its last turn the counters of a request end, and its conversation is forgotten.
        if !is_awaited {
            report::report(draft, turn, failure, crashes.unwrap_or(1));
        }
    }
    next.iter_mut().for_each(|task| task.hops = turn.hops);
    let goes_on = turn.origin == Origin::Inbox && !next.is_empty();
    let follow_up = next.first().map(|task| InboxEntry::FollowUp {
        task: task.clone(),
        reply_to: if next.len() == 1 { turn.reply_to } else { ReplyTo::Nobody },
        cause: turn.cause.clone(),
    });
    let index = draft.length(&thread);
    let message = message.map(Arc::new);
    draft.push(Some(&thread), Event::TurnSettled { turn: id, settlement, message, index, next });
    if !goes_on {
        message::answer_waiter(draft, turn, answer);
    }
    if turn.origin == Origin::Inbox {
        let agent = &turn.agent;
        let Some(state) = draft.spine.agents.get(agent) else { return Ok(()) };
        let waiting = state.inbox.as_ref().and_then(|inbox| inbox.entries.front());
        match follow_up.as_ref().or(waiting) {
            Some(due) => draft.start_next(agent, due),
            None => pending::terminate_if_done(draft, agent, state),
        }
    }
    Ok(())
}

/// Cancels units that the turn did not wait for: a unit is part of the turn that started it and ends with it.
fn cancel_units(draft: &mut Draft<'_>, turn: &Turn) -> Result<(), Refusal> {
    let running = |open: &OpenEffect| match &open.kind {
        OpenKind::Unit(thread) => draft.spine.threads.get(thread)?.turn,
        _ => None,
    };
    let units: Vec<_> = turn.open.iter().filter_map(running).collect();
    cancel::cancel_trees(draft, &units, "the turn that it was a part of has ended")
}

/// Replaces a response that breaks a limit by a failure. A refusal would leave the turn open for ever; it must end one way or
/// the other.
fn checked_result(draft: &Draft<'_>, turn: &Turn, result: TurnResult) -> TurnResult {
    let TurnResult::Done { message, answer, next } = &result else { return result };
    let texts = [message.as_ref().map_or("", |message| &message.text), answer];
    let all =
        texts.into_iter().chain(next.iter().map(|task| &*task.message)).try_for_each(|text| message::check_text(draft, text));
    let checked = all.and_then(|()| next.iter().try_for_each(|task| message::check_task(turn, &task.id)));
    let room = || if next.is_empty() { Ok(()) } else { message::check_activity(draft, &turn.task, next.len() - 1) };
    match checked.and_then(|()| room()) {
        Ok(()) => result,
        Err(refusal) => TurnResult::Failed(refusal.into()),
    }
}

pub(super) fn park(draft: &mut Draft<'_>, id: TurnId, reason: Failure) -> Result<(), Refusal> {
    let thread = draft.turn(id)?.thread.clone();
    draft.push(Some(&thread), Event::TurnParked { turn: id, reason });
    Ok(())
}

/// Notes that a turn only waits. Refused if the log says so already.
pub(super) fn rest(draft: &mut Draft<'_>, id: TurnId) -> Result<(), Refusal> {
    let turn = draft.turn(id)?;
    if !turn.has_unread_answers {
        return Err(Refusal::TurnNotOpen(id));
    }
    let thread = turn.thread.clone();
    draft.push(Some(&thread), Event::TurnRested { turn: id });
    Ok(())
}

pub(super) fn resume(draft: &mut Draft<'_>, id: TurnId) -> Result<(), Refusal> {
    let turn = draft.spine.turns.get(&id).ok_or(Refusal::TurnNotOpen(id))?;
    if !turn.is_parked() {
        return Err(Refusal::NotParked(id));
    }
    let thread = turn.thread.clone();
    let by = draft.person.clone();
    draft.push(Some(&thread), Event::TurnResumed { turn: id, by });
    Ok(())
}
