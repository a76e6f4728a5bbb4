//! An event as a row: its key, its checksum, its body.
//!
//! The id packs the key of the society and the position of the event, so that the events of a society are adjacent in the
//! table and need no index. The checksum covers everything that makes up the event, including the names of its society and
//! thread.

use std::ops::Range;
use std::sync::Arc;

use polis_domain::{BadEvent, EVENT_VERSION, Recorded, Seq, SocietyId, ThreadId, Timestamp, decode_event};
use polis_ports::LogError;

use crate::error::from_sqlite;

const SEQ_BITS: u32 = 40;

/// A flag in the version column: this event ended an append.
const LAST: u32 = 1 << 16;

/// The last position that an id can hold.
pub(crate) const LAST_SEQ: u64 = (1 << SEQ_BITS) - 1;

/// The last society key that an id can hold.
pub(crate) const LAST_SOCIETY: i64 = (1 << (63 - SEQ_BITS)) - 1;

/// The row id of an event. A position beyond the last possible one gives the id of that.
pub(crate) fn id(society: i64, seq: Seq) -> i64 {
    society << SEQ_BITS | seq.0.min(LAST_SEQ) as i64
}

/// The society key and the position in a row id.
pub(crate) fn parts(id: i64) -> (i64, Seq) {
    (id >> SEQ_BITS, Seq(id as u64 & LAST_SEQ))
}

/// Events that are appended together, ready to be bound.
#[derive(Clone)]
pub(crate) struct Batch {
    pub(crate) rows: Vec<NewRow>,
    /// The bodies, one behind the other.
    pub(crate) bodies: Vec<u8>,
}

#[derive(Clone)]
pub(crate) struct NewRow {
    pub(crate) at: Timestamp,
    pub(crate) thread: Option<ThreadId>,
    pub(crate) version: u32,
    pub(crate) crc: u32,
    pub(crate) body: Range<usize>,
}

/// Makes rows of events that follow `expected` without gaps.
pub(crate) fn encode(society: &SocietyId, expected: Seq, events: &[Arc<Recorded>]) -> Result<Batch, LogError> {
    let mut batch = Batch { rows: Vec::with_capacity(events.len()), bodies: Vec::with_capacity(256 * events.len()) };
    let mut last = expected;
    for (place, recorded) in events.iter().enumerate() {
        if recorded.seq.0 != last.0.saturating_add(1) || recorded.seq.0 > LAST_SEQ {
            return Err(LogError::Failed(format!("event {} cannot follow event {last}", recorded.seq).into()));
        }
        last = recorded.seq;
        let start = batch.bodies.len();
        serde_json::to_writer(&mut batch.bodies, &recorded.event).map_err(|error| LogError::Failed(error.into()))?;
        let body = start..batch.bodies.len();
        let version = if place + 1 == events.len() { EVENT_VERSION | LAST } else { EVENT_VERSION };
        batch.rows.push(NewRow { at: recorded.at, thread: recorded.thread.clone(), version, crc: 0, body });
    }
    batch.set_checksums(society, expected);
    Ok(batch)
}

impl Batch {
    /// The same events with checksums for another society name.
    pub(crate) fn with_checksum_name(&self, checksum_name: &SocietyId, expected: Seq) -> Self {
        let mut batch = self.clone();
        batch.set_checksums(checksum_name, expected);
        batch
    }

    fn set_checksums(&mut self, checksum_name: &SocietyId, expected: Seq) {
        let mut seq = expected;
        for row in &mut self.rows {
            seq = seq.next();
            let stored = StoredEvent { seq, at: row.at, version: row.version, crc: 0, body: &self.bodies[row.body.clone()] };
            row.crc = stored.checksum(checksum_name, row.thread.as_ref());
        }
    }
}

/// Whether the version column says that an append ended here.
pub(crate) fn is_last(version: u32) -> bool {
    version & LAST != 0
}

/// An event as it was found in the table, without its thread.
pub(crate) struct StoredEvent<'row> {
    pub(crate) seq: Seq,
    pub(crate) at: Timestamp,
    pub(crate) version: u32,
    pub(crate) crc: u32,
    pub(crate) body: &'row [u8],
}

impl<'row> StoredEvent<'row> {
    /// The event in a row of `id, at, thread, version, crc, body`, with the keys of its society and thread.
    pub(crate) fn of(row: &'row rusqlite::Row<'_>) -> Result<(Self, i64, Option<i64>), LogError> {
        Self::columns(row).map_err(from_sqlite)
    }

    fn columns(row: &'row rusqlite::Row<'_>) -> rusqlite::Result<(Self, i64, Option<i64>)> {
        let (society, seq) = parts(row.get(0)?);
        let stored = Self {
            seq,
            at: Timestamp(row.get::<_, i64>(1)? as u64),
            version: row.get(3)?,
            crc: row.get(4)?,
            body: row.get_ref(5)?.as_blob()?,
        };
        Ok((stored, society, row.get(2)?))
    }

