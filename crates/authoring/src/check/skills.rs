//! Skills: each folder with a `SKILL.md` in a folder of skills can be used, and no two have the same name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use polis_agents::{SHARED_SKILLS_FOLDERS, SKILLS_FOLDER, Skill, Skills};

use super::{Findings, Rule};

pub(super) fn check(root: &Path, findings: &mut Findings) {
    let mut named: BTreeMap<String, PathBuf> = BTreeMap::new();
    let folders = [SKILLS_FOLDER].into_iter().chain(SHARED_SKILLS_FOLDERS);
    for path in folders.flat_map(|folder| Skills::files(&root.join(folder))) {
        let shown = path.strip_prefix(root).unwrap_or(&path).to_owned();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                findings.add(&shown, 1, Rule::Skill, format!("it cannot be read: {error}"), "save it as UTF-8 text");
                continue;
            }
        };
        match Skill::read(Skills::folder_name(&path), &text) {
            Ok(skill) => {
                if let Some(other) = named.insert(skill.name.clone(), shown.clone()) {
                    let wrong = format!("`{}` is the name of {} too", skill.name, other.display());
                    findings.add(&shown, 1, Rule::Skill, wrong, "give one of them another name");
                }
            }
            Err(faults) => {
                faults.into_iter().for_each(|fault| findings.add(&shown, fault.line, Rule::Skill, fault.wrong, fault.remedy))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::check::check_folder;

    #[test]
    fn skills_that_cannot_be_used_are_found_with_their_lines() {
        let dir = tempfile::tempdir().unwrap();
        let skill = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nDo.");
        for (file, text) in [
            ("skills/good/SKILL.md", skill("good")),
            ("skills/bad/SKILL.md", skill("other")),
            (".claude/skills/good/SKILL.md", skill("good")),
            ("skills/no-skill/README.md", "about".to_owned()),
        ] {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found: Vec<_> =
            check_folder(dir.path()).unwrap().findings.into_iter().map(|it| (it.file, it.line, it.rule.id())).collect();
        assert_eq!(
            found,
            [(".claude/skills/good/SKILL.md".to_owned(), 1, "skill"), ("skills/bad/SKILL.md".to_owned(), 2, "skill")]
        );
    }
}
