//! An event as rows have it: its checksum, its version, its body.
//!
//! The checksum covers everything that makes up the event, including the names of its society and thread; of the body it covers
//! the text, so that it does not depend on how the text is stored ([`crate::body`]).

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use polis_domain::{BadEvent, EVENT_VERSION, Recorded, Seq, SocietyId, ThreadId, Timestamp, decode_event};
use polis_ports::{Hasher, LogError};

use crate::body;

/// A flag in the version column: this event ended an append.
const LAST: u32 = 1 << 16;

/// A flag in the version column: the body is what an erasure has left, and what the chain needs of the original precedes it.
pub const REDACTED: u32 = 1 << 17;

/// The last position that stores take.
pub const LAST_SEQ: u64 = (1 << 40) - 1;

/// Events that are appended together, ready to be bound.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The events.
    pub rows: Vec<NewRow>,
    /// The bodies, one behind the other.
    pub bodies: Vec<u8>,
}

/// An event that is appended.
#[derive(Debug, Clone)]
pub struct NewRow {
    /// Its time.
    pub at: Timestamp,
    /// The thread that it is recorded under.
    pub thread: Option<ThreadId>,
    /// The version of its format, and whether an append ends with it.
    pub version: u32,
    /// Its checksum.
    pub crc: u32,
    /// Where its body is in [`Batch::bodies`].
    pub body: Range<usize>,
}

/// Makes rows of events that follow `expected` without gaps.
///
/// # Errors
///
/// [`LogError::Failed`] when they do not, or are beyond [`LAST_SEQ`].
pub fn encode(society: &SocietyId, expected: Seq, events: &[Arc<Recorded>]) -> Result<Batch, LogError> {
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
    pub fn with_checksum_name(&self, checksum_name: &SocietyId, expected: Seq) -> Self {
        let mut batch = self.clone();
        batch.set_checksums(checksum_name, expected);
        batch
    }

    fn set_checksums(&mut self, checksum_name: &SocietyId, expected: Seq) {
        let mut seq = expected;
        for row in &mut self.rows {
            seq = seq.next();
            let body = Cow::from(&self.bodies[row.body.clone()]);
            let stored = StoredEvent { seq, at: row.at, version: row.version, crc: 0, original: None, body };
            row.crc = stored.checksum(checksum_name, row.thread.as_ref());
        }
    }
}

/// Whether the version column says that an append ended here.
pub fn is_last(version: u32) -> bool {
    version & LAST != 0
}

/// Whether the version column says that the content was erased.
pub fn is_redacted(version: u32) -> bool {
    version & REDACTED != 0
}

/// An event as it was found in the table, without its thread. The body is unpacked.
#[derive(Debug)]
pub struct StoredEvent<'row> {
    /// Its position.
    pub seq: Seq,
    /// Its time.
    pub at: Timestamp,
    /// The version of its format, and whether an append ended with it.
    pub version: u32,
    /// The checksum that was stored with it.
    pub crc: u32,
    /// What is left of the original of a redacted event.
    pub original: Option<Original>,
    /// Its text.
    pub body: Cow<'row, [u8]>,
}

/// What the hash chain needs of an event whose content was erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Original {
    /// The version column.
    version: u32,
    /// The SHA-256 of the body.
    body: [u8; 32],
}

const ORIGINAL_BYTES: usize = 36;

impl Original {
    fn bytes(&self) -> [u8; ORIGINAL_BYTES] {
        let mut bytes = [0; ORIGINAL_BYTES];
        bytes[..4].copy_from_slice(&self.version.to_le_bytes());
        bytes[4..].copy_from_slice(&self.body);
        bytes
    }

