//! Skills that people write: folders with a `SKILL.md` in the open format of agentskills.io, and files that belong to it. Agents
//! are told names and descriptions; the instructions are read when they are needed.

mod front_matter;
mod read_skill;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polis_domain::{Role, fits};
use polis_ports::FileGuard;

pub(crate) use read_skill::READ_SKILL;
pub use read_skill::ReadSkill;

/// The folder of skills, from the working directory and from the user's configuration.
pub const SKILLS_FOLDER: &str = "skills";

/// The folders of a project in which other programs keep skills.
pub const SHARED_SKILLS_FOLDERS: [&str; 2] = [".agents/skills", ".claude/skills"];

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// Longest `SKILL.md`, and longest other file that is read, in bytes.
const MAX_BYTES: u64 = 64 * 1024;
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Most skills of a folder, most files of a skill, and how deep its folders go.
const MAX_SKILLS: usize = 200;
const MAX_FILES: usize = 200;
const MAX_DEPTH: usize = 8;

/// Longest name and description, in characters, as the format has it.
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1024;

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name, which is also that of its folder.
    pub name: String,
    /// What it is for and when to use it, on one line.
    pub description: String,
    /// What it needs, in the author's words.
    pub compatibility: Option<String>,
    /// What stands below the front matter.
    pub instructions: String,
}

/// What is wrong with a `SKILL.md`, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFault {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub wrong: String,
    /// How a person mends it.
    pub remedy: String,
}

impl SkillFault {
    fn new(line: usize, wrong: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { line, wrong: wrong.into(), remedy: remedy.into() }
    }
}

/// The skills of a society. Folders are read when skills are needed, so that a change counts at once.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    folders: Vec<SkillsFolder>,
    guard: FileGuard,
}

#[derive(Debug, Clone)]
struct SkillsFolder {
    path: PathBuf,
    /// Whether commands of agents cannot read it.
    is_closed: bool,
}

/// A skill and its folder.
struct FoundSkill {
    skill: Skill,
    folder: PathBuf,
    is_closed: bool,
}

impl Skill {
    /// Reads the text of a `SKILL.md` in a folder of this name; or says everything that is wrong with it.
    pub fn read(folder: &str, text: &str) -> Result<Self, Vec<SkillFault>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let front = front_matter::read(text).map_err(|fault| vec![fault])?;
        let mut faults = Vec::new();
        let mut value = |key: &str, most: usize, remedy: &str| {
            let Some((line, value)) = front.get(key) else {
                faults.push(SkillFault::new(1, format!("it has no `{key}`"), remedy));
                return (1, String::new());
            };
            if value.is_empty() || value.chars().count() > most {
                faults.push(SkillFault::new(line, format!("`{key}` must have 1 to {most} characters"), remedy));
            }
            (line, value.to_owned())
        };
        let (line, name) = value("name", MAX_NAME, "write for example `name: monthly-report` between the `---`");
        let (_, description) =
            value("description", MAX_DESCRIPTION, "say what the skill does and when to use it, for example `description: …`");
        if !name.is_empty() && !is_name(&name) {
            faults.push(SkillFault::new(
                line,
                format!("`{name}` cannot be a skill's name"),
                "use lower-case letters, digits and single hyphens between them",
            ));
        } else if !name.is_empty() && name != folder {
            let remedy = format!("rename the folder to `{name}`, or write `name: {folder}`");
            faults.push(SkillFault::new(line, format!("the skill is called `{name}`, its folder `{folder}`"), remedy));
        }
        if front.body.trim().is_empty() {
            faults.push(SkillFault::new(front.end, "it has no instructions", "write them below the second `---`"));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let compatibility = front.get("compatibility").map(|(_, value)| value.to_owned());
        Ok(Self { name, description, compatibility, instructions: front.body.trim().to_owned() })
    }

    /// Whether agents of a role are told about it: all, unless the role names its skills.
    fn is_for(&self, role: Option<&Arc<Role>>) -> bool {
        let named = role.and_then(|role| role.skills.as_ref());
        named.is_none_or(|patterns| patterns.iter().any(|pattern| fits(pattern, &self.name)))
    }
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.split('-').all(|part| !part.is_empty() && part.chars().all(fits))
}

