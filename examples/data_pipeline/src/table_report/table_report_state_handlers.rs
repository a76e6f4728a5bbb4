//! The handler of the second step: runs the pipeline in the placeholder, and hangs the report on it.

use polis::domain::MessagePatch;
use polis::prelude::*;
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
        if let Some((index, holder)) = turn.recent(1).await?.pop() {
            let rounds = turn.thread(&turn.path().child(index)).await?.messages;
            let mut meta = Map::new();
            Artifact::attach(
                &mut meta,
                &rounds.iter().flat_map(|message| Artifact::attached(&message.meta)).collect::<Vec<_>>(),
            );
            turn.update_message(&turn.path(), &holder.id, MessagePatch { text: None, meta: meta.into() }).await?;
        }
        Ok(response)
    }
}
