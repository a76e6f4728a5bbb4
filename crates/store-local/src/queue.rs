//! The queue in front of the writer: bounded in bytes, taken in groups.
//!
//! Group commit needs a small delay to work well. Callers (societies) wait for answers before they append much more. Without a
//! delay the first caller to return after a commit would be committed alone, and all others would wait for its fsync; groups
//! would alternate between one caller and all the rest. So after a group of many callers the writer waits a moment for as many
//! to come back. A single caller never waits, however many of its jobs are queued, because then the writer expects only one.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polis_ports::LogError;
use tokio::sync::Semaphore;

/// How much may be queued; beyond it callers wait for space.
const WAITING_KIB: u32 = 64 * 1024;

/// How many jobs a group may have.
const GROUP_JOBS: usize = 512;

/// How large a group may be, unless a single job is larger.
const GROUP_KIB: u32 = 4 * 1024;

/// How long a group waits for expected callers at most.
const LONGEST_WAIT: Duration = Duration::from_micros(500);

/// A queue of jobs for one consumer.
pub(crate) struct Queue<Job> {
    state: Mutex<State<Job>>,
    arrived: Condvar,
    room_kib: Semaphore,
    /// Held while a job waits for space, so that no later job gets in before it.
    entrance: tokio::sync::Mutex<()>,
}

struct State<Job> {
    jobs: VecDeque<(Job, u32)>,
    /// The number of queued jobs that wakes the writer; 0 while it does not sleep. Producers notify only when it is reached, so
    /// that a waiting writer is not woken by each job of a group.
    wake_at: usize,
    closed: bool,
}

/// How many callers the writer expects and how long it may wait for them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    jobs: usize,
    until: Instant,
}

impl Expected {
    /// Takes whatever is queued.
    pub(crate) fn none() -> Self {
        Self { jobs: 1, until: Instant::now() }
    }

    /// Waits for a job of each caller that was just answered or arrived during the commit, for a fraction of the usual commit
    /// time.
    pub(crate) fn returning(callers: usize, commit: Duration) -> Self {
        Self { jobs: callers.clamp(1, GROUP_JOBS), until: Instant::now() + (commit / 4).min(LONGEST_WAIT) }
    }
}

impl<Job> Queue<Job> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State { jobs: VecDeque::new(), wake_at: 0, closed: false }),
            arrived: Condvar::new(),
            room_kib: Semaphore::new(WAITING_KIB as usize),
            entrance: tokio::sync::Mutex::default(),
        }
    }

    /// Adds a job once there is space for it and for all jobs before it.
    pub(crate) async fn push(&self, job: Job, bytes: usize) -> Result<(), LogError> {
        let kib = u32::try_from(1 + bytes / 1024).unwrap_or(WAITING_KIB).min(WAITING_KIB);
        let _entered = self.entrance.lock().await;
        // The permits are returned when the writer takes the job.
        self.room_kib.acquire_many(kib).await.map_err(|_| stopped())?.forget();
        let mut state = self.lock();
        if state.closed {
            return Err(stopped());
        }
        state.jobs.push_back((job, kib));
        if state.wake_at > 0 && state.jobs.len() >= state.wake_at {
            state.wake_at = 0;
            drop(state);
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// The next group, in order of arrival; none once the queue is closed and empty.
    pub(crate) fn take(&self, expected: Expected) -> Option<Vec<Job>> {
        let mut state = self.lock();
        while state.jobs.is_empty() {
            if state.closed {
                return None;
            }
            state.wake_at = 1;
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        while state.jobs.len() < expected.jobs && !state.closed {
            let left = expected.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.wake_at = expected.jobs;
            (state, _) = self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
        state.wake_at = 0;
        let (mut group, mut group_kib) = (Vec::with_capacity(state.jobs.len().min(GROUP_JOBS)), 0);
        while let Some((_, kib)) = state.jobs.front() {
            if !group.is_empty() && (group.len() == GROUP_JOBS || group_kib + kib > GROUP_KIB) {
                break;
            }
            group_kib += kib;
            group.extend(state.jobs.pop_front().map(|(job, _)| job));
        }
        drop(state);
        self.room_kib.add_permits(group_kib as usize);
        Some(group)
    }

    /// Shows the jobs that wait.
    pub(crate) fn each_waiting(&self, see: impl FnMut(&Job)) {
        self.lock().jobs.iter().map(|(job, _)| job).for_each(see);
    }

    /// Accepts no more jobs; queued ones are still processed.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.room_kib.close();
        self.arrived.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State<Job>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error after the log was closed.
pub(crate) fn stopped() -> LogError {
    LogError::Failed("the log is closed".into())
}
