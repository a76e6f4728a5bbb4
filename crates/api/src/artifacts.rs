//! Artifacts: contents outside the log. The list, one content, and storing a new one.

use std::io;
use std::pin::Pin;

use futures_util::Stream;
use polis_domain::ListedArtifact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The bytes of an artifact, chunk by chunk. An error ends them: what came before it is not the whole content.
pub type Content = Pin<Box<dyn Stream<Item = io::Result<Vec<u8>>> + Send>>;

/// Which part of the list is wanted.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArtifactPaging {
    /// Only those after this number.
    #[serde(default)]
    pub after: usize,
    /// Most of a page; never more than 1000.
    #[serde(default = "usual")]
    pub limit: usize,
}

fn usual() -> usize {
    250
}

impl Default for ArtifactPaging {
    fn default() -> Self {
        Self { after: 0, limit: usual() }
    }
}

/// Contents that the log names, oldest first.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Artifacts {
    /// The artifacts of this page.
    pub artifacts: Vec<NumberedArtifact>,
    /// How many there are: when the last one has this number, there is no more.
    pub last: usize,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
}

/// An artifact of the list.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct NumberedArtifact {
    /// Its place in the list, from 1 on.
    pub n: usize,
    /// The artifact, and where the log names it.
    #[serde(flatten)]
    pub listed: ListedArtifact,
}

/// What a new content is called.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArtifactName {
    /// The name of a file, for people.
    pub name: String,
}
