//! Finds violations of the rules of names and layout (docs/naming.md), with file and line. Reads sources, runs and changes nothing.

mod duties;
mod layout;
mod names;
pub(crate) mod naming;
mod phases;
mod prompts;
mod references;
mod roles;
mod skills;
mod sops;
mod source;
mod tree;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use serde::Serialize;

pub use self::references::{KnownNames, check_names};
use crate::check::tree::Tree;

/// The checks. A new one is a new line here.
const CHECKS: &[fn(&Tree, &mut Findings)] =
    &[duties::check, layout::check, names::check, phases::check, prompts::check, roles::check];

/// A rule, by the name that `docs/naming.md` has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A name is abbreviated.
    Abbreviation,
    /// A name does not say what is done.
    BusinessName,
    /// A handler or unit changes what only the agent persists.
    Duty,
    /// An agent, handler or unit is in a file of another kind.
    FileOfPart,
    /// A sub-thread's folder is not directly inside that of the agent that starts it.
    FolderDepth,
    /// A file does not begin with the name of its folder.
    FolderName,
    /// An agent or a sub-thread lacks one of its files.
    MissingPart,
    /// A handler or unit serves another level than that of its file.
    MixedLevels,
    /// A name is neither `snake_case` nor `CamelCase`, where it should be.
    NamingStyle,
    /// An agent, handler or unit has a base other than the library's traits.
    OwnBase,
    /// The last phase does not lead to `completed`.
    PhaseEnd,
    /// A phase does not say what is done to what.
    PhaseName,
    /// A phase leads to one that nothing handles.
    PhaseUnknown,
    /// A prompt is not `prompt/[phase_name]_system_prompt.md`.
    PromptFile,
    /// A prompt is for a phase that does not exist.
    PromptPhase,
    /// A file in `roles/` cannot be read, or two are for the same role.
    RoleFile,
    /// A `SKILL.md` cannot be used, or two skills have the same name.
    Skill,
    /// A file in `sops/` cannot be followed.
    Sop,
    /// An agent starts a sub-thread without one of the two phases for it.
    TwoStepStart,
    /// A type has the wrong ending, or is not called like its file.
    TypeName,
    /// A role or SOP names a tool, skill, vendor, role or agent that is not there.
    UnknownName,
    /// A file of an agent is not Rust.
    Unreadable,
}

/// Something that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// From the folder that was checked, with `/`.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// Which rule.
    pub rule: Rule,
    /// What is wrong.
    pub wrong: String,
    /// What to do about it.
    pub remedy: String,
}

/// The result of a check.
#[derive(Debug, Serialize)]
pub struct Report {
    /// In the order of files and lines.
    pub findings: Vec<Finding>,
    /// How many folders of agents were found, those of sub-threads among them.
    pub agents: usize,
}

/// Each finding once, in the order of files and lines.
#[derive(Default)]
struct Findings(BTreeSet<Finding>);

impl Rule {
    #[cfg(test)]
    const ALL: [Self; 22] = [
        Self::Abbreviation,
        Self::BusinessName,
        Self::Duty,
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
        Self::Skill,
        Self::Sop,
        Self::TwoStepStart,
        Self::TypeName,
        Self::UnknownName,
        Self::Unreadable,
    ];

    /// Its name, as it is printed and as `docs/naming.md` has it.
    pub fn id(self) -> &'static str {
        match self {
            Self::Abbreviation => "abbreviation",
            Self::BusinessName => "business_name",
            Self::Duty => "duty",
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
            Self::Skill => "skill",
            Self::Sop => "sop",
            Self::TwoStepStart => "two_step_start",
            Self::TypeName => "type_name",
            Self::UnknownName => "unknown_name",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Looks at everything below a folder.
pub fn check_folder(root: &Path) -> io::Result<Report> {
    let tree = Tree::read(root)?;
    let mut findings = Findings::default();
    for check in CHECKS {
        check(&tree, &mut findings);
    }
    skills::check(root, &mut findings);
    sops::check(root, &mut findings);
    Ok(Report { findings: findings.0.into_iter().collect(), agents: tree.folders.len() })
}

impl Findings {
    fn add(&mut self, path: &Path, line: usize, rule: Rule, wrong: impl Into<String>, remedy: impl Into<String>) {
        let file = path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
        self.0.insert(Finding { file, line, rule, wrong: wrong.into(), remedy: remedy.into() });
    }
}
