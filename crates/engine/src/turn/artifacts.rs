//! Artifacts: contents outside the log. Storing one is an effect, so that a second run gets the same reference.

use std::sync::Arc;

use polis_domain::{Artifact, ArtifactId, Command, Effect, Failure, ListedArtifact, Outcome, Spine, Visibility};
use polis_ports::{ArtifactError, ArtifactStore, Hasher, Window};

use super::Turn;
use crate::listing::{Viewer, VisibleArtifacts};

impl Turn {
    /// Stores a content outside the log and returns a reference to it. [`Artifact::attach`] puts the reference into the meta
    /// of a message, where readers of the message find it.
    pub async fn put_artifact(
        &mut self,
        name: &str,
        media_type: &str,
        content: impl Into<Arc<[u8]>>,
    ) -> Result<Artifact, Failure> {
        let content = content.into();
        let artifact = Artifact::new(Hasher::id_of(&content), name, media_type, content.len() as u64);
        let Some(entry) = self.declare(vec![Effect::Keep(artifact.clone())]).await.pop() else {
            return self.park_diverged(self.n - 1, "artifact").await;
        };
        match self.result(&entry) {
            Some(Ok(Outcome::Kept(artifact))) => return Ok(artifact),
            Some(Ok(_)) => return self.park_diverged(self.n - 1, "artifact").await,
            Some(Err(failure)) => return Err(failure),
            None => {}
        }
        let stored = self.start.shared.ports.artifacts.put(content).await.map(|_| artifact);
        let stored = stored.map_err(|error| Failure::new(error.code(), error.to_string()));
        let outcome = stored.clone().map_or_else(Outcome::Failed, Outcome::Kept);
        self.report(entry.id, outcome, None).await;
        stored
    }

    /// Reads a part of a content that the society's log names. If the content is damaged or missing, the turn is parked until a
    /// person has restored it.
    pub async fn artifact(&mut self, id: &ArtifactId, offset: u64, limit: usize) -> Result<Window, Failure> {
        let (place, wanted, agent) = (self.committed_position().await, *id, self.start.agent.clone());
        let find = move |spine: &Spine| {
            let found = spine.artifacts.find(&wanted, &Visibility::of_agent(spine, &agent));
            found.is_some_and(|found| found.seq <= place)
        };
        let Some(is_named) = self.start.shared.look(find).await else { return std::future::pending().await };
        if !is_named {
            let unknown = ArtifactError::Unknown(*id);
            return Err(Failure::new(unknown.code(), unknown.to_string()));
        }
        match self.start.shared.ports.artifacts.read(id, offset, limit).await {
            Ok(window) => Ok(window),
            Err(error) => {
                let reason = Failure::new(error.code(), error.to_string());
                self.commit(Command::Park { turn: self.start.id, reason }).await;
                std::future::pending().await
            }
        }
    }

    /// The artifacts that the society's log names, in its order.
    pub async fn artifacts(&mut self) -> Vec<ListedArtifact> {
        let place = self.committed_position().await;
        let agent = self.start.agent.clone();
        let list = move |spine: &Spine| {
            let (entries, visibility) = (spine.artifacts.entries(), Visibility::of_agent(spine, &agent));
            let named = &entries[..entries.partition_point(|entry| entry.seq <= place)];
            named.iter().filter(|listed| visibility.artifact(listed)).cloned().collect()
        };
        match self.start.shared.look(list).await {
            Some(artifacts) => artifacts,
            // The society is stopping, and the turn is about to be dropped.
            None => std::future::pending().await,
        }
    }

    /// The artifact store that tool calls of this turn get.
    pub(super) fn artifact_store(&self) -> ArtifactStore {
        let viewer = Viewer::Agent(self.start.agent.clone());
        let listing = Arc::new(VisibleArtifacts { shared: self.start.shared.clone(), viewer });
        ArtifactStore { store: self.start.shared.ports.artifacts.clone(), listing }
    }
}
