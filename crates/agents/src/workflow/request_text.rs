//! The request as every role reads it: what the person wants, what they have before them, and what was said before.

use std::borrow::Cow;

use super::backend::{AiMessage, Speaker};
use super::phrases::phrases;
use super::truncate::{clipped, quoted};
use super::{Language, RunOptions};

/// The name of a message that stands for older ones. It is shown however long the others are.
pub(super) const SUMMED_UP: &str = "summary";

/// Most bytes of what was said before, and of one message of it.
const BEFORE_BYTES: usize = 16 * 1024;
const MESSAGE_BYTES: usize = 4 * 1024;

/// What is cut to less than this is left out.
const LEAST_BYTES: usize = 200;

/// What is asked, with what was said before and what the person has before them.
pub(super) fn request_text(options: &RunOptions, language: Language) -> String {
    let words = phrases(language);
    let mut text = options.user_message.trim().to_owned();
    if !options.context.is_empty() {
        let lines: Vec<String> = options.context.iter().map(|(key, value)| format!("- {key}: {value}")).collect();
        text += &format!("\n\n### {}\n\n{}", words.context, lines.join("\n"));
    }
    let before = options.initial_messages.iter().filter(|message| message.role != Speaker::Tool && !message.content.is_empty());
    let line = |message: &AiMessage, most: usize| {
        let (speaker, said) = speaker(message);
        format!("{speaker}:{}", quoted(&clipped(said, most)))
    };
    let (summed_up, before): (Vec<_>, Vec<_>) = before.partition(|message| message.id == SUMMED_UP);
    let mut room = BEFORE_BYTES;
    let mut said: Vec<String> = Vec::new();
    for message in before.into_iter().rev() {
        let most = MESSAGE_BYTES.min(room);
        said.push(line(message, most));
        room = room.saturating_sub(message.content.len().min(most));
        if room < LEAST_BYTES {
            break;
        }
    }
    said.extend(summed_up.iter().rev().take(1).map(|message| line(message, MESSAGE_BYTES)));
    said.reverse();
    if !said.is_empty() {
        text += &format!("\n\n### {}\n\n{}", words.before, said.join("\n\n"));
    }
    text
}

/// Who said a message, and what. Notes of the program and messages of other agents are no words of the user.
fn speaker(message: &AiMessage) -> (Cow<'static, str>, &str) {
    let text = message.content.as_str();
    if message.role != Speaker::User {
        return ("assistant".into(), text);
    }
    if let Some(note) = text.strip_prefix("[polis]") {
        return ("program".into(), note.trim_start());
    }
    let named = text.strip_prefix("[from ").and_then(|rest| rest.split_once("]\n"));
    match named.filter(|(name, _)| !name.contains('\n')) {
        Some((name, said)) => (format!("agent {name}").into(), said),
        None => ("user".into(), text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_of_the_user_are_shown_as_theirs() {
        let initial_messages = vec![
            AiMessage::user("Read a.txt."),
            AiMessage::user("[polis] Your turn failed here."),
            AiMessage::user("[from ann]\nIt is empty."),
            AiMessage::assistant("Done."),
        ];
        let options = RunOptions { initial_messages, ..RunOptions::from("Go on.") };
        assert_eq!(
            request_text(&options, Language::En),
            "Go on.\n\n### What was said before\n\nuser: Read a.txt.\n\nprogram: Your turn failed here.\n\nagent ann: It is \
             empty.\n\nassistant: Done."
        );
    }
}
