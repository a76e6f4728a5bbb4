//! The chore `corpus`: adds a data directory of this version to those that the tests open. Run it with each release.

use anyhow::Result;

use crate::workspace::{Workspace, succeed};

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut cargo = workspace.cargo();
    let test = "cli::corpus::make_the_data_directory_of_this_version";
    cargo.args(["test", "--quiet", "-p", "polis-app", "--test", "main", "--", "--exact", test]);
    cargo.env("POLIS_CORPUS", workspace.root.join("crates/app/tests/corpus"));
    succeed(&mut cargo, "making the data directory")
}
