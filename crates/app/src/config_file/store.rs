//! `[store]`: where the log is, if it is not in the data directory.

use std::time::Duration;

use serde::Deserialize;

use super::backup::duration;

/// `[store]`: the database, and how long a node that is not heard of keeps its societies.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreSection {
    pub(crate) url: Option<String>,
    #[serde(default, deserialize_with = "duration")]
    pub(crate) lease: Option<Duration>,
}
