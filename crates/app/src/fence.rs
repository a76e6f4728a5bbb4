//! Keeps file tools away from what governs them: the data directory, which holds the log and the token, and the configuration,
//! which says where keys are sent.
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
    /// Files that need not exist yet.
    settings: Vec<PathBuf>,
}

impl Fence {
    /// Both folders must exist.
    pub(crate) fn new(workspace: &Path, data: &Path, settings: &[PathBuf]) -> io::Result<Self> {
        let settings = settings.iter().map(|file| resolved(file)).collect::<io::Result<_>>()?;
        Ok(Self { workspace: workspace.canonicalize()?, data: data.canonicalize()?, settings })
    }

    /// The same tools, kept out.
    pub(crate) fn around(&self, tools: Vec<Box<dyn Tool>>) -> Vec<Box<dyn Tool>> {
        let fenced = |tool| Box::new(Fenced { tool, fence: self.clone() }) as Box<dyn Tool>;
        tools.into_iter().map(fenced).collect()
    }

    /// Whether a path of the workspace leads there, also over links. What does not exist counts where it would be.
    fn is_crossed_by(&self, path: &str) -> bool {
        let whole = self.workspace.join(path);
        let there = whole.ancestors().find_map(|part| part.canonicalize().ok());
        let governs = |there: PathBuf| self.settings.contains(&there);
        there.is_none_or(|there| there.starts_with(&self.data)) || resolved(&whole).is_ok_and(governs)
    }
}

/// A file's real place, whether or not it exists; its folder must.
fn resolved(file: &Path) -> io::Result<PathBuf> {
    if let Ok(real) = file.canonicalize() {
        return Ok(real);
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(folder.canonicalize()?.join(file.file_name().unwrap_or_default()))
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
            let content = "error: that is the data directory or the configuration of polis, which no agent may touch".into();
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
        let fence = Fence::new(dir.path(), &data, &[dir.path().join("polis.toml")]).unwrap();
        for path in [".polis/token", "./.polis//token", "link/token", ".polis/new/file", ".polis", "polis.toml", "./polis.toml"]
        {
            assert!(fence.is_crossed_by(path), "{path}");
        }
        for path in ["a.txt", "new/folder/a.txt", ".polis2/x", "examples/polis.toml"] {
            assert!(!fence.is_crossed_by(path), "{path}");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("polis.toml", dir.path().join("innocent")).unwrap();
        std::fs::write(dir.path().join("polis.toml"), "").unwrap();
        assert!(fence.is_crossed_by("innocent"), "a link to the configuration");
    }
}
