//! The steps that ask rustfmt and clippy.

use anyhow::Result;

use super::{Done, passed};
use crate::workspace::{Workspace, succeed};

pub(super) fn format(workspace: &Workspace) -> Result<Done> {
    ask(workspace, "fmt", &["--all", "--check"], "cargo fmt --check")
}

pub(super) fn lints(workspace: &Workspace) -> Result<Done> {
    ask(workspace, "clippy", &["--workspace", "--all-targets", "--", "-D", "warnings"], "cargo clippy")
}

fn ask(workspace: &Workspace, component: &str, args: &[&str], what: &str) -> Result<Done> {
    let installed = workspace.cargo().args([component, "--version"]).output().is_ok_and(|answer| answer.status.success());
    if !installed {
        return Ok(Done::Skipped(format!("cargo {component} is not installed")));
    }
    succeed(workspace.cargo().arg(component).args(args), what).map(passed)
}
