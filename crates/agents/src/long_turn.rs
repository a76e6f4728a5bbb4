//! Makes room in a turn whose own calls fill the model's window: the model writes notes that take the place of its older rounds.

use std::ops::Range;
use std::sync::Arc;

use polis_domain::{Failure, ToolChoice};
use polis_engine::Turn;
use polis_ports::{ChatMessage, ModelRequest, ModelSettings, ToolSpec, estimate_tokens};

use crate::conversation::{ContextUsage, GET_ARTIFACT, SHORT_BYTES, SUMMARY_TOKENS, language, shorten_result};

/// So many of the newest rounds of tool use stay as they are.
const KEEP_ROUNDS: usize = 2;

/// Most results that are named below notes, the newest ones.
const MAX_KEPT: usize = 20;

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

/// Makes room where the messages are longer than the model's window allows: notes of the model, written while it still sees all of
/// them, take the place of the turn's older rounds. The rounds begin at `own`; `tools` are those of the turn's requests.
pub(crate) async fn make_room(
    turn: &mut Turn,
    request: &mut ModelRequest,
    own: usize,
    tools: &Arc<[ToolSpec]>,
) -> Result<(), Failure> {
    if let Some(limit) = turn.window().map(ContextUsage::most)
        && tokens(&request.messages) > limit
        && let Some(rounds) = older_rounds(request, own)
    {
        write_notes(turn, request, rounds, tools).await?;
    }
    Ok(())
}

/// Makes the messages about half as long, because the vendor has refused them. Gives whether they are shorter now.
pub(crate) async fn halve(
    turn: &mut Turn,
    request: &mut ModelRequest,
    own: usize,
    tools: &Arc<[ToolSpec]>,
) -> Result<bool, Failure> {
    let before = tokens(&request.messages);
    let Some(rounds) = older_rounds(request, own) else { return Ok(false) };
    for message in &mut request.messages[rounds.clone()] {
        if let ChatMessage::Tool { name, content, .. } = message
            && is_long(content)
        {
            *content = shorten_result(turn, name, content, true).await;
        }
    }
    if tokens(&request.messages) > before / 2 {
        write_notes(turn, request, rounds, tools).await?;
    }
    Ok(tokens(&request.messages) < before)
}

/// The rounds of tool use that need not be shown as they are; none if there are too few.
fn older_rounds(request: &ModelRequest, own: usize) -> Option<Range<usize>> {
    let is_round = |message: &ChatMessage| matches!(message, ChatMessage::Assistant { .. });
    let rounds: Vec<usize> = (own..request.messages.len()).filter(|place| is_round(&request.messages[*place])).collect();
    let kept = rounds.len().checked_sub(KEEP_ROUNDS).filter(|kept| *kept > 0)?;
    Some(own..rounds[kept])
}

/// Whether a result is longer than one that was shortened.
fn is_long(content: &str) -> bool {
    content.len() > 2 * SHORT_BYTES
}

/// Has the model write notes that take the place of these rounds. What they do not say can be read again.
async fn write_notes(
    turn: &mut Turn,
    request: &mut ModelRequest,
    rounds: Range<usize>,
    tools: &Arc<[ToolSpec]>,
) -> Result<(), Failure> {
    let words = language(turn).await.notes();
    let mut messages = request.messages[..rounds.end].to_vec();
    messages.push(ChatMessage::user(words.write_notes));
    let asked = ModelRequest {
        system: request.system.clone(),
        tools: tools.clone(),
        tool_choice: ToolChoice::None,
        messages,
        settings: ModelSettings { max_tokens: Some(SUMMARY_TOKENS), ..ModelSettings::default() },
        aside: true,
        purpose: "notes".into(),
        ..ModelRequest::default()
    };
    let reply = turn.model(asked).await?;
    let notes = reply.text.trim();
    if notes.is_empty() {
        return Ok(());
    }
    let mut text = format!("{}\n\n{notes}", words.own_notes);
    let long = request.messages[rounds.clone()].iter().filter_map(|message| match message {
        ChatMessage::Tool { name, content, .. } if is_long(content) => Some((name.clone(), content.clone())),
        _ => None,
    });
    let long: Vec<_> = long.collect();
    let named = if turn.has_tool(GET_ARTIFACT) { &long[long.len().saturating_sub(MAX_KEPT)..] } else { &[] };
    for (name, content) in named {
        if let Ok(artifact) = turn.put_artifact(&format!("{name}-result.txt"), "text/plain", content.as_bytes()).await {
            let begin: String = content.lines().next().unwrap_or_default().chars().take(80).collect();
            text += &format!("\n{}", (words.kept_result)(name, &artifact.to_string(), &begin));
        }
    }
    request.messages.splice(rounds, [ChatMessage::user(text)]);
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
