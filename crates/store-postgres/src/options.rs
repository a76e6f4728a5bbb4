//! Where the database is and how it is used: the address that users write, and what else may be set.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use polis_http::Trust;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::nodes::Listing;

/// How long a connection may take to be made, to one host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long data may be sent without an answer of the other side's kernel.
const SILENCE: Duration = Duration::from_secs(15);

const DEFAULT_SCHEMA: &str = "polis";

/// How long a lease lasts after its last renewal.
const LEASE: Duration = Duration::from_secs(10);

/// How a log uses its database.
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) config: Config,
    pub(crate) trust: Trust,
    /// The schema that the tables are in, `polis` by default. Each is a store of its own.
    pub(crate) schema: String,
    /// The name of this process among those that share the database, for leases. It must be another one at every start. Without
    /// one, nothing can be claimed.
    pub node: Option<String>,
    /// Other nodes find this one in the table of nodes and pass requests on to it.
    pub listing: Option<Listing>,
    /// How long a lease lasts that [`crate::PostgresLog::hold`] claims, if it is not renewed.
    pub lease: Duration,
    /// How long a statement may take. Its outcome is unknown then.
    pub timeout: Duration,
    /// How many connections read at a time. One more writes.
    pub readers: usize,
}

/// Why an address is none of a database.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadUrl(String);

impl Options {
    /// Reads an address of the form `postgres://user:password@host:port,host:port/database?key=value`. Keys are those of libpq that
    /// tokio-postgres knows, and `sslmode` (`disable`, `prefer`, `require`, `verify-full`), `sslrootcert` (a PEM file) and `schema`.
    ///
    /// Unlike in libpq, every encrypted connection checks the server's certificate and name, and a server on another machine must
    /// encrypt unless `sslmode` says otherwise.
    ///
    /// # Errors
    ///
    /// [`BadUrl`], which never contains the password.
    pub fn parse(url: &str) -> Result<Self, BadUrl> {
        let bad = |what: String| BadUrl(format!("the address of the database: {what}"));
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(bad("it begins with postgres://".to_owned()));
        }
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let mut own = OwnKeys::default();
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "sslmode" => own.sslmode = Some(sslmode(value).map_err(bad)?),
                "sslrootcert" => own.root = Some(value.into()),
                "schema" => own.schema = Some(schema(value).map_err(bad)?),
                "target_session_attrs" if matches!(value, "read-write" | "primary") => {}
                "target_session_attrs" => {
                    return Err(bad("the log is written, so target_session_attrs is read-write".to_owned()));
                }
                _ => rest.push(pair),
            }
        }
        let known = if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
        let mut config: Config = known.parse().map_err(|error: tokio_postgres::Error| bad(with_cause(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(bad("it names no host".to_owned()));
        }
        let is_local = config.get_hosts().iter().all(is_local) && config.get_hostaddrs().iter().all(|addr| addr.is_loopback());
        config.ssl_mode(own.sslmode.unwrap_or(if is_local { SslMode::Disable } else { SslMode::Require }));
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE);
        }
        if !rest.iter().any(|pair| pair.starts_with("keepalives")) {
            config.keepalives_idle(SILENCE).keepalives_interval(CONNECT_TIMEOUT).keepalives_retries(3);
        }
        if config.get_application_name().is_none() {
            config.application_name("polis");
        }
        Ok(Self {
            config,
            trust: own.root.map_or(Trust::System, Trust::Only),
            schema: own.schema.unwrap_or_else(|| DEFAULT_SCHEMA.to_owned()),
            node: None,
            listing: None,
            lease: LEASE,
            timeout: Duration::from_secs(30),
            readers: 3,
        })
    }
}

impl Options {
    /// Whether the address has a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// Uses this password.
    pub fn set_password(&mut self, password: &str) {
        self.config.password(password);
    }
}

/// The place, without user and password.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hosts, addrs) = (self.config.get_hosts().iter().map(host_name), self.config.get_hostaddrs().iter());
        let hosts: Vec<String> =
            if self.config.get_hosts().is_empty() { addrs.map(ToString::to_string).collect() } else { hosts.collect() };
        let ports = self.config.get_ports();
        let places = hosts.iter().enumerate().map(|(n, host)| match ports.get(n).or_else(|| ports.first()) {
            Some(port) => format!("{host}:{port}"),
            None => host.clone(),
        });
        let database = self.config.get_dbname().or_else(|| self.config.get_user()).unwrap_or_default();
        write!(f, "PostgreSQL at {}/{database}", places.collect::<Vec<_>>().join(","))?;
        if self.schema == DEFAULT_SCHEMA { Ok(()) } else { write!(f, ", schema {}", self.schema) }
    }
}

