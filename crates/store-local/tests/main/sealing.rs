//! Events that were sealed into segments are read, forked, checked and backed up like the rows that they were.

use std::fs;
use std::path::Path;

use polis_domain::{Recorded, Seq, SocietyId, ThreadId, Timestamp};
use polis_ports::{Fork, Log, LogError, ThreadListing, ThreadRange};
use polis_store_local::{Inspection, LocalLog, Options, backup, restore};
use polis_testkit::conformance::event;

use crate::kill::{can_trace, harm_child};
use crate::support::{Files, all, batch_after, damaged, files, fill, fresh_dir, main_society, put, wait};

const DIR: &str = "POLIS_TEST_SEALING_DIR";
const ALL_OLD: Timestamp = Timestamp(u64::MAX);

/// Opened like a large database, which is not looked through before it is used.
const LARGE: Options = Options { checkpoint_bytes: 64 * 1024, check_up_to_bytes: 0 };

/// Everything that the port can be asked for.
#[derive(Debug, PartialEq)]
struct Seen {
    log: Vec<Recorded>,
    parts: Vec<Vec<Recorded>>,
    threads: Vec<ThreadId>,
    whole: Vec<Seq>,
}

fn seen(log: &LocalLog, society: &SocietyId) -> Seen {
    let head = wait(log.head(society)).unwrap().0;
    let read = |after, limit| wait(log.read(society, Seq(after), limit)).unwrap();
    let mut parts: Vec<_> = (0..head + 2).step_by(67).map(|after| read(after, 50)).collect();
    for thread in ["thread-0", "thread-1", "thread-2", "thread-9"] {
        let ranges = [
            ThreadRange::ALL,
            ThreadRange { oldest: 7, ..ThreadRange::ALL },
            ThreadRange { newest: 7, ..ThreadRange::ALL },
            ThreadRange { newest: 300, ..ThreadRange::ALL },
            ThreadRange { after: Seq(90), through: Seq(500), ..ThreadRange::ALL },
            ThreadRange { after: Seq(90), through: Seq(500), oldest: 200, newest: 9 },
            ThreadRange { through: Seq(head - 3), newest: 5, ..ThreadRange::ALL },
        ];
        parts.extend(ranges.map(|range| wait(log.read_thread(society, &thread.into(), range)).unwrap()));
    }
    let listing = ThreadListing { prefix: "thread".to_owned(), before: None, limit: 10 };
    Seen {
        log: all(log, society).unwrap(),
        parts,
        threads: wait(log.threads(society, &listing)).unwrap(),
        whole: (0..head).step_by(41).map(|through| wait(log.whole(society, Seq(through))).unwrap()).collect(),
    }
}

/// A closed directory with a society, a fork of it, and a second society; and what is read of each.
fn closed(events: u64) -> (Files, Vec<(SocietyId, Seen)>) {
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    fill(&log, events);
    fork(&log, "side", events / 2);
    let side = SocietyId::from("side");
    for n in 0..60 {
        let head = wait(log.head(&side)).unwrap();
        wait(log.append(&side, head, &[event(head.0 + 1, Some("thread-1"), &format!("of the fork, {n}"))])).unwrap();
    }
    let seen = ["main", "side"].map(|name| (name.into(), seen(&log, &name.into()))).into();
    drop(log);
    (files(dir.path()), seen)
}

fn fork(log: &LocalLog, to: &str, at: u64) {
    let at = wait(log.whole(&main_society(), Seq(at))).unwrap();
    let first = event(at.0 + 1, None, "the fork begins");
    wait(log.fork(&Fork { from: main_society(), at, to: to.into(), aside: None, first })).unwrap();
}

fn check(log: &LocalLog, expected: &[(SocietyId, Seen)], what: &str) {
    for (society, expected) in expected {
        assert_eq!(&seen(log, society), expected, "{what}: {society}");
    }
}

#[test]
fn sealed_events_are_read_as_before_and_the_log_goes_on() {
    let (written, expected) = closed(700);
    let dir = fresh_dir();
    put(dir.path(), &written);
    let log = LocalLog::open(dir.path()).unwrap();
    let some = Timestamp(expected[0].1.log[400].at.0);
    assert!(wait(log.seal(some)).unwrap() > 300, "the first half");
    check(&log, &expected, "half");
    let rest = wait(log.seal(ALL_OLD)).unwrap();
    assert!(rest > 250 && wait(log.seal(ALL_OLD)).unwrap() == 0, "{rest}");
    check(&log, &expected, "all");
    fork(&log, "later", 200);
    assert_eq!(wait(log.read(&"later".into(), Seq(0), 150)).unwrap(), expected[0].1.log[..150]);
    drop(log);
    // First with the checksums that the writer kept up, then with those of a full check.
    for options in [LARGE, Options::default(), LARGE] {
        let log = LocalLog::open_with(dir.path(), options).unwrap();
        wait(log.checked()).unwrap();
        check(&log, &expected, "opened again");
    }
    let log = LocalLog::open(dir.path()).unwrap();
    let head = wait(log.head(&main_society())).unwrap();
    wait(log.append(&main_society(), head, &batch_after(head.0))).unwrap();
    assert!(all(&log, &main_society()).unwrap().len() as u64 > head.0);
}

