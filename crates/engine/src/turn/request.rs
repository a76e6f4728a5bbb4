//! Asking several agents at once: requests go out, and answers are taken one after another, in the order of the log.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{AgentId, Effect, EffectId, Failure, Meta, ReplyTo};

use super::Turn;
use super::ask::answer;
use super::journal::Entry;

/// What an agent is asked while others are asked too.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Who is asked.
    pub to: AgentId,
    /// What.
    pub text: String,
    /// How long its answer is waited for.
    pub patience: Duration,
    /// Goes into the meta of the task that it becomes.
    pub meta: Meta,
}

/// Requests that are not answered yet.
#[derive(Default)]
pub struct Requests {
    open: Vec<Entry>,
}

impl Requests {
    /// Whether an answer is waited for.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

impl Turn {
    /// Asks agents, all at once, beside what `requests` holds already. Gives the id of each request, in order, or why it was
    /// refused at once.
    pub async fn request(&mut self, requests: &mut Requests, asked: Vec<Request>) -> Vec<Result<EffectId, Failure>> {
        self.place().await;
        self.has_units = true;
        let mut effects = Vec::with_capacity(asked.len());
        for (n, Request { to, text, patience, meta }) in (self.n..).zip(asked) {
            let mut envelope = self.envelope(&to, &text, ReplyTo::Effect(EffectId { turn: self.start.id, n }));
            if !meta.is_empty() {
                envelope.payload.meta.extend(meta);
            }
            effects.push(Effect::Ask { envelope: Arc::new(envelope), deadline: Some(self.after(patience)) });
        }
        let mut stated = Vec::with_capacity(effects.len());
        for entry in self.state(effects).await {
            match entry.refusal().cloned() {
                Some(failure) => stated.push(Err(failure)),
                None => {
                    stated.push(Ok(entry.id));
                    requests.open.push(entry);
                }
            }
        }
        stated
    }

    /// The answer that came first, of those that are waited for; none when nothing is waited for any more.
    pub async fn next_answer(&mut self, requests: &mut Requests) -> Option<(EffectId, Result<Arc<str>, Failure>)> {
        // Where the turn stands must not depend on whether its own reports have reached the log yet.
        self.place().await;
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