    /// Verifies that the row is what was written.
    pub(crate) fn verify(&self, society: &SocietyId, thread: Option<&ThreadId>) -> Result<(), LogError> {
        // The checksum comes first: a wrong version with a wrong checksum is damage, not a newer format.
        if self.checksum(society, thread) != self.crc {
            return Err(damaged(society, self.seq, "its checksum does not match"));
        }
        if self.version() > EVENT_VERSION {
            let newer = BadEvent::TooNew { version: self.version(), known: EVENT_VERSION };
            return Err(LogError::TooNew(format!("event {} of `{society}`: {newer}", self.seq)));
        }
        Ok(())
    }

    /// Verifies the row and decodes its event.
    pub(crate) fn decode(&self, society: &SocietyId, thread: Option<ThreadId>) -> Result<Recorded, LogError> {
        self.verify(society, thread.as_ref())?;
        // The checksum fits, so what cannot be read was written so: by a polis that knows more than this one, if that is why.
        let event = decode_event(self.version(), self.body).map_err(|error| match error.is_too_new() {
            true => LogError::TooNew(format!("event {} of `{society}`: {error}", self.seq)),
            false => damaged(society, self.seq, &format!("it cannot be read: {error}")),
        })?;
        Ok(Recorded { seq: self.seq, at: self.at, thread, event })
    }

    /// The version of the event format, without the flag.
    fn version(&self) -> u32 {
        self.version & !LAST
    }

    fn checksum(&self, society: &SocietyId, thread: Option<&ThreadId>) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        self.feed(society, thread, |bytes| hasher.update(bytes));
        hasher.finalize()
    }

    /// Everything that makes up the event, in parts, for a checksum or a hash.
    pub(crate) fn feed(&self, society: &SocietyId, thread: Option<&ThreadId>, mut take: impl FnMut(&[u8])) {
        let thread_bytes = thread.map_or(u64::MAX, |thread| thread.as_str().len() as u64);
        let mut head = [0; 28];
        head[..8].copy_from_slice(&self.seq.0.to_le_bytes());
        head[8..16].copy_from_slice(&self.at.0.to_le_bytes());
        head[16..24].copy_from_slice(&thread_bytes.to_le_bytes());
        head[24..].copy_from_slice(&self.version.to_le_bytes());
        take(&head);
        take(thread.map_or("", ThreadId::as_str).as_bytes());
        take(society.as_str().as_bytes());
        take(self.body);
    }
}

/// The error for an event that is missing or differs from what was written.
pub(crate) fn damaged(society: &SocietyId, seq: Seq, what: &str) -> LogError {
    LogError::Damaged(format!("event {seq} of `{society}` is damaged: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_version_wrote_is_told_from_damage_by_its_checksum() {
        let society = SocietyId::from("main");
        let event = |version, crc| StoredEvent { seq: Seq(1), at: Timestamp(1), version, crc, body: b"{}" };
        let newer = EVENT_VERSION + 1;
        let sealed = event(newer, event(newer, 0).checksum(&society, None));
        assert!(matches!(sealed.verify(&society, None), Err(LogError::TooNew(_))));
        let flipped = event(newer, event(EVENT_VERSION, 0).checksum(&society, None));
        assert!(matches!(flipped.verify(&society, None), Err(LogError::Damaged(_))));
    }

    /// What a build wrote that did not raise the version: nothing is damaged, and nothing is left out.
    #[test]
    fn an_intact_event_with_an_unknown_kind_or_field_is_too_new_and_not_damaged() {
        let society = SocietyId::from("main");
        for body in [&br#"{"agentRenamed":{"agent":"root"}}"#[..], br#"{"turnRested":{"turn":7,"since":5}}"#] {
            let event = |crc| StoredEvent { seq: Seq(1), at: Timestamp(1), version: EVENT_VERSION, crc, body };
            let read = event(event(0).checksum(&society, None)).decode(&society, None);
            assert!(matches!(&read, Err(LogError::TooNew(text)) if text.contains("Use the newest polis")), "{read:?}");
            assert!(matches!(event(0).decode(&society, None), Err(LogError::Damaged(_))));
        }
    }

    #[test]
    fn a_key_gives_back_the_society_and_the_place() {
        for society in [1, 2, LAST_SOCIETY] {
            for seq in [1, 77, LAST_SEQ] {
                assert_eq!(parts(id(society, Seq(seq))), (society, Seq(seq)));
            }
        }
        assert!(id(1, Seq(u64::MAX)) < id(2, Seq(0)));
    }
}
