//! Backups: one SQLite file with everything that cannot be made again. A second run adds what is new.
//!
//! A backup is made of a data directory that may be in use. Nothing is locked for long:
//!
//! * Events never change, except that their content may be erased. So they are copied in short reads up to positions that were
//!   noted before, each is verified, and what was erased there since is erased here with the last commit.
//! * Artifacts never change either. One is complete before an event names it, so they are listed after the positions were noted.
//! * Texts of memories can be erased. While the positions are noted and the texts are copied, `memory.db` is locked for writing:
//!   a text is stored before the event that names it and removed after the event that erases it, so the two agree.
//!
//! What only grows is committed on the way, so that a run that was cut short is not begun anew. The last commit replaces the
//! societies, the texts and the row in `point`, which says up to where the backup goes. Rows beyond that are no part of it. So a
//! run that ends early leaves the backup of the run before it, or none.
//!
//! For each society the point has a hash chain: the SHA-256 over every event and the hash before it. It shows a change that was
//! made with a matching checksum.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, Read};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use polis_domain::{ArtifactId, Event, Seq};
use polis_ports::{Hasher, LogError};
use polis_stored_event::moving::Chain;
use rusqlite::{Connection, params};

use crate::artifacts::{path_of, stored_files};
use crate::backup_file::{self, TOKENS, WriteLock, Writing, in_use};
use crate::error::{from_io, from_sqlite};
use crate::extent::Extent;
use crate::inspect::{self, Head};
use crate::keys::ThreadNames;
use crate::local_log::LocalLog;
use crate::row;
use crate::{damage, memory_texts, plain_file, redaction, schema, segment};

/// Small files of a data directory that belong into a backup. Tokens are stored as digests. What opens something by itself (the
/// owner's token, logins at MCP servers, settings with keys) is left out, as is what can be made again.
pub(crate) const SMALL_FILES: [&str; 1] = [TOKENS];

/// How much is read from a data directory at a time.
const CHUNK: usize = 500;

/// How much is copied between two commits.
const COMMIT_BYTES: usize = 32 << 20;

/// How an artifact is cut. SQLite stores at most a billion bytes in a row.
const PART_BYTES: usize = 4 << 20;

/// Why a backup could not be made, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The data directory or a file cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The file is something else.
    #[error("`{0}` is not a backup of polis; choose another file")]
    NotABackup(String),
    /// The first run into it was cut short.
    #[error("`{0}` is the beginning of a backup that was not finished; make it again with `polis backup`, or use another one")]
    Unfinished(String),
    /// It has events that the data directory does not have.
    #[error(
        "the backup has {0}, which the data directory does not have: they are of different histories, or the directory is older. \
         The backup was left as it is; back up to another file"
    )]
    OtherHistory(String),
    /// Something in it is not what was written.
    #[error("the backup is damaged: {0}. Use another one")]
    Damaged(String),
    /// Another process writes to it, or reads what is about to be replaced.
    #[error("`{0}` is in use by another backup, a check or a restore; wait for it, or use another file")]
    Running(String),
    /// The disk of the backup, or the one to restore to, is full.
    #[error("the disk is full: {0}")]
    NoRoom(String),
    /// The place to restore to is taken.
    #[error("`{0}` is not empty; restore to a new directory, or move that one away first")]
    NotEmpty(String),
}

impl From<BackupError> for LogError {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Log(error) => error,
            other => Self::Failed(other.into()),
        }
    }
}

impl BackupError {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Log(error) => error.code(),
            Self::NotABackup(_) => "not_a_backup",
            Self::Unfinished(_) => "backup_unfinished",
            Self::OtherHistory(_) => "backup_other_history",
            Self::Damaged(_) => "backup_damaged",
            Self::Running(_) => "backup_running",
            Self::NoRoom(_) => "disk_full",
            Self::NotEmpty(_) => "data_not_empty",
        }
    }
}

/// What a run copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// Events that were not there before.
    pub events: u64,
    /// Artifacts that were not there before.
    pub artifacts: u64,
    /// Bytes of these events and artifacts.
    pub bytes: u64,
    /// Artifacts whose files are not what their name says. They are not in the backup.
    pub damaged: Vec<ArtifactId>,
    /// Artifacts that an event refers to and that neither the data directory nor the backup has.
    pub missing: Vec<ArtifactId>,
}

