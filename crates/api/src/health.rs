//! Whether a society is well, and what runs it. Everybody may ask, so it has nothing that is private.

use polis_domain::Seq;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Health of the society.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Health {
    /// The sum of it.
    pub status: HealthStatus,
    /// The version of the program.
    pub version: String,
    /// The model that answers where none is named.
    pub model: HealthModel,
    /// The log.
    pub store: HealthStore,
}

/// How well a society is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HealthStatus {
    /// It reads and writes.
    Ok,
    /// What happened can be read, but nothing can be written: `store.code` says why.
    Degraded,
    /// Its log cannot be read, or it has ended.
    Down,
}

/// The model that answers where none is named.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct HealthModel {
    /// Its name.
    pub name: String,
    /// Whether it is the offline model.
    pub offline: bool,
}

/// Whether the log can be read and written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct HealthStore {
    /// Whether both.
    pub ok: bool,
    /// The last event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// What runs here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Version {
    /// The name of the program.
    pub name: String,
    /// Its version.
    pub version: String,
}
