//! The step that runs `cargo test` and writes down which tests passed.
//!
//! Cargo names the programs it runs on stderr, and libtest the tests on stdout; neither names the crate. So the
//! build is asked first which program belongs to which crate, and the n-th program is matched with the n-th list
//! of tests. Documentation tests come last and name their file.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::Done;
use crate::record::{Record, Verdict};
use crate::workspace::{Package, Workspace};

/// Names of test programs (`main-0123456789abcdef`), each with the beginning of its tests' names.
pub(super) type Programs = BTreeMap<String, Program>;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// `polis-app/main`
    prefix: String,
    path: PathBuf,
    /// Where cargo runs it.
    dir: PathBuf,
}

impl Program {
    /// Runs those of its tests whose names begin like this.
    pub(super) fn tests(&self, workspace: &Workspace, filter: &str) -> Command {
        let mut command = workspace.command(&self.path);
        command.current_dir(&self.dir).arg(filter);
        command
    }
}

/// The program of the tests whose names begin with `prefix`, built as it is in the step of all tests.
pub(super) fn program(workspace: &Workspace, prefix: &str) -> Result<Program> {
    let mut programs = build(workspace)?.into_values();
    programs.find(|program| program.prefix == prefix).with_context(|| format!("there is no {prefix}"))
}

pub(super) fn run(workspace: &Workspace) -> Result<Done> {
    let record_path = Record::path(workspace);
    // An old record must not vouch for a run that breaks off.
    std::fs::remove_file(&record_path).ok();

    let programs = build(workspace)?;
    let mut cargo = workspace.cargo();
    // Every failure is shown, not only those of the first program. With two threads at least, libtest prints a
    // test's name and verdict together.
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().max(2));
    cargo
        .args(["test", "--workspace", "--no-fail-fast"])
        .env("RUST_TEST_THREADS", threads.to_string())
        .env_remove("RUST_TEST_NOCAPTURE");
    let (succeeded, stdout, stderr) = tee(&mut cargo)?;

    let lists = lists(&stdout);
    let mut record = match_up(&announced(&stderr, &programs), &lists, &workspace.packages);
    let unknown: Vec<&str> = skipped(&stderr).filter(|test| !record.skip(test)).collect();
    // They have a step of their own.
    for check in super::page_checks::declared(&workspace.root.join("web"))? {
        record.note(check, Verdict::Skipped);
    }
    record.write(&record_path)?;
    if !succeeded {
        bail!("cargo test failed; not passed: {}", join_or(&record.failed, "see above"));
    }
    ensure!(unknown.is_empty(), "`skipped: NAME: why` must name the test itself; there is no test {}", unknown.join(", "));
    ensure!(record.ignored.is_empty(), "ignored tests are not allowed: {}", join_or(&record.ignored, ""));
    let unread: usize = lists.iter().map(|list| list.announced.saturating_sub(list.results.len())).sum();
    ensure!(unread == 0, "{unread} results could not be read; no test may print past libtest's capture");
    // Said by tests that lack a program; repeated here because it scrolls by above.
    for line in stderr.lines().filter(|line| line.starts_with(SKIPPED)) {
        println!("{line}");
    }
    println!("{} tests passed", record.passed.len());
    Ok(Done::Passed)
}

/// How a test says that it did nothing, before its name and the reason.
const SKIPPED: &str = "skipped: ";

/// The tests that say so, by their names without modules.
fn skipped(stderr: &str) -> impl Iterator<Item = &str> {
    stderr.lines().filter_map(|line| line.strip_prefix(SKIPPED)?.split_once(": ").map(|(test, _)| test))
}

/// Runs the tests that stand beside the code, which need no program but their own.
pub(super) fn units(workspace: &Workspace) -> Result<Done> {
    let status =
        workspace.cargo().args(["test", "--workspace", "--lib", "--bins", "--quiet"]).status().context("cannot start cargo")?;
    ensure!(status.success(), "cargo test failed");
    Ok(Done::Passed)
}

/// Builds all tests, and with them the program.
pub(super) fn build(workspace: &Workspace) -> Result<Programs> {
    let output = workspace
        .cargo()
        .args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "the tests do not build");
    programs(&String::from_utf8_lossy(&output.stdout), &workspace.root, &workspace.packages)
}

