//! Artifacts in the database: a content is a row with its id and rows with its chunks, so neither side has more than a chunk of it
//! in memory. Chunks without a content are of a draft.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use polis_domain::{ArtifactId, Timestamp};
use polis_ports::{ArtifactError, ArtifactLimits, Artifacts, Draft, Hasher, LogError, StoredArtifact, Window};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::connection::{Connection, Param, param, values};
use crate::database::Database;
use crate::error::from_postgres;
use crate::pool::{Pool, Work};
use crate::reader::{column, limit};
use crate::sql;

/// The length of all chunks of a content but the last.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

/// How long a draft may take. What is older is of a process that died.
const DRAFT_AGE: Duration = Duration::from_secs(24 * 3_600);

/// A shorter content is verified each time that it is read.
const WORTH_REMEMBERING_BYTES: u64 = 1 << 20;

/// Most contents that are remembered to be whole.
const MAX_REMEMBERED: usize = 1_024;

/// The contents of a database, for all nodes that use it.
#[derive(Clone)]
pub struct PostgresArtifacts(Arc<Store>);

struct Store {
    database: Database,
    limits: ArtifactLimits,
    /// Long contents that were seen to be whole, and the number of their chunks.
    whole: Mutex<HashMap<ArtifactId, i64>>,
    /// Whether what dead processes have left was removed.
    is_tidy: AtomicBool,
}

impl PostgresArtifacts {
    pub(crate) fn new(database: Database, limits: ArtifactLimits) -> Self {
        Self(Arc::new(Store { database, limits, whole: Mutex::default(), is_tidy: AtomicBool::new(false) }))
    }

    async fn run<T, F>(&self, work: impl FnOnce(Arc<Pool>, Arc<Store>) -> F) -> Result<T, ArtifactError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ArtifactError>> + Send + 'static,
    {
        let store = self.0.clone();
        let run = |pool| {
            let work = work(pool, store);
            async move { Ok(work.await) }
        };
        self.0.database.run(run).await.map_err(failed)?
    }
}

#[async_trait]
impl Artifacts for PostgresArtifacts {
    fn draft(&self) -> Result<Box<dyn Draft>, ArtifactError> {
        Ok(Box::new(ChunkDraft(Some(Upload::new(self.0.clone())))))
    }

    async fn put(&self, content: Arc<[u8]>) -> Result<ArtifactId, ArtifactError> {
        self.run(|pool, store| async move {
            let mut upload = Upload::new(store);
            upload.check_length(content.len())?;
            for part in content.chunks(CHUNK_BYTES) {
                upload.write(&pool, part).await?;
            }
            upload.keep(&pool).await.map(|(id, _)| id)
        })
        .await
    }

    async fn read(&self, id: &ArtifactId, offset: u64, limit: usize) -> Result<Window, ArtifactError> {
        let id = *id;
        self.run(move |pool, store| async move { store.read(&pool, id, offset, limit).await }).await
    }

    async fn list(&self, after: Option<ArtifactId>, most: usize) -> Result<Vec<StoredArtifact>, ArtifactError> {
        self.run(move |pool, _| async move {
            let after = after.map(|after| after.digest().to_vec()).unwrap_or_default();
            let rows = pool.query(sql::LIST_ARTIFACTS, &[param(after, Type::BYTEA), limit(most)]).await.map_err(failed)?;
            rows.iter().map(stored).collect::<Result<_, _>>().map_err(failed)
        })
        .await
    }

    async fn remove(&self, ids: Vec<ArtifactId>, before: Timestamp) -> Result<Vec<ArtifactId>, ArtifactError> {
        self.run(move |pool, _| async move { remove(&pool, ids, before).await.map_err(failed) }).await
    }
}

fn stored(row: &Row) -> Result<StoredArtifact, LogError> {
    let (bytes, at): (i64, i64) = (column(row, 1)?, column(row, 2)?);
    Ok(StoredArtifact { id: id(row)?, bytes: bytes as u64, at: Timestamp(at as u64) })
}

