//! The step that talks to MCP servers that others wrote. They go into a temporary folder and away again; where they cannot be
//! had, the step says so.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use super::Done;
use super::tools::is_on_path;
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
    ran(Command::new("node").arg("--version"))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(folder).args(NPM);
    ran(&mut npm)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:"]);
    ran(pip.args(["--retries", "1", "--target"]).arg(folder.join("python")).args(PYPI))
}

/// Runs a program; otherwise says which, and the last thing that it said.
pub(super) fn ran(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let last = complaint.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it failed");
    Err(format!("{program}: {}", last.trim()))
}
