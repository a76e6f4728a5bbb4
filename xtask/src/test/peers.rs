//! The step that lets clients of others use the program: the MCP inspector's command line, the official conformance suite for MCP
//! servers and the official A2A client. They go into the folder of the suite; where they cannot be had, the step says so.

use std::path::PathBuf;

use anyhow::Result;

use super::mcp_conformance::installed;
use super::{Done, packages};
use crate::workspace::Workspace;

/// What is installed beside the suite, on npm.
const PACKAGES: &[&str] = &["@modelcontextprotocol/inspector@2.12.0", "@a2a-js/sdk@1.3.0"];

/// Names the folder to the test.
const FOLDER: &str = "POLIS_TEST_PEERS";

const TEST: &str = "cli::peers::others::clients_of_others_use_the_program";

pub(super) fn run(workspace: &Workspace) -> Result<Done> {
    match install(workspace) {
        Ok(folder) => super::show(workspace, TEST, (FOLDER, &folder)).map(|_| Done::Passed),
        Err(why) => Ok(Done::Skipped(why)),
    }
}

fn install(workspace: &Workspace) -> Result<PathBuf, String> {
    let folder = installed(workspace)?;
    println!("installing {} into a temporary folder", PACKAGES.join(", "));
    packages::npm(&folder, PACKAGES)?;
    Ok(folder)
}
