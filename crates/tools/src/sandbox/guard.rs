//! Sees to it that a command leaves nothing behind that governs agents or that a person's programs would obey.
//!
//! What is there before the command is noted; most of it the kernel then keeps as it is. What appears or changes nevertheless is
//! set aside when the command is over: it gets another name, and what was there before comes back. The note is on the disk while
//! the command runs, so that a later start can do what a crash has prevented.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use serde::{Deserialize, Serialize};

use crate::protected::{
    Kind, ProtectedEntry, ProtectedPaths, ProtectionReason, SET_ASIDE, find, is, is_harmless_config, is_harmless_todo,
    is_worktree, link_targets,
};

/// Most entries of a workspace in which commands run. Looking at so many takes a few seconds.
const MAX_ENTRIES: usize = 2_000_000;
/// Largest file whose content is kept to be put back, and most bytes of all of them.
const MAX_KEPT_BYTES: u64 = 64 << 10;
const MAX_KEPT_TOTAL_BYTES: u64 = 4 << 20;
/// Most files whose content is kept.
const MAX_KEPT: usize = 10_000;
/// Largest file with settings of git that is read.
const MAX_CONFIG_BYTES: u64 = 256 << 10;

/// Folders directly below a base that hold single protected files.
const HOLDERS: &[&str] = &[".git", ".github", ".config", "agents", "components"];

/// What was protected when a command began.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Survey {
    protected: ProtectedPaths,
    namespaces: bool,
    seen: Vec<SurveyedPath>,
    hidden: Vec<PathBuf>,
    #[serde(skip)]
    kept: BTreeMap<PathBuf, (Vec<u8>, u32)>,
    #[serde(skip)]
    kept_bytes: u64,
    /// What the kernel keeps as it is.
    #[serde(skip)]
    held: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SurveyedPath {
    /// As bytes: names need not be text.
    path: Vec<u8>,
    state: State,
    is_held: bool,
}

/// What tells whether something has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Folder,
    /// A folder with too many files to look at each, which the kernel keeps as it is wherever it is moved.
    Tree {
        device: u64,
        inode: u64,
    },
    Link(Vec<u8>),
    /// Its change time cannot be set by anybody.
    File {
        device: u64,
        inode: u64,
        changed: (i64, i64),
        links: u64,
    },
}

/// Something that was set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetAsideFile {
    /// What it was called, from the workspace.
    pub(crate) path: String,
    /// What it is called now; none where it was removed.
    pub(crate) now: Option<String>,
    why: ProtectionReason,
    /// Whether what was there before is back.
    restored: bool,
}

impl std::fmt::Display for SetAsideFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.now {
            Some(now) => write!(f, "`{}` is now `{now}`", self.path)?,
            None => write!(f, "`{}` was removed", self.path)?,
        }
        if self.restored {
            f.write_str(", with what was there before in its place")?;
        }
        write!(f, ": only the person may write files {}", self.why.kind())
    }
}

/// What a model reads of everything that was set aside after a command, and of so many more; none where there is nothing.
pub(crate) fn set_aside_note(aside: &[SetAsideFile], more: usize) -> Option<String> {
    if aside.is_empty() && more == 0 {
        return None;
    }
    let plain = |text: &str| text.chars().map(|c| if c.is_control() { '?' } else { c }).collect::<String>();
    let mut kinds: Vec<(&str, Vec<String>)> = Vec::new();
    for SetAsideFile { path, now, why, restored } in aside {
        let (path, back) = (plain(path), if *restored { " (what was there before is back)" } else { "" });
        let one = match now {
            Some(now) => format!("{path} -> {}{back}", plain(now)),
            None => format!("{path} was removed, because it could not be renamed{back}"),
        };
        match kinds.iter_mut().find(|(kind, _)| *kind == why.kind()) {
            Some((_, ones)) => ones.push(one),
            None => kinds.push((why.kind(), vec![one])),
        }
    }
    let listed: String = kinds.iter().map(|(kind, ones)| format!("- files {kind}: {}\n", ones.join("; "))).collect();
    let more = if more > 0 { format!("- {more} more\n") } else { String::new() };
    Some(format!(
        "[polis] After the command ended, these were renamed, because only the person may write such files:\n{listed}{more}Their \
         content is kept. Do not move them back: that is undone again. Tell the person."
    ))
}

