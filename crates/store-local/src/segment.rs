//! Segments: the oldest events of a society, packed together.
//!
//! Sealing takes events from the start of a society's log out of the table `events`, a bounded number at a time, and stores them
//! in one row of `segments`, packed as one frame. A conversation that has long ended is then all in segments, and so is the
//! distant past of one that goes on. An event keeps its position, thread, time and checksum, so a read gives the same.
//!
//! * The segments of a society follow each other without a gap from its first own event on, and its last event is never sealed.
//!   So `events` always has the end of a log, and segments have the rest.
//! * Events move from the table to a segment in one commit, and never back. A reader that looks into the table first and then
//!   into the segments, for what comes before the rows that it has seen, misses nothing and needs no transaction.
//! * `segment_threads` names the threads of each segment, as `events_by_thread` does for rows, and is part of the same checksum
//!   ([`crate::sums`]).

use std::borrow::Cow;

use polis_domain::{Seq, Timestamp};
use polis_ports::LogError;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::body;
use crate::error::{from_io, from_sqlite};
use crate::row::{self, Original, StoredEvent};
use crate::sums::Sums;

/// How many bytes of events a segment has; reading one of them unpacks all.
const SEGMENT_BYTES: usize = 128 << 10;

/// How many events a segment has at most, and at least.
const MAX_EVENTS: usize = 512;
const MIN_EVENTS: usize = 32;

/// A segment as it is in its row.
pub(crate) struct Segment {
    /// The ids of the first and the last event.
    pub(crate) first: i64,
    pub(crate) last: i64,
    bytes: Vec<u8>,
}

/// The fixed part of an event in a segment: time, thread, version, checksum and length of the body.
const HEAD_BYTES: usize = 28;

impl Segment {
    fn of(row: &Row<'_>) -> Result<Self, LogError> {
        let columns = || Ok((row.get(0)?, row.get(1)?, row.get_ref(2)?.as_blob()?));
        let (first, last, packed) = columns().map_err(from_sqlite)?;
        let bytes = body::unpack(packed).map_err(|what| damaged(first, &what))?.into_owned();
        Ok(Self { first, last, bytes })
    }

    /// The oldest or newest segment with events of a thread between two ids.
    fn of_thread(
        connection: &Connection,
        thread: i64,
        (after, through): (i64, i64),
        newest: bool,
    ) -> Result<Option<Self>, LogError> {
        let sql = match newest {
            false => {
                "SELECT segments.first, last, body FROM segment_threads of JOIN segments ON segments.first = of.segment \
                 WHERE of.thread = ?1 AND of.first <= ?3 AND last > ?2 ORDER BY of.first LIMIT 1"
            }
            true => {
                "SELECT segments.first, last, body FROM segment_threads of JOIN segments ON segments.first = of.segment \
                 WHERE of.thread = ?1 AND of.first <= ?3 AND last > ?2 ORDER BY of.first DESC LIMIT 1"
            }
        };
        let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
        let mut rows = statement.query([thread, after, through]).map_err(from_sqlite)?;
        rows.next().map_err(from_sqlite)?.map(Self::of).transpose()
    }

    /// The segment with the newest events up to an id, of any society.
    pub(crate) fn at_or_before(connection: &Connection, id: i64) -> Result<Option<Self>, LogError> {
        let sql = "SELECT first, last, body FROM segments WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
        let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
        let mut rows = statement.query([id]).map_err(from_sqlite)?;
        rows.next().map_err(from_sqlite)?.map(Self::of).transpose()
    }

    /// The first segment that begins after an id.
    pub(crate) fn after(connection: &Connection, id: i64) -> Result<Option<Self>, LogError> {
        if !exist(connection)? {
            return Ok(None);
        }
        let sql = "SELECT first, last, body FROM segments WHERE first > ?1 ORDER BY first LIMIT 1";
        let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
        let mut rows = statement.query([id]).map_err(from_sqlite)?;
        rows.next().map_err(from_sqlite)?.map(Self::of).transpose()
    }

