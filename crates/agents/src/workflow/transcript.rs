//! What the transcript of an order tells: its calls with their results, and the last words.

use polis_domain::ToolCall;

use super::backend::{AiMessage, Speaker};
use super::truncate::{clipped, one_line};

/// The calls of a transcript with their results and where these stand. One result follows for each call of a round, in order;
/// the ids say nothing, since models use them twice.
pub(super) fn results(transcript: &[AiMessage]) -> impl Iterator<Item = (usize, &ToolCall, &AiMessage)> {
    transcript.iter().enumerate().flat_map(|(round, message)| {
        let results = transcript[round + 1..].iter().take_while(|next| next.role == Speaker::Tool);
        message.tool_calls.iter().zip(results).enumerate().map(move |(n, (call, result))| (round + 1 + n, call, result))
    })
}

/// What was called before a failure, for the planner of what is left.
pub(super) fn called(transcript: &[AiMessage], words: &str) -> String {
    let lines = results(transcript).take(MOST_CALLED).map(|(_, call, result)| {
        let failed = if result.is_error { " FAILED" } else { "" };
        let arguments = result.changed.as_ref().unwrap_or(&call.arguments);
        format!("\n- {} {}{failed}", one_line(&call.name), one_line(&clipped(arguments, CALLED_BYTES)))
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\n{words}{lines}") }
}

/// Most calls, and most bytes of the arguments of each, that a planner is told of.
const MOST_CALLED: usize = 20;
const CALLED_BYTES: usize = 200;

/// Most bytes of the last words of an order that came to nothing.
const LAST_WORDS_BYTES: usize = 8_000;

/// What a role said last, if it said anything in words.
pub(super) fn last_words(transcript: &[AiMessage]) -> String {
    let said = transcript.iter().rev().find(|message| message.role == Speaker::Assistant && !message.content.trim().is_empty());
    said.map(|message| clipped(message.content.trim(), LAST_WORDS_BYTES).into_owned()).unwrap_or_default()
}
