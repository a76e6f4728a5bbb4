//! The one thread that writes: commits everything that is queued as one group, then answers.
//!
//! An error while writing or committing means that nobody knows whether the group is on the disk. Nobody is told that it
//! is, the connection and everything remembered about it are dropped, and before anything else is written the question is
//! settled: what can still be read of the WAL is copied into the database and synced, and the WAL begins anew.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use polis_domain::{Seq, SocietyId, ThreadId};
use polis_ports::LogError;
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use crate::error::{again, from_sqlite};
use crate::lineage::Lineage;
use crate::queue::{Expected, Queue};
use crate::reader::{last_seq, thread_key};
use crate::row::{self, Batch, NewRow};
use crate::snapshot::Ticket;
use crate::sums::{self, Sums};
use crate::witness::{Kept, Named, Witness};
use crate::{Options, lock, schema};

/// Most societies, and most threads, whose numbers are kept in memory.
const KEPT: usize = 64 * 1024;

/// What the writer is asked, and where its answer goes.
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
    SaveSnapshot {
        society: SocietyId,
        ticket: Ticket,
    },
    /// Begin a society as a part of another.
    Fork {
        from: SocietyId,
        at: Seq,
        to: SocietyId,
        aside: Option<SocietyId>,
        first: Batch,
    },
    /// Find out what became of a group whose commit failed.
    Settle,
}

impl Work {
    /// What comes of it when the files are not ours any more: whoever appends must stop.
    fn lost(&self) -> LogError {
        match self {
            Self::Append { society, expected, .. } => {
                LogError::Conflict { society: society.clone(), expected: *expected, actual: Seq(0) }
            }
            _ => LogError::Failed("its files were taken away or replaced while they were open".into()),
        }
    }
}

/// What the writer lets others see.
#[derive(Default)]
pub(crate) struct Health {
    /// A group failed and it is not known yet whether it is there.
    pub(crate) unsettled: AtomicBool,
    /// A read met damage.
    pub(crate) damage_seen: AtomicBool,
    /// How often names have changed hands.
    pub(crate) renamed: AtomicU64,
}

pub(crate) struct Writer {
    dir: PathBuf,
    options: Options,
    queue: Arc<Queue<Job>>,
    health: Arc<Health>,
    witness: Witness,
    store: Option<Store>,
    ours: Ours,
    /// What the indexes should list; unknown once a commit has failed, because it may be there all the same.
    sums: Option<Sums>,
}

impl Writer {
    pub(crate) fn new(
        dir: PathBuf,
        options: Options,
        queue: Arc<Queue<Job>>,
        health: Arc<Health>,
        witness: Witness,
        connection: Connection,
        sums: Sums,
    ) -> Result<Self, LogError> {
        let store = Some(Store::new(connection)?);
        let ours = Ours::in_dir(&dir);
        Ok(Self { dir, options, queue, health, witness, store, ours, sums: Some(sums) })
    }

    /// Works until the queue is closed and empty, then leaves everything tidy.
    pub(crate) fn run(mut self) {
        let mut expected = Expected::nobody();
        let mut usual_commit = Duration::ZERO;
        while let Some(group) = self.queue.take(expected) {
            let began = Instant::now();
            let works: Vec<&Work> = group.iter().map(|job| &job.work).collect();
            let result = self.commit(&works);
            usual_commit = (usual_commit * 3 + began.elapsed()) / 4;
            let answered = group.len();
            answer(group, result);
            self.keep_wal_short();
            expected = Expected::back(answered, self.queue.waiting(), usual_commit);
        }
        self.finish();
    }

    /// Commits a group; the outcome of each job, or what happened to all of them.
    fn commit(&mut self, works: &[&Work]) -> Result<Vec<Result<(), LogError>>, LogError> {
        let result = self.try_commit(works);
        if result.is_err() {
            self.health.unsettled.store(true, Ordering::Release);
            self.store = None;
            self.sums = None;
        }
        result
    }

