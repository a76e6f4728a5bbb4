//! The nodes that share a log: the list, and having one give its societies away.

use polis_domain::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The nodes, by name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "Nodes")]
pub struct NodeList {
    /// The nodes; those that are gone too, for an hour.
    pub nodes: Vec<ListedNode>,
}

/// A node of the list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Node")]
pub struct ListedNode {
    /// Its name, another one at every start.
    pub name: String,
    /// Where the other nodes reach it.
    pub address: String,
    /// When it joined.
    pub since: Timestamp,
    /// How long its lease lasts still, if it is not renewed. 0: the node is gone.
    pub lease_ms: u64,
    /// Whether it gives its societies away and takes none.
    pub draining: bool,
    /// How many societies it owns.
    pub societies: u64,
    /// A digest of its settings, roles, SOPs, skills and prompts at its start. All nodes should have the same one.
    #[serde(default)]
    pub setup: String,
}

/// What a node is to do.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// Take societies again.
    #[serde(default)]
    pub undo: bool,
}

/// It does so from its next look at the table of nodes on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Drained {
    /// The node.
    pub node: String,
    /// Whether it gives its societies away.
    pub draining: bool,
}
