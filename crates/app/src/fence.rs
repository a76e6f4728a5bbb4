//! Keeps file tools away from what governs them: the data directory, which holds the log and the token, the configuration,
//! which says where keys are sent and which programs are started, and the procedures that agents follow.
//!
//! Only tools that confine themselves to the workspace may be put behind it. Commands are kept away by the sandbox.

use std::io;
use std::path::{Path, PathBuf};

use polis_tools::Workspace;

use crate::roles;

/// What tools are told that want to go there.
const CLOSED: &str = "the data directory or the configuration of polis, which no agent may touch";

/// Where tools work, and where they may not go.
#[derive(Debug, Clone)]
pub(crate) struct Fence {
    workspace: PathBuf,
    data: PathBuf,
    /// Files and folders that need not exist yet.
    settings: Vec<PathBuf>,
    /// Where people write roles.
    roles: Option<PathBuf>,
}

impl Fence {
    /// The workspace must exist.
    pub(crate) fn new(workspace: &Path, data: &Path, settings: &[PathBuf]) -> io::Result<Self> {
        let settings = settings.iter().map(|file| resolved(file)).collect::<io::Result<_>>()?;
        Ok(Self { workspace: workspace.canonicalize()?, data: resolved(data)?, settings, roles: None })
    }

    /// The same fence, also around the files of roles in this folder.
    pub(crate) fn with_roles(self, folder: &Path) -> Self {
        Self { roles: resolved(folder).ok(), ..self }
    }

    /// What lies behind the fence.
    pub(crate) fn closed(&self) -> Vec<PathBuf> {
        let roles = self.roles.iter().flat_map(|folder| roles::files(folder));
        [&self.data].into_iter().chain(&self.settings).cloned().chain(roles).collect()
    }

    /// The workspace, with what lies behind the fence closed to every tool.
    pub(crate) fn around(self, workspace: Workspace) -> Workspace {
        workspace.with_closed(move |path| self.is_crossed_by(path).then_some(CLOSED))
    }

    /// Whether a path of the workspace leads there, also over links. What does not exist counts where it would be.
    fn is_crossed_by(&self, path: &str) -> bool {
        let whole = self.workspace.join(path);
        let place = |part: &Path| Some(part.canonicalize().ok()?.join(whole.strip_prefix(part).ok()?));
        let there = whole.ancestors().find_map(place);
        let is_role = |there: &Path| self.roles.is_some() && there.parent() == self.roles.as_deref() && roles::is_role(there);
        let is_closed = |there: &Path| [&self.data].into_iter().chain(&self.settings).any(|closed| there.starts_with(closed));
        there.is_none_or(|there| is_closed(&there) || is_role(&there))
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
        let settings = ["polis.toml", ".mcp.json"].map(|file| dir.path().join(file));
        let fence = Fence::new(dir.path(), &data, &settings).unwrap();
        for path in [
            ".polis/token",
            "./.polis//token",
            "link/token",
            ".polis/new/file",
            ".polis",
            "polis.toml",
            "./polis.toml",
            ".mcp.json",
        ] {
            assert!(fence.is_crossed_by(path), "{path}");
        }
        for path in ["a.txt", "new/folder/a.txt", ".polis2/x", "examples/polis.toml"] {
            assert!(!fence.is_crossed_by(path), "{path}");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("polis.toml", dir.path().join("innocent")).unwrap();
        std::fs::write(dir.path().join("polis.toml"), "").unwrap();
        assert!(fence.is_crossed_by("innocent"), "a link to the configuration");
        let later = Fence::new(dir.path(), &dir.path().join("later"), &settings).unwrap();
        assert!(later.is_crossed_by("later/token") && !later.is_crossed_by("late"), "a data directory that is not there yet");
    }
}
