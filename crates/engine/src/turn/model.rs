//! Asking a model; deltas go to whoever watches, the whole reply goes into the log.
//!
//! One call is one effect, whatever happens under way: attempts that came to nothing are logged beside it, and when a budget
//! is used up, a person is asked where the model was to be.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use polis_domain::{Command, Effect, EffectId, Failure, Leave, Level, Outcome, Reply, Spent, ThreadId, Timestamp, Usage};
use polis_ports::{Collector, Delta, Frame, ModelError, ModelRequest, StreamedDelta};

use super::Turn;
use super::journal::Entry;
use super::retry::Attempts;
use crate::actor::Shared;

/// Tokens that a reply may have where a budget holds and the request does not say.
const REPLY_TOKENS: u32 = 8_192;

impl Turn {
    /// Asks a model and gives its whole reply. A reply that is in the log is never asked for again.
    pub async fn model(&mut self, mut request: ModelRequest) -> Result<Reply, Failure> {
        let models = self.models(&request);
        let reserve = self.reserve(&mut request, &models);
        // The society's own choice may change from run to run, and is not part of what is asked.
        let own = self.role().and_then(|role| role.models.first().cloned());
        if request.model.is_empty() {
            request.model = own.unwrap_or_default();
        }
        request.asker = self.seat.agent.as_str().into();
        let digest = request.digest();
        loop {
            let effect = Effect::Model { model: request.model.clone(), request: digest, reserve };
            let entries = self.state(vec![effect]).await;
            let Some(entry) = entries.first() else { return self.park_diverged(self.n, "model").await };
            if let Some((Effect::Grant { lacking }, _)) = entry.stated() {
                let lacking = lacking.clone();
                self.granted(&entries, &lacking).await?;
                continue;
            }
            let result = match self.result(entry) {
                Some(result) => result,
                None => self.think(entry, request, models).await,
            };
            return match result {
                Ok(Outcome::Reply(reply)) => {
                    self.used = sum(self.used, reply.usage);
                    Ok(reply)
                }
                Ok(_) => self.park_diverged(self.n - 1, "model").await,
                Err(failure) => Err(failure),
            };
        }
    }

    /// The models to ask, in this order: those of the request, of the role, of the society. Without any choice it is the one
    /// that the model port takes by itself.
    fn models(&self, request: &ModelRequest) -> Vec<Arc<str>> {
        if !request.model.is_empty() {
            return vec![request.model.clone()];
        }
        match self.role() {
            Some(role) if !role.models.is_empty() => role.models.clone(),
            _ if self.seat.shared.models.is_empty() => vec![Arc::default()],
            _ => self.seat.shared.models.clone(),
        }
    }

    /// The most that a request can cost. What goes in is only guessed, so a quarter is added.
    fn reserve(&self, request: &mut ModelRequest, models: &[Arc<str>]) -> Spent {
        let (model, max_tokens) = (request.model.clone(), request.max_tokens);
        request.model = models.first().cloned().unwrap_or_default();
        request.max_tokens.get_or_insert(REPLY_TOKENS);
        let guess = Spent::from(self.seat.shared.ports.model.estimate(request));
        (request.model, request.max_tokens) = (model, max_tokens);
        Spent {
            requests: 1,
            tokens: guess.tokens + guess.tokens / 4,
            cost_nanos: guess.cost_nanos + guess.cost_nanos / 4,
            ..guess
        }
    }

    /// Waits until a person has granted more.
    async fn granted(&mut self, entries: &[Entry], lacking: &[Level]) -> Result<(), Failure> {
        let used_up = lacking.iter().map(Level::to_string).collect::<Vec<_>>().join("; ");
        match self.hear(entries).await.pop() {
            Some(Ok(Outcome::Verdict(verdict))) if verdict.approved => Ok(()),
            Some(Ok(Outcome::Verdict(verdict))) => {
                let said = if verdict.reason.is_empty() { String::new() } else { format!(": {}", verdict.reason) };
                Err(Failure::new("budget_exhausted", format!("{used_up}, and no more was granted{said}")))
            }
            Some(Err(failure)) => Err(failure),
            Some(Ok(_)) | None => self.park_diverged(self.n - 1, "model").await,
        }
    }