fn id(row: &Row) -> Result<ArtifactId, LogError> {
    let digest: &[u8] = column(row, 0)?;
    let digest = digest.try_into().map_err(|_| LogError::Damaged("the id of an artifact is none".to_owned()))?;
    Ok(ArtifactId::new(digest))
}

pub(crate) fn of(id: &ArtifactId) -> Param {
    param(id.digest().to_vec(), Type::BYTEA)
}

async fn remove(pool: &Pool, mut ids: Vec<ArtifactId>, before: Timestamp) -> Result<Vec<ArtifactId>, LogError> {
    let digests: Vec<_> = ids.iter().map(|id| id.digest().to_vec()).collect();
    let before = i64::try_from(before.0).unwrap_or(i64::MAX);
    let which = [param(digests.clone(), Type::BYTEA_ARRAY), param(before, Type::INT8)];
    let chunks = pool.query(sql::REMOVE_ARTIFACTS, &which).await?;
    if !chunks.is_empty() {
        pool.vacuum(sql::VACUUM_ARTIFACTS).await;
    }
    let left = pool.query(sql::WHICH_ARTIFACTS, &[param(digests, Type::BYTEA_ARRAY)]).await?;
    let left = left.iter().map(id).collect::<Result<Vec<_>, _>>()?;
    ids.retain(|id| !left.contains(id));
    Ok(ids)
}

impl Store {
    /// Reads a part after verifying the whole content, chunk by chunk.
    async fn read(&self, pool: &Pool, id: ArtifactId, offset: u64, most: usize) -> Result<Window, ArtifactError> {
        let query = async |statement: &str, params: &[Param]| pool.query(statement, params).await.map_err(failed);
        // The number of the chunks that were missing: they may have been replaced meanwhile.
        let mut missing = None;
        'again: loop {
            let rows = query(sql::ARTIFACT, &[of(&id)]).await?;
            let Some(row) = rows.first() else { return Err(ArtifactError::Unknown(id)) };
            let read = || Ok::<(i64, i64, i32), LogError>((column(row, 0)?, column(row, 1)?, column(row, 2)?));
            let (content, total, length) = read().map_err(failed)?;
            if missing == Some(content) {
                return Err(ArtifactError::Damaged(id));
            }
            let (total, length) = (total.max(0) as u64, length.max(1) as u64);
            let end = offset.saturating_add(most as u64).min(total);
            let is_known = lock(&self.whole).get(&id) == Some(&content);
            let chunks = match is_known {
                true if offset < end => offset / length..end.div_ceil(length),
                true => 0..0,
                false => 0..total.div_ceil(length),
            };
            let (mut hasher, mut read, mut bytes) = (Hasher::default(), 0, Vec::new());
            for number in chunks {
                let chunk = query(sql::ARTIFACT_CHUNK, &[param(content, Type::INT8), param(number as i32, Type::INT4)]).await?;
                let Some(chunk) = chunk.first() else {
                    missing = Some(content);
                    continue 'again;
                };
                let body: &[u8] = column(chunk, 0).map_err(failed)?;
                hasher.update(body);
                read += body.len() as u64;
                let start = number * length;
                let part = |at: u64| usize::try_from(at.saturating_sub(start)).unwrap_or(usize::MAX).min(body.len());
                bytes.extend_from_slice(&body[part(offset)..part(end).max(part(offset))]);
            }
            if !is_known {
                if read != total || hasher.id() != id {
                    return Err(ArtifactError::Damaged(id));
                }
                if total >= WORTH_REMEMBERING_BYTES {
                    let mut whole = lock(&self.whole);
                    if whole.len() >= MAX_REMEMBERED {
                        whole.clear();
                    }
                    whole.insert(id, content);
                }
            }
            return Ok(Window { bytes, total });
        }
    }
}

/// A content on its way into the database.
struct Upload {
    store: Arc<Store>,
    hasher: Hasher,
    bytes: u64,
    /// What is not in the database yet.
    rest: Vec<u8>,
    /// The number of the chunks that are, and how many.
    content: Option<i64>,
    chunks: i32,
}

