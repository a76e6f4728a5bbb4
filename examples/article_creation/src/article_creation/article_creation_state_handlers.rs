//! The handler of the main agent's own phase.

use polis::prelude::*;

use super::article_writing::ArticleWritingAgent;

/// Has the article written in the placeholder, and hands it out as a file too.
pub(super) struct ArticleDeliveryHandler;

impl StateHandler for ArticleDeliveryHandler {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with("article_writing", ArticleWritingAgent)
    }

    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let request = turn.prepared("article_writing").await?;
        let result = turn.run_sub_thread(request).await?;
        if result.failure.is_some() {
            return Ok(result.into());
        }
        let mut response = Response::new(result.text.as_str()).updating(result.message);
        // A society may have no place for files; the article stands in the conversation anyway.
        if let Ok(file) = turn.put_artifact("article.md", "text/markdown", result.text.into_bytes()).await {
            Artifact::attach(&mut response.meta, &[file]);
        }
        Ok(response)
    }
}
