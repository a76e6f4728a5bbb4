//! The step in which a program that knows only the contract asks the server for everything. It goes into a temporary folder and
//! away again; where it cannot be had, the step says so.

use std::process::Command;

use anyhow::Result;

use super::Done;
use super::mcp_servers::ran;
use crate::workspace::Workspace;

const PYPI: &str = "schemathesis==4.32.5";

/// Names the folder with it to the test.
const FOLDER: &str = "POLIS_TEST_SCHEMATHESIS";

const TEST: &str = "schemathesis::whoever_knows_only_the_contract_is_answered_as_it_says";

pub(super) fn run(workspace: &Workspace) -> Result<Done> {
    let folder = workspace.temp_dir().join("schemathesis");
    println!("installing {PYPI} into a temporary folder");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:"]);
    pip.args(["--retries", "1", "--target"]).arg(folder.join("python")).arg(PYPI);
    let done = match ran(&mut pip) {
        Ok(()) => super::show(workspace, TEST, (FOLDER, &folder)).map(|_| Done::Passed),
        Err(why) => Ok(Done::Skipped(why)),
    };
    super::remove(&folder);
    done
}
