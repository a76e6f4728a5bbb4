//! `list_files`: what is in a folder of the workspace, with sizes, and if wished the lines and words of each text file.

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Flow};
use polis_ports::{CallContext, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::glob::Glob;
use crate::results::{MAX_RESULT_BYTES, arguments, failed, good, on_one_line};
use crate::text::text_of;
use crate::walk::{EntryKind, Walk, WalkEntry, WalkResult};
use crate::workspace::{RelativePath, Workspace};

/// Most bytes of files that are read to count their lines.
const MAX_COUNTED_BYTES: u64 = 64 << 20;

/// Lists files.
#[derive(Debug)]
pub struct ListFiles {
    workspace: Workspace,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    recursive: Option<bool>,
    #[serde(default)]
    pattern: Option<String>,
    #[serde(default)]
    hidden: Option<bool>,
    #[serde(default)]
    ignored: Option<bool>,
    #[serde(default)]
    counts: Option<bool>,
    #[serde(default)]
    offset: Option<usize>,
}

impl ListFiles {
    /// Lists within `workspace`.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

#[async_trait]
impl Tool for ListFiles {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "list_files".into(),
            description:
                "Lists a folder of the workspace: entries with sizes in bytes, folders with a `/`, then totals. A long list is \
                          cut with a note where to go on."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "The workspace's root if left out" },
                    "recursive": { "type": "boolean" },
                    "pattern": { "type": "string", "description": "For example *.{csv,tsv} or src/**/*.rs" },
                    "hidden": { "type": "boolean" },
                    "ignored": { "type": "boolean", "description": "Also what .gitignore excludes" },
                    "counts": { "type": "boolean" },
                    "offset": { "type": "integer" },
                },
            }),
            class: EffectClass::Read,
            volatile: false,
        }
    }

    fn flow(&self, _: &str) -> Flow {
        Flow { private: true, recalls: true, ..Flow::default() }
    }

    async fn call(&self, text: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        let Arguments { path, recursive, pattern, hidden, ignored, counts, offset } = arguments(text)?;
        let walk = Walk {
            start: RelativePath::folder(path.as_deref().unwrap_or("."))?,
            recursive: recursive.unwrap_or_default(),
            hidden: hidden.unwrap_or_default(),
            ignored: ignored.unwrap_or_default(),
            pattern: pattern.as_deref().map(Glob::new).transpose()?,
        };
        let workspace = self.workspace.clone();
        let listed = tokio::task::spawn_blocking(move || {
            let result = walk.run(&workspace).map_err(failed)?;
            let counted = counts.unwrap_or_default().then(|| count(&workspace, &result));
            listing(&result, counted.as_deref(), offset.unwrap_or_default())
        });
        Ok(match listed.await {
            Ok(Ok(content)) => good(content),
            Ok(Err(failure)) => failure,
            Err(stopped) => failed(stopped),
        })
    }
}

/// What is in one text file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    lines: usize,
    words: usize,
    chars: usize,
}

impl Counts {
    fn of(text: &str) -> Self {
        Self { lines: text.lines().count(), words: text.split_whitespace().count(), chars: text.chars().count() }
    }

    fn plus(self, other: Self) -> Self {
        Self { lines: self.lines + other.lines, words: self.words + other.words, chars: self.chars + other.chars }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} lines, {} words, {} characters", self.lines, self.words, self.chars)
    }
}

/// The counts of each entry; none for what is no text file, or comes after the most that is read.
fn count(workspace: &Workspace, result: &WalkResult) -> Vec<Option<Counts>> {
    let mut left = MAX_COUNTED_BYTES;
    let counted = result.entries.iter().map(|found| {
        let EntryKind::File { bytes } = found.kind else { return None };
        left = left.checked_sub(bytes)?;
        text_of(workspace, &found.path).ok().map(|text| Counts::of(&text))
    });
    counted.collect()
}

fn listing(result: &WalkResult, counted: Option<&[Option<Counts>]>, offset: usize) -> Result<String, CallResult> {
    let total = result.entries.len();
    if offset > 0 && offset >= total {
        return Err(failed(format_args!("there are only {total} entries")));
    }
    let mut content = String::new();
    let mut shown = offset;
    for (n, found) in result.entries.iter().enumerate().skip(offset) {
        let line = line(found, counted.map(|counted| counted[n]));
        if content.len() + line.len() > MAX_RESULT_BYTES {
            break;
        }
        content.push_str(&line);
        shown = n + 1;
    }
    if shown < total || offset > 0 {
        content.push_str(&format!("[cut: these are entries {} to {shown} of {total}", offset + 1));
        content.push_str(&if shown < total { format!("; go on with offset {shown}]\n") } else { "]\n".to_owned() });
    }
    content.push_str(&totals(result, counted));
    Ok(content)
}

fn line(found: &WalkEntry, counts: Option<Option<Counts>>) -> String {
    let path = on_one_line(found.path.as_str());
    match (found.kind, counts) {
        (EntryKind::File { bytes }, None) => format!("{path} ({bytes} bytes)\n"),
        (EntryKind::File { bytes }, Some(Some(counts))) => format!("{path} ({bytes} bytes, {counts})\n"),
        (EntryKind::File { bytes }, Some(None)) => format!("{path} ({bytes} bytes, not counted)\n"),
        (EntryKind::Folder, _) => format!("{path}/\n"),
        (EntryKind::Link, _) => format!("{path} (a link, not followed)\n"),
        (EntryKind::Other, _) => format!("{path} (no file)\n"),
    }
}

fn totals(result: &WalkResult, counted: Option<&[Option<Counts>]>) -> String {
    let (mut files, mut folders, mut bytes) = (0_usize, 0_usize, 0_u64);
    for found in &result.entries {
        match found.kind {
            EntryKind::File { bytes: more } => {
                files += 1;
                bytes += more;
            }
            EntryKind::Folder => folders += 1,
            EntryKind::Link | EntryKind::Other => {}
        }
    }
    let mut totals = format!("[total: {files} files with {bytes} bytes, {folders} folders");
    if let Some(counted) = counted {
        let known: Vec<_> = counted.iter().flatten().collect();
        let sum = known.iter().fold(Counts::default(), |sum, counts| sum.plus(**counts));
        totals.push_str(&format!("; {} text files with {sum}", known.len()));
    }
    if result.unreadable > 0 {
        totals.push_str(&format!("; {} entries cannot be read", result.unreadable));
    }
    if result.ignored > 0 {
        totals.push_str(&format!("; {} entries are left out by .gitignore", result.ignored));
    }
    if result.is_cut {
        totals.push_str("; there is more than can be walked through at once, so give a folder further down");
    }
    totals.push(']');
    totals
}
