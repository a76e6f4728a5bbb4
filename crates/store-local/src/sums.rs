//! Checksums over the indexes, to verify that an index lists what it should without reading the rows.
//!
//! Every event has its own checksum, but an index that has lost or changed an entry silently hides events. The sums are
//! updated with each commit, stored in the `witness` file at a clean stop, and compared with the indexes at the next opening.
//! They do not depend on the order of the rows.

use polis_ports::LogError;
use rusqlite::Connection;

use crate::error::from_sqlite;
use crate::extent::Extent;
use crate::segment;

/// The checksums of the indexes of events and threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sums {
    /// Over the index of events by thread, and that of segments.
    pub(crate) events: u64,
    /// Over the index of thread names.
    pub(crate) threads: u64,
}

impl Sums {
    /// Adds an event of a thread.
    pub(crate) fn add_event(&mut self, thread: i64, id: i64) {
        self.events = self.events.wrapping_add(mixed(thread as u64, id as u64));
    }

    /// Takes away an event of a thread.
    pub(crate) fn remove_event(&mut self, thread: i64, id: i64) {
        self.events = self.events.wrapping_sub(mixed(thread as u64, id as u64));
    }

    /// Adds a thread of a segment, with its first event there.
    pub(crate) fn add_sealed(&mut self, thread: i64, first: i64, segment: i64) {
        self.events = self.events.wrapping_add(mixed(mixed(thread as u64, first as u64), segment as u64));
    }

    /// Adds a thread.
    pub(crate) fn add_thread(&mut self, society: i64, name: &str, key: i64) {
        let name = u64::from(crc32fast::hash(name.as_bytes())) << 32 | name.len() as u64;
        self.threads = self.threads.wrapping_add(mixed(mixed(society as u64, name), key as u64));
    }

    /// The sums of two disjoint sets of rows.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { events: self.events.wrapping_add(other.events), threads: self.threads.wrapping_add(other.threads) }
    }

    /// Computes the sums from the indexes, limited to the rows of `extent` if it is given.
    pub(crate) fn of_indexes(connection: &Connection, extent: Option<&Extent>) -> Result<Self, LogError> {
        let events = "SELECT thread, id FROM events INDEXED BY events_by_thread WHERE thread IS NOT NULL";
        let threads = "SELECT society, name, key FROM threads INDEXED BY sqlite_autoindex_threads_1";
        let mut sums = Self::default();
        each(connection, events, |row| {
            let (thread, id) = (row.get(0)?, row.get(1)?);
            if extent.is_none_or(|extent| extent.has_event(id)) {
                sums.add_event(thread, id);
            }
            Ok(())
        })?;
        if segment::exist(connection)? {
            each(connection, "SELECT thread, first, segment FROM segment_threads", |row| {
                sums.add_sealed(row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(())
            })?;
        }
        sums.read_threads(connection, threads, extent)?;
        Ok(sums)
    }

    /// Adds the threads of the table itself, without its index.
    pub(crate) fn add_thread_table(&mut self, connection: &Connection) -> Result<(), LogError> {
        self.read_threads(connection, "SELECT society, name, key FROM threads NOT INDEXED", None)
    }

    fn read_threads(&mut self, connection: &Connection, sql: &str, extent: Option<&Extent>) -> Result<(), LogError> {
        each(connection, sql, |row| {
            let (name, key) = (row.get_ref(1)?.as_str()?, row.get(2)?);
            if extent.is_none_or(|extent| extent.has_thread(key)) {
                self.add_thread(row.get(0)?, name, key);
            }
            Ok(())
        })
    }
}

/// A checksum over the table of societies and over its index of names. There are few rows.
pub(crate) fn of_societies(connection: &Connection) -> Result<u64, LogError> {
    let table =
        "SELECT key, name, coalesce(seal, ''), coalesce(parent, -1), coalesce(at, -1) FROM societies NOT INDEXED ORDER BY key";
    let index = "SELECT key, name FROM societies INDEXED BY sqlite_autoindex_societies_1 ORDER BY name";
    let mut table_hash = crc32fast::Hasher::new();
    each(connection, table, |row| {
        for number in [0, 3, 4] {
            table_hash.update(&row.get::<_, i64>(number)?.to_le_bytes());
        }
        for text in [1, 2] {
            let text = row.get_ref(text)?.as_str()?;
            table_hash.update(&(text.len() as u64).to_le_bytes());
            table_hash.update(text.as_bytes());
        }
        Ok(())
    })?;
    let mut index_hash = crc32fast::Hasher::new();
    each(connection, index, |row| {
        index_hash.update(&row.get::<_, i64>(0)?.to_le_bytes());
        index_hash.update(row.get_ref(1)?.as_str()?.as_bytes());
        Ok(())
    })?;
    Ok(u64::from(table_hash.finalize()) << 32 | u64::from(index_hash.finalize()))
}

fn each(
    connection: &Connection,
    sql: &str,
    mut take: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<()>,
) -> Result<(), LogError> {
    let mut statement = connection.prepare(sql).map_err(from_sqlite)?;
    let mut rows = statement.query([]).map_err(from_sqlite)?;
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        take(row).map_err(from_sqlite)?;
    }
    Ok(())
}

/// Mixes two numbers so that small differences change the result a lot (splitmix64).
fn mixed(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(b).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
