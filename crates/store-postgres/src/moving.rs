//! A log on its way from or to a database, see `polis_stored_event::moving`.
//!
//! What comes is one transaction, in which it is also read back and checked. So one that was stopped has left nothing.

use std::collections::{BTreeMap, HashMap};

use polis_domain::{Seq, ThreadId};
use polis_ports::{ArtifactError, Artifacts, DocumentError, Hasher, LogError, MemoryError, MemoryTexts, StoredArtifact};
use polis_stored_event::moving::MOVED_TOGETHER;
pub use polis_stored_event::moving::{Chain, MovedEvent, MovedSociety, Passage, parents_first};
use rustc_hash::FxHashSet;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::artifacts::CHUNK_BYTES;
use crate::connection::{Connection, Param, param};
use crate::options::Options;
use crate::pool::Pool;
use crate::postgres_log::PostgresLog;
use crate::reader::{Stored, column, limit, name, position, seq};
use crate::schema::key;
use crate::{artifacts, memory_texts, sql};

/// The societies of a log that is moved.
pub(crate) async fn societies(pool: &Pool) -> Result<Vec<MovedSociety>, LogError> {
    pool.query(sql::MOVED_SOCIETIES, &[]).await?.iter().map(society).collect()
}

fn society(row: &Row) -> Result<MovedSociety, LogError> {
    Ok(MovedSociety {
        key: column(row, 0)?,
        name: name(column(row, 1)?)?.into(),
        checksum_name: name(column(row, 2)?)?.into(),
        parent: column(row, 3)?,
        after: seq(column(row, 4)?),
        head: seq(column(row, 5)?),
    })
}

/// The next own events of a society up to its head.
pub(crate) async fn events(pool: &Pool, society: &MovedSociety, after: Seq) -> Result<Vec<MovedEvent>, LogError> {
    pool.query(sql::OWN_EVENTS, &own_events(society.key, after, society.head)).await?.iter().map(event).collect()
}

fn own_events(id: i64, after: Seq, through: Seq) -> [Param; 4] {
    [param(id, Type::INT8), position(after), position(through), limit(MOVED_TOGETHER)]
}

fn event(row: &Row) -> Result<MovedEvent, LogError> {
    let Stored { event, thread, .. } = Stored::of(row)?;
    Ok(MovedEvent::of(&event, thread.as_ref()))
}

/// A log that comes into a database.
pub struct ComingLog {
    connection: Connection,
    /// The ids of the societies here, by their numbers where they come from.
    ids: HashMap<i64, i64>,
    threads: FxHashSet<(i64, ThreadId)>,
    /// Its threads work for the connection.
    _log: PostgresLog,
}

impl ComingLog {
    /// Begins in a database without a society. Others that write there wait.
    ///
    /// # Errors
    ///
    /// [`LogError::Failed`] if it has one; as [`PostgresLog::open`].
    pub async fn begin(options: Options) -> Result<Self, LogError> {
        let log = PostgresLog::open(options).await?;
        let connection = log.connection().await?;
        connection.query("BEGIN", &[]).await?;
        connection.query(sql::LOCK_SOCIETIES, &[]).await?;
        if !connection.query(sql::SOCIETIES, &[]).await?.is_empty() {
            return Err(LogError::Failed("the database has a log already; choose another schema with ?schema=NAME".into()));
        }
        for statement in [sql::REMOVE_ALL_EMPTY].into_iter().chain(sql::REMOVE_BESIDE) {
            connection.query(statement, &[]).await?;
        }
        Ok(Self { connection, ids: HashMap::new(), threads: FxHashSet::default(), _log: log })
    }

    /// Adds a society. The one that it is a fork of has been added before.
    ///
    /// # Errors
    ///
    /// [`LogError`] if it cannot be written.
    pub async fn society(&mut self, society: &MovedSociety) -> Result<(), LogError> {
        let parent = society.parent.map(|parent| self.id(parent)).transpose()?;
        let at = society.parent.map(|_| society.after.0 as i64);
        let values = [
            param(society.name.as_str().as_bytes().to_vec(), Type::BYTEA),
            param(society.checksum_name.as_str().as_bytes().to_vec(), Type::BYTEA),
            param(parent, Type::INT8),
            param(at, Type::INT8),
            position(society.head),
        ];
        let made = self.connection.query(sql::ADD_SOCIETY, &values).await?;
        let row = made.first().ok_or_else(|| LogError::Failed("the database has not made the society".into()))?;
        self.ids.insert(society.key, column(row, 0)?);
        Ok(())
    }

