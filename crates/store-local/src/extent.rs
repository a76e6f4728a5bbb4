//! The societies of a database, and the rows that existed at its opening.

use std::collections::HashMap;

use polis_domain::{Seq, SocietyId};
use polis_ports::LogError;
use rusqlite::{Connection, params};

use crate::error::from_sqlite;
use crate::{row, schema};

/// The rows that existed at the opening.
pub(crate) struct Extent {
    pub(crate) societies: HashMap<i64, SocietyStart>,
    /// The last event of each society.
    pub(crate) heads: HashMap<i64, Seq>,
    /// The last key of a thread.
    threads: i64,
}

impl Extent {
    pub(crate) fn of(connection: &Connection, version: u32) -> Result<Self, LogError> {
        let societies = societies(connection, version)?;
        let mut heads = HashMap::with_capacity(societies.len());
        for (key, start) in &societies {
            let (low, high) = (row::id(*key, start.after), row::id(*key, Seq(u64::MAX)));
            let find = || {
                let mut statement = connection.prepare_cached("SELECT max(id) FROM events WHERE id > ?1 AND id <= ?2")?;
                statement.query_row(params![low, high], |row| row.get::<_, Option<i64>>(0))
            };
            let last = find().map_err(from_sqlite)?;
            heads.insert(*key, last.map_or(start.after, |id| row::parts(id).1));
        }
        let last = connection.query_row("SELECT coalesce(max(key), 0) FROM threads", [], |row| row.get(0));
        Ok(Self { societies, heads, threads: last.map_err(from_sqlite)? })
    }

    /// Whether an event existed.
    pub(crate) fn has_event(&self, id: i64) -> bool {
        let (society, seq) = row::parts(id);
        self.heads.get(&society).is_some_and(|head| seq <= *head)
    }

    /// Whether a thread existed.
    pub(crate) fn has_thread(&self, key: i64) -> bool {
        key <= self.threads
    }
}

/// Where the own events of a society start.
pub(crate) struct SocietyStart {
    pub(crate) checksum_name: SocietyId,
    pub(crate) after: Seq,
    pub(crate) parent: Option<i64>,
}

pub(crate) fn societies(connection: &Connection, version: u32) -> Result<HashMap<i64, SocietyStart>, LogError> {
    let sql = match schema::has_forks(version) {
        true => "SELECT key, coalesce(seal, name), parent, coalesce(at, 0) FROM societies",
        false => "SELECT key, name, NULL, 0 FROM societies",
    };
    let mut statement = connection.prepare(sql).map_err(from_sqlite)?;
    let start = |row: &rusqlite::Row<'_>| {
        let after = Seq(row.get::<_, i64>(3)? as u64);
        Ok((row.get(0)?, SocietyStart { checksum_name: row.get::<_, String>(1)?.into(), after, parent: row.get(2)? }))
    };
    let found = statement.query_map([], start).map_err(from_sqlite)?;
    found.collect::<Result<_, _>>().map_err(from_sqlite)
}