#[test]
fn a_vacuum_gives_back_what_sealing_freed() {
    let (written, expected) = closed(700);
    let dir = fresh_dir();
    put(dir.path(), &written);
    let log = LocalLog::open(dir.path()).unwrap();
    wait(log.seal(ALL_OLD)).unwrap();
    let given = wait(log.vacuum()).unwrap();
    assert_eq!(wait(log.vacuum()).unwrap(), 0);
    check(&log, &expected, "after the vacuum");
    drop(log);
    let (before, after) = (written["polis.db"].len() as u64, fs::metadata(dir.path().join("polis.db")).unwrap().len());
    assert!(given > 0 && after < before, "{before} bytes became {after}, {given} were given back");
}

#[test]
fn a_sealed_directory_is_backed_up_verified_and_restored() {
    let (written, expected) = closed(700);
    let dir = fresh_dir();
    let (data, file, to) = (dir.path().join("data"), dir.path().join("b"), dir.path().join("to"));
    fs::create_dir(&data).unwrap();
    put(&data, &written);
    let before = Inspection::open(&data).unwrap().check_events().unwrap();
    backup(&data, &file).unwrap();
    let log = LocalLog::open(&data).unwrap();
    wait(log.seal(ALL_OLD)).unwrap();
    let head = wait(log.head(&main_society())).unwrap();
    assert_eq!(Inspection::open(&data).unwrap().check_events().unwrap(), before, "the hash chains are the same");
    wait(log.append(&main_society(), head, &[event(head.0 + 1, None, "one more")])).unwrap();
    drop(log);
    assert_eq!(backup(&data, &file).unwrap().events, 1, "what was sealed is in the backup already");
    fs::remove_file(&file).unwrap();
    backup(&data, &file).unwrap();
    restore(&file, &to).unwrap();
    let log = LocalLog::open(&to).unwrap();
    assert_eq!(all(&log, &main_society()).unwrap()[..700], expected[0].1.log[..700]);
    check(&log, &expected[1..], "restored");
}

#[test]
fn damage_of_a_segment_is_noticed() {
    let (written, expected) = closed(700);
    let dir = fresh_dir();
    put(dir.path(), &written);
    let log = LocalLog::open(dir.path()).unwrap();
    wait(log.seal(ALL_OLD)).unwrap();
    drop(log);
    let sealed = files(dir.path());
    for sql in [
        "DELETE FROM segments WHERE first = (SELECT min(first) FROM segments)",
        "DELETE FROM segments",
        "UPDATE segments SET last = last - 1 WHERE first = (SELECT min(first) FROM segments)",
        "UPDATE segments SET body = (SELECT body FROM segments ORDER BY first DESC LIMIT 1) WHERE first = (SELECT min(first) FROM segments)",
        "UPDATE segments SET body = substr(body, 1, length(body) - 9)",
        "DELETE FROM segment_threads WHERE thread = 1",
        "UPDATE segment_threads SET first = first + 1 WHERE thread = 1",
        "DELETE FROM events WHERE id >> 40 = 1",
    ] {
        put(dir.path(), &sealed);
        rusqlite::Connection::open(dir.path().join("polis.db")).unwrap().execute_batch(sql).unwrap();
        let changed = files(dir.path());
        // A large database that was closed well is checked in the background.
        let found = fresh_dir();
        put(found.path(), &changed);
        match LocalLog::open_with(found.path(), LARGE) {
            Ok(log) => assert!(matches!(wait(log.checked()), Err(LogError::Damaged(_))), "{sql}"),
            Err(error) => assert!(matches!(error, LogError::Damaged(_)), "{sql}: {error}"),
        }
        let found = fresh_dir();
        put(found.path(), &changed);
        damaged(LocalLog::open(found.path()));
    }
    let bytes = sealed["polis.db"].len();
    let mut noticed = 0;
    for n in 0..200 {
        let mut changed = sealed.clone();
        changed["polis.db"][4_096 + (bytes - 4_097) * n / 199] ^= 1 << (n % 8);
        let found = fresh_dir();
        put(found.path(), &changed);
        match LocalLog::open(found.path()) {
            Ok(log) => check(&log, &expected, &format!("flip {n}")),
            Err(_) => noticed += 1,
        }
    }
    assert!(noticed > 60, "only {noticed} of 200 were noticed");
}

/// Not a test by itself: seals and gives pages back in the directory that it is given.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let Ok(log) = LocalLog::open_with(Path::new(&dir), LARGE) else { return };
    let sealed = wait(log.seal(ALL_OLD)).and_then(|_| wait(log.vacuum()));
    drop(log);
    println!("\nend {}", sealed.is_ok());
}

#[test]
fn a_kill_at_any_write_while_events_are_sealed_and_pages_given_back_loses_nothing() {
    if !can_trace("a_kill_at_any_write_while_events_are_sealed_and_pages_given_back_loses_nothing") {
        return;
    }
    let (written, expected) = closed(150);
    harm_child("sealing::child", DIR, &written, 2, |dir, _, what| {
        let log = LocalLog::open(dir).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (society, expected) in &expected {
            assert!(all(&log, society).unwrap() == expected.log, "{what}: {society}");
        }
        wait(log.seal(ALL_OLD)).and_then(|_| wait(log.vacuum())).unwrap_or_else(|error| panic!("{what}: {error}"));
        check(&log, &expected, what);
    });
}
