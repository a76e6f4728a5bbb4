//! The units of a review: what can be counted is counted, not judged.

use polis::prelude::*;

use crate::tagged::part;

/// Reports which of the researched aspects have no section in the draft.
pub(super) struct ClaimComparisonUnit;

impl InteractionUnit for ClaimComparisonUnit {
    async fn user_message(&self, _bot: &Message, turn: &mut Turn) -> Result<String, Failure> {
        let given = &turn.task().message;
        let (draft, findings) = (part(given, "draft"), part(given, "findings"));
        let aspects: Vec<_> = findings.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let left_out: Vec<_> = aspects.iter().copied().filter(|aspect| !draft.contains(aspect)).collect();
        let words = draft.split_whitespace().count();
        Ok(match &left_out[..] {
            [] => format!("The draft has {words} words and names all {} aspects.", aspects.len()),
            _ => format!("The draft has {words} words and does not name: {}.", left_out.join("; ")),
        })
    }
}

/// Ends the review: nobody reports on the last message.
pub(super) struct VerdictFormingUnit;

impl InteractionUnit for VerdictFormingUnit {}