impl Upload {
    fn new(store: Arc<Store>) -> Self {
        Self { store, hasher: Hasher::default(), bytes: 0, rest: Vec::new(), content: None, chunks: 0 }
    }

    fn check_length(&self, more: usize) -> Result<(), ArtifactError> {
        let limit = self.store.limits.max_bytes;
        if self.bytes + more as u64 > limit { Err(ArtifactError::TooLarge { limit }) } else { Ok(()) }
    }

    /// Whether bytes can be added without sending anything.
    fn has_room(&self, more: usize) -> bool {
        self.rest.len() + more <= CHUNK_BYTES
    }

    /// Adds bytes for which there is room.
    fn add(&mut self, bytes: &[u8]) -> Result<(), ArtifactError> {
        self.check_length(bytes.len())?;
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    /// Adds bytes. A chunk is sent when more follows it.
    async fn write(&mut self, pool: &Pool, mut bytes: &[u8]) -> Result<(), ArtifactError> {
        self.check_length(bytes.len())?;
        while !self.has_room(bytes.len()) {
            let (now, later) = bytes.split_at(CHUNK_BYTES - self.rest.len());
            self.add(now)?;
            bytes = later;
            self.send(pool).await.map_err(failed)?;
        }
        self.add(bytes)
    }

    async fn send(&mut self, pool: &Pool) -> Result<(), LogError> {
        let content = match self.content {
            Some(content) => content,
            None => {
                if !self.store.is_tidy.swap(true, Ordering::Relaxed) {
                    let oldest = now().saturating_sub(DRAFT_AGE.as_millis() as i64);
                    pool.query(sql::REMOVE_DRAFTS, &[param(oldest, Type::INT8)]).await?;
                }
                let rows = pool.query(sql::NEXT_CONTENT, &[]).await?;
                let row = rows.first().ok_or_else(|| LogError::Failed("the database gave no number".into()))?;
                *self.content.insert(column(row, 0)?)
            }
        };
        pool.query(sql::ADD_CHUNK, &chunk(content, self.chunks, self.rest.clone())).await?;
        self.rest.clear();
        self.chunks += 1;
        Ok(())
    }

    async fn keep(mut self, pool: &Pool) -> Result<(ArtifactId, u64), ArtifactError> {
        let id = self.hasher.clone().id();
        let keep = Keep {
            id,
            bytes: self.bytes as i64,
            content: self.content,
            chunks: self.chunks,
            last: std::mem::take(&mut self.rest),
            limits: self.store.limits,
        };
        pool.run(&keep).await.map_err(failed)??;
        Ok((id, self.bytes))
    }
}

/// What a chunk is added with.
pub(crate) fn chunk(content: i64, number: i32, body: Vec<u8>) -> [Param; 4] {
    [param(content, Type::INT8), param(number, Type::INT4), param(now(), Type::INT8), param(body, Type::BYTEA)]
}

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the age of a row, like that of a file, is no time of a society")]
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The last step of a content. One that is there already is replaced: it may have been damaged, and its age tells an erasure
/// that a society is about to refer to it.
struct Keep {
    id: ArtifactId,
    bytes: i64,
    content: Option<i64>,
    chunks: i32,
    last: Vec<u8>,
    limits: ArtifactLimits,
}

impl Work for Keep {
    type Output = Result<(), ArtifactError>;

