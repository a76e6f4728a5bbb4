//! The chore `sim`: runs the simulator of the testkit, which owns its arguments.

use anyhow::Result;

use crate::workspace::{Workspace, succeed};

pub(crate) fn run(workspace: &Workspace, args: &[impl AsRef<std::ffi::OsStr>]) -> Result<()> {
    let mut cargo = workspace.cargo();
    cargo.args(["run", "--quiet", "--release", "-p", "polis-testkit", "--bin", "sim", "--"]).args(args);
    succeed(&mut cargo, "the simulation")
}
