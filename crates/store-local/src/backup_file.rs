//! The file of a backup: its tables and versions, who writes to it, and the checksum over what has none of its own.
//!
//! Events are covered by the hash chains in `heads`, artifacts by their names. The rest, and these chains, are covered by one
//! SHA-256 in `checksum`, which the last commit of a run writes.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use polis_domain::{ArtifactId, EVENT_VERSION};
use polis_ports::{Hasher, LogError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use crate::backup::BackupError;
use crate::error::{from_io, from_sqlite};
use crate::local_log::make_private;
use crate::{plain_file, schema};

/// Marks the file as a backup (`PRAGMA application_id`).
const APPLICATION: i32 = 0x504f_4c42;

/// The version of the tables of a backup; the versions of a data directory's tables and events follow it in `user_version`.
const BACKUP_VERSION: u32 = 3;

pub(crate) const VERSION: u32 = BACKUP_VERSION << 24 | schema::TABLES_VERSION << 16 | EVENT_VERSION;

pub(crate) const TOKENS: &str = "tokens.json";

const TABLES: &str = "
    CREATE TABLE societies (key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, seal TEXT, parent INTEGER, at INTEGER);
    CREATE TABLE threads (key INTEGER PRIMARY KEY, society INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (society, name));
    CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        thread INTEGER,
        version INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        body BLOB NOT NULL
    );
    CREATE TABLE heads (society INTEGER PRIMARY KEY, seq INTEGER NOT NULL, chain BLOB NOT NULL);
    CREATE TABLE texts (id TEXT PRIMARY KEY, text TEXT NOT NULL, model TEXT, vector BLOB) WITHOUT ROWID;
    CREATE TABLE artifacts (id TEXT NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL, UNIQUE (id, part));
    CREATE TABLE files (name TEXT PRIMARY KEY, bytes BLOB NOT NULL);
    CREATE TABLE point (only INTEGER PRIMARY KEY CHECK (only = 1), at INTEGER NOT NULL, threads INTEGER NOT NULL);
";

/// What a backup of version 1 lacks: the artifacts that its events refer to, and the checksum.
const SINCE_1: &str = "
    CREATE TABLE IF NOT EXISTS named (id TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS checksum (only INTEGER PRIMARY KEY CHECK (only = 1), sha256 BLOB NOT NULL);
";

/// What the checksum covers.
const COVERED: [&str; 6] = [
    "SELECT at, threads FROM point",
    "SELECT key, name, seal, parent, at FROM societies ORDER BY key",
    "SELECT society, seq, chain FROM heads ORDER BY society",
    "SELECT id, text, model, vector FROM texts ORDER BY id",
    "SELECT name, bytes FROM files ORDER BY name",
    "SELECT id FROM named ORDER BY id",
];

/// A backup that is being written by this process alone.
pub(crate) struct Writing {
    pub(crate) connection: Connection,
    /// Whether a run was finished before.
    pub(crate) is_finished: bool,
    /// Whether the hash chains and the artifacts that events refer to have to be made anew, because an older version made it.
    pub(crate) is_older: bool,
}

/// Opens a backup to add to it; a new one is created, readable by its owner only. Refuses a damaged one, because a new checksum
/// would hide the damage.
pub(crate) fn open_to_write(file: &Path) -> Result<Writing, BackupError> {
    roll_back(file)?;
    let is_new = fs::metadata(file).map_or(true, |found| found.len() == 0);
    if !is_new {
        refuse_foreign(file)?;
    }
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _made = options.open(file).map_err(from_io)?;
    // One that was there may have been readable by others.
    #[cfg(unix)]
    _made.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600)).map_err(from_io)?;
    let connection = Connection::open(file).map_err(from_sqlite)?;
    let settings = "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA secure_delete = ON; PRAGMA cache_size = -16384;";
    connection.execute_batch(settings).map_err(from_sqlite)?;
    if is_new {
        let create = format!(
            "BEGIN IMMEDIATE; {TABLES} {SINCE_1} PRAGMA user_version = {VERSION}; PRAGMA application_id = {APPLICATION}; COMMIT;"
        );
        connection.execute_batch(&create).map_err(from_sqlite)?;
        return Ok(Writing { connection, is_finished: false, is_older: false });
    }
    let is_finished = made_at(&connection)?.is_some();
    if is_finished {
        verify(&connection)?;
    }
    let version = version(&connection)?;
    if version == 1 {
        connection.execute_batch(&format!("BEGIN IMMEDIATE; {SINCE_1} COMMIT;")).map_err(from_sqlite)?;
    }
    Ok(Writing { connection, is_finished, is_older: version < BACKUP_VERSION })
}

