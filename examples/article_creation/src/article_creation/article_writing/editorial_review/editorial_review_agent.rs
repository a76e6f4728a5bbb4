//! The sub-thread in which a draft is reviewed.

use std::sync::Arc;

use polis::prelude::*;

use super::editorial_review_interaction_units::{ClaimComparisonUnit, VerdictFormingUnit};
use super::editorial_review_state_handlers::{ClaimComparisonHandler, VerdictFormingHandler};

/// Compares the draft with the findings, then says whether it may go out.
pub(crate) struct EditorialReviewAgent;

impl SubThreadAgent for EditorialReviewAgent {
    fn units(&self) -> Units {
        Units::new()
            .on("claim_comparison", ClaimComparisonUnit)
            .with_handler(ClaimComparisonHandler)
            .then("verdict_forming")
            .on("verdict_forming", VerdictFormingUnit)
            .with_handler(VerdictFormingHandler)
            .then("completed")
    }

    async fn system_prompt(&self, turn: &mut Turn) -> Result<Arc<str>, Failure> {
        let prompt = match turn.phase().as_str() {
            "claim_comparison" => include_str!("../../prompt/claim_comparison_system_prompt.md"),
            _ => include_str!("../../prompt/verdict_forming_system_prompt.md"),
        };
        Ok(prompt.into())
    }
}
