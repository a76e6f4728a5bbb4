//! Keeps file tools out of the data directory, which may lie inside the workspace: it holds the log and the token.
//!
//! Only tools that confine themselves to the workspace may be put behind it, and none of them may make links.

use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use polis_domain::CallResult;
use polis_ports::{CallContext, Tool, ToolError, ToolSpec};
use serde_json::Value;

/// Where tools work, and where they may not go.
#[derive(Debug, Clone)]
pub(crate) struct Fence {
    workspace: PathBuf,
    data: PathBuf,
}

impl Fence {
    /// Both folders must exist.
    pub(crate) fn new(workspace: &Path, data: &Path) -> io::Result<Self> {
        Ok(Self { workspace: workspace.canonicalize()?, data: data.canonicalize()? })
    }

    /// The same tools, kept out. Where the data lie elsewhere, nothing is needed.
    pub(crate) fn around(&self, tools: Vec<Box<dyn Tool>>) -> Vec<Box<dyn Tool>> {
        if !self.data.starts_with(&self.workspace) {
            return tools;
        }
        let fenced = |tool| Box::new(Fenced { tool, fence: self.clone() }) as Box<dyn Tool>;
        tools.into_iter().map(fenced).collect()
    }

    /// Whether a path of the workspace leads to the data, also over links. What does not exist counts where it would be.
    fn is_crossed_by(&self, path: &str) -> bool {
        let whole = self.workspace.join(path);
        let there = whole.ancestors().find_map(|part| part.canonicalize().ok());
        there.is_none_or(|there| there.starts_with(&self.data))
    }
}

struct Fenced {
    tool: Box<dyn Tool>,
    fence: Fence,
}

#[async_trait]
impl Tool for Fenced {
    fn spec(&self) -> ToolSpec {
        self.tool.spec()
    }

    async fn call(&self, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        let given: Option<Value> = serde_json::from_str(arguments).ok();
        let path = given.as_ref().and_then(|given| given.get("path")?.as_str());
        if path.is_some_and(|path| self.fence.is_crossed_by(path)) {
            let content = "error: that lies in the data directory of polis, which no agent may touch".into();
            return Ok(CallResult { content, is_error: true });
        }
        self.tool.call(arguments, context).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_cannot_be_reached_from_the_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join(".polis");
        std::fs::create_dir(&data).unwrap();
        std::fs::write(data.join("token"), "t").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(".polis", dir.path().join("link")).unwrap();
        let fence = Fence::new(dir.path(), &data).unwrap();
        for path in [".polis/token", "./.polis//token", "link/token", ".polis/new/file", ".polis"] {
            assert!(fence.is_crossed_by(path), "{path}");
        }
        for path in ["a.txt", "new/folder/a.txt", ".polis2/x"] {
            assert!(!fence.is_crossed_by(path), "{path}");
        }
    }
}
