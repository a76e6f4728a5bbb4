//! A process that is killed, or whose disk fails it, at its writes in turn: what was acknowledged is there.
//!
//! `strace` stops a child at the n-th call of a kind, for every third n, or for every n with `POLIS_TEST_KILL_STEP=1`. The child is this test binary, running [`child`] alone.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use polis_domain::{Recorded, Seq, SocietyId};
use polis_ports::{Log, LogError};
use polis_store_local::{LocalLog, Options};
use polis_testkit::kill;

use crate::support::{Files, all, batch_after, files, fresh_dir, put, wait};

const DIR: &str = "POLIS_TEST_CHILD_DIR";
const END_AT_FAILURE: &str = "POLIS_TEST_CHILD_END";
const SOCIETIES: [&str; 3] = ["one", "two", "three"];
const ROUNDS: usize = 12;

/// Small enough that the WAL is copied into the database several times.
const OPTIONS: Options = Options { checkpoint_bytes: 64 * 1024, check_up_to_bytes: 64 * 1024 * 1024 };

/// Not a test by itself: appends in the directory that it is given, and says what was acknowledged.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    // One failure of the disk is allowed for, so that what comes after it is seen as well.
    let open = || LocalLog::open_with(Path::new(&dir), OPTIONS);
    let Ok(log) = open().or_else(|_| open()) else { return };
    for _ in 0..ROUNDS {
        wait(async { tokio::join!(append(&log, SOCIETIES[0]), append(&log, SOCIETIES[1]), append(&log, SOCIETIES[2])) });
    }
    drop(log);
    println!("\nend");
}

async fn append(log: &LocalLog, name: &str) {
    let society = SocietyId::from(name);
    let Ok(head) = log.head(&society).await else { return };
    let batch = batch_after(head.0);
    match log.append(&society, head, &batch).await {
        Ok(()) => println!("\nacknowledged {name} {}", head.0 + batch.len() as u64),
        Err(LogError::Full(_) | LogError::Failed(_)) => {
            // Unknown: what the log says now holds.
            if let Ok(head) = log.head(&society).await {
                println!("\nacknowledged {name} {}", head.0);
                if std::env::var_os(END_AT_FAILURE).is_some() {
                    println!("\nsettled {name} {}", head.0);
                    std::process::abort();
                }
            }
        }
        Err(other) => println!("\nunexpected {other:?}"),
    }
}

/// Which calls of the child are harmed, and how.
#[derive(Debug, Clone, Copy)]
struct Sweep {
    call: &'static str,
    /// Only calls on this file, if not all.
    file: Option<&'static str>,
    harm: Harm,
    /// Every one, or every third, …; times [`kill::step`].
    step: usize,
}

