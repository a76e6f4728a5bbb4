//! A circuit breaker: a vendor that has failed too often in a row is not asked for a while, so that it cannot hold up the society.
//!
//! After five failures nobody asks it for a while; then one request goes through to see. Each time that fails, the while
//! doubles. What a vendor refuses, or asks us to slow down for, is no failure: it answers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polis_ports::ModelError;
use tokio::time::Instant;

/// Failures in a row after which a vendor is left alone.
const FAILURES: u32 = 5;

/// How long at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(160);

/// How soon to look again while somebody else is trying.
const TRIAL_PAUSE: Duration = Duration::from_secs(1);

/// Whether a vendor may be asked.
#[derive(Debug)]
pub(crate) struct CircuitBreaker {
    vendor: Arc<str>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// Left alone until then.
    until: Option<Instant>,
    /// Somebody is trying whether it answers again.
    has_trial: bool,
}

/// One request under way. Dropped without a word it says nothing about the vendor.
#[derive(Debug)]
pub(crate) struct Attempt {
    circuit: Arc<CircuitBreaker>,
    is_trial: bool,
}

impl CircuitBreaker {
    pub(crate) fn new(vendor: &str) -> Self {
        Self { vendor: vendor.into(), state: Mutex::default() }
    }

    /// Admits a request, or says how long the vendor is left alone.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<Attempt, ModelError> {
        let mut state = self.lock();
        let resting = |retry_after, failures| Err(ModelError::Resting { vendor: self.vendor.clone(), failures, retry_after });
        let is_trial = match state.until {
            None => false,
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                if !left.is_zero() {
                    return resting(left, state.failures);
                }
                if state.has_trial {
                    return resting(TRIAL_PAUSE, state.failures);
                }
                state.has_trial = true;
                true
            }
        };
        Ok(Attempt { circuit: self.clone(), is_trial })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt {
    pub(crate) fn succeeded(self) {
        *self.circuit.lock() = State::default();
    }

    pub(crate) fn failed(self, error: &ModelError) {
        match error {
            ModelError::Rejected { .. } | ModelError::Adapted { .. } | ModelError::Throttled { .. } => self.succeeded(),
            ModelError::Resting { .. } => {}
            ModelError::Failed { .. } | ModelError::Cut { .. } | ModelError::Unreachable(_) => {
                let mut state = self.circuit.lock();
                state.failures = state.failures.saturating_add(1);
                if state.failures >= FAILURES {
                    let doubled = FIRST_PAUSE * (1 << (state.failures - FAILURES).min(8));
                    state.until = Some(Instant::now() + doubled.min(LONGEST_PAUSE));
                }
            }
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.is_trial {
            self.circuit.lock().has_trial = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down() -> ModelError {
        ModelError::Failed { reason: "down".to_owned(), retry_after: None }
    }

    fn rest(circuit: &Arc<CircuitBreaker>) -> Option<Duration> {
        match circuit.admit() {
            Ok(_) => None,
            Err(ModelError::Resting { retry_after, .. }) => Some(retry_after),
            Err(other) => panic!("{other}"),
        }
    }

    fn broken() -> Arc<CircuitBreaker> {
        let circuit = Arc::new(CircuitBreaker::new("v"));
        for _ in 0..FAILURES {
            circuit.admit().unwrap().failed(&down());
        }
        circuit
    }

    #[tokio::test(start_paused = true)]
    async fn after_five_failures_in_a_row_a_vendor_is_left_alone_and_then_tried_by_one() {
        let circuit = Arc::new(CircuitBreaker::new("v"));
        for _ in 0..FAILURES - 1 {
            circuit.admit().unwrap().failed(&down());
        }
        circuit.admit().unwrap().succeeded();
        let circuit2 = broken();
        assert_eq!((rest(&circuit), rest(&circuit2)), (None, Some(FIRST_PAUSE)));
        tokio::time::advance(FIRST_PAUSE).await;
        let trial = circuit2.admit().unwrap();
        assert_eq!(rest(&circuit2), Some(TRIAL_PAUSE));
        trial.failed(&down());
        assert_eq!(rest(&circuit2), Some(2 * FIRST_PAUSE));
        tokio::time::advance(2 * FIRST_PAUSE).await;
        circuit2.admit().unwrap().succeeded();
        assert_eq!(rest(&circuit2), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_vendor_that_says_no_is_there() {
        let circuit = Arc::new(CircuitBreaker::new("v"));
        for _ in 0..20 {
            circuit.admit().unwrap().failed(&down());
            circuit.admit().unwrap().failed(&ModelError::Rejected { reason: "no".to_owned() });
            circuit.admit().unwrap().failed(&ModelError::Throttled { reason: "slow".to_owned(), retry_after: None });
        }
        assert_eq!(rest(&circuit), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_that_is_given_up_lets_another_one_try_and_rests_have_an_end() {
        let circuit = broken();
        tokio::time::advance(FIRST_PAUSE).await;
        drop(circuit.admit().unwrap());
        for _ in 0..40 {
            let left = rest(&circuit).unwrap_or_default();
            assert!(left <= LONGEST_PAUSE);
            tokio::time::advance(left).await;
            circuit.admit().unwrap().failed(&down());
        }
    }
}
