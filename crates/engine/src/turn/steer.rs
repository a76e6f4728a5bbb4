//! Messages of the person to work in progress: the turn that acts on them takes them out of the inbox.

use std::sync::Arc;

use polis_domain::{Act, Envelope, Event, Failure, InboxEntry, Meta, Recorded, Spine};
use polis_ports::ThreadRange;

use super::Turn;

impl Turn {
    /// Takes the messages of the person about this request out of the inbox, oldest first. The answer to the request then
    /// answers them too. Messages that are not taken become turns of their own.
    ///
    /// If there are none, nothing is logged. A second run gets what the first got, at the same effect.
    pub async fn take_messages(&mut self) -> Result<Vec<Arc<Envelope>>, Failure> {
        let is_logged = self.journal.has(self.n);
        if is_logged && !self.journal.takes_messages(self.n) || !is_logged && !self.has_messages().await {
            return Ok(Vec::new());
        }
        let events = self.act(vec![Act::TakeMessages]).await?;
        Ok(events.iter().flat_map(|recorded| taken(&recorded.event)).cloned().collect())
    }

    /// Whether the person has written at most `read` messages in this task. If that is not in memory the answer is no. It
    /// may differ in a second run, so only the decision whether to ask the log may depend on it.
    pub fn has_read_all(&self, read: usize) -> bool {
        self.messages_of_task().is_some_and(|messages| messages <= read)
    }

    /// How many messages the person has written in this task, if that is known without reading the log.
    fn messages_of_task(&self) -> Option<usize> {
        let is_said = |recorded: &Recorded| recorded.event.envelope().is_some_and(|envelope| envelope.from.is_user());
        self.start.shared.recent.count(&self.task.id.thread(), is_said)
    }

    /// All messages of the person to this agent in this task up to the turn's position in the log, oldest first, including
    /// those that other turns took; and how many of them are older than this turn.
    pub async fn person_messages(&mut self) -> (Vec<Arc<Envelope>>, usize) {
        let range = ThreadRange::through(self.committed_position().await);
        let events = self.read(&self.task.id.thread(), range).await;
        let messages = events.iter().filter_map(|recorded| match &recorded.event {
            Event::MessageSent { envelope, .. } if envelope.from.is_user() && envelope.to == self.start.agent => {
                Some((recorded.seq, envelope.clone()))
            }
            _ => None,
        });
        let messages: Vec<_> = messages.collect();
        let before = messages.partition_point(|(seq, _)| *seq <= self.start.id.0);
        (messages.into_iter().map(|(_, envelope)| envelope).collect(), before)
    }

    /// The meta of the message that began this request.
    pub async fn request_meta(&mut self) -> Meta {
        let first = self.read(&self.task.id.thread(), ThreadRange { oldest: 1, ..ThreadRange::ALL }).await;
        let envelope = first.first().and_then(|recorded| recorded.event.envelope()).filter(|envelope| envelope.from.is_user());
        envelope.map(|envelope| envelope.payload.meta.clone()).unwrap_or_default()
    }

    /// Whether a message waits at present. Only used where the journal does not say.
    async fn has_messages(&self) -> bool {
        let turn = self.start.id;
        // With only the first message in the task, nothing can wait.
        if self.has_read_all(1) {
            return false;
        }
        let find = move |spine: &Spine| {
            let turn = spine.turns.get(&turn)?;
            let inbox = spine.agents.get(&turn.agent)?.inbox.as_ref()?;
            let is_meant = |due: &InboxEntry| matches!(due, InboxEntry::Envelope(envelope) if envelope.from.is_user() && envelope.task_id == turn.task);
            Some(inbox.entries.iter().any(is_meant))
        };
        self.start.shared.look(find).await.flatten().unwrap_or(false)
    }
}

fn taken(event: &Event) -> &[Arc<Envelope>] {
    match event {
        Event::MessagesTaken { envelopes, .. } => envelopes,
        _ => &[],
    }
}