    fn try_commit(&mut self, works: &[&Work]) -> Result<Vec<Result<(), LogError>>, LogError> {
        if self.health.damage_seen.load(Ordering::Relaxed) {
            let message =
                "a part of the history cannot be read, so nothing more is added to it; stop polis and start it again to see";
            return Err(LogError::Damaged(message.to_owned()));
        }
        if !self.ours.are_there() {
            return Ok(works.iter().map(|work| Err(work.lost())).collect());
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
                    match store.known.append(&mut statements, society, *expected, batch)? {
                        Appended::At(named) => {
                            last = named.or(last);
                            Ok(())
                        }
                        Appended::Stale(actual) => {
                            Err(LogError::Conflict { society: society.clone(), expected: *expected, actual })
                        }
                    }
                }
                Work::SaveSnapshot { society, ticket } => {
                    ticket.save(&store.connection, society)?;
                    Ok(())
                }
                Work::Fork { from, at, to, aside, first } => {
                    match store.known.fork(&mut statements, from, *at, to, aside.as_ref(), first)? {
                        Ok(named) => {
                            renamed |= aside.is_some();
                            last = Some(named);
                            Ok(())
                        }
                        Err(refusal) => Err(refusal),
                    }
                }
                Work::Settle => Ok(()),
            });
        }
        let added = statements.sums;
        drop(statements);
        store.execute("COMMIT")?;
        self.sums = self.sums.map(|sums| sums.plus(added));
        if renamed {
            self.health.renamed.fetch_add(1, Ordering::Release);
        }
        if let Some(last) = last {
            self.witness.committed(last);
        }
        Ok(outcomes)
    }

    /// The connection, opened again if need be, and no question left open.
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

    /// Copies the WAL into the database when it has grown long; the next commit then begins it anew.
    fn keep_wal_short(&mut self) {
        let Some(store) = &self.store else { return };
        let bytes = store.wal_bytes.load(Ordering::Relaxed);
        if bytes < self.options.checkpoint_bytes {
            return;
        }
        // Copying never waits for a reader, but one that is always there can keep the WAL from beginning anew.
        let mode = if bytes < 4 * self.options.checkpoint_bytes { "PASSIVE" } else { "RESTART" };
        if checkpoint(&store.connection, mode).is_err() {
            // What is in the WAL stays there and stays valid. A fresh connection tries again after the next commit.
            self.store = None;
        }
    }

    fn finish(self) {
        let Some(store) = self.store.filter(|_| self.ours.are_there()) else { return };
        let settled = !self.health.unsettled.load(Ordering::Acquire);
        let sound = !self.health.damage_seen.load(Ordering::Relaxed);
        if settled && empty_wal(&store.connection).is_ok() && sound {
            let societies = sums::of_societies(&store.connection).ok();
            let kept = self.sums.zip(societies).map(|(indexes, societies)| Kept { indexes, societies });
            // If this fails, the next opening checks everything, which costs time and nothing else.
            let _ = self.witness.end(kept);
        }
    }
}

/// The files that were opened. Once somebody has put others in their place or taken them away, what is written goes nowhere, and
/// whoever finds no lock may write too: nothing more is acknowledged then.
struct Ours(Vec<(PathBuf, FileId)>);

type FileId = (u64, u64);

impl Ours {
    fn in_dir(dir: &Path) -> Self {
        let files = [schema::FILE, lock::FILE].map(|name| dir.join(name));
        Self(files.into_iter().filter_map(|path| Some((path.clone(), file_id(&path)?))).collect())
    }

    fn are_there(&self) -> bool {
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
                let _ = job.answer.send(Err(again(&error)));
            }
        }
    }
}

/// Copies the whole WAL into the database, synced, and empties it.
pub(crate) fn empty_wal(connection: &Connection) -> Result<(), LogError> {
    if checkpoint(connection, "TRUNCATE")? { Ok(()) } else { Err(LogError::Failed("the log is being read".into())) }
}

/// Whether readers let it go through.
fn checkpoint(connection: &Connection, mode: &str) -> Result<bool, LogError> {
    let busy: bool =
        connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| row.get(0)).map_err(from_sqlite)?;
    Ok(!busy)
}

/// What came of one append within the group.
enum Appended {
    /// It is in the transaction; the last of its events, if it had any.
    At(Option<Named>),
    /// The society ends elsewhere.
    Stale(Seq),
}

/// The connection and what is remembered about the tables.
struct Store {
    connection: Connection,
    known: Known,
    wal_bytes: Arc<AtomicU64>,
}

#[derive(Default)]
struct Known {
    societies: FxHashMap<SocietyId, Society>,
    threads_kept: usize,
}

struct Society {
    key: i64,
    /// The name that its events are sealed with, if it has another one by now.
    seal: Option<SocietyId>,
    head: Seq,
    threads: FxHashMap<ThreadId, i64>,
}

/// What nearly every row of a group needs, looked up once for the group.
struct Statements<'store> {
    connection: &'store Connection,
    add_event: CachedStatement<'store>,
    add_thread: CachedStatement<'store>,
    /// What the group adds to the indexes.
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
        Ok(Self { connection, known: Known::default(), wal_bytes })
    }

    fn begin(&mut self) -> Result<(), LogError> {
        if self.known.societies.len() > KEPT || self.known.threads_kept > KEPT {
            self.known = Known::default();
        }
        self.execute("BEGIN IMMEDIATE")
    }

    fn execute(&self, sql: &str) -> Result<(), LogError> {
        let run = || self.connection.prepare_cached(sql)?.execute([]);
        run().map(|_| ()).map_err(from_sqlite)
    }
}

