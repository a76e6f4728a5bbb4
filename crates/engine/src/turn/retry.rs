//! When a model is asked again, and which one (D09, P11).
//!
//! Each model of the list is asked once and at most three times more, after 1, 2 and 4 seconds or as long as the vendor says.
//! What asking again cannot help goes to the next model at once; so does a vendor that is left alone for a while. A request whose
//! form was refused goes out in another form at once.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{Attempt, Failure, INTERRUPTED};
use polis_ports::ModelError;

/// How often a model is asked again after the first time.
const MAX_RETRIES: u32 = 3;

/// How often a vendor that is left alone is waited for.
const MAX_RESTS: u32 = 5;

/// A vendor that wants more patience than this is treated as one that does not answer.
const MAX_PATIENCE: Duration = Duration::from_secs(600);

/// Where the attempts at one call stand.
pub(super) struct Attempts<N> {
    /// What is asked for.
    models: Vec<Arc<str>>,
    /// The whole name of who answers to it.
    name: N,
    place: usize,
    /// Attempts at the present model that came to nothing.
    failed: u32,
    /// How often it was left alone since it was last asked.
    rests: u32,
}

impl<N: Fn(&str) -> Arc<str>> Attempts<N> {
    /// Goes on after what the log knows of. `models` may have changed since; then the list is taken up where it can be.
    pub(super) fn new<'a>(models: Vec<Arc<str>>, name: N, logged: impl Iterator<Item = &'a Attempt>) -> Self {
        let mut attempts = Self { models, name, place: 0, failed: 0, rests: 0 };
        for attempt in logged {
            let is_next = |model: &Arc<str>| (attempts.name)(model) == attempt.next;
            let Some(place) = attempts.models.iter().position(is_next) else { continue };
            attempts.place = place;
            let is_same = attempt.next == attempt.model;
            let rested = &*attempt.failure.code == "model_resting";
            (attempts.failed, attempts.rests) = match (is_same, rested) {
                (true, true) => (attempts.failed, attempts.rests + 1),
                (true, false) => (attempt.attempt, 0),
                (false, _) => (0, 0),
            };
        }
        attempts
    }

    /// The model to ask now.
    pub(super) fn model(&self) -> Arc<str> {
        self.models.get(self.place).cloned().unwrap_or_default()
    }

    fn name(&self) -> Arc<str> {
        self.models.get(self.place).map(|model| (self.name)(model)).unwrap_or_default()
    }

    /// What follows a failure: another attempt, or nothing.
    pub(super) fn after(&mut self, error: &ModelError) -> Option<Attempt> {
        let (model, attempt) = (self.name(), self.failed + 1);
        let is_resting = matches!(error, ModelError::Resting { .. });
        let is_last = self.place + 1 >= self.models.len();
        let delay = match self.wait(error) {
            // A vendor that is left alone was not asked, so it is no attempt; but nobody waits for it for ever.
            Some(delay) if is_resting && is_last && self.rests < MAX_RESTS => {
                self.rests += 1;
                delay
            }
            Some(delay) if !is_resting => {
                (self.failed, self.rests) = (self.failed + 1, 0);
                delay
            }
            _ if is_last => return None,
            _ => {
                (self.place, self.failed, self.rests) = (self.place + 1, 0, 0);
                Duration::ZERO
            }
        };
        Some(Attempt {
            model,
            attempt,
            max_retries: MAX_RETRIES,
            failure: Failure::new(error.code(), error.to_string()),
            delay_ms: delay.as_millis() as u64,
            next: self.name(),
        })
    }

    /// The attempt of an earlier run whose end nobody saw. It is logged and counted, and does not use up a retry.
    pub(super) fn interrupted(&self) -> Attempt {
        let model = self.name();
        Attempt {
            next: model.clone(),
            model,
            attempt: self.failed,
            max_retries: MAX_RETRIES,
            failure: Failure::new(INTERRUPTED, "the program ended while the model was asked"),
            delay_ms: 0,
        }
    }

    /// How long to wait before the same model is asked again, if it is.
    fn wait(&self, error: &ModelError) -> Option<Duration> {
        let asked_for = error.retry_after().unwrap_or_default();
        if matches!(error, ModelError::Resting { .. }) {
            return Some(asked_for);
        }
        let may = error.is_passing() && self.failed < MAX_RETRIES && asked_for <= MAX_PATIENCE;
        may.then(|| match error {
            ModelError::Adapted { .. } => Duration::ZERO,
            _ => asked_for.max(Duration::from_secs(1 << self.failed)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(retry_after: u64) -> ModelError {
        ModelError::Failed { reason: "down".to_owned(), retry_after: Some(Duration::from_secs(retry_after)) }
    }

    fn resting() -> ModelError {
        ModelError::Resting { vendor: "v".into(), failures: 5, retry_after: Duration::from_secs(9) }
    }

    fn delays(models: &[&str], errors: impl Fn() -> ModelError) -> Vec<(String, u64)> {
        let mut attempts =
            Attempts::new(models.iter().map(|model| (*model).into()).collect(), |model| model.into(), std::iter::empty());
        let steps = std::iter::from_fn(|| attempts.after(&errors()));
        steps.map(|attempt| (attempt.next.to_string(), attempt.delay_ms)).collect()
    }

    #[test]
    fn a_model_is_asked_four_times_and_then_the_next_one() {
        let own = |name: &str| [1_000, 2_000, 4_000].map(|delay| (name.to_owned(), delay)).to_vec();
        assert_eq!(delays(&["a"], || failed(0)), own("a"));
        assert_eq!(delays(&["a", "b"], || failed(0)), [own("a"), vec![("b".to_owned(), 0)], own("b")].concat());
    }

    #[test]
    fn what_cannot_be_helped_goes_to_the_next_at_once() {
        let rejected = || ModelError::Rejected { reason: "no".to_owned() };
        assert_eq!(delays(&["a"], rejected), []);
        assert_eq!(delays(&["a", "b", "c"], rejected), [("b".to_owned(), 0), ("c".to_owned(), 0)]);
        assert_eq!(delays(&["a", "b"], resting)[0], ("b".to_owned(), 0));
        assert_eq!(delays(&["a"], resting), vec![("a".to_owned(), 9_000); MAX_RESTS as usize]);
        assert_eq!(delays(&["a", "b"], || failed(3_600)), [("b".to_owned(), 0)]);
    }

    #[test]
    fn a_second_run_goes_on_where_the_log_ends() {
        let models = || vec!["a".into(), "b".into()];
        let mut whole = Attempts::new(models(), |model| model.into(), std::iter::empty());
        let mut logged: Vec<Attempt> = Vec::new();
        while let Some(attempt) = whole.after(&failed(0)) {
            let mut again = Attempts::new(models(), |model| model.into(), logged.iter());
            assert_eq!(again.after(&failed(0)).as_ref(), Some(&attempt));
            logged.push(attempt);
        }
        assert_eq!(logged.len(), 7);
        assert_eq!(Attempts::new(models(), |model| model.into(), logged.iter()).after(&failed(0)), None);
    }
}
