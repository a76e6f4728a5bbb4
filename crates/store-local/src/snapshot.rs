//! Snapshots. The body is a file of its own, so that writing a large one does not delay appends. Its size and checksum are a
//! row in the database, so that a body of another history is never used. A body that does not match its row is ignored.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use polis_domain::{Seq, SocietyId};
use polis_ports::{LogError, Snapshot};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::from_sqlite;
use crate::plain_file;

pub(crate) const FOLDER: &str = "snapshots";

/// The row of a snapshot: everything but its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SnapshotRow {
    seq: Seq,
    version: u32,
    bytes: i64,
    crc: u32,
}

impl SnapshotRow {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        Self {
            seq: snapshot.seq,
            version: snapshot.version,
            bytes: snapshot.body.len() as i64,
            crc: crc32fast::hash(&snapshot.body),
        }
    }

    /// The society's snapshot row, if it has one.
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

    /// Replaces the society's row, within the open transaction.
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

    /// The path of the body. It contains position and checksum, so that a new body never overwrites the old one.
    fn path(self, dir: &Path, society: &SocietyId) -> PathBuf {
        dir.join(FOLDER).join(self.name(society))
    }

    fn name(self, society: &SocietyId) -> String {
        format!("{:08x}-{}-{:08x}", crc32fast::hash(society.as_str().as_bytes()), self.seq, self.crc)
    }

    /// Writes the body without syncing it: it is a cache, and a body that a power cut left incomplete fails its checksum.
    pub(crate) fn write_body(self, dir: &Path, society: &SocietyId, body: &[u8]) -> io::Result<()> {
        fs::create_dir_all(dir.join(FOLDER))?;
        let path = self.path(dir, society);
        if plain_file::check(&path).is_err() {
            fs::remove_file(&path)?;
        }
        fs::write(path, body)
    }

    /// Reads the body; none if it is missing or does not match.
    pub(crate) fn read_body(self, dir: &Path, society: &SocietyId) -> Option<Snapshot> {
        let mut body = Vec::new();
        plain_file::open(&self.path(dir, society)).ok()?.read_to_end(&mut body).ok()?;
        let snapshot = Snapshot { seq: self.seq, version: self.version, body };
        (Self::of(&snapshot) == self).then_some(snapshot)
    }

    pub(crate) fn remove_body(self, dir: &Path, society: &SocietyId) {
        // A leftover is removed at the next opening.
        let _ = fs::remove_file(self.path(dir, society));
    }
}

/// Whether a file has a name that only bodies have.
fn is_body(name: &str) -> bool {
    let is_hex = |part: &str| part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(name.split('-').collect::<Vec<_>>()[..], [society, seq, crc] if is_hex(society) && is_number(seq) && is_hex(crc))
}

/// Removes bodies without a row. The directory may be a stranger's: a link in place of the folder would lead to files
/// that are none of ours, so it is not followed, and no other file is touched.
pub(crate) fn sweep(dir: &Path, connection: &Connection) -> Result<(), LogError> {
    let folder = dir.join(FOLDER);
    if !fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    let Ok(bodies) = fs::read_dir(folder) else { return Ok(()) };
    let mut statement = connection.prepare("SELECT society, seq, crc FROM snapshots").map_err(from_sqlite)?;
    let names = statement.query_map([], |row| {
        let society = SocietyId::from(row.get::<_, String>(0)?);
        let row = SnapshotRow { seq: Seq(row.get::<_, i64>(1)? as u64), version: 0, bytes: 0, crc: row.get(2)? };
        Ok(row.name(&society))
    });
    let kept: HashSet<String> = names.and_then(Iterator::collect).map_err(from_sqlite)?;
    for body in bodies.flatten() {
        if body.file_name().to_str().is_some_and(|name| is_body(name) && !kept.contains(name)) {
            let _ = fs::remove_file(body.path());
        }
    }
    Ok(())
}