impl Known {
    fn append(
        &mut self,
        statements: &mut Statements<'_>,
        name: &SocietyId,
        expected: Seq,
        batch: &Batch,
    ) -> Result<Appended, LogError> {
        if !self.societies.contains_key(name) {
            match known(statements.connection, name)? {
                Some(society) => {
                    self.societies.insert(name.clone(), society);
                }
                None if expected != Seq(0) => return Ok(Appended::Stale(Seq(0))),
                None if batch.rows.is_empty() => return Ok(Appended::At(None)),
                None => {
                    let society = found(statements.connection, name)?;
                    self.societies.insert(name.clone(), society);
                }
            }
        }
        let society = self.societies.get_mut(name).expect("it was put there just now");
        if society.head != expected {
            return Ok(Appended::Stale(society.head));
        }
        let resealed = society.seal.as_ref().map(|seal| batch.resealed(seal, expected));
        let batch = resealed.as_ref().unwrap_or(batch);
        let kept_before = society.threads.len();
        let mut last = None;
        for row in &batch.rows {
            society.head = society.head.next();
            let id = row::id(society.key, society.head);
            let thread = match &row.thread {
                Some(thread) => Some(society.thread(statements, thread)?),
                None => None,
            };
            statements.add_event(id, thread, row, &batch.bodies).map_err(from_sqlite)?;
            last = Some(Named { id, crc: row.crc });
        }
        self.threads_kept += society.threads.len() - kept_before;
        Ok(Appended::At(last))
    }
}

/// A fork that is in the transaction, or why it is not.
type Begun = Result<Named, LogError>;

impl Known {
    fn fork(
        &mut self,
        statements: &mut Statements<'_>,
        from: &SocietyId,
        at: Seq,
        to: &SocietyId,
        aside: Option<&SocietyId>,
        first: &Batch,
    ) -> Result<Begun, LogError> {
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
                let forget = "DELETE FROM snapshots WHERE society = ?1";
                connection.prepare_cached(forget)?.execute(params![to.as_str()])?;
                self.societies.clear();
                self.threads_kept = 0;
            }
            let add = "INSERT INTO societies (name, parent, at) VALUES (?1, ?2, ?3)";
            connection.prepare_cached(add)?.insert(params![to.as_str(), parent, at.0 as i64])
        };
        let key = begin().map_err(from_sqlite)?;
        check_key(key)?;
        self.societies.insert(to.clone(), Society { key, seal: None, head: at, threads: FxHashMap::default() });
        match self.append(statements, to, at, first)? {
            Appended::At(Some(named)) => Ok(Ok(named)),
            Appended::At(None) | Appended::Stale(_) => Err(LogError::Failed("a fork needs a first event".into())),
        }
    }
}

/// Whether an append ended at this place.
fn is_whole(connection: &Connection, lineage: &Lineage, at: Seq) -> Result<bool, LogError> {
    let Some(stretch) = lineage.stretches().iter().find(|stretch| stretch.after < at && at <= stretch.through) else {
        return Ok(false);
    };
    let find = || {
        connection
            .prepare_cached("SELECT version FROM events WHERE id = ?1")?
            .query_row(params![row::id(stretch.key, at)], |row| row.get(0))
            .optional()
    };
    Ok(find().map_err(from_sqlite)?.is_some_and(row::is_last))
}

impl Society {
    fn thread(&mut self, statements: &mut Statements<'_>, name: &ThreadId) -> Result<i64, LogError> {
        if let Some(key) = self.threads.get(name) {
            return Ok(*key);
        }
        // Most threads that are not remembered are new, so they are not looked for first.
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
        let body = &bodies[row.body.clone()];
        self.add_event.execute(params![id, row.at.0 as i64, thread, row.version, row.crc, body])?;
        if let Some(thread) = thread {
            self.sums.add_event(thread, id);
        }
        Ok(())
    }

    /// The number of a new thread; none if there is one with this name.
    fn add_thread(&mut self, society: i64, name: &ThreadId) -> rusqlite::Result<Option<i64>> {
        let added = self.add_thread.execute(params![society, name.as_str()])?;
        let key = (added > 0).then(|| self.connection.last_insert_rowid());
        if let Some(key) = key {
            self.sums.add_thread(society, name.as_str(), key);
        }
        Ok(key)
    }
}

fn known(connection: &Connection, name: &SocietyId) -> Result<Option<Society>, LogError> {
    let Some(lineage) = Lineage::find(connection, name)? else { return Ok(None) };
    let own = lineage.own();
    let seal = Some(own.seal.clone()).filter(|seal| seal != name);
    Ok(Some(Society { key: own.key, seal, head: last_seq(connection, own)?, threads: FxHashMap::default() }))
}

fn found(connection: &Connection, name: &SocietyId) -> Result<Society, LogError> {
    let add = || connection.prepare_cached("INSERT INTO societies (name) VALUES (?1)")?.insert(params![name.as_str()]);
    let key = add().map_err(from_sqlite)?;
    check_key(key)?;
    Ok(Society { key, seal: None, head: Seq(0), threads: FxHashMap::default() })
}

fn check_key(key: i64) -> Result<(), LogError> {
    if key > row::LAST_SOCIETY {
        return Err(LogError::Failed("this data directory holds as many societies as it can".into()));
    }
    Ok(())
}
