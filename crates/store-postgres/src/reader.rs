//! Reads of the log. Every event is verified against its checksum before it is returned, and a read of the whole log finds
//! positions that are missing: a lost row is damage and not a shorter history.

use polis_domain::{Recorded, Seq, SocietyId, ThreadId, Timestamp};
use polis_ports::{ForkOrigin, LogError, SocietyListing, StoredSociety, ThreadListing, ThreadRange};
use polis_stored_event::{Original, StoredEvent, body, damaged};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};
use uuid::Uuid;

use crate::connection::{Param, param};
use crate::error::from_column;
use crate::pool::Pool;
use crate::schema::key;
use crate::sql;

/// A value of a row.
pub(crate) fn column<'row, T: FromSql<'row>>(row: &'row Row, at: usize) -> Result<T, LogError> {
    row.try_get(at).map_err(from_column)
}

/// A name in a row.
pub(crate) fn name(bytes: &[u8]) -> Result<&str, LogError> {
    std::str::from_utf8(bytes).map_err(|_| LogError::Damaged("a name in the database is no text".to_owned()))
}

/// The name of a society as a parameter.
pub(crate) fn named(society: &SocietyId) -> Param {
    param(society.as_str().as_bytes().to_vec(), Type::BYTEA)
}

/// A position as a parameter; one beyond what can be stored as the last one.
pub(crate) fn position(seq: Seq) -> Param {
    param(i64::try_from(seq.0).unwrap_or(i64::MAX), Type::INT8)
}

/// A limit as a parameter.
pub(crate) fn limit(most: usize) -> Param {
    param(i64::try_from(most).unwrap_or(i64::MAX), Type::INT8)
}

pub(crate) fn seq(stored: i64) -> Seq {
    Seq(stored as u64)
}

/// The last position of a society; 0 if it has no events.
pub(crate) async fn head(pool: &Pool, society: &SocietyId) -> Result<Seq, LogError> {
    let rows = pool.query(sql::HEAD, &[named(society)]).await?;
    rows.first().map_or(Ok(Seq(0)), |row| column(row, 0).map(seq))
}

pub(crate) async fn read(pool: &Pool, society: &SocietyId, after: Seq, most: usize) -> Result<Vec<Recorded>, LogError> {
    let rows = pool.query(&sql::read(), &[named(society), position(after), limit(most)]).await?;
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let head = seq(column(first, 8)?);
    let found = match column::<Option<i64>>(first, 0)? {
        None => Vec::new(),
        Some(_) => rows.iter().map(event).collect::<Result<Vec<_>, _>>()?,
    };
    let mut last = after;
    for recorded in &found {
        if recorded.seq != last.next() {
            return Err(damaged(society, last.next(), "it is missing"));
        }
        last = recorded.seq;
    }
    if found.len() < most && last < head {
        return Err(damaged(society, last.next(), "it is missing"));
    }
    Ok(found)
}

pub(crate) async fn read_thread(
    pool: &Pool,
    society: &SocietyId,
    thread: &ThreadId,
    range: ThreadRange,
) -> Result<Vec<Recorded>, LogError> {
    let newest = range.oldest == usize::MAX;
    let most = if newest { range.newest } else { range.oldest };
    if most == 0 || range.newest == 0 || range.after >= range.through {
        return Ok(Vec::new());
    }
    let thread = param(key(thread.as_str()), Type::UUID);
    let params = [named(society), thread, position(range.after), position(range.through), limit(most)];
    let rows = pool.query(&sql::read_thread(newest), &params).await?;
    let mut found = rows.iter().map(event).collect::<Result<Vec<_>, _>>()?;
    if newest {
        found.reverse();
    }
    found.drain(..found.len().saturating_sub(range.newest));
    Ok(found)
}

pub(crate) async fn threads(pool: &Pool, society: &SocietyId, listing: &ThreadListing) -> Result<Vec<ThreadId>, LogError> {
    let before = listing.before.as_ref().map(|thread| key(thread.as_str()));
    let prefix = param(listing.prefix.clone().into_bytes(), Type::BYTEA);
    let params = [named(society), prefix, param(before, Type::UUID), limit(listing.limit)];
    let rows = pool.query(&sql::threads(), &params).await?;
    rows.iter().map(|row| name(column(row, 0)?).map(ThreadId::from)).collect()
}

