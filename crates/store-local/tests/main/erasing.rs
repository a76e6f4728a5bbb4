//! What was redacted can be read nowhere: neither in rows, segments, forks, snapshots and the WAL, nor in backups after their next
//! run; and everything else is as it was, also after a kill at any write.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use polis_domain::{Recorded, Seq, SocietyId, Timestamp};
use polis_ports::{Fork, Log, LogError, Snapshot};
use polis_store_local::{Inspection, LocalLog, Options, backup, restore};
use polis_testkit::conformance::event;

use crate::kill::{can_trace, harm_child};
use crate::support::{all, damaged, files, fill, fresh_dir, main_society, new_snapshot, noise, put, wait};

const DIR: &str = "POLIS_TEST_ERASING_DIR";
const ALL_OLD: Timestamp = Timestamp(u64::MAX);

/// Stands in every text that is erased.
const CANARY: &str = "Kanarienvogel-7731";

/// Every fourth event of the log has the canary, some of them in texts of many pages.
fn canaries(log: &LocalLog, count: u64) -> Vec<Seq> {
    let mut seqs = Vec::new();
    for n in 0..count {
        let head = wait(log.head(&main_society())).unwrap().0;
        let long = if n.is_multiple_of(5) { noise(n, 12_000) } else { String::new() };
        let text = |n: u64| if n.is_multiple_of(4) { format!("{CANARY} {n} {long}") } else { format!("other {n} {long}") };
        let batch: Vec<Arc<Recorded>> =
            (head + 1..=head + 3).map(|n| event(n, Some(&format!("thread-{}", n % 3)), &text(n))).collect();
        seqs.extend((head + 1..=head + 3).filter(|n| n.is_multiple_of(4)).map(Seq));
        wait(log.append(&main_society(), Seq(head), &batch)).unwrap();
    }
    seqs
}

/// What an erasure leaves of some events.
fn redacted(log: &LocalLog, seqs: &[Seq]) -> Vec<Recorded> {
    let of = |seq: &Seq| wait(log.read(&main_society(), Seq(seq.0 - 1), 1)).unwrap().remove(0);
    let without = |recorded: Recorded| Recorded { event: recorded.event.redacted(), ..recorded };
    seqs.iter().map(|seq| without(of(seq))).collect()
}

fn fork(log: &LocalLog, to: &str, at: u64) {
    let at = wait(log.whole(&main_society(), Seq(at))).unwrap();
    let first = event(at.0 + 1, None, "the fork begins");
    wait(log.fork(&Fork { from: main_society(), at, to: to.into(), aside: None, first })).unwrap();
}

fn snapshot(log: &LocalLog, society: &str) {
    let society = SocietyId::from(society);
    let seq = wait(log.head(&society)).unwrap();
    let body = format!("a state with {CANARY} {}", noise(seq.0, 9_000)).into_bytes();
    wait(log.save_snapshot(&society, new_snapshot(&Snapshot { seq, version: 1, body }, &[]))).unwrap();
}

/// All files below a directory that have the canary.
fn with_canary(dir: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(with_canary(&entry.path()));
        } else if fs::read(entry.path()).unwrap().windows(CANARY.len()).any(|part| part == CANARY.as_bytes()) {
            found.insert(entry.file_name().into_string().unwrap());
        }
    }
    found
}

fn texts(log: &LocalLog, society: &str) -> Vec<String> {
    all(log, &society.into()).unwrap().iter().map(|recorded| serde_json::to_string(recorded).unwrap()).collect()
}

/// Everything that is read of the societies, with what an erasure leaves of the events.
fn expected(log: &LocalLog, redacted: &[Recorded]) -> Vec<(SocietyId, Vec<Recorded>)> {
    let without = |recorded: Recorded| match redacted.iter().find(|other| other.seq == recorded.seq) {
        Some(other) => other.clone(),
        None => recorded,
    };
    let of = |society: &SocietyId| all(log, society).unwrap().into_iter().map(without).collect();
    wait(log.societies()).unwrap().into_iter().map(|society| (society.clone(), of(&society))).collect()
}

