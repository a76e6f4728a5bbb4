//! What agents may not write, in one list: everything that Polis, git, a shell, an editor or another coding agent obeys without
//! asking. The file tools ([`Workspace`](crate::Workspace)) and the sandbox both use it. It changes nothing.

mod find;
mod git;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
pub(crate) use find::{Kind, ProtectedEntry, SET_ASIDE};
pub(crate) use find::{TooMany, find, link_targets};
#[cfg(target_os = "linux")]
pub(crate) use git::{is_harmless_config, is_harmless_todo, is_worktree};

/// Folders and files that Polis reads as instruction, from the working directory.
const GOVERNING: &[&[&str]] = &[&["roles"], &["sops"], &["prompts"], &["agents", "prompts"], &["skills"], &["polis.toml"]];

/// The folder whose scripts (`*.js`) the page loads, from the working directory. Other files in it are ordinary: many projects
/// have a folder of this name.
const SCRIPTS: &str = "components";

/// Files and folders that a program obeys wherever they are.
const ANYWHERE: &[&[&str]] = &[
    // Instructions and settings of coding agents.
    &["AGENTS.md"],
    &["AGENTS.override.md"],
    &["AGENT.md"],
    &["CLAUDE.md"],
    &["CLAUDE.local.md"],
    &["GEMINI.md"],
    &["QWEN.md"],
    &["WARP.md"],
    &["SKILL.md"],
    &[".agents"],
    &[".aider.conf.yml"],
    &[".amazonq"],
    &[".claude"],
    &[".clinerules"],
    &[".codex"],
    &[".continue"],
    &[".cursor"],
    &[".cursorrules"],
    &[".gemini"],
    &[".github", "copilot-instructions.md"],
    &[".github", "instructions"],
    &[".github", "prompts"],
    &[".github", "chatmodes"],
    &[".junie"],
    &[".kiro"],
    &[".mcp.json"],
    &[".opencode"],
    &[".qwen"],
    &[".roo"],
    &[".roomodes"],
    &[".windsurf"],
    &["opencode.json"],
    &["opencode.jsonc"],
    &[".windsurfrules"],
    // Shells, and what a shell runs in a folder that it enters.
    &[".autoenv"],
    &[".bash_aliases"],
    &[".bash_login"],
    &[".bash_logout"],
    &[".bash_profile"],
    &[".bashrc"],
    &[".bashrc.d"],
    &[".config", "fish"],
    &[".config", "mise"],
    &[".cshrc"],
    &[".envrc"],
    &[".inputrc"],
    &[".kshrc"],
    &[".login"],
    &[".logout"],
    &[".mise.toml"],
    &[".mise"],
    &[".mise.local.toml"],
    &["mise.local.toml"],
    &[".tool-versions"],
    &["mise.toml"],
    &[".profile"],
    &[".tcshrc"],
    &[".zlogin"],
    &[".zlogout"],
    &[".zprofile"],
    &[".zshenv"],
    &[".zshrc"],
    // A desktop or a service manager, where the workspace is somebody's home.
    &[".config", "autostart"],
    &[".config", "environment.d"],
    &[".config", "systemd"],
    &[".local", "bin"],
    &[".local", "lib"],
    &[".xsessionrc"],
    &[".aws"],
    &[".config", "gcloud"],
    &[".kube"],
    &[".pam_environment"],
    &[".ssh"],
    &[".xinitrc"],
    &[".xprofile"],
    &[".xsession"],
    // Editors and debuggers.
    &[".config", "nvim"],
    &[".config", "emacs"],
    &[".config", "zed"],
    &[".config", "helix"],
    &[".devcontainer"],
    &[".devcontainer.json"],
    &[".gvimrc"],
    &[".helix"],
    &[".gdbearlyinit"],
    &[".pdbrc"],
    &[".Rprofile"],
    &[".ghci"],
    &[".dir-locals.el"],
    &[".emacs"],
    &[".emacs.d"],
    &[".exrc"],
    &[".fleet"],
    &[".gdbinit"],
    &[".idea"],
    &[".lldbinit"],
    &[".nvim.lua"],
    &[".nvimrc"],
    &[".vim"],
    &[".vimrc"],
    &[".vscode"],
    &[".zed"],
    // Tools of languages, which run or fetch programs that their settings name.
    &[".cargo", "config.toml"],
    &[".cargo", "config"],
    &[".npmrc"],
    &[".yarnrc"],
    &[".yarnrc.yml"],
    &[".pnpmfile.cjs"],
    // Git, and what runs its hooks. Its own folder is looked at more closely.
    &[".config", "git"],
    &[".gitconfig"],
    &[".githooks"],
    &[".husky"],
    &[".lefthook.yml"],
    &[".lefthook.yaml"],
    &[".lefthook.toml"],
    &[".lefthook.json"],
    &[".lefthook-local.yml"],
    &[".lefthook-local.yaml"],
    &["lefthook.yaml"],
    &["lefthook.toml"],
    &["lefthook.json"],
    &["lefthook-local.yml"],
    &["lefthook-local.yaml"],
    &[".hg", "hgrc"],
    &[".jj", "repo"],
    &[".pre-commit-config.yaml"],
    &["lefthook.yml"],
];

