//! Which rows make up a society's log: its own and, for the time before it was forked, those of its ancestors.
//!
//! A fork copies no events. Its row in `societies` names its parent and the last shared position, and a read walks this
//! chain. What follows from that:
//!
//! * A society may itself be a fork, and its parent's log may have gone on after the fork. So each ancestor contributes only
//!   a [`Stretch`]: the events after its own start and up to the position at which its descendant left it.
//! * A fork of a fork at a position before its parent's own start has nothing of that parent. It is recorded as a child of
//!   the ancestor that has the position (see `Cache::fork`); an empty stretch in between would be skipped.
//! * Checksums cover the name of the society, and a rewind renames societies. The rows keep the name that they were written
//!   under (`checksum_name`), so that a rename need not rewrite any event.
//!
//! A parent always has a smaller key than its fork, because keys are assigned in order. A row that says otherwise is damaged;
//! the check also keeps the walk from running in a circle.

use polis_domain::{Seq, SocietyId};
use polis_ports::LogError;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::from_sqlite;

/// The stretches of a society's log, oldest first. The last one is its own and has no end.
#[derive(Debug, Clone)]
pub(crate) struct Lineage(Vec<Stretch>);

/// A range of consecutive rows of one society.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    /// The key of the society, which is the upper part of the row ids.
    pub(crate) key: i64,
    /// The society name in the checksums of these rows: the first name that the society had.
    pub(crate) checksum_name: SocietyId,
    /// The position before the first event.
    pub(crate) after: Seq,
    /// The last event that belongs to the log.
    pub(crate) through: Seq,
}

/// A row of the table of societies.
struct SocietyRow {
    key: i64,
    checksum_name: String,
    parent: Option<i64>,
    at: Option<i64>,
}

impl SocietyRow {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { key: row.get(0)?, checksum_name: row.get(1)?, parent: row.get(2)?, at: row.get(3)? })
    }
}

impl Lineage {
    /// The lineage of a society; none if there is no such society.
    pub(crate) fn find(connection: &Connection, society: &SocietyId) -> Result<Option<Self>, LogError> {
        let by_name = || {
            connection
                .prepare_cached("SELECT key, coalesce(seal, name), parent, at FROM societies WHERE name = ?1")?
                .query_row(params![society.as_str()], SocietyRow::of)
                .optional()
        };
        let by_key = |key: i64| {
            connection
                .prepare_cached("SELECT key, coalesce(seal, name), parent, at FROM societies WHERE key = ?1")?
                .query_row(params![key], SocietyRow::of)
                .optional()
        };
        let Some(mut row) = by_name().map_err(from_sqlite)? else { return Ok(None) };
        let mut stretches = Vec::new();
        let mut through = Seq(u64::MAX);
        loop {
            let after = Seq(row.at.unwrap_or(0) as u64);
            if after < through {
                stretches.push(Stretch { key: row.key, checksum_name: row.checksum_name.into(), after, through });
                through = after;
            }
            let Some(parent) = row.parent else { break };
            let found = by_key(parent).map_err(from_sqlite)?.filter(|_| parent < row.key);
            row = found
                .ok_or_else(|| LogError::Damaged(format!("society number {parent}, which others are forks of, is missing")))?;
        }
        stretches.reverse();
        Ok(Some(Self(stretches)))
    }

    /// All stretches, oldest first.
    pub(crate) fn stretches(&self) -> &[Stretch] {
        &self.0
    }

    /// The society's own stretch.
    pub(crate) fn own(&self) -> &Stretch {
        self.0.last().expect("the last stretch is the society's own")
    }
}

/// The other societies that may share events with one: those that have the same first event.
pub(crate) fn related(connection: &Connection, society: &SocietyId) -> Result<Vec<SocietyId>, LogError> {
    let first = |name: &SocietyId| {
        let lineage = Lineage::find(connection, name)?;
        Ok::<_, LogError>(lineage.and_then(|lineage| lineage.stretches().first().map(|stretch| stretch.key)))
    };
    let list = || {
        let mut statement = connection.prepare("SELECT name FROM societies WHERE name <> ?1")?;
        let names = statement.query_map([society.as_str()], |row| row.get::<_, String>(0))?;
        names.collect::<Result<Vec<_>, _>>()
    };
    let own = first(society)?;
    let mut related = Vec::new();
    for name in list().map_err(from_sqlite)? {
        let name = SocietyId::from(name);
        if first(&name)? == own {
            related.push(name);
        }
    }
    Ok(related)
}
