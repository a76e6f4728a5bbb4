//! Reads, on a few threads with a connection each.
//!
//! A log is read stretch by stretch (see [`crate::lineage`]), and the limits of a read are counted across the stretches:
//! `oldest` is filled from the first stretch on, `newest` from the last one back. Every row is verified against its checksum
//! and the name of its thread before it is returned. A read of the whole log also checks that positions have no gap, so a
//! lost row is damage and not a shorter history; a read by thread cannot see gaps and relies on the check of the index
//! ([`crate::sums`]).
//!
//! Any error drops the connection, because its state is unknown. Damage also raises `damage_seen`, which stops the writer:
//! nothing may be appended to a history that cannot be read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use polis_domain::{Recorded, Seq, SocietyId, ThreadId};
use polis_ports::{ForkOrigin, LogError, SocietyListing, StoredSociety, ThreadListing, ThreadRange};
use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::{mpsc, oneshot};

use crate::error::{from_io, from_sqlite};
use crate::health::Health;
use crate::keys::{MAX_CACHED_NAMES, ThreadNames, last_seq, last_seq_after, thread_key};
use crate::lineage::{Lineage, Stretch};
use crate::queue::stopped;
use crate::row::{self, StoredEvent, damaged};
use crate::segment::Wanted;
use crate::{schema, segment};

const THREADS: usize = 2;

/// How many reads may be queued; beyond it callers wait.
const MAX_QUEUED: usize = 256;

/// How many rows of the table of threads are scanned before the index is searched.
const SCANNED_THREADS: i64 = 4096;

type Job = Box<dyn FnOnce(&mut Reader) + Send>;

/// The reader threads.
pub(crate) struct Readers {
    jobs: Option<mpsc::Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Starts the threads. They raise `damage_seen` when a read finds damage.
    pub(crate) fn start(dir: &Path, health: &Arc<Health>) -> Result<Self, LogError> {
        let (sender, receiver) = mpsc::channel::<Job>(MAX_QUEUED);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut readers = Self { jobs: Some(sender), threads: Vec::new() };
        for n in 0..THREADS {
            let receiver = receiver.clone();
            let mut reader = Reader::new(dir, health.clone())?;
            let work = move || {
                loop {
                    let job = receiver.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
                    let Some(job) = job else { break };
                    job(&mut reader);
                }
            };
            let thread = thread::Builder::new().name(format!("polis-reader-{n}")).spawn(work).map_err(from_io)?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// Runs a read on one of the threads.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Reader) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |reader| {
            // A caller that was dropped needs no answer.
            if !answer.is_closed() {
                let _ = answer.send(reader.guarded(read));
            }
        });
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(job).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has dropped its answer channel; its caller got an error.
            let _ = thread.join();
        }
    }
}

/// One connection and its caches. Keys of threads never change, so they can be cached; lineages of societies are cached until
/// a society is renamed.
pub(crate) struct Reader {
    dir: PathBuf,
    connection: Option<Connection>,
    societies: HashMap<SocietyId, Arc<Lineage>>,
    /// The value of [`Health::renamed`] that the cached lineages are valid for.
    renamed: u64,
    names: ThreadNames,
    health: Arc<Health>,
}

impl Reader {
    /// Connects at once. As long as a connection is open, SQLite does not run WAL recovery, which could bring back a commit
    /// that failed.
    fn new(dir: &Path, health: Arc<Health>) -> Result<Self, LogError> {
        Ok(Self {
            dir: dir.to_owned(),
            connection: Some(schema::connect_to_read(dir)?),
            societies: HashMap::new(),
            renamed: 0,
            names: ThreadNames::default(),
            health,
        })
    }

    /// For an inspection, which has a connection of its own and stops at its first error.
    pub(crate) fn on(connection: Connection) -> Self {
        Self {
            dir: PathBuf::new(),
            connection: Some(connection),
            societies: HashMap::new(),
            renamed: 0,
            names: ThreadNames::default(),
            health: Arc::default(),
        }
    }