/// What a git directory has, whatever its name is.
const GIT_SHAPE: [&str; 3] = ["HEAD", "objects", "refs"];

/// What else in a git directory decides which programs git runs.
const GIT_SETTINGS: [&str; 5] = ["config", "config.worktree", "commondir", "hooks", "info"];

/// Most entries of a workspace that are looked at before a file tool writes.
const MAX_LOOKED_AT: usize = 200_000;

/// Where agents may not write, and where they may not even look. Names are compared without regard to ASCII case, because file
/// systems exist that do the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedPaths {
    workspace: PathBuf,
    hidden: Vec<PathBuf>,
    /// What of the hidden is a file of an MCP server.
    #[serde(default)]
    scripts: Vec<PathBuf>,
    #[serde(default)]
    loaded: Vec<PathBuf>,
    #[serde(default)]
    loaded_names: BTreeSet<String>,
    bases: Vec<PathBuf>,
}

/// Why a path is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProtectionReason {
    /// The data directory or the configuration. It cannot be read either.
    Hidden,
    /// A file that an MCP server of the settings runs. It cannot be read either.
    Script,
    /// Polis reads it as instruction.
    Governs,
    /// A trusted server loads code from it, outside the sandbox.
    Loaded,
    /// Another program obeys it.
    Obeyed,
    /// It is part of a git repository's own files.
    Git,
}

impl ProtectionReason {
    /// What it is, in words that follow "is"; for what cannot even be read.
    pub(crate) fn closed(self) -> &'static str {
        match self {
            Self::Script => "a file that an MCP server of the settings runs, which no agent may touch",
            _ => "the data directory or the configuration of polis, which no agent may touch",
        }
    }

    /// Why a path is protected, as a clause about it.
    pub(crate) fn clause(self) -> &'static str {
        match self {
            Self::Hidden => "it belongs to the data directory or the configuration of polis, which no agent may touch",
            Self::Script => "an MCP server of the settings runs it, so no agent may touch it",
            Self::Governs => "it governs agents, so only the person may write it, not by commands either",
            Self::Loaded => {
                "a trusted MCP server loads its code from there, so only the person may write it, not by commands either"
            }
            Self::Obeyed => "programs obey it unasked, so only the person may write it, not by commands either",
            Self::Git => "it belongs to a git repository, which no file tool writes",
        }
    }

    /// What the model does instead of writing it; `other` is a name that it may write.
    pub(crate) fn instead(self, other: &str) -> String {
        match self {
            Self::Hidden | Self::Script => "Tell the person what you would change.".to_owned(),
            Self::Loaded => "Tell the person what to install or change there.".to_owned(),
            Self::Git => "Use git by a command; hooks and settings only the person may write.".to_owned(),
            Self::Governs | Self::Obeyed => {
                format!("Give its text in your answer, or write it under another name such as {other}, and tell the person.")
            }
        }
    }

    /// What such files do, in words that follow "files".
    #[cfg(target_os = "linux")]
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Hidden => "that belong to polis itself",
            Self::Script => "that MCP servers run",
            Self::Governs => "that govern agents",
            Self::Loaded => "that MCP servers load as code",
            Self::Obeyed => "that programs obey unasked",
            Self::Git => "that decide which programs git runs",
        }
    }
}

