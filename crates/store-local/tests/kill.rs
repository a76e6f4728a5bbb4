//! A process that is killed, or whose disk fails it, at each of its writes in turn: what was acknowledged is there.
//!
//! `strace` stops a child at the n-th call of a kind, for every n. The child is this test binary, running [`child`] alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use polis_domain::{Recorded, Seq, SocietyId};
use polis_ports::{Log, LogError};
use polis_store_local::{LocalLog, Options};

use crate::support::{Files, all, batch_after, files, put, wait};

const DIR: &str = "POLIS_TEST_CHILD_DIR";
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
            // Unknown: whatever the log says now holds.
            if let Ok(head) = log.head(&society).await {
                println!("\nacknowledged {name} {}", head.0);
            }
        }
        Err(other) => println!("\nunexpected {other:?}"),
    }
}

/// Where the child is stopped.
#[derive(Debug, Clone, Copy)]
struct Sweep {
    call: &'static str,
    /// Only calls on this file, if not all.
    file: Option<&'static str>,
    /// What happens at the call.
    what: &'static str,
}

const fn on(call: &'static str, file: Option<&'static str>, what: &'static str) -> Sweep {
    Sweep { call, file, what }
}

/// Runs the child with the n-th call harmed; gives back what it said.
fn run_child(dir: &Path, sweep: Sweep, n: usize) -> String {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={}", sweep.call)]);
    strace.args(["-e", &format!("inject={}:{}:when={n}", sweep.call, sweep.what)]);
    if let Some(file) = sweep.file {
        strace.arg("-P").arg(dir.join(file));
    }
    strace.arg(std::env::current_exe().unwrap()).args(["--exact", "kill::child", "--nocapture"]).env(DIR, dir);
    String::from_utf8(strace.output().unwrap().stdout).unwrap()
}

/// What the child said of each society last.
fn acknowledged(said: &str) -> BTreeMap<&str, usize> {
    assert!(!said.contains("unexpected"), "{said}");
    let words = said.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    words.filter(|words| words[0] == "acknowledged").map(|words| (words[1], words[2].parse().unwrap())).collect()
}

/// Opens what the child left: all that was acknowledged is there, in whole batches, and it goes on from there.
fn check(dir: &Path, said: &str, what: &str) {
    let log = LocalLog::open_with(dir, OPTIONS).unwrap_or_else(|error| panic!("{what}: {error}"));
    let acknowledged = acknowledged(said);
    for name in SOCIETIES {
        let society = SocietyId::from(name);
        let found = all(&log, &society).unwrap();
        let told = acknowledged.get(name).copied().unwrap_or(0);
        assert!(found.len() >= told, "{what}: {name} has {} events, {told} were acknowledged", found.len());
        let mut expected: Vec<Recorded> = Vec::new();
        while expected.len() < found.len() {
            expected.extend(batch_after(expected.len() as u64).iter().map(|recorded| Recorded::clone(recorded)));
        }
        assert_eq!(found, expected, "{what}: {name}");
        let next = batch_after(found.len() as u64);
        wait(log.append(&society, Seq(found.len() as u64), &next)).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

/// Harms every call of a sweep in turn, until a child is not harmed any more. Returns how many there were.
fn sweep(start: &Files, sweep: Sweep) -> usize {
    let next = AtomicUsize::new(1);
    let end = AtomicUsize::new(usize::MAX);
    let work = || {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= end.load(Ordering::Relaxed) {
                break;
            }
            let dir = tempfile::tempdir().unwrap();
            put(dir.path(), start);
            let said = run_child(dir.path(), sweep, n);
            check(dir.path(), &said, &format!("{sweep:?}, call {n}"));
            if is_unharmed(&said) {
                end.fetch_min(n, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    end.into_inner() - 1
}

/// An undisturbed child tells of every society in every round.
fn is_unharmed(said: &str) -> bool {
    said.contains("\nend") && said.matches("\nacknowledged").count() == ROUNDS * SOCIETIES.len()
}

/// Whether children can be stopped at their calls here; says so if not.
fn can_trace() -> bool {
    let works = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    let works = works.is_ok_and(|output| output.status.success());
    if !works {
        println!("skipped: kills and failing disks at every write (strace is missing or not allowed)");
    }
    works
}

/// A directory that was used and closed before.
fn used() -> Files {
    let dir = tempfile::tempdir().unwrap();
    let log = LocalLog::open(dir.path()).unwrap();
    for name in SOCIETIES {
        wait(log.append(&SocietyId::from(name), Seq(0), &batch_after(0))).unwrap();
    }
    drop(log);
    files(dir.path())
}

#[test]
fn a_kill_at_any_write_loses_nothing_that_was_acknowledged() {
    if !can_trace() {
        return;
    }
    let kill = "signal=SIGKILL";
    let sweeps = [
        (Files::default(), on("pwrite64", None, kill), 100),
        (Files::default(), on("fsync,fdatasync", None, kill), 20),
        (Files::default(), on("unlink", None, kill), 1),
        (used(), on("ftruncate", Some("polis.db-wal"), kill), 1),
    ];
    for (start, one, at_least) in sweeps {
        let points = sweep(&start, one);
        println!("killed at {points} calls of {}", one.call);
        assert!(points >= at_least, "only {points} calls of {}", one.call);
    }
}
