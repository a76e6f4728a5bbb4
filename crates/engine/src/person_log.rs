//! The log as one person sees it: what belongs to others is not in it.

use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{IdleKey, Recorded, Seq, SocietyId, Spine, ThreadId, Visibility};
use polis_ports::{
    Fork, ForkOrigin, IdleListing, Log, LogError, NewSnapshot, Snapshot, SocietyListing, StoredEntry, StoredSociety,
    ThreadListing, ThreadRange,
};

use crate::shared::Shared;

/// Events that are read at once, so that the few of one person among many do not cost a read each.
const PAGE: usize = 256;

/// Reads a log for a person. Nothing is written through it.
pub(crate) struct PersonLog {
    pub(crate) shared: Arc<Shared>,
    pub(crate) visibility: Visibility,
}

impl PersonLog {
    fn log(&self) -> &Arc<dyn Log> {
        &self.shared.ports.log
    }

    /// The events that the person may see.
    async fn visible(&self, events: Vec<Recorded>) -> Result<Vec<Recorded>, LogError> {
        if events.is_empty() {
            return Ok(events);
        }
        let visibility = self.visibility.clone();
        let keep = move |spine: &Spine| -> Vec<Recorded> {
            events.iter().filter(|recorded| visibility.event(spine, recorded)).cloned().collect()
        };
        self.shared.look(keep).await.ok_or_else(|| LogError::Failed("the society has ended".into()))
    }
}

fn read_only() -> LogError {
    LogError::Failed("this handle of the log only reads".into())
}

#[async_trait]
impl Log for PersonLog {
    async fn append(&self, _: &SocietyId, _: Seq, _: &[Arc<Recorded>]) -> Result<(), LogError> {
        Err(read_only())
    }

    async fn head(&self, society: &SocietyId) -> Result<Seq, LogError> {
        self.log().head(society).await
    }

    async fn readable_head(&self, society: &SocietyId) -> Result<Seq, LogError> {
        self.log().readable_head(society).await
    }

    async fn read(&self, society: &SocietyId, mut after: Seq, limit: usize) -> Result<Vec<Recorded>, LogError> {
        let mut found = Vec::new();
        let size = limit.max(PAGE);
        loop {
            let page = self.log().read(society, after, size).await?;
            let is_rest = page.len() < size;
            after = page.last().map_or(after, |last| last.seq);
            found.extend(self.visible(page).await?);
            if is_rest || found.len() >= limit {
                found.truncate(limit);
                return Ok(found);
            }
        }
    }

    async fn read_thread(&self, society: &SocietyId, thread: &ThreadId, range: ThreadRange) -> Result<Vec<Recorded>, LogError> {
        self.visible(self.log().read_thread(society, thread, range).await?).await
    }

    async fn threads(&self, society: &SocietyId, listing: &ThreadListing) -> Result<Vec<ThreadId>, LogError> {
        let (mut found, mut listing) = (Vec::new(), listing.clone());
        let limit = listing.limit;
        loop {
            listing.limit = limit - found.len();
            let page = self.log().threads(society, &listing).await?;
            let is_rest = page.len() < listing.limit;
            listing.before = page.last().cloned().or(listing.before);
            for thread in page {
                let first = ThreadRange { oldest: 1, ..ThreadRange::ALL };
                if !self.read_thread(society, &thread, first).await?.is_empty() {
                    found.push(thread);
                }
            }
            if is_rest || found.len() >= limit {
                return Ok(found);
            }
        }
    }

    async fn load_snapshot(&self, _: &SocietyId) -> Result<Option<Snapshot>, LogError> {
        Ok(None)
    }

    async fn save_snapshot(&self, _: &SocietyId, _: NewSnapshot) -> Result<(), LogError> {
        Err(read_only())
    }

    async fn idle_entries(&self, _: &SocietyId, _: Seq, _: &[IdleKey]) -> Result<Vec<StoredEntry>, LogError> {
        Err(read_only())
    }

    async fn list_idle(&self, _: &SocietyId, _: &IdleListing) -> Result<Vec<StoredEntry>, LogError> {
        Err(read_only())
    }

    async fn whole(&self, society: &SocietyId, through: Seq) -> Result<Seq, LogError> {
        self.log().whole(society, through).await
    }

    async fn fork(&self, _: &Fork) -> Result<(), LogError> {
        Err(read_only())
    }

    async fn societies(&self) -> Result<Vec<SocietyId>, LogError> {
        self.log().societies().await
    }

    async fn list_societies(&self, listing: &SocietyListing) -> Result<Vec<StoredSociety>, LogError> {
        self.log().list_societies(listing).await
    }

    async fn origin(&self, society: &SocietyId) -> Result<Option<ForkOrigin>, LogError> {
        self.log().origin(society).await
    }
}
