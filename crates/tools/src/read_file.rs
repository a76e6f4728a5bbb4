//! `read_file`: a text file of the workspace, whole or some of its lines; a picture, a PDF or audio is shown to the model.

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Flow};
use polis_ports::{CallContext, MediaKind, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::artifacts::{copied, media_type};
use crate::results::{MAX_RESULT_BYTES, arguments, failed, good};
use crate::text::text_of;
use crate::workspace::{RelativePath, Workspace};

/// Reads text files, and shows pictures, PDFs and audio.
#[derive(Debug)]
pub struct ReadFile {
    workspace: Workspace,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    start_line: Option<usize>,
    end_line: Option<usize>,
}

impl ReadFile {
    /// Reads within `workspace`.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

#[async_trait]
impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read_file".into(),
            description:
                "Reads a text file of the workspace; a long one is cut with a note where to go on. Shows a picture, PDF or \
                          audio."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Path from the workspace's root, for example docs/notes.md" },
                    "start_line": { "type": "integer" },
                    "end_line": { "type": "integer" },
                },
                "required": ["path"],
            }),
            class: EffectClass::Read,
            volatile: false,
        }
    }

    fn flow(&self, text: &str) -> Flow {
        let path = arguments(text).ok().and_then(|Arguments { path, .. }| RelativePath::new(&path).ok());
        Flow { private: true, recalls: true, file: path.map(|path| path.as_str().into()), ..Flow::default() }
    }

    async fn call(&self, text: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        let Arguments { path, start_line, end_line } = arguments(text)?;
        let path = RelativePath::new(&path)?;
        let (start, end) = (start_line.unwrap_or(1), end_line.unwrap_or(usize::MAX));
        if start == 0 || end < start {
            return Err(ToolError::BadArguments("lines count from 1, and end_line is not before start_line".to_owned()));
        }
        let workspace = self.workspace.clone();
        if MediaKind::of(media_type(path.name(), false)).is_some() {
            let store = context.artifacts.store.clone();
            return Ok(match tokio::task::spawn_blocking(move || copied(&workspace, &path, path.name(), None, &store)).await {
                Ok(Ok(artifact)) => good(format!("[{artifact}]")).with_media(vec![artifact]),
                Ok(Err(failure)) => failure,
                Err(stopped) => failed(stopped),
            });
        }
        let read = tokio::task::spawn_blocking(move || {
            let text = text_of(&workspace, &path).map_err(failed)?;
            lines(&text, start, end).ok_or_else(|| failed(format_args!("`{path}` has {} lines", text.lines().count())))
        });
        Ok(match read.await {
            Ok(Ok(content)) => good(content),
            Ok(Err(failure)) => failure,
            Err(stopped) => failed(stopped),
        })
    }
}

/// Lines `start` to `end` as far as a result may be long, with a note where something is left out; none if the file ends
/// before `start`.
fn lines(text: &str, start: usize, end: usize) -> Option<String> {
    if text.is_empty() && start == 1 {
        return Some("[the file is empty]".to_owned());
    }
    let mut chosen = text.split_inclusive('\n').skip(start - 1).take(end - start + 1).peekable();
    chosen.peek()?;
    let (mut content, mut last) = (String::new(), start - 1);
    for line in chosen {
        if content.len() + line.len() > MAX_RESULT_BYTES {
            let total = text.lines().count();
            if last < start {
                content.push_str(&line[..line.floor_char_boundary(MAX_RESULT_BYTES)]);
                content.push_str(&format!("\n[cut: line {start} of {total} alone has {} bytes]", line.len()));
            } else {
                content.push_str(&format!(
                    "[cut: these are lines {start} to {last} of {total}; go on with start_line {}]",
                    last + 1
                ));
            }
            break;
        }
        content.push_str(line);
        last += 1;
    }
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_that_were_asked_for_are_given() {
        let text = "one\ntwo\r\nthree";
        let cases =
            [((1, usize::MAX), Some("one\ntwo\r\nthree")), ((2, 2), Some("two\r\n")), ((3, 9), Some("three")), ((4, 9), None)];
        for ((start, end), want) in cases {
            assert_eq!(lines(text, start, end).as_deref(), want, "{start} to {end}");
        }
        assert_eq!(lines("", 1, 1).as_deref(), Some("[the file is empty]"));
        assert_eq!(lines("", 2, 2), None);
    }

    #[test]
    fn a_long_file_is_cut_between_lines_and_says_where_to_go_on() {
        let line = format!("{}\n", "x".repeat(1023));
        let text = line.repeat(100);
        let cut = lines(&text, 11, 90).unwrap();
        assert!(cut.len() < MAX_RESULT_BYTES + 100);
        assert!(
            cut.ends_with("x\n[cut: these are lines 11 to 58 of 100; go on with start_line 59]"),
            "{}",
            &cut[cut.len() - 90..]
        );
        assert_eq!(lines(&text, 59, 100).unwrap(), line.repeat(42));
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let text = format!("a{}", "长".repeat(MAX_RESULT_BYTES));
        let cut = lines(&text, 1, 1).unwrap();
        assert!(cut.ends_with(&format!("长\n[cut: line 1 of 1 alone has {} bytes]", text.len())), "{}", cut.len());
        assert!(cut.len() < MAX_RESULT_BYTES + 100);
    }
}
