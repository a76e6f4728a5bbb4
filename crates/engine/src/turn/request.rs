//! Requests to several agents in parallel. Answers are taken one after another, in the order of the log.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{AgentId, Effect, EffectId, Failure, FailureCode, Meta, Origin, ReplyTo, Task};

use super::Turn;
use super::ask::answer;
use super::journal::Entry;

/// A request to one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The agent to ask.
    pub to: AgentId,
    /// The text of the request.
    pub text: String,
    /// How long to wait for its answer.
    pub patience: Duration,
    /// Extra meta for the task of the asked agent.
    pub meta: Meta,
}

/// A request that was sent and has no answer yet. [`Requests`] wait for it; if it is dropped, its answer is not read.
pub struct OpenRequest(Entry);

impl OpenRequest {
    /// The id of the request, which the answer carries.
    pub fn id(&self) -> EffectId {
        self.0.id
    }
}

/// Requests without an answer.
#[derive(Default)]
pub struct Requests {
    open: Vec<Entry>,
}

impl Requests {
    /// Waits for this request too.
    pub fn push(&mut self, request: OpenRequest) {
        self.open.push(request.0);
    }

    /// Whether all requests are answered.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

impl Turn {
    /// Whether another agent waits for the answer of this turn.
    pub fn is_request(&self) -> bool {
        self.origin == Origin::Inbox && matches!(self.reply_to, ReplyTo::Effect(_))
    }

    /// Whether an agent sent the message of this turn and waits for no answer.
    pub fn is_unawaited(&self) -> bool {
        self.reply_to == ReplyTo::Nobody && self.task.meta.contains_key(Task::FROM)
    }

    /// Rejects the request of this turn (D38): `return Err(turn.reject("that is the writer's work"))`. The agent that asked reads
    /// the reason; the step of a plan that asked ends as `rejected`, and its policy decides what follows.
    pub fn reject(&self, reason: &str) -> Failure {
        let reason = if reason.trim().is_empty() { "it gives no reason" } else { reason.trim() };
        Failure::new(FailureCode::RequestRejected, reason)
    }

    /// Sends requests with one append. Returns each, in order, or why it was refused.
    pub async fn request(&mut self, asked: Vec<Request>) -> Vec<Result<OpenRequest, Failure>> {
        self.committed_position().await;
        self.has_parallel_waits = true;
        let mut effects = Vec::with_capacity(asked.len());
        for (n, Request { to, text, patience, meta }) in (self.n..).zip(asked) {
            let mut envelope = self.envelope(&to, &text, ReplyTo::Effect(EffectId { turn: self.start.id, n }));
            if !meta.is_empty() {
                envelope.payload.meta.extend(meta);
            }
            effects.push(Effect::Ask { envelope: Arc::new(envelope), deadline: Some(self.after(patience)) });
        }
        let declared = self.declare(effects).await.into_iter();
        declared.map(|entry| entry.refusal().cloned().map_or(Ok(OpenRequest(entry)), Err)).collect()
    }

    /// Waits for the next answer in the order of the log; none when all requests are answered.
    pub async fn next_answer(&mut self, requests: &mut Requests) -> Option<(EffectId, Result<Arc<str>, Failure>)> {
        if requests.open.is_empty() {
            return None;
        }
        // The position of the turn must not depend on whether its own reports have been committed yet.
        self.committed_position().await;
        loop {
            let ended = requests.open.iter().enumerate().filter_map(|(place, entry)| Some((entry.end()?, place))).min();
            if let Some((_, place)) = ended {
                let entry = requests.open.remove(place);
                let outcome = match self.result(&entry) {
                    Some(outcome) => outcome,
                    None => self.park_diverged(entry.id.n, "ask").await,
                };
                return Some((entry.id, answer(outcome)));
            }
            let event = self.next_event_of(requests.open.iter()).await;
            if let Some(entry) = requests.open.iter_mut().find(|entry| entry.is_about(&event)) {
                entry.events.push(event);
            }
        }
    }
}
