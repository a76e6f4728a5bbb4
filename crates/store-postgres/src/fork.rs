//! Forks and rewinds: one transaction, in which the rows of the societies are locked.

use polis_domain::{Seq, SocietyId};
use polis_ports::{Fork, LogError};
use polis_stored_event::{Batch, body};
use rustc_hash::FxHashMap;
use tokio_postgres::types::Type;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

use crate::connection::{Connection, Param, param, values};
use crate::error::from_postgres;
use crate::reader::{self, column, name, named, position, seq};
use crate::schema::key;
use crate::sql;
use crate::writer::{Writer, names};

impl Writer {
    /// Creates a fork whose first event is in the batch.
    pub(crate) async fn fork(&mut self, fork: &Fork, first: &Batch) -> Result<(), LogError> {
        let touched: Vec<SocietyId> = [&fork.from, &fork.to].into_iter().chain(&fork.aside).cloned().collect();
        self.connect().await?;
        self.settle(touched.iter()).await?;
        let node = self.node.clone();
        let connection = self.connection()?;
        let schema = connection.schema().to_owned();
        // Names change hands, so what is known of them does not hold any more.
        let done = {
            let limit = connection.limit();
            match tokio::time::timeout(limit, in_transaction(connection, &schema, &node, fork, first)).await {
                Ok(done) => done,
                Err(_) => Err(LogError::Failed(format!("the database did not answer within {limit:?}").into())),
            }
        };
        match done {
            Ok(refusal) => {
                touched.iter().for_each(|society| self.forget(society));
                if refusal.is_none() && fork.aside.is_some() {
                    self.claims.forget(&fork.to);
                }
                refusal.map_or(Ok(()), Err)
            }
            Err(error) => {
                touched.iter().for_each(|society| self.forget(society));
                self.unsettled_forks.extend(touched);
                self.disconnect();
                Err(error)
            }
        }
    }
}

/// Commits the fork, or rolls back and gives the reason.
async fn in_transaction(
    connection: &mut Connection,
    schema: &str,
    node: &str,
    fork: &Fork,
    first: &Batch,
) -> Result<Option<LogError>, LogError> {
    let transaction = connection.client.transaction().await.map_err(from_postgres)?;
    let statements = Statements { transaction: &transaction, schema };
    if let Some(refusal) = write(&statements, node, fork, first).await? {
        transaction.rollback().await.map_err(from_postgres)?;
        return Ok(Some(refusal));
    }
    transaction.commit().await.map_err(from_postgres)?;
    Ok(None)
}

/// The statements of a transaction.
struct Statements<'open> {
    transaction: &'open Transaction<'open>,
    schema: &'open str,
}

impl Statements<'_> {
    async fn query(&self, statement: &str, params: &[Param]) -> Result<Vec<Row>, LogError> {
        let statement = sql::in_schema(statement, self.schema);
        self.transaction.query_typed(&statement, &values(params)).await.map_err(from_postgres)
    }
}

/// A society whose row is locked.
struct Locked {
    head: Seq,
    epoch: i64,
    /// Whether another node has a lease on it.
    is_anothers: bool,
}

/// Writes the fork; gives the reason if it cannot be.
async fn write(statements: &Statements<'_>, node: &str, fork: &Fork, first: &Batch) -> Result<Option<LogError>, LogError> {
    let Fork { from, at, to, aside, .. } = fork;
    let mut locked: FxHashMap<SocietyId, Locked> = FxHashMap::default();
    for row in statements.query(sql::LOCK, &[names([from, to].into_iter().chain(aside))]).await? {
        let owner: Option<String> = column(&row, 4)?;
        let is_anothers = column(&row, 5)? && owner.is_some_and(|owner| owner != node);
        let found = Locked { head: seq(column(&row, 2)?), epoch: column(&row, 3)?, is_anothers };
        locked.insert(name(column(&row, 0)?)?.into(), found);
    }
    let existing = |society: &SocietyId| locked.get(society).filter(|found| found.head > Seq(0));
    if existing(from).is_none() {
        return Ok(Some(LogError::Failed(format!("there is no society `{from}`").into())));
    }
    let whole = reader::whole(&statements.query(&sql::whole(), &reader::through(from, *at)).await?)?;
    if whole != *at || *at == Seq(0) {
        return Ok(Some(LogError::Failed(format!("no append of `{from}` ended at {at}").into())));
    }
    let free = aside.as_ref().unwrap_or(to);
    let (taken, holder) = (existing(free), existing(to));
    if taken.is_some() || aside.is_some() && holder.is_none() {
        let actual = taken.map_or(Seq(0), |taken| taken.head);
        return Ok(Some(LogError::Conflict { society: free.clone(), expected: Seq(0), actual }));
    }
    if let Some(holder) = holder.filter(|holder| holder.is_anothers) {
        return Ok(Some(LogError::Conflict { society: to.clone(), expected: Seq(0), actual: holder.head }));
    }
    let parents = statements.query(&sql::ancestor(), &[named(from), position(*at)]).await?;
    let parent: i64 = column(parents.first().ok_or_else(|| missing(from, *at))?, 0)?;
    if let Some(aside) = aside {
        statements.query(sql::REMOVE_EMPTY, &[named(aside)]).await?;
        statements.query(sql::RENAME, &[named(to), named(aside)]).await?;
    }
    let epoch = locked.get(to).map_or(0, |old| old.epoch + 1);
    let values = [named(to), param(parent, Type::INT8), position(*at), param(epoch, Type::INT8)];
    let made = statements.query(sql::FORK, &values).await?;
    // Another owner created a society of that name meanwhile.
    let Some(made) = made.first() else {
        return Ok(Some(LogError::Conflict { society: to.clone(), expected: Seq(0), actual: Seq(1) }));
    };
    add_first(statements, column(made, 0)?, at.next(), first).await?;
    Ok(None)
}

async fn add_first(statements: &Statements<'_>, society: i64, at: Seq, first: &Batch) -> Result<(), LogError> {
    let row = first.rows.first().ok_or_else(|| LogError::Failed("a fork needs a first event".into()))?;
    let thread: Option<Uuid> = row.thread.as_ref().map(|thread| key(thread.as_str()));
    let values = [
        param(society, Type::INT8),
        position(at),
        param(row.at.0 as i64, Type::INT8),
        param(thread, Type::UUID),
        param(row.version as i32, Type::INT4),
        param(row.crc as i32, Type::INT4),
        param(body::pack(&first.bodies[row.body.clone()]).into_owned(), Type::BYTEA),
    ];
    statements.query(sql::FIRST_EVENT, &values).await?;
    if let (Some(key), Some(thread)) = (thread, &row.thread) {
        let name = param(thread.as_str().as_bytes().to_vec(), Type::BYTEA);
        let values = [param(society, Type::INT8), param(key, Type::UUID), position(at), name];
        statements.query(sql::FIRST_THREAD, &values).await?;
    }
    Ok(())
}

fn missing(society: &SocietyId, at: Seq) -> LogError {
    polis_stored_event::damaged(society, at, "it is missing")
}