    async fn think(&mut self, entry: &Entry, mut request: ModelRequest, models: Vec<Arc<str>>) -> Result<Outcome, Failure> {
        let leave = entry.stated().and_then(|(_, leave)| leave.cloned());
        if leave.is_some() {
            request.max_tokens.get_or_insert(REPLY_TOKENS);
        }
        let (system, seen) = (request.system.clone(), request.estimate().input_tokens);
        let mut attempts = Attempts::new(models, entry.attempts());
        loop {
            request.model = attempts.model();
            let window = self.seat.shared.ports.model.window(&request.model);
            request.system = told(&system, leave.as_ref(), window.map(|window| seen * 100 / window.max(1)));
            let tried = self.attempt(entry.id, request.clone(), leave.as_ref()).await;
            let error = match tried {
                Ok(reply) => {
                    self.report(entry.id, Outcome::Reply(reply.clone())).await;
                    return Ok(Outcome::Reply(reply));
                }
                Err(error) => error,
            };
            let failure = Failure::new(error.code(), error.to_string());
            let Some(attempt) = attempts.after(&error) else {
                self.report(entry.id, Outcome::Failed(failure.clone())).await;
                return Err(failure);
            };
            tracing::warn!(
                agent = %self.seat.agent, model = %attempt.model, attempt = attempt.attempt, max_retries = attempt.max_retries,
                delay_ms = attempt.delay_ms, next = %attempt.next, error = %failure, "a model did not answer; asking again"
            );
            let delay = attempt.delay_ms;
            self.commit(Command::Retry { id: entry.id, attempt }).await;
            let clock = &self.seat.shared.ports.clock;
            clock.sleep_until(Timestamp(clock.now().0.saturating_add(delay))).await;
        }
    }

    /// Asks once, and no longer than it may take.
    async fn attempt(&self, id: EffectId, request: ModelRequest, leave: Option<&Leave>) -> Result<Reply, ModelError> {
        let mut telling = Telling { shared: &self.seat.shared, id, thread: &self.seat.thread, over: false };
        let clock = &self.seat.shared.ports.clock;
        let reply = match leave.and_then(|leave| leave.time_ms) {
            None => telling.collect(request).await,
            Some(ms) => tokio::select! {
                biased;
                reply = telling.collect(request) => reply,
                () = clock.sleep_until(Timestamp(clock.now().0.saturating_add(ms))) => {
                    let reason = format!("no whole reply within the {:?} that one call may take", Duration::from_millis(ms));
                    Err(ModelError::Cut { reason })
                }
            },
        };
        telling.over = true;
        if let Err(error) = &reply {
            telling.tell(|| Delta::Error(Failure::new(error.code(), error.to_string())));
        }
        reply
    }
}

/// From which share of what a model can see at once its agent is told, in percent.
const NEARLY_FULL: u64 = 80;

/// What an agent is told about itself; and of its budgets and of the conversation's length, when they come to their end (D11).
fn told(system: &Arc<str>, leave: Option<&Leave>, seen_percent: Option<u64>) -> Arc<str> {
    let near = leave.map_or(&[][..], |leave| &leave.near);
    let mut notes = Vec::new();
    if !near.is_empty() {
        let levels = near.iter().map(|level| format!("{level} ({} %)", level.percent())).collect::<Vec<_>>().join("; ");
        notes.push(format!("[Budget] {levels}. Come to an end soon, with what you have."));
    }
    if let Some(percent) = seen_percent.filter(|percent| *percent >= NEARLY_FULL) {
        notes.push(format!("[Context] This conversation fills about {percent} % of what you can see at once. Be brief."));
    }
    if notes.is_empty() {
        return system.clone();
    }
    format!("{system}\n\n{}", notes.join("\n")).trim_start().into()
}

fn sum(a: Usage, b: Usage) -> Usage {
    Usage {
        input_tokens: a.input_tokens + b.input_tokens,
        output_tokens: a.output_tokens + b.output_tokens,
        cached_tokens: a.cached_tokens + b.cached_tokens,
        reasoning_tokens: a.reasoning_tokens + b.reasoning_tokens,
        cache_write_tokens: a.cache_write_tokens + b.cache_write_tokens,
        cost_nanos: a.cost_nanos + b.cost_nanos,
    }
}

/// Collects a reply and tells whoever watches of each piece; and that it stopped, when nobody waits for it any more.
struct Telling<'a> {
    shared: &'a Shared,
    id: EffectId,
    thread: &'a ThreadId,
    over: bool,
}

impl Telling<'_> {
    async fn collect(&self, request: ModelRequest) -> Result<Reply, ModelError> {
        let mut stream = self.shared.ports.model.stream(request).await?;
        let mut collector = Collector::default();
        while let Some(delta) = stream.next().await {
            let delta = delta?;
            self.tell(|| delta.clone());
            collector.push(delta);
        }
        collector.finish().map(Reply::without_torn_call)
    }

    fn tell(&self, delta: impl FnOnce() -> Delta) {
        let Shared { ports, society, .. } = self.shared;
        if ports.live.is_watched(society) {
            let told = StreamedDelta { effect: self.id, thread: self.thread.clone(), delta: delta() };
            ports.live.publish(society, Frame::Delta(Arc::new(told)));
        }
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.tell(|| Delta::Stopped);
        }
    }
}
