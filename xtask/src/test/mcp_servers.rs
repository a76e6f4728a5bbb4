//! The step that talks to MCP servers that others wrote. They go into a temporary folder and away again; where they cannot be
//! had, the step says so.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::tools::is_on_path;
use super::{Done, packages};
use crate::workspace::Workspace;

/// The servers on npm, which also need a `node`.
const NPM: &[&str] = &[
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@playwright/mcp@0.0.83",
];

/// The servers on PyPI.
const PYPI: &[&str] = &["mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19"];

/// Names the folder with the servers to the test.
const FOLDER: &str = "POLIS_TEST_MCP_SERVERS";

const TEST: &str = "mcp::others::servers_of_others_are_used_over_stdio_and_http";

/// The same package as `polis tools add playwright` names, with the browser of this machine.
const BROWSER_TEST: &str = "cli::ready_tools::an_added_browser_opens_a_page";

pub(super) fn run(workspace: &Workspace) -> Result<Done> {
    let folder = workspace.temp_dir().join("mcp-servers");
    println!("installing {} into a temporary folder", [NPM, PYPI].concat().join(", "));
    let done = match install(&folder) {
        Ok(()) => super::show(workspace, TEST, (FOLDER, &folder)).and_then(|_| browser(workspace, &folder)),
        Err(why) => Ok(Done::Skipped(why)),
    };
    super::remove(&folder);
    done
}

fn browser(workspace: &Workspace, folder: &Path) -> Result<Done> {
    if !is_on_path("chromium") {
        return Ok(Done::Skipped(format!("{BROWSER_TEST}: there is no chromium; the servers without a browser were used")));
    }
    super::show(workspace, BROWSER_TEST, (FOLDER, folder)).map(|_| Done::Passed)
}

fn install(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    packages::ran(Command::new("node").arg("--version"))?;
    packages::npm(folder, NPM)?;
    packages::pip(&folder.join("python"), PYPI, &[])
}
