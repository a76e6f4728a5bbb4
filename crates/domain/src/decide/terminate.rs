//! Terminating agents: they accept nothing new, finish their inboxes, and then terminate, children first (D12).

use std::collections::{BTreeMap, BTreeSet};

use super::draft::Draft;
use super::pending::{children_to_come, detaches, subtree, terminate_all_if_done};
use super::{cancel, message, org};
use crate::inbox::InboxEntry;
use crate::{AgentId, Children, Cleared, EffectId, Event, Failure, Refusal, ReplyTo, Target};

/// A person terminates an agent.
pub(super) fn terminate(
    draft: &mut Draft<'_>,
    agent: AgentId,
    children: Children,
    reason: String,
    now: bool,
) -> Result<(), Refusal> {
    let is_terminating = draft.spine.agents.get(&agent).is_some_and(|agent| agent.termination.is_some());
    if !(now && is_terminating) {
        check_order(draft, &agent, children)?;
        dismiss(draft, &AgentId::user(), &agent, children, &reason, None);
    }
    if now {
        force(draft, &agent);
    }
    Ok(())
}

/// Whether an agent may terminate another one: only its parent may (R176).
pub(super) fn check(draft: &Draft<'_>, caller: &AgentId, agent: &AgentId, children: Children) -> Result<(), Refusal> {
    check_order(draft, agent, children)?;
    let parent = draft.spine.agents.get(agent).and_then(|agent| agent.parent.as_ref());
    if parent != Some(caller) {
        return Err(Refusal::NotYourChild(agent.clone()));
    }
    if children == Children::Detach { check_room_above(draft, agent) } else { Ok(()) }
}

/// Whether the agent that inherits the children of a terminated one has room for them (P21). A person may always terminate.
fn check_room_above(draft: &Draft<'_>, agent: &AgentId) -> Result<(), Refusal> {
    let above = |id: &AgentId| draft.spine.agents.get(id)?.parent.clone();
    let mut heir = above(agent);
    while let Some(termination) = heir.take_if(|heir| detaches(draft, heir)) {
        heir = above(&termination);
    }
    let Some(parent) = heir else { return Ok(()) };
    let limit = org::most_children(draft, &parent);
    // A termination that does not raise the number of children is never refused.
    let (now, then) = (children_to_come(draft, &parent, None), children_to_come(draft, &parent, Some(agent)));
    if then > limit && then > now {
        return Err(Refusal::NoRoomAbove { agent: agent.clone(), parent, limit });
    }
    Ok(())
}

fn check_order(draft: &Draft<'_>, agent: &AgentId, children: Children) -> Result<(), Refusal> {
    let known = draft.agent(agent)?;
    if *agent == AgentId::root() {
        return Err(Refusal::RootStays);
    }
    if children == Children::Detach && known.parent.is_none() {
        return Err(Refusal::NoParent(agent.clone()));
    }
    if children == Children::Refuse && !draft.spine.children(agent).is_empty() {
        return Err(Refusal::HasChildren(agent.clone()));
    }
    Ok(())
}

/// Orders the termination of an agent and, unless they are detached, of all below it. Idle agents terminate at once.
pub(super) fn dismiss(
    draft: &mut Draft<'_>,
    caller: &AgentId,
    agent: &AgentId,
    children: Children,
    reason: &str,
    waiter: Option<EffectId>,
) {
    let detach = children == Children::Detach;
    let subtree = if detach { vec![agent.clone()] } else { subtree(draft, agent) };
    for member in &subtree {
        if draft.termination(member).is_none() {
            let dismissed = Event::AgentDismissed {
                agent: member.clone(),
                caller: caller.clone(),
                reason: reason.to_owned(),
                detach: detach && member == agent,
                waiter: waiter.filter(|_| member == agent),
            };
            draft.push(None, dismissed);
        }
    }
    terminate_all_if_done(draft, &subtree);
}

/// Terminates an agent and all below it at once, with their work undone. Those who wait for it get a failure.
pub(super) fn force(draft: &mut Draft<'_>, agent: &AgentId) {
    let spine = draft.spine;
    let goes = |member: &AgentId| draft.termination(member).is_some() && !draft.terminates(member);
    let subtree: Vec<_> = subtree(draft, agent).into_iter().filter(goes).collect();
    let mut turns = BTreeSet::new();
    for turn in subtree.iter().filter_map(|member| spine.agents.get(member)?.turn) {
        turns.extend(cancel::below(spine, &Target::Turn(turn)).unwrap_or_default());
    }
    let mut inboxes = cancel::inboxes(spine, &Cleared::AskedBy(turns.iter().copied().collect()));
    let full = subtree.iter().filter(|member| spine.agents.get(*member).is_some_and(|agent| agent.inbox.is_some()));
    inboxes.extend(full.map(|member| (member.clone(), Cleared::Everything)).collect::<BTreeMap<_, _>>());
    let failure = Failure::new("terminated", format!("`{agent}` was terminated before it was done"));
    cancel::cancel_turns(draft, &turns, &inboxes, &failure, BTreeMap::new());
    return_unread(draft, &subtree, &failure);
    terminate_all_if_done(draft, &subtree);
}

/// Notifies remaining agents that messages to terminated ones were never read; not the agent that ordered the termination.
fn return_unread(draft: &mut Draft<'_>, subtree: &[AgentId], failure: &Failure) {
    let spine = draft.spine;
    for agent in subtree.iter().filter_map(|member| spine.agents.get(member)) {
        let caller = agent.termination.as_ref().map(|termination| &termination.caller);
        for due in agent.inbox.iter().flat_map(|inbox| &inbox.entries) {
            if let InboxEntry::Envelope(envelope) = due
                && envelope.reply_to == ReplyTo::Nobody
                && Some(&envelope.from) != caller
                && !subtree.contains(&envelope.from)
            {
                message::return_to_sender(draft, envelope, failure);
            }
        }
    }
}