impl Survey {
    /// Looks at a workspace before a command runs in it.
    fn take(protected: &ProtectedPaths, namespaces: bool) -> Result<Self, String> {
        let found = find(protected, MAX_ENTRIES).map_err(|error| error.to_string())?;
        let hidden = protected.hidden().iter().filter(|path| path.symlink_metadata().is_ok()).cloned().collect();
        let mut survey = Self { protected: protected.clone(), namespaces, hidden, ..Self::default() };
        for found in &found {
            survey.note(&found.path, survey.is_held(found), is_tree(found));
        }
        for target in link_targets(protected, &found) {
            survey.note(&target, true, false);
        }
        Ok(survey)
    }

    /// What the kernel must keep as it is: what is protected at the root and where Polis reads its instructions. What lies deeper
    /// may be removed with the folder that it is in, as when dependencies are installed anew.
    pub(super) fn held(&self) -> &[PathBuf] {
        &self.held
    }

    fn is_held(&self, found: &ProtectedEntry) -> bool {
        let is_base = |folder: &Path| folder == self.protected.workspace() || self.protected.bases().any(|base| base == folder);
        let is_holder = |folder: &Path| {
            folder.file_name().is_some_and(|name| HOLDERS.iter().any(|holder| is(name, holder)))
                && folder.parent().is_some_and(is_base)
        };
        let is_top = found.path.parent().is_some_and(|folder| is_base(folder) || is_holder(folder));
        // Without namespaces nothing new could be made in `.git`, and git could do nothing at all.
        let is_git = matches!(found.kind, Kind::GitFolder | Kind::GitConfig | Kind::GitCommon | Kind::Hook);
        (is_top || is_tree(found)) && !found.is_link && (self.namespaces || !is_git)
    }

    fn note(&mut self, path: &Path, is_top: bool, is_tree: bool) {
        let is_held = is_top || self.held.iter().any(|held| path.starts_with(held));
        let Ok(about) = path.symlink_metadata() else { return };
        let state = if is_tree { State::tree(&about) } else { State::of(path, &about) };
        if is_held && !self.held.iter().any(|held| path.starts_with(held)) {
            self.held.push(path.to_owned());
        }
        if about.is_file()
            && (!is_held || about.nlink() > 1)
            && about.len() <= MAX_KEPT_BYTES
            && self.kept_bytes + about.len() <= MAX_KEPT_TOTAL_BYTES
            && self.kept.len() < MAX_KEPT
            && let Ok(content) = fs::read(path)
        {
            self.kept_bytes += about.len();
            self.kept.insert(path.to_owned(), (content, about.mode() & 0o777));
        }
        self.seen.push(SurveyedPath { path: path.as_os_str().as_bytes().to_owned(), state, is_held });
    }

    /// Forgets what another command that still runs did not find: that command may have made it.
    fn forget_unless_in(&mut self, other: &Self) {
        if self.protected.workspace() == other.protected.workspace() {
            let theirs: BTreeMap<&[u8], &SurveyedPath> = other.seen.iter().map(|seen| (seen.path.as_slice(), seen)).collect();
            let is_known = |seen: &SurveyedPath, theirs: &SurveyedPath| theirs.is_held || theirs.state == seen.state;
            self.seen.retain(|seen| theirs.get(seen.path.as_slice()).is_some_and(|theirs| is_known(seen, theirs)));
            self.hidden.retain(|path| other.hidden.contains(path));
        }
    }

