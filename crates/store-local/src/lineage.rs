//! Whose rows a society's events are: its own and, for the time before it was forked, those of others.

use polis_domain::{Seq, SocietyId};
use polis_ports::LogError;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::from_sqlite;

/// The stretches of a society's log, oldest first. The last one is its own, and never ends.
#[derive(Debug, Clone)]
pub(crate) struct Lineage(Vec<Stretch>);

/// Events that lie side by side in the table.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    /// The number that their keys begin with.
    pub(crate) key: i64,
    /// The name that their checksums are made with: the first that the society had.
    pub(crate) seal: SocietyId,
    /// They come after this place.
    pub(crate) after: Seq,
    /// The last of them that counts.
    pub(crate) through: Seq,
}

/// A row of the table of societies.
struct Born {
    key: i64,
    seal: String,
    parent: Option<i64>,
    at: Option<i64>,
}

impl Born {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { key: row.get(0)?, seal: row.get(1)?, parent: row.get(2)?, at: row.get(3)? })
    }
}

impl Lineage {
    /// The lineage of a society that has events.
    pub(crate) fn find(connection: &Connection, society: &SocietyId) -> Result<Option<Self>, LogError> {
        let named = || {
            connection
                .prepare_cached("SELECT key, coalesce(seal, name), parent, at FROM societies WHERE name = ?1")?
                .query_row(params![society.as_str()], Born::of)
                .optional()
        };
        let above = |key: i64| {
            connection
                .prepare_cached("SELECT key, coalesce(seal, name), parent, at FROM societies WHERE key = ?1")?
                .query_row(params![key], Born::of)
                .optional()
        };
        let Some(mut born) = named().map_err(from_sqlite)? else { return Ok(None) };
        let mut stretches = Vec::new();
        let mut through = Seq(u64::MAX);
        loop {
            let after = Seq(born.at.unwrap_or(0) as u64);
            if after < through {
                stretches.push(Stretch { key: born.key, seal: born.seal.into(), after, through });
                through = after;
            }
            let Some(parent) = born.parent else { break };
            let found = above(parent).map_err(from_sqlite)?.filter(|_| parent < born.key);
            born = found
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
