//! The single writer thread: commits everything that is queued as one group, then answers.
//!
//! After an error it is unknown whether the group is on the disk. The group is not acknowledged, and the connection and its
//! caches are dropped. Before anything else is written, the state is settled: what can still be read of the WAL is copied
//! into the database and synced, and the WAL starts anew. From then on the group is either in the database or gone for good.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use polis_domain::{Seq, SocietyId, ThreadId, Timestamp};
use polis_ports::LogError;
use rusqlite::{CachedStatement, Connection, params};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::oneshot;

use crate::error::from_sqlite;
use crate::health::Health;
use crate::keys::{last_seq, thread_key};
use crate::last_ack::{EventRef, LastAckFile, StoredSums};
use crate::lineage::Lineage;
use crate::options::Options;
use crate::queue::{Expected, Queue};
use crate::redaction::{self, Redaction};
use crate::row::{self, Batch, NewRow};
use crate::sums::{self, Sums};
use crate::{body, lock, schema, segment};

/// How long a checkpoint may wait for readers so that the WAL starts anew.
const RESTART_WAIT: Duration = Duration::from_millis(20);

/// How many bytes a step of a vacuum gives back.
const VACUUM_BYTES: u32 = 1 << 20;

/// How long anything else waits for a lock on the database.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// How many societies, and how many threads, are cached.
const MAX_CACHED: usize = 64 * 1024;

/// A request to the writer and the channel that receives its result.
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) answer: oneshot::Sender<Result<(), LogError>>,
}

pub(crate) enum Work {
    Append {
        society: SocietyId,
        expected: Seq,
        batch: Batch,
    },
    /// Create a fork of a society.
    Fork {
        from: SocietyId,
        at: Seq,
        to: SocietyId,
        aside: Option<SocietyId>,
        first: Batch,
    },
    /// Seal some of the events that are older than a time.
    Seal {
        before: Timestamp,
        /// Receives how many events were sealed.
        count: Arc<AtomicU64>,
    },
    /// Give some free pages back to the file system.
    Vacuum,
    /// Put what an erasure leaves in the place of events.
    Redact {
        society: SocietyId,
        redactions: Vec<Redaction>,
    },
    /// Overwrite what is left of redacted texts in the files. Fails while the log is being read.
    Forget,
    /// Find out what became of a group whose commit failed.
    Settle,
}

impl Work {
    /// The society that wants it.
    fn society(&self) -> Option<&SocietyId> {
        match self {
            Self::Append { society, .. } | Self::Fork { to: society, .. } => Some(society),
            Self::Seal { .. } | Self::Vacuum | Self::Redact { .. } | Self::Forget | Self::Settle => None,
        }
    }

    /// The error when the files were replaced: an appender gets a conflict, which makes it stop.
    fn files_replaced(&self) -> LogError {
        match self {
            Self::Append { society, expected, .. } => {
                LogError::Conflict { society: society.clone(), expected: *expected, actual: Seq(0) }
            }
            _ => LogError::Failed("its files were removed or replaced while they were open".into()),
        }
    }
}

pub(crate) struct Writer {
    dir: PathBuf,
    options: Options,
    queue: Arc<Queue<Job>>,
    health: Arc<Health>,
    last_ack: LastAckFile,
    store: Option<Store>,
    files: OpenFiles,
    /// The checksums of the indexes; unknown once a commit has failed, because it may be in the database all the same.
    sums: Option<Sums>,
}

impl Writer {
    pub(crate) fn new(
        dir: PathBuf,
        options: Options,
        queue: Arc<Queue<Job>>,
        health: Arc<Health>,
        last_ack: LastAckFile,
        connection: Connection,
        sums: Sums,
    ) -> Result<Self, LogError> {
        let store = Some(Store::new(connection)?);
        let files = OpenFiles::in_dir(&dir);
        Ok(Self { dir, options, queue, health, last_ack, store, files, sums: Some(sums) })
    }

