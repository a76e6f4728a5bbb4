//! Requests to several agents in parallel. Answers are taken one after another, in the order of the log.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{AgentId, Effect, EffectId, Failure, Meta, ReplyTo};

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

/// Requests without an answer.
#[derive(Default)]
pub struct Requests {
    open: Vec<Entry>,
}

impl Requests {
    /// Whether all requests are answered.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

impl Turn {
    /// Sends requests with one append and adds them to `requests`. Returns the id of each, in order, or why it was refused.
    pub async fn request(&mut self, requests: &mut Requests, asked: Vec<Request>) -> Vec<Result<EffectId, Failure>> {
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
        let mut declared = Vec::with_capacity(effects.len());
        for entry in self.declare(effects).await {
            match entry.refusal().cloned() {
                Some(failure) => declared.push(Err(failure)),
                None => {
                    declared.push(Ok(entry.id));
                    requests.open.push(entry);
                }
            }
        }
        declared
    }

    /// Waits for the next answer in the order of the log; none when all requests are answered.
    pub async fn next_answer(&mut self, requests: &mut Requests) -> Option<(EffectId, Result<Arc<str>, Failure>)> {
        // The position of the turn must not depend on whether its own reports have been committed yet.
        self.committed_position().await;
        while !requests.open.is_empty() {
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
        None
    }
}
