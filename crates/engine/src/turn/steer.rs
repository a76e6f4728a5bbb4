//! What the person says to work that is under way: taken out of the inbox by the turn that acts on it.

use std::sync::Arc;

use polis_domain::{Act, Due, Envelope, Event, Failure, Meta, Recorded, Spine};
use polis_ports::ThreadRange;
use tokio::sync::oneshot;

use super::Turn;
use crate::shared::ActorMessage;

impl Turn {
    /// What the person has said to this agent about the turn's own request since anybody last asked, oldest first. It leaves
    /// the inbox: the answer to the request answers it as well. What nobody takes becomes a turn of its own, as ever.
    ///
    /// When nothing was said, nothing is logged. A second run gets what the first got, at the same place.
    pub async fn take_messages(&mut self) -> Result<Vec<Arc<Envelope>>, Failure> {
        let is_logged = self.journal.has(self.n);
        if is_logged && !self.journal.takes_messages(self.n) || !is_logged && !self.has_messages().await {
            return Ok(Vec::new());
        }
        let events = self.act(vec![Act::TakeMessages]).await?;
        Ok(events.iter().flat_map(|recorded| taken(&recorded.event)).cloned().collect())
    }

    /// Whether nothing more was said in the turn's task than so many messages of the person. Where that is not in memory the answer is
    /// no, and it may be another in a second run: only whether to ask at all may depend on it.
    pub fn has_heard_all(&self, model_done: usize) -> bool {
        self.messages_of_task().is_some_and(|said| said <= model_done)
    }

    /// How many messages the person has written in the turn's task, if that is known without asking the log.
    fn messages_of_task(&self) -> Option<usize> {
        let is_said = |recorded: &Recorded| recorded.event.envelope().is_some_and(|envelope| envelope.from.is_user());
        self.start.shared.recent.count(&self.task.id.thread(), is_said)
    }

    /// What the person has said to this agent in the task that the turn belongs to, oldest first, whoever has taken it in: what
    /// began it, and everything after that up to the turn's place in the log. And how much of it was said before the turn began.
    pub async fn said_in_task(&mut self) -> (Vec<Arc<Envelope>>, usize) {
        let range = ThreadRange::through(self.place().await);
        let events = self.read(&self.task.id.thread(), range).await;
        let said = events.iter().filter_map(|recorded| match &recorded.event {
            Event::MessageSent { envelope, .. } if envelope.from.is_user() && envelope.to == self.start.agent => {
                Some((recorded.seq, envelope.clone()))
            }
            _ => None,
        });
        let said: Vec<_> = said.collect();
        let before = said.partition_point(|(seq, _)| *seq <= self.start.id.0);
        (said.into_iter().map(|(_, envelope)| envelope).collect(), before)
    }

    /// What goes with the words that began the request that the turn belongs to, whoever they were said to.
    pub async fn request_meta(&mut self) -> Meta {
        let first = self.read(&self.task.id.thread(), ThreadRange { oldest: 1, ..ThreadRange::ALL }).await;
        let envelope = first.first().and_then(|recorded| recorded.event.envelope()).filter(|envelope| envelope.from.is_user());
        envelope.map(|envelope| envelope.payload.meta.clone()).unwrap_or_default()
    }

    /// Whether something waits just now. Only asked where the log does not say what came of it.
    async fn has_messages(&self) -> bool {
        let turn = self.start.id;
        // Where nothing was said in the task but what began it, nothing can wait.
        if self.has_heard_all(1) {
            return false;
        }
        let (reply, answer) = oneshot::channel();
        let look = move |spine: &Spine| {
            let found = spine.turns.get(&turn).and_then(|turn| {
                let inbox = spine.agents.get(&turn.agent)?.inbox.as_ref()?;
                let is_meant =
                    |due: &Due| matches!(due, Due::Envelope(envelope) if envelope.from.is_user() && envelope.task_id == turn.task);
                inbox.entries.iter().any(is_meant).then_some(())
            });
            let _ = reply.send(found.is_some());
        };
        if self.start.shared.actor.send(ActorMessage::Look(Box::new(look))).await.is_err() {
            return false;
        }
        answer.await.unwrap_or(false)
    }
}

fn taken(event: &Event) -> &[Arc<Envelope>] {
    match event {
        Event::MessagesTaken { envelopes, .. } => envelopes,
        _ => &[],
    }
}
