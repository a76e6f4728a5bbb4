//! The texts of memories in the database. Texts that are removed are vacuumed at once; copies in the server's own journal and in
//! standbys end as those are recycled.

use std::collections::BTreeMap;

use async_trait::async_trait;
use polis_domain::MemoryTextId;
use polis_ports::{Embedding, LogError, MemoryError, MemoryTexts, StoredText};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::connection::{Param, param};
use crate::database::Database;
use crate::reader::{column, limit, name};
use crate::sql;

/// The texts of the memories of a database, for all nodes that use it.
#[derive(Clone)]
pub struct PostgresMemoryTexts(Database);

impl PostgresMemoryTexts {
    pub(crate) fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl MemoryTexts for PostgresMemoryTexts {
    async fn put(&self, id: &MemoryTextId, text: &str) -> Result<(), MemoryError> {
        let params = [bytes(id.as_str()), bytes(text)];
        self.0.run(|pool| async move { pool.query(sql::ADD_TEXT, &params).await.map(drop) }).await.map_err(failed)
    }

    async fn read(&self, ids: Vec<MemoryTextId>) -> Result<BTreeMap<MemoryTextId, StoredText>, MemoryError> {
        let ids = keys(&ids);
        let read = |rows: Vec<Row>| rows.iter().map(text).collect();
        self.0.run(|pool| async move { pool.query(sql::TEXTS, &[ids]).await.and_then(read) }).await.map_err(failed)
    }

    async fn ids(&self, after: Option<MemoryTextId>, most: usize) -> Result<Vec<MemoryTextId>, MemoryError> {
        let params = [param(after.map(|after| after.as_str().as_bytes().to_vec()), Type::BYTEA), limit(most)];
        let read = |rows: Vec<Row>| rows.iter().map(|row| name(column(row, 0)?).map(MemoryTextId::from)).collect();
        self.0.run(|pool| async move { pool.query(sql::TEXT_IDS, &params).await.and_then(read) }).await.map_err(failed)
    }

    async fn set_embeddings(&self, embeddings: Vec<(MemoryTextId, Embedding)>) -> Result<(), MemoryError> {
        let params = embedded(&embeddings);
        self.0.run(|pool| async move { pool.query(sql::SET_EMBEDDINGS, &params).await.map(drop) }).await.map_err(failed)
    }

    async fn remove(&self, ids: Vec<MemoryTextId>) -> Result<(), MemoryError> {
        let ids = keys(&ids);
        let remove = |pool: std::sync::Arc<crate::pool::Pool>| async move {
            if !pool.query(sql::REMOVE_TEXTS, &[ids]).await?.is_empty() {
                pool.vacuum(sql::VACUUM_TEXTS).await;
            }
            Ok(())
        };
        self.0.run(remove).await.map_err(failed)
    }
}

fn bytes(text: &str) -> Param {
    param(text.as_bytes().to_vec(), Type::BYTEA)
}

pub(crate) fn keys(ids: &[MemoryTextId]) -> Param {
    param(ids.iter().map(|id| id.as_str().as_bytes().to_vec()).collect::<Vec<_>>(), Type::BYTEA_ARRAY)
}

/// Embeddings as [`sql::SET_EMBEDDINGS`] takes them.
fn embedded(embeddings: &[(MemoryTextId, Embedding)]) -> [Param; 3] {
    let (mut ids, mut models, mut vectors) = (vec![], vec![], vec![]);
    for (id, Embedding { model, vector }) in embeddings {
        ids.push(id.as_str().as_bytes().to_vec());
        models.push(model.as_bytes().to_vec());
        vectors.push(vector_bytes(vector));
    }
    [param(ids, Type::BYTEA_ARRAY), param(models, Type::BYTEA_ARRAY), param(vectors, Type::BYTEA_ARRAY)]
}

fn vector_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|part| part.to_le_bytes()).collect()
}

/// A row of [`sql::TEXTS`].
pub(crate) fn text(row: &Row) -> Result<(MemoryTextId, StoredText), LogError> {
    let (id, text) = (name(column(row, 0)?)?, name(column(row, 1)?)?);
    let (model, vector): (Option<&[u8]>, Option<&[u8]>) = (column(row, 2)?, column(row, 3)?);
    let embedding = match (model, vector) {
        (Some(model), Some(vector)) => {
            let vector = vector.as_chunks::<4>().0.iter().map(|part| f32::from_le_bytes(*part)).collect();
            Some(Embedding { model: name(model)?.into(), vector })
        }
        _ => None,
    };
    Ok((id.into(), StoredText { text: text.into(), embedding }))
}

/// Texts as [`sql::MOVE_TEXTS`] takes them.
pub(crate) fn moved(texts: &BTreeMap<MemoryTextId, StoredText>) -> [Param; 4] {
    let ids: Vec<_> = texts.keys().map(|id| id.as_str().as_bytes().to_vec()).collect();
    let stored: Vec<_> = texts.values().map(|stored| stored.text.as_bytes().to_vec()).collect();
    let model = |stored: &StoredText| stored.embedding.as_ref().map(|embedding| embedding.model.as_bytes().to_vec());
    let vector = |stored: &StoredText| stored.embedding.as_ref().map(|embedding| vector_bytes(&embedding.vector));
    let (models, vectors): (Vec<_>, Vec<_>) = texts.values().map(|stored| (model(stored), vector(stored))).unzip();
    let all = Type::BYTEA_ARRAY;
    [param(ids, all.clone()), param(stored, all.clone()), param(models, all.clone()), param(vectors, all)]
}

fn failed(error: LogError) -> MemoryError {
    match error {
        LogError::Full(_) => MemoryError::Full,
        LogError::Failed(error) => MemoryError::Failed(error.to_string()),
        error => MemoryError::Failed(error.to_string()),
    }
}
