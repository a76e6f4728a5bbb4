//! Redaction: what an erasure leaves takes the place of events, wherever they are stored.
//!
//! A redacted event keeps its position, thread, time and whether an append ended with it; before its body it has the digest of the
//! original, so that the hash chain stays what it was. The table `redacted` lists such events, so that a backup finds what it has
//! to redact too. The old bodies are overwritten with zeros (`secure_delete`), in pages that stay as in those that become free.

use polis_domain::{Recorded, Seq, SocietyId, ThreadId};
use polis_ports::LogError;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::from_sqlite;
use crate::keys::{ThreadNames, last_seq};
use crate::lineage::{Lineage, Stretch};
use crate::row::{self, damaged};
use crate::segment::{self, Segment};

/// What takes the place of an event's body.
pub(crate) struct Redaction {
    seq: Seq,
    body: Vec<u8>,
}

/// Serialises what an erasure leaves of events, in the order of the log.
pub(crate) fn encode(events: &[Recorded]) -> Result<Vec<Redaction>, LogError> {
    let body = |recorded: &Recorded| {
        let body = serde_json::to_vec(&recorded.event).map_err(|error| LogError::Failed(error.into()))?;
        Ok(Redaction { seq: recorded.seq, body })
    };
    let mut redactions = events.iter().map(body).collect::<Result<Vec<_>, LogError>>()?;
    redactions.sort_by_key(|redaction| redaction.seq);
    Ok(redactions)
}

/// Redacts events of a society, within the open transaction. The outer error is one of the database.
pub(crate) fn redact(
    connection: &Connection,
    society: &SocietyId,
    redactions: &[Redaction],
) -> Result<Result<(), LogError>, LogError> {
    let Some(lineage) = Lineage::find(connection, society)? else {
        return Ok(Err(LogError::Failed(format!("there is no society `{society}`").into())));
    };
    let head = last_seq(connection, lineage.own())?;
    // The `witness` file has its checksum.
    if redactions.last().is_some_and(|last| last.seq == head) {
        return Ok(Err(LogError::Failed("the last event of a society is not redacted".into())));
    }
    let mut names = ThreadNames::default();
    let mut rest = redactions;
    while let Some((next, behind)) = rest.split_first() {
        let found = lineage.stretches().iter().find(|stretch| stretch.after < next.seq && next.seq <= stretch.through);
        let Some(stretch) = found else { return Ok(Err(damaged(society, next.seq, "it is missing"))) };
        rest = match redact_row(connection, stretch, next, &mut names)? {
            true => behind,
            false => redact_segment(connection, stretch, rest, &mut names)?,
        };
    }
    Ok(Ok(()))
}

/// Redacts an event in the table; false if it is not there.
fn redact_row(
    connection: &Connection,
    stretch: &Stretch,
    redaction: &Redaction,
    names: &mut ThreadNames,
) -> Result<bool, LogError> {
    let id = row::id(stretch.key, redaction.seq);
    let redacted = {
        let sql = "SELECT id, at, thread, version, crc, body FROM events WHERE id = ?1";
        let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
        let mut rows = statement.query([id]).map_err(from_sqlite)?;
        let Some(row) = rows.next().map_err(from_sqlite)? else { return Ok(false) };
        let (event, _, thread) = row::stored(row)?;
        let thread = thread_name(connection, names, thread)?;
        event.verify(&stretch.checksum_name, thread.as_ref())?;
        event.redacted(&redaction.body, &stretch.checksum_name, thread.as_ref())
    };
    let update = || {
        let sql = "UPDATE events SET version = ?2, crc = ?3, body = ?4 WHERE id = ?1";
        connection.prepare_cached(sql)?.execute(params![id, redacted.version, redacted.crc, redacted.packed()])
    };
    update().map_err(from_sqlite)?;
    note(connection, id)?;
    Ok(true)
}

