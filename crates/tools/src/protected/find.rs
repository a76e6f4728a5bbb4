//! Finds what is protected in a workspace as it is now. Links are not followed.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

use super::{ProtectedPaths, ProtectionReason, is, is_git_directory, leads_to_instructions, leads_to_obeyed, protected_below};

/// A protected file, link or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProtectedEntry {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
    pub(crate) is_link: bool,
}

/// How a protected entry is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A folder all of which is protected. What is in it follows.
    Folder(ProtectionReason),
    /// A file or a link.
    Leaf(ProtectionReason),
    /// A folder of a git directory, such as its hooks. What matters in it follows.
    GitFolder,
    /// A file with settings of git.
    GitConfig,
    /// A file that says where the settings of a git directory are.
    GitCommon,
    /// A file `.git`, which says where a git directory is.
    GitLink,
    /// A hook of git.
    Hook,
    /// What a rebase that is under way will do.
    GitTodo,
}

/// A workspace has more entries than anybody wants to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the workspace has more than {0} files and folders, too many to guard; choose a smaller one")]
pub(crate) struct TooMany(pub(crate) usize);

/// Everything protected that is there, but for what is hidden.
pub(crate) fn find(list: &ProtectedPaths, most: usize) -> Result<Vec<ProtectedEntry>, TooMany> {
    let mut search = Search { list, bases: list.bases().collect(), found: Vec::new(), room: most, most };
    let mut open = VecDeque::from([list.workspace().to_owned()]);
    while let Some(folder) = open.pop_front() {
        search.look(&folder, &mut open)?;
    }
    Ok(search.found)
}

/// Where the protected links lead, as far as that is in the workspace and not protected by itself.
pub(crate) fn link_targets(list: &ProtectedPaths, found: &[ProtectedEntry]) -> Vec<PathBuf> {
    let mut targets = Vec::new();
    for ProtectedEntry { path, .. } in found.iter().filter(|found| found.is_link) {
        let Ok(real) = path.canonicalize() else { continue };
        if list.why(path).is_some() {
            targets.push(real);
            continue;
        }
        // A link `agents` is there for `agents/prompts`, and the rest behind it is ordinary.
        let known = path.file_name().into_iter().flat_map(protected_below).map(OsString::from);
        let names = entries(path).into_iter().map(|(name, _)| name).chain(known);
        targets.extend(names.filter(|name| list.why(&path.join(name)).is_some()).map(|name| real.join(name)));
    }
    targets.retain(|target| target.starts_with(list.workspace()) && target != list.workspace() && list.why(target).is_none());
    targets
}

struct Search<'a> {
    list: &'a ProtectedPaths,
    bases: Vec<&'a Path>,
    found: Vec<ProtectedEntry>,
    room: usize,
    most: usize,
}

