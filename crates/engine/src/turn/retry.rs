//! Retries and fallbacks of model calls (D09, P11).
//!
//! Each model of the list gets one attempt and three retries, or as many as its settings say, after 1, 2, 4 … seconds or as long
//! as the vendor says.
//! An error that a retry cannot help moves on to the next model at once; so does an open circuit breaker (`Resting`). A
//! request whose form was refused is sent in another form at once.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{Attempt, Failure, FailureCode};
use polis_ports::ModelError;

/// Retries of one model after the first attempt, where its settings name no other number.
const USUAL_RETRIES: u32 = 3;

/// The longest pause between attempts that no vendor asked for, as a power of two in seconds.
const MAX_PAUSE_EXPONENT: u32 = 6;

/// How often an open circuit breaker of the last model is waited for.
const MAX_RESTS: u32 = 5;

/// A vendor that asks for a longer wait is treated as not answering.
const MAX_PATIENCE: Duration = Duration::from_secs(600);

/// The attempts of one call.
pub(super) struct Attempts<N> {
    /// The models to try, in order.
    models: Vec<Arc<str>>,
    /// Resolves a model to its full name.
    name: N,
    /// How many retries each model gets.
    retries: Vec<u32>,
    place: usize,
    /// Failed attempts of the present model.
    failed: u32,
    /// How often its circuit breaker was waited for since the last attempt.
    rests: u32,
}

