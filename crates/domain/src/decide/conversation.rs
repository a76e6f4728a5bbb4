//! Conversations of persons.

use std::sync::Arc;

use super::draft::Draft;
use super::{check_name, check_title, message};
use crate::{AgentId, ConversationChange, Envelope, Event, NewConversation, Refusal, Visibility};

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