/// A society half of which is sealed, a fork of it, a backup; and what is to be erased.
fn begun(dir: &Path, events: u64) -> (LocalLog, Vec<Recorded>) {
    let log = LocalLog::open(dir).unwrap();
    let seqs = canaries(&log, events);
    let half = all(&log, &main_society()).unwrap()[events as usize * 3 / 2].at;
    assert!(wait(log.seal(Timestamp(half.0))).unwrap() > 20);
    fork(&log, "side", events * 3 - 10);
    let head = wait(log.head(&"side".into())).unwrap();
    wait(log.append(&"side".into(), head, &[event(head.0 + 1, Some("thread-1"), "of the fork")])).unwrap();
    let redacted = redacted(&log, &seqs[..seqs.len() - 1]);
    // The last event of a log says what is erased, and stays.
    let head = wait(log.head(&main_society())).unwrap();
    wait(log.append(&main_society(), head, &[event(head.0 + 1, None, "erased")])).unwrap();
    let last = redacted_last(&log, seqs[seqs.len() - 1]);
    (log, [redacted, vec![last]].concat())
}

fn redacted_last(log: &LocalLog, seq: Seq) -> Recorded {
    redacted(log, &[seq]).remove(0)
}

#[test]
fn what_was_redacted_is_in_no_file_and_everything_else_is_as_before() {
    let (dir, copies) = (fresh_dir(), fresh_dir());
    let (log, redacted) = begun(dir.path(), 120);
    snapshot(&log, "main");
    snapshot(&log, "side");
    drop(log);
    let file = copies.path().join("b");
    backup(dir.path(), &file).unwrap();
    let chains = |path: &Path| {
        let found = Inspection::open(path).unwrap().check_events().unwrap();
        found.into_iter().map(|society| (society.name, society.head, society.chain)).collect::<Vec<_>>()
    };
    let before = chains(dir.path());
    assert_eq!(chains(&file), before);

    let log = LocalLog::open(dir.path()).unwrap();
    assert!(texts(&log, "main").iter().any(|text| text.contains(CANARY)), "{:?}", with_canary(dir.path()));
    let expected = expected(&log, &redacted);
    let (first, second) = redacted.split_at(redacted.len() / 2);
    for part in [first, second, second] {
        wait(log.redact(&main_society(), part)).unwrap();
    }
    snapshot_without(&log);
    wait(log.forget_redacted(&main_society())).unwrap();
    assert_eq!(with_canary(dir.path()), BTreeSet::new(), "while it is open");
    for (society, expected) in &expected {
        assert_eq!(&all(&log, society).unwrap(), expected, "{society}");
        assert!(texts(&log, society.as_str()).iter().all(|text| !text.contains(CANARY)));
    }
    assert_eq!(wait(log.load_snapshot(&"side".into())).unwrap(), None, "its state may have the texts");
    wait(log.seal(ALL_OLD)).unwrap();
    wait(log.vacuum()).unwrap();
    drop(log);
    assert_eq!(with_canary(dir.path()), BTreeSet::new());
    assert_eq!(chains(dir.path()), before, "the chain is that of the originals");
    let counts = |path: &Path| {
        let found = Inspection::open(path).unwrap().check_events().unwrap();
        found.iter().map(|society| society.redacted.len()).collect::<Vec<_>>()
    };
    assert_eq!(counts(dir.path()), [redacted.len(), 0], "those that the fork shares are its parent's");

    backup(dir.path(), &file).unwrap();
    assert_eq!(with_canary(copies.path()), BTreeSet::new(), "the backup has them no more");
    assert_eq!((chains(&file), counts(&file)), (before.clone(), vec![redacted.len(), 0]));
    let again = copies.path().join("again");
    restore(&file, &again).unwrap();
    assert_eq!((chains(&again), counts(&again)), (before, vec![redacted.len(), 0]));
    for options in [Options::default(), Options { check_up_to_bytes: 0, ..Options::default() }] {
        let log = LocalLog::open_with(&again, options).unwrap();
        wait(log.checked()).unwrap();
        for (society, expected) in &expected {
            assert_eq!(&all(&log, society).unwrap(), expected, "{society}");
        }
    }
}