/// Reads cargo's messages about what it built.
fn programs(messages: &str, root: &Path, packages: &[Package]) -> Result<Programs> {
    let mut programs = Programs::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Message = serde_json::from_str(line).context("cannot read a message of cargo")?;
        let Message::CompilerArtifact { manifest_path, target, profile, executable: Some(executable) } = message else {
            continue;
        };
        if !profile.test {
            continue;
        }
        let package = packages
            .iter()
            .find(|package| root.join(package.manifest()) == manifest_path)
            .with_context(|| format!("{} is not of this workspace", manifest_path.display()))?;
        let is_library = !target.kind.iter().any(|kind| ["bin", "test", "example", "bench"].contains(&kind.as_str()));
        let prefix = if is_library { package.name.clone() } else { format!("{}/{}", package.name, target.name) };
        let name = file_name(&executable.to_string_lossy()).to_owned();
        programs.insert(name, Program { prefix, path: executable, dir: root.join(&package.dir) });
    }
    Ok(programs)
}

#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Message {
    CompilerArtifact {
        manifest_path: PathBuf,
        target: Target,
        profile: Profile,
        executable: Option<PathBuf>,
    },
    #[serde(other)]
    Another,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The programs that cargo says it runs, in order, as the beginnings of their tests' names.
fn announced<'a>(stderr: &str, programs: &'a Programs) -> Vec<&'a str> {
    stderr
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once('('))
        .filter_map(|(_, program)| programs.get(file_name(program)).map(|program| program.prefix.as_str()))
        .collect()
}

/// What one test program printed.
#[derive(Debug, Default, PartialEq, Eq)]
struct List<'a> {
    announced: usize,
    results: Vec<(&'a str, Verdict)>,
}

fn lists(stdout: &str) -> Vec<List<'_>> {
    let mut lists: Vec<List<'_>> = Vec::new();
    for line in stdout.lines() {
        if let Some(announced) = beginning(line) {
            lists.push(List { announced, results: Vec::new() });
        } else if let (Some(list), Some(result)) = (lists.last_mut(), result(line)) {
            list.results.push(result);
        }
    }
    lists
}

/// `running 3 tests`
fn beginning(line: &str) -> Option<usize> {
    let count = line.strip_prefix("running ")?;
    count.strip_suffix(" tests").or_else(|| count.strip_suffix(" test"))?.parse().ok()
}

/// `test path::name ... ok`
fn result(line: &str) -> Option<(&str, Verdict)> {
    let (name, verdict) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let verdict = match verdict {
        "ok" => Verdict::Passed,
        "FAILED" => Verdict::Failed,
        _ if verdict.starts_with("ignored") => Verdict::Ignored,
        _ => return None,
    };
    Some((name.strip_suffix(" - should panic").unwrap_or(name), verdict))
}

