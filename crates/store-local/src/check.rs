//! Checks whether the history is complete. It changes nothing.

use std::collections::HashMap;

use polis_domain::Seq;
use polis_ports::LogError;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::from_sqlite;
use crate::extent::{SocietyStart, societies};
use crate::keys::ThreadNames;
use crate::last_ack::EventRef;
use crate::row::{self, StoredEvent, damaged};
use crate::sums::Sums;

/// Checks that the last acknowledged event exists. Then all before it exist too, because a WAL only loses its end.
pub(crate) fn acknowledged(connection: &Connection, last: EventRef) -> Result<(), LogError> {
    let found: Option<u32> = connection
        .query_row("SELECT crc FROM events WHERE id = ?1", params![last.id], |row| row.get(0))
        .optional()
        .map_err(from_sqlite)?;
    if found == Some(last.crc) { Ok(()) } else { Err(lost(last)) }
}

/// The error when the last acknowledged event is missing.
pub(crate) fn lost(last: EventRef) -> LogError {
    let (society, seq) = row::parts(last.id);
    LogError::Damaged(format!("events that were acknowledged are missing, at least event {seq} of society number {society}"))
}

/// Checks everything: the structure of the file, the checksum of every event, that societies have no gaps, and that the
/// indexes are complete. Returns the checksums of the indexes.
pub(crate) fn everything(connection: &Connection, version: u32) -> Result<Sums, LogError> {
    structure(connection)?;
    let mut sums = events(connection, version)?;
    sums.add_thread_table(connection)?;
    if Sums::of_indexes(connection, None)? != sums {
        return Err(LogError::Damaged("the indexes do not list the events and threads that there are".to_owned()));
    }
    Ok(sums)
}

pub(crate) fn structure(connection: &Connection) -> Result<(), LogError> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(from_sqlite)?;
    if verdict == "ok" { Ok(()) } else { Err(LogError::Damaged(verdict)) }
}

/// Checks every event; returns the checksum over those that belong to a thread.
fn events(connection: &Connection, version: u32) -> Result<Sums, LogError> {
    let societies = societies(connection, version)?;
    let mut names = ThreadNames::default();
    let mut statement =
        connection.prepare("SELECT id, at, thread, version, crc, body FROM events ORDER BY id").map_err(from_sqlite)?;
    let mut rows = statement.query([]).map_err(from_sqlite)?;
    let (mut sums, mut last) = (Sums::default(), (0, Seq(0)));
    let mut ends = HashMap::new();
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        let (stored, key, thread) = StoredEvent::of(row)?;
        let SocietyStart { checksum_name: society, after, .. } =
            societies.get(&key).ok_or_else(|| LogError::Damaged(format!("the name of society number {key} is missing")))?;
        if key != last.0 {
            last = (key, *after);
        }
        if stored.seq != last.1.next() {
            return Err(damaged(society, last.1.next(), "it is missing"));
        }
        last.1 = stored.seq;
        ends.insert(key, stored.seq);
        if let Some(thread) = thread {
            sums.add_event(thread, row::id(key, stored.seq));
        }
        let thread = thread.map(|thread| names.get(connection, thread)).transpose()?;
        stored.verify(society, thread.as_ref())?;
    }
    if ends.len() != societies.len() {
        return Err(LogError::Damaged("a society has no events".to_owned()));
    }
    for (key, SocietyStart { checksum_name, after, parent }) in &societies {
        let is_whole = |parent: i64| parent < *key && ends.get(&parent).is_some_and(|end| end >= after);
        if !parent.map_or(*after == Seq(0), is_whole) {
            return Err(damaged(checksum_name, *after, "it belongs to a society that is not there"));
        }
    }
    Ok(sums)
}
