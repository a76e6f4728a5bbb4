//! The handlers of a review's units.

use polis::prelude::*;

use crate::tagged::tagged;

/// Lists what the draft claims and the findings do not support.
pub(super) struct ClaimComparisonHandler;

impl StateHandler for ClaimComparisonHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let given = turn.task().message.clone();
        Ok(Response::new(turn.generate(&*given).await?))
    }
}

/// Says whether the draft may go out: `accept`, or `revise` and what to change.
pub(super) struct VerdictFormingHandler;

impl StateHandler for VerdictFormingHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let given = turn.task().message.clone();
        let so_far = turn.conversation(2).await?;
        Ok(Response::new(turn.generate(format!("{given}{}", tagged("comparison", &so_far))).await?))
    }
}