    /// Each event with its id and the key of its thread, in order.
    pub(crate) fn events(&self) -> impl Iterator<Item = Result<(i64, StoredEvent<'_>, Option<i64>), LogError>> {
        let mut rest = &self.bytes[..];
        let mut id = self.first;
        let mut is_broken = false;
        std::iter::from_fn(move || {
            if is_broken || id > self.last && rest.is_empty() {
                return None;
            }
            let next = (id <= self.last).then(|| split(rest)).flatten();
            let Some((at, thread, version, crc, body, after)) = next else {
                is_broken = true;
                return Some(Err(damaged(self.first, "it does not have the events that it should have")));
            };
            rest = after;
            let Some((original, body)) = Original::split(version, body) else {
                is_broken = true;
                return Some(Err(damaged(self.first, "an event of it is too short")));
            };
            let (seq, at, body) = (row::parts(id).1, Timestamp(at), Cow::Borrowed(body));
            let event = StoredEvent { seq, at, version, crc, original, body };
            id += 1;
            Some(Ok((id - 1, event, (thread != 0).then_some(thread))))
        })
    }
}

type Split<'a> = (u64, i64, u32, u32, &'a [u8], &'a [u8]);

fn split(bytes: &[u8]) -> Option<Split<'_>> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let long = |at: usize| head[at..].first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
    let short = |at: usize| head[at..].first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    let (body, rest) = rest.split_at_checked(short(24)? as usize)?;
    Some((long(0)?, long(8)? as i64, short(16)?, short(20)?, body, rest))
}

/// Which events to take from segments. Ids are those of one society.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// After this id.
    pub(crate) after: i64,
    /// Up to and including this id.
    pub(crate) through: i64,
    /// Only those of the thread with this key.
    pub(crate) thread: Option<i64>,
    /// From the end on.
    pub(crate) newest_first: bool,
}

/// The checksum of a sealed event, if there is one with this id.
pub(crate) fn crc(connection: &Connection, id: i64) -> Result<Option<u32>, LogError> {
    if !exist(connection)? {
        return Ok(None);
    }
    let Some(segment) = Segment::at_or_before(connection, id)? else { return Ok(None) };
    let found = segment.events().find(|event| !matches!(event, Ok((at, ..)) if *at != id));
    found.map_or(Ok(None), |event| event.map(|(_, event, _)| Some(event.crc)))
}

