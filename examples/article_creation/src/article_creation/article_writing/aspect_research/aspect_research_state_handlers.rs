//! The handlers of a research's units.

use polis::prelude::*;

use crate::tagged::tagged;

/// Says what to search the files for.
pub(super) struct SourceSearchHandler;

impl StateHandler for SourceSearchHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::new(turn.generate(subject(turn)).await?))
    }
}

/// Sums up what was found.
pub(super) struct FindingSummaryHandler;

impl StateHandler for FindingSummaryHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let report = turn.recent(1).await?.pop().map(|(_, report)| report.text.clone()).unwrap_or_default();
        Ok(Response::new(turn.generate(subject(turn) + &tagged("passages", &report)).await?))
    }
}

/// The topic of the article, and the aspect that this is about.
fn subject(turn: &Turn) -> String {
    let topic = turn.task().meta.get("originalTask").and_then(|topic| topic.as_str()).unwrap_or_default();
    tagged("topic", topic) + &tagged("aspect", &turn.task().message)
}