    /// Works until the queue is closed and empty, then closes the database cleanly.
    pub(crate) fn run(mut self) {
        let mut expected = Expected::none();
        let mut usual_commit = Duration::ZERO;
        while let Some(group) = self.queue.take(expected) {
            let began = Instant::now();
            let works: Vec<&Work> = group.iter().map(|job| &job.work).collect();
            let result = self.commit(&works);
            usual_commit = (usual_commit * 3 + began.elapsed()) / 4;
            let mut callers = FxHashSet::default();
            callers.extend(group.iter().filter_map(|job| job.work.society().cloned()));
            answer(group, result);
            self.keep_wal_short();
            self.queue.each_waiting(|job| callers.extend(job.work.society().cloned()));
            expected = Expected::returning(callers.len(), usual_commit);
        }
        self.finish();
    }

    /// Commits a group. Returns the result of each job, or the error that all of them share.
    fn commit(&mut self, works: &[&Work]) -> Result<Vec<Result<(), LogError>>, LogError> {
        let result = self.try_commit(works);
        if result.is_err() {
            self.health.unsettled.store(true, Ordering::Release);
            self.store = None;
            self.sums = None;
        }
        result
    }

    /// One transaction for the whole group.
    ///
    /// The order of the steps is what makes an acknowledgement trustworthy:
    ///
    /// 1. Damage or replaced files stop the writer before it touches anything.
    /// 2. [`Self::settled_store`] resolves the doubt that an earlier failure left.
    /// 3. A job that does not fit (a stale expected position, a taken name) fails alone; the others of the group go on. It
    ///    has changed nothing in the transaction. Any other error aborts the whole group.
    /// 4. `COMMIT` syncs the WAL (`synchronous=FULL`). Only now are the events durable.
    /// 5. The `witness` file names the last event, before the caller sends any answer. In the other order, a crash in between
    ///    would leave acknowledged events that no check would miss.
    ///
    /// The cache is updated while the statements run, before the commit. That is safe because [`Self::commit`] drops the
    /// store with its cache on any error.
    fn try_commit(&mut self, works: &[&Work]) -> Result<Vec<Result<(), LogError>>, LogError> {
        if self.health.damage_seen.load(Ordering::Relaxed) {
            let message =
                "a part of the history cannot be read, so nothing more is added to it; stop polis and start it again to see";
            return Err(LogError::Damaged(message.to_owned()));
        }
        if !self.files.are_unchanged() {
            return Ok(works.iter().map(|work| Err(work.files_replaced())).collect());
        }
        let store = self.settled_store()?;
        store.begin()?;
        let mut statements = Statements::prepare(&store.connection).map_err(from_sqlite)?;
        let mut outcomes = Vec::with_capacity(works.len());
        let mut last = None;
        let mut renamed = false;
        for work in works {
            outcomes.push(match work {
                Work::Append { society, expected, batch } => {
                    match store.cache.append(&mut statements, society, *expected, batch)? {
                        Appended::At(last_event) => {
                            last = last_event.or(last);
                            Ok(())
                        }
                        Appended::Stale(actual) => {
                            Err(LogError::Conflict { society: society.clone(), expected: *expected, actual })
                        }
                    }
                }
                Work::Fork { from, at, to, aside, first } => {
                    match store.cache.fork(&mut statements, from, *at, to, aside.as_ref(), first)? {
                        Ok(last_event) => {
                            renamed |= aside.is_some();
                            last = Some(last_event);
                            Ok(())
                        }
                        Err(refusal) => Err(refusal),
                    }
                }
                Work::Seal { before, count } => {
                    let sealed = segment::seal(&store.connection, *before, &mut statements.sums)?;
                    count.store(sealed, Ordering::Release);
                    Ok(())
                }
                Work::Vacuum => {
                    store.vacuum()?;
                    Ok(())
                }
                Work::Redact { society, redactions } => redaction::redact(&store.connection, society, redactions)?,
                Work::Forget | Work::Settle => Ok(()),
            });
        }
        let added = statements.sums;
        drop(statements);
        store.execute("COMMIT")?;
        for (work, outcome) in works.iter().zip(&mut outcomes) {
            if matches!(work, Work::Forget) {
                *outcome = store.forget();
            }
        }
        self.sums = self.sums.map(|sums| sums.plus(added));
        if renamed {
            self.health.renamed.fetch_add(1, Ordering::Release);
        }
        if let Some(last) = last {
            self.last_ack.committed(last);
        }
        Ok(outcomes)
    }