impl<N: Fn(&str) -> Arc<str>> Attempts<N> {
    /// Continues after the logged attempts. `models` may have changed since; attempts at models that are gone are ignored.
    pub(super) fn new<'a>(models: Vec<Arc<str>>, name: N, logged: impl Iterator<Item = &'a Attempt>) -> Self {
        let retries = vec![USUAL_RETRIES; models.len()];
        let mut attempts = Self { models, name, retries, place: 0, failed: 0, rests: 0 };
        for attempt in logged {
            let is_next = |model: &Arc<str>| (attempts.name)(model) == attempt.next;
            let Some(place) = attempts.models.iter().position(is_next) else { continue };
            attempts.place = place;
            let is_same = attempt.next == attempt.model;
            let rested = attempt.failure.code == FailureCode::ModelResting;
            (attempts.failed, attempts.rests) = match (is_same, rested) {
                (true, true) => (attempts.failed, attempts.rests + 1),
                (true, false) => (attempt.attempt, 0),
                (false, _) => (0, 0),
            };
        }
        attempts
    }

    /// Takes over what the settings of the models say about retries.
    pub(super) fn set_retries(&mut self, retries: impl Fn(&str) -> Option<u32>) {
        self.retries = self.models.iter().map(|model| retries(model).unwrap_or(USUAL_RETRIES)).collect();
    }

    fn max_retries(&self) -> u32 {
        self.retries.get(self.place).copied().unwrap_or(USUAL_RETRIES)
    }

    /// The model to try now.
    pub(super) fn model(&self) -> Arc<str> {
        self.models.get(self.place).cloned().unwrap_or_default()
    }

    fn name(&self) -> Arc<str> {
        self.models.get(self.place).map(|model| (self.name)(model)).unwrap_or_default()
    }

    /// The next attempt after a failure; none when all models are exhausted.
    pub(super) fn after(&mut self, error: &ModelError) -> Option<Attempt> {
        let (model, attempt, max_retries) = (self.name(), self.failed + 1, self.max_retries());
        let is_resting = matches!(error, ModelError::Resting { .. });
        let is_last = self.place + 1 >= self.models.len();
        let delay = match self.wait(error) {
            // No request was sent, so this is no attempt; but the number of waits is limited.
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
            max_retries,
            failure: Failure::new(error.code(), error.to_string()),
            delay_ms: delay.as_millis() as u64,
            next: self.name(),
        })
    }

    /// The next attempt after an empty reply: the same model once more, then the next one. None for the last model, whose reply
    /// counts as it is.
    pub(super) fn after_empty(&mut self) -> Option<Attempt> {
        if self.place + 1 >= self.models.len() {
            return None;
        }
        let (model, attempt) = (self.name(), self.failed + 1);
        (self.place, self.failed, self.rests) = if self.failed == 0 { (self.place, 1, 0) } else { (self.place + 1, 0, 0) };
        let failure = Failure::new("empty_reply", "the model gave no answer");
        Some(Attempt { model, attempt, max_retries: 1, failure, delay_ms: 0, next: self.name() })
    }

    /// The attempt that an earlier run may have made before it died. It is logged and counted, but does not use up a retry.
    pub(super) fn interrupted(&self) -> Attempt {
        let model = self.name();
        Attempt {
            next: model.clone(),
            model,
            attempt: self.failed,
            max_retries: self.max_retries(),
            failure: Failure::new(FailureCode::ModelInterrupted, "the program ended while the model was asked"),
            delay_ms: 0,
        }
    }

    /// How long to wait before the next attempt of the same model; none if there is none.
    fn wait(&self, error: &ModelError) -> Option<Duration> {
        let asked_for = error.retry_after().unwrap_or_default();
        if matches!(error, ModelError::Resting { .. }) {
            return Some(asked_for);
        }
        // The other form of a refused request is no repetition of a failure, so it is tried without retries too.
        let is_adapted = matches!(error, ModelError::Adapted { .. });
        let most = if is_adapted { self.max_retries().max(USUAL_RETRIES) } else { self.max_retries() };
        let may = error.is_passing() && self.failed < most && asked_for <= MAX_PATIENCE;
        let pause = || asked_for.max(Duration::from_secs(1 << self.failed.min(MAX_PAUSE_EXPONENT)));
        may.then(|| if is_adapted { Duration::ZERO } else { pause() })
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
    fn the_settings_of_a_model_say_how_often_it_is_asked_again() {
        let delays = |retries: [u32; 2], error: fn() -> ModelError| {
            let mut attempts = Attempts::new(vec!["a".into(), "b".into()], |model| model.into(), std::iter::empty());
            attempts.set_retries(|model| (model == "a").then_some(retries[0]).or(Some(retries[1])));
            let steps = std::iter::from_fn(|| attempts.after(&error()));
            steps.map(|attempt| (attempt.next.to_string(), attempt.delay_ms, attempt.max_retries)).collect::<Vec<_>>()
        };
        let step = |next: &str, delay, retries| (next.to_owned(), delay, retries);
        assert_eq!(delays([0, 1], || failed(0)), [step("b", 0, 0), step("b", 1_000, 1)]);
        let long: Vec<_> = delays([0, 9], || failed(0)).into_iter().skip(1).map(|(_, delay, _)| delay / 1_000).collect();
        assert_eq!(long, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        let adapted = delays([0, 0], || ModelError::Adapted { reason: "no".to_owned() });
        assert_eq!(adapted.iter().filter(|(next, ..)| next == "a").count(), USUAL_RETRIES as usize, "{adapted:?}");
    }

    #[test]
    fn a_model_that_says_nothing_is_asked_once_more_and_then_the_next_one() {
        let models = || vec!["a".into(), "b".into()];
        let mut attempts = Attempts::new(models(), |model| model.into(), std::iter::empty());
        let logged: Vec<Attempt> = std::iter::from_fn(|| attempts.after_empty()).collect();
        let next: Vec<_> = logged.iter().map(|attempt| (&*attempt.next, attempt.delay_ms, &*attempt.failure.code)).collect();
        assert_eq!(next, [("a", 0, "empty_reply"), ("b", 0, "empty_reply")]);
        let mut again = Attempts::new(models(), |model| model.into(), logged[..1].iter());
        assert_eq!(again.after_empty().as_ref(), Some(&logged[1]), "a second run counts what is logged");
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
