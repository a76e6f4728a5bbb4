//! Who may open a data directory, and which ones are left alone.

use std::fs;

use polis_domain::{EVENT_VERSION, Seq};
use polis_ports::{Log, LogError, Snapshot};
use polis_store_local::{LocalLog, Options, read_note};

use crate::support::{all, batch_after, files, fill, fresh_dir, main_society, new_snapshot, wait};

#[test]
fn what_was_written_is_there_after_reopening() {
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    let mut events = fill(&log, 50);
    let snapshot = Snapshot { seq: Seq(events.len() as u64), version: 4, body: vec![1, 2, 3] };
    wait(log.save_snapshot(&main_society(), new_snapshot(&snapshot, &[]))).unwrap();
    drop(log);
    assert_eq!(fs::read(dir.path().join("polis.db-wal")).unwrap(), b"", "a clean stop leaves everything in one file");
    for _ in 0..3 {
        let log = LocalLog::open(dir.path()).unwrap();
        assert_eq!(all(&log, &main_society()).unwrap(), events);
        assert_eq!(wait(log.load_snapshot(&main_society())).unwrap(), Some(snapshot.clone()));
        let next = crate::support::batch_after(events.len() as u64);
        wait(log.append(&main_society(), Seq(events.len() as u64), &next)).unwrap();
        events.extend(next.iter().map(|recorded| polis_domain::Recorded::clone(recorded)));
    }
}

#[test]
fn a_second_opener_is_refused_and_told_who_was_first() {
    let dir = fresh_dir();
    assert_eq!(read_note(dir.path()).unwrap(), None);
    let log = LocalLog::open(dir.path()).unwrap();
    log.write_note("http://127.0.0.1:7070, process 42").unwrap();
    log.write_note("http://127.0.0.1:7070").unwrap();
    match LocalLog::open(dir.path()) {
        Err(LogError::Locked(text)) => {
            assert!(text.contains("(http://127.0.0.1:7070)") && text.contains("stop it"), "{text}");
        }
        other => panic!("{:?}", other.map(|_| "opened")),
    }
    assert_eq!(read_note(dir.path()).unwrap().as_deref(), Some("http://127.0.0.1:7070"));
    fill(&log, 5);
    drop(log);
    assert_eq!(read_note(dir.path()).unwrap(), None);
    LocalLog::open(dir.path()).unwrap();
}

/// By a person who tidies up, or by a restore under way: what is written would go nowhere, or beside what somebody else writes.
#[cfg(unix)]
#[test]
fn nothing_is_acknowledged_once_its_files_were_taken_away_or_replaced() {
    for (gone, is_replaced) in [("polis.db", false), ("polis.db", true), ("lock", false), ("lock", true)] {
        let dir = fresh_dir();
        let log = LocalLog::open(dir.path()).unwrap();
        fill(&log, 5);
        let head = wait(log.head(&main_society())).unwrap();
        let path = dir.path().join(gone);
        let copy = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        if is_replaced {
            std::fs::write(&path, copy).unwrap();
        }
        for _ in 0..2 {
            let appended = wait(log.append(&main_society(), head, &batch_after(head.0)));
            assert!(matches!(appended, Err(LogError::Conflict { .. })), "{gone} {is_replaced}: {appended:?}");
        }
        let before = files(dir.path());
        drop(log);
        assert_eq!(files(dir.path()), before, "{gone} {is_replaced}: what lies there is left alone");
    }
}

#[cfg(unix)]
#[test]
fn a_data_directory_is_private_also_one_that_was_open_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let dir = fresh_dir();
    let (deep, shared) = (dir.path().join("a/b"), dir.path().join("shared"));
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
    for data in [deep, shared] {
        LocalLog::open(&data).unwrap();
        assert_eq!(fs::metadata(data).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn what_a_newer_version_wrote_is_refused_and_left_as_it_is() {
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    fill(&log, 10);
    drop(log);
    let version = |tables: u32, events: u32| format!("PRAGMA user_version = {}", tables << 16 | events);
    let undo = version(4, EVENT_VERSION);
    for sql in [version(5, EVENT_VERSION), version(4, EVENT_VERSION + 1)] {
        for left_in_wal in [false, true] {
            let connection = rusqlite::Connection::open(dir.path().join("polis.db")).unwrap();
            connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, left_in_wal).unwrap();
            connection.execute_batch(&sql).unwrap();
            drop(connection);
            let before = files(dir.path());
            for _ in 0..2 {
                match LocalLog::open(dir.path()) {
                    Err(LogError::TooNew(text)) => assert!(text.contains("newer polis"), "{text}"),
                    other => panic!("{sql}: {:?}", other.map(|_| "opened")),
                }
                assert_eq!(files(dir.path()), before, "{sql}");
            }
            rusqlite::Connection::open(dir.path().join("polis.db")).unwrap().execute_batch(&undo).unwrap();
        }
    }
    LocalLog::open(dir.path()).unwrap();
}

#[test]
fn texts_of_memories_of_a_newer_version_are_refused_with_their_directory() {
    let dir = fresh_dir();
    drop(LocalLog::open(dir.path()).unwrap());
    let texts = rusqlite::Connection::open(dir.path().join("memory.db")).unwrap();
    texts.execute_batch("CREATE TABLE texts (id TEXT); PRAGMA user_version = 2;").unwrap();
    drop(texts);
    let before = files(dir.path());
    match LocalLog::open(dir.path()) {
        Err(LogError::TooNew(text)) => assert!(text.contains("memory.db") && text.contains("Use that polis"), "{text}"),
        other => panic!("{:?}", other.map(|_| "opened")),
    }
    assert_eq!(files(dir.path()), before);
}

#[test]
fn a_database_of_somebody_else_is_refused_and_left_as_it_is() {
    let dir = fresh_dir();
    let connection = rusqlite::Connection::open(dir.path().join("polis.db")).unwrap();
    connection.execute_batch("CREATE TABLE recipes (name TEXT)").unwrap();
    drop(connection);
    let before = files(dir.path());
    match LocalLog::open(dir.path()) {
        Err(LogError::Failed(error)) => assert!(error.to_string().contains("not created by polis"), "{error}"),
        other => panic!("{:?}", other.map(|_| "opened")),
    }
    assert_eq!(files(dir.path()), before);
}

#[test]
fn the_wal_stays_short() {
    let dir = fresh_dir();
    let options = Options { checkpoint_bytes: 100_000, ..Options::default() };
    let log = LocalLog::open_with(dir.path(), options).unwrap();
    let events = fill(&log, 1_000);
    let bytes = fs::metadata(dir.path().join("polis.db-wal")).unwrap().len();
    assert!(bytes < 300_000, "{bytes}");
    assert_eq!(all(&log, &main_society()).unwrap(), events);
}
