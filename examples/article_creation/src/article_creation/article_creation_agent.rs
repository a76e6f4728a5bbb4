//! The main agent: shows a place for the article at once, then has it written there.

use polis::prelude::*;

use super::article_creation_state_handlers::ArticleDeliveryHandler;

/// Answers each request with an article.
pub struct ArticleCreationAgent;

impl Agent for ArticleCreationAgent {
    fn phases(&self) -> Phases {
        Phases::new()
            .on("prepare_subthread", PrepareSubThread::default())
            .then("execute_subthread")
            .on("execute_subthread", ArticleDeliveryHandler)
            .then("prepare_subthread")
    }
}
