//! Conversations: each has an agent of its own, so that any number go on side by side.

use std::sync::Arc;

use polis_domain::{
    AgentId, Command, ConversationChange, ConversationSettings, Message, NewConversation, Payload, Refusal, RoleId, TaskId, mix,
};
use serde_json::{Map, Value};

use crate::error::CommandError;
use crate::society::{Sent, Society, sent};

/// Longest title that is made from a request, in characters.
const TITLE: usize = 60;

/// How often another id is drawn when one is taken.
const DRAWS: usize = 8;

/// A conversation that is about to start.
#[derive(Debug, Clone, Default)]
pub struct ConversationStart {
    /// The id of its agent; drawn if none.
    pub id: Option<AgentId>,
    /// The role of its agent; that of root if none.
    pub role: Option<RoleId>,
    /// The title; made from the first message if none.
    pub title: Option<String>,
    /// Its model and strategy.
    pub settings: ConversationSettings,
    /// What was said before, elsewhere.
    pub messages: Vec<Arc<Message>>,
}

impl Society {
    /// Starts a conversation without a message, and gives the id of its agent.
    pub async fn start_conversation(&self, start: ConversationStart) -> Result<AgentId, CommandError> {
        self.start(start, None).await.map(|(agent, _)| agent)
    }

    /// Starts a conversation with a request, in one append. The receipt has the id of its agent.
    pub async fn converse(
        &self,
        start: ConversationStart,
        text: &str,
        task: Option<TaskId>,
        meta: Map<String, Value>,
    ) -> Result<Sent, CommandError> {
        let (_, events) = self.start(start, Some((text, task, meta))).await?;
        sent(&events)
    }

    /// Changes title, list place or settings of a conversation.
    pub async fn change_conversation(&self, agent: AgentId, change: ConversationChange) -> Result<(), CommandError> {
        self.command(Command::ChangeConversation { agent, change }).await.map(drop)
    }

    async fn start(
        &self,
        start: ConversationStart,
        message: Option<(&str, Option<TaskId>, Map<String, Value>)>,
    ) -> Result<(AgentId, Vec<Arc<polis_domain::Recorded>>), CommandError> {
        let ConversationStart { id, role, title, settings, messages } = start;
        let own_words = |(text, _, meta): &(&str, Option<TaskId>, Map<String, Value>)| {
            title_of(meta.get(Payload::OWN_WORDS).and_then(Value::as_str).unwrap_or(text))
        };
        let title = title.or_else(|| message.as_ref().and_then(own_words));
        let mut draws = 0;
        loop {
            let agent = id.clone().unwrap_or_else(|| self.draw(|seed, at, draw| short_id(mix(seed ^ mix(at.0) ^ mix(!draw)))));
            let envelope =
                message.as_ref().map(|(text, task, meta)| self.envelope(agent.clone(), text, task.clone(), meta.clone()));
            let conversation = NewConversation {
                agent: agent.clone(),
                role: role.clone(),
                person: self.person.clone(),
                title: title.as_deref().unwrap_or(agent.as_str()).into(),
                settings: settings.clone(),
                messages: messages.clone(),
            };
            let command = Command::StartConversation { conversation: Box::new(conversation), envelope };
            match self.command(command).await {
                Err(CommandError::Refused(Refusal::NameTaken(_))) if id.is_none() && draws < DRAWS => draws += 1,
                Ok(events) => {
                    let started = events.iter().find_map(|recorded| match &recorded.event {
                        polis_domain::Event::ConversationStarted { agent, .. } => Some(agent.clone()),
                        _ => None,
                    });
                    return Ok((started.unwrap_or(agent), events));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A title for a request: its first line with words, cut.
fn title_of(text: &str) -> Option<String> {
    let is_plain = |c: &char| !c.is_control() && !matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let line = text.lines().map(str::trim).find(|line| line.chars().any(char::is_alphanumeric))?;
    let line: String = line.chars().filter(is_plain).collect();
    let cut: String = line.chars().take(TITLE).collect();
    Some(if cut.len() < line.len() { format!("{}…", cut.trim_end()) } else { cut })
}

/// An id that is easy to type.
fn short_id(bits: u64) -> AgentId {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let digits = (0..7).map(|place| char::from(DIGITS[(bits >> (place * 5)) as usize % 32]));
    format!("c-{}", digits.collect::<String>()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_with_words() {
        assert_eq!(title_of("\n---\n  Plan a trip \nto Rome").as_deref(), Some("Plan a trip"));
        assert_eq!(title_of("一二三").as_deref(), Some("一二三"));
        assert_eq!(title_of("a\u{202e}b\u{7}").as_deref(), Some("ab"));
        assert_eq!(title_of(" \n ?!").as_deref(), None);
        let long = title_of(&"word ".repeat(40)).unwrap();
        assert!(long.ends_with("word…") && long.chars().count() <= TITLE + 1, "{long}");
    }

    #[test]
    fn ids_are_short_and_differ() {
        assert_eq!(short_id(0).as_str(), "c-0000000");
        assert_ne!(short_id(1), short_id(2));
        assert_eq!(short_id(u64::MAX).as_str().len(), 9);
    }
}