    /// Sets aside what is there now and was not, or has changed. Nothing of the command may run any more.
    fn settle(&self) -> Vec<SetAsideFile> {
        let seen: BTreeMap<&[u8], &SurveyedPath> = self.seen.iter().map(|seen| (seen.path.as_slice(), seen)).collect();
        let mut done = Settling { survey: self, aside: Vec::new(), moved: Vec::new() };
        for path in self.protected.hidden().iter().filter(|path| !self.hidden.contains(path)) {
            if path.symlink_metadata().is_ok() {
                done.put(path, self.protected.why_hidden(path).unwrap_or(ProtectionReason::Hidden), None);
            }
        }
        let held = self.seen.iter().filter(|seen| seen.is_held && seen.state == State::Folder);
        let held: Vec<&Path> = held.map(|seen| Path::new(OsStr::from_bytes(&seen.path))).collect();
        let mut met = BTreeSet::new();
        for found in find(&self.protected, usize::MAX).unwrap_or_default() {
            let before = seen.get(found.path.as_os_str().as_bytes()).copied();
            let folder = held.iter().any(|held| found.path.starts_with(held));
            met.insert(found.path.as_os_str().as_bytes().to_owned());
            match before {
                Some(before) if before.is_as_it_was(&found.path) => {}
                // People may write there while a command runs, and it cannot.
                None if folder => {}
                _ if is_harmless(&found, before.is_some()) => {}
                before => done.put(&found.path, why(found.kind), before),
            }
        }
        // Where links lead, and what is part of no repository any more.
        for seen in self.seen.iter().filter(|seen| !met.contains(&seen.path)) {
            let path = Path::new(OsStr::from_bytes(&seen.path));
            let is_config = path.file_name().is_some_and(|name| is(name, "config"));
            let found = ProtectedEntry {
                path: path.to_owned(),
                kind: if is_config { Kind::GitConfig } else { Kind::Hook },
                is_link: false,
            };
            if path.symlink_metadata().is_ok() && !seen.is_as_it_was(path) && !is_harmless(&found, true) {
                done.put(path, ProtectionReason::Obeyed, Some(seen));
            }
        }
        done.aside
    }

    /// Writes the note, and forgets what commands that still run may have made.
    fn write(&mut self, note: &Path) -> io::Result<()> {
        for other in notes(note.parent().unwrap_or(note)) {
            if let Ok(other) = read(&other) {
                self.forget_unless_in(&other);
            }
        }
        let mut file = fs::File::create(note)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_data()
    }
}

impl SurveyedPath {
    fn is_as_it_was(&self, path: &Path) -> bool {
        match &self.state {
            // Nobody but a person can have changed it, unless it has another name.
            State::File { links: 1, .. } | State::Folder if self.is_held => true,
            State::Tree { .. } => {
                path.symlink_metadata().is_ok_and(|about| about.is_dir() && State::tree(&about) == self.state)
            }
            before => path.symlink_metadata().is_ok_and(|about| State::of(path, &about) == *before),
        }
    }
}

/// Whether this is a folder of packages.
fn is_tree(found: &ProtectedEntry) -> bool {
    found.kind == Kind::Folder(ProtectionReason::Loaded)
}

impl State {
    fn tree(about: &Metadata) -> Self {
        Self::Tree { device: about.dev(), inode: about.ino() }
    }

    fn of(path: &Path, about: &Metadata) -> Self {
        if about.is_dir() {
            return Self::Folder;
        }
        match about.is_symlink().then(|| fs::read_link(path)) {
            Some(target) => Self::Link(target.map(|target| target.into_os_string().into_vec()).unwrap_or_default()),
            None => Self::File {
                device: about.dev(),
                inode: about.ino(),
                changed: (about.ctime(), about.ctime_nsec()),
                links: about.nlink(),
            },
        }
    }
}

/// Whether something new or changed runs no program.
fn is_harmless(found: &ProtectedEntry, was_there: bool) -> bool {
    let small = |path: &Path| {
        let is_small = path.symlink_metadata().is_ok_and(|about| about.is_file() && about.len() <= MAX_CONFIG_BYTES);
        is_small.then(|| fs::read(path).ok()).flatten()
    };
    match found.kind {
        Kind::GitFolder => true,
        Kind::GitConfig => small(&found.path).is_some_and(|text| is_harmless_config(&text)),
        Kind::GitTodo => small(&found.path).is_some_and(|text| is_harmless_todo(&text)),
        Kind::GitCommon => small(&found.path).is_some_and(|text| is_worktree(&found.path, &text)),
        // What the file leads to is looked at itself, and must be a whole repository for git to take it.
        Kind::GitLink => !was_there && !found.is_link,
        Kind::Folder(_) | Kind::Leaf(_) | Kind::Hook => false,
    }
}

fn why(kind: Kind) -> ProtectionReason {
    match kind {
        Kind::Folder(why) | Kind::Leaf(why) => why,
        Kind::GitFolder | Kind::GitConfig | Kind::GitCommon | Kind::GitLink | Kind::GitTodo | Kind::Hook => {
            ProtectionReason::Git
        }
    }
}

