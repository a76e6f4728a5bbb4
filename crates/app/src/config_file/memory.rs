//! `[memory]` and `[embeddings]`: what agents remember across conversations, and how it is found by meaning.

use std::num::NonZeroU32;

use polis_providers::EmbeddingSettings;
use serde::Deserialize;

/// `[memory]`: whether agents remember and recall.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemorySection {
    enabled: Option<bool>,
}

impl MemorySection {
    pub(crate) fn is_enabled(self) -> bool {
        self.enabled.unwrap_or(true)
    }
}

/// `[embeddings]`: the model that makes vectors of memories.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmbeddingsSection {
    /// `vendor/name`; without it memories are found by their words alone.
    pub(crate) model: Option<String>,
    dimensions: Option<NonZeroU32>,
    batch: Option<NonZeroU32>,
}

impl EmbeddingsSection {
    pub(crate) fn settings(&self) -> EmbeddingSettings {
        let usual = EmbeddingSettings::default();
        EmbeddingSettings {
            dimensions: self.dimensions.map(NonZeroU32::get),
            batch: self.batch.map_or(usual.batch, |batch| batch.get() as usize),
        }
    }
}
