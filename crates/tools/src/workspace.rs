//! The folder that file tools may touch. Every path is walked from its handle by the operating system, never compared as
//! text, so no `..`, link or race leads out of it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use polis_ports::ToolError;
use rustix::fs::OFlags;

use crate::protected::{ProtectedPaths, ProtectionReason};

/// Longest path that is taken, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// A folder, held open; cloning it is cheap.
#[derive(Clone)]
pub struct Workspace {
    root: Arc<Dir>,
    protected: Arc<ProtectedPaths>,
}

/// Why a file of the workspace cannot be used, in words for the model.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// It is not there.
    #[error("`{0}` does not exist")]
    Missing(String),
    /// It is a folder, a device, a pipe or the like.
    #[error("`{path}` is {what}, not a file")]
    NotAFile {
        /// The path as it was asked for.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// What should be a folder on the way to it is none.
    #[error("`{0}` leads through something that is no folder")]
    NoFolder(String),
    /// It is a file where a folder is needed.
    #[error("`{0}` is not a folder")]
    NotAFolder(String),
    /// No tool may go there.
    #[error("`{path}` is {why}")]
    Closed {
        /// The path as it was asked for.
        path: String,
        /// What it is.
        why: &'static str,
    },
    /// No tool may write there.
    #[error("`{path}` was not written: {why}. {instead}")]
    ProtectedPaths {
        /// The path as it was asked for.
        path: String,
        /// Why the path is protected.
        why: &'static str,
        /// What to do instead.
        instead: String,
    },
    /// It lies outside.
    #[error("`{0}` leads out of the workspace")]
    Outside(String),
    /// The operating system says no.
    #[error("`{path}`: {error}")]
    Refused {
        /// The path as it was asked for.
        path: String,
        /// What it said.
        error: io::Error,
    },
}

impl Workspace {
    /// Opens the folder at `root`.
    pub fn open(root: impl AsRef<Path>) -> io::Result<Self> {
        let protected = Arc::new(ProtectedPaths::new(&root));
        let root = Dir::open_ambient_dir(root, ambient_authority())?;
        Ok(Self { root: Arc::new(root), protected })
    }

    /// The same folder with another list of what tools may not write or not even read.
    #[must_use]
    pub fn with_protected(self, protected: ProtectedPaths) -> Self {
        Self { protected: Arc::new(protected), ..self }
    }

    /// Refuses a path that is hidden from tools.
    pub(crate) fn must_be_open(&self, path: &RelativePath) -> Result<(), WorkspaceError> {
        if !self.protected.hides_something() {
            return Ok(());
        }
        match self.real(path).map_or(Some(ProtectionReason::Hidden), |real| self.protected.why_hidden(&real)) {
            Some(why) => Err(path.closed(why)),
            None => Ok(()),
        }
    }

    /// Refuses a path that tools may not write.
    fn must_be_writable(&self, path: &RelativePath) -> Result<(), WorkspaceError> {
        if let Some(why) = self.why_not_written(path) {
            return Err(self.not_written(path, why));
        }
        // A link `AGENTS.md` makes the file that it leads to as good as one of that name.
        let is_behind = |real: PathBuf| self.protected.is_behind_link(&real).unwrap_or(true);
        match self.real(path).is_none_or(is_behind) {
            true => Err(self.not_written(path, ProtectionReason::Obeyed)),
            false => Ok(()),
        }
    }

    /// Why tools may not write a path.
    pub(crate) fn why_not_writable(&self, path: &RelativePath) -> Option<WorkspaceError> {
        self.must_be_writable(path).err()
    }

    /// Why tools may not write a path, by the names that lead to it. Links that lead there from elsewhere are not looked for.
    pub(crate) fn why_not_written(&self, path: &RelativePath) -> Option<ProtectionReason> {
        let lexical = self.protected.workspace().join(path.as_str());
        let Some(real) = self.real(path) else { return Some(ProtectionReason::Hidden) };
        self.protected.why_not_written(&lexical).or_else(|| self.protected.why_not_written(&real))
    }

    fn not_written(&self, path: &RelativePath, why: ProtectionReason) -> WorkspaceError {
        let beside = RelativePath(format!("{path}.proposed"));
        let other = if self.why_not_written(&beside).is_none() { beside.0 } else { format!("{}.proposed", path.name()) };
        WorkspaceError::ProtectedPaths { path: path.to_string(), why: why.clause(), instead: why.instead(&other) }
    }

    /// Where a path leads, over links. What does not exist counts where it would be.
    fn real(&self, path: &RelativePath) -> Option<PathBuf> {
        let whole = self.protected.workspace().join(path.as_str());
        let place = |part: &Path| Some(part.canonicalize().ok()?.join(whole.strip_prefix(part).ok()?));
        whole.ancestors().find_map(place)
    }

