//! The connections that read, and what is written beside the log: leases and snapshots.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polis_ports::LogError;
use tokio::sync::Semaphore;
use tokio_postgres::Row;

use crate::connection::{Connection, Connector, Param};
use crate::error::stopped;

/// What is done with a connection, and may be repeated.
pub(crate) trait Work: Sync {
    type Output: Send;

    fn run(&self, connection: &mut Connection) -> impl Future<Output = Result<Self::Output, LogError>> + Send;
}

/// One statement.
struct Statement<'sql> {
    sql: &'sql str,
    params: &'sql [Param],
}

impl Work for Statement<'_> {
    type Output = Vec<Row>;

    async fn run(&self, connection: &mut Connection) -> Result<Vec<Row>, LogError> {
        connection.query(self.sql, self.params).await
    }
}

/// A few connections, made when they are needed.
pub(crate) struct Pool {
    connector: Arc<Connector>,
    idle: Mutex<Vec<Connection>>,
    free: Semaphore,
}

impl Pool {
    pub(crate) fn new(connector: Arc<Connector>, size: usize) -> Self {
        Self { connector, idle: Mutex::default(), free: Semaphore::new(size.max(1)) }
    }

    /// Runs one statement.
    pub(crate) async fn query(&self, sql: &str, params: &[Param]) -> Result<Vec<Row>, LogError> {
        self.run(&Statement { sql, params }).await
    }

    /// Runs a piece of work. After a failure on a connection that was idle before, it runs again on a new one, because the server may
    /// have ended the old one long ago.
    pub(crate) async fn run<W: Work>(&self, work: &W) -> Result<W::Output, LogError> {
        let _permit = self.free.acquire().await.map_err(|_| stopped())?;
        if let Some(mut connection) = self.take_idle() {
            match work.run(&mut connection).await {
                Err(LogError::Failed(error)) => tracing::debug!(error, "trying again on a new connection"),
                done => return self.give_back(connection, done),
            }
        }
        let mut connection = self.connector.connect().await?;
        let done = work.run(&mut connection).await;
        self.give_back(connection, done)
    }

    /// Frees the space of removed rows, so that no row of a table has what was removed.
    pub(crate) async fn vacuum(&self, sql: &str) {
        if let Err(error) = self.query(sql, &[]).await {
            tracing::warn!(%error, "removed rows could not be vacuumed; the server does it in its own time");
        }
    }

    /// A connection that is no part of the pool.
    pub(crate) async fn connect(&self) -> Result<Connection, LogError> {
        self.connector.connect().await
    }

    /// Keeps a connection for the next caller, unless something went wrong on it.
    fn give_back<T>(&self, connection: Connection, done: Result<T, LogError>) -> Result<T, LogError> {
        if done.is_ok() && !connection.is_closed() {
            self.lock().push(connection);
        }
        done
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.lock();
        idle.retain(|connection| !connection.is_closed());
        idle.pop()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