/// Whether the log has events up to a position under some of these threads.
pub(crate) async fn has_threads(pool: &Pool, society: &SocietyId, threads: Vec<Uuid>, through: Seq) -> Result<bool, LogError> {
    let rows = pool.query(&sql::has_threads(), &[named(society), param(threads, Type::UUID_ARRAY), position(through)]).await?;
    rows.first().map_or(Ok(false), |row| column(row, 0))
}

/// The parameters of [`sql::whole`].
pub(crate) fn through(society: &SocietyId, through: Seq) -> [Param; 2] {
    [named(society), position(through)]
}

/// The position in the answer of [`sql::whole`].
pub(crate) fn whole(rows: &[Row]) -> Result<Seq, LogError> {
    rows.first().map_or(Ok(Seq(0)), |row| {
        let stored = Stored::of(row)?;
        stored.event.verify(&stored.society, stored.thread.as_ref())?;
        Ok(stored.event.seq)
    })
}

pub(crate) async fn societies(pool: &Pool) -> Result<Vec<SocietyId>, LogError> {
    let rows = pool.query(sql::SOCIETIES, &[]).await?;
    rows.iter().map(|row| name(column(row, 0)?).map(SocietyId::from)).collect()
}

pub(crate) async fn list_societies(pool: &Pool, listing: SocietyListing) -> Result<Vec<StoredSociety>, LogError> {
    let after = listing.after.map(|after| after.as_str().as_bytes().to_vec());
    let rows = pool.query(sql::LIST_SOCIETIES, &[param(after, Type::BYTEA), limit(listing.limit)]).await?;
    let society = |row: &Row| {
        let origin = column::<Option<&[u8]>>(row, 2)?
            .map(|from| Ok::<_, LogError>(ForkOrigin { from: name(from)?.into(), at: seq(column(row, 3)?) }));
        Ok(StoredSociety { name: name(column(row, 0)?)?.into(), head: seq(column(row, 1)?), origin: origin.transpose()? })
    };
    rows.iter().map(society).collect()
}

pub(crate) async fn origin(pool: &Pool, society: &SocietyId) -> Result<Option<ForkOrigin>, LogError> {
    let rows = pool.query(sql::ORIGIN, &[named(society)]).await?;
    rows.first().map(|row| Ok(ForkOrigin { from: name(column(row, 0)?)?.into(), at: seq(column(row, 1)?) })).transpose()
}

fn event(row: &Row) -> Result<Recorded, LogError> {
    let Stored { event, thread, society } = Stored::of(row)?;
    event.decode(&society, thread)
}

/// An event as it was found, with the first name of its society.
pub(crate) struct Stored<'row> {
    pub(crate) event: StoredEvent<'row>,
    pub(crate) thread: Option<ThreadId>,
    pub(crate) society: SocietyId,
}

impl<'row> Stored<'row> {
    /// The event in a row of `seq, at, thread, name, version, crc, body, society`.
    pub(crate) fn of(row: &'row Row) -> Result<Self, LogError> {
        let society = SocietyId::from(name(column(row, 7)?)?);
        let seq = seq(column(row, 0)?);
        let thread = column::<Option<&[u8]>>(row, 3)?.map(|bytes| name(bytes).map(ThreadId::from)).transpose()?;
        if thread.is_none() && column::<Option<Uuid>>(row, 2)?.is_some() {
            return Err(damaged(&society, seq, "its thread is missing"));
        }
        let version = column::<i32>(row, 4)? as u32;
        let (original, packed) = Original::split(version, column(row, 6)?)
            .ok_or_else(|| damaged(&society, seq, "what is left of its original is cut"))?;
        let event = StoredEvent {
            seq,
            at: Timestamp(column::<i64>(row, 1)? as u64),
            version,
            crc: column::<i32>(row, 5)? as u32,
            original,
            body: body::unpack(packed).map_err(|what| damaged(&society, seq, &what))?,
        };
        Ok(Self { event, thread, society })
    }
}
