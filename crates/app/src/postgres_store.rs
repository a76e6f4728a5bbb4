//! The log in PostgreSQL (`--store`): its address, and the societies that this process owns there.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{Seq, SocietyId};
use polis_ports::{ArtifactLimits, Artifacts, DocumentError, Documents, Log, LogError, MemoryTexts, Node, Placement};
use polis_store_local::DataDirectory;
use polis_store_postgres::moving::{ComingLog, MovedEvent, MovedSociety};
use polis_store_postgres::{Claim, Listing, Options, Owner, PostgresLog};
use tokio::time::sleep;

use crate::error::{CliError, Exit};
use crate::own_node::OwnNode;
use crate::{out, wiring};

/// How often a society is asked for while the node that has it may be gone.
const AGAIN: Duration = Duration::from_millis(200);

/// Where the log is. The password is never shown.
#[derive(Debug, Clone)]
pub(crate) struct StoreAddress(Options);

impl StoreAddress {
    /// Parses an address; `password` is used if the address has none.
    pub(crate) fn parse(url: &str, password: Option<&str>, lease: Option<Duration>) -> Result<Self, CliError> {
        let mut options = Options::parse(url.trim()).map_err(|error| CliError::usage("bad_store", error.to_string()))?;
        if let (false, Some(password)) = (options.has_password(), password) {
            options.set_password(password);
        }
        options.lease = lease.unwrap_or(options.lease);
        Ok(Self(options))
    }

    /// Begins to move a log there.
    pub(crate) async fn begin(&self) -> Result<ComingLog, LogError> {
        ComingLog::begin(self.0.clone()).await.map_err(|error| with_advice(self, error))
    }

