//! The step that lets clients of others talk to the real program: OpenAI's SDKs and AG-UI's client, all official, and frameworks
//! that use OpenAI's API for structured output. They go into a temporary folder and away again; where they cannot be had, the
//! step says so.

use std::path::Path;

use anyhow::Result;

use super::{Done, mcp_conformance, packages};
use crate::workspace::Workspace;

/// The clients, on npm. The older client of AG-UI is the one that CopilotKit brings along.
const CLIENTS: &[&str] = &["openai@6", "@ag-ui/client@1.0.0", "ag-ui-client-before-1@npm:@ag-ui/client@0.0.59"];

/// The clients, on PyPI.
const PYPI: &[&str] = &["openai==3.3.0", "pydantic-ai-slim[openai]==2.38.0", "instructor==1.17.0", "langchain-openai==1.7.3"];

/// The oldest `node` that runs them.
const OLDEST_NODE: u32 = 20;

/// Names the folder with the clients to the test.
const FOLDER: &str = "POLIS_TEST_CLIENTS";

const TEST: &str = "cli::clients::the_official_clients_are_served_and_complain_about_nothing";

pub(super) fn run(workspace: &Workspace) -> Result<Done> {
    let folder = workspace.temp_dir().join("clients");
    let installed = mcp_conformance::install(&folder, CLIENTS, OLDEST_NODE).and_then(|()| install_python(&folder));
    let done = match installed {
        Ok(()) => super::show(workspace, TEST, (FOLDER, &folder)).map(|_| Done::Passed),
        Err(why) => Ok(Done::Skipped(why)),
    };
    super::remove(&folder);
    done
}

/// Leaves the packages for Python in the folder.
fn install_python(folder: &Path) -> Result<(), String> {
    println!("installing {} into a temporary folder", PYPI.join(", "));
    packages::pip(&folder.join("python"), PYPI, &[])
}
