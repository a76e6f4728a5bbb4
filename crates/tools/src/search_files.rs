//! `search_files`: where a text stands in the files of a folder, and how often.

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Flow};
use polis_ports::{CallContext, Tool, ToolError, ToolSpec};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::json;

use crate::glob::Glob;
use crate::results::{arguments, failed, good, on_one_line};
use crate::text::{TextError, text_of};
use crate::walk::{EntryKind, Walk};
use crate::workspace::{RelativePath, Workspace};

/// Longest text to look for, in characters.
const MAX_TEXT_CHARS: usize = 500;
/// Largest regex, compiled.
const MAX_REGEX_BYTES: usize = 1 << 20;
/// Most bytes of files that are read in one search.
const MAX_SEARCHED_BYTES: u64 = 64 << 20;
/// Most lines that are shown, and how much of each.
const MAX_SHOWN: usize = 200;
const MAX_LINE_CHARS: usize = 200;
/// Most files whose counts are shown.
const MAX_FILES: usize = 100;

/// Searches files.
#[derive(Debug)]
pub struct SearchFiles {
    workspace: Workspace,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    text: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    pattern: Option<String>,
    #[serde(default)]
    ignore_case: Option<bool>,
    #[serde(default)]
    whole_word: Option<bool>,
    #[serde(default)]
    wildcard: Option<bool>,
    #[serde(default)]
    regex: Option<bool>,
    #[serde(default)]
    hidden: Option<bool>,
    #[serde(default)]
    ignored: Option<bool>,
}

impl SearchFiles {
    /// Searches within `workspace`.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

#[async_trait]
impl Tool for SearchFiles {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "search_files".into(),
            description: "Searches text files below a folder: path:line: of each match, then counts per file and totals."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "text": { "type": "string" },
                    "path": { "type": "string" },
                    "pattern": { "type": "string", "description": "Only files such as *.md or src/**/*.rs" },
                    "ignore_case": { "type": "boolean" },
                    "whole_word": { "type": "boolean" },
                    "wildcard": { "type": "boolean" },
                    "regex": { "type": "boolean", "description": "Without look-around" },
                    "hidden": { "type": "boolean" },
                    "ignored": { "type": "boolean" },
                },
                "required": ["text"],
            }),
            class: EffectClass::Read,
            volatile: false,
        }
    }

    fn flow(&self, _: &str) -> Flow {
        Flow { private: true, recalls: true, ..Flow::default() }
    }

    async fn call(&self, text: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        let Arguments { text, path, pattern, ignore_case, whole_word, wildcard, regex, hidden, ignored } = arguments(text)?;
        let kind = match (wildcard.unwrap_or_default(), regex.unwrap_or_default()) {
            (false, false) => Kind::Plain,
            (true, false) => Kind::Wildcard,
            (false, true) => Kind::Regex,
            (true, true) => return Err(ToolError::BadArguments("wildcard and regex exclude each other".to_owned())),
        };
        let line_pattern = LinePattern::new(&text, kind, ignore_case.unwrap_or_default(), whole_word.unwrap_or_default())?;
        let walk = Walk {
            start: RelativePath::folder(path.as_deref().unwrap_or("."))?,
            recursive: true,
            hidden: hidden.unwrap_or_default(),
            ignored: ignored.unwrap_or_default(),
            pattern: pattern.as_deref().map(Glob::new).transpose()?,
        };
        let workspace = self.workspace.clone();
        let searched = tokio::task::spawn_blocking(move || search(&workspace, &walk, &line_pattern));
        Ok(match searched.await {
            Ok(Ok(content)) => good(content),
            Ok(Err(failure)) => failure,
            Err(stopped) => failed(stopped),
        })
    }
}

/// How the text that is looked for is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Wildcard,
    Regex,
}

/// What is looked for on each line.
struct LinePattern {
    regex: Regex,
    whole_word: bool,
}

impl LinePattern {
    fn new(text: &str, kind: Kind, ignore_case: bool, whole_word: bool) -> Result<Self, ToolError> {
        let pattern = match kind {
            Kind::Plain => regex::escape(text),
            Kind::Wildcard => {
                text.split('*').filter(|piece| !piece.is_empty()).map(regex::escape).collect::<Vec<_>>().join(".*?")
            }
            Kind::Regex => text.to_owned(),
        };
        if pattern.is_empty() || text.chars().count() > MAX_TEXT_CHARS || text.contains('\n') {
            let why = format!("text must be one line of 1 to {MAX_TEXT_CHARS} characters, and not wildcards alone");
            return Err(ToolError::BadArguments(why));
        }
        let built = RegexBuilder::new(&pattern).case_insensitive(ignore_case).size_limit(MAX_REGEX_BYTES).build();
        let regex = built.map_err(|error| ToolError::BadArguments(format!("text cannot be used as a regex: {error}")))?;
        Ok(Self { regex, whole_word })
    }