/// Brings the backup in `file` up to date with a data directory, which another process may have open. Blocks.
///
/// # Errors
///
/// [`BackupError`]; the backup is then what it was before.
pub fn backup(data: &Path, file: &Path) -> Result<BackupReport, BackupError> {
    if !data.join(schema::FILE).exists() && !data.join(schema::WAL).exists() {
        return Err(LogError::Failed(format!("there is no society in `{}`", data.display()).into()).into());
    }
    // Where no process has it open, an opening recovers what a kill left behind, and keeps other processes out.
    let _open = match LocalLog::open(data) {
        Ok(log) => Some(log),
        Err(LogError::Locked(_)) => None,
        Err(error) => return Err(error.into()),
    };
    memory_texts::refuse_newer(data)?;
    let source = schema::connect_to_read(data)?;
    let locked = WriteLock::take(file);
    let done = locked.and_then(|_lock| {
        let mut is_finished = false;
        let done = copy(source, data, file, &mut is_finished);
        if matches!(done, Err(BackupError::Log(LogError::Full(_)))) && !is_finished {
            backup_file::remove_unfinished(file);
        }
        done
    });
    done.map_err(|error| match in_use(error, file) {
        BackupError::Log(LogError::Full(_)) => BackupError::NoRoom(format!(
            "there is no room for the backup `{}`. Free some, or back up to another disk; a backup that was there before is \
             unchanged",
            file.display()
        )),
        error => error,
    })
}

/// Notes in `is_finished` whether a backup is there that a failure must not touch.
fn copy(source: Connection, data: &Path, file: &Path, is_finished: &mut bool) -> Result<BackupReport, BackupError> {
    let target = backup_file::open_to_write(file)?;
    *is_finished = target.is_finished;
    let mut run = Run { source, target, names: ThreadNames::default(), report: BackupReport::default() };
    run.check_history()?;
    let extent = run.noted()?.extent;
    run.copy_events(&extent)?;
    run.copy_artifacts(data)?;
    run.execute("BEGIN IMMEDIATE")?;
    let noted = run.copy_texts(data)?;
    run.copy_events(&noted.extent)?;
    run.copy_artifacts(data)?;
    run.finish(data, &noted)?;
    run.execute("COMMIT")?;
    *is_finished = true;
    drop(run.target);
    sync_parent(file)?;
    Ok(run.report)
}

/// A data directory at one moment.
struct Noted {
    extent: Extent,
    societies: Vec<SocietyRow>,
    threads: i64,
}

struct SocietyRow {
    key: i64,
    name: String,
    seal: Option<String>,
    parent: Option<i64>,
    at: Option<i64>,
}

struct Run {
    source: Connection,
    target: Writing,
    names: ThreadNames,
    report: BackupReport,
}

impl Run {
    fn execute(&self, sql: &str) -> Result<(), LogError> {
        self.target.connection.execute_batch(sql).map_err(from_sqlite)
    }

    /// Refuses a backup of another history before anything is added to it: the last event that it has of each society must be in
    /// the source.
    fn check_history(&self) -> Result<(), BackupError> {
        let other = |id: i64| {
            let (society, seq) = row::parts(id);
            Err(BackupError::OtherHistory(format!("an event {seq} of society number {society}")))
        };
        let last_of = |key: i64| {
            let bounds = params![row::id(key, Seq(0)), row::id(key, Seq(u64::MAX))];
            let sql = "SELECT max(id) FROM events WHERE id > ?1 AND id <= ?2";
            let found = self.target.connection.query_row(sql, bounds, |row| row.get::<_, Option<i64>>(0));
            found.map_err(from_sqlite)
        };
        let newest = "SELECT coalesce(max(id), 0) FROM events";
        let newest: i64 = self.target.connection.query_row(newest, [], |row| row.get(0)).map_err(from_sqlite)?;
        for key in 1..=row::parts(newest).0 {
            let Some(id) = last_of(key)? else { continue };
            let own = segment::link(&self.target.connection, id)?;
            if own.is_none() || segment::link(&self.source, id)? != own {
                return other(id);
            }
        }
        Ok(())
    }

