//! Goes through a folder of the workspace in a fixed order. Follows no links, enters nothing that is closed.

use cap_std::fs::Dir;

use crate::glob::Glob;
use crate::ignore_rules::IgnoreRules;
use crate::workspace::{RelativePath, Workspace, WorkspaceError};

/// Most entries that are looked at in one walk.
const MAX_VISITED: usize = 50_000;
/// How deep a walk goes.
const MAX_DEPTH: usize = 64;

/// What to look for.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) start: RelativePath,
    pub(crate) recursive: bool,
    pub(crate) hidden: bool,
    /// Also what `.gitignore` files leave out. A walk that is not recursive shows it anyway.
    pub(crate) ignored: bool,
    pub(crate) pattern: Option<Glob>,
}

/// The result of a walk.
#[derive(Debug, Default)]
pub(crate) struct WalkResult {
    pub(crate) entries: Vec<WalkEntry>,
    /// There is more than a walk may look at.
    pub(crate) is_cut: bool,
    /// Entries that cannot be named in UTF-8, or folders that cannot be opened.
    pub(crate) unreadable: usize,
    /// Entries that `.gitignore` files leave out; one for a folder, whatever is in it.
    pub(crate) ignored: usize,
}

/// One entry, by its path from the workspace's root.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WalkEntry {
    pub(crate) path: RelativePath,
    pub(crate) kind: EntryKind,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File { bytes: u64 },
    Folder,
    Link,
    Other,
}

impl Walk {
    /// Runs the walk. If it starts at a plain file, that file is the only entry.
    pub(crate) fn run(&self, workspace: &Workspace) -> Result<WalkResult, WorkspaceError> {
        let mut result = WalkResult::default();
        let folder = match workspace.folder(&self.start) {
            Ok(folder) => folder,
            Err(WorkspaceError::NotAFolder(path)) => {
                let bytes = workspace.size_of(&self.start)?.ok_or(WorkspaceError::NotAFolder(path))?;
                result.entries.push(WalkEntry { path: self.start.clone(), kind: EntryKind::File { bytes } });
                return Ok(result);
            }
            Err(error) => return Err(error),
        };
        let ignored = (self.recursive && !self.ignored).then(|| IgnoreRules::above(workspace, &self.start));
        let mut walker = Walker { walk: self, workspace, ignored, result, visited: 0 };
        walker.enter(&folder, &self.start, "", 0);
        Ok(walker.result)
    }
}

struct Walker<'a> {
    walk: &'a Walk,
    workspace: &'a Workspace,
    ignored: Option<IgnoreRules<'a>>,
    result: WalkResult,
    visited: usize,
}

impl Walker<'_> {
    fn enter(&mut self, folder: &Dir, path: &RelativePath, from_start: &str, depth: usize) {
        let Ok(entries) = folder.entries() else {
            self.result.unreadable += 1;
            return;
        };
        let mut names = Vec::new();
        for entry in entries {
            match entry.map(|entry| (entry.file_name().into_string(), entry.file_type(), entry.metadata())) {
                Ok((Ok(name), Ok(kind), data)) => names.push((name, kind, data.map_or(0, |data| data.len()))),
                _ => self.result.unreadable += 1,
            }
            self.visited += 1;
            if self.visited > MAX_VISITED {
                self.result.is_cut = true;
                break;
            }
        }
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.ignored.iter_mut().for_each(|ignored| ignored.enter(path));
        let place = self.workspace.place_of(folder);
        for (name, kind, bytes) in names {
            let below = path.join(&name);
            let is_hidden = |below| self.workspace.hides_entry(place.as_deref(), below, kind.is_symlink());
            if (name.starts_with('.') && !self.walk.hidden) || is_hidden(&below) {
                continue;
            }
            if self.ignored.as_ref().is_some_and(|ignored| ignored.is_ignored(&below, kind.is_dir())) {
                self.result.ignored += 1;
                continue;
            }
            let kind = if kind.is_symlink() {
                EntryKind::Link
            } else if kind.is_dir() {
                EntryKind::Folder
            } else if kind.is_file() {
                EntryKind::File { bytes }
            } else {
                EntryKind::Other
            };
            let here = if from_start.is_empty() { name.clone() } else { format!("{from_start}/{name}") };
            if self.walk.pattern.as_ref().is_none_or(|pattern| pattern.fits(&here)) {
                self.result.entries.push(WalkEntry { path: below.clone(), kind });
            }
            if kind != EntryKind::Folder || !self.walk.recursive {
                continue;
            }
            if depth >= MAX_DEPTH || self.result.is_cut {
                self.result.is_cut = true;
            } else {
                // From its parent's handle, so that a link in its place leads nowhere else.
                match folder.open_dir(&name) {
                    Ok(inner) => self.enter(&inner, &below, &here, depth + 1),
                    Err(_) => self.result.unreadable += 1,
                }
            }
        }
        self.ignored.iter_mut().for_each(IgnoreRules::leave);
    }
}
