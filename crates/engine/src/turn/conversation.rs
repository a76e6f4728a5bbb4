//! The conversation so far: as text for a prompt, by phase, and the original request behind a placeholder.

use std::sync::Arc;

use std::collections::BTreeMap;

use polis_domain::{Event, Failure, Message, Messages, Sender, SubThreadRequest};
use polis_ports::ThreadRange;

use super::Turn;

impl Turn {
    /// The newest messages of the turn's own thread as one text for a prompt, oldest first: `User: …` and `Bot: …`, with an
    /// empty line between them.
    pub async fn conversation(&mut self, limit: usize) -> Result<String, Failure> {
        let line = |(_, message): &(u32, Arc<Message>)| match message.sender {
            Sender::User => format!("User: {}", message.text),
            Sender::Bot => format!("Bot: {}", message.text),
        };
        Ok(self.recent(limit).await?.iter().map(line).collect::<Vec<_>>().join("\n\n"))
    }

    /// The last bot message of a phase of the turn's own thread, such as the outline for the drafting phase; none if there is
    /// none. A message belongs to the phase in which its text was last written: the result of a sub-thread belongs to
    /// `execute_subthread`, although its placeholder is older. If the first handler serves `initial_phase` because no handler
    /// has that name, the phase is `initial_phase`.
    pub async fn said_in(&mut self, phase: &str) -> Result<Option<Arc<Message>>, Failure> {
        let thread = self.start.thread.clone();
        let range = ThreadRange::through(self.committed_position().await);
        let events = self.read(&thread, range).await;
        let mut messages = Messages::default();
        let (mut now, mut written) = (None, BTreeMap::new());
        for recorded in &events {
            match &recorded.event {
                Event::TurnStarted { phase, .. } => now = Some(phase),
                Event::MessageAdded { index, .. } | Event::TurnSettled { message: Some(_), index, .. } => {
                    written.insert(*index, (recorded.seq, now));
                }
                Event::MessageUpdated { index, patch, .. } if patch.text.is_some() => {
                    written.insert(*index, (recorded.seq, now));
                }
                _ => {}
            }
            messages.apply(recorded);
        }
        let spoken = messages.indexed().filter(|(_, message)| message.sender == Sender::Bot);
        let in_phase = spoken.filter_map(|(place, message)| {
            let (at, its) = written.get(&place)?;
            its.filter(|its| its.as_str() == phase).map(|_| (*at, message))
        });
        Ok(in_phase.max_by_key(|(at, _)| *at).map(|(_, message)| message.clone()))
    }

    /// The request for the second step of a two-step start: the original question of the person, in the placeholder message
    /// of the first step. Without a first step, the task of this turn in a new message.
    pub async fn prepared(&mut self, name: &str) -> Result<SubThreadRequest, Failure> {
        let original = self.task.meta.get("originalQuery").and_then(|query| query.as_str());
        let request = SubThreadRequest::new(name, original.unwrap_or(&self.task.message));
        Ok(match self.recent(1).await?.pop() {
            Some((_, last)) if last.sender == Sender::Bot && !last.meta.contains_key("_thread") => {
                request.in_message(last.id.clone())
            }
            _ => request,
        })
    }
}
