//! A log on its way from one store to another: its societies and their own events as stores keep them, so that checksums, erasures
//! and the ends of appends stay what they are.

use std::borrow::Cow;

use polis_domain::{Seq, SocietyId, ThreadId, Timestamp};
use polis_ports::{Hasher, LogError};

use crate::{Original, StoredEvent, damaged};

/// How many events are moved together.
pub const MOVED_TOGETHER: usize = 500;

/// A society.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedSociety {
    /// Its number in the store that it comes from.
    pub key: i64,
    /// Its present name.
    pub name: SocietyId,
    /// The name in the checksums of its events.
    pub checksum_name: SocietyId,
    /// The society that it is a fork of, by its number.
    pub parent: Option<i64>,
    /// The position before its first own event.
    pub after: Seq,
    /// Its last event.
    pub head: Seq,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedEvent {
    /// Its position.
    pub seq: Seq,
    /// Its time.
    pub at: Timestamp,
    /// Its thread.
    pub thread: Option<ThreadId>,
    /// The version of its format, and what is special about it.
    pub version: u32,
    /// Its checksum.
    pub crc: u32,
    /// Its text, behind what is left of the original if that was erased.
    pub body: Vec<u8>,
}

impl MovedEvent {
    /// An event as it was found.
    pub fn of(stored: &StoredEvent<'_>, thread: Option<&ThreadId>) -> Self {
        let StoredEvent { seq, at, version, crc, .. } = *stored;
        Self { seq, at, thread: thread.cloned(), version, crc, body: stored.unpacked().into_owned() }
    }

    /// The event as stores have it, verified.
    ///
    /// # Errors
    ///
    /// As [`StoredEvent::verify`].
    pub fn stored(&self, society: &MovedSociety) -> Result<StoredEvent<'_>, LogError> {
        let name = &society.checksum_name;
        let (original, body) = Original::split(self.version, &self.body)
            .ok_or_else(|| damaged(name, self.seq, "what is left of its original is cut"))?;
        let (seq, at, version, crc) = (self.seq, self.at, self.version, self.crc);
        let stored = StoredEvent { seq, at, version, crc, original, body: Cow::Borrowed(body) };
        stored.verify(name, self.thread.as_ref())?;
        Ok(stored)
    }
}

/// The hash over all events of a society up to one: the SHA-256 of the hash before it and everything that makes up the event, with
/// the SHA-256 of its body in the place of the body. So a redaction, which keeps that, leaves the chain as it is.
/// It can be compared with the one of another copy; it is not stored in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chain(pub [u8; 32]);

impl Chain {
    /// Adds an event.
    pub fn add(&mut self, stored: &StoredEvent<'_>, society: &SocietyId, thread: Option<&ThreadId>) {
        self.add_bytes(|hasher| stored.feed_chain(society, thread, |bytes| hasher.update(bytes)));
    }

    /// Adds what makes up an event.
    pub fn add_bytes(&mut self, feed: impl FnOnce(&mut Hasher)) {
        let mut hasher = Hasher::default();
        hasher.update(&self.0);
        feed(&mut hasher);
        self.0 = hasher.id().digest();
    }

    /// In hexadecimal digits.
    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Follows the events of a society on their way: none may be missing, and each must be what was written.
#[derive(Debug)]
pub struct Passage {
    last: Seq,
    chain: Chain,
}

impl Passage {
    /// Begins before the first own event of a society.
    pub fn of(society: &MovedSociety) -> Self {
        Self { last: society.after, chain: Chain::default() }
    }

    /// Takes the next event.
    ///
    /// # Errors
    ///
    /// [`LogError::Damaged`] if it is not what follows, and what was written.
    pub fn add(&mut self, society: &MovedSociety, event: &MovedEvent) -> Result<(), LogError> {
        if event.seq != self.last.next() {
            return Err(damaged(&society.checksum_name, self.last.next(), "it is missing"));
        }
        self.last = event.seq;
        self.chain.add(&event.stored(society)?, &society.checksum_name, event.thread.as_ref());
        Ok(())
    }

    /// The last event.
    pub fn last(&self) -> Seq {
        self.last
    }

    /// The chain of all of them.
    pub fn chain(&self) -> Chain {
        self.chain
    }
}

/// The societies in an order in which each follows the one that it is a fork of.
///
/// # Errors
///
/// [`LogError::Damaged`] if one is missing.
pub fn parents_first(mut left: Vec<MovedSociety>) -> Result<Vec<MovedSociety>, LogError> {
    left.sort_by_key(|society| society.key);
    let mut ordered: Vec<MovedSociety> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_next = |society: &MovedSociety| society.parent.is_none_or(|parent| ordered.iter().any(|it| it.key == parent));
        let (next, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(is_next);
        if next.is_empty() {
            return Err(LogError::Damaged(format!("the society that `{}` is a fork of is missing", rest[0].name)));
        }
        ordered.extend(next);
        left = rest;
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_follow_what_they_were_made_from_and_one_without_it_is_damage() {
        let society = |key: i64, parent| MovedSociety {
            key,
            name: format!("{key}").into(),
            checksum_name: "a".into(),
            parent,
            after: Seq(0),
            head: Seq(1),
        };
        let keys = |societies: Vec<_>| parents_first(societies).map(|found| found.iter().map(|it| it.key).collect::<Vec<_>>());
        assert_eq!(keys(vec![society(1, Some(2)), society(3, Some(1)), society(2, None)]).unwrap(), [2, 1, 3]);
        assert!(keys(vec![society(1, Some(2))]).is_err() && keys(vec![society(1, Some(1))]).is_err());
    }
}
