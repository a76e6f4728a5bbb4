//! The files that an article is written from: where they mention something. Reads by the tool `search_files`; makes nothing up.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use polis::Tool;
use polis::domain::ToolCall;
use polis::prelude::*;
use polis_tools::{SearchFiles, ToolRegistry, Workspace};
use serde_json::json;

/// The tool that searches.
const TOOL: &str = "search_files";

/// Most lines that are shown for one search.
const MAX_PASSAGES: usize = 12;

/// Most words of a request that are looked for.
const MAX_WORDS: usize = 8;

/// Words that stand everywhere.
const EVERYWHERE: &[&str] = &[
    "about", "after", "all", "also", "and", "are", "been", "but", "can", "does", "for", "from", "has", "have", "how", "into",
    "its", "more", "most", "not", "our", "that", "the", "their", "them", "then", "there", "these", "they", "this", "was",
    "what", "when", "where", "which", "who", "why", "with", "you", "your",
];

/// The tool that searches the files of this folder, and no other.
pub fn tools(folder: &Path) -> Result<ToolRegistry, Box<dyn Error>> {
    let search: Box<dyn Tool> = Box::new(SearchFiles::new(Workspace::open(folder)?));
    Ok(ToolRegistry::new([search])?)
}

/// Whether there are files to search.
pub fn are_there(turn: &Turn) -> bool {
    turn.tools().iter().any(|tool| &*tool.name == TOOL)
}

/// The lines that have most of the words of a text, as `path:line: text`, best first; in one folder or file if it is named.
pub async fn passages(turn: &mut Turn, text: &str, within: Option<&str>) -> Result<Vec<String>, Failure> {
    if !are_there(turn) {
        return Ok(Vec::new());
    }
    let call = |(n, word): (usize, String)| {
        let mut arguments = json!({ "text": word, "ignore_case": true });
        if let Some(path) = within {
            arguments["path"] = path.into();
        }
        ToolCall { id: format!("search_{n}").into(), name: TOOL.into(), arguments: arguments.to_string().into() }
    };
    let calls = words(text).into_iter().enumerate().map(call).collect();
    let results = turn.call_tools(calls).await;
    let found = results.iter().filter(|result| !result.is_error).flat_map(|result| result.content.lines());
    let mut hits = BTreeMap::<(&str, usize, &str), usize>::new();
    for place in found.filter_map(place_of) {
        *hits.entry(place).or_default() += 1;
    }
    let mut hits: Vec<_> = hits.into_iter().collect();
    hits.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    let shown = hits.into_iter().take(MAX_PASSAGES);
    Ok(shown.map(|((path, line, text), _)| format!("{path}:{line}: {text}")).collect())
}

/// The words of a text that say something, each once. Chinese has no spaces between words: two characters are one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |word: String| {
        let says_something = if word.is_ascii() { word.len() > 2 } else { word.chars().count() > 1 };
        if says_something && !EVERYWHERE.contains(&&*word) && !words.contains(&word) {
            words.push(word);
        }
    };
    for word in text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase) {
        let characters: Vec<char> = word.chars().collect();
        if characters.iter().copied().all(is_chinese) && characters.len() > 2 {
            characters.windows(2).for_each(|pair| add(pair.iter().collect()));
        } else {
            add(word);
        }
    }
    if words.is_empty() {
        words.extend(Some(text.trim().to_owned()).filter(|text| !text.is_empty()));
    }
    words.truncate(MAX_WORDS);
    words
}

/// Whether this is a Chinese character.
pub(crate) fn is_chinese(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// What a line of a result says: the path, the number of the line, and the line.
fn place_of(line: &str) -> Option<(&str, usize, &str)> {
    let (path, rest) = line.split_once(':')?;
    let (number, text) = rest.split_once(": ")?;
    let text = text.trim();
    // A Chinese character says about as much as three messages.
    let envelopes = text.chars().filter(|c| c.is_alphabetic()).map(|c| if is_chinese(c) { 3 } else { 1 });
    let says_something = envelopes.sum::<usize>() > 8;
    Some((path, number.parse().ok()?, text)).filter(|_| says_something)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_searched_for_by_the_words_that_say_something() {
        for (text, want) in [
            ("How does the log survive a crash? The LOG!", &["log", "survive", "crash"][..]),
            ("fish", &["fish"]),
            ("a b", &["a b"]),
            ("崩溃之后", &["崩溃", "溃之", "之后"]),
            ("鱼", &["鱼"]),
            ("鱼类 sleep", &["鱼类", "sleep"]),
            (" ", &[]),
        ] {
            assert_eq!(words(text), want, "{text}");
        }
    }

    #[test]
    fn only_lines_that_quote_a_file_count() {
        assert_eq!(place_of("a/b.md:12: Fish breathe with gills."), Some(("a/b.md", 12, "Fish breathe with gills.")));
        assert_eq!(place_of("鱼.md:1: 鱼有鳃。"), Some(("鱼.md", 1, "鱼有鳃。")));
        for line in ["a/b.md: 3 times", "[total: 3 times on 2 lines in 1 of 4 text files]", "a.md:1: | --- |"] {
            assert_eq!(place_of(line), None, "{line}");
        }
    }
}
