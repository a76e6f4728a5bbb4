//! What a model is shown when its reply reached the limit of tokens before it answered, or within a call, or had too many calls.

use polis_domain::{Finish, Reply};
use polis_ports::ChatMessage;

use crate::workflow::Language;

/// Whether a reply was cut before it answered: it has no text, or it was about to call a tool.
pub(crate) fn says_nothing(reply: &Reply) -> bool {
    let is_unanswered = reply.text.trim().is_empty() || reply.cut_call.is_some();
    reply.finish == Finish::Length && reply.tool_calls.is_empty() && is_unanswered
}

/// What the conversation goes on with after such a reply: the text that it has, and how to go on.
pub(crate) fn messages(reply: &Reply, language: Language) -> Vec<ChatMessage> {
    let said = (!reply.text.trim().is_empty()).then(|| ChatMessage::said(reply));
    let note = note(reply, language).unwrap_or_else(|| language.notes().cut_before_text.to_owned());
    said.into_iter().chain([ChatMessage::user(note)]).collect()
}

/// That a call of the reply was not made, if one was cut, or that calls were dropped.
pub(crate) fn note(reply: &Reply, language: Language) -> Option<String> {
    if reply.had_excess_calls() {
        return Some((language.notes().excess_calls)(Reply::MAX_CALLS));
    }
    let tool = reply.cut_call.as_ref().filter(|_| reply.finish == Finish::Length)?;
    Some((language.notes().cut_call)(tool))
}
