//! Goes through a folder of the workspace in a fixed order. Follows no links, enters nothing that is closed.

use cap_std::fs::Dir;

use crate::glob::Glob;
use crate::ignored::Ignored;
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

/// What a walk came by.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub(crate) found: Vec<Found>,
    /// There is more than a walk may look at.
    pub(crate) is_cut: bool,
    /// Entries that cannot be named in UTF-8, or folders that cannot be opened.
    pub(crate) unreadable: usize,
    /// Entries that `.gitignore` files leave out; one for a folder, whatever is in it.
    pub(crate) ignored: usize,
}

/// One entry, by its path from the workspace's root.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: RelativePath,
    pub(crate) what: What,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    File { bytes: u64 },
    Folder,
    Link,
    Other,
}

impl Walk {
    /// Walks. A start that is a plain file is all that there is to find.
    pub(crate) fn through(&self, workspace: &Workspace) -> Result<Walked, WorkspaceError> {
        let mut walked = Walked::default();
        if let Some(bytes) = workspace.size_of(&self.start)? {
            walked.found.push(Found { path: self.start.clone(), what: What::File { bytes } });
            return Ok(walked);
        }
        let folder = workspace.folder(&self.start)?;
        let ignored = (self.recursive && !self.ignored).then(|| Ignored::above(workspace, &self.start));
        let mut steps = Steps { walk: self, workspace, ignored, walked, visited: 0 };
        steps.enter(&folder, &self.start, "", 0);
        Ok(steps.walked)
    }
}

struct Steps<'a> {
    walk: &'a Walk,
    workspace: &'a Workspace,
    ignored: Option<Ignored<'a>>,
    walked: Walked,
    visited: usize,
}

impl Steps<'_> {
    fn enter(&mut self, folder: &Dir, path: &RelativePath, from_start: &str, depth: usize) {
        let Ok(entries) = folder.entries() else {
            self.walked.unreadable += 1;
            return;
        };
        let mut names = Vec::new();
        for entry in entries {
            match entry.map(|entry| (entry.file_name().into_string(), entry.file_type(), entry.metadata())) {
                Ok((Ok(name), Ok(kind), data)) => names.push((name, kind, data.map_or(0, |data| data.len()))),
                _ => self.walked.unreadable += 1,
            }
            self.visited += 1;
            if self.visited > MAX_VISITED {
                self.walked.is_cut = true;
                break;
            }
        }
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.ignored.iter_mut().for_each(|ignored| ignored.enter(path));
        for (name, kind, bytes) in names {
            let below = path.join(&name);
            if (name.starts_with('.') && !self.walk.hidden) || self.workspace.must_be_open(&below).is_err() {
                continue;
            }
            if self.ignored.as_ref().is_some_and(|ignored| ignored.leaves_out(&below, kind.is_dir())) {
                self.walked.ignored += 1;
                continue;
            }
            let what = if kind.is_symlink() {
                What::Link
            } else if kind.is_dir() {
                What::Folder
            } else if kind.is_file() {
                What::File { bytes }
            } else {
                What::Other
            };
            let here = if from_start.is_empty() { name.clone() } else { format!("{from_start}/{name}") };
            if self.walk.pattern.as_ref().is_none_or(|pattern| pattern.fits(&here)) {
                self.walked.found.push(Found { path: below.clone(), what });
            }
            if what != What::Folder || !self.walk.recursive {
                continue;
            }
            if depth >= MAX_DEPTH || self.walked.is_cut {
                self.walked.is_cut = true;
            } else {
                // From its parent's handle, so that a link in its place leads nowhere else.
                match folder.open_dir(&name) {
                    Ok(inner) => self.enter(&inner, &below, &here, depth + 1),
                    Err(_) => self.walked.unreadable += 1,
                }
            }
        }
        self.ignored.iter_mut().for_each(Ignored::leave);
    }
}
