//! Founding the society, making roles and agents.

use std::sync::Arc;

use super::{Draft, check_name};
use crate::{AgentId, EffectId, Event, Limits, Refusal, Role, RoleId};

pub(super) fn found(draft: &mut Draft<'_>, seed: u64, limits: Limits, role: Arc<Role>) -> Result<(), Refusal> {
    check_name(role.id.as_str())?;
    draft.push(None, Event::SocietyFounded { seed, limits });
    let root = Event::AgentSpawned { agent: AgentId::root(), role: role.id.clone(), parent: None, by: None };
    draft.push(None, Event::RoleCreated { role, by: None });
    draft.push(None, root);
    Ok(())
}

pub(super) fn create_role(draft: &mut Draft<'_>, role: Arc<Role>, by: Option<EffectId>) -> Result<(), Refusal> {
    check_name(role.id.as_str())?;
    let made_now = |recorded: &Arc<crate::Recorded>| matches!(&recorded.event, Event::RoleCreated { role: other, .. } if other.id == role.id);
    if draft.spine.roles.contains_key(&role.id) || draft.events.iter().any(made_now) {
        return Err(Refusal::NameTaken(role.id.to_string()));
    }
    let thread = own_thread(draft, by)?;
    draft.push(thread.as_ref(), Event::RoleCreated { role, by });
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
    if agent.is_user() || draft.is_named(agent.as_str()) {
        return Err(Refusal::NameTaken(agent.to_string()));
    }
    let role_made_now =
        |recorded: &Arc<crate::Recorded>| matches!(&recorded.event, Event::RoleCreated { role: made, .. } if made.id == role);
    if !draft.spine.roles.contains_key(&role) && !draft.events.iter().any(role_made_now) {
        return Err(Refusal::UnknownRole(role));
    }
    if !draft.spine.agents.contains_key(&parent) {
        return Err(Refusal::UnknownAgent(parent));
    }
    let thread = own_thread(draft, by)?;
    draft.push(thread.as_ref(), Event::AgentSpawned { agent, role, parent: Some(parent), by });
    Ok(())
}

fn own_thread(draft: &Draft<'_>, by: Option<EffectId>) -> Result<Option<crate::ThreadId>, Refusal> {
    by.map(|id| draft.turn(id.turn).map(|turn| turn.thread.clone())).transpose()
}
