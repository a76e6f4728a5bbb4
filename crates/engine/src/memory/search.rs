//! One search: the texts are read, those without a vector of the present model are embedded, and both rankings are merged.

use std::collections::HashSet;
use std::sync::Arc;

use polis_domain::{AgentId, Failure, Memory, MemoryChange, MemoryCommand, MemoryTextId, Spent, Usage};
use polis_ports::{Embedder, Embedding, EmbeddingPurpose, ModelError, StoredText};

use super::{FoundMemory, failure, rank, send};
use crate::shared::Shared;

/// Most texts that one search embeds. The others get their vectors in later searches; words find them meanwhile.
const MAX_EMBEDDED: usize = 256;

/// The result of a search.
pub(crate) struct Searched {
    /// The memories, best first.
    pub(crate) found: Vec<FoundMemory>,
    /// Why meaning did not count, if an embedding model is configured and failed.
    pub(crate) note: Option<String>,
}

/// Searches these memories. An empty query gives all of them, newest first. `agent` is charged for embeddings.
pub(crate) async fn search(
    shared: &Shared,
    mut memories: Vec<Memory>,
    query: &str,
    agent: Option<&AgentId>,
) -> Result<Searched, Failure> {
    memories.sort_by_key(|memory| std::cmp::Reverse((memory.edited_at.unwrap_or(memory.kept_at), memory.id.clone())));
    let keys = memories.iter().map(|memory| memory.text.clone()).collect();
    let mut texts = shared.ports.memory_texts.read(keys).await.map_err(failure)?;
    if query.trim().is_empty() {
        let found = memories.into_iter().map(|memory| {
            let text = texts.get(&memory.text).map(|stored| stored.text.clone());
            FoundMemory { memory, text }
        });
        return Ok(Searched { found: found.collect(), note: None });
    }
    let (memories, mut stored): (Vec<_>, Vec<_>) =
        memories.into_iter().filter_map(|memory| texts.remove(&memory.text).map(|stored| (memory, stored))).unzip();
    let words = rank::by_words(query, &stored.iter().map(|stored| &*stored.text).collect::<Vec<_>>());
    let mut rankings = vec![words];
    let mut note = None;
    if let Some(embedder) = shared.ports.embedder.as_deref().filter(|_| !memories.is_empty()) {
        let mut bill = Bill::default();
        match embed(shared, embedder, query, &memories, &mut stored, &mut bill).await {
            Ok(vector) => {
                let vectors: Vec<_> = stored.iter().map(|stored| vector_of(stored, embedder)).collect();
                rankings.push(rank::by_meaning(&vector, &vectors));
            }
            Err(error) => note = Some(format!("searched by words alone, because the embedding model failed: {error}")),
        }
        bill.book(shared, embedder.model(), agent).await;
    }
    let order = rank::merged(&rankings);
    let found =
        order.into_iter().map(|index| FoundMemory { memory: memories[index].clone(), text: Some(stored[index].text.clone()) });
    Ok(Searched { found: found.collect(), note })
}

/// These memories, those first whose words fit a text best, then the newest. Erased ones are left out. Of equal texts
/// the newest counts.
pub(crate) async fn rank_by_words(shared: &Shared, mut memories: Vec<Memory>, text: &str) -> Result<Vec<Memory>, Failure> {
    memories.sort_by_key(|memory| std::cmp::Reverse((memory.edited_at.unwrap_or(memory.kept_at), memory.id.clone())));
    let keys = memories.iter().map(|memory| memory.text.clone()).collect();
    let texts = shared.ports.memory_texts.read(keys).await.map_err(failure)?;
    let mut distinct = HashSet::new();
    memories.retain(|memory| texts.get(&memory.text).is_some_and(|stored| distinct.insert(stored.text.clone())));
    let stored: Vec<&str> = memories.iter().map(|memory| &*texts[&memory.text].text).collect();
    let best = rank::by_words(text, &stored);
    let rest = (0..memories.len()).filter(|index| !best.contains(index));
    Ok(best.iter().copied().chain(rest).map(|index| memories[index].clone()).collect())
}

/// What a search spent on embeddings.
#[derive(Default)]
struct Bill {
    texts: u32,
    calls: u64,
    usage: Usage,
}

impl Bill {
    /// Records the cost. A search is finished even if that fails.
    async fn book(self, shared: &Shared, model: Arc<str>, agent: Option<&AgentId>) {
        if self.calls == 0 {
            return;
        }
        let spent = Spent { requests: self.calls, ..Spent::request(self.usage, 0) };
        let change = MemoryChange::Embedded { model, texts: self.texts, spent, agent: agent.cloned() };
        let _ = send(shared, MemoryCommand::Book(change)).await;
    }
}

/// The vector of the query. Texts without a vector of this model get one first.
async fn embed(
    shared: &Shared,
    embedder: &dyn Embedder,
    query: &str,
    memories: &[Memory],
    stored: &mut [StoredText],
    bill: &mut Bill,
) -> Result<Vec<f32>, ModelError> {
    let missing = stored.iter().enumerate().filter(|(_, stored)| vector_of(stored, embedder).is_none());
    let missing: Vec<usize> = missing.map(|(index, _)| index).take(MAX_EMBEDDED).collect();
    for batch in missing.chunks(embedder.batch().max(1)) {
        let texts: Vec<_> = batch.iter().map(|index| stored[*index].text.clone()).collect();
        let vectors = call(embedder, &texts, EmbeddingPurpose::Text, bill).await?;
        let made = batch.iter().zip(vectors).map(|(index, vector)| {
            let embedding = Embedding { model: embedder.model(), vector };
            stored[*index].embedding = Some(embedding.clone());
            (memories[*index].text.clone(), embedding)
        });
        let made: Vec<(MemoryTextId, Embedding)> = made.collect();
        // They are made again if this fails.
        let _ = shared.ports.memory_texts.set_embeddings(made).await;
    }
    let vectors = call(embedder, &[query.into()], EmbeddingPurpose::Query, bill).await?;
    Ok(vectors.into_iter().next().unwrap_or_default())
}

async fn call(
    embedder: &dyn Embedder,
    texts: &[Arc<str>],
    purpose: EmbeddingPurpose,
    bill: &mut Bill,
) -> Result<Vec<Vec<f32>>, ModelError> {
    bill.calls += 1;
    bill.texts += texts.len() as u32;
    let embeddings = embedder.embed(texts, purpose).await?;
    bill.usage = bill.usage.plus(embeddings.usage);
    if embeddings.vectors.len() != texts.len() {
        let reason = format!("{} vectors came for {} texts", embeddings.vectors.len(), texts.len());
        return Err(ModelError::Rejected { reason });
    }
    Ok(embeddings.vectors)
}

fn vector_of<'a>(stored: &'a StoredText, embedder: &dyn Embedder) -> Option<&'a [f32]> {
    stored.embedding.as_ref().filter(|embedding| embedding.model == embedder.model()).map(|embedding| &*embedding.vector)
}
