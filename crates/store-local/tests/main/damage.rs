//! A history that is not what was written: moved aside as it was found, refused until a person decides, never started upon.

use std::fs;
use std::path::Path;

use polis_domain::Seq;
use polis_ports::{Log, LogError, Snapshot, ThreadRange};
use polis_store_local::{LocalLog, Options};

use crate::support::{Files, all, batch_after, damaged, files, fill, fresh_dir, main_society, put, set_aside, wait};

/// A log that was closed well, as files, and its events.
fn closed(count: u64) -> (Files, Vec<polis_domain::Recorded>) {
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    let events = fill(&log, count);
    drop(log);
    (files(dir.path()), events)
}

#[test]
fn a_flipped_bit_in_the_wal_is_noticed() {
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    fill(&log, 20);
    let written = files(dir.path());
    let bytes = written["polis.db-wal"].len();
    for n in 0..80 {
        let at = if n < 56 { n } else { 56 + (bytes - 57) * (n - 56) / 23 };
        let mut found = written.clone();
        found["polis.db-wal"][at] ^= 1 << (n % 8);
        let dir = fresh_dir();
        put(dir.path(), &found);
        damaged(LocalLog::open(dir.path()));
        assert_eq!(files(&set_aside(dir.path())[0]), found, "byte {at}");
    }
}

/// Opens damaged files: either they are refused and set aside unchanged, or the damage touched nothing that counts.
fn check(found: &Files, events: &[polis_domain::Recorded], what: &str) -> bool {
    let dir = fresh_dir();
    put(dir.path(), found);
    match LocalLog::open(dir.path()) {
        Ok(log) => {
            assert_eq!(all(&log, &main_society()).unwrap(), events, "{what}");
            for thread in ["thread-0", "thread-1", "thread-2"] {
                let of_thread = wait(log.read_thread(&main_society(), &thread.into(), ThreadRange::ALL)).unwrap();
                let expected = events.iter().filter(|one| one.thread.as_ref().is_some_and(|name| name.as_str() == thread));
                assert!(of_thread.iter().eq(expected), "{what}: {thread}");
            }
            false
        }
        Err(LogError::Damaged(_)) => {
            assert_eq!(&files(&set_aside(dir.path())[0]), found, "{what}");
            true
        }
        Err(refused) => {
            assert_eq!(&files(dir.path()), found, "{what}: {refused}");
            true
        }
    }
}

#[test]
fn a_flipped_bit_in_the_database_is_noticed_unless_it_touches_nothing() {
    let (written, events) = closed(60);
    let bytes = written["polis.db"].len();
    let mut noticed = 0;
    for n in 0..300 {
        let at = if n < 100 { n } else { 100 + (bytes - 101) * (n - 100) / 199 };
        let mut found = written.clone();
        found["polis.db"][at] ^= 1 << (n % 8);
        noticed += usize::from(check(&found, &events, &format!("byte {at}")));
    }
    assert!(noticed > 150, "only {noticed} of 300 were noticed");
}

#[test]
fn an_erased_or_missing_piece_of_the_database_is_noticed() {
    let (written, events) = closed(60);
    let bytes = written["polis.db"].len();
    for sector in 0..bytes / 512 {
        let mut found = written.clone();
        found["polis.db"][sector * 512..][..512].fill(0);
        check(&found, &events, &format!("sector {sector}"));
    }
    for n in 0..20 {
        let mut found = written.clone();
        found["polis.db"].truncate(bytes * n / 20);
        assert!(check(&found, &events, &format!("cut to {n} twentieths")));
    }
}

