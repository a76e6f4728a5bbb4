//! `polis skills`: the skills that agents are told about, and what is wrong with the others.

use serde_json::json;

use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;
use crate::skills::{FoundSkill, find};

pub(crate) fn skills(config: &Config, json: bool) -> Result<Exit, CliError> {
    let found = find(config);
    if json {
        let entry = |FoundSkill { file, skill, problems, .. }: &FoundSkill| {
            let (name, description) = skill.as_ref().map(|skill| (&skill.name, &skill.description)).unzip();
            json!({ "name": name, "description": description, "file": file, "problems": problems })
        };
        return out::json(&found.iter().map(entry).collect::<Vec<_>>()).map(|()| Exit::Done);
    }
    if found.is_empty() {
        out::note("polis: there are no skills; a skill is a folder skills/NAME with a SKILL.md");
    }
    for FoundSkill { file, skill, problems, .. } in found {
        let folder = file.parent().unwrap_or(&file).display().to_string();
        match skill {
            Some(skill) if !problems.is_empty() => out::line(&format!("{:<24} {folder} (not used)", skill.name))?,
            Some(skill) => out::line(&format!("{:<24} {folder}\n{:<24} {}", skill.name, "", skill.description))?,
            None => out::line(&format!("{:<24} {folder}", "(not used)"))?,
        }
        problems.iter().try_for_each(|problem| out::line(&format!("{:<24} {problem}", "")))?;
    }
    Ok(Exit::Done)
}