    /// Refuses what was opened where no tool may look, whatever its path says: a command may have put a link there meanwhile.
    fn must_lie_open(&self, opened: impl AsFd, path: &RelativePath) -> Result<(), WorkspaceError> {
        if !self.protected.hides_something() {
            return Ok(());
        }
        let Some(there) = place(opened.as_fd()) else { return self.must_be_open(path) };
        self.protected.why_hidden(&there).map_or(Ok(()), |why| Err(path.closed(why)))
    }

    /// The same for a file that is about to be written into an open folder.
    fn must_lie_writable(&self, folder: impl AsFd, path: &RelativePath) -> Result<(), WorkspaceError> {
        let there = place(folder.as_fd()).map(|there| there.join(path.name()));
        match there.and_then(|there| self.protected.why_not_written(&there)) {
            Some(why) => Err(self.not_written(path, why)),
            None => Ok(()),
        }
    }

    /// Opens a folder to see what is in it.
    pub(crate) fn folder(&self, path: &RelativePath) -> Result<Dir, WorkspaceError> {
        match self.root.open_dir(path.as_str()) {
            Ok(folder) => {
                self.must_lie_open(&folder, path)?;
                Ok(folder)
            }
            Err(error) => {
                // A hidden path gives the same error whether or not it exists.
                self.must_be_open(path)?;
                Err(match error.kind() {
                    io::ErrorKind::NotADirectory => WorkspaceError::NotAFolder(path.to_string()),
                    _ => path.refused(error),
                })
            }
        }
    }

    /// Where an open folder lies, for [`Self::hides_entry`]; none where nothing is hidden.
    pub(crate) fn place_of(&self, folder: &Dir) -> Option<PathBuf> {
        self.protected.hides_something().then(|| place(folder.as_fd())).flatten()
    }

    /// Whether an entry of a folder that lies there is hidden from tools. Only a link has to be followed to know that.
    pub(crate) fn hides_entry(&self, place: Option<&Path>, entry: &RelativePath, is_link: bool) -> bool {
        match place {
            Some(place) if !is_link => self.protected.why_hidden(&place.join(entry.name())).is_some(),
            _ => self.must_be_open(entry).is_err(),
        }
    }

    /// How large a plain file is; none for anything else that is there.
    pub(crate) fn size_of(&self, path: &RelativePath) -> Result<Option<u64>, WorkspaceError> {
        self.must_be_open(path)?;
        let found = self.root.metadata(path.as_str()).map_err(|error| path.refused(error))?;
        Ok(found.is_file().then_some(found.len()))
    }

    /// Opens a plain file for reading.
    pub(crate) fn read(&self, path: &RelativePath) -> Result<File, WorkspaceError> {
        self.must_be_open(path)?;
        // A pipe that nobody writes to would block the opening for ever.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let options = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).to_owned();
        // Even opening a device can have an effect, so it is looked at first; what was opened is what counts.
        let found = self.root.metadata(path.as_str()).map_err(|error| path.refused(error))?;
        path.must_be_file(&found.file_type())?;
        let file = self.root.open_with(path.as_str(), &options).map_err(|error| path.refused(error))?;
        let opened = file.metadata().map_err(|error| path.refused(error))?;
        path.must_be_file(&opened.file_type())?;
        self.must_lie_open(&file, path)?;
        if is_kernel_file(&file) {
            return Err(WorkspaceError::NotAFile { path: path.to_string(), what: "a window into the kernel" });
        }
        Ok(file)
    }

    /// Opens the folder that `path` lies in, and makes it first where it is missing.
    pub(crate) fn parent_of(&self, path: &RelativePath) -> Result<Dir, WorkspaceError> {
        let refused = |error| path.refused(error);
        self.must_be_writable(path)?;
        let folder = match path.folders().next() {
            Some(parent) => {
                self.root.create_dir_all(parent).map_err(refused)?;
                self.root.open_dir(parent).map_err(refused)?
            }
            None => self.root.try_clone().map_err(refused)?,
        };
        // A link may lead there as well.
        self.must_lie_writable(&folder, path)?;
        Ok(folder)
    }

    /// Whether the folder that `path` lies in is there.
    pub(crate) fn has_parent_of(&self, path: &RelativePath) -> bool {
        path.folders().next().is_none_or(|parent| self.root.is_dir(parent))
    }

    /// Makes the entry of `path` in its folder last, and with `all` those of its folders too.
    pub(crate) fn sync_parents_of(&self, path: &RelativePath, all: bool) -> io::Result<()> {
        let folders = path.folders().chain(["."]).take(if all { usize::MAX } else { 1 });
        for folder in folders {
            self.root.open(folder)?.sync_all()?;
        }
        Ok(())
    }
}

