//! The sub-thread in which an article is written: its units, and when a draft goes back.

use std::sync::Arc;

use polis::prelude::*;

use super::article_writing_interaction_units::{
    ArticleCompletionUnit, DraftMeasuringUnit, FindingCountUnit, OutlineReadingUnit, VerdictReadingUnit,
};
use super::article_writing_state_handlers::{
    ArticleCompletionHandler, AspectResearchHandler, DraftReviewHandler, DraftWritingHandler, TopicOutlineHandler,
};
use super::verdict::Verdict;

/// How often an article is drafted at most.
pub(super) const MAX_DRAFTS: usize = 3;

/// Outlines, has each aspect researched, drafts, and drafts again as long as the review sends it back.
pub(crate) struct ArticleWritingAgent;

impl SubThreadAgent for ArticleWritingAgent {
    fn units(&self) -> Units {
        Units::new()
            .on("topic_outline", OutlineReadingUnit)
            .with_handler(TopicOutlineHandler)
            .then("aspect_research")
            .on("aspect_research", FindingCountUnit)
            .with_handler(AspectResearchHandler)
            .then("draft_writing")
            .on("draft_writing", DraftMeasuringUnit)
            .with_handler(DraftWritingHandler)
            .then("draft_review")
            .on("draft_review", VerdictReadingUnit)
            .with_handler(DraftReviewHandler)
            .then("article_completion")
            .on("article_completion", ArticleCompletionUnit)
            .with_handler(ArticleCompletionHandler)
            .then("completed")
    }

    async fn system_prompt(&self, turn: &mut Turn) -> Result<Arc<str>, Failure> {
        let prompt = match turn.phase().as_str() {
            "topic_outline" => include_str!("../prompt/topic_outline_system_prompt.md"),
            _ => include_str!("../prompt/draft_writing_system_prompt.md"),
        };
        Ok(prompt.into())
    }

    async fn next_unit(&self, progress: &Progress, _turn: &mut Turn) -> Result<Phase, Failure> {
        let drafts = progress.results.iter().filter(|result| result.phase.as_str() == "draft_writing").count();
        let is_sent_back = progress.results.last().is_some_and(|last| {
            last.phase.as_str() == "draft_review" && matches!(Verdict::read(&last.bot.text), Verdict::Revise(_))
        });
        if is_sent_back && drafts < MAX_DRAFTS {
            return Ok(Phase::new("draft_writing")?);
        }
        Ok(progress.next.clone())
    }
}