fn match_up(announced: &[&str], lists: &[List<'_>], packages: &[Package]) -> Record {
    let mut record = Record::default();
    for (number, list) in lists.iter().enumerate() {
        for &(name, verdict) in &list.results {
            let test = match announced.get(number) {
                Some(prefix) => format!("{prefix}::{name}"),
                None => doc_test(name, packages),
            };
            record.note(test, verdict);
        }
    }
    record
}

/// `crates/polis/src/lib.rs - Society::ask (line 12)` becomes `polis/doc::src/lib.rs::Society::ask`, so that it
/// keeps its name when lines move.
fn doc_test(name: &str, packages: &[Package]) -> String {
    let (file, item) = name.split_once(" - ").unwrap_or((name, ""));
    let item = item.split("(line ").next().unwrap_or_default().trim_end();
    let home = packages.iter().find_map(|package| {
        let file = file.strip_prefix(&package.dir)?.strip_prefix('/')?;
        Some((package.name.as_str(), file))
    });
    let (package, file) = home.unwrap_or(("unknown", file));
    let separator = if item.is_empty() { "" } else { "::" };
    format!("{package}/doc::{file}{separator}{item}")
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn join_or(tests: &std::collections::BTreeSet<String>, otherwise: &str) -> String {
    if tests.is_empty() {
        return otherwise.to_owned();
    }
    tests.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Runs a command, shows what it prints as it comes, and hands it back: whether it succeeded, stdout, stderr.
fn tee(command: &mut Command) -> Result<(bool, String, String)> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("cannot start cargo")?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = std::thread::scope(|scope| {
        let stdout = scope.spawn(move || copy(stdout, std::io::stdout()));
        let stderr = scope.spawn(move || copy(stderr, std::io::stderr()));
        (stdout.join().expect("copying does not panic"), stderr.join().expect("copying does not panic"))
    });
    let status = child.wait().context("cannot wait for cargo")?;
    Ok((status.success(), stdout?, stderr?))
}

fn copy(from: Option<impl Read>, mut to: impl Write) -> Result<String> {
    let mut from = BufReader::new(from.context("the output was asked for")?);
    let mut seen = Vec::new();
    loop {
        let before = seen.len();
        if from.read_until(b'\n', &mut seen)? == 0 {
            return Ok(String::from_utf8_lossy(&seen).into_owned());
        }
        to.write_all(&seen[before..])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages() -> Vec<Package> {
        [("polis-app", "crates/app"), ("polis-store-local", "crates/store-local"), ("polis", "crates/polis")]
            .map(|(name, dir)| Package { name: name.to_owned(), dir: dir.to_owned(), dependencies: vec![] })
            .into()
    }

    fn artifact(dir: &str, kind: &str, name: &str, test: bool, executable: &str) -> String {
        serde_json::json!({
            "reason": "compiler-artifact", "manifest_path": format!("/ws/{dir}/Cargo.toml"),
            "target": {"name": name, "kind": [kind]}, "profile": {"test": test},
            "executable": executable,
        })
        .to_string()
    }

    fn built() -> Programs {
        let messages = [
            artifact("crates/app", "bin", "polis", true, "/t/debug/deps/polis-1a"),
            artifact("crates/app", "bin", "polis", false, "/t/debug/polis"),
            artifact("crates/app", "test", "main", true, "/t/debug/deps/main-2b"),
            artifact("crates/store-local", "lib", "polis_store_local", true, "/t/debug/deps/polis_store_local-3c"),
            artifact("crates/store-local", "test", "main", true, "/t/debug/deps/main-4d"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        programs(&messages.join("\n"), Path::new("/ws"), &packages()).unwrap()
    }

    const STDERR: &str = "   Compiling polis v0.1.0
    Finished `test` profile [unoptimized] target(s) in 0.20s
     Running unittests src/main.rs (/t/debug/deps/polis-1a)
     Running tests/main.rs (/t/debug/deps/main-2b)
thread 'x' panicked at 'Running (away)'
     Running unittests src/lib.rs (target/debug/deps/polis_store_local-3c)
     Running tests/main.rs (target/debug/deps/main-4d)
   Doc-tests polis
";

    #[test]
    fn programs_are_known_by_their_crate() {
        let expected = [
            ("main-2b", "polis-app/main"),
            ("main-4d", "polis-store-local/main"),
            ("polis-1a", "polis-app/polis"),
            ("polis_store_local-3c", "polis-store-local"),
        ];
        let built = built();
        assert!(built.iter().map(|(program, known)| (program.as_str(), known.prefix.as_str())).eq(expected));
        let store = &built["main-4d"];
        assert_eq!((store.path.to_str(), store.dir.to_str()), (Some("/t/debug/deps/main-4d"), Some("/ws/crates/store-local")));
    }

    #[test]
    fn tests_of_programs_that_share_a_name_are_told_apart() {
        let stdout = "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed\n
running 2 tests
test kill::every_event ... ok
test kill::slow has been running for over 60 seconds
test kill::slow - should panic ... ok

test result: ok. 2 passed; 0 failed; 0 ignored

running 1 test
test lock::tests::one_writer ... ok

running 2 tests
test log::appends ... ok
test log::waits ... ignored, slow

running 1 test
test crates/polis/src/lib.rs - (line 3) ... ok

running 2 tests
test crates/polis/src/ask.rs - Society::ask (line 9) - compile ... ok
test crates/polis/src/ask.rs - Society::ask (line 19) ... ok
";
        let programs = built();
        let record = match_up(&announced(STDERR, &programs), &lists(stdout), &packages());
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(
            record,
            Record {
                passed: set(&[
                    "polis-app/main::kill::every_event",
                    "polis-app/main::kill::slow",
                    "polis-store-local::lock::tests::one_writer",
                    "polis-store-local/main::log::appends",
                    "polis/doc::src/lib.rs",
                    "polis/doc::src/ask.rs::Society::ask",
                ]),
                failed: set(&[]),
                ignored: set(&["polis-store-local/main::log::waits"]),
                skipped: set(&[]),
            }
        );
    }

    #[test]
    fn a_test_that_says_it_was_skipped_is_known_by_its_name() {
        let stderr = "warning: x\nskipped: it_works: there is no browser: none\n  skipped: not_this: one\nskipped: nor this\n";
        assert_eq!(skipped(stderr).collect::<Vec<_>>(), ["it_works"]);
    }

    #[test]
    fn a_result_that_was_torn_apart_is_missed_not_guessed() {
        let stdout = "running 2 tests\ntest a ... hello\nok\ntest b ... FAILED\n";
        assert_eq!(lists(stdout), [List { announced: 2, results: vec![("b", Verdict::Failed)] }]);
    }
}
