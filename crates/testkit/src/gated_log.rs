//! A log with a gate before its appends: where tests let writes be slow, fail, or kill.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use polis_domain::{Recorded, Seq, SocietyId, ThreadId};
use polis_ports::{Fork, ForkOrigin, Log, LogError, Snapshot, ThreadListing, ThreadRange};

/// What happens to an append on its way to the log.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Hands the append on to `log`, or does not.
    async fn append(&self, log: &dyn Log, society: &SocietyId, expected: Seq, events: &[Arc<Recorded>])
    -> Result<(), LogError>;

    /// Whether it can be told now what became of appends that failed.
    fn is_settled(&self) -> Result<(), LogError> {
        Ok(())
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
        self.gate.is_settled()?;
        self.log.head(society).await
    }

    async fn readable_head(&self, society: &SocietyId) -> Result<Seq, LogError> {
        self.log.readable_head(society).await
    }

    async fn read(&self, society: &SocietyId, after: Seq, limit: usize) -> Result<Vec<Recorded>, LogError> {
        self.log.read(society, after, limit).await
    }

    async fn read_thread(&self, society: &SocietyId, thread: &ThreadId, range: ThreadRange) -> Result<Vec<Recorded>, LogError> {
        self.log.read_thread(society, thread, range).await
    }

    async fn threads(&self, society: &SocietyId, listing: &ThreadListing) -> Result<Vec<ThreadId>, LogError> {
        self.log.threads(society, listing).await
    }

    async fn load_snapshot(&self, society: &SocietyId) -> Result<Option<Snapshot>, LogError> {
        self.log.load_snapshot(society).await
    }

    async fn save_snapshot(&self, society: &SocietyId, snapshot: Snapshot) -> Result<(), LogError> {
        self.log.save_snapshot(society, snapshot).await
    }

    async fn whole(&self, society: &SocietyId, through: Seq) -> Result<Seq, LogError> {
        self.log.whole(society, through).await
    }

    async fn fork(&self, fork: &Fork) -> Result<(), LogError> {
        self.log.fork(fork).await
    }

    async fn societies(&self) -> Result<Vec<SocietyId>, LogError> {
        self.log.societies().await
    }

    async fn origin(&self, society: &SocietyId) -> Result<Option<ForkOrigin>, LogError> {
        self.log.origin(society).await
    }
}