/// Passes sealed events to `take` until it returns false.
pub(crate) fn each(
    connection: &Connection,
    wanted: Wanted,
    mut take: impl FnMut(StoredEvent<'_>, Option<i64>) -> Result<bool, LogError>,
) -> Result<(), LogError> {
    let Wanted { mut after, mut through, thread, newest_first } = wanted;
    while after < through && exist(connection)? {
        let next = match (thread, newest_first) {
            (None, false) => Segment::at_or_before(connection, after + 1)?.filter(|segment| segment.last > after),
            (None, true) => Segment::at_or_before(connection, through)?.filter(|segment| segment.last > after),
            (Some(thread), _) => Segment::of_thread(connection, thread, (after, through), newest_first)?,
        };
        let Some(segment) = next else { break };
        let mut events: Vec<_> = segment.events().collect::<Result<_, _>>()?;
        events.retain(|(id, _, of)| *id > after && *id <= through && (thread.is_none() || *of == thread));
        if newest_first {
            events.reverse();
            through = segment.first - 1;
        } else {
            after = segment.last;
        }
        for (_, event, thread) in events {
            if !take(event, thread)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The version and the checksum of an event, wherever it is.
pub(crate) fn find(connection: &Connection, id: i64) -> Result<Option<(u32, u32)>, LogError> {
    let find = || {
        connection
            .prepare_cached("SELECT version, crc FROM events WHERE id = ?1")?
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
    };
    let mut found = find().map_err(from_sqlite)?;
    if found.is_none() {
        each(connection, Wanted { after: id - 1, through: id, thread: None, newest_first: false }, |event, _| {
            found = Some((event.version, event.crc));
            Ok(false)
        })?;
    }
    Ok(found)
}

/// What an event adds to the hash chain, wherever it is, but for the names of its society and thread: it tells whether two databases
/// have the same event, redacted or not.
pub(crate) fn link(connection: &Connection, id: i64) -> Result<Option<Vec<u8>>, LogError> {
    let (key, seq) = row::parts(id);
    let mut found = None;
    each_of_log(connection, (row::id(key, Seq(seq.0 - 1)), id), 1, |event, _| {
        let mut bytes = Vec::new();
        event.feed_chain(&"".into(), None, |part| bytes.extend_from_slice(part));
        found = Some(bytes);
        Ok(())
    })?;
    Ok(found)
}

/// Whether there can be segments: backups and databases of older versions have none.
pub(crate) fn exist(connection: &Connection) -> Result<bool, LogError> {
    connection.table_exists(None, "segments").map_err(from_sqlite)
}

/// Passes events of a society to `take`: those after an id up to another, at most `limit`, either sealed ones or rows. Returns
/// whether they were sealed, so that rows may follow.
pub(crate) fn each_of_log(
    connection: &Connection,
    (after, through): (i64, i64),
    limit: usize,
    mut take: impl FnMut(StoredEvent<'_>, Option<i64>) -> Result<(), LogError>,
) -> Result<bool, LogError> {
    let sql = "SELECT id, at, thread, version, crc, body FROM events WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
    let bounds = params![after, through, i64::try_from(limit).unwrap_or(i64::MAX)];
    let mut rows = statement.query(bounds).map_err(from_sqlite)?;
    let (mut follows, mut has_rows) = (false, false);
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        has_rows = true;
        if !follows && row.get::<_, i64>(0).map_err(from_sqlite)? != after + 1 {
            break;
        }
        follows = true;
        let (event, _, thread) = row::stored(row)?;
        take(event, thread)?;
    }
    if follows {
        return Ok(false);
    }
    let mut left = limit;
    each(connection, Wanted { after, through, thread: None, newest_first: false }, |event, thread| {
        take(event, thread)?;
        left -= 1;
        Ok(left > 0)
    })?;
    if has_rows && left == limit {
        let (society, seq) = row::parts(after + 1);
        return Err(LogError::Damaged(format!("event {seq} of society number {society} is damaged: it is missing")));
    }
    Ok(left < limit)
}

/// The first sealed event of a thread.
pub(crate) fn first_of_thread(connection: &Connection, thread: i64) -> Result<Option<i64>, LogError> {
    if !exist(connection)? {
        return Ok(None);
    }
    let find = || {
        connection
            .prepare_cached("SELECT min(first) FROM segment_threads WHERE thread = ?1")?
            .query_row([thread], |row| row.get::<_, Option<i64>>(0))
    };
    find().map_err(from_sqlite)
}

/// Seals some of the oldest events that are older than `before`, within the open transaction. Does nothing where there are too
/// few. Notes in `sums` what it takes out of the indexes and puts into them. Returns how many it sealed.
pub(crate) fn seal(connection: &Connection, before: Timestamp, sums: &mut Sums) -> Result<u64, LogError> {
    let starts = || {
        let mut statement = connection.prepare_cached("SELECT key, coalesce(at, 0) FROM societies ORDER BY key")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
        rows.collect::<Result<Vec<_>, _>>()
    };
    for (key, start) in starts().map_err(from_sqlite)? {
        let sealed = seal_some(connection, key, Seq(start as u64), before, sums)?;
        if sealed > 0 {
            return Ok(sealed);
        }
    }
    Ok(0)
}

fn seal_some(connection: &Connection, key: i64, start: Seq, before: Timestamp, sums: &mut Sums) -> Result<u64, LogError> {
    let (low, high) = (row::id(key, start), row::id(key, Seq(u64::MAX)));
    let find = |sql: &str| connection.prepare_cached(sql)?.query_row([low, high], |row| row.get::<_, Option<i64>>(0));
    let head = find("SELECT max(id) FROM events WHERE id > ?1 AND id <= ?2").map_err(from_sqlite)?;
    let Some(head) = head else { return Ok(0) };
    let mut bytes = Vec::new();
    let mut ids = Vec::new();
    let mut threads: Vec<(i64, i64)> = Vec::new();
    {
        let sql = "SELECT id, at, thread, version, crc, body FROM events WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT ?3";
        let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
        let mut rows = statement.query(params![low, head, MAX_EVENTS as i64]).map_err(from_sqlite)?;
        while bytes.len() < SEGMENT_BYTES
            && let Some(row) = rows.next().map_err(from_sqlite)?
        {
            let (event, key, thread) = row::stored(row)?;
            if event.at >= before {
                break;
            }
            let id = row::id(key, event.seq);
            write(&mut bytes, &event, thread)?;
            ids.push((id, thread));
            if let Some(thread) = thread
                && !threads.iter().any(|(seen, _)| *seen == thread)
            {
                threads.push((thread, id));
            }
        }
    }
    let (Some((first, _)), Some((last, _))) = (ids.first().copied(), ids.last().copied()) else { return Ok(0) };
    if ids.len() < MIN_EVENTS {
        return Ok(0);
    }
    let packed = body::pack_segment(&bytes).map_err(from_io)?;
    let write = || {
        connection
            .prepare_cached("INSERT INTO segments (first, last, body) VALUES (?1, ?2, ?3)")?
            .execute(params![first, last, packed])?;
        let mut add = connection.prepare_cached("INSERT INTO segment_threads (thread, first, segment) VALUES (?1, ?2, ?3)")?;
        for (thread, id) in &threads {
            add.execute([*thread, *id, first])?;
        }
        connection.prepare_cached("DELETE FROM events WHERE id >= ?1 AND id <= ?2")?.execute([first, last])
    };
    write().map_err(from_sqlite)?;
    for (thread, id) in &threads {
        sums.add_sealed(*thread, *id, first);
    }
    for (id, thread) in &ids {
        if let Some(thread) = thread {
            sums.remove_event(*thread, *id);
        }
    }
    Ok(ids.len() as u64)
}

/// Writes a segment again whose events have been changed, within the open transaction.
pub(crate) fn replace<'a>(
    connection: &Connection,
    first: i64,
    events: impl IntoIterator<Item = &'a (StoredEvent<'a>, Option<i64>)>,
) -> Result<(), LogError> {
    let mut bytes = Vec::new();
    events.into_iter().try_for_each(|(event, thread)| write(&mut bytes, event, *thread))?;
    let packed = body::pack_segment(&bytes).map_err(from_io)?;
    let update =
        || connection.prepare_cached("UPDATE segments SET body = ?2 WHERE first = ?1")?.execute(params![first, packed]);
    update().map(drop).map_err(from_sqlite)
}

fn write(bytes: &mut Vec<u8>, event: &StoredEvent<'_>, thread: Option<i64>) -> Result<(), LogError> {
    let body = event.unpacked();
    let length = u32::try_from(body.len()).map_err(|_| LogError::Failed("an event is too long to be sealed".into()))?;
    bytes.extend(event.at.0.to_le_bytes());
    bytes.extend(thread.unwrap_or(0).to_le_bytes());
    bytes.extend(event.version.to_le_bytes());
    bytes.extend(event.crc.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend_from_slice(&body);
    Ok(())
}

fn damaged(first: i64, what: &str) -> LogError {
    let (society, seq) = row::parts(first);
    LogError::Damaged(format!("the segment from event {seq} of society number {society} on is damaged: {what}"))
}
