//! The workspace as cargo and git describe it: packages, their dependencies, files, and how to call cargo in it.
//! Reads only; what must hold about it is decided by the chores.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// The checkout that a chore works on.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) packages: Vec<Package>,
    /// Where cargo builds.
    pub(crate) target_dir: PathBuf,
    temp_dir: Option<PathBuf>,
}

/// One crate of the workspace; paths are relative to its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// `crates/domain`
    pub(crate) dir: String,
    pub(crate) dependencies: Vec<Dependency>,
}

impl Package {
    pub(crate) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.dir)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) purpose: Purpose,
}

/// What a dependency is for. A build script's dependency counts as the crate's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Code,
    Tests,
}

impl Workspace {
    /// Asks `cargo metadata`, without network.
    pub(crate) fn load() -> Result<Self> {
        let output = Command::new(cargo_program())
            .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start cargo")?;
        ensure!(output.status.success(), "cargo metadata failed");
        let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cannot read cargo metadata")?;
        metadata.try_into()
    }

    /// Every cargo call from now on keeps its temporary files there and sees none of the caller's own settings,
    /// so that no test depends on them or spends somebody's money.
    pub(crate) fn isolated_in(mut self, dir: &Path) -> Self {
        self.temp_dir = Some(dir.to_owned());
        self
    }

    /// A cargo call at the root whose output can be read by us.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = self.command(&cargo_program());
        command.current_dir(&self.root).env("CARGO_TERM_COLOR", "never");
        for chatty in ["CARGO_TERM_QUIET", "CARGO_TERM_VERBOSE", "CARGO_TERM_PROGRESS_WHEN"] {
            command.env_remove(chatty);
        }
        command
    }

    /// A call of a program with the environment that cargo calls have.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some(dir) = &self.temp_dir {
            command.env("TMPDIR", dir);
            for (name, _) in std::env::vars_os() {
                if name.to_str().is_some_and(is_setting) {
                    command.env_remove(name);
                }
            }
        }
        command
    }

    /// Where steps leave what is gone after them.
    pub(crate) fn temp_dir(&self) -> PathBuf {
        self.temp_dir.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// Where chores leave files for each other.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.target_dir.join("xtask")
    }

    pub(crate) fn has_package(&self, name: &str) -> bool {
        self.packages.iter().any(|package| package.name == name)
    }

    /// Tracked files and those that would be tracked with the next `git add`, relative to the root.
    pub(crate) fn files(&self) -> Result<Vec<String>> {
        let output = Command::new("git")
            .arg("-c")
            .arg(format!("safe.directory={}", self.root.display()))
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&self.root)
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start git")?;
        ensure!(output.status.success(), "git ls-files failed; tidy needs a git checkout");
        let listing = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
        let mut files: Vec<String> =
            listing.split_terminator('\0').filter(|file| self.root.join(file).is_file()).map(str::to_owned).collect();
        files.sort();
        files.dedup();
        Ok(files)
    }
}

/// Runs a command with our own output, and fails with `what` when it does.
pub(crate) fn succeed(command: &mut Command, what: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {what}"))?;
    if !status.success() {
        bail!("{what} failed ({status})");
    }
    Ok(())
}

/// A variable that Polis itself or a vendor's client would obey.
fn is_setting(variable: &str) -> bool {
    variable.starts_with("POLIS_")
        || variable.starts_with("OTEL_")
        || variable.ends_with("_API_KEY")
        || variable.ends_with("_BASE_URL")
}

fn cargo_program() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

#[derive(Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    target_directory: PathBuf,
    packages: Vec<PackageEntry>,
}

#[derive(Deserialize)]
struct PackageEntry {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<DependencyEntry>,
}

#[derive(Deserialize)]
struct DependencyEntry {
    name: String,
    kind: Option<String>,
}

impl TryFrom<Metadata> for Workspace {
    type Error = anyhow::Error;

    fn try_from(metadata: Metadata) -> Result<Self> {
        let root = metadata.workspace_root;
        let packages = metadata.packages.into_iter().map(|entry| entry.under(&root)).collect::<Result<_>>()?;
        Ok(Self { root, packages, target_dir: metadata.target_directory, temp_dir: None })
    }
}

impl PackageEntry {
    fn under(self, root: &Path) -> Result<Package> {
        let dir = self
            .manifest_path
            .parent()
            .and_then(|dir| dir.strip_prefix(root).ok())
            .and_then(Path::to_str)
            .with_context(|| format!("{} lies outside the workspace", self.manifest_path.display()))?
            .to_owned();
        let dependencies = self
            .dependencies
            .into_iter()
            .map(|entry| Dependency {
                name: entry.name,
                purpose: if entry.kind.as_deref() == Some("dev") { Purpose::Tests } else { Purpose::Code },
            })
            .collect();
        Ok(Package { name: self.name, dir, dependencies })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_becomes_packages_with_relative_folders() {
        let metadata: Metadata = serde_json::from_str(
            r#"{"workspace_root": "/ws", "target_directory": "/ws/target", "packages": [
                {"name": "polis-ports", "manifest_path": "/ws/crates/ports/Cargo.toml", "dependencies": [
                    {"name": "polis-domain", "kind": null},
                    {"name": "polis-testkit", "kind": "dev"},
                    {"name": "cc", "kind": "build"}]}]}"#,
        )
        .unwrap();
        let workspace = Workspace::try_from(metadata).unwrap();
        let dependency = |name: &str, purpose| Dependency { name: name.to_owned(), purpose };
        assert_eq!(
            workspace.packages,
            [Package {
                name: "polis-ports".to_owned(),
                dir: "crates/ports".to_owned(),
                dependencies: vec![
                    dependency("polis-domain", Purpose::Code),
                    dependency("polis-testkit", Purpose::Tests),
                    dependency("cc", Purpose::Code),
                ],
            }]
        );
    }
}
