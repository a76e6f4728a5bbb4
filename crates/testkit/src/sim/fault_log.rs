//! A log with injected faults: appends are slow, fail, or kill the process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{Recorded, Seq, SocietyId};
use polis_ports::{Log, LogError};
use tokio::sync::Notify;

use super::{Plan, SeededRng};
use crate::Gate;

/// The faults that are still to come, and those so far.
#[derive(Debug, Clone)]
pub(super) struct FaultSchedule {
    rng: SeededRng,
    left: Vec<(u64, bool)>,
    appends: u64,
    failures_percent: u64,
    max_delay_ms: u64,
    /// Deaths so far.
    pub(super) kills: usize,
    /// Failures so far.
    pub(super) failures: usize,
}

impl FaultSchedule {
    /// The schedule of a plan.
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            rng: SeededRng::new(plan.seed ^ 0xfa17),
            left: plan.kills.iter().rev().copied().collect(),
            appends: 0,
            failures_percent: plan.failures_percent,
            max_delay_ms: plan.max_delay_ms,
            kills: 0,
            failures: 0,
        }
    }

    /// What happens to the next append.
    fn next(&mut self) -> AppendFault {
        self.appends += 1;
        if self.left.last().is_some_and(|(at, _)| self.appends > *at) {
            let (_, durable) = self.left.pop().unwrap_or_default();
            self.appends = 0;
            self.kills += 1;
            return AppendFault::Death { durable };
        }
        if self.rng.chance(self.failures_percent) {
            self.failures += 1;
            return AppendFault::Failure { durable: self.rng.chance(50) };
        }
        AppendFault::None
    }
}

/// What happens to an append. A write that is torn is cut back as a whole when the log is opened again: not durable.
enum AppendFault {
    None,
    Failure { durable: bool },
    Death { durable: bool },
}

/// The gate of a log with injected faults.
#[derive(Debug)]
pub(super) struct FaultGate {
    schedule: Mutex<FaultSchedule>,
    /// Appends that are under way together are written one after another, in the order in which they began.
    disk: tokio::sync::Mutex<()>,
    killed: Arc<Notify>,
}

impl FaultGate {
    /// A gate that follows this schedule.
    pub(super) fn new(schedule: FaultSchedule) -> Self {
        Self { schedule: Mutex::new(schedule), disk: tokio::sync::Mutex::default(), killed: Arc::default() }
    }

    /// Notified when the process is dead.
    pub(super) fn killed(&self) -> Arc<Notify> {
        self.killed.clone()
    }

    /// The schedule as it is now.
    pub(super) fn schedule(&self) -> FaultSchedule {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, FaultSchedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Gate for FaultGate {
    async fn append(
        &self,
        log: &dyn Log,
        society: &SocietyId,
        expected: Seq,
        events: &[Arc<Recorded>],
    ) -> Result<(), LogError> {
        let _writing = self.disk.lock().await;
        let delay = {
            let mut schedule = self.lock();
            let longest = schedule.max_delay_ms / 4;
            Duration::from_millis(schedule.rng.below(longest + 1))
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let strike = self.lock().next();
        let durable = match strike {
            AppendFault::None => true,
            AppendFault::Failure { durable } | AppendFault::Death { durable } => durable,
        };
        if durable {
            log.append(society, expected, events).await?;
        }
        match strike {
            AppendFault::None => Ok(()),
            AppendFault::Failure { .. } => Err(LogError::Failed("the weather".into())),
            AppendFault::Death { .. } => {
                // Nothing more is written: the disk stays locked.
                self.killed.notify_one();
                std::future::pending().await
            }
        }
    }
}
