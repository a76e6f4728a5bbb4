//! The handler of the second step: runs the pipeline in the placeholder, and hangs the report on it.

use polis::domain::MessagePatch;
use polis::{Artifact, ExecuteSubThread, Failure, Response, StateHandler, SubThreads, Turn};
use serde_json::Map;

use super::data_pipeline::DataPipelineAgent;

/// Delivers the report.
pub(super) struct ReportDeliveryHandler {
    run: ExecuteSubThread,
}

impl ReportDeliveryHandler {
    /// Delivers what this pipeline makes.
    pub(super) fn of(pipeline: DataPipelineAgent) -> Self {
        Self { run: ExecuteSubThread::of(pipeline) }
    }
}

impl StateHandler for ReportDeliveryHandler {
    fn sub_threads(&self) -> SubThreads {
        self.run.sub_threads()
    }

    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let response = self.run.handle(turn).await?;
        let task = turn.task().id.clone();
        let pages = turn.artifacts().await.into_iter().filter(|listed| listed.artifact.media_type.starts_with("text/html"));
        let report = pages.filter(|listed| listed.task.as_ref() == Some(&task)).last();
        if let (Some(report), Some((_, holder))) = (report, turn.recent(1).await?.pop()) {
            let mut meta = Map::new();
            Artifact::attach(&mut meta, &[report.artifact]);
            turn.update_message(&turn.path(), &holder.id, MessagePatch { text: None, meta }).await?;
        }
        Ok(response)
    }
}
