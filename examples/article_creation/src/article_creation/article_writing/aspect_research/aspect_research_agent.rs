//! The sub-thread in which one aspect is researched.

use std::sync::Arc;

use polis::prelude::*;

use super::aspect_research_interaction_units::{FindingSummaryUnit, SourceSearchUnit};
use super::aspect_research_state_handlers::{FindingSummaryHandler, SourceSearchHandler};

/// Says what to look for, looks for it, and sums up what was found.
pub(crate) struct AspectResearchAgent;

impl SubThreadAgent for AspectResearchAgent {
    fn units(&self) -> Units {
        Units::new()
            .on("source_search", SourceSearchUnit)
            .with_handler(SourceSearchHandler)
            .then("finding_summary")
            .on("finding_summary", FindingSummaryUnit)
            .with_handler(FindingSummaryHandler)
            .then("completed")
    }

    async fn system_prompt(&self, turn: &mut Turn) -> Result<Arc<str>, Failure> {
        let prompt = match turn.phase().as_str() {
            "source_search" => include_str!("../../prompt/source_search_system_prompt.md"),
            _ => include_str!("../../prompt/finding_summary_system_prompt.md"),
        };
        Ok(prompt.into())
    }
}