    /// Whether an address has a password.
    pub(crate) fn has_password(url: &str) -> bool {
        Options::parse(url.trim()).is_ok_and(|options| options.has_password())
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A log in PostgreSQL, and the data directory with what is local.
#[derive(Clone)]
pub(crate) struct PostgresStore {
    log: Arc<PostgresLog>,
    directory: Arc<DataDirectory>,
}

impl PostgresStore {
    /// Reserves the data directory and connects.
    pub(crate) async fn open(data: &Path, address: &StoreAddress, node: Option<&OwnNode>) -> Result<Self, LogError> {
        let directory = Arc::new(DataDirectory::open(data)?);
        Ok(Self { log: connect(address, node).await?, directory })
    }

    /// Who owns which society.
    pub(crate) fn placement(&self) -> Arc<dyn Placement> {
        self.log.clone()
    }

    pub(crate) fn log(&self) -> Arc<dyn Log> {
        self.log.clone()
    }

    pub(crate) fn artifacts(&self, limits: ArtifactLimits) -> Arc<dyn Artifacts> {
        Arc::new(self.log.artifacts(limits))
    }

    pub(crate) fn memory_texts(&self) -> Arc<dyn MemoryTexts> {
        Arc::new(self.log.memory_texts())
    }

    pub(crate) fn documents(&self) -> Arc<dyn Documents> {
        Arc::new(self.log.documents())
    }

    /// The first society that a node has, and its owner.
    pub(crate) async fn owned(&self) -> Result<Option<(SocietyId, Owner)>, LogError> {
        self.log.first_owned().await
    }

    pub(crate) fn write_note(&self, note: &str) -> std::io::Result<()> {
        self.directory.write_note(note)
    }

    pub(crate) async fn own(&self, society: &SocietyId) -> Result<(), CliError> {
        if self.log.holds(society) {
            return Ok(());
        }
        own(&self.log, society).await
    }
}

/// The documents of a database, for a command that needs nothing else of it.
pub(crate) async fn documents(address: &StoreAddress) -> Result<Arc<dyn Documents>, LogError> {
    Ok(Arc::new(OfLog(connect(address, None).await?)))
}

/// The documents of a log that is open as long as they are used.
struct OfLog(Arc<PostgresLog>);

#[async_trait]
impl Documents for OfLog {
    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, DocumentError> {
        self.0.documents().read(name).await
    }

    async fn names(&self, folder: &str) -> Result<Vec<String>, DocumentError> {
        self.0.documents().names(folder).await
    }

    async fn replace(&self, name: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<(), DocumentError> {
        self.0.documents().replace(name, old, new).await
    }
}

/// A log in PostgreSQL that is moved elsewhere.
pub(crate) struct LeavingDatabase(Arc<PostgresLog>);

impl LeavingDatabase {
    /// Claims all societies, so that nothing is written meanwhile.
    pub(crate) async fn open(address: &StoreAddress) -> Result<Self, CliError> {
        let log = connect(address, None).await?;
        let societies = log.societies().await?;
        if societies.is_empty() {
            return Err(CliError::new("no_data", format!("there is no society in {address}")));
        }
        for society in &societies {
            own(&log, society).await?;
        }
        Ok(Self(log))
    }

    pub(crate) async fn societies(&self) -> Result<Vec<MovedSociety>, LogError> {
        self.0.moved_societies().await
    }

    pub(crate) async fn events(&self, society: &MovedSociety, after: Seq) -> Result<Vec<MovedEvent>, LogError> {
        self.0.moved_events(society, after).await
    }

    pub(crate) fn artifacts(&self) -> Arc<dyn Artifacts> {
        Arc::new(self.0.artifacts(ArtifactLimits::default()))
    }

    pub(crate) fn memory_texts(&self) -> Arc<dyn MemoryTexts> {
        Arc::new(self.0.memory_texts())
    }

    pub(crate) fn documents(&self) -> Arc<dyn Documents> {
        Arc::new(self.0.documents())
    }
}

/// The table of nodes, for an operator.
pub(crate) struct NodeTable(PostgresLog);

impl NodeTable {
    pub(crate) async fn open(address: &StoreAddress) -> Result<Self, LogError> {
        PostgresLog::open(address.0.clone()).await.map(Self).map_err(|error| with_advice(address, error))
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<Node>, LogError> {
        self.0.nodes().await
    }

    pub(crate) async fn set_draining(&self, node: &str, draining: bool) -> Result<bool, LogError> {
        self.0.set_draining(node, draining).await
    }
}

/// Connects. A node among others stops the societies that it loses. Without others the process ends if it loses one: whatever it still
/// does must not be done twice.
async fn connect(address: &StoreAddress, node: Option<&OwnNode>) -> Result<Arc<PostgresLog>, LogError> {
    let mut options = address.0.clone();
    let random = wiring::entropy().map_err(|error| LogError::Failed(error.to_string().into()))?;
    options.node = Some(match node {
        Some(node) => format!("{}-{:08x}", node.name.clone().unwrap_or_else(host), random as u32),
        None => format!("{}, process {} ({:08x})", host(), std::process::id(), random as u32),
    });
    options.listing =
        node.map(|node| Listing { address: node.address.clone(), key: node.key.digest().to_vec(), setup: node.setup.clone() });
    let log = Arc::new(PostgresLog::open(options).await.map_err(|error| with_advice(address, error))?);
    if node.is_some() {
        return Ok(log);
    }
    let lost = log.lost();
    tokio::spawn(async move {
        let (_, why) = lost.await;
        let message = format!(
            "{why}; nothing new was begun and what was acknowledged is in the log. Start polis again: it continues as soon as it gets \
             the society back"
        );
        out::report_error(&CliError::new("lease_lost", message));
        std::process::exit(Exit::Failed.code().into());
    });
    Ok(log)
}

/// Claims a society. A node that has it and renews its lease keeps it; the lease of one that is gone ends soon.
async fn own(log: &PostgresLog, society: &SocietyId) -> Result<(), CliError> {
    let mut before: Option<Owner> = None;
    loop {
        let owner = match log.hold(society).await? {
            Claim::Ours(_) => return Ok(()),
            Claim::Theirs(owner) => owner,
        };
        match &before {
            Some(before) if before.node != owner.node || before.remaining < owner.remaining => {
                let message = format!(
                    "the society {society} is run by the polis on {}; use that one with --url, or stop it and try again",
                    owner.node
                );
                return Err(CliError::new("owned_elsewhere", message));
            }
            Some(_) => {}
            None => out::note(&format!(
                "polis: the society {society} belongs to the polis on {}; if that is gone, this one takes over in {} s",
                owner.node,
                owner.remaining.as_secs() + 1
            )),
        }
        before = Some(owner);
        sleep(AGAIN).await;
    }
}

/// What a person can do about a log that cannot be opened.
fn with_advice(address: &StoreAddress, error: LogError) -> LogError {
    match error {
        LogError::Damaged(what) => LogError::Damaged(format!("{address}: {what}; restore the database from a backup")),
        LogError::Full(why) => LogError::Full(format!("{address}: {why}").into()),
        other => other,
    }
}

/// The name of this machine.
fn host() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_default();
    if name.is_empty() { "another machine".to_owned() } else { name }
}
