//! Forks on the disk: they outlive a restart, tables of before know nothing of them, and a lost parent is noticed.

use polis_domain::{Recorded, Seq, SocietyId};
use polis_ports::{Fork, Log, LogError};
use polis_store_local::LocalLog;
use polis_testkit::conformance::event;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::support::{all, fill, fresh_dir, main_society, wait};

type SocietyLogs = Vec<(SocietyId, Vec<Recorded>)>;

/// `main` was rewound to event 6 and is `main-1` now; `other` is a fork of the new `main`. All have gone on since.
fn rewound() -> (TempDir, SocietyLogs) {
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    fill(&log, 12);
    let (main, old, other) = (main_society(), SocietyId::from("main-1"), SocietyId::from("other"));
    let at = wait(log.whole(&main, Seq(6))).unwrap();
    let first = event(at.0 + 1, None, "");
    wait(log.fork(&Fork { from: main.clone(), at, to: main.clone(), aside: Some(old.clone()), first })).unwrap();
    let first = event(at.0 + 2, Some("thread-1"), "another");
    wait(log.fork(&Fork { from: main.clone(), at: at.next(), to: other.clone(), aside: None, first })).unwrap();
    for society in [&main, &old, &other] {
        let head = wait(log.head(society)).unwrap();
        wait(log.append(society, head, &[event(head.0 + 1, Some("thread-1"), society.as_str())])).unwrap();
    }
    let logs = [main, old, other].map(|society| (society.clone(), all(&log, &society).unwrap()));
    (dir, logs.into())
}

#[test]
fn forks_and_names_that_changed_hands_are_there_after_a_restart() {
    let (dir, logs) = rewound();
    // Small as it is, all of it is checked at each opening.
    for _ in 0..2 {
        let log = LocalLog::open(dir.path()).unwrap();
        for (society, events) in &logs {
            assert_eq!(&all(&log, society).unwrap(), events, "{society}");
        }
    }
    let log = LocalLog::open(dir.path()).unwrap();
    for (society, events) in &logs {
        let head = Seq(events.len() as u64);
        wait(log.append(society, head, &[event(head.0 + 1, None, "")])).unwrap();
    }
    drop(log);
    LocalLog::open(dir.path()).unwrap();
}

#[test]
fn a_fork_whose_past_is_gone_or_another_is_noticed() {
    for sql in [
        "UPDATE societies SET parent = NULL WHERE name = 'main'",
        "UPDATE societies SET parent = 9 WHERE name = 'main'",
        "UPDATE societies SET parent = key WHERE name = 'main'",
        "UPDATE societies SET at = at - 1 WHERE name = 'other'",
        "UPDATE societies SET at = at + 1 WHERE name = 'other'",
        "UPDATE societies SET seal = NULL WHERE name = 'main-1'",
        "DELETE FROM events WHERE id >> 40 = 1 AND id & 0xffffffffff > 3",
    ] {
        let (dir, _) = rewound();
        Connection::open(dir.path().join("polis.db")).unwrap().execute_batch(sql).unwrap();
        let opened = LocalLog::open(dir.path());
        assert!(matches!(opened, Err(LogError::Damaged(_))), "{sql}: {:?}", opened.map(|_| "opened"));
    }
}

#[test]
fn tables_of_before_are_brought_up_to_date() {
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    let events = fill(&log, 10);
    drop(log);
    let connection = Connection::open(dir.path().join("polis.db")).unwrap();
    let steps = ["seal", "parent", "at"].map(|column| format!("ALTER TABLE societies DROP COLUMN {column};"));
    let segments = "DROP TABLE segments; DROP TABLE segment_threads; DROP TABLE redacted;";
    connection.execute_batch(&format!("{} {segments} PRAGMA user_version = 65537;", steps.concat())).unwrap();
    drop(connection);
    for _ in 0..2 {
        let log = LocalLog::open(dir.path()).unwrap();
        assert_eq!(all(&log, &main_society()).unwrap(), events);
    }
    let log = LocalLog::open(dir.path()).unwrap();
    let (at, to) = (Seq(events.len() as u64), SocietyId::from("fork"));
    wait(log.fork(&Fork { from: main_society(), at, to, aside: None, first: event(at.0 + 1, None, "") })).unwrap();
}

/// A fork is written in one transaction, however much it shares.
#[test]
fn a_fork_takes_no_room_for_what_it_shares() {
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    let at = Seq(fill(&log, 1_000).len() as u64);
    for n in 0..100 {
        let to = SocietyId::from(format!("fork-{n}"));
        wait(log.fork(&Fork { from: main_society(), at, to, aside: None, first: event(at.0 + 1, None, "") })).unwrap();
    }
    drop(log);
    let connection = Connection::open(dir.path().join("polis.db")).unwrap();
    let rows: i64 = connection.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, at.0 as i64 + 100);
}
