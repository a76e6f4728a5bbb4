//! A scripted editor: says what each phase needs, and sends the first draft back.

use std::path::Path;
use std::time::Duration;

use polis::ModelRequest;
use polis::ports::{ChatMessage, ModelError};
use polis_testkit::ScriptedReply;

/// What the articles of these tests are about.
pub(crate) const TOPIC: &str = "fish";

/// The files that are searched.
pub(crate) fn write_sources(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("anatomy.md"), "Most fish breathe with gills.\nFish have fins to swim with.\n")?;
    std::fs::write(folder.join("sleep.md"), "Few fish close their eyes when they sleep.\n")
}

/// What was asked of the model, by the phase that asks.
pub(crate) fn asked(request: &ModelRequest) -> (&'static str, &str) {
    let phases = [
        ("topic_outline", "You plan an article."),
        ("source_search", "You research one aspect of a topic in a folder"),
        ("finding_summary", "You research one aspect of a topic. You are given"),
        ("draft_writing", "You write an article"),
        ("claim_comparison", "You check a draft"),
        ("verdict_forming", "You decide whether"),
    ];
    let phase = phases.iter().find(|(_, prompt)| request.system.starts_with(prompt)).map_or("?", |(phase, _)| phase);
    match request.messages.last() {
        Some(ChatMessage::User { text, .. }) => (phase, text),
        _ => (phase, ""),
    }
}

/// What the editor says. The first draft is thin and goes back; the aspect `scales` makes the model fail.
pub(crate) fn answer(request: &ModelRequest, delay: impl Fn(&str, &str) -> Duration) -> ScriptedReply {
    let (phase, text) = asked(request);
    let aspect = ["breathing", "swimming", "sleeping", "scales"]
        .into_iter()
        .find(|aspect| text.contains(&format!("<aspect>\n{aspect}\n")))
        .unwrap_or("");
    let said = match phase {
        "topic_outline" if text.contains("<topic>\nfish with scales") => "1. breathing\n2. scales".to_owned(),
        "topic_outline" if text.contains("<topic>\nnothing but scales") => "scales".to_owned(),
        "topic_outline" => "1. breathing\n2. swimming\n3. sleeping".to_owned(),
        "source_search" if aspect == "breathing" => "gills".to_owned(),
        "source_search" if aspect == "swimming" => "fins @ anatomy.md".to_owned(),
        "source_search" => "sleep".to_owned(),
        "finding_summary" if aspect == "scales" => {
            return ScriptedReply::error(ModelError::Rejected { reason: "no word about scales".to_owned() });
        }
        "finding_summary" => format!("All that is known of {aspect}."),
        "draft_writing" if text.contains("<changes>") => {
            "# Fish\n\n## breathing\n## swimming\n## sleeping\n\nThick.".to_owned()
        }
        "draft_writing" => "# Fish\n\n## breathing\n\nThin.".to_owned(),
        "claim_comparison" => "Nothing is wrong.".to_owned(),
        "verdict_forming" if text.contains("Thick.") => "accept".to_owned(),
        "verdict_forming" => "revise: more about swimming".to_owned(),
        _ => "?".to_owned(),
    };
    ScriptedReply::text(&said).after(delay(phase, aspect))
}
