//! A log in bad weather: it is slow, it fails, and the process dies at it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{Recorded, Seq, SocietyId};
use polis_ports::{Log, LogError};
use tokio::sync::Notify;

use super::{Dice, Plan};
use crate::Gate;

/// What the log has in store, and what it has done so far.
#[derive(Debug, Clone)]
pub(super) struct Weather {
    dice: Dice,
    left: Vec<(u64, bool)>,
    appends: u64,
    failures_percent: u64,
    max_delay_ms: u64,
    dead: bool,
    /// Deaths so far.
    pub(super) kills: usize,
    /// Failures so far.
    pub(super) failures: usize,
}

impl Weather {
    /// The weather of a plan.
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            dice: Dice::new(plan.seed ^ 0xfa17),
            left: plan.kills.iter().rev().copied().collect(),
            appends: 0,
            failures_percent: plan.failures_percent,
            max_delay_ms: plan.max_delay_ms,
            dead: false,
            kills: 0,
            failures: 0,
        }
    }

    /// What happens to the next append.
    fn next(&mut self) -> Strike {
        self.appends += 1;
        if self.left.last().is_some_and(|(at, _)| self.appends > *at) {
            let (_, durable) = self.left.pop().unwrap_or_default();
            (self.appends, self.dead) = (0, true);
            self.kills += 1;
            return Strike::Death { durable };
        }
        if self.dice.chance(self.failures_percent) {
            self.failures += 1;
            return Strike::Failure { durable: self.dice.chance(50) };
        }
        Strike::None
    }
}

/// What happens to an append. A write that is torn is cut back as a whole when the log is opened again: not durable.
enum Strike {
    None,
    Failure { durable: bool },
    Death { durable: bool },
}

/// The gate of a log in bad weather.
#[derive(Debug)]
pub(super) struct Faults {
    weather: Mutex<Weather>,
    killed: Arc<Notify>,
}

impl Faults {
    /// This weather.
    pub(super) fn new(weather: Weather) -> Self {
        let weather = Weather { dead: false, ..weather };
        Self { weather: Mutex::new(weather), killed: Arc::default() }
    }

    /// Tells when the process is dead.
    pub(super) fn killed(&self) -> Arc<Notify> {
        self.killed.clone()
    }

    /// The weather as it is now.
    pub(super) fn weather(&self) -> Weather {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Weather> {
        self.weather.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Gate for Faults {
    async fn append(
        &self,
        log: &dyn Log,
        society: &SocietyId,
        expected: Seq,
        events: &[Arc<Recorded>],
    ) -> Result<(), LogError> {
        if self.lock().dead {
            std::future::pending::<()>().await;
        }
        let delay = {
            let mut weather = self.lock();
            let longest = weather.max_delay_ms / 4;
            Duration::from_millis(weather.dice.below(longest + 1))
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let strike = self.lock().next();
        let durable = match strike {
            Strike::None => true,
            Strike::Failure { durable } | Strike::Death { durable } => durable,
        };
        if durable {
            log.append(society, expected, events).await?;
        }
        match strike {
            Strike::None => Ok(()),
            Strike::Failure { .. } => Err(LogError::Failed("the weather".into())),
            Strike::Death { .. } => {
                self.killed.notify_one();
                std::future::pending().await
            }
        }
    }
}