    /// How often a line has it; what is found does not overlap, and nothing at all is not found.
    fn count(&self, line: &str) -> usize {
        let (mut at, mut count) = (0, 0);
        while at <= line.len()
            && let Some(found) = self.regex.find_at(line, at)
        {
            let (start, end) = (found.start(), found.end());
            if found.is_empty() || (self.whole_word && !is_whole(line, start, end)) {
                at = start + line[start..].chars().next().map_or(1, char::len_utf8);
            } else {
                count += 1;
                at = end;
            }
        }
        count
    }
}

/// Whether no letter or digit stands against either end. Chinese has no spaces between words, so none is asked for there.
fn is_whole(line: &str, start: usize, end: usize) -> bool {
    let joins = |c: char| (c.is_alphanumeric() || c == '_') && !is_han(c);
    let apart = |outside: Option<char>, inside: Option<char>| !(outside.is_some_and(joins) && inside.is_some_and(joins));
    apart(line[..start].chars().next_back(), line[start..].chars().next())
        && apart(line[end..].chars().next(), line[..end].chars().next_back())
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}')
}

fn search(workspace: &Workspace, walk: &Walk, line_pattern: &LinePattern) -> Result<String, CallResult> {
    let result = walk.run(workspace).map_err(failed)?;
    let (mut shown, mut counts) = (Vec::new(), Vec::new());
    let (mut files, mut lines, mut times) = (0_usize, 0_usize, 0_usize);
    let (mut binary, mut unread, mut left) = (0_usize, 0_usize, MAX_SEARCHED_BYTES);
    for entry in &result.entries {
        let EntryKind::File { bytes } = entry.kind else { continue };
        let Some(less) = left.checked_sub(bytes) else {
            unread += 1;
            continue;
        };
        let text = match text_of(workspace, &entry.path) {
            Ok(text) => text,
            Err(TextError::Binary(_)) => {
                binary += 1;
                continue;
            }
            Err(TextError::TooLarge(..) | TextError::Workspace(_)) => {
                unread += 1;
                continue;
            }
        };
        left = less;
        files += 1;
        let path = on_one_line(entry.path.as_str());
        let mut here = 0;
        for (n, line) in text.lines().enumerate() {
            let count = line_pattern.count(line);
            if count == 0 {
                continue;
            }
            here += count;
            lines += 1;
            if shown.len() < MAX_SHOWN {
                shown.push(format!("{path}:{}: {}\n", n + 1, cut(line)));
            }
        }
        if here > 0 {
            counts.push(format!("{path}: {here} times\n"));
            times += here;
        }
    }
    let mut content: String = shown.concat();
    if lines > shown.len() {
        content.push_str(&format!("[cut: these are {} of {lines} lines]\n", shown.len()));
    }
    let with = counts.len();
    if with > 1 {
        content.extend(counts.iter().take(MAX_FILES).map(String::as_str));
        if with > MAX_FILES {
            content.push_str(&format!("[cut: these are {MAX_FILES} of {with} files]\n"));
        }
    }
    content.push_str(&format!("[total: {times} times on {lines} lines in {with} of {files} text files"));
    if binary > 0 {
        content.push_str(&format!("; {binary} files are no text"));
    }
    if unread + result.unreadable > 0 {
        content.push_str(&format!("; {} files are too large or cannot be read", unread + result.unreadable));
    }
    if result.ignored > 0 {
        content.push_str(&format!("; {} entries are left out by .gitignore", result.ignored));
    }
    if result.is_cut {
        content.push_str("; there is more than can be walked through at once, so give a folder further down");
    }
    content.push(']');
    Ok(content)
}

fn cut(line: &str) -> String {
    let line = line.trim_end();
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_are_counted_once_each_and_as_asked() {
        use Kind::{Plain, Regex, Wildcard};
        for ((text, kind, ignore_case, whole_word), line, want) in [
            (("aa", Plain, false, false), "aaaa aa", 3),
            (("Milk", Plain, false, false), "milk Milk MILK", 1),
            (("Milk", Plain, true, false), "milk Milk MILK milkman", 4),
            (("milk", Plain, true, true), "milk, Milk; MILK milkman buttermilk milk_2", 3),
            (("苹果", Plain, false, true), "买苹果和苹果汁", 2),
            (("a*c", Wildcard, false, false), "abc ac a b c", 3),
            (("a*c", Plain, false, false), "abc a*c", 1),
            (("é", Plain, true, false), "É é", 2),
            ((r"\bm[ij]lk\d*", Regex, true, false), "Milk mjlk42 xmilk", 2),
            (("x*", Regex, false, false), "axxb数x", 2),
            (("fn|let", Regex, false, true), "fn let fnord", 2),
        ] {
            let line_pattern = LinePattern::new(text, kind, ignore_case, whole_word).unwrap();
            assert_eq!(line_pattern.count(line), want, "{text} in {line}");
        }
    }

    #[test]
    fn what_cannot_be_looked_for_is_refused() {
        for (text, kind) in [
            ("", Kind::Plain),
            ("a\nb", Kind::Plain),
            ("**", Kind::Wildcard),
            (&*"x".repeat(501), Kind::Plain),
            ("(a", Kind::Regex),
            ("(a{1000}){1000}", Kind::Regex),
        ] {
            assert!(LinePattern::new(text, kind, false, false).is_err(), "{text:?}");
        }
    }
}
