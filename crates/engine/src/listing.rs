//! Which artifacts a society's log names, for tools and servers that know nothing of societies.

use async_trait::async_trait;
use polis_domain::{Artifact, ArtifactId, ListedArtifact, Spine};
use polis_ports::Listing;

use crate::shared::Shared;

#[async_trait]
impl Listing for Shared {
    async fn list(&self, after: usize, limit: usize) -> (Vec<ListedArtifact>, usize) {
        let page = move |spine: &Spine| {
            let entries = spine.artifacts.entries();
            (entries.iter().skip(after).take(limit).cloned().collect(), entries.len())
        };
        self.look(page).await.unwrap_or_default()
    }

    async fn find(&self, id: &ArtifactId) -> Option<Artifact> {
        let id = *id;
        self.look(move |spine| spine.artifacts.find(&id).map(|found| found.artifact.clone())).await.flatten()
    }
}
