//! Names in roles and SOPs: each tool, skill, model, role and agent that a file names is there. Which ones the program, its settings
//! and the society bring is given.

use std::io;
use std::path::Path;
use std::sync::Arc;

use polis_agents::role::{OnFailure, Sop, Sops};
use polis_agents::{SHARED_SKILLS_FOLDERS, SKILLS_FOLDER, Skill, Skills, read_role};

use super::tree::Tree;
use super::{Finding, Findings, Rule, sops};

/// The names that are there beside those of the folder.
#[derive(Debug, Clone, Default)]
pub struct KnownNames {
    /// Tools of the program.
    pub tools: Vec<String>,
    /// MCP servers. Which tools they bring is known when they run.
    pub servers: Vec<String>,
    /// Vendors of models.
    pub vendors: Vec<String>,
    /// Roles of the society and of the user's own folder, and A2A members.
    pub roles: Vec<String>,
    /// Agents of the society.
    pub agents: Vec<String>,
    /// Skills of the user's own folder.
    pub skills: Vec<String>,
}

/// Looks at the roles and SOPs of a folder. `hint` gets a name and those that it may have been, and ends the message.
pub fn check_names(root: &Path, known: &KnownNames, hint: &dyn Fn(&str, &[&str]) -> String) -> io::Result<Vec<Finding>> {
    let mut known = known.clone();
    let tree = Tree::read(root)?;
    let roles = tree.roles.iter().filter_map(|(path, text)| {
        let stem = path.file_stem()?.to_str()?;
        Some((path, text, read_role(stem, text, "role").ok()?))
    });
    let roles: Vec<_> = roles.collect();
    known.roles.extend(roles.iter().map(|(_, _, role)| role.id.to_string()));
    let folders = [SKILLS_FOLDER].into_iter().chain(SHARED_SKILLS_FOLDERS);
    let skills = folders.flat_map(|folder| Skills::files(&root.join(folder))).filter_map(|path| {
        let text = std::fs::read_to_string(&path).ok()?;
        Some(Skill::read(Skills::folder_name(&path), &text).ok()?.name)
    });
    known.skills.extend(skills);

    let mut names = Names { known: &known, hint, findings: Findings::default() };
    for (path, text, role) in &roles {
        let alone = |pattern: &Arc<str>| {
            let mut alone = role.clone();
            alone.tools = Some([pattern.clone()].into());
            alone
        };
        let of = |list: &Option<Arc<[Arc<str>]>>| list.as_deref().unwrap_or_default().to_vec();
        for pattern in of(&role.tools) {
            let alone = alone(&pattern);
            let is_there = known.tools.iter().any(|tool| alone.has_tool(tool))
                || known.servers.iter().any(|server| alone.may_have_tool_beginning(&format!("{server}__")));
            if !is_there {
                names.tool(path, line_of(text, Some("tools"), &pattern), &pattern);
            }
        }
        for pattern in of(&role.skills) {
            // Names fit the patterns of skills as they fit those of tools.
            if !known.skills.iter().any(|skill| alone(&pattern).has_tool(skill)) {
                let line = line_of(text, Some("skills"), &pattern);
                names.missing(path, line, &List("skill", &known.skills, "polis skills"), &pattern);
            }
        }
        for model in &role.models {
            let vendor = model.split('/').next().unwrap_or_default();
            if !known.vendors.iter().any(|known| known == vendor) {
                let line = line_of(text, Some("model"), model);
                names.missing(path, line, &List("vendor", &known.vendors, "polis models"), vendor);
            }
        }
    }
    for path in Sops::files(&root.join(sops::FOLDER)) {
        let shown = path.strip_prefix(root).unwrap_or(&path);
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if let Ok(sop) = Sop::read(&text) {
            names.of_sop(shown, &text, &sop);
        }
    }
    Ok(names.findings.0.into_iter().collect())
}

/// Names of one kind, and the command that lists them.
struct List<'a>(&'static str, &'a [String], &'static str);

struct Names<'a> {
    known: &'a KnownNames,
    hint: &'a dyn Fn(&str, &[&str]) -> String,
    findings: Findings,
}

impl Names<'_> {
    fn of_sop(&mut self, path: &Path, text: &str, sop: &Sop) {
        let known = self.known;
        for role in sop.roles.iter().filter(|role| !known.roles.contains(role)) {
            self.missing(path, line_of(text, Some("roles"), role), &List("role", &known.roles, "polis org"), role);
        }
        for step in &sop.steps {
            if let Some(tool) = step.tool_name.as_ref().filter(|tool| !tool.contains('{')) {
                let is_of_server =
                    |server: &String| tool.strip_prefix(server.as_str()).is_some_and(|rest| rest.starts_with("__"));
                if !known.tools.iter().any(|known| **known == **tool) && !known.servers.iter().any(is_of_server) {
                    self.tool(path, line_of(text, None, tool), tool);
                }
            }
            let others = step.on_failure.iter().filter_map(|policy| match policy {
                OnFailure::Another(name) => Some(name),
                OnFailure::Fail | OnFailure::Retry(_) | OnFailure::Myself => None,
            });
            for name in step.target.iter().chain(others) {
                let all: Vec<String> = known.agents.iter().chain(&known.roles).cloned().collect();
                if !all.iter().any(|known| **known == **name) {
                    self.missing(
                        path,
                        line_of(text, None, &format!("@{name}")),
                        &List("agent or role", &all, "polis org"),
                        name,
                    );
                }
            }
        }
    }

    /// A tool that nothing brings; one whose name begins with that of a server needs the server.
    fn tool(&mut self, path: &Path, line: usize, tool: &str) {
        let KnownNames { tools, servers, .. } = self.known;
        match tool.split_once("__") {
            Some((server, rest)) if !server.contains('*') => {
                // The name of the server is whole, that of its tool may be a pattern.
                let star = if rest.contains('*') { "*" } else { "" };
                self.missing(path, line, &List("MCP server", servers, "polis tools"), &format!("{server}{star}"));
            }
            _ => self.missing(path, line, &List("tool", tools, "polis tools"), tool),
        }
    }

    /// A pattern may be there for names to come, so it is reported only if it is like a name.
    fn missing(&mut self, path: &Path, line: usize, list: &List<'_>, name: &str) {
        let List(what, all, listed_by) = list;
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let plain = name.trim_end_matches('*');
        let hint = (self.hint)(plain, &all);
        if name.contains('*') && hint.is_empty() {
            return;
        }
        let wrong = format!("there is no {what} `{plain}`");
        self.findings.add(path, line, Rule::UnknownName, wrong, format!("`{listed_by}` lists what there is{hint}"));
    }
}