/// A snapshot of the society itself, as an erasure leaves it.
fn snapshot_without(log: &LocalLog) {
    let seq = wait(log.head(&main_society())).unwrap();
    let snapshot = Snapshot { seq, version: 1, body: b"a state without it".to_vec() };
    wait(log.save_snapshot(&main_society(), new_snapshot(&snapshot, &[]))).unwrap();
}

/// A database that was written without `secure_delete` has old texts in free room; it is rewritten once.
#[test]
fn what_an_older_version_left_in_free_room_is_gone_as_well() {
    let dir = fresh_dir();
    let (log, redacted) = begun(dir.path(), 120);
    drop(log);
    let connection = rusqlite::Connection::open(dir.path().join("polis.db")).unwrap();
    let text = format!("{CANARY} {}", noise(1, 30_000));
    connection
        .execute_batch(&format!(
            "PRAGMA secure_delete = OFF; PRAGMA application_id = 0; CREATE TABLE t (x); INSERT INTO t VALUES ('{}'); DROP TABLE t;",
            text.replace('\'', "x")
        ))
        .unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)).unwrap();
    drop(connection);
    assert!(with_canary(dir.path()).contains("polis.db"));
    let log = LocalLog::open(dir.path()).unwrap();
    wait(log.redact(&main_society(), &redacted)).unwrap();
    wait(log.forget_redacted(&main_society())).unwrap();
    assert_eq!(with_canary(dir.path()), BTreeSet::new());
}

#[test]
fn a_redaction_that_is_no_longer_what_was_written_is_damage() {
    let dir = fresh_dir();
    let (log, redacted) = begun(dir.path(), 60);
    wait(log.redact(&main_society(), &redacted)).unwrap();
    drop(log);
    let written = files(dir.path());
    let id = format!("(1 << 40) + {}", redacted[redacted.len() - 1].seq);
    for sql in [
        format!("UPDATE events SET version = version & ~131072 WHERE id = {id}"),
        format!("UPDATE events SET body = substr(body, 37) WHERE id = {id}"),
        format!("UPDATE events SET body = zeroblob(20) WHERE id = {id}"),
        format!("UPDATE events SET body = zeroblob(36) || substr(body, 37) WHERE id = {id}"),
    ] {
        put(dir.path(), &written);
        rusqlite::Connection::open(dir.path().join("polis.db")).unwrap().execute_batch(&sql).unwrap();
        let found = fresh_dir();
        put(found.path(), &files(dir.path()));
        damaged(LocalLog::open(found.path()));
    }
    put(dir.path(), &written);
    rusqlite::Connection::open(dir.path().join("polis.db")).unwrap().execute_batch("DELETE FROM redacted").unwrap();
    let unlisted = Inspection::open(dir.path()).unwrap().check_events();
    assert!(unlisted.is_err_and(|error| error.to_string().contains("no list has that")));
}

#[test]
fn an_event_that_is_not_there_is_not_redacted() {
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    fill(&log, 40);
    let beyond = Recorded::clone(&event(4_000, Some("thread-1"), "beyond"));
    assert!(matches!(wait(log.redact(&main_society(), std::slice::from_ref(&beyond))), Err(LogError::Damaged(_))));
    assert!(matches!(wait(log.redact(&"nobody".into(), &[beyond])), Err(LogError::Failed(_))));
    drop(log);
    LocalLog::open(dir.path()).unwrap();
}

