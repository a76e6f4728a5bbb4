//! Search in what was said in a conversation: messages of people and answers, not the steps between them.

use std::collections::HashMap;

use polis_domain::{Event, Recorded, TaskId, TurnId};
use polis_ports::{LogError, ThreadRange};

use super::Local;
use super::views::visible_text;
use crate::{Conversation, Excerpt};

/// The newest events of a conversation that are read for a search.
const NEWEST: usize = 4_096;

/// What an excerpt shows before the first word, and as a whole, in characters.
const BEFORE: usize = 40;
const LENGTH: usize = 160;

/// Whether a conversation was found.
pub(super) enum Match {
    No,
    /// By its title or id alone.
    Title,
    Text(Excerpt),
}

/// Words that a conversation must have, and how much may still be read for them.
pub(super) struct Search {
    pub(super) words: Vec<String>,
    pub(super) events_left: usize,
}

impl Search {
    /// Looks for the words in the title first, then in the messages. Every word must be in one of them.
    pub(super) async fn find(&mut self, api: &Local, conversation: &Conversation) -> Result<Match, LogError> {
        let title = format!("{} {}", conversation.title, conversation.id).to_lowercase();
        let missing: Vec<&str> = self.words.iter().map(String::as_str).filter(|word| !title.contains(word)).collect();
        if missing.is_empty() {
            return Ok(Match::Title);
        }
        if conversation.messages == 0 {
            return Ok(Match::No);
        }
        let (society, range) = (&api.society, ThreadRange { newest: NEWEST, ..ThreadRange::ALL });
        let events = society.log().read_thread(society.id(), &conversation.id.main_thread(), range).await?;
        self.events_left = self.events_left.saturating_sub(events.len().max(1));
        let mut found = vec![false; missing.len()];
        let mut best: Option<(usize, String, Option<TaskId>)> = None;
        for (text, task) in said(&events) {
            let lower = text.to_lowercase();
            let places: Vec<Option<usize>> = missing.iter().map(|word| lower.find(word)).collect();
            found.iter_mut().zip(&places).for_each(|(found, place)| *found |= place.is_some());
            let count = places.iter().flatten().count();
            if count > 0 && best.as_ref().is_none_or(|(before, ..)| count >= *before) {
                let first = places.iter().flatten().min().copied().unwrap_or_default();
                best = Some((count, cut(text, lower.get(..first).unwrap_or_default().chars().count()), task));
            }
        }
        let all = found.iter().all(|found| *found);
        let excerpt = |(_, text, task_id)| Match::Text(Excerpt { conversation: conversation.id.clone(), task_id, text });
        Ok(best.filter(|_| all).map_or(Match::No, excerpt))
    }
}

/// The texts that a person sees in a conversation, oldest first, and the requests that they are of.
fn said(events: &[Recorded]) -> Vec<(&str, Option<TaskId>)> {
    let mut tasks: HashMap<TurnId, TaskId> = HashMap::new();
    let mut texts = Vec::new();
    for recorded in events {
        match &recorded.event {
            Event::ConversationStarted { messages, .. } => texts.extend(messages.iter().map(|it| (&*it.text, None))),
            Event::TurnStarted { task, message, .. } => {
                tasks.insert(TurnId(recorded.seq), task.id.clone());
                texts.extend(message.iter().map(|_| (visible_text(&task.message, &task.meta), Some(task.id.clone()))));
            }
            Event::MessagesTaken { envelopes, .. } => {
                texts.extend(envelopes.iter().map(|it| (&*it.payload.text, Some(it.task_id.clone()))));
            }
            Event::TurnSettled { turn, message: Some(message), .. } => {
                texts.push((&*message.text, tasks.get(turn).cloned()));
            }
            _ => {}
        }
    }
    texts
}

/// A text around one of its characters.
fn cut(text: &str, at: usize) -> String {
    let mut begin = at.saturating_sub(BEFORE);
    if begin > 0 {
        // It begins with a whole word, where there is one.
        begin += text.chars().skip(begin).take(at - begin).position(char::is_whitespace).map_or(0, |space| space + 1);
    }
    let shown: String = text.chars().skip(begin).take(LENGTH).map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let is_cut = text.chars().nth(begin + LENGTH).is_some();
    format!("{}{}{}", if begin > 0 { "…" } else { "" }, shown.trim(), if is_cut { "…" } else { "" })
}