impl Skills {
    /// The same skills and those of one more folder. Of two with one name, that of the earlier folder counts.
    #[must_use]
    pub fn with_folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.folders.push(SkillsFolder { path: path.into(), is_closed: false });
        self
    }

    /// The same for a folder that commands of agents cannot read, so that no script in it can run.
    #[must_use]
    pub fn with_closed_folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.folders.push(SkillsFolder { path: path.into(), is_closed: true });
        self
    }

    /// The same, without the files whose content the guard does not admit.
    #[must_use]
    pub fn with_guard(self, guard: FileGuard) -> Self {
        Self { guard, ..self }
    }

    /// Its folders, in order.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(|folder| folder.path.as_path())
    }

    /// The `SKILL.md` files in a folder of skills, in order. A folder that cannot be read has none.
    pub fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries.map(|entry| entry.path().join(SKILL_FILE)).filter(|path| path.is_file()).collect();
        files.sort();
        files.truncate(MAX_SKILLS);
        files
    }

    /// All files in a skill's folder, as paths below it and in order, or none if there are too many.
    pub fn parts(folder: &Path) -> Option<Vec<PathBuf>> {
        let mut files = Vec::new();
        collect(folder, Path::new(""), 0, &mut files)?;
        files.sort();
        Some(files)
    }

    /// The name of the folder that a `SKILL.md` is in.
    pub fn folder_name(file: &Path) -> &str {
        file.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// The skills that agents of a role may use. A file with faults, or one that is not trusted, is left out.
    fn of_role(&self, role: Option<&Arc<Role>>) -> Vec<FoundSkill> {
        let mut found: Vec<FoundSkill> = Vec::new();
        let files =
            self.folders.iter().flat_map(|folder| Self::files(&folder.path).into_iter().map(|file| (file, folder.is_closed)));
        for (file, is_closed) in files {
            let Some(folder) = file.parent() else { continue };
            let Some(text) = self.text(&file, MAX_BYTES) else { continue };
            let Ok(skill) = Skill::read(Self::folder_name(&file), &text) else { continue };
            if skill.is_for(role) && !found.iter().any(|known| known.skill.name == skill.name) {
                found.push(FoundSkill { skill, folder: folder.to_owned(), is_closed });
            }
        }
        found.sort_by(|a, b| a.skill.name.cmp(&b.skill.name));
        found
    }

    /// Names and descriptions of the skills for a role, by name. A skill of which a file is not trusted is not told: it could not be
    /// read.
    pub(crate) fn list(&self, role: Option<&Arc<Role>>) -> Vec<(String, String)> {
        let found = self.of_role(role).into_iter().filter(|found| self.trusted_parts(found).is_ok());
        found.map(|found| (found.skill.name, found.skill.description)).collect()
    }

    /// The files of a skill, all of them as they were trusted: what one of them says may have another one run.
    fn trusted_parts(&self, found: &FoundSkill) -> Result<Vec<PathBuf>, String> {
        let FoundSkill { skill, folder, .. } = found;
        let parts = Self::parts(folder)
            .ok_or_else(|| format!("the skill `{}` has too many files, or too deep folders, and is not used", skill.name))?;
        let real = folder.canonicalize().map_err(|error| format!("the skill `{}` cannot be read: {error}", skill.name))?;
        for part in &parts {
            let path = folder.join(part);
            let is_inside = path.canonicalize().is_ok_and(|path| path.starts_with(&real));
            if !is_inside || self.bytes(&path, MAX_FILE_BYTES).is_none() {
                return Err(format!(
                    "the skill `{}` is not used: its file `{}` is not trusted, has changed since, or is too long; the person can type \
                     polis trust",
                    skill.name,
                    part.display()
                ));
            }
        }
        Ok(parts)
    }

    fn find(&self, role: Option<&Arc<Role>>, name: &str) -> Option<FoundSkill> {
        self.of_role(role).into_iter().find(|found| found.skill.name == name)
    }

    /// The text of a file, if it is short enough and trusted.
    fn text(&self, file: &Path, most: u64) -> Option<String> {
        String::from_utf8(self.bytes(file, most)?).ok()
    }

    fn bytes(&self, file: &Path, most: u64) -> Option<Vec<u8>> {
        // A pipe would be waited for.
        std::fs::metadata(file).ok().filter(|about| about.is_file())?;
        let mut bytes = Vec::new();
        File::open(file).ok()?.take(most + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= most && self.guard.admits(file, &bytes)).then_some(bytes)
    }
}