    /// Runs a read. After an error the connection is not used again.
    fn guarded<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, LogError>) -> Result<T, LogError> {
        if self.connection.is_none() {
            self.connection = Some(schema::connect_to_read(&self.dir)?);
        }
        let result = read(self);
        if let Err(error) = &result {
            self.connection = None;
            if matches!(error, LogError::Damaged(_)) {
                self.health.damage_seen.store(true, Ordering::Relaxed);
            }
        }
        result
    }

    pub(crate) fn connection(&self) -> Result<&Connection, LogError> {
        self.connection.as_ref().ok_or_else(stopped)
    }

    pub(crate) fn head(&mut self, society: &SocietyId) -> Result<Seq, LogError> {
        match self.society(society)? {
            Some(lineage) => last_seq(self.connection()?, lineage.own()),
            None => Ok(Seq(0)),
        }
    }

    /// The checksum of an event; none if the log has no such event.
    pub(crate) fn event_crc(&mut self, society: &SocietyId, seq: Seq) -> Result<Option<u32>, LogError> {
        let Some(lineage) = self.society(society)? else { return Ok(None) };
        let stretch = lineage.stretches().iter().find(|stretch| stretch.after < seq && seq <= stretch.through);
        let Some(stretch) = stretch else { return Ok(None) };
        let find = |connection: &Connection| {
            let mut statement = connection.prepare_cached("SELECT crc FROM events WHERE id = ?1")?;
            statement.query_row([row::id(stretch.key, seq)], |row| row.get(0)).optional()
        };
        let connection = self.connection()?;
        match find(connection).map_err(from_sqlite)? {
            Some(crc) => Ok(Some(crc)),
            None => segment::crc(connection, row::id(stretch.key, seq)),
        }
    }

    /// The last position up to `through` at which an append ended.
    pub(crate) fn whole(&mut self, society: &SocietyId, through: Seq) -> Result<Seq, LogError> {
        let Some(lineage) = self.society(society)? else { return Ok(Seq(0)) };
        for stretch in lineage.stretches().iter().rev() {
            let (low, high) = (row::id(stretch.key, stretch.after), row::id(stretch.key, through.min(stretch.through)));
            let mut statement = self
                .connection()?
                .prepare_cached(
                    "SELECT id, at, thread, version, crc, body FROM events WHERE id > ?1 AND id <= ?2 ORDER BY id DESC",
                )
                .map_err(from_sqlite)?;
            let mut rows = statement.query(params![low, high]).map_err(from_sqlite)?;
            let mut names = ThreadNames::default();
            let mut ends_append = |stored: &StoredEvent<'_>, thread: Option<i64>| {
                let thread = thread.map(|thread| names.get(self.connection()?, thread)).transpose()?;
                stored.verify(&stretch.checksum_name, thread.as_ref())?;
                Ok::<_, LogError>(row::is_last(stored.version))
            };
            let mut seen = high + 1;
            while let Some(row) = rows.next().map_err(from_sqlite)? {
                let (stored, key, thread) = row::stored(row)?;
                if ends_append(&stored, thread)? {
                    return Ok(stored.seq);
                }
                seen = row::id(key, stored.seq);
            }
            let mut found = None;
            let rest = Wanted { after: low, through: seen - 1, thread: None, newest_first: true };
            segment::each(self.connection()?, rest, |stored, thread| {
                found = ends_append(&stored, thread)?.then_some(stored.seq);
                Ok(found.is_none())
            })?;
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Ok(Seq(0))
    }

    pub(crate) fn read(&mut self, society: &SocietyId, after: Seq, limit: usize) -> Result<Vec<Recorded>, LogError> {
        let Some(lineage) = self.society(society)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for stretch in lineage.stretches() {
            let range = ThreadRange { after, oldest: limit - found.len(), ..ThreadRange::ALL };
            found.extend(self.select(stretch, None, range)?);
        }
        let mut last = after;
        for recorded in &found {
            if recorded.seq != last.next() {
                return Err(damaged(society, last.next(), "it is missing"));
            }
            last = recorded.seq;
        }
        Ok(found)
    }

    pub(crate) fn read_thread(
        &mut self,
        society: &SocietyId,
        thread: &ThreadId,
        range: ThreadRange,
    ) -> Result<Vec<Recorded>, LogError> {
        let Some(lineage) = self.society(society)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        if range.oldest < usize::MAX {
            for stretch in lineage.stretches() {
                let Some(thread) = thread_key(self.connection()?, stretch.key, thread)? else { continue };
                let oldest = range.oldest - found.len();
                found.extend(self.select(stretch, Some(thread), ThreadRange { oldest, ..range })?);
            }
            found.drain(..found.len().saturating_sub(range.newest));
            return Ok(found);
        }
        for stretch in lineage.stretches().iter().rev() {
            let Some(thread) = thread_key(self.connection()?, stretch.key, thread)? else { continue };
            let newest = range.newest - found.len();
            found.extend(self.select(stretch, Some(thread), ThreadRange { newest, ..range })?);
        }
        found.reverse();
        Ok(found)
    }

    /// The threads of a listing, the one that began last first. A thread that a fork shares with its ancestors began there.
    pub(crate) fn threads(&mut self, society: &SocietyId, listing: &ThreadListing) -> Result<Vec<ThreadId>, LogError> {
        let Some(lineage) = self.society(society)? else { return Ok(Vec::new()) };
        let connection = self.connection()?;
        let mut found = Vec::new();
        let mut before = listing.before.as_ref();
        for (n, stretch) in lineage.stretches().iter().enumerate().rev() {
            let earlier = &lineage.stretches()[..n];
            let began_here = |thread: &ThreadId| -> Result<Option<i64>, LogError> {
                for above in earlier {
                    if begun(connection, above, thread)?.is_some() {
                        return Ok(None);
                    }
                }
                begun(connection, stretch, thread)
            };
            let below = match before.map(began_here) {
                None => i64::MAX,
                Some(key) => match key? {
                    Some(key) => {
                        before = None;
                        key
                    }
                    None => continue,
                },
            };
            let mut listed = ThreadKeys { connection, society: stretch.key, prefix: &listing.prefix, below, scanned: false };
            while found.len() < listing.limit {
                let page = listed.next_page(listing.limit)?;
                if page.is_empty() {
                    break;
                }
                for thread in page {
                    if found.len() < listing.limit && began_here(&thread)?.is_some() {
                        found.push(thread);
                    }
                }
            }
        }
        Ok(found)
    }

    pub(crate) fn societies(&mut self) -> Result<Vec<SocietyId>, LogError> {
        let list = |connection: &Connection| {
            let mut statement = connection.prepare_cached("SELECT name FROM societies ORDER BY name")?;
            let names = statement.query_map([], |row| Ok(SocietyId::from(row.get::<_, String>(0)?)))?;
            names.collect::<Result<_, _>>()
        };
        list(self.connection()?).map_err(from_sqlite)
    }

    /// A part of the list of societies.
    pub(crate) fn list_societies(&mut self, listing: &SocietyListing) -> Result<Vec<StoredSociety>, LogError> {
        let list = |connection: &Connection| {
            let sql =
                "SELECT s.name, s.key, above.name, s.at FROM societies s LEFT JOIN societies above ON above.key = s.parent
                       WHERE ?1 IS NULL OR s.name > ?1 ORDER BY s.name LIMIT ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let limit = i64::try_from(listing.limit).unwrap_or(i64::MAX);
            let row = |row: &rusqlite::Row<'_>| {
                let after = Seq(row.get::<_, Option<i64>>(3)?.unwrap_or(0) as u64);
                let from = row.get::<_, Option<String>>(2)?;
                Ok((
                    row.get::<_, String>(0)?,
                    row.get::<_, i64>(1)?,
                    from.map(|from| ForkOrigin { from: from.into(), at: after }),
                    after,
                ))
            };
            let found = statement.query_map(params![listing.after.as_ref().map(SocietyId::as_str), limit], row)?;
            found.collect::<Result<Vec<_>, _>>()
        };
        let connection = self.connection()?;
        let found = list(connection).map_err(from_sqlite)?;
        let society = |(name, key, origin, after): (String, i64, Option<ForkOrigin>, Seq)| {
            Ok(StoredSociety { name: name.into(), head: last_seq_after(connection, key, after)?, origin })
        };
        found.into_iter().map(society).collect()
    }

    /// The society that this one was forked from, by its present name, and the last shared position.
    pub(crate) fn origin(&mut self, society: &SocietyId) -> Result<Option<ForkOrigin>, LogError> {
        let look = |connection: &Connection| {
            let sql = "SELECT above.name, born.at FROM societies born JOIN societies above ON above.key = born.parent WHERE born.name = ?1";
            let origin = |row: &rusqlite::Row<'_>| {
                Ok(ForkOrigin { from: row.get::<_, String>(0)?.into(), at: Seq(row.get::<_, i64>(1)? as u64) })
            };
            connection.prepare_cached(sql)?.query_row([society.as_str()], origin).optional()
        };
        look(self.connection()?).map_err(from_sqlite)
    }

    /// Reads the events of one stretch that lie in the range. Forward reads return the oldest ones in order. If only the
    /// newest of a thread are wanted, it reads backwards from the end and returns them newest first, so that the cost depends
    /// on their number and not on the length of the thread.
    fn select(&mut self, stretch: &Stretch, thread: Option<i64>, range: ThreadRange) -> Result<Vec<Recorded>, LogError> {
        let (after, through) = (range.after.max(stretch.after), range.through.min(stretch.through));
        let is_forward = thread.is_none() || range.oldest < usize::MAX;
        let most = if is_forward { range.oldest } else { range.newest };
        if most == 0 || after >= through || after.0 >= row::LAST_SEQ {
            return Ok(Vec::new());
        }
        let connection = self.connection.as_ref().ok_or_else(stopped)?;
        let (mut low, high) = (row::id(stretch.key, after), row::id(stretch.key, through));
        let mut found = Vec::new();
        let names = &mut self.names;
        let mut decode = |stored: &StoredEvent<'_>, thread: Option<i64>| {
            let thread = thread.map(|thread| names.get(connection, thread)).transpose()?;
            stored.decode(&stretch.checksum_name, thread)
        };
        let Some(thread) = thread else {
            loop {
                let left = most - found.len();
                let were_sealed = segment::each_of_log(connection, (low, high), left, |stored, thread| {
                    low = row::id(stretch.key, stored.seq);
                    found.push(decode(&stored, thread)?);
                    Ok(())
                })?;
                if !were_sealed || found.len() == most {
                    return Ok(found);
                }
            }
        };
        let sql = match is_forward {
            true => {
                "SELECT id, at, thread, version, crc, body FROM events INDEXED BY events_by_thread \
                        WHERE thread = ?4 AND id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3"
            }
            false => {
                "SELECT id, at, thread, version, crc, body FROM events INDEXED BY events_by_thread \
                        WHERE thread = ?4 AND id > ?1 AND id <= ?2 ORDER BY id DESC LIMIT ?3"
            }
        };
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
        let mut rows = statement.query(params![low, high, limit, thread]).map_err(from_sqlite)?;
        let mut oldest = high + 1;
        while let Some(row) = rows.next().map_err(from_sqlite)? {
            let (stored, key, thread) = row::stored(row)?;
            oldest = oldest.min(row::id(key, stored.seq));
            found.push(decode(&stored, thread)?);
        }
        // What is sealed comes before the rows.
        let left = if is_forward { most } else { most - found.len() };
        let mut sealed = Vec::new();
        if left > 0 {
            let wanted = Wanted { after: low, through: oldest - 1, thread: Some(thread), newest_first: !is_forward };
            segment::each(connection, wanted, |stored, thread| {
                sealed.push(decode(&stored, thread)?);
                Ok(sealed.len() < left)
            })?;
        }
        if !is_forward {
            found.extend(sealed);
            return Ok(found);
        }
        found.truncate(most - sealed.len());
        sealed.extend(found);
        Ok(sealed)
    }

    fn society(&mut self, society: &SocietyId) -> Result<Option<Arc<Lineage>>, LogError> {
        let renamed = self.health.renamed.load(Ordering::Acquire);
        if renamed != self.renamed || self.societies.len() >= MAX_CACHED_NAMES {
            self.societies.clear();
            self.renamed = renamed;
        }
        if let Some(lineage) = self.societies.get(society) {
            return Ok(Some(lineage.clone()));
        }
        let found = Lineage::find(self.connection()?, society)?.map(Arc::new);
        if let Some(lineage) = &found {
            self.societies.insert(society.clone(), lineage.clone());
        }
        Ok(found)
    }
}

