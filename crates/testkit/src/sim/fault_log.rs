//! A log in bad weather: it is slow, it fails, and the process dies at it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{Recorded, Seq, SocietyId, ThreadId};
use polis_ports::{Log, LogError, Snapshot, ThreadRange};
use tokio::sync::Notify;

use super::{Dice, Plan};
use crate::MemoryLog;

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

/// A log in bad weather.
#[derive(Debug)]
pub(super) struct FaultLog {
    log: Arc<MemoryLog>,
    weather: Mutex<Weather>,
    killed: Arc<Notify>,
}

impl FaultLog {
    /// This log in this weather.
    pub(super) fn new(log: Arc<MemoryLog>, weather: Weather) -> Self {
        let weather = Weather { dead: false, ..weather };
        Self { log, weather: Mutex::new(weather), killed: Arc::default() }
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

    /// A dead process does nothing more.
    async fn stay_alive(&self) {
        if self.lock().dead {
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl Log for FaultLog {
    async fn append(&self, society: &SocietyId, expected: Seq, events: &[Arc<Recorded>]) -> Result<(), LogError> {
        self.stay_alive().await;
        let delay = {
            let mut weather = self.lock();
            let longest = weather.max_delay_ms / 4;
            Duration::from_millis(weather.dice.below(longest + 1))
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let strike = self.lock().next();
        match strike {
            Strike::None => self.log.append(society, expected, events).await,
            Strike::Failure { durable } => {
                if durable {
                    self.log.append(society, expected, events).await?;
                }
                Err(LogError::Failed("the weather".into()))
            }
            Strike::Death { durable } => {
                if durable {
                    self.log.append(society, expected, events).await?;
                }
                self.killed.notify_one();
                std::future::pending().await
            }
        }
    }

    async fn head(&self, society: &SocietyId) -> Result<Seq, LogError> {
        self.stay_alive().await;
        self.log.head(society).await
    }

    async fn read(&self, society: &SocietyId, after: Seq, limit: usize) -> Result<Vec<Recorded>, LogError> {
        self.stay_alive().await;
        self.log.read(society, after, limit).await
    }

    async fn read_thread(&self, society: &SocietyId, thread: &ThreadId, range: ThreadRange) -> Result<Vec<Recorded>, LogError> {
        self.stay_alive().await;
        self.log.read_thread(society, thread, range).await
    }

    async fn load_snapshot(&self, society: &SocietyId) -> Result<Option<Snapshot>, LogError> {
        self.log.load_snapshot(society).await
    }

    async fn save_snapshot(&self, society: &SocietyId, snapshot: Snapshot) -> Result<(), LogError> {
        self.log.save_snapshot(society, snapshot).await
    }

    async fn societies(&self) -> Result<Vec<SocietyId>, LogError> {
        self.log.societies().await
    }
}