/// Gathers the files below a folder. Links to folders are not followed: they may lead anywhere.
fn collect(folder: &Path, below: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Option<()> {
    let entries = std::fs::read_dir(folder.join(below)).into_iter().flatten().flatten();
    for entry in entries {
        let path = below.join(entry.file_name());
        let kind = entry.file_type().ok()?;
        if kind.is_dir() {
            if depth == MAX_DEPTH {
                return None;
            }
            collect(folder, &path, depth + 1, files)?;
        } else if kind.is_file() || folder.join(&path).is_file() {
            if files.len() == MAX_FILES {
                return None;
            }
            files.push(path);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "---\nname: monthly-report\ndescription: >-\n  Writes the report\n  of a month.\nlicense: MIT\ncompatibility: \
                        \"needs: python\"\nmetadata:\n  author: ann\n  version: '1.0'\nallowed-tools: Read Bash(git:*)\nx-own: [a, b]\n---\n\n# \
                        Report\n\nDo it.\n";

    #[test]
    fn a_skill_is_read_with_every_field_of_the_format() {
        let skill = Skill::read("monthly-report", GOOD).unwrap();
        assert_eq!(skill.name, "monthly-report");
        assert_eq!(skill.description, "Writes the report of a month.");
        assert_eq!(skill.compatibility.as_deref(), Some("needs: python"));
        assert_eq!(skill.instructions, "# Report\n\nDo it.");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let long = "x".repeat(MAX_DESCRIPTION + 1);
        for (text, line, wrong) in [
            ("# no front matter", 1, "it has no front matter"),
            ("---\nname: a\n", 1, "the front matter has no second `---`"),
            ("---\nname a\n---\nx", 2, "`name a` is no `key: value`"),
            ("---\n  name: a\n---\nx", 2, "`name: a` is indented below nothing"),
            ("---\ndescription: d\nname: A b\n---\nx", 3, "`A b` cannot be a skill's name"),
            ("---\nname: a--b\ndescription: d\n---\nx", 2, "`a--b` cannot be a skill's name"),
            ("---\nname: other\ndescription: d\n---\nx", 2, "the skill is called `other`, its folder `a`"),
            ("---\nname: a\ndescription:\n---\nx", 3, "`description` must have 1 to 1024 characters"),
            ("---\nname: a\n---\nx", 1, "it has no `description`"),
            ("---\nname: a\nname: a\ndescription: d\n---\nx", 3, "`name` stands there twice"),
            ("---\nname: a\ndescription: \"d\n---\nx", 3, "the quotation mark is not closed"),
            ("---\nname: a\ndescription: d\n---\n \n", 5, "it has no instructions"),
            (&format!("---\nname: a\ndescription: {long}\n---\nx"), 3, "`description` must have 1 to 1024 characters"),
        ] {
            let faults = Skill::read("a", text).unwrap_err();
            assert!(faults.iter().any(|fault| fault.line == line && fault.wrong == wrong), "{text:?}: {faults:?}");
        }
    }

    #[test]
    fn skills_are_found_by_folder_and_narrowed_by_a_role() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let skill = |name: &str, what: &str| format!("---\nname: {name}\ndescription: {what}\n---\nDo.\n");
        write("own/b/SKILL.md", &skill("b", "own"));
        write("theirs/a/SKILL.md", &skill("a", "first"));
        write("theirs/b/SKILL.md", &skill("b", "hidden by the earlier folder"));
        write("theirs/broken/SKILL.md", "nothing");
        write("theirs/planted/SKILL.md", &skill("planted", "not trusted"));
        write("theirs/loose.md", "");
        let guard = FileGuard::new(|path, _| !path.to_string_lossy().contains("planted"));
        let skills =
            Skills::default().with_folder(dir.path().join("own")).with_folder(dir.path().join("theirs")).with_guard(guard);
        let listed = |role: Option<Role>| skills.list(role.map(Arc::new).as_ref());
        let pair = |name: &str, what: &str| (name.to_owned(), what.to_owned());
        assert_eq!(listed(None), [pair("a", "first"), pair("b", "own")]);
        let narrow =
            |names: &[&str]| Role { skills: Some(names.iter().map(|name| Arc::from(*name)).collect()), ..Role::new("r", "x") };
        assert_eq!(listed(Some(Role::new("r", "x"))).len(), 2);
        assert_eq!(listed(Some(narrow(&["b*"]))), [pair("b", "own")]);
        assert!(listed(Some(narrow(&[]))).is_empty());
    }
}
