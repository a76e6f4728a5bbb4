//! `[cluster]`: how the other nodes reach this one.

use serde::Deserialize;

/// `[cluster]`: this process is one of several nodes that share a log in PostgreSQL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterSection {
    /// Where this node listens for the others.
    pub(crate) listen: Option<String>,
    /// Where the others reach it, if that is another address.
    pub(crate) address: Option<String>,
    /// How its name begins, instead of with the name of the machine.
    pub(crate) name: Option<String>,
}
