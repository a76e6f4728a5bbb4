//! The step that checks the bodies which vendors are sent against the types of the vendors' own SDKs. They go into a temporary
//! folder and away again; where they cannot be had, the step says so.

use anyhow::Result;

use super::{Done, packages};
use crate::workspace::Workspace;

/// The SDKs, on PyPI.
const PYPI: &[&str] = &[
    "openai==3.51.0",
    "anthropic==2.9.0",
    "google-genai==3.3.0",
    "mistralai==3.7.0",
    "ollama==0.6.3",
    "groq==1.7.0",
    "cerebras-cloud-sdk==1.91.0",
    "perplexityai==0.46.1",
    "botocore==1.44.3",
];

/// Names the folder with the SDKs to the test.
const FOLDER: &str = "POLIS_TEST_SDKS";

const TEST: &str = "golden::the_official_sdks_take_the_bodies";

pub(super) fn run(workspace: &Workspace) -> Result<Done> {
    let folder = workspace.temp_dir().join("sdks");
    println!("installing {} into a temporary folder", PYPI.join(", "));
    let done = match packages::pip(&folder, PYPI, &[]) {
        Ok(()) => super::show(workspace, TEST, (FOLDER, &folder)).map(|_| Done::Passed),
        Err(why) => Ok(Done::Skipped(why)),
    };
    super::remove(&folder);
    done
}
