//! Redaction: what an erasure leaves takes the place of events, in one transaction, also of those that a fork shares.
//!
//! A redacted event keeps its position, thread, time and whether an append ended with it; before its body it has the digest of the
//! original, so that the hash chain stays what it was. The old rows are dead after that, and vacuumed. What the server has of them
//! in its own journal, in archives and standbys ends as those are recycled.

use std::collections::BTreeMap;

use polis_domain::{Recorded, Seq, SocietyId};
use polis_ports::LogError;
use polis_stored_event::damaged;
use tokio_postgres::types::Type;

use crate::connection::{Connection, Param, param, values};
use crate::error::from_postgres;
use crate::placement::Claims;
use crate::pool::{Pool, Work};
use crate::reader::{Stored, column, name, named, seq};
use crate::sql;
use crate::writer::names;

/// Redacts events of a society.
pub(crate) async fn redact(
    pool: &Pool,
    claims: &Claims,
    node: &str,
    society: &SocietyId,
    events: &[Recorded],
) -> Result<(), LogError> {
    let body = |recorded: &Recorded| {
        let body = serde_json::to_vec(&recorded.event).map_err(|error| LogError::Failed(error.into()))?;
        Ok((recorded.seq, body))
    };
    let bodies = events.iter().map(body).collect::<Result<BTreeMap<_, _>, LogError>>()?;
    let positions: Vec<_> = bodies.keys().map(|seq| i64::try_from(seq.0).unwrap_or(i64::MAX)).collect();
    let redact = Redact {
        society: society.clone(),
        lock: names(std::iter::once(society)),
        find: [named(society), param(positions, Type::INT8_ARRAY)],
        bodies,
        owner: claims.epoch(society).map(|_| node.to_owned()),
    };
    pool.run(&redact).await?
}

/// A redaction that is being made.
struct Redact {
    society: SocietyId,
    lock: Param,
    find: [Param; 2],
    bodies: BTreeMap<Seq, Vec<u8>>,
    /// The node that must have the lease; none if nobody may have one.
    owner: Option<String>,
}

impl Work for Redact {
    type Output = Result<(), LogError>;

    async fn run(&self, connection: &mut Connection) -> Result<Self::Output, LogError> {
        let (schema, most) = (connection.schema().to_owned(), connection.limit());
        let transaction = connection.client.transaction().await.map_err(from_postgres)?;
        let query = async |statement: &str, params: &[Param]| {
            transaction.query_typed(&sql::in_schema(statement, &schema), &values(params)).await.map_err(from_postgres)
        };
        let steps = async {
            let locked = query(sql::LOCK, std::slice::from_ref(&self.lock)).await?;
            let Some(of) = locked.first() else {
                return Ok(Err(LogError::Failed(format!("there is no society `{}`", self.society).into())));
            };
            let (head, owner): (_, Option<String>) = (seq(column(of, 2)?), column(of, 4)?);
            let is_leased: bool = column(of, 5)?;
            if owner != self.owner || owner.is_some() && !is_leased {
                return Ok(Err(LogError::Conflict { society: self.society.clone(), expected: head, actual: head }));
            }
            if self.bodies.keys().any(|seq| *seq >= head) {
                return Ok(Err(LogError::Failed("the last event of a society is not redacted".into())));
            }
            let rows = query(&sql::events_to_redact(), &self.find).await?;
            let (mut societies, mut seqs, mut versions, mut crcs, mut bodies) = (vec![], vec![], vec![], vec![], vec![]);
            for row in &rows {
                let Stored { event, thread, society } = Stored::of(row)?;
                event.verify(&society, thread.as_ref())?;
                let body = self
                    .bodies
                    .get(&event.seq)
                    .ok_or_else(|| LogError::Damaged("an event came that was not asked for".to_owned()))?;
                let redacted = event.redacted(body, &society, thread.as_ref());
                societies.push(column::<i64>(row, 8)?);
                seqs.push(event.seq.0 as i64);
                versions.push(redacted.version as i32);
                crcs.push(redacted.crc as i32);
                bodies.push(redacted.packed().into_owned());
            }
            if let Some(missing) = self.bodies.keys().find(|seq| !seqs.contains(&(seq.0 as i64))) {
                return Ok(Err(damaged(&self.society, *missing, "it is missing")));
            }
            let columns = [
                param(societies, Type::INT8_ARRAY),
                param(seqs, Type::INT8_ARRAY),
                param(versions, Type::INT4_ARRAY),
                param(crcs, Type::INT4_ARRAY),
                param(bodies, Type::BYTEA_ARRAY),
            ];
            query(sql::REDACT, &columns).await?;
            Ok(Ok(()))
        };
        let late = |_| LogError::Failed(format!("the database did not answer within {most:?}").into());
        let done = tokio::time::timeout(most, steps).await.map_err(late)??;
        match done {
            Ok(()) => transaction.commit().await.map_err(from_postgres)?,
            Err(_) => transaction.rollback().await.map_err(from_postgres)?,
        }
        Ok(done)
    }
}

/// Makes sure that no state of another society is used that may have what was redacted: snapshots from before do not count any more, and those
/// that no other node uses are removed, with the rows that nobody sees. Societies of this log are to be folded anew next.
pub(crate) async fn forget(pool: &Pool, claims: &Claims, node: &str, society: &SocietyId) -> Result<(), LogError> {
    let of = [named(society), param(node.to_owned(), Type::TEXT)];
    for row in pool.query(&sql::outdate(), &of).await? {
        if column(&row, 2)? {
            claims.follow(&SocietyId::from(name(column(&row, 0)?)?), column(&row, 1)?);
        }
    }
    for table in ["snapshots", "idle"] {
        pool.query(&sql::forget(table), &of).await?;
    }
    pool.vacuum(sql::VACUUM).await;
    Ok(())
}
