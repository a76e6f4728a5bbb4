//! What is in a folder, as a list.

use std::collections::BTreeMap;

use serde_json::json;

use super::conversation::{Conversation, Step, Stop};
use super::files::{self, Entry, Listing};
use super::language::{Language, few, tell};

/// Most entries that are named.
const MAX_SHOWN: usize = 40;

pub(super) fn plan(language: Language, place: &str) -> Vec<String> {
    vec![tell!(language, "list {}", "列出{}", called(language, place))]
}

pub(super) fn list(conversation: &mut Conversation<'_>, place: &str, pattern: Option<&str>) -> Step<String> {
    let language = conversation.language;
    let place_called = called(language, place);
    conversation.think(tell!(
        language,
        "I am to say what is in {place_called}: that is a call of list_files.",
        "要看{place_called}里有什么：调用 list_files。"
    ));
    // What fits a pattern may lie anywhere below.
    let listing = listed(conversation, place, pattern.is_some(), pattern, false)?;
    let folders = listing.entries.iter().filter(|entry| entry.path.ends_with('/')).count();
    let files = listing.files().count();
    let names = listing.entries.iter().take(MAX_SHOWN).map(|entry| match entry.bytes {
        Some(bytes) => tell!(language, "- {} ({bytes} bytes)\n", "- {}（{bytes} 字节）\n", entry.path),
        None => format!("- {}\n", entry.path),
    });
    let names: String = names.collect();
    let more = listing.entries.len().saturating_sub(MAX_SHOWN);
    let more = if more == 0 { String::new() } else { tell!(language, "and {more} more", "还有 {more} 个") };
    let fitting = pattern.map_or_else(String::new, |pattern| tell!(language, " that fit `{pattern}`", "符合 `{pattern}`"));
    let (many_files, many_folders) = (few(files, "file"), few(folders, "folder"));
    let head = tell!(
        language,
        "{} holds {many_files} and {many_folders}{fitting}:",
        "{}里有 {files} 个文件、{folders} 个文件夹{fitting}：",
        capital(&place_called)
    );
    Ok(format!("{head}\n{names}{more}").trim_end().trim_end_matches([':', '：']).to_owned())
}

/// Lists a folder, or says why that cannot be done and what there is instead.
pub(super) fn listed(
    conversation: &mut Conversation<'_>,
    place: &str,
    recursive: bool,
    pattern: Option<&str>,
    counts: bool,
) -> Step<Listing> {
    let language = conversation.language;
    let mut arguments = json!({ "path": place });
    if recursive {
        arguments["recursive"] = json!(true);
    }
    if let Some(pattern) = pattern {
        arguments["pattern"] = json!(pattern);
    }
    if counts {
        arguments["counts"] = json!(true);
    }
    match files::list(conversation, &arguments)? {
        Ok(listing) => Ok(listing),
        Err(refusal) if is_missing_file(place, &refusal) => {
            let found = files::find(conversation, place)?.path;
            if found == place {
                return Err(Stop::Say(tell!(
                    language,
                    "I cannot use `{place}`: {refusal}.",
                    "无法使用 `{place}`：{refusal}。"
                )));
            }
            listed(conversation, &found, recursive, pattern, counts)
        }
        Err(refusal) if place != "." && refusal.contains("does not exist") => {
            conversation.think(tell!(
                language,
                "There is no `{place}`, so I see what there is.",
                "没有 `{place}`，我看看有什么。"
            ));
            let all = files::list(conversation, &json!({ "recursive": true }))?.unwrap_or_default();
            let folders: Vec<&str> =
                all.entries.iter().filter_map(|entry| entry.path.strip_suffix('/')).take(MAX_SHOWN).collect();
            let same = |path: &&&str| path.rsplit('/').next().is_some_and(|name| name.eq_ignore_ascii_case(place));
            if let Some(other) = folders.iter().find(same) {
                return listed(conversation, other, recursive, pattern, counts);
            }
            Err(Stop::Say(match folders.is_empty() {
                true => tell!(
                    language,
                    "There is no folder `{place}`, and no other either.",
                    "没有文件夹 `{place}`，也没有别的文件夹。"
                ),
                false => tell!(
                    language,
                    "There is no folder `{place}`. The folders here are: {}.",
                    "没有文件夹 `{place}`。这里的文件夹有：{}。",
                    folders.join(&tell!(language, ", ", "、"))
                ),
            }))
        }
        Err(refusal) => {
            Err(Stop::Say(tell!(language, "I cannot list `{place}`: {refusal}.", "无法列出 `{place}`：{refusal}。")))
        }
    }
}

/// Whether a file was meant, by its name, and is not there.
pub(super) fn is_missing_file(place: &str, refusal: &str) -> bool {
    let name = place.rsplit('/').next().unwrap_or(place);
    name.contains('.') && name != "." && refusal.contains("does not exist")
}

/// Files by the ending of their names, most first.
pub(super) fn kinds<'a>(files: impl Iterator<Item = &'a Entry>) -> Vec<(String, usize, u64)> {
    let mut kinds: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for entry in files {
        let name = entry.path.rsplit('/').next().unwrap_or(&entry.path);
        let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, ending)| ending.to_lowercase());
        let kind = kinds.entry(ending.unwrap_or_default()).or_default();
        kind.0 += 1;
        kind.1 += entry.bytes.unwrap_or_default();
    }
    let mut kinds: Vec<_> = kinds.into_iter().map(|(kind, (files, bytes))| (kind, files, bytes)).collect();
    kinds.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    kinds
}

/// A folder as a person would say it.
pub(super) fn called(language: Language, place: &str) -> String {
    if place == "." { tell!(language, "this folder", "当前文件夹") } else { format!("`{place}`") }
}

/// With a capital at the beginning of a sentence.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