impl Search<'_> {
    fn entries(&mut self, folder: &Path) -> Result<Vec<(OsString, FileType)>, TooMany> {
        let entries = entries(folder);
        self.room = self.room.checked_sub(entries.len()).ok_or(TooMany(self.most))?;
        Ok(entries)
    }

    fn add(&mut self, path: PathBuf, kind: Kind, of: FileType) {
        self.found.push(ProtectedEntry { path, kind, is_link: of.is_symlink() });
    }

    /// Looks at one folder that is not protected itself.
    fn look(&mut self, folder: &Path, open: &mut VecDeque<PathBuf>) -> Result<(), TooMany> {
        let entries = self.entries(folder)?;
        let has = |part: &str| entries.iter().any(|(name, _)| is(name, part));
        let is_git = folder.file_name().is_some_and(|name| is(name, ".git")) || is_git_directory(has);
        let is_base = self.bases.contains(&folder);
        for (name, of) in entries {
            let path = folder.join(&name);
            match self.list.why(&path) {
                Some(ProtectionReason::Hidden | ProtectionReason::Script) => {}
                Some(why) => self.take(path, of, why)?,
                None if of.is_symlink() && is_base && leads_to_instructions(&name) => {
                    self.add(path, Kind::Leaf(ProtectionReason::Governs), of);
                }
                None if of.is_symlink() && leads_to_obeyed(&name) => self.add(path, Kind::Leaf(ProtectionReason::Obeyed), of),
                None if is(&name, ".git") && !of.is_dir() => self.add(path, Kind::GitLink, of),
                None if is_git && self.take_of_git(&path, &name, of)? => {}
                None if of.is_dir() => open.push_back(path),
                None => {}
            }
        }
        Ok(())
    }

    /// Takes something protected with all that is in it.
    fn take(&mut self, path: PathBuf, of: FileType, why: ProtectionReason) -> Result<(), TooMany> {
        if !of.is_dir() {
            self.add(path, Kind::Leaf(why), of);
            return Ok(());
        }
        let mut open = vec![path.clone()];
        self.add(path, Kind::Folder(why), of);
        // Packages are many; the folder is closed as a whole.
        if why == ProtectionReason::Loaded {
            return Ok(());
        }
        while let Some(folder) = open.pop() {
            for (name, of) in self.entries(&folder)? {
                let path = folder.join(name);
                match of.is_dir() {
                    true => open.push(path),
                    false => self.add(path, Kind::Leaf(why), of),
                }
            }
        }
        Ok(())
    }

    /// Takes what decides which programs git runs. Tells whether this was something of the kind.
    fn take_of_git(&mut self, path: &Path, name: &OsStr, of: FileType) -> Result<bool, TooMany> {
        if is(name, "config") || is(name, "config.worktree") {
            self.add(path.to_owned(), Kind::GitConfig, of);
        } else if is(name, "commondir") {
            self.add(path.to_owned(), Kind::GitCommon, of);
        } else if is(name, "rebase-merge") && of.is_dir() {
            let todo = path.join("git-rebase-todo");
            if let Ok(about) = todo.symlink_metadata() {
                self.add(todo, Kind::GitTodo, about.file_type());
            }
        } else if is(name, "info") && of.is_dir() {
            self.add(path.to_owned(), Kind::GitFolder, of);
        } else if is(name, "hooks") && of.is_dir() {
            self.add(path.to_owned(), Kind::GitFolder, of);
            for (name, of) in self.entries(path)? {
                // Git itself puts examples there, and never runs them.
                let text = name.to_string_lossy();
                if !text.ends_with(".sample") && !text.contains(SET_ASIDE) {
                    self.add(path.join(name), Kind::Hook, of);
                }
            }
        } else if is(name, "hooks") {
            self.add(path.to_owned(), Kind::Hook, of);
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// What the names of files are given that were set aside.
pub(crate) const SET_ASIDE: &str = ".set-aside";

/// What is in a folder. One that cannot be read, because its owner has taken that right from himself, is opened first.
fn entries(folder: &Path) -> Vec<(OsString, FileType)> {
    let read = fs::read_dir(folder).or_else(|error| {
        make_readable(folder).map_err(|_| error)?;
        fs::read_dir(folder)
    });
    let entries = read.into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?))).collect()
}

#[cfg(unix)]
fn make_readable(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = fs::symlink_metadata(folder)?.permissions();
    permissions.set_mode(permissions.mode() | 0o700);
    fs::set_permissions(folder, permissions)
}

#[cfg(not(unix))]
fn make_readable(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_protected_is_found_at_every_depth_and_the_rest_is_not() {
        let root = tempfile::tempdir().unwrap();
        let list = ProtectedPaths::new(root.path());
        let at = |path: &str| list.workspace().join(path);
        for file in [
            "roles/a.md",
            "a/b/.vscode/deep/tasks.json",
            "a/AGENTS.md",
            "a/plain.md",
            ".git/config",
            ".git/hooks/pre-commit",
            ".git/hooks/pre-push.sample",
            ".git/index",
            "sub/.git",
            "bare/HEAD",
            "bare/objects/x",
            "bare/refs/x",
            "bare/config",
            "other/config",
            "other/hooks/pre-commit",
        ] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), "").unwrap();
        }
        let mut found: Vec<_> = find(&list, 1000)
            .unwrap()
            .into_iter()
            .map(|found| (found.path.strip_prefix(list.workspace()).unwrap().display().to_string(), found.kind))
            .collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let want = [
            (".git/config", Kind::GitConfig),
            (".git/hooks", Kind::GitFolder),
            (".git/hooks/pre-commit", Kind::Hook),
            ("a/AGENTS.md", Kind::Leaf(ProtectionReason::Obeyed)),
            ("a/b/.vscode", Kind::Folder(ProtectionReason::Obeyed)),
            ("a/b/.vscode/deep/tasks.json", Kind::Leaf(ProtectionReason::Obeyed)),
            ("bare/config", Kind::GitConfig),
            ("roles", Kind::Folder(ProtectionReason::Governs)),
            ("roles/a.md", Kind::Leaf(ProtectionReason::Governs)),
            ("sub/.git", Kind::GitLink),
        ];
        assert_eq!(found, want.map(|(path, kind)| (path.to_owned(), kind)));
        assert_eq!(find(&list, 20), Err(TooMany(20)));
    }
}
