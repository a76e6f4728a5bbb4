//! A program that was built without the feature `postgres` has no log in PostgreSQL.

use std::convert::Infallible;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use polis_domain::SocietyId;
use polis_ports::{ArtifactLimits, Artifacts, Documents, Log, LogError, MemoryTexts, Node, Placement};

use crate::error::CliError;
use crate::own_node::OwnNode;

/// There is none.
#[derive(Debug, Clone)]
pub(crate) struct StoreAddress(Infallible);

impl StoreAddress {
    pub(crate) fn parse(_: &str, _: Option<&str>, _: Option<Duration>) -> Result<Self, CliError> {
        let message = "this polis was built without PostgreSQL; build it with the feature `postgres`, or leave the store out";
        Err(CliError::usage("bad_store", message))
    }

    pub(crate) fn has_password(_: &str) -> bool {
        false
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

/// There is none.
pub(crate) async fn documents(address: &StoreAddress) -> Result<Arc<dyn Documents>, LogError> {
    match address.0 {}
}

/// There is none.
pub(crate) struct Owner {
    pub(crate) node: Infallible,
}

/// There is none.
#[derive(Clone)]
pub(crate) struct PostgresStore(Infallible);

impl PostgresStore {
    pub(crate) async fn open(_: &Path, address: &StoreAddress, _: Option<&OwnNode>) -> Result<Self, LogError> {
        match address.0 {}
    }

    pub(crate) fn log(&self) -> Arc<dyn Log> {
        match self.0 {}
    }

    pub(crate) fn placement(&self) -> Arc<dyn Placement> {
        match self.0 {}
    }

    pub(crate) fn artifacts(&self, _: ArtifactLimits) -> Arc<dyn Artifacts> {
        match self.0 {}
    }

    pub(crate) fn memory_texts(&self) -> Arc<dyn MemoryTexts> {
        match self.0 {}
    }

    pub(crate) fn documents(&self) -> Arc<dyn Documents> {
        match self.0 {}
    }

    pub(crate) async fn owned(&self) -> Result<Option<(SocietyId, Owner)>, LogError> {
        match self.0 {}
    }

    pub(crate) fn write_note(&self, _: &str) -> std::io::Result<()> {
        match self.0 {}
    }

    pub(crate) async fn own(&self, _: &SocietyId) -> Result<(), CliError> {
        match self.0 {}
    }
}

/// There is none.
pub(crate) struct NodeTable(Infallible);

impl NodeTable {
    pub(crate) async fn open(address: &StoreAddress) -> Result<Self, LogError> {
        match address.0 {}
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<Node>, LogError> {
        match self.0 {}
    }

    pub(crate) async fn set_draining(&self, _: &str, _: bool) -> Result<bool, LogError> {
        match self.0 {}
    }
}