    /// The store, reopened if an error has dropped it, with no doubt left about an earlier group.
    ///
    /// After a failed commit its frames may lie complete in the WAL although nobody was answered. If the next commit simply
    /// appended to the WAL, a later recovery could bring the failed group back behind the writer's back: the caller was told
    /// that it failed and may have decided something else for the same positions. Truncating the WAL settles it: what SQLite
    /// still considers committed is copied into the database and synced, everything else is gone. Readers may delay the
    /// checkpoint; then this fails, and the next group tries again. `unsettled` is cleared only after the checkpoint, and
    /// `Log::head` waits for it.
    fn settled_store(&mut self) -> Result<&mut Store, LogError> {
        let store = match self.store.take() {
            Some(store) => store,
            None => Store::new(schema::connect_to_write(&self.dir)?)?,
        };
        if self.health.unsettled.load(Ordering::Acquire) {
            empty_wal(&store.connection)?;
            self.health.unsettled.store(false, Ordering::Release);
        }
        Ok(self.store.insert(store))
    }

    /// Copies the WAL into the database when it has grown long; the next commit then starts it anew.
    fn keep_wal_short(&mut self) {
        let Some(store) = &self.store else { return };
        let bytes = store.wal_bytes.load(Ordering::Relaxed);
        if bytes < self.options.checkpoint_bytes {
            return;
        }
        // A passive checkpoint never waits for readers, but a permanent reader can keep the WAL from starting anew.
        let is_long = bytes >= 4 * self.options.checkpoint_bytes;
        let mode = if is_long { "RESTART" } else { "PASSIVE" };
        // A restart waits for readers. One that reads for long, such as a check of the whole file, must not hold commits up.
        let wait = |limit| if is_long { store.connection.busy_timeout(limit).map_err(from_sqlite) } else { Ok(()) };
        let done = wait(RESTART_WAIT).and_then(|()| checkpoint(&store.connection, mode));
        if done.and(wait(BUSY_WAIT)).is_err() {
            // The WAL stays valid. A fresh connection tries again after the next commit.
            self.store = None;
        }
    }

    fn finish(self) {
        let Some(store) = self.store.filter(|_| self.files.are_unchanged()) else { return };
        let settled = !self.health.unsettled.load(Ordering::Acquire);
        let sound = !self.health.damage_seen.load(Ordering::Relaxed);
        if settled && empty_wal(&store.connection).is_ok() && sound {
            let societies = sums::of_societies(&store.connection).ok();
            let sums = self.sums.zip(societies).map(|(indexes, societies)| StoredSums { indexes, societies });
            // If this fails, the next opening checks everything, which only costs time.
            let _ = self.last_ack.end(sums);
        }
    }
}

/// The identities of the opened files. If they were replaced or removed, writes would go to files that nobody can open any
/// more, and another process could take the new lock; so nothing more is acknowledged.
struct OpenFiles(Vec<(PathBuf, FileId)>);

type FileId = (u64, u64);

impl OpenFiles {
    fn in_dir(dir: &Path) -> Self {
        let files = [schema::FILE, lock::FILE].map(|name| dir.join(name));
        Self(files.into_iter().filter_map(|path| Some((path.clone(), file_id(&path)?))).collect())
    }

