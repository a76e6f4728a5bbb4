//! The log: what happened, in order, for good.

use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{Recorded, Seq, SocietyId, ThreadId};

use crate::BoxError;

/// Keeps the events of many societies.
///
/// Whatever `append` acknowledged survives the death of the process and of the machine. The expected place is the fence: an
/// owner whose picture of the log is stale cannot append.
#[async_trait]
pub trait Log: Send + Sync {
    /// Appends all of `events` or none, durable when it returns. `expected` is the society's last place so far (0: none),
    /// and `events` follow it without gaps.
    ///
    /// An error other than [`LogError::Conflict`] leaves it open whether the events are there: ask [`Log::head`] to know.
    async fn append(&self, society: &SocietyId, expected: Seq, events: &[Arc<Recorded>]) -> Result<(), LogError>;

    /// The society's last place; 0 when nothing happened yet.
    async fn head(&self, society: &SocietyId) -> Result<Seq, LogError>;

    /// The last place that can be read now. While it is open whether a failed append is there, this is the place before it: it
    /// answers where [`Log::head`] cannot yet.
    async fn readable_head(&self, society: &SocietyId) -> Result<Seq, LogError> {
        self.head(society).await
    }

    /// At most `limit` events after `after`, in order.
    async fn read(&self, society: &SocietyId, after: Seq, limit: usize) -> Result<Vec<Recorded>, LogError>;

    /// The events recorded under one thread, in order.
    async fn read_thread(&self, society: &SocietyId, thread: &ThreadId, range: ThreadRange) -> Result<Vec<Recorded>, LogError>;

    /// The newest snapshot, if one was saved. A snapshot is a cache: losing it costs time, nothing else.
    async fn load_snapshot(&self, society: &SocietyId) -> Result<Option<Snapshot>, LogError>;

    /// Saves a snapshot in place of any older one.
    async fn save_snapshot(&self, society: &SocietyId, snapshot: Snapshot) -> Result<(), LogError>;

    /// The last place up to `through` at which an append ended. Between two of them the society was in no state that anybody saw,
    /// so it can be forked only there.
    async fn whole(&self, society: &SocietyId, through: Seq) -> Result<Seq, LogError>;

    /// Begins a society that has the events of another up to a place, and then one of its own; all of it or nothing, durable when
    /// it returns. Neither ever sees what the other appends later.
    ///
    /// [`LogError::Conflict`] when a name is taken. The society whose name is given away must not be open anywhere.
    async fn fork(&self, fork: &Fork) -> Result<(), LogError>;

    /// The societies that have events, in the order of their names.
    async fn societies(&self) -> Result<Vec<SocietyId>, LogError>;

    /// Whose events a society has from before it was forked, by the name that this one has now; none when all of them are its own.
    async fn origin(&self, society: &SocietyId) -> Result<Option<Origin>, LogError>;
}

/// Where a fork parts from the society that it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Whose events it has.
    pub from: SocietyId,
    /// The last event that both share.
    pub at: Seq,
}

/// How a society begins as a part of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Fork {
    /// Whose events it has.
    pub from: SocietyId,
    /// Up to which place; an append must have ended there.
    pub at: Seq,
    /// What it is called.
    pub to: SocietyId,
    /// What the society is called from now on that had this name so far; none when the name is free.
    pub aside: Option<SocietyId>,
    /// The first event of its own, at the place after `at`.
    pub first: Arc<Recorded>,
}

/// Which of a thread's events to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRange {
    /// Only events after this place.
    pub after: Seq,
    /// Only events up to and including this place.
    pub through: Seq,
    /// Of those, only this many of the oldest.
    pub oldest: usize,
    /// Of those, only this many of the newest.
    pub newest: usize,
}

impl ThreadRange {
    /// All events of the thread.
    pub const ALL: Self = Self { after: Seq(0), through: Seq(u64::MAX), oldest: usize::MAX, newest: usize::MAX };

    /// All events of the thread up to and including a place.
    pub fn through(through: Seq) -> Self {
        Self { through, ..Self::ALL }
    }
}

/// A folded state at a place of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event that is folded in.
    pub seq: Seq,
    /// The shape of `body`; a reader that does not know it ignores the snapshot.
    pub version: u32,
    /// The state.
    pub body: Vec<u8>,
}

/// Why the log did not do it.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Somebody else appended: the caller's picture is stale and it must stop.
    #[error("the log of `{society}` ends at {actual}, not at {expected}: another owner has appended")]
    Conflict {
        /// Whose log.
        society: SocietyId,
        /// Where the caller thought it ends.
        expected: Seq,
        /// Where it ends.
        actual: Seq,
    },
    /// Another process has it open.
    #[error("{0}")]
    Locked(String),
    /// Written by a newer version of Polis.
    #[error("{0}")]
    TooNew(String),
    /// What was read is not what was written.
    #[error("{0}")]
    Damaged(String),
    /// The disk is full. Nothing was acknowledged; make room and it goes on.
    #[error("the disk that holds the log is full; make room and try again")]
    Full(#[source] BoxError),
    /// Anything else below. Nothing was acknowledged.
    #[error("the log cannot be written or read: {0}")]
    Failed(#[source] BoxError),
}

impl LogError {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "log_conflict",
            Self::Locked(_) => "data_locked",
            Self::TooNew(_) => "data_too_new",
            Self::Damaged(_) => "data_damaged",
            Self::Full(_) => "disk_full",
            Self::Failed(_) => "log_failed",
        }
    }
}
