//! Keeps to a vendor's limits for one key: requests and tokens per minute. Waiting agents take turns, one request of each
//! agent after another, so that a busy agent does not keep the others out.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

/// What a vendor allows; what is not set has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rate {
    /// Requests.
    pub requests_per_minute: Option<u32>,
    /// Tokens, in and out.
    pub tokens_per_minute: Option<u64>,
}

/// Lets requests through as fast as a [`Rate`] allows.
#[derive(Debug)]
pub(crate) struct Limiter {
    rate: Rate,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What may go out now. Below nothing when more was used than was guessed.
    requests: f64,
    tokens: f64,
    filled: Instant,
    /// Those who wait, by who they are; the front is next.
    waiting: VecDeque<(Arc<str>, VecDeque<QueuedRequest>)>,
    /// Somebody lets them through, one after another.
    pumping: bool,
}

#[derive(Debug)]
struct QueuedRequest {
    tokens: u64,
    go: oneshot::Sender<()>,
}

const MINUTE: f64 = 60.0;

impl Limiter {
    pub(crate) fn new(rate: Rate) -> Self {
        let (requests, tokens) = (f64::from(rate.requests_per_minute.unwrap_or(0)), rate.tokens_per_minute.unwrap_or(0) as f64);
        let state = State { requests, tokens, filled: Instant::now(), waiting: VecDeque::new(), pumping: false };
        Self { rate, state: Mutex::new(state) }
    }

    /// Waits until a request of about so many tokens may go out.
    pub(crate) async fn wait(self: &Arc<Self>, asker: &Arc<str>, tokens: u64) {
        if self.rate == Rate::default() {
            return;
        }
        let (go, may) = oneshot::channel();
        let pumps = {
            let mut state = self.lock();
            let ticket = QueuedRequest { tokens, go };
            match state.waiting.iter_mut().find(|(who, _)| who == asker) {
                Some((_, tickets)) => tickets.push_back(ticket),
                None => state.waiting.push_back((asker.clone(), VecDeque::from([ticket]))),
            }
            !std::mem::replace(&mut state.pumping, true)
        };
        if pumps {
            tokio::spawn(self.clone().pump());
        }
        // It is always let through in the end; without a pump, at the end of the program, nobody minds.
        let _ = may.await;
    }

    /// Puts what was really used in the place of what was guessed.
    pub(crate) fn correct(&self, guessed: u64, used: u64) {
        self.lock().tokens += guessed as f64 - used as f64;
    }

    async fn pump(self: Arc<Self>) {
        loop {
            let wait = {
                let mut state = self.lock();
                match self.next(&mut state) {
                    None => return,
                    Some(wait) => wait,
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// Lets through whoever may go now; gives how long the next one has to wait, or none when nobody is left.
    fn next(&self, state: &mut State) -> Option<Duration> {
        self.fill(state);
        loop {
            let Some((_, tickets)) = state.waiting.front_mut() else {
                state.pumping = false;
                return None;
            };
            tickets.retain(|ticket| !ticket.go.is_closed());
            let Some(tokens) = tickets.front().map(|ticket| ticket.tokens) else {
                state.waiting.pop_front();
                continue;
            };
            let wait = self.time_until(state, tokens);
            if !wait.is_zero() {
                return Some(wait);
            }
            state.requests -= 1.0;
            state.tokens -= tokens as f64;
            let Some((who, mut tickets)) = state.waiting.pop_front() else { continue };
            if let Some(ticket) = tickets.pop_front() {
                let _ = ticket.go.send(());
            }
            if !tickets.is_empty() {
                state.waiting.push_back((who, tickets));
            }
        }
    }

    fn fill(&self, state: &mut State) {
        let now = Instant::now();
        let passed = now.duration_since(state.filled).as_secs_f64();
        state.filled = now;
        let filled = |level: f64, per_minute: f64| (level + passed * per_minute / MINUTE).min(per_minute);
        state.requests = filled(state.requests, f64::from(self.rate.requests_per_minute.unwrap_or(0)));
        state.tokens = filled(state.tokens, self.rate.tokens_per_minute.unwrap_or(0) as f64);
    }

    /// How long until one more request fits. One that is larger than a minute's worth goes when the minute is full.
    fn time_until(&self, state: &State, tokens: u64) -> Duration {
        let until = |level: f64, wanted: f64, per_minute: Option<f64>| match per_minute {
            Some(per_minute) if per_minute > 0.0 => (wanted.min(per_minute) - level).max(0.0) * MINUTE / per_minute,
            _ => 0.0,
        };
        let requests = until(state.requests, 1.0, self.rate.requests_per_minute.map(f64::from));
        let tokens = until(state.tokens, tokens as f64, self.rate.tokens_per_minute.map(|limit| limit as f64));
        // A little more, so that rounding does not make us look once more for nothing.
        let wait = requests.max(tokens);
        if wait > 0.0 { Duration::from_secs_f64(wait + 0.001) } else { Duration::ZERO }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(requests: Option<u32>, tokens: Option<u64>) -> Arc<Limiter> {
        Arc::new(Limiter::new(Rate { requests_per_minute: requests, tokens_per_minute: tokens }))
    }

    async fn seconds(limiter: &Arc<Limiter>, who: &str, tokens: u64) -> u64 {
        let begun = Instant::now();
        limiter.wait(&who.into(), tokens).await;
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn requests_and_tokens_go_out_as_fast_as_is_allowed() {
        let by_requests = limiter(Some(3), None);
        let mut waits = Vec::new();
        for _ in 0..5 {
            waits.push(seconds(&by_requests, "a", 1_000_000).await);
        }
        assert_eq!(waits, [0, 0, 0, 20, 20]);
        let by_tokens = limiter(None, Some(600));
        assert_eq!(seconds(&by_tokens, "a", 600).await, 0);
        assert_eq!(seconds(&by_tokens, "a", 100).await, 10);
        assert_eq!(seconds(&by_tokens, "a", 9_999).await, 60, "one that is too large goes alone");
        assert_eq!(seconds(&limiter(None, None), "a", 9_999).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_guessed_too_high_is_given_back() {
        let limiter = limiter(None, Some(600));
        assert_eq!(seconds(&limiter, "a", 600).await, 0);
        limiter.correct(600, 100);
        assert_eq!(seconds(&limiter, "a", 500).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_take_turns_and_one_who_gives_up_costs_nothing() {
        let limiter = limiter(Some(60), None);
        for _ in 0..60 {
            limiter.wait(&"first".into(), 0).await;
        }
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waits = tokio::task::JoinSet::new();
        for who in ["busy", "busy", "busy", "shy", "gone", "late"] {
            let (limiter, order) = (limiter.clone(), order.clone());
            let given_up = who == "gone";
            let wait = waits.spawn(async move {
                limiter.wait(&who.into(), 0).await;
                order.lock().unwrap().push(who);
            });
            tokio::task::yield_now().await;
            if given_up {
                wait.abort();
            }
        }
        let begun = Instant::now();
        while waits.join_next().await.is_some() {}
        assert_eq!(*order.lock().unwrap(), ["busy", "shy", "late", "busy", "busy"]);
        assert_eq!(begun.elapsed().as_secs(), 5);
    }
}
