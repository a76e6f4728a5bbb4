//! Snapshots and their idle entries. A save is one transaction, so there is never a snapshot without its entries.

use std::collections::BTreeMap;
use std::sync::Arc;

use polis_domain::{IdleKey, Seq, SocietyId};
use polis_ports::{IdleListed, IdleListing, LogError, Snapshot, StoredEntry};
use polis_stored_event::idle::{ListColumns, checksum};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::connection::{Connection, Param, param, values};
use crate::error::from_postgres;
use crate::pool::{Pool, Work};
use crate::reader::{self, column, limit, name, named, position, seq};
use crate::schema::key;
use crate::sql;

/// The society's snapshot. One that is damaged counts as none.
pub(crate) async fn load(pool: &Pool, society: &SocietyId) -> Result<Option<Snapshot>, LogError> {
    let rows = pool.query(sql::LOAD_SNAPSHOT, &[named(society)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (version, crc): (i64, i32) = (column(row, 1)?, column(row, 2)?);
    let found = Snapshot { seq: seq(column(row, 0)?), version: version as u32, body: column(row, 3)? };
    Ok((crc32fast::hash(&found.body) == crc as u32).then_some(found))
}

/// A snapshot with its entries, serialised.
pub(crate) struct Serialised {
    pub(crate) seq: Seq,
    pub(crate) version: u32,
    pub(crate) after: Option<Seq>,
    pub(crate) body: Vec<u8>,
    pub(crate) entries: Vec<StoredEntry>,
    /// How many erasures of other societies the state has followed.
    pub(crate) erasures: Option<i64>,
}

/// Saves a snapshot unless there is a newer one.
pub(crate) async fn save(pool: &Pool, society: &SocietyId, snapshot: Serialised) -> Result<(), LogError> {
    let Serialised { seq, version, after, body, entries, erasures } = snapshot;
    let crc = crc32fast::hash(&body) as i32;
    let (version, crc) = (param(i64::from(version), Type::INT8), param(crc, Type::INT4));
    let values = [position(seq), version, crc, param(body, Type::BYTEA), param(erasures, Type::INT8)];
    pool.run(&Save { society: named(society), seq, after, snapshot: values, entries: columns(entries) }).await
}

/// A snapshot that is being saved.
struct Save {
    society: Param,
    seq: Seq,
    after: Option<Seq>,
    snapshot: [Param; 5],
    entries: [Param; 11],
}

impl Work for Save {
    type Output = ();

    async fn run(&self, connection: &mut Connection) -> Result<(), LogError> {
        let (schema, most) = (connection.schema().to_owned(), connection.limit());
        let transaction = connection.client.transaction().await.map_err(from_postgres)?;
        let query = async |statement: &str, params: &[&Param]| {
            let params = values(params.iter().copied());
            transaction.query_typed(&sql::in_schema(statement, &schema), &params).await.map_err(from_postgres)
        };
        let steps = async {
            let rows = query(sql::OF_SNAPSHOT, &[&self.society]).await?;
            let of = rows.first().filter(|row| row.try_get(1).is_ok_and(|head: i64| head as u64 >= self.seq.0));
            let Some(of) = of else {
                return Err(LogError::Failed("the log has no event that the snapshot could end with".into()));
            };
            let id = param(column::<i64>(of, 0)?, Type::INT8);
            let old = query(sql::LOCK_SNAPSHOT, &[&id]).await?;
            let old = old.first().map(|row| column(row, 0).map(seq)).transpose()?;
            if old.is_some_and(|old| old > self.seq) {
                return Ok(());
            }
            match self.after {
                None => drop(query(sql::CLEAR_IDLE, &[&id]).await?),
                Some(_) if self.after != old => {
                    return Err(LogError::Failed("the snapshot that this one goes on from is not there".into()));
                }
                Some(_) => {}
            }
            let snapshot: Vec<&Param> = [&id].into_iter().chain(&self.snapshot).collect();
            query(sql::SAVE_SNAPSHOT, &snapshot).await?;
            let entries: Vec<&Param> = [&id].into_iter().chain(&self.entries).collect();
            query(sql::SAVE_IDLE, &entries).await?;
            Ok(())
        };
        let late = |_| LogError::Failed(format!("the database did not answer within {most:?}").into());
        tokio::time::timeout(most, steps).await.map_err(late)??;
        transaction.commit().await.map_err(from_postgres)
    }
}

/// The parameters of [`sql::SAVE_IDLE`] after the first.
fn columns(entries: Vec<StoredEntry>) -> [Param; 11] {
    // One statement cannot write a row twice.
    let entries: BTreeMap<Arc<str>, StoredEntry> = entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect();
    let entries: Vec<StoredEntry> = entries.into_values().collect();
    let each = |of: fn(&StoredEntry) -> Option<Vec<u8>>| param(entries.iter().map(of).collect::<Vec<_>>(), Type::BYTEA_ARRAY);
    let keys: Vec<Uuid> = entries.iter().map(|entry| key(&entry.name)).collect();
    let parents: Vec<Option<Uuid>> =
        entries.iter().map(|entry| entry.message.as_ref().map(|(parent, _)| key(parent.as_str()))).collect();
    let messages: Vec<Option<i64>> =
        entries.iter().map(|entry| entry.message.as_ref().map(|(_, message)| i64::from(*message))).collect();
    let lists: Vec<_> = entries.iter().map(|entry| ListColumns::of(entry.list)).collect();
    let crcs: Vec<i32> = entries.iter().map(|entry| checksum(entry) as i32).collect();
    [
        param(keys, Type::UUID_ARRAY),
        each(|entry| Some(entry.name.as_bytes().to_vec())),
        param(parents, Type::UUID_ARRAY),
        each(|entry| entry.message.as_ref().map(|(parent, _)| parent.as_str().as_bytes().to_vec())),
        param(messages, Type::INT8_ARRAY),
        each(|entry| entry.person.as_ref().map(|person| person.as_str().as_bytes().to_vec())),
        param(lists.iter().map(|list| list.pinned).collect::<Vec<_>>(), Type::BOOL_ARRAY),
        param(lists.iter().map(|list| list.active).collect::<Vec<_>>(), Type::INT8_ARRAY),
        param(lists.iter().map(|list| list.kind.map(i16::from)).collect::<Vec<_>>(), Type::INT2_ARRAY),
        param(crcs, Type::INT4_ARRAY),
        each(|entry| Some(entry.body.clone())),
    ]
}

/// The entries that these keys find, of a snapshot at `at` or later. An entry that is missing although the log has a thread of its
/// name is lost.
pub(crate) async fn find(pool: &Pool, society: &SocietyId, at: Seq, keys: &[IdleKey]) -> Result<Vec<StoredEntry>, LogError> {
    let (mut wanted, mut parents, mut messages) = (Vec::new(), Vec::new(), Vec::new());
    for idle in keys {
        match idle {
            IdleKey::Name(name) => wanted.push(key(name)),
            IdleKey::Message(thread, message) => {
                parents.push(key(thread.as_str()));
                messages.push(i64::from(*message));
            }
        }
    }
    let params = [
        named(society),
        param(wanted.clone(), Type::UUID_ARRAY),
        param(parents, Type::UUID_ARRAY),
        param(messages, Type::INT8_ARRAY),
    ];
    let rows = pool.query(&sql::find_idle(), &params).await?;
    let there = rows.first().map(|row| column(row, 10).map(seq)).transpose()?;
    if there.is_none_or(|there| there < at) {
        return Err(LogError::Failed("the snapshot of the society is not there".into()));
    }
    let mut found = Vec::new();
    for row in &rows {
        if let Some(key) = column::<Option<Uuid>>(row, 9)? {
            found.push(entry(row)?);
            wanted.retain(|wanted| *wanted != key);
        }
    }
    if !wanted.is_empty() && reader::has_threads(pool, society, wanted, at).await? {
        return Err(lost());
    }
    Ok(found)
}

/// The entries of one list.
pub(crate) async fn list(pool: &Pool, society: &SocietyId, listing: &IdleListing) -> Result<Vec<StoredEntry>, LogError> {
    let IdleListing { person, of, limit: most } = listing;
    let by_name = |name: &Arc<str>| [param(name.as_bytes().to_vec(), Type::BYTEA), param(None::<i64>, Type::INT8)];
    let (which, [after, active]) = match of {
        IdleListed::Conversations(place) => {
            (sql::List::Conversations, [param(place.pinned, Type::BOOL), position(place.active)])
        }
        IdleListed::Terminated(name) => (sql::List::Terminated, by_name(name)),
        IdleListed::All(name) => (sql::List::All, by_name(name)),
    };
    let theirs = person.as_ref().map(|person| person.as_str().as_bytes().to_vec());
    let params = [named(society), limit(*most), param(theirs, Type::BYTEA), after, active];
    let rows = pool.query(&sql::list_idle(&which, person.is_some()), &params).await?;
    rows.iter().map(entry).collect()
}

/// The entry in a row of `name, parent, message, person, pinned, active, kind, crc, body`.
fn entry(row: &Row) -> Result<StoredEntry, LogError> {
    let text = |at: usize| column::<Option<&[u8]>>(row, at)?.map(name).transpose();
    let kind = column::<Option<i16>>(row, 6)?.and_then(|kind| u8::try_from(kind).ok());
    let list = ListColumns { kind, pinned: column(row, 4)?, active: column(row, 5)? }.list();
    let message = column::<Option<i64>>(row, 2)?.map(|message| message as u32);
    let found = StoredEntry {
        name: name(column(row, 0)?)?.into(),
        message: text(1)?.map(Into::into).zip(message),
        person: text(3)?.map(Into::into),
        list,
        body: column(row, 8)?,
    };
    match checksum(&found) == column::<i32>(row, 7)? as u32 {
        true => Ok(found),
        false => Err(lost()),
    }
}

/// Entries are not as they were written, or are missing.
fn lost() -> LogError {
    LogError::Failed("parts of the snapshot are lost; the state is made anew from the log".into())
}
