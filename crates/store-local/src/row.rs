//! An event as a row: its key, and what is in the other columns.
//!
//! The id packs the key of the society and the position of the event, so that the events of a society are adjacent in the
//! table and need no index.

use std::borrow::Cow;

use polis_domain::{Seq, Timestamp};
use polis_ports::LogError;
pub(crate) use polis_stored_event::{
    Batch, LAST_SEQ, NewRow, Original, REDACTED, StoredEvent, damaged, encode, is_last, is_redacted,
};

use crate::body;
use crate::error::from_sqlite;

const SEQ_BITS: u32 = LAST_SEQ.count_ones();

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

/// The event in a row of `id, at, thread, version, crc, body`, with the keys of its society and thread.
pub(crate) fn stored<'row>(row: &'row rusqlite::Row<'_>) -> Result<(StoredEvent<'row>, i64, Option<i64>), LogError> {
    let (mut stored, society, thread) = columns(row).map_err(from_sqlite)?;
    if let Cow::Borrowed(stored_body) = stored.body {
        let read = || {
            let (original, packed) = Original::split(stored.version, stored_body).ok_or("it is too short")?;
            Ok((original, body::unpack(packed)?))
        };
        (stored.original, stored.body) = read().map_err(|what: String| {
            LogError::Damaged(format!("event {} of society number {society} is damaged: {what}", stored.seq))
        })?;
    }
    Ok((stored, society, thread))
}

fn columns<'row>(row: &'row rusqlite::Row<'_>) -> rusqlite::Result<(StoredEvent<'row>, i64, Option<i64>)> {
    let (society, seq) = parts(row.get(0)?);
    let stored = StoredEvent {
        seq,
        at: Timestamp(row.get::<_, i64>(1)? as u64),
        version: row.get(3)?,
        crc: row.get(4)?,
        original: None,
        body: Cow::Borrowed(row.get_ref(5)?.as_blob()?),
    };
    Ok((stored, society, row.get(2)?))
}

#[cfg(test)]
mod tests {
    use super::*;

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
