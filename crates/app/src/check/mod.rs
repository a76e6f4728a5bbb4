//! What breaks the rules of names and layout (docs/naming.md), with file and line. Reads sources, runs nothing, changes nothing.

mod layout;
mod names;
mod phases;
mod prompts;
mod roles;
mod sops;
mod source;
mod tree;
pub(crate) mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::check::tree::Tree;

/// What looks at the agents. A new matter is a new line here.
const CHECKS: &[fn(&Tree, &mut Findings)] = &[layout::check, names::check, phases::check, prompts::check, roles::check];

/// A rule, by the name that `docs/naming.md` has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rule {
    Abbreviation,
    BusinessName,
    FileOfPart,
    FolderDepth,
    FolderName,
    MissingPart,
    MixedLevels,
    NamingStyle,
    OwnBase,
    PhaseEnd,
    PhaseName,
    PhaseUnknown,
    PromptFile,
    PromptPhase,
    RoleFile,
    Sop,
    TwoStepStart,
    TypeName,
    Unreadable,
}

/// Something that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Finding {
    /// From the folder that was checked, with `/`.
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) rule: Rule,
    pub(crate) wrong: String,
    pub(crate) remedy: String,
}

/// What came of looking.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) findings: Vec<Finding>,
    /// How many folders of agents were found, those of sub-threads among them.
    pub(crate) agents: usize,
}

/// Each finding once, in the order of files and lines.
#[derive(Default)]
struct Findings(BTreeSet<Finding>);

impl Rule {
    #[cfg(test)]
    const ALL: [Self; 19] = [
        Self::Abbreviation,
        Self::BusinessName,
        Self::FileOfPart,
        Self::FolderDepth,
        Self::FolderName,
        Self::MissingPart,
        Self::MixedLevels,
        Self::NamingStyle,
        Self::OwnBase,
        Self::PhaseEnd,
        Self::PhaseName,
        Self::PhaseUnknown,
        Self::PromptFile,
        Self::PromptPhase,
        Self::RoleFile,
        Self::Sop,
        Self::TwoStepStart,
        Self::TypeName,
        Self::Unreadable,
    ];

    /// As it is printed.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Abbreviation => "abbreviation",
            Self::BusinessName => "business_name",
            Self::FileOfPart => "file_of_part",
            Self::FolderDepth => "folder_depth",
            Self::FolderName => "folder_name",
            Self::MissingPart => "missing_part",
            Self::MixedLevels => "mixed_levels",
            Self::NamingStyle => "naming_style",
            Self::OwnBase => "own_base",
            Self::PhaseEnd => "phase_end",
            Self::PhaseName => "phase_name",
            Self::PhaseUnknown => "phase_unknown",
            Self::PromptFile => "prompt_file",
            Self::PromptPhase => "prompt_phase",
            Self::RoleFile => "role_file",
            Self::Sop => "sop",
            Self::TwoStepStart => "two_step_start",
            Self::TypeName => "type_name",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Looks at everything below a folder.
pub(crate) fn look(root: &Path) -> io::Result<Report> {
    let tree = Tree::read(root)?;
    let mut findings = Findings::default();
    for check in CHECKS {
        check(&tree, &mut findings);
    }
    sops::check(root, &mut findings);
    Ok(Report { findings: findings.0.into_iter().collect(), agents: tree.folders.len() })
}

impl Findings {
    fn add(&mut self, path: &Path, line: usize, rule: Rule, wrong: impl Into<String>, remedy: impl Into<String>) {
        let file = path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
        self.0.insert(Finding { file, line, rule, wrong: wrong.into(), remedy: remedy.into() });
    }
}