struct Settling<'a> {
    survey: &'a Survey,
    aside: Vec<SetAsideFile>,
    moved: Vec<PathBuf>,
}

impl Settling<'_> {
    fn put(&mut self, path: &Path, why: ProtectionReason, before: Option<&SurveyedPath>) {
        if self.moved.iter().any(|moved| path.starts_with(moved)) {
            return;
        }
        let now = set_aside(path);
        let restored = before.is_some_and(|before| self.restore(path, &before.state).is_ok());
        let relative = |path: &Path| path.strip_prefix(self.survey.protected.workspace()).unwrap_or(path).display().to_string();
        self.aside.push(SetAsideFile { path: relative(path), now: now.as_deref().map(relative), why, restored });
        self.moved.push(path.to_owned());
    }

    fn restore(&self, path: &Path, before: &State) -> io::Result<()> {
        match before {
            State::Folder => fs::create_dir(path),
            State::Tree { .. } => Err(io::ErrorKind::Unsupported.into()),
            State::Link(target) => symlink(OsString::from_vec(target.clone()), path),
            State::File { .. } => {
                let (content, mode) = self.survey.kept.get(path).ok_or(io::ErrorKind::NotFound)?;
                fs::File::create_new(path)?.write_all(content)?;
                fs::set_permissions(path, Permissions::from_mode(*mode))
            }
        }
    }
}

/// Gives something another name; where that cannot be, it is removed. Tells the new name.
fn set_aside(path: &Path) -> Option<PathBuf> {
    // A folder that its owner cannot write keeps its names.
    if let Some(folder) = path.parent()
        && let Ok(about) = folder.symlink_metadata()
        && about.is_dir()
        && about.mode() & 0o300 != 0o300
    {
        let _ = fs::set_permissions(folder, Permissions::from_mode(about.mode() & 0o7777 | 0o300));
    }
    for n in 1..1000 {
        let mut aside = path.as_os_str().to_owned();
        aside.push(if n == 1 { SET_ASIDE.to_owned() } else { format!("{SET_ASIDE}-{n}") });
        let aside = PathBuf::from(aside);
        match renameat_with(CWD, path, CWD, &aside, RenameFlags::NOREPLACE) {
            Ok(()) => return Some(aside),
            Err(rustix::io::Errno::EXIST) => {}
            // Some file systems do not know how not to replace.
            Err(rustix::io::Errno::INVAL) if aside.symlink_metadata().is_err() && fs::rename(path, &aside).is_ok() => {
                return Some(aside);
            }
            Err(_) => break,
        }
    }
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
    None
}

/// Looks at a workspace before a command runs in it, and makes the note at `note`.
pub(super) fn begin(protected: &ProtectedPaths, namespaces: bool, note: Option<&Path>) -> Result<Survey, String> {
    let failed = |error: io::Error| format!("the workspace cannot be guarded: {error}");
    // Nobody else begins or ends meanwhile: what they make would pass for what was there.
    let _lock = note.map(lock).transpose().map_err(failed)?;
    let mut survey = Survey::take(protected, namespaces)?;
    if let Some(note) = note {
        survey.write(note).map_err(failed)?;
    }
    Ok(survey)
}

/// Sets aside what a command left that it may not, and removes the note.
pub(super) fn end(survey: &Survey, note: Option<&Path>) -> Vec<SetAsideFile> {
    let _lock = note.map(lock).and_then(Result::ok);
    let aside = survey.settle();
    if let Some(note) = note {
        let _ = fs::remove_file(note);
    }
    aside
}

/// Does for one note what could not be done when its command ended.
pub(super) fn recover(note: &Path) -> Vec<SetAsideFile> {
    let _lock = lock(note);
    let aside = read(note).map(|survey| survey.settle()).unwrap_or_default();
    let _ = fs::remove_file(note);
    aside
}

/// The same for all notes of a folder.
pub(super) fn recover_all(journal: &Path) -> Vec<SetAsideFile> {
    notes(journal).iter().flat_map(|note| recover(note)).collect()
}

/// Waits until nobody else begins or ends a command with a note in the same folder.
fn lock(note: &Path) -> io::Result<fs::File> {
    let file = fs::File::create(note.with_file_name("lock"))?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn notes(journal: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(journal).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
}

fn read(note: &Path) -> io::Result<Survey> {
    Ok(serde_json::from_slice(&fs::read(note)?)?)
}