/// Opens a finished backup to read it. It cannot change as long as the connection is open.
pub(crate) fn open_to_read(file: &Path) -> Result<Connection, BackupError> {
    let open = || {
        refuse_special(file)?;
        roll_back(file)?;
        refuse_foreign(file)?;
        let connection = Connection::open(file).map_err(from_sqlite)?;
        connection.execute_batch("PRAGMA query_only = ON; BEGIN;").map_err(from_sqlite)?;
        if made_at(&connection)?.is_none() {
            return Err(BackupError::Unfinished(file.display().to_string()));
        }
        verify(&connection)?;
        Ok(connection)
    };
    open().map_err(|error| in_use(error, file))
}

/// When a backup was finished last, in milliseconds since 1970; none if it never was.
pub(crate) fn made_at(connection: &Connection) -> Result<Option<u64>, LogError> {
    let at = connection.query_row("SELECT at FROM point", [], |row| row.get::<_, i64>(0)).optional();
    Ok(at.map_err(from_sqlite)?.map(|at| at as u64))
}

/// The artifacts that events of a backup refer to and that it does not have.
pub(crate) fn missing_artifacts(connection: &Connection) -> Result<Vec<ArtifactId>, BackupError> {
    artifact_ids(connection, "SELECT id FROM named WHERE id NOT IN (SELECT id FROM artifacts) ORDER BY id")
}

/// The artifacts of a backup.
pub(crate) fn artifacts(connection: &Connection) -> Result<Vec<ArtifactId>, BackupError> {
    artifact_ids(connection, "SELECT DISTINCT id FROM artifacts")
}

fn artifact_ids(connection: &Connection, sql: &str) -> Result<Vec<ArtifactId>, BackupError> {
    let list = || {
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        rows.collect::<Result<Vec<_>, _>>()
    };
    let ids = list().map_err(from_sqlite)?;
    let parse = |id: String| id.parse().map_err(|_| BackupError::Damaged(format!("`{id}` is not the id of an artifact")));
    ids.into_iter().map(parse).collect()
}

/// Writes the checksum over everything that it covers.
pub(crate) fn write_checksum(connection: &Connection) -> Result<(), LogError> {
    let checksum = checksum(connection)?;
    let add = "INSERT OR REPLACE INTO checksum (only, sha256) VALUES (1, ?1)";
    connection.execute(add, [&checksum[..]]).map(|_| ()).map_err(from_sqlite)
}

fn verify(connection: &Connection) -> Result<(), BackupError> {
    let has_table = connection.table_exists(None, "checksum").map_err(from_sqlite)?;
    if !has_table && version(connection)? == 1 {
        return Ok(());
    }
    let read = "SELECT sha256 FROM checksum";
    let written = connection.query_row(read, [], |row| row.get::<_, [u8; 32]>(0)).optional().map_err(from_sqlite)?;
    let is_sound = match written {
        Some(written) => written == checksum(connection)?,
        // A run that was to bring it to version 2 was killed.
        None => version(connection)? == 1,
    };
    if !is_sound {
        let what = "a text of a memory, a token or the list of societies is not what was written";
        return Err(BackupError::Damaged(what.to_owned()));
    }
    Ok(())
}

fn checksum(connection: &Connection) -> Result<[u8; 32], LogError> {
    let mut hasher = Hasher::default();
    for (number, sql) in COVERED.iter().enumerate() {
        hasher.update(&[number as u8]);
        let mut statement = connection.prepare(sql).map_err(from_sqlite)?;
        let columns = statement.column_count();
        let mut rows = statement.query([]).map_err(from_sqlite)?;
        while let Some(row) = rows.next().map_err(from_sqlite)? {
            for column in 0..columns {
                // The length before each value keeps two rows from looking like one.
                let mut feed = |kind: u8, bytes: &[u8]| {
                    hasher.update(&[kind]);
                    hasher.update(&(bytes.len() as u64).to_le_bytes());
                    hasher.update(bytes);
                };
                match row.get_ref(column).map_err(from_sqlite)? {
                    ValueRef::Null => feed(0, b""),
                    ValueRef::Integer(number) => feed(1, &number.to_le_bytes()),
                    ValueRef::Real(number) => feed(2, &number.to_le_bytes()),
                    ValueRef::Text(text) => feed(3, text),
                    ValueRef::Blob(bytes) => feed(4, bytes),
                }
            }
        }
    }
    Ok(hasher.id().digest())
}

