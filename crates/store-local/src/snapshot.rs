//! Snapshots and their idle entries, in a database of their own: `snapshots/snapshots.db`.
//!
//! All of it is a cache that can be made anew from the log. So it is written without waiting for the disk, it is never part of a
//! backup, and whatever is wrong with it leads to its removal. That it belongs to the history beside it is told by the checksum
//! of the event that a snapshot ends with. Bodies have checksums of their own. An entry that is missing is noticed because the
//! log has a thread of its name.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polis_domain::{IdleKey, Seq, SocietyId, ThreadId};
use polis_ports::{IdleListed, IdleListing, LogError, NewSnapshot, Snapshot, StoredEntry, ThreadRange};
use polis_stored_event::idle::{ListColumns, checksum};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{from_io, from_sqlite};
use crate::reader::Reader;

pub(crate) const FOLDER: &str = "snapshots";
const FILE: &str = "snapshots.db";
const FILES: [&str; 3] = [FILE, "snapshots.db-wal", "snapshots.db-shm"];

/// The version of the tables. A database of another version is made anew.
const VERSION: u32 = 1;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS snapshots (
        society TEXT PRIMARY KEY,
        seq INTEGER NOT NULL,
        event INTEGER NOT NULL, -- the checksum of the event at that position
        version INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        body BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS idle (
        society TEXT NOT NULL,
        name TEXT NOT NULL,
        parent TEXT, -- the thread and the message that a sub-thread hangs in
        message INTEGER,
        person TEXT,
        pinned INTEGER, -- the place in the list of a conversation
        active INTEGER,
        kind INTEGER, -- what it is listed as, see `ListColumns`
        crc INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (society, name)
    );
    CREATE INDEX IF NOT EXISTS idle_by_message ON idle (society, parent, message) WHERE parent IS NOT NULL;
    CREATE INDEX IF NOT EXISTS idle_by_place ON idle (society, pinned, active) WHERE active IS NOT NULL;
    CREATE INDEX IF NOT EXISTS idle_by_person ON idle (society, person, pinned, active) WHERE active IS NOT NULL;
    CREATE INDEX IF NOT EXISTS idle_of_person ON idle (society, person, name);
    CREATE INDEX IF NOT EXISTS idle_terminated ON idle (society, name) WHERE kind = 2;
";

const COLUMNS: &str = "name, parent, message, person, pinned, active, kind, crc, body";

/// The snapshots of a data directory. One connection writes and one reads, so that a long save delays no lookup.
pub(crate) struct Snapshots {
    folder: PathBuf,
    writer: Mutex<Option<Connection>>,
    reader: Mutex<Option<Connection>>,
}

/// What a lookup found, and the names that it did not find.
pub(crate) struct FoundEntries {
    pub(crate) entries: Vec<StoredEntry>,
    pub(crate) missing: Vec<Arc<str>>,
}

impl Snapshots {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { folder: dir.join(FOLDER), writer: Mutex::default(), reader: Mutex::default() }
    }

    /// The society's snapshot, if it is of this history: `event` gives the checksum of an event of the log.
    pub(crate) fn load(
        &self,
        society: &SocietyId,
        event: impl FnOnce(Seq) -> Result<Option<u32>, LogError>,
    ) -> Result<Option<Snapshot>, LogError> {
        let find = |connection: &Connection| {
            connection
                .prepare_cached("SELECT seq, event, version, crc, body FROM snapshots WHERE society = ?1")?
                .query_row([society.as_str()], |row| {
                    let (crc, body): (u32, Vec<u8>) = (row.get(3)?, row.get(4)?);
                    let found = Snapshot { seq: Seq(row.get::<_, i64>(0)? as u64), version: row.get(2)?, body };
                    Ok((row.get::<_, u32>(1)?, (crc32fast::hash(&found.body) == crc).then_some(found)))
                })
                .optional()
        };
        // Without a snapshot the log is folded from its first event.
        let Ok(Some((expected, found))) = self.with(&self.reader, find) else { return Ok(None) };
        let Some(found) = found else {
            self.remove();
            return Ok(None);
        };
        Ok((event(found.seq)? == Some(expected)).then_some(found))
    }

    /// Saves a snapshot unless there is a newer one. `event` is the checksum of its last event.
    pub(crate) fn save(&self, society: &SocietyId, event: u32, snapshot: NewSnapshot) -> Result<(), LogError> {
        let NewSnapshot { seq, version, after, write } = snapshot;
        let (body, entries) = write();
        self.with(&self.writer, |connection| {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            let saved = save(connection, society, (seq, event, version), after, &body, &entries);
            connection.execute_batch(if matches!(saved, Ok(true)) { "COMMIT" } else { "ROLLBACK" })?;
            saved
        })
        .and_then(|is_saved| match is_saved {
            true => Ok(()),
            false => Err(LogError::Failed("the snapshot that this one goes on from is not there".into())),
        })
    }

    /// The entries that these keys find, of a snapshot at `at` or later.
    pub(crate) fn find(&self, society: &SocietyId, at: Seq, keys: &[IdleKey]) -> Result<FoundEntries, LogError> {
        let found = self.with(&self.reader, |connection| {
            let sql = "SELECT seq FROM snapshots WHERE society = ?1";
            let seq = connection.prepare_cached(sql)?.query_row([society.as_str()], |row| row.get::<_, i64>(0)).optional()?;
            if seq.is_none_or(|seq| (seq as u64) < at.0) {
                return Ok(None);
            }
            let mut found = Found::default();
            let mut missing = Vec::new();
            for key in keys {
                match key {
                    IdleKey::Name(name) => {
                        let sql = format!("SELECT {COLUMNS} FROM idle WHERE society = ?1 AND name = ?2");
                        if found.add(connection, &sql, params![society.as_str(), &**name])? == 0 {
                            missing.push(name.clone());
                        }
                    }
                    IdleKey::Message(thread, message) => {
                        let sql = format!("SELECT {COLUMNS} FROM idle WHERE society = ?1 AND parent = ?2 AND message = ?3");
                        found.add(connection, &sql, params![society.as_str(), thread.as_str(), message])?;
                    }
                }
            }
            Ok(Some((found, missing)))
        })?;
        let (found, missing) = found.ok_or_else(|| LogError::Failed("the snapshot of the society is not there".into()))?;
        Ok(FoundEntries { entries: self.checked(found)?, missing })
    }

    /// Makes sure that what was not found never was: an entry that the log has a thread for is lost, and with it the snapshot.
    pub(crate) fn check_missing(
        &self,
        reader: &mut Reader,
        society: &SocietyId,
        at: Seq,
        missing: &[Arc<str>],
    ) -> Result<(), LogError> {
        let range = ThreadRange { oldest: 1, ..ThreadRange::through(at) };
        for name in missing {
            if !reader.read_thread(society, &ThreadId::new(name.clone()), range)?.is_empty() {
                self.remove();
                return Err(lost());
            }
        }
        Ok(())
    }

    /// The entries of one list.
    pub(crate) fn list(&self, society: &SocietyId, listing: &IdleListing) -> Result<Vec<StoredEntry>, LogError> {
        if !self.folder.join(FILE).exists() {
            return Ok(Vec::new());
        }
        let IdleListing { person, of, limit } = listing;
        let whose = if person.is_some() { "person = ?2" } else { "?2 IS NULL" };
        let (which, pinned, after) = match of {
            IdleListed::Conversations(after) => {
                let active = i64::try_from(after.active.0).unwrap_or(i64::MAX);
                let which = "active IS NOT NULL AND (pinned, active) < (?4, ?5) ORDER BY pinned DESC, active DESC";
                (which, Some(after.pinned), Value::from(active))
            }
            IdleListed::Terminated(after) => {
                ("kind = 2 AND name > ?5 AND ?4 IS NULL ORDER BY name", None, Value::from(after.to_string()))
            }
            IdleListed::All(after) => ("name > ?5 AND ?4 IS NULL ORDER BY name", None, Value::from(after.to_string())),
        };
        let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
        let person = person.as_ref().map(|person| person.as_str());
        let found = self.with(&self.reader, |connection| {
            let sql = format!("SELECT {COLUMNS} FROM idle WHERE society = ?1 AND {whose} AND {which} LIMIT ?3");
            let mut found = Found::default();
            found.add(connection, &sql, params![society.as_str(), person, limit, pinned, after])?;
            Ok(found)
        })?;
        self.checked(found)
    }

    /// Removes everything, because a part of it is wrong. The next opening folds the log from its first event.
    pub(crate) fn remove(&self) {
        let (mut writer, mut reader) = (lock(&self.writer), lock(&self.reader));
        (*writer, *reader) = (None, None);
        self.remove_files();
    }

    /// Removes the snapshots of societies that may have what was redacted, and overwrites everything that was deleted.
    pub(crate) fn forget(&self, related: &[SocietyId]) -> Result<(), LogError> {
        if !self.folder.join(FILE).exists() {
            return Ok(());
        }
        let mut reader = lock(&self.reader);
        *reader = None;
        self.with(&self.writer, |connection| {
            for society in related {
                connection.execute("DELETE FROM snapshots WHERE society = ?1", [society.as_str()])?;
                connection.execute("DELETE FROM idle WHERE society = ?1", [society.as_str()])?;
            }
            connection.flush_prepared_statement_cache();
            connection.execute_batch("VACUUM")?;
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)).map(drop)
        })
    }

    /// Removes what older versions left in the folder.
    pub(crate) fn sweep(&self) {
        if !self.is_folder() {
            return;
        }
        for file in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if file.file_name().to_str().is_some_and(is_old_body) {
                let _ = fs::remove_file(file.path());
            }
        }
    }

    fn checked(&self, found: Found) -> Result<Vec<StoredEntry>, LogError> {
        if found.is_damaged {
            self.remove();
            return Err(lost());
        }
        Ok(found.entries)
    }

    fn remove_files(&self) {
        if self.is_folder() {
            // What cannot be removed is found wrong again.
            FILES.iter().for_each(|name| drop(fs::remove_file(self.folder.join(name))));
        }
    }

    /// Whether the folder is one. The directory may be a stranger's: a link in its place would lead to files that are none of
    /// ours, so it is not followed.
    fn is_folder(&self) -> bool {
        fs::symlink_metadata(&self.folder).is_ok_and(|found| found.is_dir())
    }

    /// Runs a piece of work on a connection. After any error but a full disk the database is removed: it may be damaged in a way
    /// that SQLite does not call damage, and the log has everything.
    fn with<T>(
        &self,
        slot: &Mutex<Option<Connection>>,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LogError> {
        let mut slot = lock(slot);
        let done = match &*slot {
            Some(connection) => work(connection).map_err(from_sqlite),
            None => self.connect().and_then(|connection| work(slot.insert(connection)).map_err(from_sqlite)),
        };
        if done.is_err() {
            *slot = None;
        }
        drop(slot);
        match done {
            Err(error) if !matches!(error, LogError::Full(_)) => {
                tracing::warn!(%error, "the snapshots cannot be used and are removed; the next start folds the log");
                self.remove();
                Err(lost())
            }
            other => other,
        }
    }

    fn connect(&self) -> Result<Connection, LogError> {
        fs::create_dir_all(&self.folder).map_err(from_io)?;
        if !self.is_folder() {
            return Err(LogError::Failed(format!("`{}` is not a directory; move it away", self.folder.display()).into()));
        }
        let is_other = |name: &&str| fs::symlink_metadata(self.folder.join(name)).is_ok_and(|found| !found.is_file());
        if FILES.iter().any(is_other) {
            self.remove_files();
        }
        let open = || {
            let connection = Connection::open(self.folder.join(FILE))?;
            connection
                .execute_batch("PRAGMA busy_timeout = 10000; PRAGMA synchronous = NORMAL; PRAGMA cell_size_check = ON;")?;
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0))?;
            let version = connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))?;
            if version == 0 {
                connection.execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"))?;
            }
            Ok((connection, version))
        };
        let (connection, version) = open().map_err(from_sqlite)?;
        if version > VERSION {
            drop(connection);
            self.remove_files();
            return Ok(open().map_err(from_sqlite)?.0);
        }
        Ok(connection)
    }
}

