//! Contents outside the log: results that are too long for it, files, pictures. The log names them by what they hold.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{Artifact, ArtifactId, ListedArtifact};

/// Keeps contents under their SHA-256. What is kept is never changed, and is durable when its keeper is told so.
///
/// Nothing here knows who refers to a content: that is in the log. A content that no log names may be taken away.
#[async_trait]
pub trait Artifacts: Send + Sync {
    /// Begins a content of a length that is not known yet. A draft that is dropped leaves nothing.
    fn draft(&self) -> Result<Box<dyn Draft>, ArtifactError>;

    /// Keeps a content that is at hand.
    async fn put(&self, content: Arc<[u8]>) -> Result<ArtifactId, ArtifactError>;

    /// At most `limit` bytes from `offset` on, once it is certain that all of the content is what was kept.
    async fn read(&self, id: &ArtifactId, offset: u64, limit: usize) -> Result<Window, ArtifactError>;
}

/// A content that is being written. Its functions block, as files do.
pub trait Draft: Send {
    /// Adds to it. When it would become longer than allowed, nothing of `bytes` is added.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactError>;

    /// Keeps what was written: its name, and how long it is.
    fn keep(self: Box<Self>) -> Result<(ArtifactId, u64), ArtifactError>;
}

/// A part of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How long the whole content is.
    pub total: u64,
}

/// Why a content cannot be kept or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArtifactError {
    /// It is longer than one may be.
    #[error("an artifact may have {limit} bytes at most; make it smaller, or raise max_mb in [artifacts] of polis.toml")]
    TooLarge {
        /// How long one may be.
        limit: u64,
    },
    /// There are too many, or they take too much room.
    #[error(
        "there is no room for more artifacts: {0}; remove unused ones with `polis artifacts gc`, or raise the limit in [artifacts] of polis.toml"
    )]
    NoRoom(String),
    /// The disk is full.
    #[error("the disk that holds the artifacts is full; make room and try again")]
    Full,
    /// There is none with this id.
    #[error("there is no artifact {0}; list those that are there")]
    Unknown(ArtifactId),
    /// What lies there is not what was kept.
    #[error(
        "artifact {0} is damaged: its content is not what was kept; put the file back from a copy, or keep the content again"
    )]
    Damaged(ArtifactId),
    /// Nobody keeps artifacts here.
    #[error("artifacts are not kept here")]
    None,
    /// Anything else below.
    #[error("the artifacts cannot be written or read: {0}")]
    Failed(String),
}

impl ArtifactError {
    /// A stable name for programs.
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

/// Finds the name of a content while it is written.
#[derive(Clone)]
pub struct Hasher(ring::digest::Context);

impl Default for Hasher {
    fn default() -> Self {
        Self(ring::digest::Context::new(&ring::digest::SHA256))
    }
}

impl Hasher {
    /// Takes more of the content.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The name of all that was taken.
    pub fn id(self) -> ArtifactId {
        let mut digest = [0; 32];
        digest.copy_from_slice(self.0.finish().as_ref());
        ArtifactId::new(digest)
    }

    /// The name of a content that is at hand.
    pub fn id_of(content: &[u8]) -> ArtifactId {
        let mut hasher = Self::default();
        hasher.update(content);
        hasher.id()
    }
}

/// Keeps nothing: what is too long is cut, and nobody can keep anything.
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
}

/// Knows which artifacts a society's log names.
#[async_trait]
pub trait Listing: Send + Sync {
    /// At most `limit` of them after the first `after`, in the order of the log, and how many there are.
    async fn list(&self, after: usize, limit: usize) -> (Vec<ListedArtifact>, usize);

    /// The reference to a content, if the log names it.
    async fn find(&self, id: &ArtifactId) -> Option<Artifact>;
}

/// What a call is given to keep what it makes, and to find what others have made.
#[derive(Clone)]
pub struct ArtifactStore {
    /// Keeps contents.
    pub store: Arc<dyn Artifacts>,
    /// Knows which of them the society names.
    pub listing: Arc<dyn Listing>,
}

impl ArtifactStore {
    /// Nothing is kept and nothing is there.
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
