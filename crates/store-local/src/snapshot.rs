//! Snapshots: the body in a file of its own, so that a large one does not hold up the appends; its size and checksum in the
//! database, so that it can never be taken for one of another history. A body that does not match is no snapshot.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use polis_domain::{Seq, SocietyId};
use polis_ports::{LogError, Snapshot};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::from_sqlite;

pub(crate) const FOLDER: &str = "snapshots";

/// A snapshot without its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    seq: Seq,
    version: u32,
    bytes: i64,
    crc: u32,
}

impl Ticket {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        Self {
            seq: snapshot.seq,
            version: snapshot.version,
            bytes: snapshot.body.len() as i64,
            crc: crc32fast::hash(&snapshot.body),
        }
    }

    /// The society's ticket, if it has one.
    pub(crate) fn find(connection: &Connection, society: &SocietyId) -> Result<Option<Self>, LogError> {
        let find = || {
            connection
                .prepare_cached("SELECT seq, version, bytes, crc FROM snapshots WHERE society = ?1")?
                .query_row(params![society.as_str()], |row| {
                    let seq = Seq(row.get::<_, i64>(0)? as u64);
                    Ok(Self { seq, version: row.get(1)?, bytes: row.get(2)?, crc: row.get(3)? })
                })
                .optional()
        };
        find().map_err(from_sqlite)
    }

    /// Puts this ticket in place of an older one, within the transaction that is open.
    pub(crate) fn save(self, connection: &Connection, society: &SocietyId) -> Result<(), LogError> {
        let save = || {
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO snapshots (society, seq, version, bytes, crc) VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![society.as_str(), self.seq.0 as i64, self.version, self.bytes, self.crc])
        };
        save().map(|_| ()).map_err(from_sqlite)
    }

    pub(crate) fn is_older_than(self, other: Self) -> bool {
        self.seq < other.seq
    }

    /// The body's name tells one snapshot of a society from the next, so that a new one never overwrites the old.
    fn path(self, dir: &Path, society: &SocietyId) -> PathBuf {
        dir.join(FOLDER).join(self.name(society))
    }

    fn name(self, society: &SocietyId) -> String {
        format!("{:08x}-{}-{:08x}", crc32fast::hash(society.as_str().as_bytes()), self.seq, self.crc)
    }

    /// Writes the body. It is a cache, so it is not synced; a body that a power cut left half is known by its checksum.
    pub(crate) fn write_body(self, dir: &Path, society: &SocietyId, body: &[u8]) -> io::Result<()> {
        fs::create_dir_all(dir.join(FOLDER))?;
        fs::write(self.path(dir, society), body)
    }

    /// Gives the snapshot if its body is there and whole.
    pub(crate) fn read_body(self, dir: &Path, society: &SocietyId) -> Option<Snapshot> {
        let body = fs::read(self.path(dir, society)).ok()?;
        let snapshot = Snapshot { seq: self.seq, version: self.version, body };
        (Self::of(&snapshot) == self).then_some(snapshot)
    }

    pub(crate) fn remove_body(self, dir: &Path, society: &SocietyId) {
        // Whatever is left behind is removed when the directory is opened again.
        let _ = fs::remove_file(self.path(dir, society));
    }
}

/// Removes bodies that belong to no ticket.
pub(crate) fn sweep(dir: &Path, connection: &Connection) -> Result<(), LogError> {
    let Ok(bodies) = fs::read_dir(dir.join(FOLDER)) else { return Ok(()) };
    let mut statement = connection.prepare("SELECT society, seq, crc FROM snapshots").map_err(from_sqlite)?;
    let names = statement.query_map([], |row| {
        let society = SocietyId::from(row.get::<_, String>(0)?);
        let ticket = Ticket { seq: Seq(row.get::<_, i64>(1)? as u64), version: 0, bytes: 0, crc: row.get(2)? };
        Ok(ticket.name(&society))
    });
    let kept: HashSet<String> = names.and_then(Iterator::collect).map_err(from_sqlite)?;
    for body in bodies.flatten() {
        if !body.file_name().to_str().is_some_and(|name| kept.contains(name)) {
            let _ = fs::remove_file(body.path());
        }
    }
    Ok(())
}
