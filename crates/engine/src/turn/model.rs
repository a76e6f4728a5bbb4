//! Asking a model, once; deltas go to whoever watches, the whole reply goes into the log.

use std::sync::Arc;

use futures_util::StreamExt;
use polis_domain::{Effect, EffectId, Failure, Outcome, Reply, ThreadId};
use polis_ports::{Collector, Frame, ModelError, ModelRequest, StreamedDelta};

use super::Turn;
use crate::actor::Shared;

impl Turn {
    /// Asks a model and gives its whole reply. A reply that is in the log is never asked for again.
    pub async fn model(&mut self, mut request: ModelRequest) -> Result<Reply, Failure> {
        if request.model.is_empty()
            && let Some(model) = self.role().and_then(|role| role.model.clone())
        {
            request.model = model;
        }
        let effect = Effect::Model { model: request.model.clone(), request: request.digest() };
        let entries = self.state(vec![effect]).await;
        let Some(entry) = entries.first() else { return self.park_diverged(self.n, "model").await };
        let result = match self.result(entry) {
            Some(result) => result,
            None => {
                let outcome = self.think(entry.id, request).await;
                self.report(entry.id, outcome.clone()).await;
                match outcome {
                    Outcome::Failed(failure) => Err(failure),
                    outcome => Ok(outcome),
                }
            }
        };
        match result {
            Ok(Outcome::Reply(reply)) => Ok(reply),
            Ok(_) => self.park_diverged(self.n - 1, "model").await,
            Err(failure) => Err(failure),
        }
    }

    async fn think(&self, id: EffectId, request: ModelRequest) -> Outcome {
        let telling = Telling { shared: &self.seat.shared, id, thread: &self.seat.thread };
        match telling.collect(request).await {
            Ok(reply) => Outcome::Reply(reply),
            Err(error) => Outcome::Failed(Failure::new(error.code(), error.to_string())),
        }
    }
}

/// Collects a reply and tells whoever watches of each piece.
struct Telling<'a> {
    shared: &'a Shared,
    id: EffectId,
    thread: &'a ThreadId,
}

impl Telling<'_> {
    async fn collect(&self, request: ModelRequest) -> Result<Reply, ModelError> {
        let Shared { ports, society, .. } = self.shared;
        let mut stream = ports.model.stream(request).await?;
        let mut collector = Collector::default();
        while let Some(delta) = stream.next().await {
            let delta = delta?;
            if ports.live.is_watched(society) {
                let told = StreamedDelta { effect: self.id, thread: self.thread.clone(), delta: delta.clone() };
                ports.live.publish(society, Frame::Delta(Arc::new(told)));
            }
            collector.push(delta);
        }
        collector.finish().map(Reply::without_torn_call)
    }
}