/// Saves one snapshot, within the open transaction. Returns whether the snapshot was there that it goes on from.
fn save(
    connection: &Connection,
    society: &SocietyId,
    (seq, event, version): (Seq, u32, u32),
    after: Option<Seq>,
    body: &[u8],
    entries: &[StoredEntry],
) -> rusqlite::Result<bool> {
    let society = society.as_str();
    let sql = "SELECT seq FROM snapshots WHERE society = ?1";
    let old = connection.prepare_cached(sql)?.query_row([society], |row| row.get::<_, i64>(0)).optional()?;
    let old = old.map(|old| Seq(old as u64));
    if old.is_some_and(|old| old > seq) {
        return Ok(true);
    }
    match after {
        None => drop(connection.prepare_cached("DELETE FROM idle WHERE society = ?1")?.execute([society])?),
        Some(_) if after != old => return Ok(false),
        Some(_) => {}
    }
    let sql = "INSERT OR REPLACE INTO snapshots (society, seq, event, version, crc, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let values = params![society, seq.0 as i64, event, version, crc32fast::hash(body), body];
    connection.prepare_cached(sql)?.execute(values)?;
    let sql = format!("INSERT OR REPLACE INTO idle (society, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    let mut insert = connection.prepare_cached(&sql)?;
    for entry in entries {
        let (parent, message) = entry.message.as_ref().map(|(parent, message)| (parent.as_str(), message)).unzip();
        let person = entry.person.as_ref().map(|person| person.as_str());
        let (ListColumns { kind, pinned, active }, crc) = (ListColumns::of(entry.list), checksum(entry));
        insert.execute(params![society, &*entry.name, parent, message, person, pinned, active, kind, crc, entry.body])?;
    }
    Ok(true)
}

/// Rows as they are read.
#[derive(Default)]
struct Found {
    entries: Vec<StoredEntry>,
    /// Whether a row is not as it was written.
    is_damaged: bool,
}

impl Found {
    /// Reads the rows of a query. Returns how many there are.
    fn add(&mut self, connection: &Connection, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<usize> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let entry = read(row)?;
            self.is_damaged |= checksum(&entry) != row.get::<_, u32>(7)?;
            self.entries.push(entry);
            count += 1;
        }
        Ok(count)
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredEntry> {
    let (parent, message): (Option<String>, Option<u32>) = (row.get(1)?, row.get(2)?);
    let list = ListColumns { kind: row.get(6)?, pinned: row.get(4)?, active: row.get(5)? }.list();
    let (name, person) = (row.get::<_, String>(0)?.into(), row.get::<_, Option<String>>(3)?.map(Into::into));
    Ok(StoredEntry { name, message: parent.map(Into::into).zip(message), person, list, body: row.get(8)? })
}

fn lock(slot: &Mutex<Option<Connection>>) -> MutexGuard<'_, Option<Connection>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Entries are not as they were written, or are missing.
pub(crate) fn lost() -> LogError {
    LogError::Failed("parts of the snapshot are lost; the state is made anew from the log".into())
}

/// Whether a file has a name that only the bodies of an older version have.
fn is_old_body(name: &str) -> bool {
    let is_hex = |part: &str| part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(name.split('-').collect::<Vec<_>>()[..], [society, seq, crc] if is_hex(society) && is_number(seq) && is_hex(crc))
}