/// The line that has a name, from 1: of the entry with this key, whose lines may follow it, or anywhere.
fn line_of(text: &str, key: Option<&str>, name: &str) -> usize {
    let is_key =
        |line: &&str| key.is_some_and(|key| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':')));
    let first = if key.is_some() { text.lines().position(|line| is_key(&line)).unwrap_or_default() } else { 0 };
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let has = |line: &str| {
        line.match_indices(name).any(|(at, _)| {
            let (before, after) = (line[..at].chars().next_back(), line[at + name.len()..].chars().next());
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
    };
    text.lines().skip(first).position(has).map_or(first, |line| first + line) + 1
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn known() -> KnownNames {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        KnownNames {
            tools: names(&["read_file", "write_file"]),
            servers: names(&["github"]),
            vendors: names(&["anthropic", "offline"]),
            roles: names(&["root"]),
            agents: names(&["root", "scout"]),
            skills: names(&["house-style"]),
        }
    }

    /// What is found in files, as `FILE:LINE: what is wrong`.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let hint = |name: &str, all: &[&str]| {
            all.iter()
                .find(|known| known.get(..2) == name.get(..2) && name.len() > 2)
                .map_or(String::new(), |known| format!(" ({known}?)"))
        };
        let findings = check_names(dir.path(), &known(), &hint).unwrap();
        assert!(findings.iter().all(|finding| finding.rule == Rule::UnknownName));
        findings.into_iter().map(|it| format!("{}:{}: {}; {}", it.file, it.line, it.wrong, it.remedy)).collect()
    }

    #[test]
    fn names_that_are_there_are_no_finding() {
        let role = "---\ntools: read_*, *, github__list, github__*, git*, jira__*, x*\nskills: house-*, monthly-report, sales-*\nmodel: anthropic/claude, offline\n---\nWork.";
        let sop = "---\nname: a\nwhen: a\nroles: [root, writer]\n---\n## Steps\n1. @writer do it (if it fails: ask @scout)\n\
                   2. tool `github__list` {}\n3. tool `read_file` {\"path\": \"a\"}\n4. write to a@b.com\n";
        let skill = "---\nname: monthly-report\ndescription: d\n---\nDo.";
        assert_eq!(found(&[("roles/writer.md", role), ("sops/a.md", sop), ("skills/monthly-report/SKILL.md", skill)]), [""; 0]);
    }

    #[test]
    fn names_that_are_not_there_are_found_with_line_and_suggestion() {
        let role = "---\nid: writer\n# tools: none\ntools: [read_file, wrote_file, gitlab__list, gihub__*]\nskills: houses\nmodel: anthropik/claude\n---\nUse wrote_file.";
        let sop = "---\nname: a\nwhen: a\nroles:\n  - root\n  - writter\n---\nwrite\n\n## Steps\n1. do it (if it fails: ask @scoot)\n\
                   2. @wri do it\n3. tool `read` {}\n4. tool `gitlab__list` {}\n";
        assert_eq!(
            found(&[("roles/writer.md", role), ("sops/a.md", sop)]),
            [
                "roles/writer.md:4: there is no MCP server `gihub`; `polis tools` lists what there is (github?)",
                "roles/writer.md:4: there is no MCP server `gitlab`; `polis tools` lists what there is (github?)",
                "roles/writer.md:4: there is no tool `wrote_file`; `polis tools` lists what there is (write_file?)",
                "roles/writer.md:5: there is no skill `houses`; `polis skills` lists what there is (house-style?)",
                "roles/writer.md:6: there is no vendor `anthropik`; `polis models` lists what there is (anthropic?)",
                "sops/a.md:6: there is no role `writter`; `polis org` lists what there is (writer?)",
                "sops/a.md:11: there is no agent or role `scoot`; `polis org` lists what there is (scout?)",
                "sops/a.md:12: there is no agent or role `wri`; `polis org` lists what there is (writer?)",
                "sops/a.md:13: there is no tool `read`; `polis tools` lists what there is (read_file?)",
                "sops/a.md:14: there is no MCP server `gitlab`; `polis tools` lists what there is (github?)",
            ]
        );
    }
}
