//! Which artifacts a society's log names, for tools and servers that know nothing of societies.

use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{AgentId, Artifact, ArtifactId, ListedArtifact, Spine, Visibility};
use polis_ports::Listing;

use crate::shared::Shared;

/// The artifacts that somebody may see.
pub(crate) struct VisibleArtifacts {
    pub(crate) shared: Arc<Shared>,
    pub(crate) viewer: Viewer,
}

/// Who lists artifacts, which decides what is listed.
#[derive(Clone)]
pub(crate) enum Viewer {
    /// An agent: it sees what its person sees.
    Agent(AgentId),
    /// A caller of the society.
    Caller(Visibility),
}

impl Viewer {
    fn visibility(&self, spine: &Spine) -> Visibility {
        match self {
            Self::Caller(visibility) => visibility.clone(),
            Self::Agent(agent) => Visibility::of_agent(spine, agent),
        }
    }
}

#[async_trait]
impl Listing for VisibleArtifacts {
    async fn list(&self, after: usize, limit: usize) -> (Vec<ListedArtifact>, usize) {
        let viewer = self.viewer.clone();
        let page = move |spine: &Spine| {
            let visibility = viewer.visibility(spine);
            let visible = || spine.artifacts.entries().iter().filter(|listed| visibility.artifact(listed));
            (visible().skip(after).take(limit).cloned().collect(), visible().count())
        };
        self.shared.look(page).await.unwrap_or_default()
    }

    async fn find(&self, id: &ArtifactId) -> Option<Artifact> {
        let (id, viewer) = (*id, self.viewer.clone());
        let find = move |spine: &Spine| {
            let found = spine.artifacts.find(&id, &viewer.visibility(spine));
            found.map(|found| found.artifact.clone())
        };
        self.shared.look(find).await.flatten()
    }
}
