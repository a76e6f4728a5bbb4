//! The step that lets clients of others talk to the real program: OpenAI's SDK and AG-UI's client, both official. They go into a
//! temporary folder and away again; where they cannot be had, the step says so.

use anyhow::Result;

use super::{Done, mcp_conformance};
use crate::workspace::Workspace;

/// The clients, on npm.
const CLIENTS: &[&str] = &["openai@6", "@ag-ui/client@1.0.0"];

/// The oldest `node` that runs them.
const OLDEST_NODE: u32 = 20;

/// Names the folder with the clients to the test.
const FOLDER: &str = "POLIS_TEST_CLIENTS";

const TEST: &str = "cli::clients::the_official_clients_are_served_and_complain_about_nothing";

pub(super) fn run(workspace: &Workspace) -> Result<Done> {
    let folder = workspace.temp_dir().join("clients");
    let done = match mcp_conformance::install(&folder, CLIENTS, OLDEST_NODE) {
        Ok(()) => super::show(workspace, TEST, (FOLDER, &folder)).map(|()| Done::Passed),
        Err(why) => Ok(Done::Skipped(why)),
    };
    super::remove(&folder);
    done
}