/// Redacts all events of the segment that has the first one. Returns the redactions that are left.
fn redact_segment<'a>(
    connection: &Connection,
    stretch: &Stretch,
    redactions: &'a [Redaction],
    names: &mut ThreadNames,
) -> Result<&'a [Redaction], LogError> {
    let missing = |seq| damaged(&stretch.checksum_name, seq, "it is missing");
    let first = redactions[0].seq;
    let id = row::id(stretch.key, first);
    let segment = if segment::exist(connection)? { Segment::at_or_before(connection, id)? } else { None };
    let segment = segment.filter(|segment| segment.last >= id).ok_or_else(|| missing(first))?;
    let mut rest = redactions;
    let mut events = Vec::new();
    for event in segment.events() {
        let (id, event, thread) = event?;
        match rest.split_first() {
            Some((next, behind)) if next.seq <= stretch.through && row::id(stretch.key, next.seq) == id => {
                let name = thread_name(connection, names, thread)?;
                event.verify(&stretch.checksum_name, name.as_ref())?;
                events.push((event.redacted(&next.body, &stretch.checksum_name, name.as_ref()), thread));
                note(connection, id)?;
                rest = behind;
            }
            _ => events.push((event, thread)),
        }
    }
    if rest.len() == redactions.len() {
        return Err(missing(first));
    }
    segment::replace(connection, segment.first, &events)?;
    Ok(rest)
}

/// Brings a backup up to what is redacted in its source, within the open transaction. An event that the backup does not have yet
/// is left out.
pub(crate) fn copy_redactions(source: &Connection, target: &Connection) -> Result<(), LogError> {
    if !source.table_exists(None, "redacted").map_err(from_sqlite)? {
        return Ok(());
    }
    let mut list = source.prepare("SELECT id FROM redacted").map_err(from_sqlite)?;
    let mut rows = list.query([]).map_err(from_sqlite)?;
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        let id: i64 = row.get(0).map_err(from_sqlite)?;
        let find = "SELECT version FROM events WHERE id = ?1";
        let find = || target.prepare_cached(find)?.query_row([id], |row| row.get::<_, u32>(0)).optional();
        if find().map_err(from_sqlite)?.is_none_or(row::is_redacted) {
            continue;
        }
        let mut is_there = false;
        let (key, seq) = row::parts(id);
        segment::each_of_log(source, (row::id(key, Seq(seq.0 - 1)), id), 1, |event, _| {
            let update = || {
                let sql = "UPDATE events SET version = ?2, crc = ?3, body = ?4 WHERE id = ?1";
                target.prepare_cached(sql)?.execute(params![id, event.version, event.crc, event.packed()])
            };
            update().map_err(from_sqlite)?;
            is_there = true;
            Ok(())
        })?;
        if !is_there {
            return Err(LogError::Damaged(format!("event {seq} of society number {key} is damaged: it is missing")));
        }
    }
    Ok(())
}

/// Checks that redacted events of a society are listed, so that no backup misses them.
pub(crate) fn check_listed(connection: &Connection, key: i64, society: &SocietyId, redacted: &[Seq]) -> Result<(), LogError> {
    if redacted.is_empty() {
        return Ok(());
    }
    let mut find = connection.prepare("SELECT 1 FROM redacted WHERE id = ?1").map_err(from_sqlite)?;
    for seq in redacted {
        if !find.exists([row::id(key, *seq)]).map_err(from_sqlite)? {
            return Err(damaged(society, *seq, "its content was erased, and no list has that"));
        }
    }
    Ok(())
}

fn note(connection: &Connection, id: i64) -> Result<(), LogError> {
    let add = || connection.prepare_cached("INSERT OR IGNORE INTO redacted (id) VALUES (?1)")?.execute([id]);
    add().map(drop).map_err(from_sqlite)
}

fn thread_name(connection: &Connection, names: &mut ThreadNames, thread: Option<i64>) -> Result<Option<ThreadId>, LogError> {
    thread.map(|thread| names.get(connection, thread)).transpose()
}
