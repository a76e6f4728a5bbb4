//! Time, as a port: the engine never asks the operating system.

use async_trait::async_trait;
use polis_domain::Timestamp;

/// Tells the time and waits for it.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The present time. It may jump, so nothing is ordered by it.
    fn now(&self) -> Timestamp;

    /// Returns once `now` has reached `until`.
    async fn sleep_until(&self, until: Timestamp);
}
