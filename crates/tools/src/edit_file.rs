//! `edit_file`: chunks of a text file of the workspace, each exact and found once; all of them are replaced, or none.

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Flow};
use polis_ports::{CallContext, TextChange, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::results::{arguments, failed};
use crate::text::{MAX_FILE_BYTES, compared, text_of, text_to_compare};
use crate::workspace::{RelativePath, Workspace};
use crate::write_file::write;

/// Most edits of one call.
const MAX_EDITS: usize = 200;

/// Edits text files.
#[derive(Debug)]
pub struct EditFile {
    workspace: Workspace,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    edits: Vec<Edit>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    old_text: String,
    new_text: String,
}

impl EditFile {
    /// Edits within `workspace`.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

#[async_trait]
impl Tool for EditFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "edit_file".into(),
            description:
                "Replaces parts of a text file. Each old_text must occur exactly once in the file. Edits are made in order; if \
                          one fails, none is made."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Path from the workspace's root, for example docs/notes.md" },
                    "edits": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": MAX_EDITS,
                        "items": {
                            "type": "object",
                            "properties": {
                                "old_text": { "type": "string", "description": "Exactly as in the file, with enough around it" },
                                "new_text": { "type": "string" },
                            },
                            "required": ["old_text", "new_text"],
                        },
                    },
                },
                "required": ["path", "edits"],
            }),
            class: EffectClass::Write,
            volatile: false,
        }
    }

    fn flow(&self, text: &str) -> Flow {
        let path = arguments(text).ok().and_then(|Arguments { path, .. }| RelativePath::new(&path).ok());
        Flow { stores: true, file: path.map(|path| path.as_str().into()), ..Flow::default() }
    }

    async fn change(&self, text: &str) -> Option<Result<TextChange, String>> {
        let (path, edits) = read(text).ok()?;
        let workspace = self.workspace.clone();
        let compare = move || {
            if let Some(why) = workspace.why_not_writable(&path) {
                return Err(why.to_string());
            }
            let before = text_to_compare(&workspace, &path).map_err(|error| error.to_string())?;
            let after = edited(before.clone(), &edits)?;
            Ok(TextChange { path: path.to_string(), before: Some(before), after })
        };
        compared(compare).await
    }

    async fn call(&self, text: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        let (path, edits) = read(text)?;
        let workspace = self.workspace.clone();
        let edited = tokio::task::spawn_blocking(move || edit(&workspace, &path, &edits));
        Ok(edited.await.unwrap_or_else(failed))
    }
}

/// Reads the arguments, and refuses edits that cannot be made in any file.
fn read(text: &str) -> Result<(RelativePath, Vec<Edit>), ToolError> {
    let Arguments { path, edits } = arguments(text)?;
    let path = RelativePath::new(&path)?;
    if edits.is_empty() || edits.len() > MAX_EDITS {
        return Err(ToolError::BadArguments(format!("edits are 1 to {MAX_EDITS}")));
    }
    if edits.iter().any(|edit| edit.old_text.is_empty()) {
        return Err(ToolError::BadArguments("old_text is empty; write_file makes new files".to_owned()));
    }
    Ok((path, edits))
}

fn edit(workspace: &Workspace, path: &RelativePath, edits: &[Edit]) -> CallResult {
    let nothing = |why: &dyn std::fmt::Display| failed(format_args!("{why}; nothing was written"));
    let text = match text_of(workspace, path) {
        Ok(text) => text,
        Err(error) => return nothing(&error),
    };
    match edited(text, edits) {
        Ok(text) if text.len() as u64 > MAX_FILE_BYTES => {
            nothing(&format_args!("`{path}` would be larger than {MAX_FILE_BYTES} bytes"))
        }
        Ok(text) => write(workspace, path, &text),
        Err(why) => nothing(&format_args!("`{path}`: {why}")),
    }
}

fn edited(mut text: String, edits: &[Edit]) -> Result<String, String> {
    for (n, Edit { old_text, new_text }) in edits.iter().enumerate() {
        let n = n + 1;
        let Some(at) = text.find(old_text.as_str()) else {
            return Err(format!("the old_text of edit {n} is not in it{}", hint(&text, old_text)));
        };
        // From the next character on, so that two that overlap are two.
        let step = old_text.chars().next().map_or(1, char::len_utf8);
        if text[at + step..].contains(old_text.as_str()) {
            let line = |at: usize| text[..at].matches('\n').count() + 1;
            let next = at + step + text[at + step..].find(old_text.as_str()).unwrap_or_default();
            let (first, second) = (line(at), line(next));
            return Err(format!(
                "the old_text of edit {n} is in it more than once, at lines {first} and {second}; take more of its surroundings"
            ));
        }
        text.replace_range(at..at + old_text.len(), new_text);
    }
    Ok(text)
}

/// Why a text that looks the same is not.
fn hint(text: &str, old: &str) -> &'static str {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.contains("\r\n") && text.replace("\r\n", "\n").contains(old) {
        "; its lines end in \\r\\n"
    } else if squeezed(text).contains(&squeezed(old)) {
        ", but something that differs only in spaces or line ends is; read the file again"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_edit_sees_what_the_one_before_it_made_and_must_find_its_text_once() {
        for (text, edits, want) in [
            ("one two", &[("two", "three")][..], Ok("one three")),
            ("a b", &[("a", "b b"), ("b b b", "c")], Ok("c")),
            ("数据\n", &[("据", "字")], Ok("数字\n")),
            ("a", &[("a", "")], Ok("")),
            ("a", &[("b", "c")], Err("edit 1 is not in it")),
            ("a\r\nb", &[("a\nb", "c")], Err("lines end in \\r\\n")),
            ("a  b", &[("a b", "c")], Err("differs only in spaces")),
            ("x\nx", &[("x", "y")], Err("more than once, at lines 1 and 2")),
            ("aaa", &[("aa", "b")], Err("more than once, at lines 1 and 1")),
            ("数数数", &[("数数", "b")], Err("more than once")),
            ("a b", &[("a", "b"), ("b", "c")], Err("edit 2 is in it more than once")),
        ] {
            let edits: Vec<_> =
                edits.iter().map(|(old, new)| Edit { old_text: (*old).to_owned(), new_text: (*new).to_owned() }).collect();
            match (edited(text.to_owned(), &edits), want) {
                (Ok(got), Ok(want)) => assert_eq!(got, want, "{text}"),
                (Err(got), Err(want)) => assert!(got.contains(want), "{text}: {got}"),
                (got, want) => panic!("{text}: {got:?}, not {want:?}"),
            }
        }
    }
}