    /// Notes how far the source goes, as of one moment.
    fn noted(&self) -> Result<Noted, LogError> {
        self.source.execute_batch("BEGIN").map_err(from_sqlite)?;
        let read = || {
            let version = schema::version(&self.source)?;
            let extent = Extent::of(&self.source, version)?;
            let columns = if schema::has_forks(version) { "seal, parent, at" } else { "NULL, NULL, NULL" };
            let sql = format!("SELECT key, name, {columns} FROM societies");
            let mut statement = self.source.prepare(&sql).map_err(from_sqlite)?;
            let rows = statement.query_map([], |row| {
                Ok(SocietyRow { key: row.get(0)?, name: row.get(1)?, seal: row.get(2)?, parent: row.get(3)?, at: row.get(4)? })
            });
            let societies = rows.and_then(Iterator::collect).map_err(from_sqlite)?;
            let last = "SELECT coalesce(max(key), 0) FROM threads";
            let threads = self.source.query_row(last, [], |row| row.get(0)).map_err(from_sqlite)?;
            Ok(Noted { extent, societies, threads })
        };
        let noted = read();
        self.source.execute_batch("COMMIT").map_err(from_sqlite)?;
        noted
    }

    /// Copies the events that are missing up to the noted heads. Outside of a transaction it commits on the way.
    fn copy_events(&mut self, extent: &Extent) -> Result<(), BackupError> {
        for (key, start) in &extent.societies {
            let head = row::id(*key, extent.heads[key]);
            let bounds = params![row::id(*key, Seq(0)), row::id(*key, Seq(u64::MAX))];
            let last = "SELECT max(id) FROM events WHERE id > ?1 AND id <= ?2";
            let last: Option<i64> = self.target.connection.query_row(last, bounds, |row| row.get(0)).map_err(from_sqlite)?;
            let mut after = last.unwrap_or(row::id(*key, start.after));
            while after < head {
                after = self.within_transaction(|run| run.copy_some(&start.checksum_name, after, head))?;
            }
        }
        Ok(())
    }

    /// Copies events until enough are there to commit. Returns the id of the last one.
    fn copy_some(&mut self, society: &polis_domain::SocietyId, mut after: i64, head: i64) -> Result<i64, LogError> {
        let mut bytes = 0;
        while after < head && bytes < COMMIT_BYTES {
            let add = "INSERT INTO events (id, at, thread, version, crc, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let mut add = self.target.connection.prepare_cached(add).map_err(from_sqlite)?;
            let before = after;
            let (source, target, names, report) = (&self.source, &self.target.connection, &mut self.names, &mut self.report);
            segment::each_of_log(source, (after, head), CHUNK, |event, thread| {
                let (key, last) = row::parts(after);
                if event.seq != last.next() {
                    return Err(row::damaged(society, last.next(), "it is missing"));
                }
                let name = thread.map(|thread| names.get(source, thread)).transpose()?;
                event.verify(society, name.as_ref())?;
                after = row::id(key, event.seq);
                if let (Some(thread), Some(name)) = (thread, name) {
                    let add = "INSERT OR IGNORE INTO threads (key, society, name) VALUES (?1, ?2, ?3)";
                    let mut add = target.prepare_cached(add).map_err(from_sqlite)?;
                    add.execute(params![thread, key, name.as_str()]).map_err(from_sqlite)?;
                }
                let body = event.packed();
                let values = params![after, event.at.0 as i64, thread, event.version, event.crc, body];
                add.execute(values).map_err(from_sqlite)?;
                bytes += body.len();
                report.events += 1;
                report.bytes += body.len() as u64;
                Ok(())
            })?;
            if after == before {
                return Err(row::damaged(society, row::parts(after).1.next(), "it is missing"));
            }
        }
        Ok(after)
    }

