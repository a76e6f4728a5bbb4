//! Procedures that people write down (SOPs): Markdown files that say when they apply and what to do, step by step.

mod parse;
mod pattern;
mod step_options;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use polis_ports::FileGuard;

use super::plan::{InternalPlan, InternalStep};
use pattern::Pattern;

/// Largest file, and most files of a folder. What is more is not read.
const MAX_BYTES: u64 = 256 * 1024;
const MAX_FILES: usize = 500;

/// A procedure.
#[derive(Debug, Clone, PartialEq)]
pub struct Sop {
    /// Its name.
    pub name: String,
    when: Vec<Pattern>,
    /// The roles that follow it; all where there are none.
    pub roles: Vec<String>,
    /// The steps, with places such as `{month}` for words of the task.
    pub steps: Vec<InternalStep>,
}

/// What is wrong with a file, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SopFault {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub wrong: String,
    /// What to do.
    pub remedy: String,
}

/// The procedures of a society: those of folders, which are read for each task so that a change counts at once, and others.
#[derive(Debug, Clone, Default)]
pub struct Sops {
    folders: Vec<PathBuf>,
    guard: FileGuard,
    own: Vec<Sop>,
}

/// A procedure that fits a task.
pub(super) struct SopMatch {
    pub(super) reason: String,
    pub(super) plan: InternalPlan,
}

impl Sop {
    /// Reads a procedure from Markdown; or says everything that is wrong with it.
    pub fn read(text: &str) -> Result<Self, Vec<SopFault>> {
        parse::read(text)
    }

    /// How well it fits: the pattern that matches, how much of the task it names, and the words at its places.
    fn fits(&self, role: &str, task: &str) -> Option<(usize, &Pattern, pattern::Captures)> {
        if !self.roles.is_empty() && !self.roles.iter().any(|known| known == role) {
            return None;
        }
        let matching = self.when.iter().filter_map(|pattern| Some((pattern.weight(), pattern, pattern.matches(task)?)));
        matching.max_by_key(|(weight, pattern, _)| (*weight, std::cmp::Reverse(pattern.text().to_owned())))
    }

    /// The plan for a task: the steps with its words in their places.
    fn plan(&self, task: &str, captures: &[(String, String)]) -> InternalPlan {
        let fill = |text: &str| {
            let filled = text.replace("{task}", task);
            captures.iter().fold(filled, |text, (name, word)| text.replace(&format!("{{{name}}}"), word))
        };
        InternalPlan::new(self.steps.iter().map(|step| {
            let mut step = step.clone();
            step.description = fill(&step.description);
            for value in step.params.values_mut() {
                if let Some(text) = value.as_str() {
                    *value = fill(text).into();
                }
            }
            step
        }))
    }
}

impl Sops {
    /// The procedures in the Markdown files of a folder. One that is not there has none.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        Self { folders: vec![path.into()], ..Self::default() }
    }

    /// The same procedures and those of one more folder. Of two with one name, the one of the earlier folder counts.
    #[must_use]
    pub fn with_folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.folders.push(path.into());
        self
    }

    /// The same, without the files whose content the guard does not admit.
    #[must_use]
    pub fn with_guard(self, guard: FileGuard) -> Self {
        Self { guard, ..self }
    }

    /// The same procedures and one more.
    pub fn with(mut self, sop: Sop) -> Self {
        self.own.push(sop);
        self
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<String> {
        self.all().into_iter().map(|sop| sop.name).collect()
    }

    /// The files of a folder that are meant to be procedures, in order.
    pub fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_sop = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            name.ends_with(".md") && name != "readme.md" && !name.starts_with('.') && path.is_file()
        };
        let mut files: Vec<_> = entries.filter(is_sop).collect();
        files.sort();
        files.truncate(MAX_FILES);
        files
    }

    /// The procedure that fits best: the one that names most of the task.
    pub(super) fn find(&self, role: &str, task: &str) -> Option<SopMatch> {
        let all = self.all();
        let fitting = all.iter().filter_map(|sop| Some((sop, sop.fits(role, task)?)));
        let (sop, (_, pattern, captures)) =
            fitting.max_by_key(|(sop, (weight, ..))| (*weight, std::cmp::Reverse(sop.name.clone())))?;
        let reason = format!("SOP `{}` fits: `{}`", sop.name, pattern.text());
        Some(SopMatch { reason, plan: sop.plan(task, &captures) })
    }

    /// Those that can be used. A file with faults is left out; `polis check` tells of it.
    fn all(&self) -> Vec<Sop> {
        let small = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|file| file.len() <= MAX_BYTES);
        let text = |path: PathBuf| {
            let bytes = std::fs::read(&path).ok().filter(|bytes| self.guard.admits(&path, bytes))?;
            String::from_utf8(bytes).ok()
        };
        let files = self.folders.iter().flat_map(|folder| Self::files(folder));
        let read = files.filter(small).filter_map(text).filter_map(|text| Sop::read(&text).ok());
        let mut all: Vec<Sop> = Vec::new();
        for sop in self.own.iter().cloned().chain(read) {
            if all.iter().all(|known| known.name != sop.name) {
                all.push(sop);
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

/// A name such as `@analyst` at the beginning of a text, and the rest.
fn addressed(text: &str) -> Option<(Arc<str>, &str)> {
    let rest = text.strip_prefix('@')?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    if name.is_empty() {
        return None;
    }
    Some((name.into(), rest.trim_start_matches([':', '：', ',', '，', ' ', '\t'])))
}
