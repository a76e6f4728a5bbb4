//! `polis new skill`: a folder with a `SKILL.md` that can be used at once.

use std::path::Path;

use polis_agents::{SKILL_FILE, SKILLS_FOLDER, Skill};

use super::NewFiles;
use super::ScaffoldError;

/// The skill of this name in the folder `skills`.
pub fn skill(name: &str, folder: &Path) -> Result<NewFiles, ScaffoldError> {
    let name = name.trim().to_lowercase().replace([' ', '_'], "-");
    let words = name.replace('-', " ");
    let text = include_str!("templates/skill.md.txt").replace("__name__", &name).replace("__words__", &words);
    if let Err(faults) = Skill::read(&name, &text) {
        let wrong = faults.into_iter().map(|fault| format!("{}; {}", fault.wrong, fault.remedy)).next().unwrap_or_default();
        return Err(ScaffoldError::usage("bad_name", wrong));
    }
    let path = folder.join(SKILLS_FOLDER).join(&name).join(SKILL_FILE);
    let advice = vec![
        format!("edit {}: agents see its description and read the rest when they need it", path.display()),
        "polis skills lists what agents see; type polis trust after each change".to_owned(),
    ];
    Ok(NewFiles { files: vec![(path, text)], advice })
}