    /// Adds the next own events of a society.
    ///
    /// # Errors
    ///
    /// [`LogError`] if they cannot be written, or are not what was written elsewhere.
    pub async fn events(&mut self, society: &MovedSociety, events: &[MovedEvent]) -> Result<(), LogError> {
        let id = self.id(society.key)?;
        let (mut seqs, mut times, mut keys, mut versions) = (vec![], vec![], vec![], vec![]);
        let (mut crcs, mut bodies): (Vec<i32>, Vec<Vec<u8>>) = (vec![], vec![]);
        let (mut begun, mut firsts, mut names): (Vec<Uuid>, Vec<i64>, Vec<Vec<u8>>) = (vec![], vec![], vec![]);
        for event in events {
            let stored = event.stored(society)?;
            let thread: Option<Uuid> = event.thread.as_ref().map(|thread| key(thread.as_str()));
            if let (Some(thread), Some(key)) = (&event.thread, thread)
                && self.threads.insert((id, thread.clone()))
            {
                begun.push(key);
                firsts.push(event.seq.0 as i64);
                names.push(thread.as_str().as_bytes().to_vec());
            }
            seqs.push(event.seq.0 as i64);
            times.push(event.at.0 as i64);
            keys.push(thread);
            versions.push(event.version as i32);
            crcs.push(event.crc as i32);
            bodies.push(stored.packed().into_owned());
        }
        let threads = [
            param(id, Type::INT8),
            param(begun, Type::UUID_ARRAY),
            param(firsts, Type::INT8_ARRAY),
            param(names, Type::BYTEA_ARRAY),
        ];
        self.connection.query(sql::ADD_THREADS, &threads).await?;
        let rows = [
            param(id, Type::INT8),
            param(seqs, Type::INT8_ARRAY),
            param(times, Type::INT8_ARRAY),
            param(keys, Type::UUID_ARRAY),
            param(versions, Type::INT4_ARRAY),
            param(crcs, Type::INT4_ARRAY),
            param(bodies, Type::BYTEA_ARRAY),
        ];
        self.connection.query(sql::ADD_EVENTS, &rows).await.map(drop)
    }

    /// Adds all artifacts of a store, each read back; gives how many.
    ///
    /// # Errors
    ///
    /// [`ArtifactError`] if one cannot be read or written, or has not come as it was.
    pub async fn artifacts(&self, from: &dyn Artifacts) -> Result<usize, ArtifactError> {
        let (mut after, mut count) = (None, 0);
        loop {
            let page = from.list(after, MOVED_TOGETHER).await?;
            for stored in &page {
                self.artifact(from, stored).await?;
            }
            count += page.len();
            after = match page.last() {
                Some(last) => Some(last.id),
                None => return Ok(count),
            };
        }
    }

    async fn artifact(&self, from: &dyn Artifacts, stored: &StoredArtifact) -> Result<(), ArtifactError> {
        let query = async |sql: &str, params: &[Param]| self.connection.query(sql, params).await.map_err(artifacts::failed);
        let content: i64 = match query(sql::NEXT_CONTENT, &[]).await?.first() {
            Some(row) => column(row, 0).map_err(artifacts::failed)?,
            None => return Err(ArtifactError::Failed("the database gave no number".to_owned())),
        };
        let (mut offset, mut number, mut hasher) = (0, 0_i32, Hasher::default());
        while offset < stored.bytes || number == 0 {
            let window = from.read(&stored.id, offset, CHUNK_BYTES).await?;
            offset += window.bytes.len() as u64;
            if window.bytes.is_empty() && stored.bytes > 0 {
                return Err(ArtifactError::Damaged(stored.id));
            }
            query(sql::ADD_CHUNK, &artifacts::chunk(content, number, window.bytes)).await?;
            let come = query(sql::ARTIFACT_CHUNK, &[param(content, Type::INT8), param(number, Type::INT4)]).await?;
            let Some(come) = come.first() else { return Err(ArtifactError::Damaged(stored.id)) };
            hasher.update(column(come, 0).map_err(artifacts::failed)?);
            number += 1;
        }
        if hasher.id() != stored.id {
            return Err(ArtifactError::Damaged(stored.id));
        }
        let row = [
            artifacts::of(&stored.id),
            param(content, Type::INT8),
            param(stored.bytes as i64, Type::INT8),
            param(CHUNK_BYTES as i32, Type::INT4),
            param(stored.at.0 as i64, Type::INT8),
        ];
        query(sql::KEEP_ARTIFACT, &row).await.map(drop)
    }