/// What an erasure does in the store, from wherever it was interrupted.
fn erase(log: &LocalLog) -> Result<(), LogError> {
    let seqs: Vec<_> = all(log, &main_society())?.iter().filter(|recorded| has_canary(recorded)).map(|it| it.seq).collect();
    for part in redacted(log, &seqs).chunks(20) {
        wait(log.redact(&main_society(), part))?;
    }
    wait(log.forget_redacted(&main_society()))
}

fn has_canary(recorded: &Recorded) -> bool {
    serde_json::to_string(recorded).unwrap().contains(CANARY)
}

/// Not a test by itself: erases in the directory that it is given.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let Ok(log) = LocalLog::open(Path::new(&dir)) else { return };
    let erased = erase(&log);
    drop(log);
    println!("\nend {}", erased.is_ok());
}

#[test]
fn a_kill_at_any_write_of_an_erasure_loses_nothing_and_the_next_one_ends_it() {
    if !can_trace("a_kill_at_any_write_of_an_erasure_loses_nothing_and_the_next_one_ends_it") {
        return;
    }
    let (dir, copies) = (fresh_dir(), fresh_dir());
    let (log, redacted) = begun(dir.path(), 40);
    let expected = expected(&log, &redacted);
    drop(log);
    let written = files(dir.path());
    let file = copies.path().join("b");
    backup(dir.path(), &file).unwrap();
    let backed_up = fs::read(&file).unwrap();
    harm_child("erasing::child", DIR, &written, 1, |dir, n, what| {
        check_interrupted(dir, &expected, &redacted, what);
        if n % 7 == 0 {
            // A backup that was made before is brought up to it.
            let file = copies.path().join(format!("b-{n}"));
            fs::write(&file, &backed_up).unwrap();
            backup(dir, &file).unwrap();
            assert!(!fs::read(&file).unwrap().windows(CANARY.len()).any(|part| part == CANARY.as_bytes()));
            fs::remove_file(&file).unwrap();
        }
    });
}

/// Each event is whole or redacted, everything else is as before, and what is left to do is done now.
fn check_interrupted(dir: &Path, expected: &[(SocietyId, Vec<Recorded>)], redacted: &[Recorded], what: &str) {
    let log = LocalLog::open(dir).unwrap_or_else(|error| panic!("{what}: {error}"));
    for (society, expected) in expected {
        let found = all(&log, society).unwrap();
        assert_eq!(found.len(), expected.len(), "{what}: {society}");
        for (found, expected) in found.iter().zip(expected) {
            let may_be_whole = redacted.iter().any(|other| other.seq == found.seq) && found.event.redacted() == expected.event;
            assert!(found == expected || may_be_whole, "{what}: {society} {}", found.seq);
        }
    }
    erase(&log).unwrap_or_else(|error| panic!("{what}: {error}"));
    for (society, expected) in expected {
        assert_eq!(&all(&log, society).unwrap(), expected, "{what}: {society}");
    }
    drop(log);
    assert_eq!(with_canary(dir), BTreeSet::new(), "{what}");
    Inspection::open(dir).unwrap().check_events().unwrap_or_else(|error| panic!("{what}: {error}"));
}

/// Backups of version 2 have other hash chains; they are read, restored and continued.
#[test]
fn a_backup_of_the_version_before_is_read_and_continued() {
    let copies = fresh_dir();
    let file = copies.path().join("b");
    fs::write(&file, zstd::decode_all(&include_bytes!("version_2.backup.zst")[..]).unwrap()).unwrap();
    let old = Inspection::open(&file).unwrap().check_events().unwrap();
    let again = copies.path().join("again");
    assert_eq!(restore(&file, &again).unwrap(), old);
    let log = LocalLog::open(&again).unwrap();
    let head = wait(log.head(&main_society())).unwrap();
    wait(log.append(&main_society(), head, &[event(head.0 + 1, Some("thread-1"), "more")])).unwrap();
    drop(log);
    backup(&again, &file).unwrap();
    let found = |path: &Path| Inspection::open(path).unwrap().check_events().unwrap();
    assert_eq!(found(&file), found(&again));
}
