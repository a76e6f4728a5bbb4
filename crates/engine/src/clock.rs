//! The clock of the machine.

use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use polis_domain::Timestamp;
use polis_ports::Clock;

/// Tells the machine's time. A wait goes by the monotonic clock and looks again at the end, so that a jump neither hangs it
/// nor cuts it short.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// How long to sleep before looking at the clock again.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the machine")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(since.as_millis() as u64)
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
