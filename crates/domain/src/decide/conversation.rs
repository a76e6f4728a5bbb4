//! Conversations of persons.

use std::sync::Arc;

use super::draft::Draft;
use super::pending::subtree;
use super::{check_name, check_title, message, terminate};
use crate::{
    AgentId, ArtifactId, Children, ConversationChange, Envelope, Event, NewConversation, PersonId, Refusal, TaskActivity,
    TaskId, Timestamp, Visibility,
};

/// Starts a conversation, with its first message if there is one. What was said before elsewhere counts as if it had arrived in
/// an inbox: it may have no more bytes.
pub(super) fn start(
    draft: &mut Draft<'_>,
    conversation: NewConversation,
    envelope: Option<Arc<Envelope>>,
) -> Result<(), Refusal> {
    let NewConversation { agent, role, person, title, settings, messages } = conversation;
    check_name(agent.as_str())?;
    check_name(person.as_str())?;
    check_title(&title)?;
    if agent.is_user() || draft.is_named(agent.as_str()) {
        return Err(Refusal::NameTaken(agent.to_string()));
    }
    let of_root = || draft.spine.agents.get(&AgentId::root()).map(|root| root.role.clone());
    let role = role.or_else(of_root).unwrap_or_else(|| AgentId::ROOT.into());
    if !draft.has_role(&role) || !Visibility::Person(person.clone()).role(draft.spine, &role) {
        return Err(Refusal::UnknownRole(role));
    }
    let (bytes, limit) = (messages.iter().map(|message| message.text.len()).sum(), draft.spine.limits.inbox_bytes);
    if bytes > limit {
        return Err(Refusal::TextTooLong { bytes, limit });
    }
    if let Some(envelope) = envelope.as_ref().filter(|envelope| envelope.to != agent) {
        return Err(Refusal::UnknownAgent(envelope.to.clone()));
    }
    let thread = agent.main_thread();
    draft.push(Some(&thread), Event::ConversationStarted { agent, role, person, title, settings, messages });
    envelope.map_or(Ok(()), |envelope| message::send(draft, envelope))
}

/// Changes title, list place or settings.
pub(super) fn change(draft: &mut Draft<'_>, agent: AgentId, change: ConversationChange) -> Result<(), Refusal> {
    if draft.spine.conversation(&agent).is_none() {
        return Err(Refusal::UnknownConversation(agent));
    }
    change.title.as_deref().map_or(Ok(()), check_title)?;
    let thread = agent.main_thread();
    draft.push(Some(&thread), Event::ConversationChanged { agent, change });
    Ok(())
}

/// Erases the content of a conversation. One that goes on is ended first.
pub(super) fn erase(
    draft: &mut Draft<'_>,
    agent: AgentId,
    artifacts: Vec<ArtifactId>,
    unused_since: Option<Timestamp>,
) -> Result<(), Refusal> {
    let spine = draft.spine;
    let is_ended = spine.terminated.get(&agent).is_some_and(|gone| gone.person.is_some());
    if spine.terminated.get(&agent).is_some_and(|gone| gone.erased) {
        return Err(Refusal::ErasedAlready(agent));
    }
    if !is_ended && spine.conversation(&agent).is_none() {
        return Err(Refusal::UnknownConversation(agent));
    }
    let is_used = |since| {
        let is_own = |activity: &TaskActivity| activity.conversation.as_ref() == Some(&agent);
        spine.conversation(&agent).is_some_and(|it| it.pinned || it.active_at >= since) || spine.activities.values().any(is_own)
    };
    if unused_since.is_some_and(is_used) {
        return Err(Refusal::ConversationInUse(agent));
    }
    if let Some((busy, task)) = helper(draft, &agent) {
        return Err(Refusal::ConversationBusy { agent: busy, task });
    }
    if !is_ended {
        terminate::terminate(draft, agent.clone(), Children::Cascade, "the conversation was erased".to_owned(), true)?;
        if !draft.terminates(&agent) {
            return Err(Refusal::Terminating(agent));
        }
    }
    let by = draft.person.clone().unwrap_or_else(PersonId::owner);
    let thread = agent.main_thread();
    draft.push(Some(&thread), Event::ConversationErased { agent, by, artifacts });
    Ok(())
}

/// An agent outside of a conversation that has something to do for it.
fn helper(draft: &Draft<'_>, agent: &AgentId) -> Option<(AgentId, TaskId)> {
    let own = subtree(draft, agent);
    let is_open =
        |task: &TaskId| draft.spine.activities.get(task).is_some_and(|activity| activity.conversation.as_ref() == Some(agent));
    let turns = draft.spine.turns.values().map(|turn| (&turn.agent, &turn.task));
    let inboxes = draft.spine.agents.iter().flat_map(|(id, agent)| {
        agent.inbox.iter().flat_map(move |inbox| inbox.entries.iter().map(move |entry| (id, entry.task())))
    });
    let mut outside = turns.chain(inboxes).filter(|(id, task)| !own.contains(id) && is_open(task));
    outside.next().map(|(id, task)| (id.clone(), task.clone()))
}

/// Notes that nothing is left of what was erased.
pub(super) fn confirm_erased(draft: &mut Draft<'_>, agent: AgentId, artifacts: Vec<ArtifactId>) {
    if draft.spine.erasing.contains_key(&agent) {
        let thread = agent.main_thread();
        draft.push(Some(&thread), Event::ErasureDone { agent, artifacts });
    }
}
