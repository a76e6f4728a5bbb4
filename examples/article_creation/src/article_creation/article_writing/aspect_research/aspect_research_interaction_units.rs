//! The units of a research: the search is really made, and its report is what was found.

use polis::prelude::*;

use crate::sources;

/// Most searches for one aspect.
const MAX_SEARCHES: usize = 3;

/// Searches the files for what the handler's message says: one search a line, `words` or `words @ file`.
pub(super) struct SourceSearchUnit;

impl InteractionUnit for SourceSearchUnit {
    async fn user_message(&self, bot: &Message, turn: &mut Turn) -> Result<String, Failure> {
        if !sources::are_there(turn) {
            return Ok("There are no files to search here.".to_owned());
        }
        let mut found: Vec<String> = Vec::new();
        for line in bot.text.lines().map(str::trim).filter(|line| !line.is_empty()).take(MAX_SEARCHES) {
            let (words, within) = line.split_once(" @ ").map_or((line, None), |(words, path)| (words, Some(path.trim())));
            for passage in sources::passages(turn, words, within).await? {
                if !found.contains(&passage) {
                    found.push(passage);
                }
            }
        }
        Ok(if found.is_empty() { "Nothing was found in the files.".to_owned() } else { found.join("\n") })
    }
}

/// Ends the research: nobody reports on the last message.
pub(super) struct FindingSummaryUnit;

impl InteractionUnit for FindingSummaryUnit {}
