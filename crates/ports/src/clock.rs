//! Time, as a port: the engine never asks the operating system.

use async_trait::async_trait;
use polis_domain::Timestamp;

/// Knows the time and can wait for it.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The time now. It may jump; nothing is ordered by it.
    fn now(&self) -> Timestamp;

    /// Returns once `now` has reached `until`.
    async fn sleep_until(&self, until: Timestamp);
}
