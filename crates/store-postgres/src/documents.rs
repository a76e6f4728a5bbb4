//! The documents that nodes share.

use async_trait::async_trait;
use polis_ports::{DocumentError, Documents, LogError};
use tokio_postgres::types::Type;

use crate::connection::param;
use crate::database::Database;
use crate::reader::column;
use crate::sql;

/// The documents of a database, for all nodes that use it.
#[derive(Clone)]
pub struct PostgresDocuments(Database);

impl PostgresDocuments {
    pub(crate) fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl Documents for PostgresDocuments {
    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, DocumentError> {
        let name = [param(name.to_owned(), Type::TEXT)];
        let read = |pool: std::sync::Arc<crate::pool::Pool>| async move {
            let rows = pool.query(sql::DOCUMENT, &name).await?;
            rows.first().map(|row| column::<Vec<u8>>(row, 0)).transpose()
        };
        self.0.run(read).await.map_err(failed)
    }

    async fn names(&self, folder: &str) -> Result<Vec<String>, DocumentError> {
        let folder = [param(folder.to_owned(), Type::TEXT)];
        let read = |pool: std::sync::Arc<crate::pool::Pool>| async move {
            let rows = pool.query(sql::DOCUMENT_NAMES, &folder).await?;
            rows.iter().map(|row| column::<String>(row, 0)).collect()
        };
        self.0.run(read).await.map_err(failed)
    }

    async fn replace(&self, name: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<(), DocumentError> {
        let (statement, bodies) = match (old, new) {
            (None, None) => return Ok(()),
            (None, Some(new)) => (sql::ADD_DOCUMENT, vec![new]),
            (Some(old), Some(new)) => (sql::REPLACE_DOCUMENT, vec![old, new]),
            (Some(old), None) => (sql::REMOVE_DOCUMENT, vec![old]),
        };
        let bodies = bodies.into_iter().map(|body| param(body.to_vec(), Type::BYTEA));
        let params: Vec<_> = std::iter::once(param(name.to_owned(), Type::TEXT)).chain(bodies).collect();
        let done = self.0.run(|pool| async move { pool.query(statement, &params).await }).await.map_err(failed)?;
        // A statement that was sent again after a lost connection may have been executed the first time.
        if !done.is_empty() || self.read(name).await?.as_deref() == new {
            return Ok(());
        }
        Err(DocumentError::Changed(name.to_owned()))
    }
}

fn failed(error: LogError) -> DocumentError {
    DocumentError::Failed(error.to_string())
}
