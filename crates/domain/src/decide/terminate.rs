//! Terminating agents: they accept nothing new, finish their inboxes, and then terminate, children first (D12).

use std::collections::{BTreeMap, BTreeSet};

use super::{Draft, cancel, effect, message, org};
use crate::spine::{Agent, InboxEntry};
use crate::{AgentId, Children, Cleared, EffectId, Event, Failure, Outcome, Refusal, ReplyTo, Target};

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

/// How many children an agent will have after the pending terminations that pass children up to it; `also` is one more of
/// those.
pub(super) fn children_to_come(draft: &Draft<'_>, agent: &AgentId, also: Option<&AgentId>) -> usize {
    let children = draft.spine.children(agent);
    let count = |child: &&AgentId| {
        let leaves_its_own = Some(*child) == also || detaches(draft, child);
        if leaves_its_own { children_to_come(draft, child, also) } else { 1 }
    };
    children.iter().map(count).sum()
}

/// Whether a pending termination of an agent passes its children to its parent.
fn detaches(draft: &Draft<'_>, id: &AgentId) -> bool {
    let dismissed = |event: &Event| matches!(event, Event::AgentDismissed { agent, detach: true, .. } if agent == id);
    let termination = draft.spine.agents.get(id).and_then(|agent| agent.termination.as_ref());
    termination.is_some_and(|termination| termination.detach) || draft.events.iter().any(|recorded| dismissed(&recorded.event))
}

fn check_order(draft: &Draft<'_>, agent: &AgentId, children: Children) -> Result<(), Refusal> {
    find_agent(draft, agent)?;
    if *agent == AgentId::root() {
        return Err(Refusal::RootStays);
    }
    if children == Children::Refuse && !draft.spine.children(agent).is_empty() {
        return Err(Refusal::HasChildren(agent.clone()));
    }
    Ok(())
}

/// An agent that exists and is not being terminated.
pub(super) fn find_agent<'a>(draft: &Draft<'a>, id: &AgentId) -> Result<&'a Agent, Refusal> {
    let agent = draft.spine.agents.get(id);
    let is_terminated = || draft.spine.terminated.contains_key(id);
    if agent.map_or_else(is_terminated, |agent| is_terminating(draft, id, agent)) {
        return Err(Refusal::Terminating(id.clone()));
    }
    agent.ok_or_else(|| Refusal::UnknownAgent(id.clone()))
}

fn is_terminating(draft: &Draft<'_>, id: &AgentId, agent: &Agent) -> bool {
    let dismissed = |event: &Event| matches!(event, Event::AgentDismissed { agent, .. } if agent == id);
    agent.termination.is_some() || draft.events.iter().any(|recorded| dismissed(&recorded.event))
}

fn is_terminated(draft: &Draft<'_>, id: &AgentId) -> bool {
    let terminated = |event: &Event| matches!(event, Event::AgentTerminated { agent } if agent == id);
    draft.events.iter().any(|recorded| terminated(&recorded.event))
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
        if !draft.spine.agents.get(member).is_some_and(|state| is_terminating(draft, member, state)) {
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

/// An agent and all below it, children first.
fn subtree(draft: &Draft<'_>, agent: &AgentId) -> Vec<AgentId> {
    let mut subtree = vec![agent.clone()];
    let mut next = 0;
    while next < subtree.len() {
        let children = draft.spine.children(&subtree[next]);
        subtree.extend(children.into_iter().cloned());
        next += 1;
    }
    subtree.reverse();
    subtree
}

/// Terminates an agent with a pending termination once it is idle and has nobody below it; then perhaps its parent.
pub(super) fn terminate_if_done(draft: &mut Draft<'_>, agent: &AgentId, state: &Agent) {
    if !is_terminating(draft, agent, state) || is_terminated(draft, agent) || !is_idle(draft, agent, state) {
        return;
    }
    let dismissal = draft.events.iter().find_map(|recorded| match &recorded.event {
        Event::AgentDismissed { agent: other, detach, waiter, .. } if other == agent => Some((*detach, *waiter)),
        _ => None,
    });
    let termination = state.termination.as_ref().map(|termination| (termination.detach, termination.waiter));
    let (detach, waiter) = termination.or(dismissal).unwrap_or_default();
    if !detach && subtree(draft, agent).iter().any(|member| member != agent && !is_terminated(draft, member)) {
        return;
    }
    draft.push(None, Event::AgentTerminated { agent: agent.clone() });
    if let Some(waiter) = waiter {
        effect::answer(draft, waiter, Outcome::Answer(agent.as_str().into()));
    }
    if let Some(parent) = &state.parent {
        terminate_all_if_done(draft, [parent]);
    }
}

/// The same for several agents.
pub(super) fn terminate_all_if_done<'a>(draft: &mut Draft<'_>, agents: impl IntoIterator<Item = &'a AgentId>) {
    for agent in agents {
        if let Some(state) = draft.spine.agents.get(agent) {
            terminate_if_done(draft, agent, state);
        }
    }
}

/// Whether an agent will have no turn after this command.
fn is_idle(draft: &Draft<'_>, id: &AgentId, agent: &Agent) -> bool {
    agent.turn.is_none_or(|turn| draft.settles(turn)) && !draft.starts(id)
}

/// Terminates an agent and all below it at once, with their work undone. Those who wait for it get a failure.
pub(super) fn force(draft: &mut Draft<'_>, agent: &AgentId) {
    let spine = draft.spine;
    let goes = |member: &AgentId| spine.agents.get(member).is_some_and(|state| is_terminating(draft, member, state));
    let subtree: Vec<_> =
        subtree(draft, agent).into_iter().filter(|member| goes(member) && !is_terminated(draft, member)).collect();
    let mut turns = BTreeSet::new();
    for turn in subtree.iter().filter_map(|member| spine.agents.get(member)?.turn) {
        turns.extend(cancel::below(spine, &Target::Turn(turn)).unwrap_or_default());
    }
    let mut inboxes = cancel::inboxes(spine, &Cleared::AskedBy(turns.iter().copied().collect()));
    let full = subtree.iter().filter(|member| spine.agents.get(*member).is_some_and(|agent| agent.inbox.is_some()));
    inboxes.extend(full.map(|member| (member.clone(), Cleared::Everything)).collect::<BTreeMap<_, _>>());
    let failure = Failure::new("terminated", format!("`{agent}` was terminated before it was done"));
    cancel::cancel_turns(draft, &turns, &inboxes, &failure);
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
