//! The log in pages.

use polis_domain::{Recorded, Seq};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which part of the log is wanted.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogPaging {
    /// Only events after this place.
    #[serde(default)]
    pub after: u64,
    /// Most events of a page; never more than 1000.
    #[serde(default = "usual")]
    pub limit: usize,
}

fn usual() -> usize {
    250
}

impl Default for LogPaging {
    fn default() -> Self {
        Self { after: 0, limit: usual() }
    }
}

/// A part of the log.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct LogPage {
    /// The events of this page, oldest first.
    pub events: Vec<Recorded>,
    /// The log's last place: when the last event has it, there is no more.
    pub last: Seq,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Seq>,
}