    async fn run(&self, connection: &mut Connection) -> Result<Self::Output, LogError> {
        let (schema, most) = (connection.schema().to_owned(), connection.limit());
        let transaction = connection.client.transaction().await.map_err(from_postgres)?;
        let query = async |statement: &str, params: &[Param]| {
            transaction.query_typed(&sql::in_schema(statement, &schema), &values(params)).await.map_err(from_postgres)
        };
        let steps = async {
            let used = query(sql::USED_BY_ARTIFACTS, &[of(&self.id), param(self.content, Type::INT8)]).await?;
            let used = used.first().ok_or_else(|| LogError::Failed("the database did not count".into()))?;
            let (count, bytes, content): (i64, i64, i64) = (column(used, 0)?, column(used, 1)?, column(used, 2)?);
            let ArtifactLimits { max_total_bytes, max_count, .. } = self.limits;
            if count as u64 >= max_count {
                return Ok(Err(ArtifactError::NoRoom(format!("there are {count} already"))));
            }
            if (bytes as u64).saturating_add(self.bytes as u64) > max_total_bytes {
                return Ok(Err(ArtifactError::NoRoom(format!("{bytes} of {max_total_bytes} bytes are used"))));
            }
            query(sql::ADD_CHUNK, &chunk(content, self.chunks, self.last.clone())).await?;
            if self.content.is_some() {
                let sent = query(sql::SENT_BYTES, &[param(content, Type::INT8)]).await?;
                if sent.first().map(|row| column::<i64>(row, 0)).transpose()? != Some(self.bytes) {
                    return Err(LogError::Failed(
                        "the content took too long, and its beginning was removed; send it again".into(),
                    ));
                }
            }
            let row = [
                of(&self.id),
                param(content, Type::INT8),
                param(self.bytes, Type::INT8),
                param(CHUNK_BYTES as i32, Type::INT4),
                param(now(), Type::INT8),
            ];
            let kept = query(sql::KEEP_ARTIFACT, &row).await?;
            let replaced: Option<i64> = kept.first().map(|row| column(row, 0)).transpose()?.flatten();
            if let Some(replaced) = replaced.filter(|replaced| *replaced != content) {
                query(sql::REMOVE_CHUNKS, &[param(replaced, Type::INT8)]).await?;
            }
            Ok(Ok(()))
        };
        let late = |_| LogError::Failed(format!("the database did not answer within {most:?}").into());
        let done = tokio::time::timeout(most, steps).await.map_err(late)??;
        match done {
            Ok(()) => transaction.commit().await.map_err(from_postgres)?,
            Err(_) => transaction.rollback().await.map_err(from_postgres)?,
        }
        Ok(done)
    }
}

/// An upload whose callers block.
struct ChunkDraft(Option<Upload>);

impl ChunkDraft {
    /// Works with the upload on the threads of the log, and waits.
    fn run<T: Send + 'static, F: Future<Output = (Option<Upload>, Result<T, ArtifactError>)> + Send + 'static>(
        &mut self,
        work: impl FnOnce(Arc<Pool>, Upload) -> F,
    ) -> Result<T, ArtifactError> {
        let upload = self.0.take().ok_or_else(|| failed(crate::error::stopped()))?;
        let database = upload.store.database.clone();
        let (upload, done) = database.block_on(|pool| work(pool, upload)).map_err(failed)?;
        self.0 = upload;
        done
    }
}

impl Draft for ChunkDraft {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactError> {
        if let Some(upload) = self.0.as_mut().filter(|upload| upload.has_room(bytes.len())) {
            return upload.add(bytes);
        }
        let bytes = bytes.to_vec();
        self.run(|pool, mut upload| async move {
            let done = upload.write(&pool, &bytes).await;
            (Some(upload), done)
        })
    }

    fn keep(mut self: Box<Self>) -> Result<(ArtifactId, u64), ArtifactError> {
        self.run(|pool, upload| async move { (None, upload.keep(&pool).await) })
    }
}

impl Drop for ChunkDraft {
    /// What cannot be removed now is removed when it is old.
    fn drop(&mut self) {
        let Some((upload, content)) = self.0.take().and_then(|upload| upload.content.map(|content| (upload, content))) else {
            return;
        };
        upload.store.database.begin(move |pool| async move {
            if let Err(error) = pool.query(sql::REMOVE_CHUNKS, &[param(content, Type::INT8)]).await {
                tracing::debug!(%error, "a draft stays until it is old");
            }
        });
    }
}

pub(crate) fn failed(error: LogError) -> ArtifactError {
    match error {
        LogError::Full(_) => ArtifactError::Full,
        LogError::Failed(error) => ArtifactError::Failed(error.to_string()),
        error => ArtifactError::Failed(error.to_string()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