    fn are_unchanged(&self) -> bool {
        self.0.iter().all(|(path, id)| file_id(path) == Some(*id))
    }
}

#[cfg(unix)]
fn file_id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn file_id(_: &Path) -> Option<FileId> {
    None
}

fn answer(group: Vec<Job>, result: Result<Vec<Result<(), LogError>>, LogError>) {
    // A caller that went away does not need the answer.
    match result {
        Ok(outcomes) => {
            for (job, outcome) in group.into_iter().zip(outcomes) {
                let _ = job.answer.send(outcome);
            }
        }
        Err(error) => {
            for job in group {
                let _ = job.answer.send(Err(error.again()));
            }
        }
    }
}

/// Copies the whole WAL into the database, synced, and empties it.
pub(crate) fn empty_wal(connection: &Connection) -> Result<(), LogError> {
    if checkpoint(connection, "TRUNCATE")? { Ok(()) } else { Err(LogError::Failed("the log is being read".into())) }
}

/// Runs a checkpoint; returns whether readers let it complete.
fn checkpoint(connection: &Connection, mode: &str) -> Result<bool, LogError> {
    let busy: bool =
        connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| row.get(0)).map_err(from_sqlite)?;
    Ok(!busy)
}

/// The result of one append within the group.
enum Appended {
    /// It is part of the transaction; the last of its events, if it had any.
    At(Option<EventRef>),
    /// The log of the society ends at another position than expected.
    Stale(Seq),
}

/// The connection and its caches.
struct Store {
    connection: Connection,
    cache: Cache,
    page_bytes: u32,
    wal_bytes: Arc<AtomicU64>,
}

#[derive(Default)]
struct Cache {
    societies: FxHashMap<SocietyId, CachedSociety>,
    cached_threads: usize,
}

struct CachedSociety {
    key: i64,
    /// The name in the checksums of its events, if it has been renamed since.
    checksum_name: Option<SocietyId>,
    head: Seq,
    threads: FxHashMap<ThreadId, i64>,
}

/// The statements that nearly every row needs, prepared once for a group.
struct Statements<'store> {
    connection: &'store Connection,
    add_event: CachedStatement<'store>,
    add_thread: CachedStatement<'store>,
    /// The checksums of what the group adds to the indexes.
    sums: Sums,
}

impl Store {
    fn new(mut connection: Connection) -> Result<Self, LogError> {
        let wal_bytes = Arc::new(AtomicU64::new(0));
        let page_bytes: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(from_sqlite)?;
        let counter = wal_bytes.clone();
        let count = move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            counter.store(u64::try_from(pages).unwrap_or(0) * u64::from(page_bytes), Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(count)).map_err(from_sqlite)?;
        Ok(Self { connection, cache: Cache::default(), page_bytes, wal_bytes })
    }

    /// Moves pages from the end of the file into free ones and cuts it, within the open transaction.
    fn vacuum(&self) -> Result<(), LogError> {
        let sql = format!("PRAGMA incremental_vacuum({})", VACUUM_BYTES / self.page_bytes);
        let run = || {
            let mut statement = self.connection.prepare(&sql)?;
            let mut rows = statement.query([])?;
            // Each step frees a page.
            while rows.next()?.is_some() {}
            Ok(())
        };
        run().map_err(from_sqlite)
    }

    /// Leaves nothing of what was redacted in free room and in the WAL.
    fn forget(&self) -> Result<(), LogError> {
        self.connection.flush_prepared_statement_cache();
        schema::overwrite_deleted(&self.connection)?;
        // Readers do not hold commits up for longer than this.
        self.connection.busy_timeout(RESTART_WAIT).map_err(from_sqlite)?;
        let emptied = empty_wal(&self.connection);
        self.connection.busy_timeout(BUSY_WAIT).map_err(from_sqlite)?;
        emptied
    }

