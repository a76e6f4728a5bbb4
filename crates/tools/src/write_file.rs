//! `write_file`: a whole text file of the workspace, in place of what was there, or not at all.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use cap_std::fs::{Dir, File, OpenOptions, Permissions};
use polis_domain::{CallResult, EffectClass, Flow};
use polis_ports::{CallContext, TextChange, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::results::{arguments, failed, good};
use crate::text::{TextError, compared, text_to_compare};
use crate::workspace::{RelativePath, Workspace, WorkspaceError};

/// Largest file that is written, in bytes.
const MAX_FILE_BYTES: usize = 16 << 20;

/// Writes text files.
#[derive(Debug)]
pub struct WriteFile {
    workspace: Workspace,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

impl WriteFile {
    /// Writes within `workspace`.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

#[async_trait]
impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write_file".into(),
            description:
                "Writes a whole text file of the workspace and makes its folders. Files that programs or agents obey (roles, \
                          AGENTS.md, git hooks, settings) only the person can write."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Path from the workspace's root, for example docs/notes.md" },
                    "content": { "type": "string" },
                },
                "required": ["path", "content"],
            }),
            class: EffectClass::Write,
            volatile: false,
        }
    }

    fn flow(&self, text: &str) -> Flow {
        let Ok(Arguments { path, .. }) = arguments(text) else { return Flow::default() };
        let Ok(path) = RelativePath::new(&path) else { return Flow::default() };
        // What will be refused destroys nothing: nobody needs to be asked about it.
        let destroys = self.workspace.why_not_written(&path).is_none()
            && !matches!(self.workspace.size_of(&path), Err(WorkspaceError::Missing(_)));
        let file: Option<std::sync::Arc<str>> = Some(path.as_str().into());
        Flow { stores: true, destroys, target: file.clone(), file, ..Flow::default() }
    }

    async fn change(&self, text: &str) -> Option<Result<TextChange, String>> {
        let Arguments { path, content } = arguments(text).ok()?;
        let path = RelativePath::new(&path).ok()?;
        let workspace = self.workspace.clone();
        let compare = move || {
            if let Some(why) = workspace.why_not_writable(&path) {
                return Err(why.to_string());
            }
            let before = match text_to_compare(&workspace, &path) {
                Ok(before) => Some(before),
                Err(TextError::Workspace(WorkspaceError::Missing(_))) => None,
                Err(error) => return Err(error.to_string()),
            };
            Ok(TextChange { path: path.to_string(), before, after: content })
        };
        compared(compare).await
    }

    async fn call(&self, text: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        let Arguments { path, content } = arguments(text)?;
        let path = RelativePath::new(&path)?;
        if content.len() > MAX_FILE_BYTES {
            return Err(ToolError::BadArguments(format!("content is longer than {MAX_FILE_BYTES} bytes")));
        }
        let workspace = self.workspace.clone();
        let written = tokio::task::spawn_blocking(move || write(&workspace, &path, &content));
        Ok(written.await.unwrap_or_else(failed))
    }
}

/// Writes a whole file, and says how it went.
pub(crate) fn write(workspace: &Workspace, path: &RelativePath, content: &str) -> CallResult {
    let is_new_folder = !workspace.has_parent_of(path);
    match replace(workspace, path, content.as_bytes()) {
        Ok(()) => {}
        Err(error @ WorkspaceError::ProtectedPaths { .. }) => return failed(error),
        Err(error) => return failed(format_args!("{error}; nothing was written")),
    }
    match workspace.sync_parents_of(path, is_new_folder) {
        Ok(()) if content.len() == 1 => good(format!("wrote 1 byte to `{path}`")),
        Ok(()) => good(format!("wrote {} bytes to `{path}`", content.len())),
        Err(error) => failed(format_args!("`{path}` was written, but may be lost if the machine stops now: {error}")),
    }
}

fn replace(workspace: &Workspace, path: &RelativePath, content: &[u8]) -> Result<(), WorkspaceError> {
    let refused = |error| path.refused(error);
    let folder = workspace.parent_of(path)?;
    let permissions = match folder.symlink_metadata(path.name()) {
        Ok(found) => {
            path.must_be_file(&found.file_type())?;
            Some(found.permissions())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(refused(error)),
    };
    put(&folder, path.name(), content, permissions).map_err(refused)
}

/// Puts a whole new file in the place of `name`; what goes wrong leaves nothing behind.
fn put(folder: &Dir, name: &str, content: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let (draft, file) = new_draft(folder)?;
    let written = fill(file, content, permissions).and_then(|()| folder.rename(&draft, folder, name));
    written.inspect_err(|_| {
        // What went wrong first is what counts.
        let _ = folder.remove_file(&draft);
    })
}

/// A new file beside the one to be written. A name that is taken belongs to another process, or to one that crashed.
fn new_draft(folder: &Dir) -> io::Result<(String, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let draft = format!(".polis-{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        match folder.open_with(&draft, OpenOptions::new().write(true).create_new(true)) {
            Ok(file) => return Ok((draft, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn fill(mut file: File, content: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    file.write_all(content)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;

    use super::*;

    #[test]
    fn a_draft_that_cannot_take_its_place_is_cleared_away() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("folder")).unwrap();
        let folder = Dir::open_ambient_dir(root.path(), ambient_authority()).unwrap();
        put(&folder, "folder", b"x", None).unwrap_err();
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
    }
}
