//! The step that lets the official conformance suite judge our MCP client. The suite, and a `node` that is new enough for it, go
//! into a temporary folder; where they cannot be had, the step says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

use super::Done;
use super::packages::{npm, ran};
use crate::workspace::Workspace;

/// The suite, on npm.
const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";

/// The oldest `node` that runs it.
const OLDEST_NODE: u32 = 22;

/// The version of the `node` that is taken from npm where there is no other.
const NODE: &str = "26.10.0";

/// Names the folder with the suite to the test.
const FOLDER: &str = "POLIS_TEST_MCP_CONFORMANCE";

const TEST: &str = "mcp::conformance::the_official_suite_for_clients_passes";

pub(super) fn run(workspace: &Workspace) -> Result<Done> {
    // The next step uses it too; it goes with everything temporary.
    match installed(workspace) {
        Ok(folder) => super::show(workspace, TEST, (FOLDER, &folder)).map(|_| Done::Passed),
        Err(why) => Ok(Done::Skipped(why)),
    }
}

/// The folder with the suite and a link `node`, which are put there once.
pub(super) fn installed(workspace: &Workspace) -> Result<PathBuf, String> {
    let folder = workspace.temp_dir().join("mcp-conformance");
    if !folder.join("node").exists() {
        install(&folder, &[SUITE], OLDEST_NODE)?;
    }
    Ok(folder)
}

/// Leaves these packages and a link `node` in the folder.
pub(super) fn install(folder: &Path, packages: &[&str], oldest_node: u32) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let there = node_of_this_machine(oldest_node);
    let name = package();
    let own = there.is_none().then(|| format!("{name}@{NODE}"));
    let packages: Vec<String> = packages.iter().map(|package| (*package).to_owned()).chain(own).collect();
    println!("installing {} into a temporary folder", packages.join(", "));
    npm(folder, &packages)?;
    let node = there.unwrap_or_else(|| folder.join("node_modules").join(name).join("bin/node"));
    std::os::unix::fs::symlink(node, folder.join("node")).map_err(|error| error.to_string())?;
    ran(Command::new(folder.join("node")).arg("--version"))
}

/// The `node` of this machine, if it is new enough.
fn node_of_this_machine(oldest: u32) -> Option<PathBuf> {
    let asked = Command::new("node").args(["-p", "process.version + ' ' + process.execPath"]).stdin(Stdio::null()).output();
    let told = String::from_utf8(asked.ok()?.stdout).ok()?;
    let (version, path) = told.trim().split_once(' ')?;
    is_new_enough(version, oldest).then(|| path.into())
}

fn is_new_enough(version: &str, oldest: u32) -> bool {
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse().ok());
    major.is_some_and(|major: u32| major >= oldest)
}

/// The package that holds a `node` for this machine.
fn package() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    format!("node-{system}-{machine}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_first_number() {
        assert!(is_new_enough("v22.0.0", 22) && is_new_enough("v100.1.2", 22));
        assert!(!is_new_enough("v20.20.2", 22) && !is_new_enough("", 20) && !is_new_enough("v9.99.0", 20));
    }
}
