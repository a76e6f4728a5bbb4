//! The step in which a program that knows only the contract asks the server for everything. It goes into a temporary folder and
//! away again; where it cannot be had, the step says so.

use anyhow::Result;

use super::{Done, packages};
use crate::workspace::Workspace;

const PYPI: &str = "schemathesis==4.32.5";

/// Names the folder with it to the test.
const FOLDER: &str = "POLIS_TEST_SCHEMATHESIS";

const TEST: &str = "schemathesis::whoever_knows_only_the_contract_is_answered_as_it_says";

pub(super) fn run(workspace: &Workspace) -> Result<Done> {
    let folder = workspace.temp_dir().join("schemathesis");
    println!("installing {PYPI} into a temporary folder");
    let done = match packages::pip(&folder.join("python"), &[PYPI], &[]) {
        Ok(()) => super::show(workspace, TEST, (FOLDER, &folder)).map(|_| Done::Passed),
        Err(why) => Ok(Done::Skipped(why)),
    };
    super::remove(&folder);
    done
}
