//! The texts of memories, and embeddings for finding them. Both are outside the log: texts so that they can be erased, and
//! embeddings because they are derived from texts and can be computed again.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{MemoryTextId, Usage};

use crate::ModelError;

/// Stores the texts of memories. Whose they are and which of them still count is decided by the log.
#[async_trait]
pub trait MemoryTexts: Send + Sync {
    /// Stores a text; durable when the call returns. A key that exists keeps its text.
    async fn put(&self, id: &MemoryTextId, text: &str) -> Result<(), MemoryError>;

    /// Reads texts. Keys without a text are missing in the answer.
    async fn read(&self, ids: Vec<MemoryTextId>) -> Result<BTreeMap<MemoryTextId, StoredText>, MemoryError>;

    /// The keys of the texts, in order, at most `limit` after `after`.
    async fn ids(&self, after: Option<MemoryTextId>, limit: usize) -> Result<Vec<MemoryTextId>, MemoryError>;

    /// Stores embeddings next to their texts, in the place of older ones. Keys without a text are skipped.
    async fn set_embeddings(&self, embeddings: Vec<(MemoryTextId, Embedding)>) -> Result<(), MemoryError>;

    /// Removes texts with their embeddings, so that no file of the store contains them any more. Unknown keys are skipped.
    async fn remove(&self, ids: Vec<MemoryTextId>) -> Result<(), MemoryError>;
}

/// A text and, if there is one, its embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredText {
    /// The text.
    pub text: Arc<str>,
    /// Its newest embedding.
    pub embedding: Option<Embedding>,
}

/// The vector that a model made of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// The embedding model, with the number of dimensions if that was set: vectors of different models cannot be compared.
    pub model: Arc<str>,
    /// The vector.
    pub vector: Vec<f32>,
}

/// Why texts of memories cannot be stored, read or removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Memory is switched off.
    #[error("memory is switched off here; `enabled = true` in [memory] of polis.toml switches it on")]
    Off,
    /// The disk is full.
    #[error("the disk that holds the memories is full; free some space and try again")]
    Full,
    /// Any other error.
    #[error("the memories cannot be written or read: {0}")]
    Failed(String),
}

impl MemoryError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Off => "memory_off",
            Self::Full => "disk_full",
            Self::Failed(_) => "memory_failed",
        }
    }
}

/// No store for memories.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMemoryTexts;

#[async_trait]
impl MemoryTexts for NoMemoryTexts {
    async fn put(&self, _: &MemoryTextId, _: &str) -> Result<(), MemoryError> {
        Err(MemoryError::Off)
    }

    async fn read(&self, _: Vec<MemoryTextId>) -> Result<BTreeMap<MemoryTextId, StoredText>, MemoryError> {
        Err(MemoryError::Off)
    }

    async fn ids(&self, _: Option<MemoryTextId>, _: usize) -> Result<Vec<MemoryTextId>, MemoryError> {
        Err(MemoryError::Off)
    }

    async fn set_embeddings(&self, _: Vec<(MemoryTextId, Embedding)>) -> Result<(), MemoryError> {
        Err(MemoryError::Off)
    }

    async fn remove(&self, _: Vec<MemoryTextId>) -> Result<(), MemoryError> {
        Err(MemoryError::Off)
    }
}

/// Turns texts into vectors, so that texts of similar meaning are found.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The model, with the number of dimensions if that is set.
    fn model(&self) -> Arc<str>;

    /// The vectors of some texts, in order. The caller sends as many texts as [`Embedder::batch`] allows.
    async fn embed(&self, texts: &[Arc<str>], purpose: EmbeddingPurpose) -> Result<Embeddings, ModelError>;

    /// Most texts of one call.
    fn batch(&self) -> usize {
        64
    }
}

/// What a vector is for. Some models make different vectors for questions and for the texts that answer them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingPurpose {
    /// The words of a search.
    Query,
    /// A text that is to be found.
    Text,
}

/// The answer of an embedding model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Embeddings {
    /// One vector for each text, in order.
    pub vectors: Vec<Vec<f32>>,
    /// What the call used.
    pub usage: Usage,
}