impl ProtectedPaths {
    /// The list for a workspace in which nothing is hidden. Polis may read its instructions at the root.
    pub fn new(workspace: impl AsRef<Path>) -> Self {
        let workspace = workspace.as_ref();
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        Self { bases: vec![workspace.clone()], workspace, ..Self::default() }
    }

    /// The same list, with these files and folders not even readable. The paths are real ones and need not exist.
    #[must_use]
    pub fn with_hidden(mut self, hidden: impl IntoIterator<Item = PathBuf>) -> Self {
        self.hidden.extend(hidden);
        self
    }

    /// The same list, with these files of MCP servers not even readable. The paths are real ones and need not exist.
    #[must_use]
    pub fn with_scripts(mut self, scripts: impl IntoIterator<Item = PathBuf>) -> Self {
        let scripts: Vec<PathBuf> = scripts.into_iter().collect();
        self.hidden.extend(scripts.iter().cloned());
        self.scripts.extend(scripts);
        self
    }

    /// The same list, with these files and folders not writable, because a program outside the sandbox loads code from them. The
    /// paths are real ones and need not exist.
    #[must_use]
    pub fn with_loaded(mut self, loaded: impl IntoIterator<Item = PathBuf>) -> Self {
        self.loaded.extend(loaded);
        self
    }