/// Whether the hash chains of an opened backup are those of versions 1 and 2, over the bodies of events.
pub(crate) fn has_chains_of_bodies(connection: &Connection) -> Result<bool, LogError> {
    Ok(version(connection)? < 3)
}

/// The version of the tables of an opened backup.
fn version(connection: &Connection) -> Result<u32, LogError> {
    let version = connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0));
    Ok(version.map_err(from_sqlite)? >> 24)
}

/// Names the file where another process has it: a run that commits, or a reader that a commit has to wait for.
pub(crate) fn in_use(error: BackupError, file: &Path) -> BackupError {
    match &error {
        BackupError::Log(LogError::Failed(source)) => match source.downcast_ref::<rusqlite::Error>() {
            Some(sqlite) if sqlite.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                BackupError::Running(file.display().to_string())
            }
            _ => error,
        },
        _ => error,
    }
}

/// Undoes what a killed run has not committed. SQLite does it at the first read; here it comes before the file is looked at.
fn roll_back(file: &Path) -> Result<(), LogError> {
    if !journal(file).exists() {
        return Ok(());
    }
    let read = |connection: Connection| connection.query_row("PRAGMA schema_version", [], |row| row.get::<_, i64>(0));
    Connection::open(file).and_then(read).map(|_| ()).map_err(from_sqlite)
}

fn journal(file: &Path) -> PathBuf {
    beside(file, "-journal")
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Refuses what is no file, also in the place of SQLite's journal.
fn refuse_special(file: &Path) -> Result<(), BackupError> {
    plain_file::check(file).and_then(|()| plain_file::check(&journal(file))).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => BackupError::NotABackup(file.display().to_string()),
        _ => from_io(error).into(),
    })
}

/// Refuses a file that is no backup, or one of a newer version, by its first bytes.
fn refuse_foreign(file: &Path) -> Result<(), BackupError> {
    let not_ours = || BackupError::NotABackup(file.display().to_string());
    let mut header = [0; 100];
    match File::open(file).and_then(|mut file| file.read_exact(&mut header)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(not_ours()),
        Err(error) => return Err(from_io(error).into()),
    }
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if !header.starts_with(b"SQLite format 3\0") || number(68) != APPLICATION as u32 {
        return Err(not_ours());
    }
    let version = number(60);
    let (backup, tables, events) = (version >> 24, version >> 16 & 0xff, version & 0xffff);
    if backup > BACKUP_VERSION || tables > schema::TABLES_VERSION || events > EVENT_VERSION {
        let message = format!("`{}` was made by a newer polis (events {events}); use that polis", file.display());
        return Err(LogError::TooNew(message).into());
    }
    Ok(())
}

/// Removes a backup that never was finished.
pub(crate) fn remove_unfinished(file: &Path) {
    for path in [file.to_owned(), journal(file)] {
        // What cannot be removed is still refused as unfinished.
        let _ = fs::remove_file(path);
    }
}

/// Keeps other runs from writing to a backup: the lock of a file beside it. The backup itself is not locked, because on a network
/// file system that lock would keep SQLite out as well.
pub(crate) struct WriteLock {
    path: PathBuf,
    _file: File,
}

impl WriteLock {
    pub(crate) fn take(file: &Path) -> Result<Self, BackupError> {
        if let Some(parent) = file.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists()) {
            make_private(parent).map_err(from_io)?;
        }
        refuse_special(file)?;
        let path = beside(file, ".lock");
        plain_file::check(&path).map_err(from_io)?;
        let locked = File::options().create(true).truncate(false).write(true).open(&path).map_err(from_io)?;
        let is_same = match locked.try_lock() {
            Ok(()) => is_at(&locked, &path),
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(error)) => return Err(from_io(error).into()),
        };
        // A file that its owner has removed meanwhile locks nothing.
        if !is_same {
            return Err(BackupError::Running(file.display().to_string()));
        }
        Ok(Self { path, _file: locked })
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        // It is removed while it is locked, so the next run either finds it locked or makes a new one.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same = |a: fs::Metadata, b: fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    matches!((file.metadata(), fs::metadata(path)), (Ok(file), Ok(path)) if same(file.clone(), path.clone()))
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}
