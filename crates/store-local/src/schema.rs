//! The tables, their version, and how a connection to them is opened.
//!
//! `user_version` holds two numbers: the version of the tables and that of the newest event that may stand in them.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use polis_domain::EVENT_VERSION;
use polis_ports::LogError;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::error::{from_io, from_sqlite};

pub(crate) const FILE: &str = "polis.db";
pub(crate) const WAL: &str = "polis.db-wal";
pub(crate) const SHM: &str = "polis.db-shm";
const UNFINISHED: &str = "polis.db.new";

/// Bytes of a page of a new database. A commit writes each page that it changes whole, and most commits add less than a kilobyte to a
/// few of them: with pages of 4 KiB a lone run writes twice as much.
const PAGE_BYTES: u32 = 1024;

/// Version 2 has forks, version 3 packed bodies and segments, version 4 redactions. A new dictionary in body.rs is a new version as well.
pub(crate) const TABLES_VERSION: u32 = 4;
const VERSION: u32 = TABLES_VERSION << 16 | EVENT_VERSION;

const TABLES: &str = "
    CREATE TABLE societies (
        key INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        seal TEXT, -- the name in the checksums of its events, where it is not the same any more
        parent INTEGER, -- the society whose events it has
        at INTEGER -- up to this place
    );
    CREATE TABLE threads (key INTEGER PRIMARY KEY, society INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (society, name));
    CREATE TABLE events (
        id INTEGER PRIMARY KEY, -- the society's key and the event's place, see row.rs
        at INTEGER NOT NULL,
        thread INTEGER,
        version INTEGER NOT NULL, -- and whether an append ended here, see row.rs
        crc INTEGER NOT NULL,
        body BLOB NOT NULL -- see body.rs
    );
    CREATE INDEX events_by_thread ON events (thread) WHERE thread IS NOT NULL;
";

/// What tables of version 2 lack: the oldest events, packed together, see segment.rs.
const SINCE_2: &str = "
    CREATE TABLE segments (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE TABLE segment_threads (
        thread INTEGER NOT NULL,
        first INTEGER NOT NULL, -- its first event in the segment
        segment INTEGER NOT NULL,
        PRIMARY KEY (thread, first)
    ) WITHOUT ROWID;
";

/// What tables of version 3 lack: which events were redacted, see redaction.rs.
const SINCE_3: &str = "CREATE TABLE redacted (id INTEGER PRIMARY KEY);";

/// Marks a database in which all that was deleted has been overwritten (`PRAGMA application_id`).
const OVERWRITTEN: i32 = 0x504f_4c44;

/// What tables of version 1 lack.
const SINCE_1: &str = "
    ALTER TABLE societies ADD COLUMN seal TEXT;
    ALTER TABLE societies ADD COLUMN parent INTEGER;
    ALTER TABLE societies ADD COLUMN at INTEGER;
";

/// Opens the database to write. Its files stay as they are until something is written.
pub(crate) fn connect_to_write(dir: &Path) -> Result<Connection, LogError> {
    let connection = connect(dir)?;
    connection
        .execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON; PRAGMA cache_size = -16384; \
             PRAGMA secure_delete = ON;",
        )
        .map_err(from_sqlite)?;
    Ok(connection)
}

/// Opens the database to read.
pub(crate) fn connect_to_read(dir: &Path) -> Result<Connection, LogError> {
    let connection = connect(dir)?;
    connection.execute_batch("PRAGMA query_only = ON;").map_err(from_sqlite)?;
    // Whoever has read once stays connected to the WAL.
    version(&connection)?;
    Ok(connection)
}

fn connect(dir: &Path) -> Result<Connection, LogError> {
    let connection = Connection::open(dir.join(FILE)).map_err(from_sqlite)?;
    // When the WAL goes into the database is decided by the writer alone, and never for a database that may be damaged.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(from_sqlite)?;
    // Statements stay as they were prepared; else each other range that is bound has them prepared anew.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(from_sqlite)?;
    connection.execute_batch("PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 16777216;").map_err(from_sqlite)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Refuses a database of a newer version by its first bytes, before SQLite touches any file.
pub(crate) fn refuse_newer_file(dir: &Path) -> Result<(), LogError> {
    user_version_of(&dir.join(FILE))?.map_or(Ok(()), refuse_newer)
}

/// The version in the first bytes of a database; none if there is no file or no database, which opening it will report.
pub(crate) fn user_version_of(file: &Path) -> Result<Option<u32>, LogError> {
    let mut header = [0; 100];
    match File::open(file).and_then(|mut file| file.read_exact(&mut header)) {
        Ok(()) if header.starts_with(b"SQLite format 3\0") => {
            let [.., a, b, c, d] = *header.first_chunk::<64>().expect("64 is less than 100");
            Ok(Some(u32::from_be_bytes([a, b, c, d])))
        }
        Ok(()) => Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) => Ok(None),
        Err(error) => Err(from_io(error)),
    }
}