    fn begin(&mut self) -> Result<(), LogError> {
        if self.cache.societies.len() > MAX_CACHED || self.cache.cached_threads > MAX_CACHED {
            self.cache = Cache::default();
        }
        self.execute("BEGIN IMMEDIATE")
    }

    fn execute(&self, sql: &str) -> Result<(), LogError> {
        let run = || self.connection.prepare_cached(sql)?.execute([]);
        run().map(|_| ()).map_err(from_sqlite)
    }
}

impl Cache {
    fn append(
        &mut self,
        statements: &mut Statements<'_>,
        name: &SocietyId,
        expected: Seq,
        batch: &Batch,
    ) -> Result<Appended, LogError> {
        if !self.societies.contains_key(name) {
            match load_society(statements.connection, name)? {
                Some(society) => {
                    self.societies.insert(name.clone(), society);
                }
                None if expected != Seq(0) => return Ok(Appended::Stale(Seq(0))),
                None if batch.rows.is_empty() => return Ok(Appended::At(None)),
                None => {
                    let society = create_society(statements.connection, name)?;
                    self.societies.insert(name.clone(), society);
                }
            }
        }
        let society = self.societies.get_mut(name).expect("it was put there just now");
        if society.head != expected {
            return Ok(Appended::Stale(society.head));
        }
        let renamed = society.checksum_name.as_ref().map(|checksum_name| batch.with_checksum_name(checksum_name, expected));
        let batch = renamed.as_ref().unwrap_or(batch);
        let before = society.threads.len();
        let mut last = None;
        for row in &batch.rows {
            society.head = society.head.next();
            let id = row::id(society.key, society.head);
            let thread = match &row.thread {
                Some(thread) => Some(society.thread(statements, thread)?),
                None => None,
            };
            statements.add_event(id, thread, row, &batch.bodies).map_err(from_sqlite)?;
            last = Some(EventRef { id, crc: row.crc });
        }
        self.cached_threads += society.threads.len() - before;
        Ok(Appended::At(last))
    }
}

/// The first event of a fork that is part of the transaction, or why it was refused.
type ForkOutcome = Result<EventRef, LogError>;

impl Cache {
    fn fork(
        &mut self,
        statements: &mut Statements<'_>,
        from: &SocietyId,
        at: Seq,
        to: &SocietyId,
        aside: Option<&SocietyId>,
        first: &Batch,
    ) -> Result<ForkOutcome, LogError> {
        let connection = statements.connection;
        let Some(source) = Lineage::find(connection, from)? else {
            return Ok(Err(LogError::Failed(format!("there is no society `{from}`").into())));
        };
        if !is_whole(connection, &source, at)? {
            return Ok(Err(LogError::Failed(format!("no append of `{from}` ended at {at}").into())));
        }
        let free = aside.unwrap_or(to);
        let taken = Lineage::find(connection, free)?;
        let holder = Lineage::find(connection, to)?;
        if taken.is_some() || aside.is_some() && holder.is_none() {
            let actual = taken.map_or(Ok(Seq(0)), |taken| last_seq(connection, taken.own()))?;
            return Ok(Err(LogError::Conflict { society: free.clone(), expected: Seq(0), actual }));
        }
        let parent = source.stretches().iter().rev().find(|stretch| stretch.after < at).map(|stretch| stretch.key);
        let mut begin = || {
            if let Some(aside) = aside {
                let give = "UPDATE societies SET seal = coalesce(seal, name), name = ?2 WHERE name = ?1";
                connection.prepare_cached(give)?.execute(params![to.as_str(), aside.as_str()])?;
                self.societies.clear();
                self.cached_threads = 0;
            }
            let add = "INSERT INTO societies (name, parent, at) VALUES (?1, ?2, ?3)";
            connection.prepare_cached(add)?.insert(params![to.as_str(), parent, at.0 as i64])
        };
        let key = begin().map_err(from_sqlite)?;
        check_key(key)?;
        self.societies.insert(to.clone(), CachedSociety { key, checksum_name: None, head: at, threads: FxHashMap::default() });
        match self.append(statements, to, at, first)? {
            Appended::At(Some(last_event)) => Ok(Ok(last_event)),
            Appended::At(None) | Appended::Stale(_) => Err(LogError::Failed("a fork needs a first event".into())),
        }
    }
}

