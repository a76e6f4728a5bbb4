//! `search_files`: where a text stands in the files of a folder, and how often.

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Flow};
use polis_ports::{CallContext, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::glob::Glob;
use crate::results::{arguments, failed, good, on_one_line};
use crate::text::{NoText, text_of};
use crate::walk::{Walk, What};
use crate::workspace::{RelativePath, Workspace};

/// Longest text to look for, in characters.
const MAX_TEXT_CHARS: usize = 500;
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
    hidden: Option<bool>,
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
            description: "Looks for a text in the files of a folder and below. Gives path:line: for each line that has it, \
                          then how often each file has it, then the totals."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "text": { "type": "string", "description": "What to look for, on one line" },
                    "path": { "type": "string", "description": "The folder or file, from the workspace's root; everything if left out" },
                    "pattern": { "type": "string", "description": "Only in files that fit, for example *.md or src/**/*.rs" },
                    "ignore_case": { "type": "boolean", "description": "Whether capitals do not matter" },
                    "whole_word": { "type": "boolean", "description": "Only where it is not part of a longer word" },
                    "wildcard": { "type": "boolean", "description": "Whether * in the text stands for anything on the line" },
                    "hidden": { "type": "boolean", "description": "Also in files and folders whose names begin with a dot" },
                },
                "required": ["text"],
                "additionalProperties": false,
            }),
            class: EffectClass::Read,
            volatile: false,
        }
    }

    fn flow(&self, _: &str) -> Flow {
        Flow { private: true, recalls: true, ..Flow::default() }
    }

    async fn call(&self, text: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        let Arguments { text, path, pattern, ignore_case, whole_word, wildcard, hidden } = arguments(text)?;
        let wanted = Wanted::new(&text, ignore_case == Some(true), whole_word == Some(true), wildcard == Some(true))?;
        let walk = Walk {
            start: RelativePath::folder(path.as_deref().unwrap_or("."))?,
            recursive: true,
            hidden: hidden.unwrap_or_default(),
            pattern: pattern.as_deref().map(Glob::new).transpose()?,
        };
        let workspace = self.workspace.clone();
        let searched = tokio::task::spawn_blocking(move || search(&workspace, &walk, &wanted));
        Ok(match searched.await {
            Ok(Ok(content)) => good(content),
            Ok(Err(failure)) => failure,
            Err(stopped) => failed(stopped),
        })
    }
}

/// The text that is looked for, in the chunks between its wildcards.
struct Wanted {
    pieces: Vec<String>,
    ignore_case: bool,
    whole_word: bool,
}

impl Wanted {
    fn new(text: &str, ignore_case: bool, whole_word: bool, wildcard: bool) -> Result<Self, ToolError> {
        let text = if ignore_case { text.to_lowercase() } else { text.to_owned() };
        let pieces: Vec<String> = match wildcard {
            true => text.split('*').filter(|piece| !piece.is_empty()).map(str::to_owned).collect(),
            false => vec![text.clone()],
        };
        if pieces.is_empty() || text.is_empty() || text.chars().count() > MAX_TEXT_CHARS || text.contains('\n') {
            let why = format!("text must be one line of 1 to {MAX_TEXT_CHARS} characters, and not wildcards alone");
            return Err(ToolError::BadArguments(why));
        }
        Ok(Self { pieces, ignore_case, whole_word })
    }

    /// How often a line has it; what is found does not overlap.
    fn count(&self, line: &str) -> usize {
        let lower;
        let line = if self.ignore_case {
            lower = line.to_lowercase();
            &lower
        } else {
            line
        };
        let (mut at, mut count) = (0, 0);
        while let Some((start, end)) = self.next(line, at) {
            if self.whole_word && !is_whole(line, start, end) {
                at = start + line[start..].chars().next().map_or(1, char::len_utf8);
            } else {
                count += 1;
                at = end;
            }
        }
        count
    }

    fn next(&self, line: &str, at: usize) -> Option<(usize, usize)> {
        let first = at + line[at..].find(&self.pieces[0])?;
        let mut end = first + self.pieces[0].len();
        for piece in &self.pieces[1..] {
            end += line[end..].find(piece)? + piece.len();
        }
        Some((first, end))
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

fn search(workspace: &Workspace, walk: &Walk, wanted: &Wanted) -> Result<String, CallResult> {
    let walked = walk.through(workspace).map_err(failed)?;
    let (mut shown, mut counts) = (Vec::new(), Vec::new());
    let (mut files, mut lines, mut times) = (0_usize, 0_usize, 0_usize);
    let (mut binary, mut unread, mut left) = (0_usize, 0_usize, MAX_SEARCHED_BYTES);
    for found in &walked.found {
        let What::File { bytes } = found.what else { continue };
        let Some(less) = left.checked_sub(bytes) else {
            unread += 1;
            continue;
        };
        let text = match text_of(workspace, &found.path) {
            Ok(text) => text,
            Err(NoText::Binary(_)) => {
                binary += 1;
                continue;
            }
            Err(NoText::TooLarge(_) | NoText::Workspace(_)) => {
                unread += 1;
                continue;
            }
        };
        left = less;
        files += 1;
        let path = on_one_line(found.path.as_str());
        let mut here = 0;
        for (n, line) in text.lines().enumerate() {
            let count = wanted.count(line);
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
    if unread + walked.unreadable > 0 {
        content.push_str(&format!("; {} files are too large or cannot be read", unread + walked.unreadable));
    }
    if walked.is_cut {
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
        for ((text, ignore_case, whole_word, wildcard), line, want) in [
            (("aa", false, false, false), "aaaa aa", 3),
            (("Milk", false, false, false), "milk Milk MILK", 1),
            (("Milk", true, false, false), "milk Milk MILK milkman", 4),
            (("milk", true, true, false), "milk, Milk; MILK milkman buttermilk milk_2", 3),
            (("苹果", false, true, false), "买苹果和苹果汁", 2),
            (("a*c", false, false, true), "abc ac a b c", 3),
            (("a*c", false, false, false), "abc a*c", 1),
            (("é", true, false, false), "É é", 2),
        ] {
            let wanted = Wanted::new(text, ignore_case, whole_word, wildcard).unwrap();
            assert_eq!(wanted.count(line), want, "{text} in {line}");
        }
    }

    #[test]
    fn what_cannot_be_looked_for_is_refused() {
        for (text, wildcard) in [("", false), ("a\nb", false), ("**", true), (&*"x".repeat(501), false)] {
            assert!(Wanted::new(text, false, false, wildcard).is_err(), "{text:?}");
        }
    }
}