    /// Adds all texts of memories, with their embeddings, and reads them back; gives how many.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] if one cannot be read or written, or has not come as it was.
    pub async fn memory_texts(&self, from: &dyn MemoryTexts) -> Result<usize, MemoryError> {
        let failed = |error: LogError| MemoryError::Failed(error.to_string());
        let (mut after, mut count) = (None, 0);
        loop {
            let ids = from.ids(after, MOVED_TOGETHER).await?;
            let Some(last) = ids.last() else { return Ok(count) };
            after = Some(last.clone());
            let find = memory_texts::keys(&ids);
            let texts = from.read(ids).await?;
            self.connection.query(sql::MOVE_TEXTS, &memory_texts::moved(&texts)).await.map_err(failed)?;
            let come = self.connection.query(sql::TEXTS, &[find]).await.map_err(failed)?;
            let come = come.iter().map(memory_texts::text).collect::<Result<BTreeMap<_, _>, _>>().map_err(failed)?;
            if come != texts {
                return Err(MemoryError::Failed("what has come is not what was sent".to_owned()));
            }
            count += texts.len();
        }
    }

    /// Adds a document in the place of the one that is there, and gives it as it has come.
    ///
    /// # Errors
    ///
    /// [`DocumentError`] if it cannot be written or read back.
    pub async fn document(&self, name: &str, body: &[u8]) -> Result<Vec<u8>, DocumentError> {
        let failed = |error: LogError| DocumentError::Failed(error.to_string());
        let name = || param(name.to_owned(), Type::TEXT);
        self.connection.query(sql::MOVE_DOCUMENT, &[name(), param(body.to_vec(), Type::BYTEA)]).await.map_err(failed)?;
        let come = self.connection.query(sql::DOCUMENT, &[name()]).await.map_err(failed)?;
        let come = come.first().ok_or_else(|| DocumentError::Failed("the database has lost it".to_owned()))?;
        column(come, 0).map_err(failed)
    }

    /// Reads the log back, and commits if it is what was sent. `chains` has the hash chain of each society, by its name.
    ///
    /// # Errors
    ///
    /// [`LogError::Damaged`] if what has come is not what was sent; nothing is there then.
    pub async fn finish(self, chains: &HashMap<String, (Seq, Chain)>) -> Result<(), LogError> {
        let rows = self.connection.query(sql::MOVED_SOCIETIES, &[]).await?;
        let come = rows.iter().map(society).collect::<Result<Vec<_>, _>>()?;
        let mut is_sent = come.len() == chains.len();
        for society in &come {
            let mut passage = Passage::of(society);
            while passage.last() < society.head {
                let rows =
                    self.connection.query(sql::OWN_EVENTS, &own_events(society.key, passage.last(), society.head)).await?;
                if rows.is_empty() {
                    break;
                }
                rows.iter().try_for_each(|row| passage.add(society, &event(row)?))?;
            }
            is_sent &= chains.get(society.name.as_str()) == Some(&(passage.last(), passage.chain()));
        }
        if !is_sent {
            return Err(LogError::Damaged("what has come is not what was sent".to_owned()));
        }
        self.connection.query("COMMIT", &[]).await.map(drop)
    }

    fn id(&self, key: i64) -> Result<i64, LogError> {
        self.ids.get(&key).copied().ok_or_else(|| LogError::Damaged(format!("society number {key} is missing")))
    }
}
