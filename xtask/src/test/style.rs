//! The steps that ask rustfmt and clippy, and the compiler about sets of features.

use anyhow::{Context, Result, ensure};

use super::{Done, passed};
use crate::workspace::{Workspace, succeed};

pub(super) fn format(workspace: &Workspace) -> Result<Done> {
    ask(workspace, "fmt", &["--all", "--check"], "cargo fmt --check")
}

pub(super) fn lints(workspace: &Workspace) -> Result<Done> {
    ask(workspace, "clippy", &["--workspace", "--all-targets", "--", "-D", "warnings"], "cargo clippy")
}

/// Builds the sets of features that nothing else builds, and looks at what the embeddable core depends on.
pub(super) fn features(workspace: &Workspace) -> Result<Done> {
    for (args, what) in FEATURES {
        succeed(workspace.cargo().arg("check").args(*args), what)?;
    }
    let tree = ["tree", "--package", "polis", "--no-default-features", "--edges", "normal", "--prefix", "none"];
    let output = workspace.cargo().args(tree).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo tree failed");
    let heavy = heavy_of(&String::from_utf8_lossy(&output.stdout));
    ensure!(heavy.is_empty(), "the core (`polis` without features) depends on {}", heavy.join(", "));
    Ok(Done::Passed)
}

/// Builds with other features than those of the workspace as a whole.
const FEATURES: &[(&[&str], &str)] = &[
    (&["--package", "polis", "--no-default-features"], "the core alone"),
    (&["--package", "polis", "--all-features", "--tests"], "the facade with all features"),
    (&["--package", "polis-app", "--no-default-features"], "the program without its default features"),
];

/// What the core does not have: adapters, and what they bring.
const HEAVY: &[&str] = &[
    "axum",
    "clap",
    "hyper",
    "polis-providers",
    "polis-server",
    "polis-store-local",
    "polis-store-postgres",
    "polis-tools",
    "rmcp",
    "rusqlite",
    "rustls",
];

/// The heavy ones among the lines of `cargo tree`.
fn heavy_of(tree: &str) -> Vec<&'static str> {
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    HEAVY.iter().copied().filter(|heavy| names.contains(heavy)).collect()
}

fn ask(workspace: &Workspace, component: &str, args: &[&str], what: &str) -> Result<Done> {
    let installed = workspace.cargo().args([component, "--version"]).output().is_ok_and(|answer| answer.status.success());
    if !installed {
        return Ok(Done::Skipped(format!("cargo {component} is not installed")));
    }
    succeed(workspace.cargo().arg(component).args(args), what).map(passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_the_core_heavy_is_named() {
        let tree = "polis v0.1.0 (/ws/crates/polis)\npolis-agents v0.1.0\nserde v1.0.1\n";
        assert!(heavy_of(tree).is_empty());
        assert_eq!(heavy_of(&format!("{tree}rustls v0.23.1\nhyper v1.0.0 (*)\n")), ["hyper", "rustls"]);
    }
}