#[test]
fn an_event_that_was_changed_removed_or_hidden_is_noticed() {
    let (written, events) = closed(30);
    for sql in [
        "UPDATE events SET body = CAST(replace(CAST(body AS TEXT), 'message 11', 'message 12') AS BLOB) WHERE body LIKE '%message 11%'",
        // No newer version wrote it: its checksum would fit.
        "UPDATE events SET version = version + 512 WHERE rowid = (SELECT min(rowid) + 10 FROM events)",
        "UPDATE events SET at = at + 1 WHERE rowid = (SELECT min(rowid) FROM events)",
        "UPDATE events SET thread = 2 WHERE thread = 1 AND rowid = (SELECT min(rowid) FROM events WHERE thread = 1)",
        "UPDATE threads SET name = 'thread-9' WHERE key = 1",
        "UPDATE societies SET name = 'mine'",
        "DELETE FROM threads WHERE key = 1",
        "DELETE FROM societies",
        "DELETE FROM events WHERE rowid = (SELECT max(rowid) FROM events)",
        "DELETE FROM events WHERE rowid = (SELECT min(rowid) + 9 FROM events)",
        "DELETE FROM events WHERE rowid = (SELECT min(rowid) FROM events)",
        "DELETE FROM events",
        "DROP INDEX events_by_thread",
        "INSERT INTO societies (name) VALUES ('nobody')",
        // The index is made to forget one thread.
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = sql || ' AND thread <> 1' WHERE name = 'events_by_thread';
         PRAGMA writable_schema = RESET;
         REINDEX;
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, ' AND thread <> 1', '') WHERE name = 'events_by_thread';",
    ] {
        let dir = fresh_dir();
        put(dir.path(), &written);
        let connection = rusqlite::Connection::open(dir.path().join("polis.db")).unwrap();
        connection.execute_batch(sql).unwrap();
        drop(connection);
        assert!(check(&files(dir.path()), &events, sql), "{sql}");
    }
}

#[test]
fn once_a_read_has_met_damage_nothing_more_is_added() {
    let (written, events) = closed(30);
    let dir = fresh_dir();
    put(dir.path(), &written);
    let connection = rusqlite::Connection::open(dir.path().join("polis.db")).unwrap();
    connection.execute_batch("UPDATE events SET at = at + 1 WHERE rowid = (SELECT min(rowid) FROM events)").unwrap();
    drop(connection);
    // Too large to be looked through at each opening.
    let log = LocalLog::open_with(dir.path(), Options { check_up_to_bytes: 0, ..Options::default() }).unwrap();
    let last = events.len() as u64;
    wait(log.append(&main_society(), Seq(last), &batch_after(last))).unwrap();
    assert!(matches!(all(&log, &main_society()), Err(LogError::Damaged(_))));
    let head = wait(log.head(&main_society())).unwrap();
    assert!(matches!(wait(log.append(&main_society(), head, &batch_after(head.0))), Err(LogError::Damaged(_))));
}

#[test]
fn a_damaged_history_is_refused_until_a_person_decides() {
    let (written, events) = closed(30);
    let mut found = written.clone();
    found["polis.db"][5000..9000].fill(7);
    let dir = fresh_dir();
    put(dir.path(), &found);
    let text = damaged(LocalLog::open(dir.path()));
    assert!(text.contains("delete this file") && text.contains("backup"), "{text}");
    assert_eq!(damaged(LocalLog::open(dir.path())), text, "the same words every time");
    assert_eq!(fs::read_to_string(dir.path().join("DAMAGED")).unwrap(), text);

    // A backup that was put there while the marker stands is neither opened nor touched.
    fs::write(dir.path().join("polis.db"), &written["polis.db"]).unwrap();
    assert_eq!(damaged(LocalLog::open(dir.path())), text);
    assert_eq!(fs::read(dir.path().join("polis.db")).unwrap(), written["polis.db"]);
    fs::remove_file(dir.path().join("DAMAGED")).unwrap();
    let log = LocalLog::open(dir.path()).unwrap();
    assert_eq!(all(&log, &main_society()).unwrap(), events, "the backup is the history now");
    drop(log);

    fs::write(dir.path().join("polis.db"), &found["polis.db"]).unwrap();
    damaged(LocalLog::open(dir.path()));
    fs::remove_file(dir.path().join("DAMAGED")).unwrap();
    let log = LocalLog::open(dir.path()).unwrap();
    assert_eq!(all(&log, &main_society()).unwrap(), [], "a new history begins");
    for folder in set_aside(dir.path()) {
        assert_eq!(files(&folder)["polis.db"], found["polis.db"], "nothing was thrown away");
    }
    assert_eq!(set_aside(dir.path()).len(), 2);
}

