//! Contents in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use polis_domain::{ArtifactId, Timestamp};
use polis_ports::{ArtifactError, Artifacts, Draft, Hasher, StoredArtifact, Window};

/// Keeps contents as long as it lives. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct MemoryArtifacts {
    contents: Arc<Mutex<BTreeMap<ArtifactId, Arc<[u8]>>>>,
    limit: Option<u64>,
}

impl MemoryArtifacts {
    /// Nothing is kept yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes contents up to this length only.
    pub fn limited(limit: u64) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Whether a content is kept.
    pub fn holds(&self, id: &ArtifactId) -> bool {
        self.lock().contains_key(id)
    }

    /// Puts another content in the place of one that was kept.
    pub fn spoil(&self, id: ArtifactId) {
        self.lock().insert(id, b"something else".as_slice().into());
    }

    /// Loses a content.
    pub fn lose(&self, id: &ArtifactId) {
        self.lock().remove(id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ArtifactId, Arc<[u8]>>> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, bytes: usize) -> Result<(), ArtifactError> {
        match self.limit {
            Some(limit) if bytes as u64 > limit => Err(ArtifactError::TooLarge { limit }),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Artifacts for MemoryArtifacts {
    fn draft(&self) -> Result<Box<dyn Draft>, ArtifactError> {
        Ok(Box::new(MemoryDraft { store: self.clone(), content: Vec::new() }))
    }

    async fn put(&self, content: Arc<[u8]>) -> Result<ArtifactId, ArtifactError> {
        self.check(content.len())?;
        let id = Hasher::id_of(&content);
        self.lock().insert(id, content);
        Ok(id)
    }

    /// All were stored at the beginning of time.
    async fn list(&self, after: Option<ArtifactId>, limit: usize) -> Result<Vec<StoredArtifact>, ArtifactError> {
        let contents = self.lock();
        let later = contents.iter().filter(|(id, _)| after.is_none_or(|after| **id > after)).take(limit);
        Ok(later.map(|(id, content)| StoredArtifact { id: *id, bytes: content.len() as u64, at: Timestamp(0) }).collect())
    }

    async fn remove(&self, ids: Vec<ArtifactId>, _: Timestamp) -> Result<Vec<ArtifactId>, ArtifactError> {
        ids.iter().for_each(|id| drop(self.lock().remove(id)));
        Ok(ids)
    }

    async fn read(&self, id: &ArtifactId, offset: u64, limit: usize) -> Result<Window, ArtifactError> {
        let content = self.lock().get(id).cloned().ok_or(ArtifactError::Unknown(*id))?;
        if Hasher::id_of(&content) != *id {
            return Err(ArtifactError::Damaged(*id));
        }
        let start = content.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let end = content.len().min(start.saturating_add(limit));
        Ok(Window { bytes: content[start..end].to_vec(), total: content.len() as u64 })
    }
}

struct MemoryDraft {
    store: MemoryArtifacts,
    content: Vec<u8>,
}

impl Draft for MemoryDraft {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactError> {
        self.store.check(self.content.len() + bytes.len())?;
        self.content.extend_from_slice(bytes);
        Ok(())
    }

    fn keep(self: Box<Self>) -> Result<(ArtifactId, u64), ArtifactError> {
        let (id, bytes) = (Hasher::id_of(&self.content), self.content.len() as u64);
        self.store.lock().insert(id, self.content.into());
        Ok((id, bytes))
    }
}
