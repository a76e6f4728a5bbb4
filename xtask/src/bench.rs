//! The chore `bench`: runs the crate of measurements, which owns its arguments.

use anyhow::{Result, ensure};

use crate::workspace::{Workspace, succeed};

const PACKAGE: &str = "polis-bench";

/// The measurements that run the program itself.
const WITH_PROGRAM: [&str; 2] = ["nodes", "product"];

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    ensure!(workspace.has_package(PACKAGE), "the workspace has no crate `{PACKAGE}`, so there is nothing to measure");
    if args.is_empty() || args.iter().any(|name| WITH_PROGRAM.contains(&name.as_str())) {
        let mut cargo = workspace.cargo();
        succeed(
            cargo.args(["build", "--quiet", "--release", "-p", "polis-app", "--bin", "polis"]),
            "the build of the program",
        )?;
    }
    let mut cargo = workspace.cargo();
    cargo.args(["run", "--quiet", "--release", "-p", PACKAGE, "--"]).args(args);
    succeed(&mut cargo, "the bench")
}
