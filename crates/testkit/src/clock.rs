//! Time that moves only when the test lets it.

use std::time::Duration;

use async_trait::async_trait;
use polis_domain::Timestamp;
use polis_ports::Clock;
use tokio::time::Instant;

/// A clock over tokio's paused time: it stands still while anything runs and jumps to the next wait when nothing does.
///
/// Make it inside a runtime with paused time (`#[tokio::test(start_paused = true)]`).
#[derive(Debug, Clone, Copy)]
pub struct ManualClock {
    start: Instant,
    base: Timestamp,
}

impl ManualClock {
    /// A clock that shows `base` now.
    pub fn at(base: Timestamp) -> Self {
        Self { start: Instant::now(), base }
    }

    /// Moves time on.
    pub async fn advance(&self, duration: Duration) {
        tokio::time::advance(duration).await;
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.base.0 + self.start.elapsed().as_millis() as u64)
    }

    async fn sleep_until(&self, until: Timestamp) {
        let since_base = Duration::from_millis(until.0.saturating_sub(self.base.0));
        tokio::time::sleep_until(self.start + since_base).await;
    }
}
