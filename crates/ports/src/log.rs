//! The log: the durable, ordered events of societies.

use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{ConversationPlace, IdleKey, PersonId, Recorded, Seq, SocietyId, ThreadId};

use crate::BoxError;

/// Stores the events of many societies.
///
/// Whatever `append` has acknowledged survives a crash of the process and of the machine. The expected position is a fence:
/// an owner whose view of the log is stale cannot append.
#[async_trait]
pub trait Log: Send + Sync {
    /// Appends all of `events` or none, durable when it returns. `expected` is the last position of the society so far (0 if
    /// it has none), and `events` follow it without gaps.
    ///
    /// Appends of one society may be under way together. They are written in the order in which they were first polled, so an
    /// append may expect the position that the one before it will leave. If that one is not written, neither is this one: it
    /// is a conflict.
    ///
    /// After an error other than [`LogError::Conflict`] it is unknown whether the events are in the log; [`Log::head`] finds
    /// out.
    async fn append(&self, society: &SocietyId, expected: Seq, events: &[Arc<Recorded>]) -> Result<(), LogError>;

    /// The last position of the society; 0 if it has no events.
    async fn head(&self, society: &SocietyId) -> Result<Seq, LogError>;

    /// The last position that can be read at present. While the outcome of a failed append is unknown, this is the position
    /// before it; it works where [`Log::head`] cannot answer yet.
    async fn readable_head(&self, society: &SocietyId) -> Result<Seq, LogError> {
        self.head(society).await
    }

    /// At most `limit` events after `after`, in order.
    async fn read(&self, society: &SocietyId, after: Seq, limit: usize) -> Result<Vec<Recorded>, LogError>;

    /// The events recorded under one thread, in order.
    async fn read_thread(&self, society: &SocietyId, thread: &ThreadId, range: ThreadRange) -> Result<Vec<Recorded>, LogError>;

    /// The threads whose names begin with `listing.prefix`, the one that began last first. A thread began with its first
    /// event, also if that is in the part that a fork shares.
    async fn threads(&self, society: &SocietyId, listing: &ThreadListing) -> Result<Vec<ThreadId>, LogError>;

    /// The newest snapshot, if one was saved. A snapshot is a cache: losing it only costs time.
    async fn load_snapshot(&self, society: &SocietyId) -> Result<Option<Snapshot>, LogError>;

    /// Saves a snapshot in place of any older one, with its idle entries, all or nothing. An older one than there is is ignored.
    async fn save_snapshot(&self, society: &SocietyId, snapshot: NewSnapshot) -> Result<(), LogError>;

    /// The idle entries of the snapshot at `at`, or of a newer one, that these keys find. Entries are a cache as the snapshot is:
    /// if some are lost, this fails, and the log has to be folded from its first event.
    async fn idle_entries(&self, society: &SocietyId, at: Seq, keys: &[IdleKey]) -> Result<Vec<StoredEntry>, LogError>;

    /// The idle entries of one list, in its order.
    async fn list_idle(&self, society: &SocietyId, listing: &IdleListing) -> Result<Vec<StoredEntry>, LogError>;

    /// The last position up to `through` at which an append ended. Positions inside an append are states that nobody ever
    /// saw, so a society can be forked only at such positions.
    async fn whole(&self, society: &SocietyId, through: Seq) -> Result<Seq, LogError>;

    /// Creates a society that shares the events of another up to a position and then has one event of its own. All or
    /// nothing, durable when it returns. Neither sees later events of the other.
    ///
    /// [`LogError::Conflict`] if a name is taken. A society that is renamed by this must not be open anywhere.
    async fn fork(&self, fork: &Fork) -> Result<(), LogError>;

    /// The societies that have events, sorted by name.
    async fn societies(&self) -> Result<Vec<SocietyId>, LogError>;

    /// A part of the same list, with where each society stands. Costs what the part has, however many societies there are.
    async fn list_societies(&self, listing: &SocietyListing) -> Result<Vec<StoredSociety>, LogError>;

    /// The society that this one was forked from, by its present name, and where; none if it is not a fork.
    async fn origin(&self, society: &SocietyId) -> Result<Option<ForkOrigin>, LogError>;

    /// Whether effects of the society may begin. No when its owner had it for a time only and the time is about to end: another one
    /// may own it soon. It stays no from then on.
    fn is_owned(&self, society: &SocietyId) -> bool {
        let _ = society;
        true
    }

    /// Puts other events in the place of those at their positions, all or none: what an erasure leaves of them. Nothing else about
    /// them changes. Societies that share them, because one is a fork of the other, see the same. The last event stays as it is.
    ///
    /// Replacing an event by itself changes nothing, so an erasure that was interrupted is begun again.
    async fn redact(&self, society: &SocietyId, events: &[Recorded]) -> Result<(), LogError> {
        let _ = (society, events);
        Err(LogError::Failed("this log cannot erase anything".into()))
    }

    /// Returns when nothing of what was redacted is left in any file: neither in free room and journals, nor in snapshots of
    /// societies that share it. The snapshot of this society must have been made since.
    async fn forget_redacted(&self, society: &SocietyId) -> Result<(), LogError> {
        let _ = society;
        Err(LogError::Failed("this log cannot erase anything".into()))
    }
}

/// Where a fork left the society that it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkOrigin {
    /// The society that it was forked from.
    pub from: SocietyId,
    /// The last event that both share.
    pub at: Seq,
}

