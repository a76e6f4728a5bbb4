//! The clock of the machine.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use async_trait::async_trait;
use polis_domain::Timestamp;
use polis_ports::Clock;

/// Tells the machine's time, but never goes back within a process: waits and deadlines are computed from it, and a wait of a second
/// must not take a day because the machine's clock was set back by one. It then goes a tenth slower than the machine, until the
/// machine has caught up. A jump forward is followed.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// How long to sleep before looking at the clock again.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// What all clocks of this process tell.
static STEADY: Mutex<Steady> = Mutex::new(Steady { last: None });

/// A time that does not go back.
struct Steady {
    /// The last time of the machine that was told, and when that was by the monotonic clock.
    last: Option<(u64, Instant)>,
}

impl Steady {
    /// The time, if the machine says that it is this one, in milliseconds.
    fn at(&mut self, machine: u64, monotonic: Instant) -> u64 {
        let least = self.last.map_or(0, |(last, at)| {
            let passed = monotonic.saturating_duration_since(at);
            last + (passed - passed / 10).as_millis() as u64
        });
        if machine >= least {
            self.last = Some((machine, monotonic));
        }
        machine.max(least)
    }
}

impl SystemClock {
    /// What the machine says now, or the steady time if that is earlier: for what must not be done too early, such as erasing what is old. A
    /// machine whose clock was ahead for a moment makes nothing old.
    pub fn earliest() -> Timestamp {
        SystemClock.now().min(machine())
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that asks the machine")]
fn machine() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(since.as_millis() as u64)
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let mut steady = STEADY.lock().unwrap_or_else(PoisonError::into_inner);
        Timestamp(steady.at(machine().0, Instant::now()))
    }

    async fn sleep_until(&self, until: Timestamp) {
        loop {
            let left = until.0.saturating_sub(self.now().0);
            if left == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(left).min(LOOK_AGAIN)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_when_the_machine_goes_back_and_follows_it_again_when_that_has_caught_up() {
        const DAY: u64 = 86_400_000;
        let begin = Instant::now();
        let mut steady = Steady { last: None };
        let mut told = |machine: u64, passed_ms: u64| steady.at(machine, begin + Duration::from_millis(passed_ms));
        assert_eq!(told(DAY, 0), DAY);
        assert_eq!(told(DAY + 100, 100), DAY + 100);
        // A day back: it goes on, a tenth slower.
        assert_eq!(told(100, 100), DAY + 100);
        assert_eq!(told(1_100, 1_100), DAY + 1_000);
        assert_eq!(told(10_100, 10_100), DAY + 9_100);
        // The machine is ahead again, and then jumps forward.
        assert_eq!(told(DAY + 20_000, 20_100), DAY + 20_000);
        assert_eq!(told(3 * DAY, 20_200), 3 * DAY);
        // Back by less than it may have lost.
        assert_eq!(told(3 * DAY + 95, 20_300), 3 * DAY + 95);
    }

    #[test]
    fn a_time_that_is_asked_for_many_times_in_a_millisecond_goes_on_all_the_same() {
        let begin = Instant::now();
        let mut steady = Steady { last: None };
        assert_eq!(steady.at(1_000_000, begin), 1_000_000);
        let mut last = 0;
        for n in 1..=10_000 {
            last = steady.at(0, begin + n * Duration::from_micros(100));
        }
        assert_eq!(last, 1_000_900);
    }
}
