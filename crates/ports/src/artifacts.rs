//! Artifacts: contents outside the log, such as long results, files and pictures. The log names them by their SHA-256.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{Artifact, ArtifactId, ListedArtifact, Timestamp};

/// Stores contents under their SHA-256. A content never changes, and it is durable when the call returns.
///
/// The store does not know who refers to a content; the logs do. A content that no log names may be removed.
#[async_trait]
pub trait Artifacts: Send + Sync {
    /// Starts a content of unknown length. A draft that is dropped leaves nothing behind.
    fn draft(&self) -> Result<Box<dyn Draft>, ArtifactError>;

    /// Stores a content that is in memory.
    async fn put(&self, content: Arc<[u8]>) -> Result<ArtifactId, ArtifactError>;

    /// Reads at most `limit` bytes from `offset` on, after verifying the whole content.
    async fn read(&self, id: &ArtifactId, offset: u64, limit: usize) -> Result<Window, ArtifactError>;

    /// The contents that are stored, in the order of their ids, at most `limit` after `after`.
    async fn list(&self, after: Option<ArtifactId>, limit: usize) -> Result<Vec<StoredArtifact>, ArtifactError>;

    /// Removes contents that no log refers to any more. Those that are not there count as removed; those that were stored again
    /// after `before` stay. Returns the removed ones.
    async fn remove(&self, ids: Vec<ArtifactId>, before: Timestamp) -> Result<Vec<ArtifactId>, ArtifactError>;
}

/// A content that is being written. Its functions block.
pub trait Draft: Send {
    /// Appends bytes; none of them if the content would become too long.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactError>;

    /// Stores what was written and returns its id and length.
    fn keep(self: Box<Self>) -> Result<(ArtifactId, u64), ArtifactError>;
}

/// A part of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The bytes that were read.
    pub bytes: Vec<u8>,
    /// The length of the whole content.
    pub total: u64,
}

/// A content that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredArtifact {
    /// Its id.
    pub id: ArtifactId,
    /// Its length.
    pub bytes: u64,
    /// When it was stored last.
    pub at: Timestamp,
}

/// How much a store accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArtifactLimits {
    /// Longest content.
    pub max_bytes: u64,
    /// Most bytes of all contents together.
    pub max_total_bytes: u64,
    /// Most contents.
    pub max_count: u64,
}

impl Default for ArtifactLimits {
    fn default() -> Self {
        Self { max_bytes: 2 << 30, max_total_bytes: 20 << 30, max_count: 100_000 }
    }
}

/// Why a content cannot be stored or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// It is longer than allowed.
    #[error("an artifact may have {limit} bytes at most; make it smaller, or raise max_mb in [artifacts] of polis.toml")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// There are too many artifacts, or they take too much space.
    #[error(
        "there is no room for more artifacts: {0}; remove unused ones with `polis artifacts gc`, or raise the limit in [artifacts] of polis.toml"
    )]
    NoRoom(String),
    /// The disk is full.
    #[error("the disk that holds the artifacts is full; free some space and try again")]
    Full,
    /// There is no artifact with this id.
    #[error("there is no artifact {0}; see the list of artifacts")]
    Unknown(ArtifactId),
    /// The stored content does not match its id.
    #[error(
        "artifact {0} is damaged: its content does not match its id; restore the file from a backup, or store the content again"
    )]
    Damaged(ArtifactId),
    /// There is no artifact store.
    #[error("artifacts are not kept here")]
    None,
    /// Any other error.
    #[error("the artifacts cannot be written or read: {0}")]
    Failed(String),
}

impl ArtifactError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "artifact_too_large",
            Self::NoRoom(_) => "artifacts_full",
            Self::Full => "disk_full",
            Self::Unknown(_) => "unknown_artifact",
            Self::Damaged(_) => "artifact_damaged",
            Self::None => "no_artifacts",
            Self::Failed(_) => "artifacts_failed",
        }
    }
}

/// Computes the id of a content while it is written.
#[derive(Clone)]
pub struct Hasher(ring::digest::Context);

impl Default for Hasher {
    fn default() -> Self {
        Self(ring::digest::Context::new(&ring::digest::SHA256))
    }
}

impl Hasher {
    /// Adds more of the content.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The id of everything that was added.
    pub fn id(self) -> ArtifactId {
        let mut digest = [0; 32];
        digest.copy_from_slice(self.0.finish().as_ref());
        ArtifactId::new(digest)
    }

    /// The id of a content that is in memory.
    pub fn id_of(content: &[u8]) -> ArtifactId {
        let mut hasher = Self::default();
        hasher.update(content);
        hasher.id()
    }
}

/// An artifact store that stores nothing: every write fails.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoArtifacts;

#[async_trait]
impl Artifacts for NoArtifacts {
    fn draft(&self) -> Result<Box<dyn Draft>, ArtifactError> {
        Err(ArtifactError::None)
    }

    async fn put(&self, _: Arc<[u8]>) -> Result<ArtifactId, ArtifactError> {
        Err(ArtifactError::None)
    }

    async fn read(&self, id: &ArtifactId, _: u64, _: usize) -> Result<Window, ArtifactError> {
        Err(ArtifactError::Unknown(*id))
    }

    async fn list(&self, _: Option<ArtifactId>, _: usize) -> Result<Vec<StoredArtifact>, ArtifactError> {
        Ok(Vec::new())
    }

    async fn remove(&self, _: Vec<ArtifactId>, _: Timestamp) -> Result<Vec<ArtifactId>, ArtifactError> {
        Ok(Vec::new())
    }
}

/// Lists the artifacts that a society's log names.
#[async_trait]
pub trait Listing: Send + Sync {
    /// At most `limit` artifacts after the first `after`, in the order of the log, and how many there are in total.
    async fn list(&self, after: usize, limit: usize) -> (Vec<ListedArtifact>, usize);

    /// The reference to a content, if the log names it.
    async fn find(&self, id: &ArtifactId) -> Option<Artifact>;
}

/// The artifact store as a tool call sees it: where to store its own contents, and which others the society has.
#[derive(Clone)]
pub struct ArtifactStore {
    /// Stores and reads contents.
    pub store: Arc<dyn Artifacts>,
    /// Lists those that the society's log names.
    pub listing: Arc<dyn Listing>,
}

impl ArtifactStore {
    /// A store that is empty and stores nothing.
    pub fn none() -> Self {
        Self { store: Arc::new(NoArtifacts), listing: Arc::new(Nothing) }
    }
}

impl fmt::Debug for ArtifactStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shelf")
    }
}

struct Nothing;

#[async_trait]
impl Listing for Nothing {
    async fn list(&self, _: usize, _: usize) -> (Vec<ListedArtifact>, usize) {
        (Vec::new(), 0)
    }

    async fn find(&self, _: &ArtifactId) -> Option<Artifact> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_sha_256_of_the_content() {
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Hasher::id_of(b"abc").to_string(), known);
        let mut hasher = Hasher::default();
        [b"a", b"b", b"c"].iter().for_each(|byte| hasher.update(*byte));
        assert_eq!(hasher.id().to_string(), known);
    }
}
