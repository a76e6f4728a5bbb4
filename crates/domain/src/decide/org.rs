//! Founding the society, creating roles and agents.

use std::sync::Arc;

use super::draft::Draft;
use super::{check_name, check_title, pending};
use crate::evolve::is_past;
use crate::{AgentId, BadOrg, EffectId, Event, Limits, Org, OrgChange, RESERVED_PREFIXES, Refusal, Role, RoleId, Visibility};

pub(super) fn found(draft: &mut Draft<'_>, seed: u64, limits: Limits, role: Arc<Role>) -> Result<(), Refusal> {
    check_name(role.id.as_str())?;
    draft.push(None, Event::SocietyFounded { seed, limits });
    let root = Event::AgentSpawned { agent: AgentId::root(), role: role.id.clone(), parent: None, by: None };
    draft.push(None, Event::RoleCreated { role, by: None });
    draft.push(None, root);
    Ok(())
}

/// Creates everything in the document that does not exist yet. A second import of the same document is refused.
pub(super) fn import(draft: &mut Draft<'_>, org: &Org, root: bool) -> Result<(), Refusal> {
    let changes = org.changes(draft.spine, root)?;
    if changes.is_empty() {
        return Err(BadOrg("everything in it is here already".to_owned()).into());
    }
    changes.into_iter().try_for_each(|change| match change {
        OrgChange::CreateRole(role) => create_role(draft, role, None),
        OrgChange::ChangeRole(role) => change_role(draft, role),
        OrgChange::Spawn { agent, role, parent } => spawn(draft, agent, role, parent, None),
    })
}

pub(super) fn create_role(draft: &mut Draft<'_>, role: Arc<Role>, by: Option<EffectId>) -> Result<(), Refusal> {
    check_name(role.id.as_str())?;
    check_title(&role.name)?;
    // `user` addresses the person.
    if AgentId::from(role.id.as_str()).is_user() {
        return Err(Refusal::NameTaken(role.id.to_string()));
    }
    if draft.has_role(&role.id) {
        return Err(Refusal::NameTaken(role.id.to_string()));
    }
    let thread = own_thread(draft, by)?;
    draft.push(thread.as_ref(), Event::RoleCreated { role, by });
    Ok(())
}

/// A person changes a role. Its creator and the agents that have it stay.
pub(super) fn change_role(draft: &mut Draft<'_>, role: Arc<Role>) -> Result<(), Refusal> {
    let known = draft.spine.roles.get(&role.id).ok_or_else(|| Refusal::UnknownRole(role.id.clone()))?;
    if **known == *role {
        return Err(Refusal::SameRole(role.id.clone()));
    }
    check_title(&role.name)?;
    draft.push(None, Event::RoleChanged { role });
    Ok(())
}

pub(super) fn spawn(
    draft: &mut Draft<'_>,
    agent: AgentId,
    role: RoleId,
    parent: AgentId,
    by: Option<EffectId>,
) -> Result<(), Refusal> {
    check_name(agent.as_str())?;
    if RESERVED_PREFIXES.iter().any(|prefix| agent.as_str().starts_with(prefix)) {
        return Err(Refusal::BadName(agent.to_string()));
    }
    if agent.is_user() || draft.is_named(agent.as_str()) {
        return Err(Refusal::NameTaken(agent.to_string()));
    }
    let is_visible = || Visibility::of_agent(draft.spine, &parent).role(draft.spine, &role);
    if !draft.has_role(&role) || !is_visible() {
        return Err(Refusal::UnknownRole(role));
    }
    if !draft.spawns(&parent) {
        draft.agent(&parent)?;
    }
    if by.is_some() {
        check_room(draft, &parent)?;
    }
    let thread = own_thread(draft, by)?;
    draft.push(thread.as_ref(), Event::AgentSpawned { agent, role, parent: Some(parent), by });
    Ok(())
}

/// Checks the limits for an agent that spawns another (P21). A person is not limited.
fn check_room(draft: &Draft<'_>, parent: &AgentId) -> Result<(), Refusal> {
    let limits = &draft.spine.limits;
    let recent = draft.spine.spawned.iter().filter(|spawn| !is_past(**spawn, draft.at)).count();
    let counts = [
        ("depth", limits.depth, draft.spine.depth(parent)),
        ("the number of agents", limits.agents, draft.spine.staff() + draft.spawned()),
        ("the number made within a minute", limits.spawns_a_minute, recent + draft.spawned()),
    ];
    let over = counts.into_iter().find(|(_, limit, count)| count >= limit).map(|(what, limit, _)| (what, limit));
    let children = most_children(draft, parent);
    // A child that is being terminated still counts, and may pass its own children up.
    let crowded = || {
        let (now, then) = (draft.spine.children(parent).len(), pending::children_to_come(draft, parent, None));
        now.max(then) + draft.spawned_below(parent) >= children
    };
    match over.or_else(|| crowded().then_some(("the number of an agent's children", children))) {
        Some((what, limit)) => Err(Refusal::TooManyAgents { what, limit }),
        None => Ok(()),
    }
}

/// How many children an agent may have.
pub(super) fn most_children(draft: &Draft<'_>, parent: &AgentId) -> usize {
    let most = draft.spine.limits.children;
    let role = draft.spine.agents.get(parent).and_then(|agent| draft.spine.roles.get(&agent.role));
    role.and_then(|role| role.limits.children).unwrap_or(most).min(most)
}

fn own_thread(draft: &Draft<'_>, by: Option<EffectId>) -> Result<Option<crate::ThreadId>, Refusal> {
    by.map(|id| draft.turn(id.turn).map(|turn| turn.thread.clone())).transpose()
}