/// A host as it is shown.
pub(crate) fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]"),
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

/// What tokio-postgres does not read.
#[derive(Default)]
struct OwnKeys {
    sslmode: Option<SslMode>,
    root: Option<PathBuf>,
    schema: Option<String>,
}

fn sslmode(value: &str) -> Result<SslMode, String> {
    match value {
        "disable" => Ok(SslMode::Disable),
        "prefer" => Ok(SslMode::Prefer),
        "require" | "verify-full" => Ok(SslMode::Require),
        other => Err(format!("sslmode is disable, prefer, require or verify-full, not {other}")),
    }
}

/// Names of schemas are part of statements, so they are plain.
fn schema(value: &str) -> Result<String, String> {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let begins = value.starts_with(|first: char| first.is_ascii_lowercase());
    match is_plain && begins && value.len() <= 60 && !value.starts_with("pg_") {
        true => Ok(value.to_owned()),
        false => Err("schema is a name of lower-case letters, digits and `_`, up to 60".to_owned()),
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost"
                || name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|addr| addr.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// An error of tokio-postgres hides its cause.
pub(crate) fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", with_cause(source)),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> SslMode {
        Options::parse(url).unwrap().config.get_ssl_mode()
    }

    #[test]
    fn a_server_on_another_machine_encrypts_unless_told_otherwise() {
        assert_eq!(mode("postgres://u@localhost/db"), SslMode::Disable);
        assert_eq!(mode("postgres://u@127.0.0.1:5433/db"), SslMode::Disable);
        assert_eq!(mode("postgres://u@%2Frun%2Fpostgresql/db"), SslMode::Disable);
        assert_eq!(mode("postgres://u@db.example/db"), SslMode::Require);
        assert_eq!(mode("postgres://u@localhost,db2/db"), SslMode::Require);
        assert_eq!(mode("postgres://u@db.example/db?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://u@localhost/db?sslmode=verify-full"), SslMode::Require);
    }

    #[test]
    fn several_hosts_and_our_own_keys_are_read() {
        let options =
            Options::parse("postgresql://u:p@a:1,b:2/db?schema=two&sslrootcert=/ca.pem&connect_timeout=2&application_name=x");
        let options = options.unwrap();
        assert_eq!(options.config.get_hosts().len(), 2);
        assert_eq!(options.config.get_ports(), [1, 2]);
        assert_eq!(options.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert_eq!(options.config.get_connect_timeout(), Some(&Duration::from_secs(2)));
        assert_eq!((options.schema.as_str(), options.trust), ("two", Trust::Only("/ca.pem".into())));
    }

    #[test]
    fn a_place_is_shown_without_user_and_password() {
        let shown = |url: &str| Options::parse(url).unwrap().to_string();
        assert_eq!(shown("postgres://u:secret@a:1,b:2/db?schema=two"), "PostgreSQL at a:1,b:2/db, schema two");
        assert_eq!(shown("postgres://u:secret@[::1]/db"), "PostgreSQL at [::1]:5432/db");
        let mut options = Options::parse("postgres://u@h/db").unwrap();
        assert!(!options.has_password());
        options.set_password("secret");
        assert!(options.has_password() && !format!("{options} {options:?}").contains("secret"));
    }

    #[test]
    fn a_bad_address_is_refused_without_its_password() {
        for url in [
            "mysql://u:secret@h/db",
            "postgres://u:secret@/db",
            "postgres://u:secret@h/db?sslmode=allow",
            "postgres://u:secret@h/db?sslmode=verify-ca",
            "postgres://u:secret@h/db?schema=a;b",
            "postgres://u:secret@h/db?schema=",
            "postgres://u:secret@h/db?target_session_attrs=read-only",
            "postgres://u:secret@h/db?colour=blue",
            "postgres://u:secret@h:port/db",
        ] {
            let error = Options::parse(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
