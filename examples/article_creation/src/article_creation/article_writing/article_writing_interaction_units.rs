//! The units of an article: each looks at what its handler's message really is, and reports it.

use polis::prelude::*;

use super::outline::aspects;
use super::verdict::Verdict;

/// Reads the aspects out of the outline.
pub(super) struct OutlineReadingUnit;

impl InteractionUnit for OutlineReadingUnit {
    async fn user_message(&self, bot: &Message, _turn: &mut Turn) -> Result<String, Failure> {
        let aspects = aspects(&bot.text);
        if aspects.is_empty() {
            return Err(Failure::new("no_aspects", "the outline names no aspect of the topic; ask again, or more precisely"));
        }
        Ok(format!("{} aspects: {}", aspects.len(), aspects.join("; ")))
    }
}

/// Counts what was found and what is missing.
pub(super) struct FindingCountUnit;

impl InteractionUnit for FindingCountUnit {
    async fn user_message(&self, bot: &Message, _turn: &mut Turn) -> Result<String, Failure> {
        let found = bot.text.lines().filter(|line| line.starts_with("## ")).count();
        let missing = bot.meta.get("missing").and_then(|missing| missing.as_array()).map_or(0, Vec::len);
        Ok(format!("{found} aspects are researched, {missing} are missing."))
    }
}

/// Measures the draft.
pub(super) struct DraftMeasuringUnit;

impl InteractionUnit for DraftMeasuringUnit {
    async fn user_message(&self, bot: &Message, _turn: &mut Turn) -> Result<String, Failure> {
        let sections = bot.text.lines().filter(|line| line.starts_with("## ")).count();
        Ok(format!("The draft has {} words in {sections} sections.", bot.text.split_whitespace().count()))
    }
}

/// Reads the verdict. What follows from it is for the agent to decide.
pub(super) struct VerdictReadingUnit;

impl InteractionUnit for VerdictReadingUnit {
    async fn user_message(&self, bot: &Message, _turn: &mut Turn) -> Result<String, Failure> {
        Ok(match Verdict::read(&bot.text) {
            Verdict::Accept => "The draft is accepted.".to_owned(),
            Verdict::Revise(_) => "The draft is sent back.".to_owned(),
            Verdict::Unclear => "The review gives no verdict.".to_owned(),
        })
    }
}

/// Ends the article: nobody reports on the last message.
pub(super) struct ArticleCompletionUnit;

impl InteractionUnit for ArticleCompletionUnit {}
