//! A log with a gate before its appends: where tests let writes be slow, fail, or kill.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use polis_domain::{IdleKey, Recorded, Seq, SocietyId, ThreadId};
use polis_ports::{
    Fork, ForkOrigin, IdleListing, Log, LogError, NewSnapshot, Snapshot, SocietyListing, StoredEntry, StoredSociety,
    ThreadListing, ThreadRange,
};

/// What happens to an append on its way to the log.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Hands the append on to `log`, or does not.
    async fn append(
        &self,
        log: &dyn Log,
        society: &SocietyId,
        expected: Seq,
        events: &[Arc<Recorded>],
    ) -> Result<(), LogError> {
        log.append(society, expected, events).await
    }

    /// Whether it can be told now what became of appends that failed.
    fn is_settled(&self) -> Result<(), LogError> {
        Ok(())
    }

    /// Whether effects may begin.
    fn is_owned(&self) -> bool {
        true
    }

    /// The log is asked something: what is a statement where it lies in a database.
    fn ask(&self) {}
}

/// Counts what the log is asked.
#[derive(Debug, Default)]
pub struct Questions(AtomicUsize);

impl Questions {
    /// How many there were since the last time.
    pub fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

#[async_trait]
impl Gate for Questions {
    fn ask(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A disk that is full from time to time: nothing is written then, and whether a failed append is there cannot be told.
#[derive(Debug, Default)]
pub struct FullDisk(AtomicBool);

impl FullDisk {
    /// Fills the disk, or makes room.
    pub fn fill(&self, is_full: bool) {
        self.0.store(is_full, Ordering::Relaxed);
    }
}

#[async_trait]
impl Gate for FullDisk {
    async fn append(
        &self,
        log: &dyn Log,
        society: &SocietyId,
        expected: Seq,
        events: &[Arc<Recorded>],
    ) -> Result<(), LogError> {
        self.is_settled()?;
        log.append(society, expected, events).await
    }

    fn is_settled(&self) -> Result<(), LogError> {
        if self.0.load(Ordering::Relaxed) { Err(LogError::Full("no room".into())) } else { Ok(()) }
    }
}

/// An owner whose lease may end at any time.
#[derive(Debug, Default)]
pub struct Lease(AtomicBool);

impl Lease {
    /// Ends it.
    pub fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[async_trait]
impl Gate for Lease {
    fn is_owned(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

/// A log whose appends go through a gate; everything else goes straight through.
pub struct GatedLog<G> {
    /// The log behind the gate.
    pub log: Arc<dyn Log>,
    /// The gate.
    pub gate: G,
}

#[async_trait]
impl<G: Gate> Log for GatedLog<G> {
    async fn append(&self, society: &SocietyId, expected: Seq, events: &[Arc<Recorded>]) -> Result<(), LogError> {
        self.gate.append(&*self.log, society, expected, events).await
    }

    async fn head(&self, society: &SocietyId) -> Result<Seq, LogError> {
        self.gate.ask();
        self.gate.is_settled()?;
        self.log.head(society).await
    }

    async fn readable_head(&self, society: &SocietyId) -> Result<Seq, LogError> {
        self.gate.ask();
        self.log.readable_head(society).await
    }

    async fn read(&self, society: &SocietyId, after: Seq, limit: usize) -> Result<Vec<Recorded>, LogError> {
        self.gate.ask();
        self.log.read(society, after, limit).await
    }

    async fn read_thread(&self, society: &SocietyId, thread: &ThreadId, range: ThreadRange) -> Result<Vec<Recorded>, LogError> {
        self.gate.ask();
        self.log.read_thread(society, thread, range).await
    }

    async fn threads(&self, society: &SocietyId, listing: &ThreadListing) -> Result<Vec<ThreadId>, LogError> {
        self.gate.ask();
        self.log.threads(society, listing).await
    }

    async fn load_snapshot(&self, society: &SocietyId) -> Result<Option<Snapshot>, LogError> {
        self.gate.ask();
        self.log.load_snapshot(society).await
    }

    async fn save_snapshot(&self, society: &SocietyId, snapshot: NewSnapshot) -> Result<(), LogError> {
        self.log.save_snapshot(society, snapshot).await
    }

    async fn idle_entries(&self, society: &SocietyId, at: Seq, keys: &[IdleKey]) -> Result<Vec<StoredEntry>, LogError> {
        self.gate.ask();
        self.log.idle_entries(society, at, keys).await
    }

    async fn list_idle(&self, society: &SocietyId, listing: &IdleListing) -> Result<Vec<StoredEntry>, LogError> {
        self.gate.ask();
        self.log.list_idle(society, listing).await
    }

    async fn whole(&self, society: &SocietyId, through: Seq) -> Result<Seq, LogError> {
        self.gate.ask();
        self.log.whole(society, through).await
    }

    async fn fork(&self, fork: &Fork) -> Result<(), LogError> {
        self.log.fork(fork).await
    }

    async fn societies(&self) -> Result<Vec<SocietyId>, LogError> {
        self.gate.ask();
        self.log.societies().await
    }

    async fn list_societies(&self, listing: &SocietyListing) -> Result<Vec<StoredSociety>, LogError> {
        self.gate.ask();
        self.log.list_societies(listing).await
    }

    async fn origin(&self, society: &SocietyId) -> Result<Option<ForkOrigin>, LogError> {
        self.gate.ask();
        self.log.origin(society).await
    }

    fn is_owned(&self, society: &SocietyId) -> bool {
        self.gate.is_owned() && self.log.is_owned(society)
    }

    async fn redact(&self, society: &SocietyId, events: &[Recorded]) -> Result<(), LogError> {
        self.gate.is_settled()?;
        self.log.redact(society, events).await
    }

    async fn forget_redacted(&self, society: &SocietyId) -> Result<(), LogError> {
        self.gate.is_settled()?;
        self.log.forget_redacted(society).await
    }
}
