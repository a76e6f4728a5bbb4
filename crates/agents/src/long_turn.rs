//! Makes room in a turn whose own calls fill the model's window: the results of its older rounds are shortened first; if that is
//! not enough, the model writes notes that take the place of those rounds.

use polis_domain::{Failure, ToolChoice};
use polis_engine::Turn;
use polis_ports::{ChatMessage, ModelRequest, ModelSettings, estimate_tokens};

use crate::conversation::{ContextUsage, SHORT_BYTES, SUMMARY_TOKENS, shorten_result};

/// So many of the newest rounds of tool use stay as they are.
const KEEP_ROUNDS: usize = 2;

const WRITE_NOTES: &str = "[polis] This turn has become too long to show you all of it. Write notes for yourself now; they take the \
place of your calls so far: what you found, with names, numbers, paths and ids word for word, which files you changed and how, \
what is still to do. Answer with the notes alone.";

const NOTES: &str = "[polis] Your notes on what you did in this turn so far. The calls themselves are no longer shown.";

/// What vendors say of a request that the model's window has no room for.
const TOO_LONG: &[&str] = &[
    "context_length",
    "context length",
    "context window",
    "context size",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "maximum number of tokens",
    "reduce the length",
];

/// Whether a model was not asked because the request is longer than its window.
pub(crate) fn is_too_long(failure: &Failure) -> bool {
    let message = failure.message.to_lowercase();
    &*failure.code == "model_rejected" && TOO_LONG.iter().any(|words| message.contains(words))
}

/// Makes room where the messages are longer than the model's window allows. The turn's own rounds begin at `own`.
pub(crate) async fn make_room(turn: &mut Turn, request: &mut ModelRequest, own: usize) -> Result<(), Failure> {
    if let Some(limit) = turn.window().map(ContextUsage::most)
        && tokens(&request.messages) > limit
    {
        shorten_rounds(turn, request, own, limit).await?;
    }
    Ok(())
}

/// Makes the messages about half as long, because the vendor has refused them. Gives whether they are shorter now.
pub(crate) async fn halve(turn: &mut Turn, request: &mut ModelRequest, own: usize) -> Result<bool, Failure> {
    let before = tokens(&request.messages);
    shorten_rounds(turn, request, own, before / 2).await?;
    Ok(tokens(&request.messages) < before)
}

async fn shorten_rounds(turn: &mut Turn, request: &mut ModelRequest, own: usize, limit: u64) -> Result<(), Failure> {
    let own = own.min(request.messages.len());
    let is_round = |message: &ChatMessage| matches!(message, ChatMessage::Assistant { .. });
    let rounds: Vec<usize> = (own..request.messages.len()).filter(|place| is_round(&request.messages[*place])).collect();
    let Some(cut) = rounds.len().checked_sub(KEEP_ROUNDS).filter(|kept| *kept > 0).map(|kept| rounds[kept]) else {
        return Ok(());
    };
    for message in &mut request.messages[own..cut] {
        // What was shortened before is a little longer than the limit.
        if let ChatMessage::Tool { name, content, .. } = message
            && content.len() > 2 * SHORT_BYTES
        {
            *content = shorten_result(turn, name, content, true).await;
        }
    }
    if tokens(&request.messages) <= limit {
        return Ok(());
    }
    let mut messages = request.messages[..cut].to_vec();
    messages.push(ChatMessage::user(WRITE_NOTES));
    let asked = ModelRequest {
        system: request.system.clone(),
        tools: turn.tools(),
        tool_choice: ToolChoice::None,
        messages,
        settings: ModelSettings { max_tokens: Some(SUMMARY_TOKENS), ..ModelSettings::default() },
        aside: true,
        ..ModelRequest::default()
    };
    let reply = turn.model(asked).await?;
    let notes = reply.text.trim();
    if !notes.is_empty() {
        request.messages.splice(own..cut, [ChatMessage::user(format!("{NOTES}\n\n{notes}"))]);
    }
    Ok(())
}

fn tokens(messages: &[ChatMessage]) -> u64 {
    let of = |message: &ChatMessage| match message {
        ChatMessage::User { text, .. } => estimate_tokens(text),
        ChatMessage::Assistant { text, tool_calls, .. } => {
            estimate_tokens(text) + tool_calls.iter().map(|call| estimate_tokens(&call.arguments)).sum::<u64>()
        }
        ChatMessage::Tool { content, .. } => estimate_tokens(content),
    };
    messages.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_vendors_words_about_its_window_mean_too_long() {
        let is = |code: &str, message: &str| is_too_long(&Failure::new(code.to_owned(), message));
        assert!(is("model_rejected", "400: This model's maximum context length is 8192 tokens"));
        assert!(is("model_rejected", "prompt is too long: 210000 tokens > 200000 maximum"));
        assert!(!is("model_rejected", "invalid key"));
        assert!(!is("budget", "the context window"));
    }
}