    /// The same list, with files and folders of these names not writable wherever they are in the workspace.
    #[must_use]
    pub fn with_loaded_names<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.loaded_names.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// The same list, for a Polis that reads its instructions in this folder. The path is a real one.
    #[must_use]
    pub fn with_base(mut self, folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        if !self.bases.contains(&folder) {
            self.bases.push(folder);
        }
        self
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub(crate) fn hides_something(&self) -> bool {
        !self.hidden.is_empty()
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn hidden(&self) -> &[PathBuf] {
        &self.hidden
    }

    /// The folders of the workspace in which Polis reads its instructions.
    pub(crate) fn bases(&self) -> impl Iterator<Item = &Path> {
        self.bases.iter().map(PathBuf::as_path).filter(|base| base.starts_with(&self.workspace))
    }

    /// Why nobody may even look there, if so. The path is a real one.
    pub(crate) fn why_hidden(&self, path: &Path) -> Option<ProtectionReason> {
        let is_below = |folder: &PathBuf| below(path, folder).is_some();
        let why = if self.scripts.iter().any(is_below) { ProtectionReason::Script } else { ProtectionReason::Hidden };
        self.hidden.iter().any(is_below).then_some(why)
    }

    /// Why a path may not be written, if so. The path is a real one; what does not exist counts where it would be.
    pub(crate) fn why(&self, path: &Path) -> Option<ProtectionReason> {
        if let Some(why) = self.why_hidden(path) {
            return Some(why);
        }
        if self.loaded.iter().any(|loaded| below(path, loaded).is_some()) {
            return Some(ProtectionReason::Loaded);
        }
        let governs = |base: &PathBuf| below(path, base).is_some_and(|rest| is_governing(&rest));
        if self.bases.iter().any(governs) {
            return Some(ProtectionReason::Governs);
        }
        let rest = below(path, &self.workspace).unwrap_or_default();
        if !self.loaded_names.is_empty() && rest.iter().any(|name| self.loaded_names.iter().any(|loaded| is(name, loaded))) {
            return Some(ProtectionReason::Loaded);
        }
        let is_obeyed = |at: usize| ANYWHERE.iter().any(|names| starts(&rest[at..], names));
        if (0..rest.len()).any(is_obeyed) {
            return Some(ProtectionReason::Obeyed);
        }
        None
    }

    /// Why a file tool may not write a path. It looks more closely than [`why`](Self::why) at what git would take for a
    /// repository, because a file tool is refused before it writes and nobody looks afterwards.
    pub(crate) fn why_not_written(&self, path: &Path) -> Option<ProtectionReason> {
        let rest = || below(path, &self.workspace).unwrap_or_default();
        let is_git = || rest().iter().any(|name| is(name, ".git")) || self.makes_repository(path);
        self.why(path).or_else(|| is_git().then_some(ProtectionReason::Git))
    }

    /// Whether a protected link of the workspace leads to this path or to a folder above it.
    pub(crate) fn is_behind_link(&self, path: &Path) -> Result<bool, TooMany> {
        let found = find(self, MAX_LOOKED_AT)?;
        Ok(link_targets(self, &found).iter().any(|target| below(path, target).is_some()))
    }

    /// Whether a file at this path would be part of a git directory that has another name than `.git`, such as a bare repository.
    fn makes_repository(&self, path: &Path) -> bool {
        let is_part = |name: &OsStr| GIT_SHAPE.iter().chain(&GIT_SETTINGS).any(|part| is(name, part));
        path.ancestors().zip(path.ancestors().skip(1)).take_while(|(_, folder)| folder.starts_with(&self.workspace)).any(
            |(entry, folder)| {
                let Some(name) = entry.file_name().filter(|name| is_part(name)) else { return false };
                let has = |part: &str| is(name, part) || folder.join(part).symlink_metadata().is_ok();
                is_git_directory(has)
            },
        )
    }
}

/// Whether git takes a folder with these entries for a repository.
pub(crate) fn is_git_directory(has: impl Fn(&str) -> bool) -> bool {
    GIT_SHAPE.iter().all(|part| has(part)) || (has("HEAD") && has("commondir"))
}

/// Whether a name is this one.
pub(crate) fn is(name: &OsStr, wanted: &str) -> bool {
    name.eq_ignore_ascii_case(wanted)
}

fn is_governing(rest: &[&OsStr]) -> bool {
    let is_script = |name: &OsStr| Path::new(name).extension().is_some_and(|ending| is(ending, "js"));
    GOVERNING.iter().any(|names| starts(rest, names))
        || matches!(rest, [folder, script] if is(folder, SCRIPTS) && is_script(script))
}

/// Whether a folder of this name, from where Polis reads its instructions, leads to some.
fn leads_to_instructions(name: &OsStr) -> bool {
    is(name, SCRIPTS) || GOVERNING.iter().any(|names| names.len() > 1 && is(name, names[0]))
}

/// Whether a folder of this name holds something that a program obeys, wherever it is.
fn leads_to_obeyed(name: &OsStr) -> bool {
    ANYWHERE.iter().any(|names| names.len() > 1 && is(name, names[0]))
}

/// The names in a folder of this name that may be protected.
fn protected_below(name: &OsStr) -> impl Iterator<Item = &'static str> {
    let lists = ANYWHERE.iter().chain(GOVERNING);
    lists.filter(move |names| names.len() > 1 && is(name, names[0])).map(|names| names[1])
}

fn starts(rest: &[&OsStr], names: &[&str]) -> bool {
    rest.len() >= names.len() && rest.iter().zip(names).all(|(part, name)| is(part, name))
}

/// The names that lead from a folder to a path in it or to itself.
fn below<'a>(path: &'a Path, folder: &Path) -> Option<Vec<&'a OsStr>> {
    let mut parts = path.components();
    for wanted in folder.components() {
        if !parts.next()?.as_os_str().eq_ignore_ascii_case(wanted.as_os_str()) {
            return None;
        }
    }
    Some(parts.filter(|part| matches!(part, Component::Normal(_))).map(Component::as_os_str).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_instruction_is_protected_and_its_neighbours_are_not() {
        let list = ProtectedPaths {
            workspace: "/w".into(),
            hidden: vec!["/w/app/.polis".into(), "/w/app/polis.toml".into(), "/own/polis".into()],
            scripts: vec!["/own/polis/server.py".into()],
            loaded: vec!["/w/node_modules".into()],
            loaded_names: ["packages".to_owned()].into(),
            bases: vec!["/w".into(), "/w/app".into()],
        };
        for (path, want) in [
            ("/w/app/.polis", ProtectionReason::Hidden),
            ("/w/app/.Polis/token", ProtectionReason::Hidden),
            ("/own/polis/trust.json", ProtectionReason::Hidden),
            ("/own/polis/server.py", ProtectionReason::Script),
            ("/w/node_modules", ProtectionReason::Loaded),
            ("/w/node_modules/.bin/x", ProtectionReason::Loaded),
            ("/w/deep/Packages/x", ProtectionReason::Loaded),
            ("/w/roles", ProtectionReason::Governs),
            ("/w/app/roles/root.md", ProtectionReason::Governs),
            ("/w/app/Roles/deep/root.md", ProtectionReason::Governs),
            ("/w/sops/a.md", ProtectionReason::Governs),
            ("/w/prompts/planner.md", ProtectionReason::Governs),
            ("/w/app/agents/prompts/planner.md", ProtectionReason::Governs),
            ("/w/skills/a/b.md", ProtectionReason::Governs),
            ("/w/components/a.js", ProtectionReason::Governs),
            ("/w/components/a.JS", ProtectionReason::Governs),
            ("/w/AGENTS.md", ProtectionReason::Obeyed),
            ("/w/a/b/agents.md", ProtectionReason::Obeyed),
            ("/w/.vscode", ProtectionReason::Obeyed),
            ("/w/a/.vscode/tasks.json", ProtectionReason::Obeyed),
            ("/w/a/.github/copilot-instructions.md", ProtectionReason::Obeyed),
            ("/w/.bashrc", ProtectionReason::Obeyed),
            ("/w/x/.ssh/authorized_keys", ProtectionReason::Obeyed),
            ("/w/polis.toml", ProtectionReason::Governs),
            ("/w/x/.mcp.json", ProtectionReason::Obeyed),
        ] {
            assert_eq!(list.why(Path::new(path)), Some(want), "{path}");
        }
        for path in [
            "/w",
            "/w/app",
            "/w/agents",
            "/w/app/node_modules/x",
            "/w/agents/code.rs",
            "/w/src/roles/a.md",
            "/w/src/polis.toml",
            "/w/components",
            "/w/components/Button.tsx",
            "/w/components/deep/a.js",
            "/w/.github/workflows/ci.yml",
            "/w/.config/other",
            "/w/.gitignore",
            "/w/.env",
            "/elsewhere/.vscode/x",
        ] {
            assert_eq!(list.why(Path::new(path)), None, "{path}");
        }
        assert_eq!(list.why_not_written(Path::new("/w/a/.GIT/index")), Some(ProtectionReason::Git));
    }

    #[test]
    fn a_file_that_makes_a_folder_a_repository_is_one_of_git() {
        let root = tempfile::tempdir().unwrap();
        let list = ProtectedPaths::new(root.path());
        let at = |path: &str| list.workspace().join(path);
        for folder in ["bare/objects", "bare/refs", "plain"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for path in ["bare/HEAD", "bare/config", "plain/HEAD", "plain/config", "bare/other"] {
            let want = (path == "bare/HEAD").then_some(ProtectionReason::Git);
            assert_eq!(list.why_not_written(&at(path)), want, "{path}");
        }
        std::fs::write(at("bare/HEAD"), "").unwrap();
        for path in ["bare/config", "bare/hooks/pre-commit", "bare/refs/heads/main", "bare/Config"] {
            assert_eq!(list.why_not_written(&at(path)), Some(ProtectionReason::Git), "{path}");
        }
        std::fs::write(at("plain/HEAD"), "").unwrap();
        assert_eq!(list.why_not_written(&at("plain/commondir")), Some(ProtectionReason::Git));
    }
}
