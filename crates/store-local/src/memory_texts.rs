//! The texts of memories in a database of their own, `memory.db`. What is removed is overwritten: `secure_delete` zeroes the
//! freed parts of pages, and a journal that is cut to nothing leaves no copy of the old pages, as a WAL would.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use polis_domain::MemoryTextId;
use polis_ports::{Embedding, LogError, MemoryError, MemoryTexts, StoredText};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::from_sqlite;
use crate::schema;

pub(crate) const FILE: &str = "memory.db";
pub(crate) const JOURNAL: &str = "memory.db-journal";
const VERSION: u32 = 1;

const TABLES: &str = "
    CREATE TABLE texts (
        id TEXT PRIMARY KEY,
        text TEXT NOT NULL,
        model TEXT, -- the embedding model of the vector
        vector BLOB -- little-endian 32-bit floating-point numbers
    ) WITHOUT ROWID;
";

/// The texts of the memories of a data directory. The database is made with the first text.
#[derive(Debug, Clone)]
pub struct LocalMemoryTexts {
    file: PathBuf,
    connection: Arc<Mutex<Option<Connection>>>,
}

impl LocalMemoryTexts {
    /// The texts of a data directory whose lock this process has. Nothing is opened yet.
    pub fn new(data: &Path) -> Self {
        Self { file: data.join(FILE), connection: Arc::default() }
    }

    /// Runs a piece of work with the database, away from the society's thread. Without `create`, a database that does not
    /// exist is empty.
    async fn run<T: Default + Send + 'static>(
        &self,
        create: bool,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, MemoryError> {
        let (file, connection) = (self.file.clone(), self.connection.clone());
        let done = tokio::task::spawn_blocking(move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let connection = match &mut *connection {
                Some(connection) => connection,
                None if !create && !file.exists() => return Ok(T::default()),
                none => none.insert(open(&file)?),
            };
            work(connection).map_err(from_sqlite)
        });
        match done.await {
            Ok(done) => done.map_err(|error| match error {
                LogError::Full(_) => MemoryError::Full,
                error => MemoryError::Failed(error.to_string()),
            }),
            Err(stopped) => Err(MemoryError::Failed(stopped.to_string())),
        }
    }
}

pub(crate) fn open(file: &Path) -> Result<Connection, LogError> {
    let connection = Connection::open(file).map_err(from_sqlite)?;
    let settings = "PRAGMA secure_delete = ON; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;";
    connection.execute_batch(settings).map_err(from_sqlite)?;
    let truncate = "PRAGMA journal_mode = TRUNCATE";
    connection.query_row(truncate, [], |row| row.get::<_, String>(0)).map_err(from_sqlite)?;
    match connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0)).map_err(from_sqlite)? {
        0 => {
            let create = format!("BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;");
            connection.execute_batch(&create).map_err(from_sqlite)?;
        }
        VERSION => {}
        newer => return Err(too_new(newer)),
    }
    Ok(connection)
}

fn too_new(version: u32) -> LogError {
    LogError::TooNew(format!(
        "{FILE} was written by a newer polis (tables {version}; this one knows {VERSION}). Use that polis, or restore a backup \
         made with this one"
    ))
}

/// Refuses texts of a newer version when their data directory is opened, and not when the first of them is needed.
pub(crate) fn refuse_newer(data: &Path) -> Result<(), LogError> {
    match schema::user_version_of(&data.join(FILE))? {
        Some(version) if version > VERSION => Err(too_new(version)),
        _ => Ok(()),
    }
}

#[async_trait]
impl MemoryTexts for LocalMemoryTexts {
    async fn put(&self, id: &MemoryTextId, text: &str) -> Result<(), MemoryError> {
        let (id, text) = (id.clone(), text.to_owned());
        self.run(true, move |connection| {
            connection.execute("INSERT OR IGNORE INTO texts (id, text) VALUES (?, ?)", params![id.as_str(), text]).map(drop)
        })
        .await
    }

    async fn read(&self, ids: Vec<MemoryTextId>) -> Result<BTreeMap<MemoryTextId, StoredText>, MemoryError> {
        self.run(false, move |connection| {
            let mut read = connection.prepare_cached("SELECT text, model, vector FROM texts WHERE id = ?")?;
            let mut found = BTreeMap::new();
            for id in ids {
                let stored = read.query_row([id.as_str()], |row| {
                    let (text, model): (String, Option<String>) = (row.get(0)?, row.get(1)?);
                    let vector: Option<Vec<u8>> = row.get(2)?;
                    let embedding = model.zip(vector);
                    let embedding = embedding.map(|(model, bytes)| Embedding { model: model.into(), vector: floats(&bytes) });
                    Ok(StoredText { text: text.into(), embedding })
                });
                found.extend(stored.optional()?.map(|stored| (id, stored)));
            }
            Ok(found)
        })
        .await
    }

    async fn ids(&self, after: Option<MemoryTextId>, limit: usize) -> Result<Vec<MemoryTextId>, MemoryError> {
        self.run(false, move |connection| {
            let after = after.as_ref().map(MemoryTextId::as_str);
            let mut select = connection.prepare("SELECT id FROM texts WHERE ?1 IS NULL OR id > ?1 ORDER BY id LIMIT ?2")?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            select.query_map(params![after, limit], |row| Ok(MemoryTextId::from(row.get::<_, String>(0)?)))?.collect()
        })
        .await
    }

    async fn set_embeddings(&self, embeddings: Vec<(MemoryTextId, Embedding)>) -> Result<(), MemoryError> {
        self.run(false, move |connection| {
            let transaction = connection.transaction()?;
            for (id, Embedding { model, vector }) in embeddings {
                let bytes: Vec<u8> = vector.iter().flat_map(|part| part.to_le_bytes()).collect();
                let update = "UPDATE texts SET model = ?, vector = ? WHERE id = ?";
                transaction.execute(update, params![&*model, bytes, id.as_str()])?;
            }
            transaction.commit()
        })
        .await
    }

    async fn remove(&self, ids: Vec<MemoryTextId>) -> Result<(), MemoryError> {
        self.run(false, move |connection| {
            let transaction = connection.transaction()?;
            for id in ids {
                transaction.execute("DELETE FROM texts WHERE id = ?", [id.as_str()])?;
            }
            transaction.commit()
        })
        .await
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|part| f32::from_le_bytes(*part)).collect()
}