/// Whether an append ended at this position.
fn is_whole(connection: &Connection, lineage: &Lineage, at: Seq) -> Result<bool, LogError> {
    let Some(stretch) = lineage.stretches().iter().find(|stretch| stretch.after < at && at <= stretch.through) else {
        return Ok(false);
    };
    let found = segment::find(connection, row::id(stretch.key, at))?;
    Ok(found.is_some_and(|(version, _)| row::is_last(version)))
}

impl CachedSociety {
    fn thread(&mut self, statements: &mut Statements<'_>, name: &ThreadId) -> Result<i64, LogError> {
        if let Some(key) = self.threads.get(name) {
            return Ok(*key);
        }
        // A thread that is not cached is usually new, so it is inserted without a lookup.
        let key = match statements.add_thread(self.key, name).map_err(from_sqlite)? {
            Some(key) => key,
            None => thread_key(statements.connection, self.key, name)?
                .ok_or_else(|| LogError::Damaged(format!("thread `{name}` is there, but it cannot be found")))?,
        };
        self.threads.insert(name.clone(), key);
        Ok(key)
    }
}

impl<'store> Statements<'store> {
    fn prepare(connection: &'store Connection) -> rusqlite::Result<Self> {
        let add_event = "INSERT INTO events (id, at, thread, version, crc, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let add_thread = "INSERT INTO threads (society, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        Ok(Self {
            connection,
            add_event: connection.prepare_cached(add_event)?,
            add_thread: connection.prepare_cached(add_thread)?,
            sums: Sums::default(),
        })
    }

    fn add_event(&mut self, id: i64, thread: Option<i64>, row: &NewRow, bodies: &[u8]) -> rusqlite::Result<()> {
        let body = body::pack(&bodies[row.body.clone()]);
        self.add_event.execute(params![id, row.at.0 as i64, thread, row.version, row.crc, body])?;
        if let Some(thread) = thread {
            self.sums.add_event(thread, id);
        }
        Ok(())
    }

    /// Inserts a thread and returns its key; none if the name exists.
    fn add_thread(&mut self, society: i64, name: &ThreadId) -> rusqlite::Result<Option<i64>> {
        let added = self.add_thread.execute(params![society, name.as_str()])?;
        let key = (added > 0).then(|| self.connection.last_insert_rowid());
        if let Some(key) = key {
            self.sums.add_thread(society, name.as_str(), key);
        }
        Ok(key)
    }
}

fn load_society(connection: &Connection, name: &SocietyId) -> Result<Option<CachedSociety>, LogError> {
    let Some(lineage) = Lineage::find(connection, name)? else { return Ok(None) };
    let own = lineage.own();
    let checksum_name = Some(own.checksum_name.clone()).filter(|checksum_name| checksum_name != name);
    Ok(Some(CachedSociety { key: own.key, checksum_name, head: last_seq(connection, own)?, threads: FxHashMap::default() }))
}

fn create_society(connection: &Connection, name: &SocietyId) -> Result<CachedSociety, LogError> {
    let add = || connection.prepare_cached("INSERT INTO societies (name) VALUES (?1)")?.insert(params![name.as_str()]);
    let key = add().map_err(from_sqlite)?;
    check_key(key)?;
    Ok(CachedSociety { key, checksum_name: None, head: Seq(0), threads: FxHashMap::default() })
}

fn check_key(key: i64) -> Result<(), LogError> {
    if key > row::LAST_SOCIETY {
        return Err(LogError::Failed("this data directory has reached the maximum number of societies".into()));
    }
    Ok(())
}