    /// Runs a part of the copy in a transaction of its own, unless one is open.
    fn within_transaction<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, LogError>) -> Result<T, LogError> {
        if !self.target.connection.is_autocommit() {
            return work(self);
        }
        self.execute("BEGIN IMMEDIATE")?;
        let done = work(self);
        match &done {
            Ok(_) => self.execute("COMMIT")?,
            // SQLite may have rolled back already, for example because the disk is full. The first error is the one to report.
            Err(_) => drop(self.execute("ROLLBACK")),
        }
        done
    }

    /// Copies the artifacts that are missing. One that the source does not have any more stays: it may have been lost there.
    fn copy_artifacts(&mut self, data: &Path) -> Result<(), LogError> {
        let mut missing = Vec::new();
        for (id, path) in stored_files(data).map_err(from_io)? {
            let find = "SELECT 1 FROM artifacts WHERE id = ?1 LIMIT 1";
            let is_there = self.target.connection.prepare_cached(find).and_then(|mut find| find.exists([id.to_string()]));
            if !is_there.map_err(from_sqlite)? && !self.report.damaged.contains(&id) {
                missing.push((id, path));
            }
        }
        let mut missing = missing.into_iter().peekable();
        while missing.peek().is_some() {
            self.within_transaction(|run| {
                let mut bytes = 0;
                while bytes < COMMIT_BYTES
                    && let Some((id, path)) = missing.next()
                {
                    bytes += run.copy_artifact(id, &path)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn copy_artifact(&mut self, id: ArtifactId, path: &Path) -> Result<usize, LogError> {
        let mut file = match plain_file::open(path) {
            Ok(file) => file,
            // It was swept, so nothing names it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.report.damaged.push(id);
                return Ok(0);
            }
            Err(error) => return Err(from_io(error)),
        };
        self.execute("SAVEPOINT artifact")?;
        let (mut hasher, mut total) = (Hasher::default(), 0);
        for part in 0.. {
            let mut bytes = Vec::new();
            file.by_ref().take(PART_BYTES as u64).read_to_end(&mut bytes).map_err(from_io)?;
            if bytes.is_empty() && part > 0 {
                break;
            }
            hasher.update(&bytes);
            total += bytes.len();
            let add = "INSERT INTO artifacts (id, part, bytes) VALUES (?1, ?2, ?3)";
            let added = self
                .target
                .connection
                .prepare_cached(add)
                .and_then(|mut add| add.execute(params![id.to_string(), part, bytes]));
            added.map_err(from_sqlite)?;
        }
        if hasher.id() == id {
            self.report.artifacts += 1;
            self.report.bytes += total as u64;
        } else {
            self.execute("ROLLBACK TO artifact")?;
            self.report.damaged.push(id);
        }
        self.execute("RELEASE artifact")?;
        Ok(total)
    }

    /// Makes the texts of memories those of the source, and notes how far its log goes at the same moment.
    fn copy_texts(&mut self, data: &Path) -> Result<Noted, LogError> {
        let file = data.join(memory_texts::FILE);
        let texts = if file.exists() { Some(Connection::open(file).map_err(from_sqlite)?) } else { None };
        if let Some(texts) = &texts {
            texts.execute_batch("BEGIN IMMEDIATE").map_err(from_sqlite)?;
        }
        let noted = self.noted()?;
        let mut there = HashSet::new();
        if let Some(texts) = &texts {
            let mut copy = || {
                let add = "INSERT INTO texts (id, text, model, vector) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE \
                           SET model = excluded.model, vector = excluded.vector WHERE model IS NOT excluded.model";
                let mut add = self.target.connection.prepare(add)?;
                let mut read = texts.prepare("SELECT id, text, model, vector FROM texts")?;
                let mut rows = read.query([])?;
                while let Some(row) = rows.next()? {
                    add.execute(params![value(row, 0)?, value(row, 1)?, value(row, 2)?, value(row, 3)?])?;
                    there.insert(row.get::<_, String>(0)?);
                }
                Ok(())
            };
            copy().map_err(from_sqlite)?;
        }
        // What was erased there is erased here; `secure_delete` overwrites it.
        let erase = || {
            let mut read = self.target.connection.prepare("SELECT id FROM texts")?;
            let ids: Vec<String> = read.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            let mut remove = self.target.connection.prepare("DELETE FROM texts WHERE id = ?1")?;
            for id in ids.iter().filter(|id| !there.contains(*id)) {
                remove.execute([id])?;
            }
            Ok(())
        };
        erase().map_err(from_sqlite)?;
        Ok(noted)
    }

    /// Writes what makes the copy a backup.
    fn finish(&mut self, data: &Path, noted: &Noted) -> Result<(), BackupError> {
        redaction::copy_redactions(&self.source, &self.target.connection)?;
        let (chains, erased) = self.chains(&noted.extent)?;
        self.erase_artifacts(data, &erased)?;
        let write = || {
            self.target.connection.execute_batch("DELETE FROM societies; DELETE FROM heads; DELETE FROM files;")?;
            for SocietyRow { key, name, seal, parent, at } in &noted.societies {
                let add = "INSERT INTO societies (key, name, seal, parent, at) VALUES (?1, ?2, ?3, ?4, ?5)";
                self.target.connection.execute(add, params![key, name, seal, parent, at])?;
            }
            for (key, chain) in &chains {
                let add = "INSERT INTO heads (society, seq, chain) VALUES (?1, ?2, ?3)";
                self.target.connection.execute(add, params![key, noted.extent.heads[key].0 as i64, chain.0])?;
            }
            let add = "INSERT OR REPLACE INTO point (only, at, threads) VALUES (1, ?1, ?2)";
            self.target.connection.execute(add, params![unix_ms(), noted.threads])?;
            self.target.connection.pragma_update(None, "user_version", backup_file::VERSION)
        };
        write().map_err(from_sqlite)?;
        for name in SMALL_FILES {
            let mut bytes = Vec::new();
            match plain_file::open(&data.join(name)).and_then(|mut file| file.read_to_end(&mut bytes)) {
                Ok(_) => {
                    let add = "INSERT INTO files (name, bytes) VALUES (?1, ?2)";
                    self.target.connection.execute(add, params![name, bytes]).map_err(from_sqlite)?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(from_io(error).into()),
            }
        }
        backup_file::write_checksum(&self.target.connection)?;
        self.report.missing = self.missing()?;
        Ok(())
    }

    /// The artifacts that events refer to and that the backup does not have, those without a sound file left out.
    fn missing(&self) -> Result<Vec<ArtifactId>, BackupError> {
        let missing = backup_file::missing_artifacts(&self.target.connection)?;
        Ok(missing.into_iter().filter(|id| !self.report.damaged.contains(id)).collect())
    }

    /// The hash chains of the copied events, continued from those of the last run, and the artifacts that erasures among them have
    /// removed. Notes the artifacts that these events refer to.
    fn chains(&self, extent: &Extent) -> Result<(BTreeMap<i64, Chain>, BTreeSet<ArtifactId>), BackupError> {
        let mut erased = BTreeSet::new();
        let target = &self.target.connection;
        let before = if self.target.is_older { BTreeMap::new() } else { Head::all(target)? };
        let mut chains = BTreeMap::new();
        let mut names = ThreadNames::default();
        for (key, start) in &extent.societies {
            let (after, chain) = match before.get(key) {
                Some(head) => (head.seq, head.chain),
                None => (start.after, Chain::default()),
            };
            let range = (after, extent.heads[key]);
            let checked =
                inspect::extended(chain, target, &mut names, (*key, &start.checksum_name), range, |event, thread| {
                    let recorded = event.decode(&start.checksum_name, thread.cloned())?;
                    if let Event::ErasureDone { artifacts, .. } = &recorded.event {
                        erased.extend(artifacts);
                    }
                    recorded.artifacts().iter().try_for_each(|artifact| {
                        let add = "INSERT OR IGNORE INTO named (id) VALUES (?1)";
                        let added = target.prepare_cached(add).and_then(|mut add| add.execute([artifact.id.to_string()]));
                        added.map(|_| ()).map_err(from_sqlite)
                    })
                })?;
            chains.insert(*key, checked);
        }
        Ok((chains, erased))
    }

    /// Removes the artifacts that an erasure has removed and that the source does not have again.
    fn erase_artifacts(&self, data: &Path, erased: &BTreeSet<ArtifactId>) -> Result<(), LogError> {
        for id in erased.iter().filter(|id| !path_of(data, id).exists()) {
            let remove = |sql: &str| self.target.connection.prepare_cached(sql)?.execute([id.to_string()]);
            remove("DELETE FROM artifacts WHERE id = ?1")
                .and_then(|_| remove("DELETE FROM named WHERE id = ?1"))
                .map_err(from_sqlite)?;
        }
        Ok(())
    }
}

/// A column as it is.
pub(crate) fn value(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<rusqlite::types::Value> {
    row.get(column)
}

fn sync_parent(file: &Path) -> Result<(), LogError> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    damage::sync_dir(parent).map_err(from_io)
}

#[expect(clippy::disallowed_methods, reason = "tells people and rotation when a backup was made; the log is not concerned")]
fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
