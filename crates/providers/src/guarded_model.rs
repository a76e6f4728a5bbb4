//! Wraps a vendor's models with its rate limits and a circuit breaker.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use polis_domain::Usage;
use polis_ports::{Delta, DeltaStream, Model, ModelDescription, ModelError, ModelRequest};

use crate::EmulatedTools;
use crate::circuit_breaker::{Attempt, CircuitBreaker};
use crate::rate_limit::{Limiter, Rate};

/// A vendor's models with the limits of its key and its circuit.
pub struct GuardedModel {
    model: Arc<dyn Model>,
    circuit: Arc<CircuitBreaker>,
    limiter: Arc<Limiter>,
}

impl GuardedModel {
    /// Guards everything that is asked of a vendor under one key.
    pub fn new(vendor: &str, model: Arc<dyn Model>, rate: Rate) -> Self {
        Self::limited(vendor, model, Arc::new(Limiter::new(rate)))
    }

    fn limited(vendor: &str, model: Arc<dyn Model>, limiter: Arc<Limiter>) -> Self {
        Self { model, circuit: Arc::new(CircuitBreaker::new(vendor)), limiter }
    }
}

/// A vendor's models as they are asked for: guarded, and with tools in words where a model refuses them.
pub(crate) fn guarded(vendor: &str, model: Arc<dyn Model>, limiter: Arc<Limiter>) -> Arc<dyn Model> {
    Arc::new(EmulatedTools::where_refused(Arc::new(GuardedModel::limited(vendor, model, limiter))))
}

#[async_trait]
impl Model for GuardedModel {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let guess = tokens(self.model.estimate(&request));
        self.limiter.wait(&request.asker, guess).await;
        let attempt = self.circuit.admit()?;
        let deltas = match self.model.stream(request).await {
            Ok(deltas) => deltas,
            Err(error) => {
                attempt.failed(&error);
                return Err(error);
            }
        };
        let (limiter, mut attempt) = (self.limiter.clone(), Some(attempt));
        let mut counted = guess;
        Ok(Box::pin(deltas.inspect(move |delta| match delta {
            Ok(Delta::Usage(usage)) => limiter.correct(std::mem::replace(&mut counted, tokens(*usage)), tokens(*usage)),
            Ok(Delta::Done(_)) => attempt.take().into_iter().for_each(Attempt::succeeded),
            Ok(_) => {}
            Err(error) => attempt.take().into_iter().for_each(|attempt| attempt.failed(error)),
        })))
    }

    fn estimate(&self, request: &ModelRequest) -> Usage {
        self.model.estimate(request)
    }

    fn description(&self, model: &str) -> ModelDescription {
        self.model.description(model)
    }
}

fn tokens(usage: Usage) -> u64 {
    usage.input_tokens.saturating_add(usage.output_tokens)
}