/// Makes a database with empty tables. It gets its name when it is whole and on the disk.
pub(crate) fn create(dir: &Path) -> Result<(), LogError> {
    let unfinished = dir.join(UNFINISHED);
    for left in [UNFINISHED, "polis.db.new-journal", "polis.db.new-wal", "polis.db.new-shm"] {
        match fs::remove_file(dir.join(left)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(from_io(error)),
            _ => {}
        }
    }
    let build = || {
        let connection = Connection::open(&unfinished)?;
        connection.execute_batch(&format!(
            "PRAGMA page_size = {PAGE_BYTES}; PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;"
        ))?;
        // Pages that a sealed or erased event leaves can be given back while the database is in use.
        connection.execute_batch(&format!("PRAGMA auto_vacuum = INCREMENTAL; {TABLES} {SINCE_2} {SINCE_3}"))?;
        connection.pragma_update(None, "application_id", OVERWRITTEN)?;
        connection.pragma_update(None, "user_version", VERSION)?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0))
    };
    let mode = build().map_err(from_sqlite)?;
    if mode != "wal" {
        return Err(LogError::Failed(format!("SQLite cannot use a WAL in this directory (journal mode `{mode}`)").into()));
    }
    let file = File::options().write(true).open(&unfinished).map_err(from_io)?;
    file.sync_all().map_err(from_io)?;
    // Whoever calls this syncs the directory before anything is acknowledged.
    fs::rename(unfinished, dir.join(FILE)).map_err(from_io)
}

/// The version of an opened database; 0 when it was not made by us. Refuses one that is too new.
pub(crate) fn version(connection: &Connection) -> Result<u32, LogError> {
    let version = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(from_sqlite)?;
    refuse_newer(version)?;
    Ok(version)
}

/// Writes down which versions hold from now on.
pub(crate) fn update(connection: &Connection, version: u32) -> Result<(), LogError> {
    if version == VERSION {
        return Ok(());
    }
    let forks = if has_forks(version) { "" } else { SINCE_1 };
    let segments = if version >> 16 >= 3 { "" } else { SINCE_2 };
    let redactions = if version >> 16 >= 4 { "" } else { SINCE_3 };
    connection
        .execute_batch(&format!("BEGIN IMMEDIATE; {forks} {segments} {redactions} PRAGMA user_version = {VERSION}; COMMIT;"))
        .map_err(from_sqlite)
}

/// Rewrites a database of an older version, which did not overwrite what it deleted, so that nothing of that is left. It takes as
/// long as copying the file, and is needed once.
pub(crate) fn overwrite_deleted(connection: &Connection) -> Result<(), LogError> {
    let mark: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(from_sqlite)?;
    if mark == OVERWRITTEN {
        return Ok(());
    }
    let rewrite = format!("PRAGMA auto_vacuum = INCREMENTAL; VACUUM; PRAGMA application_id = {OVERWRITTEN};");
    connection.execute_batch(&rewrite).map_err(from_sqlite)
}

/// How many bytes of the file are free and could be given back; none of a database that was made before this was possible.
pub(crate) fn free_bytes(connection: &Connection) -> Result<u64, LogError> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(from_sqlite);
    let incremental = 2;
    if number("auto_vacuum")? != incremental {
        return Ok(0);
    }
    Ok((number("freelist_count")? * number("page_size")?) as u64)
}

/// Whether tables of this version know of forks.
pub(crate) fn has_forks(version: u32) -> bool {
    version >> 16 >= 2
}

/// The refusal of a database that is none of ours.
pub(crate) fn foreign() -> LogError {
    LogError::Failed(format!("{FILE} was not created by polis; choose another data directory").into())
}

fn refuse_newer(version: u32) -> Result<(), LogError> {
    let (tables, events) = (version >> 16, version & 0xffff);
    if tables > TABLES_VERSION || events > EVENT_VERSION {
        return Err(LogError::TooNew(format!(
            "the data directory was written by a newer polis (tables {tables}, events {events}; this one knows tables \
             {TABLES_VERSION}, events {EVENT_VERSION}). Use that polis, or restore a backup made with this one"
        )));
    }
    Ok(())
}