/// The names of a society's threads, the newest key first.
struct ThreadKeys<'a> {
    connection: &'a Connection,
    society: i64,
    prefix: &'a str,
    /// Only keys below this one are left.
    below: i64,
    /// Whether the newest rows of the table were scanned.
    scanned: bool,
}

impl ThreadKeys<'_> {
    /// The next names; none when there are no more. The newest rows of the table are scanned first, because they usually
    /// have enough of them. The index, which is sorted by name, costs as much as the society has such threads.
    fn next_page(&mut self, limit: usize) -> Result<Vec<ThreadId>, LogError> {
        if !self.scanned {
            self.scanned = true;
            let page = self.scan(limit).map_err(from_sqlite)?;
            if !page.is_empty() {
                return Ok(page);
            }
        }
        self.search(limit).map_err(from_sqlite)
    }

    fn scan(&mut self, limit: usize) -> rusqlite::Result<Vec<ThreadId>> {
        let sql = "SELECT key, society, name FROM threads NOT INDEXED WHERE key < ?1 ORDER BY key DESC LIMIT ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![self.below, SCANNED_THREADS])?;
        let mut found = Vec::new();
        while found.len() < limit
            && let Some(row) = rows.next()?
        {
            self.below = row.get(0)?;
            let name = row.get_ref(2)?.as_str()?;
            if row.get::<_, i64>(1)? == self.society && name.starts_with(self.prefix) {
                found.push(ThreadId::from(name));
            }
        }
        self.scanned = found.len() < limit;
        Ok(found)
    }

    fn search(&mut self, limit: usize) -> rusqlite::Result<Vec<ThreadId>> {
        let sql = "SELECT key, name FROM threads INDEXED BY sqlite_autoindex_threads_1 \
                   WHERE society = ?1 AND name >= ?2 AND name < ?3 AND key < ?4 ORDER BY key DESC LIMIT ?5";
        // No valid text contains this character after a prefix and sorts behind it.
        let end = format!("{}\u{10ffff}", self.prefix);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![self.society, self.prefix, end, self.below, limit])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            self.below = row.get(0)?;
            found.push(ThreadId::from(row.get_ref(1)?.as_str()?));
        }
        Ok(found)
    }
}

/// The key of a thread that has an event in a stretch.
fn begun(connection: &Connection, stretch: &Stretch, thread: &ThreadId) -> Result<Option<i64>, LogError> {
    let Some(key) = thread_key(connection, stretch.key, thread)? else { return Ok(None) };
    let find = || {
        connection
            .prepare_cached("SELECT min(id) FROM events INDEXED BY events_by_thread WHERE thread = ?1")?
            .query_row(params![key], |row| row.get::<_, Option<i64>>(0))
    };
    let first = match segment::first_of_thread(connection, key)? {
        Some(sealed) => Some(sealed),
        None => find().map_err(from_sqlite)?,
    };
    Ok(first.filter(|id| *id <= row::id(stretch.key, stretch.through)).map(|_| key))
}
