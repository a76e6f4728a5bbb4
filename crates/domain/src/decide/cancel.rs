//! Cancelling a task or a turn, with everything below it, children first (P22).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::draft::Draft;
use super::{message, pending};
use crate::inbox::{Inbox, InboxEntry};
use crate::spine::{Agent, Spine};
use crate::{
    AgentId, Cleared, EffectId, Event, Failure, FailureCode, Message, MessageKind, MessagePatch, Origin, Outcome, Refusal,
    ReplyTo, Settlement, Target, TaskId, TurnId,
};

pub(super) fn cancel(
    draft: &mut Draft<'_>,
    target: Target,
    reason: String,
    said: Vec<(TurnId, Arc<Message>)>,
) -> Result<(), Refusal> {
    let failure = Failure::new(FailureCode::Cancelled, if reason.is_empty() { "cancelled".to_owned() } else { reason });
    let turns = below(draft.spine, &target)?;
    let cleared = match &target {
        Target::Task(task) => Cleared::Task(task.clone()),
        Target::Turn(_) => Cleared::AskedBy(turns.iter().copied().collect()),
    };
    let inboxes = inboxes(draft.spine, &cleared);
    if let (Target::Task(task), true, true) = (&target, turns.is_empty(), inboxes.is_empty()) {
        return Err(Refusal::UnknownTask(task.clone()));
    }
    cancel_turns(draft, &turns, &inboxes, &failure, said.into_iter().collect());
    Ok(())
}

/// Cancels several turns with everything below them. They are cancelled together: if one went after the other, an agent that the
/// first sets free would begin what the second asked it.
pub(super) fn cancel_trees(draft: &mut Draft<'_>, tops: &[TurnId], reason: &str) -> Result<(), Refusal> {
    let mut turns = BTreeSet::new();
    for top in tops {
        turns.extend(below(draft.spine, &Target::Turn(*top))?);
    }
    if !turns.is_empty() {
        let inboxes = inboxes(draft.spine, &Cleared::AskedBy(turns.iter().copied().collect()));
        cancel_turns(draft, &turns, &inboxes, &Failure::new(FailureCode::Cancelled, reason), BTreeMap::new());
    }
    Ok(())
}

/// Cancels turns and clears inbox entries, answers those who wait outside, and starts the next turns of the freed agents.
pub(super) fn cancel_turns(
    draft: &mut Draft<'_>,
    turns: &BTreeSet<TurnId>,
    inboxes: &BTreeMap<AgentId, Cleared>,
    failure: &Failure,
    mut said: BTreeMap<TurnId, Arc<Message>>,
) {
    let spine = draft.spine;
    // Children start after their parents, so reverse order cancels children first.
    for id in turns.iter().rev() {
        let Some(stopped) = spine.turns.get(id) else { continue };
        let thread = stopped.thread.clone();
        let settlement = Settlement::Cancelled(failure.clone());
        fail_placeholders(draft, *id, failure);
        let mut message = said.remove(id);
        if let Some(message) = message.as_mut().filter(|message| message.text.len() > spine.limits.text_bytes) {
            let text = &mut Arc::make_mut(message).text;
            text.truncate(text.floor_char_boundary(spine.limits.text_bytes));
        }
        let index = draft.length(&thread);
        draft.push(Some(&thread), Event::TurnSettled { turn: *id, settlement, message, index, next: Vec::new() });
    }
    for (agent, cleared) in inboxes {
        draft.push(None, Event::InboxCleared { agent: agent.clone(), of: cleared.clone() });
    }
    answer_waiting(draft, turns, inboxes, failure);
    let freed = turns.iter().filter_map(|id| spine.turns.get(id).filter(|turn| turn.origin == Origin::Inbox));
    let freed: Vec<_> = freed.map(|turn| &turn.agent).collect();
    for agent in &freed {
        let Some(state) = spine.agents.get(*agent) else { continue };
        let goes = |due: &&InboxEntry, inbox| !inboxes.get(*agent).is_some_and(|cleared| cleared.takes(due, inbox));
        if let Some(due) = state.inbox.as_ref().and_then(|inbox| inbox.entries.iter().find(|due| goes(due, inbox))) {
            draft.start_next(agent, due);
        }
    }
    pending::terminate_all_if_done(draft, freed);
}

