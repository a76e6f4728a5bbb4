//! Connections to the database: made to the host that can be written to, and given up when anything is wrong with them.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use polis_ports::LogError;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Row, Socket};

use crate::error::{from_postgres, no_connection};
use crate::options::{Options, host_name};
use crate::tls::Tls;
use crate::{schema, sql};

/// A value of a statement and its type.
pub(crate) type Param = (Box<dyn ToSql + Send + Sync>, Type);

/// Makes a parameter.
pub(crate) fn param(value: impl ToSql + Send + Sync + 'static, of: Type) -> Param {
    (Box::new(value), of)
}

/// Parameters as tokio-postgres takes them.
pub(crate) fn values<'params>(params: impl IntoIterator<Item = &'params Param>) -> Vec<(&'params (dyn ToSql + Sync), Type)> {
    params.into_iter().map(|(value, of)| (&**value as &(dyn ToSql + Sync), of.clone())).collect()
}

/// Makes connections.
pub(crate) struct Connector {
    /// One for each host.
    hosts: Vec<Config>,
    /// The host that is tried first: the last one that worked, or the one after a host that did not answer.
    first: AtomicUsize,
    tls: Option<Tls>,
    pub(crate) schema: String,
    timeout: Duration,
}

/// A connection to a database that can be written to.
pub(crate) struct Connection {
    pub(crate) client: Client,
    schema: String,
    timeout: Duration,
    /// Whether the server has warned since [`Connection::forget_warnings`].
    warned: Arc<AtomicBool>,
    driver: AbortHandle,
}

impl Connector {
    /// Reads the certificates, if the connection is to be encrypted. Blocks.
    pub(crate) fn new(options: &Options) -> Result<Self, LogError> {
        let encrypts = options.config.get_ssl_mode() != tokio_postgres::config::SslMode::Disable;
        let tls = if encrypts { Some(Tls::read(&options.trust)?) } else { None };
        let hosts = hosts(&options.config);
        Ok(Self { hosts, first: AtomicUsize::new(0), tls, schema: options.schema.clone(), timeout: options.timeout })
    }

    /// Connects to the first host that can be written to, and checks that the tables are as this Polis needs them.
    pub(crate) async fn connect(&self) -> Result<Connection, LogError> {
        let connection = self.connect_unchecked().await?;
        match connection.within(schema::check(&connection.client, &self.schema)).await? {
            true => Ok(connection),
            false => Err(LogError::Failed(format!("the schema `{}` has no tables of Polis any more", self.schema).into())),
        }
    }

    /// Connects, and makes or updates the tables.
    pub(crate) async fn connect_and_migrate(&self) -> Result<Connection, LogError> {
        let mut connection = self.connect_unchecked().await?;
        if !connection.within(schema::check(&connection.client, &self.schema)).await? {
            // Another one may be migrating for long; nothing but its end helps.
            schema::migrate(&mut connection.client, &self.schema).await?;
        }
        Ok(connection)
    }

    async fn connect_unchecked(&self) -> Result<Connection, LogError> {
        let mut failed = None;
        let count = self.hosts.len().max(1);
        let first = self.first.load(Ordering::Relaxed);
        for place in (0..self.hosts.len()).map(|n| (first + n) % count) {
            let host = &self.hosts[place];
            // A caller that does not wait for the answer finds the next host when it asks again.
            self.first.store((place + 1) % count, Ordering::Relaxed);
            // A host may accept connections and then say nothing, so each has its own time.
            let limit = host.get_connect_timeout().copied().unwrap_or(self.timeout);
            let name = shown(host);
            match timeout(limit, self.connect_to(host)).await {
                Ok(Ok(connection)) => {
                    self.first.store(place, Ordering::Relaxed);
                    return Ok(connection);
                }
                Ok(Err(error)) => failed = Some(no_connection(&name, &error)),
                Err(_) => {
                    let what =
                        format!("PostgreSQL at {name} did not answer within {limit:?}; check that this machine reaches it");
                    failed = Some(LogError::Failed(what.into()));
                }
            }
        }
        Err(failed.unwrap_or_else(|| LogError::Failed("the address of the database names no host".into())))
    }

    async fn connect_to(&self, host: &Config) -> Result<Connection, tokio_postgres::Error> {
        let warned = Arc::new(AtomicBool::new(false));
        let (client, driver) = match &self.tls {
            Some(tls) => {
                let (client, connection) = host.connect(tls.clone()).await?;
                (client, drive(connection, warned.clone()))
            }
            None => {
                let (client, connection) = host.connect(NoTls).await?;
                (client, drive(connection, warned.clone()))
            }
        };
        Ok(Connection { client, schema: self.schema.clone(), timeout: self.timeout, warned, driver })
    }
}