/// Where something that is open lies now.
fn place(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()
}

/// A path that stays below its root as far as its text goes: relative, and without `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RelativePath(String);

impl RelativePath {
    /// Checks a path that a model wrote.
    pub(crate) fn new(path: &str) -> Result<Self, ToolError> {
        let bad = |why: &str| Err(ToolError::BadArguments(format!("path {path:?} {why}")));
        if path.len() > MAX_PATH_BYTES {
            return Err(ToolError::BadArguments(format!("path is longer than {MAX_PATH_BYTES} bytes")));
        }
        if path.contains('\0') {
            return bad("holds a NUL character");
        }
        if path.starts_with('/') {
            return bad("is absolute; give it from the workspace's root");
        }
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") {
            return bad("holds `..`; give it from the workspace's root");
        }
        if parts.is_empty() || path.ends_with('/') {
            return bad("names no file");
        }
        Ok(Self(parts.join("/")))
    }

    /// The same for a folder: nothing and `.` mean the root.
    pub(crate) fn folder(path: &str) -> Result<Self, ToolError> {
        if path.starts_with('/') {
            return Self::new(path);
        }
        let path = path.trim_end_matches('/');
        let is_root = path.split('/').all(|part| part.is_empty() || part == ".");
        if is_root { Ok(Self(".".to_owned())) } else { Self::new(path) }
    }

    /// A name below this folder.
    pub(crate) fn join(&self, name: &str) -> Self {
        if self.0 == "." { Self(name.to_owned()) } else { Self(format!("{}/{name}", self.0)) }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The file's name without its folders.
    pub(crate) fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The folders that it lies in, innermost first.
    fn folders(&self) -> impl Iterator<Item = &str> {
        self.0.rmatch_indices('/').map(|(end, _)| &self.0[..end])
    }

    /// The folders above this one, innermost first, down to the root; the root has none.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = Self> {
        let root = (self.0 != ".").then(|| Self(".".to_owned()));
        self.folders().map(|folder| Self(folder.to_owned())).chain(root)
    }

    fn closed(&self, why: ProtectionReason) -> WorkspaceError {
        WorkspaceError::Closed { path: self.to_string(), why: why.closed() }
    }

    /// An error of the operating system about this path, in our words.
    pub(crate) fn refused(&self, error: io::Error) -> WorkspaceError {
        let path = self.to_string();
        match error.kind() {
            io::ErrorKind::NotFound => WorkspaceError::Missing(path),
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => WorkspaceError::NoFolder(path),
            // What cap-std answers to a way out; it sets no code of the operating system then.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => WorkspaceError::Outside(path),
            _ => WorkspaceError::Refused { path, error },
        }
    }

    pub(crate) fn must_be_file(&self, found: &cap_std::fs::FileType) -> Result<(), WorkspaceError> {
        if found.is_file() {
            return Ok(());
        }
        let what = if found.is_dir() {
            "a folder"
        } else if found.is_symlink() {
            "a symbolic link"
        } else {
            "a pipe, a socket or a device"
        };
        Err(WorkspaceError::NotAFile { path: self.to_string(), what })
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("root", &self.root).finish_non_exhaustive()
    }
}

impl std::fmt::Display for RelativePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Files of `/proc` and `/sys` look plain and are not; a workspace at `/` would reach them.
#[cfg(target_os = "linux")]
fn is_kernel_file(file: &File) -> bool {
    const PROC: u64 = 0x9fa0;
    const SYSFS: u64 = 0x6265_6572;
    rustix::fs::fstatfs(file).is_ok_and(|system| [PROC, SYSFS].contains(&(system.f_type as u64)))
}

#[cfg(not(target_os = "linux"))]
fn is_kernel_file(_: &File) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_a_link_leads_to_is_refused_after_it_was_opened() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for folder in ["data", "roles", "plain"] {
            std::fs::create_dir(root.join(folder)).unwrap();
        }
        let workspace = Workspace::open(&root).unwrap();
        let workspace = workspace.with_protected(ProtectedPaths::new(&root).with_hidden([root.join("data")]));
        let path = RelativePath::new("link/file").unwrap();
        // The link was not there when the path was looked at; the folder that it leads to is open now.
        for (place, [read, written]) in [("data", [false, false]), ("roles", [true, false]), ("plain", [true, true])] {
            let opened = workspace.root.open_dir(place).unwrap();
            assert_eq!(workspace.must_lie_open(&opened, &path).is_ok(), read, "{place}");
            assert_eq!(workspace.must_lie_writable(&opened, &path).is_ok(), written, "{place}");
        }
    }
}