#[derive(Debug, Clone, Copy)]
enum Harm {
    Kill,
    /// This one fails.
    Fail(&'static str),
    /// This one and all that follow fail.
    FailFrom(&'static str),
    /// This one fails, and the child dies as soon as it knows what came of it.
    FailThenDie(&'static str),
}

/// The child under `strace`.
fn traced(dir: &Path, sweep: Sweep, output: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(output).args(["-e", &format!("trace={}", sweep.call)]);
    if let Some(file) = sweep.file {
        strace.arg("-P").arg(dir.join(file));
    }
    strace.env(DIR, dir);
    strace
}

/// Lets a traced child run; gives back what it said.
fn run(mut strace: Command) -> String {
    strace.arg(std::env::current_exe().unwrap()).args(["--exact", "kill::child", "--nocapture"]);
    String::from_utf8(strace.output().unwrap().stdout).unwrap()
}

/// How many such calls one thread of an undisturbed child makes. `strace` counts each thread by itself.
fn count_calls(start: &Files, sweep: Sweep) -> usize {
    let (dir, trace_dir) = (fresh_dir(), fresh_dir());
    put(dir.path(), start);
    let trace = trace_dir.path().join("calls");
    let output = run(traced(dir.path(), sweep, &trace));
    assert!(output.contains("\nend") && output.matches("\nacknowledged").count() == ROUNDS * SOCIETIES.len(), "{output}");
    most_calls(&trace)
}

/// Runs a test as a process on copies of these files, and kills it or fails a call at the calls that it makes. Its work makes so many
/// truncations at least. `check` gets the directory, the number of the call, and what was done.
pub(crate) fn harm_child(child: &str, variable: &str, written: &Files, truncations: usize, check: impl Fn(&Path, usize, &str)) {
    let run = |dir: &Path, output: &Path, call: &str, harm: Option<&str>| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o"]).arg(output).args(["-e", &format!("trace={call}")]).env(variable, dir);
        if let Some(harm) = harm {
            strace.args(["-e", &format!("inject={call}:{harm}")]);
        }
        strace.arg(std::env::current_exe().unwrap()).args(["--exact", child, "--nocapture"]);
        String::from_utf8(strace.output().unwrap().stdout).unwrap()
    };
    for (call, harm, at_least, step) in [
        ("pwrite64", "signal=SIGKILL", 20, 1),
        ("fsync,fdatasync", "signal=SIGKILL", 5, 1),
        ("ftruncate", "signal=SIGKILL", truncations, 1),
        ("pwrite64", "error=ENOSPC", 20, 4),
        ("fsync,fdatasync", "error=EIO", 5, 2),
    ] {
        let (dir, trace) = (fresh_dir(), fresh_dir());
        put(dir.path(), written);
        let output = run(dir.path(), &trace.path().join("calls"), call, None);
        assert!(output.contains("\nend true"), "{output}");
        let calls = most_calls(&trace.path().join("calls"));
        assert!(calls >= at_least, "only {calls} calls of {call}");
        println!("{harm} at {calls} calls of {call}");
        // Small pages make many writes; a few hundred of each kind are enough.
        for n in (1..=calls).step_by(step * calls.div_ceil(320).max(kill::step(3))) {
            let dir = fresh_dir();
            put(dir.path(), written);
            run(dir.path(), Path::new("/dev/null"), call, Some(&format!("{harm}:when={n}")));
            check(dir.path(), n, &format!("{harm} at {call} {n}"));
        }
    }
}

/// The most calls of one thread in the output of `strace`.
fn most_calls(trace: &Path) -> usize {
    let mut calls = BTreeMap::<&str, usize>::new();
    let lines = fs::read_to_string(trace).unwrap();
    for line in lines.lines().filter(|line| line.contains('(')) {
        *calls.entry(line.split(' ').next().unwrap_or_default()).or_default() += 1;
    }
    calls.into_values().max().unwrap_or(0)
}

/// Runs the child with the n-th call harmed; gives back what it said.
fn run_harmed(dir: &Path, sweep: Sweep, n: usize) -> String {
    let harm = match sweep.harm {
        Harm::Kill => format!("signal=SIGKILL:when={n}"),
        Harm::Fail(error) | Harm::FailThenDie(error) => format!("error={error}:when={n}"),
        Harm::FailFrom(error) => format!("error={error}:when={n}+"),
    };
    let mut strace = traced(dir, sweep, Path::new("/dev/null"));
    strace.args(["-e", &format!("inject={}:{harm}", sweep.call)]);
    if matches!(sweep.harm, Harm::FailThenDie(_)) {
        strace.env(END_AT_FAILURE, "");
    }
    run(strace)
}

/// What the child said of each society last, in lines that begin so.
fn last_numbers<'a>(output: &'a str, first: &str) -> BTreeMap<&'a str, usize> {
    assert!(!output.contains("unexpected"), "{output}");
    let words = output.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    words.filter(|words| words[0] == first).map(|words| (words[1], words[2].parse().unwrap())).collect()
}