/// Which societies to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocietyListing {
    /// Only those after this name.
    pub after: Option<SocietyId>,
    /// At most this many.
    pub limit: usize,
}

/// A society as a log lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSociety {
    /// The name by which the log knows it.
    pub name: SocietyId,
    /// Its last position that can be read.
    pub head: Seq,
    /// Where it was forked from.
    pub origin: Option<ForkOrigin>,
}

/// The request for a fork.
#[derive(Debug, Clone, PartialEq)]
pub struct Fork {
    /// The society that it was forked from.
    pub from: SocietyId,
    /// The last shared position; an append must have ended there.
    pub at: Seq,
    /// The name of the new society.
    pub to: SocietyId,
    /// The new name for the society that has the name `to` so far; none if that name is free.
    pub aside: Option<SocietyId>,
    /// Its first own event, at the position after `at`.
    pub first: Arc<Recorded>,
}

/// Which of a thread's events to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRange {
    /// Only events after this position.
    pub after: Seq,
    /// Only events up to and including this position.
    pub through: Seq,
    /// Of those, only this many of the oldest.
    pub oldest: usize,
    /// Of those, only this many of the newest.
    pub newest: usize,
}

impl ThreadRange {
    /// All events of the thread.
    pub const ALL: Self = Self { after: Seq(0), through: Seq(u64::MAX), oldest: usize::MAX, newest: usize::MAX };

    /// All events of the thread up to and including a position.
    pub fn through(through: Seq) -> Self {
        Self { through, ..Self::ALL }
    }
}

/// Which threads to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadListing {
    /// How their names begin.
    pub prefix: String,
    /// Only threads that began before this one.
    pub before: Option<ThreadId>,
    /// At most this many.
    pub limit: usize,
}

/// A folded state at a position of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event that it contains.
    pub seq: Seq,
    /// The version of the format of `body`; readers ignore snapshots of other versions.
    pub version: u32,
    /// The serialised state.
    pub body: Vec<u8>,
}

/// A snapshot that is to be saved. It is written by the store where that holds nothing up.
pub struct NewSnapshot {
    /// The last event that it contains.
    pub seq: Seq,
    /// The version of its format.
    pub version: u32,
    /// The snapshot whose idle entries stay. Without one there are only those of this snapshot.
    pub after: Option<Seq>,
    /// Serialises it: the state without its idle entries, and those that became idle since `after`.
    pub write: Box<dyn FnOnce() -> (Vec<u8>, Vec<StoredEntry>) + Send>,
}

/// A part of the state that nothing in progress uses; see [`polis_domain::IdleEntry`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEntry {
    /// The name of the agent or thread.
    pub name: Arc<str>,
    /// The message that it hangs in, if it is a sub-thread.
    pub message: Option<(ThreadId, u32)>,
    /// The person that it belongs to.
    pub person: Option<PersonId>,
    /// What it is listed as.
    pub list: Option<IdleList>,
    /// The serialised entry.
    pub body: Vec<u8>,
}

/// What an idle entry is listed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleList {
    /// A conversation, with its place in the list.
    Conversation(ConversationPlace),
    /// A terminated agent.
    Terminated,
    /// A sub-thread.
    Thread,
}

/// Which idle entries to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleListing {
    /// Only those of this person.
    pub person: Option<PersonId>,
    /// Which ones, and in which order.
    pub of: IdleListed,
    /// At most this many.
    pub limit: usize,
}

/// Which idle entries to list, and in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdleListed {
    /// Conversations after this place, those with the newest messages first.
    Conversations(ConversationPlace),
    /// Terminated agents after this name, by name.
    Terminated(Arc<str>),
    /// Everything after this name, by name.
    All(Arc<str>),
}

/// Why an operation of the log failed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another owner has appended, or has taken the society over (then the positions may be equal): the caller must stop.
    #[error("{}", conflict(society, *expected, *actual))]
    Conflict {
        /// The society.
        society: SocietyId,
        /// The position that the caller expected.
        expected: Seq,
        /// The real last position.
        actual: Seq,
    },
    /// Another process has it open.
    #[error("{0}")]
    Locked(String),
    /// Written by a newer version of Polis.
    #[error("{0}")]
    TooNew(String),
    /// The stored data is damaged.
    #[error("{0}")]
    Damaged(String),
    /// The disk is full. Nothing was acknowledged.
    #[error("the disk that holds the log is full; free some space and try again")]
    Full(#[source] BoxError),
    /// Any other error. Nothing was acknowledged.
    #[error("the log cannot be written or read: {0}")]
    Failed(#[source] BoxError),
}

impl LogError {
    /// The same error for another caller of one group.
    #[must_use]
    pub fn again(&self) -> Self {
        match self {
            Self::Conflict { society, expected, actual } => {
                Self::Conflict { society: society.clone(), expected: *expected, actual: *actual }
            }
            Self::Locked(text) => Self::Locked(text.clone()),
            Self::TooNew(text) => Self::TooNew(text.clone()),
            Self::Damaged(text) => Self::Damaged(text.clone()),
            Self::Full(source) => Self::Full(source.to_string().into()),
            Self::Failed(source) => Self::Failed(source.to_string().into()),
        }
    }

    /// A stable code for programs.
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

fn conflict(society: &SocietyId, expected: Seq, actual: Seq) -> String {
    match expected == actual {
        true => format!("another owner has taken `{society}` over"),
        false => format!("the log of `{society}` ends at {actual}, not at {expected}: another owner has appended"),
    }
}
