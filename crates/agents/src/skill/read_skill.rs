//! `read_skill`: the instructions of a skill, or a file that belongs to it.

use std::path::{Component, Path, PathBuf};

use polis_domain::{CallResult, EffectClass};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::json;

use super::{FoundSkill, MAX_BYTES, SKILL_FILE, Skills};

/// The tool that reads skills.
pub(crate) const READ_SKILL: &str = "read_skill";

/// Reads skills.
#[derive(Debug, Clone, Default)]
pub struct ReadSkill {
    skills: Skills,
}

impl ReadSkill {
    /// Reads these skills.
    pub fn new(skills: Skills) -> Self {
        Self { skills }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    name: String,
    file: Option<PathBuf>,
}

impl TurnTool for ReadSkill {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: READ_SKILL.into(),
            description:
                "Returns the instructions of a skill, or a file of its folder. You are told which skills there are; read one \
                          before you do what it is for."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "The skill's name" },
                    "file": { "type": "string", "description": "A file of its folder, such as references/forms.md" },
                },
                "required": ["name"],
            }),
            class: EffectClass::Read,
            volatile: true,
        }
    }

    async fn call(&self, turn: &mut Turn, arguments: &str) -> CallResult {
        let Arguments { name, file } = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return CallResult::failed(format!("the arguments cannot be used: {error}")),
        };
        let role = turn.role();
        let Some(found) = self.skills.find(role, name.trim()) else {
            let known: Vec<_> = self.skills.list(role).into_iter().map(|(name, _)| name).collect();
            let there = if known.is_empty() { "there are none".to_owned() } else { format!("there are {}", known.join(", ")) };
            return CallResult::failed(format!("there is no skill `{name}`; {there}"));
        };
        let read = match file.filter(|file| *file != Path::new(SKILL_FILE)) {
            None => self.instructions(&found),
            Some(file) => self.file(&found, &file),
        };
        read.map_or_else(CallResult::failed, CallResult::good)
    }
}

impl ReadSkill {
    fn instructions(&self, found: &FoundSkill) -> Result<String, String> {
        let FoundSkill { skill, folder, is_closed } = found;
        let parts = self.skills.trusted_parts(found)?;
        let others: Vec<_> =
            parts.iter().filter(|path| *path != Path::new(SKILL_FILE)).map(|path| path.display().to_string()).collect();
        let mut text = format!("Skill `{}`, in the folder {}.", skill.name, folder.display());
        if !others.is_empty() {
            let run = match is_closed {
                true => "commands cannot read that folder",
                false => "run scripts with `run_command`, if you have it",
            };
            text.push_str(&format!(
                " It has these files, with paths from that folder: {}. Read them with `read_skill` and `file`; {run}.",
                others.join(", ")
            ));
        }
        if let Some(compatibility) = &skill.compatibility {
            text.push_str(&format!(" Its author says what it needs: {compatibility}."));
        }
        Ok(format!("{text}\n\n{}", skill.instructions))
    }

    fn file(&self, found: &FoundSkill, file: &Path) -> Result<String, String> {
        let FoundSkill { skill, folder, .. } = found;
        let parts = self.skills.trusted_parts(found)?;
        let named: PathBuf = file.components().filter(|part| *part != Component::CurDir).collect();
        let is_there = parts.contains(&named);
        if !is_there {
            let known: Vec<_> = parts.iter().map(|path| path.display().to_string()).collect();
            return Err(format!("`{}` is no file of the skill `{}`; it has {}", file.display(), skill.name, known.join(", ")));
        }
        let text = self.skills.text(&folder.join(named), MAX_BYTES);
        text.ok_or_else(|| format!("`{}` is no text, or longer than {MAX_BYTES} bytes; a command can read it", file.display()))
    }
}
