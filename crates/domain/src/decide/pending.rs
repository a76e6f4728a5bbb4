//! Pending terminations: an agent goes when it is idle and nobody is left below it (D12).

use super::draft::Draft;
use super::overlay::Dismissal;
use crate::spine::Agent;
use crate::{AgentId, Event, Outcome};

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
pub(super) fn detaches(draft: &Draft<'_>, id: &AgentId) -> bool {
    draft.termination(id).is_some_and(|termination| termination.detach)
}

/// An agent and all below it, children first.
pub(super) fn subtree(draft: &Draft<'_>, agent: &AgentId) -> Vec<AgentId> {
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
    let Some(Dismissal { detach, waiter }) = draft.termination(agent) else { return };
    if draft.terminates(agent) || !draft.is_idle(agent) {
        return;
    }
    if !detach && subtree(draft, agent).iter().any(|member| member != agent && !draft.terminates(member)) {
        return;
    }
    draft.push(None, Event::AgentTerminated { agent: agent.clone() });
    if let Some(waiter) = waiter {
        draft.answer(waiter, Outcome::Answer(agent.as_str().into()));
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
