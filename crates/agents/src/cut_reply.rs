//! What a model is told when its reply reached the limit of tokens before it answered, or within a call.

use polis_domain::{Finish, Reply};
use polis_ports::ChatMessage;

/// Whether a reply was cut before it answered: it has no text, or it was about to call a tool.
pub(crate) fn says_nothing(reply: &Reply) -> bool {
    let is_unanswered = reply.text.trim().is_empty() || reply.cut_call.is_some();
    reply.finish == Finish::Length && reply.tool_calls.is_empty() && is_unanswered
}

/// What the conversation goes on with after such a reply: the text that it has, and how to go on.
pub(crate) fn messages(reply: &Reply) -> Vec<ChatMessage> {
    const NOTHING: &str =
        "[polis] Your reply reached the limit of tokens before it said anything. Answer briefly, or call a tool with less.";
    let said = (!reply.text.trim().is_empty()).then(|| ChatMessage::said(reply));
    said.into_iter().chain([ChatMessage::user(note(reply).unwrap_or_else(|| NOTHING.to_owned()))]).collect()
}

/// That a call of the reply was not made, if one was cut.
pub(crate) fn note(reply: &Reply) -> Option<String> {
    let tool = reply.cut_call.as_ref().filter(|_| reply.finish == Finish::Length)?;
    Some(format!(
        "[polis] Your reply reached the limit of tokens within a call of {tool}, so this call was not made. Make it again with shorter \
         arguments, or in several parts."
    ))
}
