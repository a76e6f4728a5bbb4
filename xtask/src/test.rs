//! The chore `test`: everything that must hold before a change goes in, step by step, up to the first that does not.
//! The steps live in the files below this one or are chores of their own; here is their order.

mod clients;
mod local_model;
mod mcp_conformance;
mod mcp_servers;
mod packages;
mod packaging;
mod page;
mod page_checks;
mod peers;
mod plants;
mod schemathesis;
mod sdks;
mod style;
mod suite;
mod tools;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::record::Record;
use crate::workspace::Workspace;
use crate::{acceptance, deny, sim, tidy};

struct Step {
    name: &'static str,
    run: fn(&Workspace) -> Result<Done>,
}

/// How a step ended that did not fail.
enum Done {
    Passed,
    /// The machine cannot do it, for this reason. Never used for what the project itself lacks.
    Skipped(String),
}

const STEPS: &[Step] = &[
    Step { name: "tools that the tests need", run: tools::install },
    Step { name: "format", run: style::format },
    Step { name: "lints", run: style::lints },
    Step { name: "feature sets", run: style::features },
    Step { name: "tidy", run: |workspace| tidy::run(workspace).map(passed) },
    Step { name: "dependencies", run: dependencies },
    Step { name: "tests", run: suite::run },
    Step { name: "a small model on this machine", run: local_model::run },
    Step { name: "MCP servers", run: mcp_servers::run },
    Step { name: "the official suite for MCP clients", run: mcp_conformance::run },
    Step { name: "the page in a browser", run: page::run },
    Step { name: "a client that knows only the contract", run: schemathesis::run },
    Step { name: "clients of others", run: clients::run },
    Step { name: "clients of others: MCP and A2A", run: peers::run },
    Step { name: "requests to vendors", run: sdks::run },
    Step { name: "packaging", run: packaging::run },
    Step { name: "planted bugs are caught", run: plants::run },
    Step { name: "acceptance", run: |workspace| Ok(acceptance::run(workspace, None)?.map_or(Done::Passed, Done::Skipped)) },
    Step { name: "simulation", run: |workspace| sim::run(workspace, &["--seeds", "300"]).map(passed) },
];

/// What `--quick` runs: what most mistakes are caught by, without installing anything.
const QUICK: &[Step] = &[
    Step { name: "format", run: style::format },
    Step { name: "lints", run: style::lints },
    Step { name: "tidy", run: |workspace| tidy::run(workspace).map(passed) },
    Step { name: "unit tests", run: suite::units },
];

/// Runs the steps; with words, only those that have one of them in their names; with `--quick`, the quick ones.
pub(crate) fn run(workspace: Workspace, words: &[String]) -> Result<()> {
    let (steps, words) = match words.split_first() {
        Some((first, rest)) if first == "--quick" => (QUICK, rest),
        _ => (STEPS, words),
    };
    let is_wanted = |step: &Step| words.is_empty() || words.iter().any(|word| step.name.contains(word.as_str()));
    ensure!(steps.iter().any(is_wanted), "no step has any of these words in its name");
    let began = Instant::now();
    let temp = TempDir::make()?;
    let workspace = workspace.isolated_in(&temp.0);
    for (number, step) in (1..).zip(steps).filter(|(_, step)| is_wanted(step)) {
        let title = format!("{number}/{} {}", steps.len(), step.name);
        println!("==> {title}");
        let step_began = Instant::now();
        let outcome = (step.run)(&workspace);
        let took = in_words(step_began.elapsed());
        match outcome {
            Ok(Done::Passed) => println!("==> {title}: ok, {took}"),
            Ok(Done::Skipped(why)) => println!("==> {title}: skipped: {why}, {took}"),
            Err(error) => {
                println!("==> {title}: RED, {took}: {error:#}");
                bail!("stopped at step {title} after {}", in_words(began.elapsed()));
            }
        }
    }
    let which = if words.is_empty() { "all" } else { "what was asked for is" };
    println!("==> {which} green, {}", in_words(began.elapsed()));
    Ok(())
}

/// What is checked here has passed; advisories may have been left out.
fn dependencies(workspace: &Workspace) -> Result<Done> {
    Ok(match deny::run(workspace)? {
        None => Done::Passed,
        Some(why) => Done::Skipped(format!("advisories: {why}; the rest is ok")),
    })
}

fn passed((): ()) -> Done {
    Done::Passed
}

/// Runs one test with a folder that was made for it; it must have run. All programs of the workspace are asked for it, because
/// asking for one crate would build it anew. The record of the tests has it as passed from then on. Gives what it printed.
fn show(workspace: &Workspace, test: &str, (variable, folder): (&str, &Path)) -> Result<String> {
    let call = ["test", "--workspace", "--test", "main", "--", "--exact", test];
    let output = workspace.cargo().args(call).env(variable, folder).output().context("cannot start cargo")?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if let Some(why) = why_not_shown(test, output.status.success(), &said) {
        println!("{said}");
        bail!("{why}");
    }
    update_record(workspace, |record| {
        record.ran(test);
        Ok(())
    })?;
    Ok(said.into_owned())
}

/// Changes the record of the tests, if they have run.
fn update_record(workspace: &Workspace, change: impl FnOnce(&mut Record) -> Result<()>) -> Result<()> {
    let path = Record::path(workspace);
    let mut record = if path.exists() { Record::read(&path)? } else { Record::default() };
    change(&mut record)?;
    if path.exists() { record.write(&path) } else { Ok(()) }
}

/// Why a test that has a step of its own showed nothing: one that was not there, or let itself be skipped, does not count.
fn why_not_shown(test: &str, succeeded: bool, said: &str) -> Option<String> {
    if !succeeded {
        Some(format!("{test} failed"))
    } else if said.lines().any(|line| line.starts_with("skipped: ")) {
        Some(format!("{test} was skipped although what it needs is there"))
    } else if !said.lines().any(|line| line == format!("test {test} ... ok")) {
        Some(format!("{test} did not run"))
    } else {
        None
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// A folder for whatever the steps leave behind, gone with them.
struct TempDir(PathBuf);

impl TempDir {
    fn make() -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("polis-xtask-{}", std::process::id()));
        remove(&dir);
        std::fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(Self(dir))
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Best effort: a temporary folder that stays behind harms nobody.
fn remove(dir: &Path) {
    std::fs::remove_dir_all(dir).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_test_that_ran_and_passed_counts() {
        let ok = "running 1 test\ntest a::b ... ok\n";
        assert_eq!(why_not_shown("a::b", true, ok), None);
        assert!(why_not_shown("a::b", false, ok).unwrap().ends_with("failed"));
        assert!(why_not_shown("a::b", true, "running 0 tests\n").unwrap().ends_with("did not run"));
        assert!(why_not_shown("a::b", true, &format!("skipped: it: no model\n{ok}")).unwrap().contains("was skipped"));
    }

    #[test]
    fn times_read_well() {
        assert_eq!(in_words(Duration::from_millis(1_234)), "1.2 s");
        assert_eq!(in_words(Duration::from_secs(184)), "3 min 04 s");
    }
}