    /// Separates what precedes the body of an event of this version. None if it is too short.
    pub fn split(version: u32, stored: &[u8]) -> Option<(Option<Self>, &[u8])> {
        if !is_redacted(version) {
            return Some((None, stored));
        }
        let (head, body) = stored.split_first_chunk::<ORIGINAL_BYTES>()?;
        let [a, b, c, d, digest @ ..] = *head;
        Some((Some(Self { version: u32::from_le_bytes([a, b, c, d]), body: digest }), body))
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Hasher::id_of(bytes).digest()
}

impl StoredEvent<'_> {
    /// Verifies that the row is what was written.
    ///
    /// # Errors
    ///
    /// [`LogError::Damaged`] if it is not, [`LogError::TooNew`] if a newer version wrote it.
    pub fn verify(&self, society: &SocietyId, thread: Option<&ThreadId>) -> Result<(), LogError> {
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
    ///
    /// # Errors
    ///
    /// As [`Self::verify`].
    pub fn decode(&self, society: &SocietyId, thread: Option<ThreadId>) -> Result<Recorded, LogError> {
        self.verify(society, thread.as_ref())?;
        // The checksum fits, so what cannot be read was written so: by a polis that knows more than this one, if that is why.
        let event = decode_event(self.version(), &self.body).map_err(|error| match error.is_too_new() {
            true => LogError::TooNew(format!("event {} of `{society}`: {error}", self.seq)),
            false => damaged(society, self.seq, &format!("it cannot be read: {error}")),
        })?;
        Ok(Recorded { seq: self.seq, at: self.at, thread, event })
    }

    /// The same event with another body, in the place of its content.
    pub fn redacted<'new>(&self, body: &'new [u8], society: &SocietyId, thread: Option<&ThreadId>) -> StoredEvent<'new> {
        let original = self.original.unwrap_or_else(|| Original { version: self.version, body: sha256(&self.body) });
        let version = EVENT_VERSION | self.version & LAST | REDACTED;
        let (seq, at) = (self.seq, self.at);
        let mut redacted = StoredEvent { seq, at, version, crc: 0, original: Some(original), body: Cow::Borrowed(body) };
        redacted.crc = redacted.checksum(society, thread);
        redacted
    }

    /// What the column of the body has in a table.
    pub fn packed(&self) -> Cow<'_, [u8]> {
        self.behind_original(body::pack(&self.body))
    }

    /// What a store has of the body where it is packed with others.
    pub fn unpacked(&self) -> Cow<'_, [u8]> {
        self.behind_original(Cow::Borrowed(&self.body))
    }

    fn behind_original<'a>(&self, body: Cow<'a, [u8]>) -> Cow<'a, [u8]> {
        match &self.original {
            None => body,
            Some(original) => Cow::Owned([&original.bytes(), &*body].concat()),
        }
    }

    /// The version of the event format, without the flags.
    fn version(&self) -> u32 {
        self.version & !(LAST | REDACTED)
    }

    fn checksum(&self, society: &SocietyId, thread: Option<&ThreadId>) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        self.feed(society, thread, |bytes| hasher.update(bytes));
        hasher.finalize()
    }

    /// Everything that makes up the event, in parts, for a checksum or a hash.
    pub fn feed(&self, society: &SocietyId, thread: Option<&ThreadId>, mut take: impl FnMut(&[u8])) {
        self.feed_head(self.version, society, thread, &mut take);
        self.original.iter().for_each(|original| take(&original.bytes()));
        take(&self.body);
    }

    /// The same for the hash chain, with the digest of the body in the place of the body: a redaction does not change it.
    pub fn feed_chain(&self, society: &SocietyId, thread: Option<&ThreadId>, mut take: impl FnMut(&[u8])) {
        let Original { version, body } =
            self.original.unwrap_or_else(|| Original { version: self.version, body: sha256(&self.body) });
        self.feed_head(version, society, thread, &mut take);
        take(&body);
    }

    fn feed_head(&self, version: u32, society: &SocietyId, thread: Option<&ThreadId>, take: &mut impl FnMut(&[u8])) {
        let thread_bytes = thread.map_or(u64::MAX, |thread| thread.as_str().len() as u64);
        let mut head = [0; 28];
        head[..8].copy_from_slice(&self.seq.0.to_le_bytes());
        head[8..16].copy_from_slice(&self.at.0.to_le_bytes());
        head[16..24].copy_from_slice(&thread_bytes.to_le_bytes());
        head[24..].copy_from_slice(&version.to_le_bytes());
        take(&head);
        take(thread.map_or("", ThreadId::as_str).as_bytes());
        take(society.as_str().as_bytes());
    }
}

/// The error for an event that is missing or differs from what was written.
pub fn damaged(society: &SocietyId, seq: Seq, what: &str) -> LogError {
    LogError::Damaged(format!("event {seq} of `{society}` is damaged: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_version_wrote_is_told_from_damage_by_its_checksum() {
        let society = SocietyId::from("main");
        let event = |version, crc| StoredEvent {
            seq: Seq(1),
            at: Timestamp(1),
            version,
            crc,
            original: None,
            body: Cow::Borrowed(b"{}"),
        };
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
            let (seq, at, version) = (Seq(1), Timestamp(1), EVENT_VERSION);
            let event = |crc| StoredEvent { seq, at, version, crc, original: None, body: Cow::Borrowed(body) };
            let read = event(event(0).checksum(&society, None)).decode(&society, None);
            assert!(matches!(&read, Err(LogError::TooNew(text)) if text.contains("Use the newest polis")), "{read:?}");
            assert!(matches!(event(0).decode(&society, None), Err(LogError::Damaged(_))));
        }
    }

    #[test]
    fn a_redaction_changes_the_checksum_and_not_the_chain() {
        let (society, thread) = (SocietyId::from("main"), ThreadId::from("root"));
        let chained = |event: &StoredEvent<'_>| {
            let mut bytes = Vec::new();
            event.feed_chain(&society, Some(&thread), |part| bytes.extend_from_slice(part));
            bytes
        };
        let (seq, at, version) = (Seq(1), Timestamp(1), (EVENT_VERSION - 1) | LAST);
        let event = StoredEvent { seq, at, version, crc: 7, original: None, body: Cow::Borrowed(b"\"turnRested\"") };
        let first = event.redacted(b"{}", &society, Some(&thread));
        first.verify(&society, Some(&thread)).unwrap();
        let twice = first.redacted(b"[]", &society, Some(&thread));
        assert!(is_last(twice.version) && twice.version() == EVENT_VERSION);
        assert_ne!(first.crc, twice.crc);
        assert_eq!([chained(&first), chained(&twice)], [chained(&event), chained(&event)]);
        let stored = twice.packed();
        assert_eq!(Original::split(twice.version, &stored), Some((twice.original, &b"[]"[..])));
        assert_eq!(Original::split(twice.version, &stored[..30]), None);
    }
}
