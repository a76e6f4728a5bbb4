//! Texts of memories in memory, and a scripted embedding model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use polis_domain::{MemoryTextId, Usage};
use polis_ports::{Embedder, Embedding, EmbeddingPurpose, Embeddings, MemoryError, MemoryTexts, ModelError, StoredText};

/// Keeps texts as long as it lives. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct InMemoryTexts {
    texts: Arc<Mutex<BTreeMap<MemoryTextId, StoredText>>>,
}

impl InMemoryTexts {
    /// Another store with the same texts.
    pub fn copy(&self) -> Self {
        Self { texts: Arc::new(Mutex::new(self.lock().clone())) }
    }

    /// All texts that are stored.
    pub fn all(&self) -> Vec<String> {
        self.lock().values().map(|stored| stored.text.to_string()).collect()
    }

    /// The embedding models of the stored texts.
    pub fn models(&self) -> Vec<Option<Arc<str>>> {
        self.lock().values().map(|stored| stored.embedding.as_ref().map(|embedding| embedding.model.clone())).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<MemoryTextId, StoredText>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl MemoryTexts for InMemoryTexts {
    async fn put(&self, id: &MemoryTextId, text: &str) -> Result<(), MemoryError> {
        self.lock().entry(id.clone()).or_insert_with(|| StoredText { text: text.into(), embedding: None });
        Ok(())
    }

    async fn read(&self, ids: Vec<MemoryTextId>) -> Result<BTreeMap<MemoryTextId, StoredText>, MemoryError> {
        let texts = self.lock();
        Ok(ids.into_iter().filter_map(|id| texts.get(&id).cloned().map(|stored| (id, stored))).collect())
    }

    async fn ids(&self, after: Option<MemoryTextId>, limit: usize) -> Result<Vec<MemoryTextId>, MemoryError> {
        let texts = self.lock();
        Ok(texts.keys().filter(|id| after.as_ref().is_none_or(|after| *id > after)).take(limit).cloned().collect())
    }

    async fn set_embeddings(&self, embeddings: Vec<(MemoryTextId, Embedding)>) -> Result<(), MemoryError> {
        let mut texts = self.lock();
        for (id, embedding) in embeddings {
            texts.entry(id).and_modify(|stored| stored.embedding = Some(embedding));
        }
        Ok(())
    }

    async fn remove(&self, ids: Vec<MemoryTextId>) -> Result<(), MemoryError> {
        let mut texts = self.lock();
        ids.iter().for_each(|id| drop(texts.remove(id)));
        Ok(())
    }
}

/// An embedding model with one dimension for each of its topics: texts with a word of a topic point into its direction.
#[derive(Debug, Clone)]
pub struct TopicEmbedder {
    model: Arc<str>,
    topics: Vec<Vec<&'static str>>,
    embedded: Arc<Mutex<Vec<String>>>,
}

impl TopicEmbedder {
    /// A model with these topics.
    pub fn new(model: &str, topics: &[&[&'static str]]) -> Self {
        Self { model: model.into(), topics: topics.iter().map(|words| words.to_vec()).collect(), embedded: Arc::default() }
    }

    /// The texts that it was given so far.
    pub fn embedded(&self) -> Vec<String> {
        self.embedded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Embedder for TopicEmbedder {
    fn model(&self) -> Arc<str> {
        self.model.clone()
    }

    async fn embed(&self, texts: &[Arc<str>], _: EmbeddingPurpose) -> Result<Embeddings, ModelError> {
        self.embedded.lock().unwrap_or_else(PoisonError::into_inner).extend(texts.iter().map(ToString::to_string));
        let vector = |text: &Arc<str>| {
            let has = |words: &Vec<&str>| if words.iter().any(|word| text.contains(word)) { 1.0 } else { 0.01 };
            self.topics.iter().map(has).collect()
        };
        let usage = Usage { input_tokens: texts.len() as u64, cost_nanos: 10, ..Usage::default() };
        Ok(Embeddings { vectors: texts.iter().map(vector).collect(), usage })
    }
}
