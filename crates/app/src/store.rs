//! What the societies of this process share: the log and what is beside it, in the data directory or in PostgreSQL.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use polis_domain::SocietyId;
use polis_ports::{ArtifactLimits, Artifacts, Documents, Log, LogError, MemoryTexts, Placement};
use polis_store_local::{LocalArtifacts, LocalDocuments, LocalLog, LocalMemoryTexts};
use polis_telemetry::Telemetry;

use crate::config::Config;
use crate::error::CliError;
use crate::logins::logins;
use crate::own_node::OwnNode;
use crate::postgres_store::PostgresStore;
use crate::telemetry;

/// A log that this process has opened.
#[derive(Clone)]
pub(crate) enum OpenedLog {
    /// The process has all of it to itself.
    Local(Arc<LocalLog>),
    /// The process has the societies that it owns.
    Postgres(PostgresStore),
}

impl OpenedLog {
    /// Opens the log of the configuration. The data directory is this process's from then on, also where the log is elsewhere.
    pub(crate) async fn open(config: &Config) -> Result<Self, LogError> {
        Self::open_as(config, None).await
    }

    /// The same as one of several nodes.
    pub(crate) async fn open_as(config: &Config, node: Option<&OwnNode>) -> Result<Self, LogError> {
        match &config.store {
            Some(address) => {
                // Whatever the command is, this makes the directory.
                config.trust.claim_data().map_err(|error| LogError::Failed(error.to_string().into()))?;
                PostgresStore::open(&config.data, address, node).await.map(Self::Postgres)
            }
            None => open_local(&config.data).await.map(|log| Self::Local(Arc::new(log))),
        }
    }

    pub(crate) fn log(&self) -> Arc<dyn Log> {
        match self {
            Self::Local(log) => log.clone(),
            Self::Postgres(store) => store.log(),
        }
    }

    /// Writes who has the data directory open. It only tells other processes; without it they know less.
    pub(crate) fn write_note(&self, note: &str) {
        let _ = match self {
            Self::Local(log) => log.write_note(note),
            Self::Postgres(store) => store.write_note(note),
        };
    }
}

/// Opening checks the log, which takes a while.
pub(crate) async fn open_local(data: &Path) -> Result<LocalLog, LogError> {
    let dir = data.to_owned();
    match tokio::task::spawn_blocking(move || LocalLog::open(&dir)).await {
        Ok(Err(LogError::Failed(error))) => Err(LogError::Failed(format!("{}: {error}", data.display()).into())),
        Ok(opened) => opened,
        Err(error) => Err(LogError::Failed(error.into())),
    }
}

/// The documents of a store, for a command that needs nothing else of it.
pub(crate) async fn documents(config: &Config) -> Result<Arc<dyn Documents>, CliError> {
    Ok(match &config.store {
        Some(address) => crate::postgres_store::documents(address).await?,
        None => Arc::new(LocalDocuments::new(&config.data)),
    })
}

/// The logins of a store, for a command that needs nothing else of it.
pub(crate) async fn stored_logins(config: &Config) -> Result<Arc<dyn Documents>, CliError> {
    let documents = documents(config).await?;
    logins(config, || documents)
}

/// What all societies of a data directory share.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) opened: OpenedLog,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    pub(crate) memory_texts: Arc<dyn MemoryTexts>,
    pub(crate) documents: Arc<dyn Documents>,
    pub(crate) logins: Arc<dyn Documents>,
    /// Where telemetry goes, once a society runs.
    telemetry: Arc<OnceLock<Option<Telemetry>>>,
}

impl Store {
    /// The store of a log. Only one may be opened on it.
    pub(crate) fn open(config: &Config, opened: OpenedLog) -> Result<Self, CliError> {
        let limits = config.artifacts.limits;
        let (artifacts, memory_texts, documents): (Arc<dyn Artifacts>, Arc<dyn MemoryTexts>, Arc<dyn Documents>) = match &opened
        {
            OpenedLog::Local(_) => (
                Arc::new(local_artifacts(&config.data, limits)?),
                Arc::new(LocalMemoryTexts::new(&config.data)),
                Arc::new(LocalDocuments::new(&config.data)),
            ),
            OpenedLog::Postgres(store) => (store.artifacts(limits), store.memory_texts(), store.documents()),
        };
        let logins = logins(config, || documents.clone())?;
        Ok(Self { log: opened.log(), opened, artifacts, memory_texts, documents, logins, telemetry: Arc::default() })
    }

    /// Makes sure that this process may write to a society, from now on and until it closes the log.
    pub(crate) async fn own(&self, society: &SocietyId) -> Result<(), CliError> {
        match &self.opened {
            OpenedLog::Local(_) => Ok(()),
            OpenedLog::Postgres(store) => store.own(society).await,
        }
    }

    /// Who owns which society, if several nodes may share the log.
    pub(crate) fn placement(&self) -> Option<Arc<dyn Placement>> {
        match &self.opened {
            OpenedLog::Local(_) => None,
            OpenedLog::Postgres(store) => Some(store.placement()),
        }
    }

    /// The log, if it is in the data directory.
    pub(crate) fn local(&self) -> Option<&LocalLog> {
        match &self.opened {
            OpenedLog::Local(log) => Some(log),
            OpenedLog::Postgres(_) => None,
        }
    }

    /// Where telemetry goes, the same for all societies; none without an endpoint.
    pub(crate) fn telemetry(&self, config: &Config) -> Result<Option<Telemetry>, CliError> {
        if let Some(telemetry) = self.telemetry.get() {
            return Ok(telemetry.clone());
        }
        let telemetry = telemetry::open(config)?.map(|(_, telemetry)| telemetry);
        Ok(self.telemetry.get_or_init(|| telemetry).clone())
    }
}

/// The artifacts of a data directory that this process has.
pub(crate) fn local_artifacts(data: &Path, limits: ArtifactLimits) -> Result<LocalArtifacts, CliError> {
    let failed = |error| CliError::new("artifacts_failed", format!("the artifacts cannot be opened: {error}"));
    LocalArtifacts::open(data, limits).map_err(failed)
}

/// Refuses a command that works on the files of a local log, and says what to do.
pub(crate) fn needs_local_log(config: &Config, what_to_do: &str) -> Result<(), CliError> {
    match &config.store {
        None => Ok(()),
        Some(address) => {
            Err(CliError::usage("needs_local_log", format!("the log is in {address}, not in the data directory; {what_to_do}")))
        }
    }
}