/// Reads and writes for a client until the connection ends.
fn drive<T>(mut connection: tokio_postgres::Connection<Socket, T>, warned: Arc<AtomicBool>) -> AbortHandle
where
    T: tokio_postgres::tls::TlsStream + Unpin + Send + 'static,
{
    let drive = async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notice(notice) = message
                && notice.parsed_severity() == Some(tokio_postgres::error::Severity::Warning)
            {
                tracing::warn!(code = notice.code().code(), "PostgreSQL: {}", notice.message());
                warned.store(true, Ordering::Release);
            }
        }
    };
    tokio::spawn(drive).abort_handle()
}

impl Connection {
    /// Runs one statement. Its transaction has ended when this returns.
    pub(crate) async fn query(&self, statement: &str, params: &[Param]) -> Result<Vec<Row>, LogError> {
        self.within(async { self.raw_query(statement, params).await.map_err(from_postgres) }).await
    }

    /// The same without a time limit, with the error as it came.
    pub(crate) async fn raw_query(&self, statement: &str, params: &[Param]) -> Result<Vec<Row>, tokio_postgres::Error> {
        self.client.query_typed(&sql::in_schema(statement, &self.schema), &values(params)).await
    }

    /// Waits for an answer of the server, for a limited time. When it has passed, the connection is closed.
    pub(crate) async fn within<T>(&self, answer: impl Future<Output = Result<T, LogError>>) -> Result<T, LogError> {
        match timeout(self.timeout, answer).await {
            Ok(answered) => answered,
            Err(_) => {
                self.driver.abort();
                Err(LogError::Failed(format!("the database did not answer within {:?}", self.timeout).into()))
            }
        }
    }

    /// The schema of the log.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// How long a statement may take.
    pub(crate) fn limit(&self) -> Duration {
        self.timeout
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed() || self.driver.is_finished()
    }

    pub(crate) fn forget_warnings(&self) {
        self.warned.store(false, Ordering::Release);
    }

    /// Whether the server has warned since. It does when it acknowledges a commit that the standby may not have, because waiting for
    /// that was cancelled.
    pub(crate) fn has_warned(&self) -> bool {
        self.warned.load(Ordering::Acquire)
    }
}

/// The one host of a configuration.
fn shown(config: &Config) -> String {
    let host = config.get_hosts().first().map(host_name).or_else(|| config.get_hostaddrs().first().map(ToString::to_string));
    match (host.unwrap_or_default(), config.get_ports().first()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host,
    }
}

/// The configuration of each host alone.
fn hosts(config: &Config) -> Vec<Config> {
    let (hosts, addrs, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let one = |n: usize| {
        let mut one = Config::new();
        match hosts.get(n) {
            Some(Host::Tcp(name)) => drop(one.host(name)),
            #[cfg(unix)]
            Some(Host::Unix(path)) => drop(one.host_path(path)),
            None => {}
        }
        if let Some(addr) = addrs.get(n) {
            one.hostaddr(*addr);
        }
        if let Some(port) = ports.get(n).or_else(|| ports.first()) {
            one.port(*port);
        }
        if let Some(user) = config.get_user() {
            one.user(user);
        }
        if let Some(password) = config.get_password() {
            one.password(password);
        }
        if let Some(name) = config.get_dbname() {
            one.dbname(name);
        }
        if let Some(options) = config.get_options() {
            one.options(options);
        }
        if let Some(name) = config.get_application_name() {
            one.application_name(name);
        }
        if let Some(limit) = config.get_connect_timeout() {
            one.connect_timeout(*limit);
        }
        if let Some(limit) = config.get_tcp_user_timeout() {
            one.tcp_user_timeout(*limit);
        }
        if let Some(interval) = config.get_keepalives_interval() {
            one.keepalives_interval(interval);
        }
        if let Some(retries) = config.get_keepalives_retries() {
            one.keepalives_retries(retries);
        }
        one.keepalives(config.get_keepalives()).keepalives_idle(config.get_keepalives_idle());
        one.ssl_mode(config.get_ssl_mode()).ssl_negotiation(config.get_ssl_negotiation());
        one.target_session_attrs(config.get_target_session_attrs()).channel_binding(config.get_channel_binding());
        one
    };
    (0..hosts.len().max(addrs.len())).map(one).collect()
}
