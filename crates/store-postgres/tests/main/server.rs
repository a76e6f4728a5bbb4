//! Logs on the servers of the tests.

use polis_store_postgres::{Options, PostgresLog};
pub(crate) use polis_testkit::postgres::Server;

/// Opens logs on a server.
pub(crate) trait Logs {
    fn options(&self, schema: &str) -> Options;

    /// A log of a schema.
    async fn log(&self, schema: &str) -> PostgresLog;

    /// A log of a schema, for a node.
    async fn node(&self, schema: &str, node: &str) -> PostgresLog;
}

impl Logs for Server {
    fn options(&self, schema: &str) -> Options {
        Options::parse(&self.url(schema)).unwrap()
    }

    async fn log(&self, schema: &str) -> PostgresLog {
        PostgresLog::open(self.options(schema)).await.unwrap()
    }

    async fn node(&self, schema: &str, node: &str) -> PostgresLog {
        let mut options = self.options(schema);
        options.node = Some(node.to_owned());
        PostgresLog::open(options).await.unwrap()
    }
}
