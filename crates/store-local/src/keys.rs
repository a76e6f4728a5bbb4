//! The names and keys of threads, and the last position of a society, as the tables have them.

use std::collections::HashMap;

use polis_domain::{Seq, ThreadId};
use polis_ports::LogError;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::from_sqlite;
use crate::lineage::Stretch;
use crate::row;

/// How many names a connection caches.
pub(crate) const MAX_CACHED_NAMES: usize = 16 * 1024;

/// Thread names by key, cached.
#[derive(Default)]
pub(crate) struct ThreadNames(HashMap<i64, ThreadId>);

impl ThreadNames {
    pub(crate) fn get(&mut self, connection: &Connection, key: i64) -> Result<ThreadId, LogError> {
        if let Some(name) = self.0.get(&key) {
            return Ok(name.clone());
        }
        let find = || {
            connection
                .prepare_cached("SELECT name FROM threads WHERE key = ?1")?
                .query_row(params![key], |row| row.get::<_, String>(0))
                .optional()
        };
        let name = find()
            .map_err(from_sqlite)?
            .ok_or_else(|| LogError::Damaged(format!("the name of thread number {key} is missing")))?;
        let name = ThreadId::from(name);
        if self.0.len() >= MAX_CACHED_NAMES {
            self.0.clear();
        }
        self.0.insert(key, name.clone());
        Ok(name)
    }
}

/// The key of a thread, if it has events.
pub(crate) fn thread_key(connection: &Connection, society: i64, thread: &ThreadId) -> Result<Option<i64>, LogError> {
    let find = || {
        connection
            .prepare_cached("SELECT key FROM threads WHERE society = ?1 AND name = ?2")?
            .query_row(params![society, thread.as_str()], |row| row.get(0))
            .optional()
    };
    find().map_err(from_sqlite)
}

/// The last position of a society, by its own stretch.
pub(crate) fn last_seq(connection: &Connection, own: &Stretch) -> Result<Seq, LogError> {
    last_seq_after(connection, own.key, own.after)
}

/// The last position of a society whose own events come after this one.
pub(crate) fn last_seq_after(connection: &Connection, key: i64, after: Seq) -> Result<Seq, LogError> {
    let find = || {
        connection
            .prepare_cached("SELECT max(id) FROM events WHERE id > ?1 AND id <= ?2")?
            .query_row(params![row::id(key, after), row::id(key, Seq(u64::MAX))], |row| row.get(0))
    };
    let last: Option<i64> = find().map_err(from_sqlite)?;
    Ok(last.map_or(after, |id| row::parts(id).1))
}