#[test]
fn moving_aside_is_finished_when_it_was_cut_short() {
    let (written, _) = closed(30);
    let mut found = written;
    found["polis.db"].truncate(9000);
    found["polis.db-wal"] = b"whatever this was".to_vec();
    let dir = fresh_dir();
    put(dir.path(), &found);
    let text = damaged(LocalLog::open(dir.path()));
    let folder = set_aside(dir.path()).pop().unwrap();
    let moving = folder.with_extension("moving");
    let order = ["polis.db-wal", "polis.db", "witness"];
    for moved in 0..=order.len() {
        // As a crash would leave it: the marker is there and only the first files have moved.
        fs::rename(&folder, &moving).unwrap();
        for file in &order[moved..] {
            fs::rename(moving.join(file), dir.path().join(file)).unwrap();
        }
        assert_eq!(damaged(LocalLog::open(dir.path())), text);
        assert_eq!(files(&folder), found, "{moved} files had moved");
        assert!(!moving.exists() && !dir.path().join("polis.db").exists());
    }
    fs::remove_file(dir.path().join("DAMAGED")).unwrap();
    for left in 1..order.len() {
        // Even if the person removes the marker in that moment, what is left behind is not taken for a history.
        let again = fresh_dir();
        let rest = order[left..].iter().map(|name| ((*name).to_owned(), found[name].clone()));
        put(again.path(), &Files(rest.collect()));
        damaged(LocalLog::open(again.path()));
    }
}

#[test]
fn damage_that_a_read_meets_is_looked_for_at_the_next_opening() {
    let (written, _) = closed(30);
    let dir = fresh_dir();
    put(dir.path(), &written);
    let connection = rusqlite::Connection::open(dir.path().join("polis.db")).unwrap();
    connection.execute("UPDATE events SET body = x'7b7d' WHERE rowid = (SELECT min(rowid) + 9 FROM events)", []).unwrap();
    drop(connection);
    let unchecked = Options { check_up_to_bytes: 0, ..Options::default() };
    let log = LocalLog::open_with(dir.path(), unchecked).unwrap();
    assert!(matches!(all(&log, &main_society()), Err(LogError::Damaged(_))));
    assert_eq!(wait(log.read(&main_society(), Seq(0), 9)).unwrap().len(), 9, "what is whole can still be read");
    drop(log);
    damaged(LocalLog::open_with(dir.path(), unchecked));
}

#[test]
fn a_damaged_or_missing_snapshot_is_no_snapshot() {
    let body_of =
        |dir: &Path| fs::read_dir(dir.join("snapshots")).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    fill(&log, 5);
    for (n, harm) in [
        |path: &Path| fs::write(path, b"something else").unwrap(),
        |path: &Path| fs::write(path, b"").unwrap(),
        |path: &Path| fs::remove_file(path).unwrap(),
    ]
    .into_iter()
    .enumerate()
    {
        let snapshot = Snapshot { seq: Seq(n as u64 + 1), version: 1, body: b"the whole state".to_vec() };
        wait(log.save_snapshot(&main_society(), snapshot.clone())).unwrap();
        assert_eq!(wait(log.load_snapshot(&main_society())).unwrap(), Some(snapshot));
        let bodies = body_of(dir.path());
        assert_eq!(bodies.len(), 1, "the older body is gone");
        harm(&bodies[0]);
        assert_eq!(wait(log.load_snapshot(&main_society())).unwrap(), None);
    }
    fs::write(dir.path().join("snapshots/left-behind"), b"by a crash").unwrap();
    drop(log);
    drop(LocalLog::open(dir.path()).unwrap());
    assert_eq!(body_of(dir.path()), Vec::<std::path::PathBuf>::new());
}
