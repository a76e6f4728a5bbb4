//! Checks whether the history is complete. It changes nothing.

use std::collections::{HashMap, HashSet};

use polis_domain::Seq;
use polis_ports::LogError;
use rusqlite::Connection;

use crate::error::from_sqlite;
use crate::extent::{SocietyStart, societies};
use crate::keys::ThreadNames;
use crate::last_ack::EventRef;
use crate::row::{self, StoredEvent, damaged};
use crate::segment::{self, Segment};
use crate::sums::Sums;

/// Checks that the last acknowledged event exists. Then all before it exist too, because a WAL only loses its end.
pub(crate) fn acknowledged(connection: &Connection, last: EventRef) -> Result<(), LogError> {
    let found = segment::find(connection, last.id)?;
    if found.is_some_and(|(_, crc)| crc == last.crc) { Ok(()) } else { Err(lost(last)) }
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
    let mut walk = Walk::default();
    let mut after = i64::MIN;
    while let Some(segment) = Segment::after(connection, after)? {
        walk.check_segment(connection, &societies, &segment)?;
        after = segment.first;
    }
    let mut statement =
        connection.prepare("SELECT id, at, thread, version, crc, body FROM events ORDER BY id").map_err(from_sqlite)?;
    let mut rows = statement.query([]).map_err(from_sqlite)?;
    let mut with_rows = HashSet::new();
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        let (stored, key, thread) = row::stored(row)?;
        let id = row::id(key, stored.seq);
        walk.check_row(connection, &societies, id, &stored, thread)?;
        with_rows.insert(key);
    }
    if with_rows.len() != societies.len() {
        return Err(LogError::Damaged("a society has no events, or its last ones are missing".to_owned()));
    }
    for (key, SocietyStart { checksum_name, after, parent }) in &societies {
        let is_whole = |parent: i64| parent < *key && walk.ends.get(&parent).is_some_and(|end| end >= after);
        if !parent.map_or(*after == Seq(0), is_whole) {
            return Err(damaged(checksum_name, *after, "it belongs to a society that is not there"));
        }
    }
    Ok(walk.sums)
}

/// A walk over all events, segments first: what was seen of each society so far.
#[derive(Default)]
pub(crate) struct Walk {
    pub(crate) ends: HashMap<i64, Seq>,
    names: ThreadNames,
    pub(crate) sums: Sums,
}

impl Walk {
    /// Checks the events of a segment.
    pub(crate) fn check_segment(
        &mut self,
        connection: &Connection,
        societies: &HashMap<i64, SocietyStart>,
        segment: &Segment,
    ) -> Result<(), LogError> {
        let mut threads = HashSet::new();
        for event in segment.events() {
            let (id, stored, thread) = event?;
            self.check(connection, societies, id, &stored, thread)?;
            if let Some(thread) = thread.filter(|thread| threads.insert(*thread)) {
                self.sums.add_sealed(thread, id, segment.first);
            }
        }
        Ok(())
    }

    /// Checks an event of the table.
    pub(crate) fn check_row(
        &mut self,
        connection: &Connection,
        societies: &HashMap<i64, SocietyStart>,
        id: i64,
        stored: &StoredEvent<'_>,
        thread: Option<i64>,
    ) -> Result<(), LogError> {
        if let Some(thread) = thread {
            self.sums.add_event(thread, id);
        }
        self.check(connection, societies, id, stored, thread)
    }

    /// Checks an event, which must follow the last one of its society.
    fn check(
        &mut self,
        connection: &Connection,
        societies: &HashMap<i64, SocietyStart>,
        id: i64,
        stored: &StoredEvent<'_>,
        thread: Option<i64>,
    ) -> Result<(), LogError> {
        let (key, seq) = row::parts(id);
        let SocietyStart { checksum_name: society, after, .. } =
            societies.get(&key).ok_or_else(|| LogError::Damaged(format!("the name of society number {key} is missing")))?;
        let last = self.ends.insert(key, seq).unwrap_or(*after);
        if seq != last.next() {
            return Err(damaged(society, last.next(), "it is missing"));
        }
        let thread = thread.map(|thread| self.names.get(connection, thread)).transpose()?;
        stored.verify(society, thread.as_ref())
    }
}
