//! Where skills are, and what is wrong with them.

use std::path::{Path, PathBuf};

use polis_agents::{SHARED_SKILLS_FOLDERS, SKILLS_FOLDER, Skill, SkillFault, Skills};

use crate::config::Config;
use crate::trust::Trust;

/// Maximum number of faults reported for a file.
const MOST: usize = 3;

/// The skills that agents are told about: first the user's own, then the working directory's. Commands cannot read the user's
/// configuration.
pub(crate) fn skills(config: &Config) -> Skills {
    let users = config.trust.user().map(|user| user.join(SKILLS_FOLDER));
    let skills = users.into_iter().fold(Skills::default(), Skills::with_closed_folder);
    project_folders(config).into_iter().fold(skills, Skills::with_folder).with_guard(config.trust.guard())
}

/// The folders with skills of the working directory. Their paths are as a command in the workspace can use them.
pub(crate) fn project_folders(config: &Config) -> Vec<PathBuf> {
    let here = config.trust.folder();
    let is_workspace = config.workspace.canonicalize().is_ok_and(|workspace| workspace == here);
    let base = if is_workspace { PathBuf::new() } else { here.to_owned() };
    [SKILLS_FOLDER].into_iter().chain(SHARED_SKILLS_FOLDERS).map(|folder| base.join(folder)).collect()
}

/// A folder that is meant to be a skill.
pub(crate) struct FoundSkill {
    /// The path of its `SKILL.md`.
    pub(crate) file: PathBuf,
    pub(crate) skill: Option<Skill>,
    /// Whether its `SKILL.md` is trusted.
    is_trusted: bool,
    /// Why it is not used.
    pub(crate) problems: Vec<String>,
}

/// All skills with their problems, by place and name.
pub(crate) fn find(config: &Config) -> Vec<FoundSkill> {
    let mut found: Vec<FoundSkill> = Vec::new();
    for file in skills(config).folders().flat_map(Skills::files) {
        let mut entry = read(file, &config.trust);
        let name = entry.skill.as_ref().map(|skill| &skill.name);
        let twin = found.iter().find(|known| name.is_some() && known.skill.as_ref().map(|skill| &skill.name) == name);
        if let Some(twin) = twin {
            entry.problems.push(format!("{} has this name too and counts", twin.file.display()));
        }
        found.push(entry);
    }
    found
}

fn read(file: PathBuf, trust: &Trust) -> FoundSkill {
    let place = file.display().to_string();
    let mut found = FoundSkill { file, skill: None, is_trusted: true, problems: Vec::new() };
    match trust.read(&found.file) {
        Err(error) => found.problems.push(format!("{place}: {error}")),
        Ok(None) => {
            found.is_trusted = false;
            found.problems.push(format!("{place} is not trusted; look at it and type polis trust"));
        }
        Ok(Some(text)) => match Skill::read(Skills::folder_name(&found.file), &text) {
            Ok(skill) => {
                found.problems.extend(untrusted_part(&found.file, trust));
                found.skill = Some(skill);
            }
            Err(faults) => {
                let line = |fault: &SkillFault| format!("{place}:{}: {}; {}", fault.line, fault.wrong, fault.remedy);
                found.problems.extend(faults.iter().take(MOST).map(line));
            }
        },
    }
    found
}

/// Why a skill whose `SKILL.md` is good cannot be used.
fn untrusted_part(file: &Path, trust: &Trust) -> Option<String> {
    let folder = file.parent()?;
    let Some(parts) = Skills::parts(folder) else {
        return Some(format!("{} has too many files, or too deep folders", folder.display()));
    };
    let is_other = |path: &PathBuf| !std::fs::read(path).is_ok_and(|bytes| trust.admits(path, &bytes));
    parts
        .into_iter()
        .map(|part| folder.join(part))
        .find(is_other)
        .map(|path| format!("{} is not trusted; look at it and type polis trust", path.display()))
}

/// Why trusted files are no skills: the position, the fault, and the remedy.
pub(crate) fn faults(config: &Config) -> Vec<String> {
    let broken = find(config).into_iter().filter(|found| found.is_trusted && found.skill.is_none());
    broken.flat_map(|found| found.problems).map(|problem| format!("{problem}; the skill is not used")).collect()
}