/// Opens what the child left: all that was acknowledged is there, in whole batches, and it goes on from there.
fn check(dir: &Path, output: &str, what: &str) {
    let log = LocalLog::open_with(dir, OPTIONS).unwrap_or_else(|error| panic!("{what}: {error}"));
    let (acknowledged, settled) = (last_numbers(output, "acknowledged"), last_numbers(output, "settled"));
    for name in SOCIETIES {
        let society = SocietyId::from(name);
        let found = all(&log, &society).unwrap();
        let acknowledged_count = acknowledged.get(name).copied().unwrap_or(0);
        assert!(
            found.len() >= acknowledged_count,
            "{what}: {name} has {} events, {acknowledged_count} were acknowledged",
            found.len()
        );
        if let Some(settled) = settled.get(name) {
            assert_eq!(found.len(), *settled, "{what}: {name} was settled otherwise");
        }
        let mut expected: Vec<Recorded> = Vec::new();
        while expected.len() < found.len() {
            expected.extend(batch_after(expected.len() as u64).iter().map(|recorded| Recorded::clone(recorded)));
        }
        assert_eq!(found, expected, "{what}: {name}");
        let next = batch_after(found.len() as u64);
        wait(log.append(&society, Seq(found.len() as u64), &next)).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

/// Harms the calls of a sweep in turn. Returns how many there were.
fn harm_each(start: &Files, sweep: Sweep) -> usize {
    // Which appends share a commit differs from run to run, and so does the number of calls.
    let end = count_calls(start, sweep) * 11 / 10 + 1;
    let (next, step) = (AtomicUsize::new(1), sweep.step * kill::step(3));
    let work = || {
        loop {
            let n = next.fetch_add(step, Ordering::Relaxed);
            if n > end {
                break;
            }
            let dir = fresh_dir();
            put(dir.path(), start);
            let output = run_harmed(dir.path(), sweep, n);
            check(dir.path(), &output, &format!("{sweep:?}, call {n}"));
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    end
}

/// Whether children can be stopped at their calls here. If not, says past libtest's capture that the test is skipped.
pub(crate) fn can_trace(test: &str) -> bool {
    let works = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    let works = works.is_ok_and(|output| output.status.success());
    if !works {
        writeln!(std::io::stderr(), "skipped: {test}: strace is missing or not allowed").unwrap();
    }
    works
}

/// A directory that was used and closed before.
fn used() -> Files {
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    for name in SOCIETIES {
        wait(log.append(&SocietyId::from(name), Seq(0), &batch_after(0))).unwrap();
    }
    drop(log);
    files(dir.path())
}

fn check_all(test: &str, sweeps: &[(&Files, Sweep, usize)]) {
    if !can_trace(test) {
        return;
    }
    for (start, sweep, at_least) in sweeps {
        let calls = harm_each(start, *sweep);
        println!("{:?} at {calls} calls of {}, step {}", sweep.harm, sweep.call, sweep.step);
        assert!(calls >= *at_least, "only {calls} calls of {}", sweep.call);
    }
}

#[test]
fn a_kill_at_any_write_loses_nothing_that_was_acknowledged() {
    let (empty, used) = (Files::default(), used());
    let killed = |call, file| Sweep { call, file, harm: Harm::Kill, step: 1 };
    check_all(
        "a_kill_at_any_write_loses_nothing_that_was_acknowledged",
        &[
            (&empty, killed("pwrite64", None), 150),
            (&empty, killed("fsync,fdatasync", None), 30),
            (&empty, killed("rename,renameat,renameat2", None), 1),
            (&used, killed("ftruncate", Some("polis.db")), 3),
            (&used, killed("ftruncate", Some("polis.db-wal")), 1),
        ],
    );
}

#[test]
fn a_failing_disk_loses_nothing_that_was_acknowledged() {
    let (empty, used) = (Files::default(), used());
    let fail = |call, harm, step| Sweep { call, file: None, harm, step };
    check_all(
        "a_failing_disk_loses_nothing_that_was_acknowledged",
        &[
            (&empty, fail("pwrite64", Harm::Fail("EIO"), 2), 150),
            (&used, fail("pwrite64", Harm::Fail("ENOSPC"), 2), 150),
            (&used, fail("pwrite64", Harm::FailFrom("ENOSPC"), 9), 150),
            (&empty, fail("fsync,fdatasync", Harm::Fail("EIO"), 1), 30),
            (&used, fail("fsync,fdatasync", Harm::FailFrom("EIO"), 5), 30),
            (&used, fail("ftruncate", Harm::Fail("EIO"), 1), 5),
        ],
    );
}

#[test]
fn what_the_log_says_after_a_failed_append_holds_after_a_crash() {
    let used = used();
    let fail = |call, error| Sweep { call, file: None, harm: Harm::FailThenDie(error), step: 1 };
    check_all("what_the_log_says_after_a_failed_append_holds_after_a_crash", &[(&used, fail("fsync,fdatasync", "EIO"), 30)]);
}