/// Writes the failure into placeholder messages whose sub-threads have no result.
pub(super) fn fail_placeholders(draft: &mut Draft<'_>, id: TurnId, failure: &Failure) {
    let Some(turn) = draft.spine.turns.get(&id) else { return };
    for (n, (index, says)) in (turn.next..).zip(&turn.held) {
        let mut text = format!("{says}{failure}");
        text.truncate(text.floor_char_boundary(draft.spine.limits.text_bytes));
        let patch = MessagePatch { text: Some(text), ..MessagePatch::default() };
        draft.push(Some(&turn.thread), Event::MessageUpdated { by: EffectId { turn: id, n }, index: *index, patch });
    }
}

/// The open turns that a target includes.
pub(super) fn below(spine: &Spine, target: &Target) -> Result<BTreeSet<TurnId>, Refusal> {
    match target {
        Target::Task(task) => Ok(spine.turns.iter().filter(|(_, turn)| turn.task == *task).map(|(id, _)| *id).collect()),
        Target::Turn(top) => {
            spine.turns.get(top).ok_or(Refusal::TurnNotOpen(*top))?;
            let mut turns = BTreeSet::from([*top]);
            for (id, turn) in spine.turns.range(top..) {
                if matches!(spine.waiter(turn), ReplyTo::Effect(asked) if turns.contains(&asked.turn)) {
                    turns.insert(*id);
                }
            }
            Ok(turns)
        }
    }
}

/// The inboxes that have such entries, by agent.
pub(super) fn inboxes(spine: &Spine, cleared: &Cleared) -> BTreeMap<AgentId, Cleared> {
    let takes = |inbox: &Inbox| inbox.entries.iter().any(|due| cleared.takes(due, inbox));
    let concerned = |agent: &Agent| agent.inbox.as_deref().is_some_and(takes);
    spine.agents.iter().filter(|(_, agent)| concerned(agent)).map(|(id, _)| (id.clone(), cleared.clone())).collect()
}

/// Answers all who wait and are not cancelled themselves: the person once for each task, and other turns.
fn answer_waiting(draft: &mut Draft<'_>, turns: &BTreeSet<TurnId>, inboxes: &BTreeMap<AgentId, Cleared>, failure: &Failure) {
    let spine = draft.spine;
    let mut answer = BTreeSet::<TaskId>::new();
    for id in turns {
        let Some(stopped) = spine.turns.get(id) else { continue };
        match stopped.reply_to {
            ReplyTo::User if !answer.insert(stopped.task.clone()) => {}
            ReplyTo::Effect(asked) if turns.contains(&asked.turn) => {}
            _ => message::answer_waiter(draft, stopped, Err(failure.clone())),
        }
    }
    for (agent, cleared) in inboxes {
        let Some(inbox) = spine.agents.get(agent).and_then(|agent| agent.inbox.as_ref()) else { continue };
        for due in inbox.entries.iter().filter(|due| cleared.takes(due, inbox)) {
            match due.reply_to() {
                ReplyTo::User if answer.insert(due.task().clone()) => {
                    let text = failure.message.as_str().into();
                    message::send_to_user(draft, agent, due.task(), MessageKind::Failure(failure.clone()), text);
                }
                ReplyTo::Effect(asked) if !turns.contains(&asked.turn) => {
                    draft.answer(asked, Outcome::Failed(failure.clone()));
                }
                ReplyTo::User | ReplyTo::Effect(_) | ReplyTo::Nobody => {}
            }
        }
    }
}
