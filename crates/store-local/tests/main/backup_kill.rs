//! A backup or a restore that is killed at each of its writes in turn: nothing is lost, and half of one is never taken for a whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use polis_domain::{Seq, SocietyId};
use polis_ports::{Log, MemoryTexts};
use polis_store_local::{LocalLog, LocalMemoryTexts, backup, restore};

use crate::backups::{Contents, add_artifact, contents};
use crate::kill::can_trace;
use crate::support::{batch_after, fill, fresh_dir, main_society, wait};

const DIR: &str = "POLIS_TEST_BACKUP_DIR";
const ACT: &str = "POLIS_TEST_BACKUP_ACT";

/// Every call that changes a file or a directory.
const CALLS: [&str; 6] =
    ["pwrite64", "write", "fsync,fdatasync", "rename,renameat,renameat2", "unlink,unlinkat,rmdir", "ftruncate,mkdir,mkdirat"];

/// Not a test by itself: backs up or restores in the directory that it is given.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let dir = Path::new(&dir);
    match std::env::var(ACT).unwrap().as_str() {
        "backup" => drop(backup(&dir.join("data"), &dir.join("b")).unwrap()),
        _ => drop(restore(&dir.join("b"), &dir.join("to")).unwrap()),
    }
}

fn traced(dir: &Path, act: &str, calls: &str, output: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(output).args(["-e", &format!("trace={calls}")]).env(DIR, dir).env(ACT, act);
    strace
}

fn run(mut strace: Command) {
    strace.arg(std::env::current_exe().unwrap()).args(["--exact", "backup_kill::child", "--test-threads=1"]);
    strace.output().unwrap();
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let path = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&path).unwrap();
            copy(&entry.path(), &path);
        } else {
            fs::copy(entry.path(), path).unwrap();
        }
    }
}

/// Kills at each call of each kind; `check` looks at what is left.
fn kill_everywhere(start: &Path, act: &str, at_least: usize, check: impl Fn(&Path, &str) + Sync) {
    let mut total = 0;
    for calls in CALLS {
        let (dir, trace) = (fresh_dir(), fresh_dir());
        copy(start, dir.path());
        let trace = trace.path().join("calls");
        run(traced(dir.path(), act, calls, &trace));
        let mut count = BTreeMap::<String, usize>::new();
        for line in fs::read_to_string(&trace).unwrap().lines().filter(|line| line.contains('(')) {
            *count.entry(line.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
        let end = count.into_values().max().unwrap_or(0);
        total += end;
        let next = AtomicUsize::new(1);
        let work = || {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n > end {
                    break;
                }
                let dir = fresh_dir();
                copy(start, dir.path());
                let mut strace = traced(dir.path(), act, calls, Path::new("/dev/null"));
                strace.args(["-e", &format!("inject={calls}:signal=SIGKILL:when={n}")]);
                run(strace);
                check(dir.path(), &format!("{act}, {calls} {n}"));
            }
        };
        thread::scope(|scope| {
            scope.spawn(work);
            scope.spawn(work);
        });
    }
    println!("{act}: killed at {total} calls");
    assert!(total >= at_least, "only {total} calls");
}

fn grow(data: &Path) {
    let log = LocalLog::open(data).unwrap();
    let has_some = wait(log.head(&main_society())).unwrap() > Seq(0);
    if has_some {
        let head = wait(log.head(&main_society())).unwrap();
        wait(log.append(&main_society(), head, &batch_after(head.0))).unwrap();
    } else {
        fill(&log, 8);
    }
    wait(log.append(&SocietyId::from(if has_some { "two" } else { "one" }), Seq(0), &batch_after(0))).unwrap();
    add_artifact(data, if has_some { b"later" } else { b"first" });
    let texts = LocalMemoryTexts::new(data);
    wait(texts.put(&(if has_some { "m2" } else { "m1" }).into(), "a text")).unwrap();
    if has_some {
        wait(texts.remove(vec!["m1".into()])).unwrap();
    }
}

/// What a backup holds; none if it is not a whole one.
fn restored(dir: &Path) -> Option<Contents> {
    let to = fresh_dir();
    match restore(&dir.join("b"), &to.path().join("to")) {
        Ok(_) => Some(contents(&to.path().join("to"))),
        Err(error) => {
            let is_none = matches!(error.code(), "backup_unfinished" | "not_a_backup") || !dir.join("b").exists();
            assert!(is_none, "{error}");
            None
        }
    }
}

#[test]
fn a_backup_killed_at_any_write_leaves_the_one_before_or_the_new_one() {
    if !can_trace("a_backup_killed_at_any_write_leaves_the_one_before_or_the_new_one") {
        return;
    }
    let start = fresh_dir();
    let data = start.path().join("data");
    grow(&data);
    let first = contents(&data);
    kill_everywhere(start.path(), "backup", 60, |dir, what| {
        if let Some(found) = restored(dir) {
            assert!(found == first, "{what}");
        }
        backup(&dir.join("data"), &dir.join("b")).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(restored(dir).as_ref() == Some(&first), "{what}");
        assert!(contents(&dir.join("data")) == first, "{what}: the data was touched");
    });
    backup(&data, &start.path().join("b")).unwrap();
    grow(&data);
    let second = contents(&data);
    kill_everywhere(start.path(), "backup", 60, |dir, what| {
        let found = restored(dir).unwrap_or_else(|| panic!("{what}: the backup before it is lost"));
        // Artifacts are copied ahead; one that no event names yet does no harm.
        let has_all = |of: &Contents| (&found.0, &found.1) == (&of.0, &of.1) && of.2.iter().all(|it| found.2.contains(it));
        assert!(has_all(&first) || has_all(&second), "{what}: neither the one before nor the new one");
        backup(&dir.join("data"), &dir.join("b")).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(restored(dir).as_ref() == Some(&second), "{what}");
        assert!(contents(&dir.join("data")) == second, "{what}: the data was touched");
    });
}

#[test]
fn a_restore_killed_at_any_write_leaves_nothing_or_the_whole_directory() {
    if !can_trace("a_restore_killed_at_any_write_leaves_nothing_or_the_whole_directory") {
        return;
    }
    let start = fresh_dir();
    let data = start.path().join("data");
    grow(&data);
    backup(&data, &start.path().join("b")).unwrap();
    let whole = contents(&data);
    fs::remove_dir_all(&data).unwrap();
    kill_everywhere(start.path(), "restore", 60, |dir, what| {
        let to = dir.join("to");
        if !to.exists() {
            restore(&dir.join("b"), &to).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        assert!(contents(&to) == whole, "{what}");
        let left: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name != ".to.restoring"), "{what}: {left:?}");
    });
}
