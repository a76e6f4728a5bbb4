//! A history that is not what was written: moved aside as it was found, refused until a person decides, never started upon.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use polis_domain::{IdleKey, Seq};
use polis_ports::{IdleList, Log, LogError, Snapshot, StoredEntry, ThreadRange};
use polis_store_local::{LocalLog, Options};
use polis_testkit::conformance::event;

use crate::support::{
    Files, all, batch_after, damaged, files, fill, fresh_dir, main_society, new_snapshot, noise, put, set_aside, wait,
};

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
fn an_erased_or_missing_chunk_of_the_database_is_noticed() {
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
        "UPDATE events SET body = (SELECT body FROM events WHERE id & 0xffffffffff = 12) WHERE id & 0xffffffffff = 11",
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
    assert_eq!(wait(log.head(&main_society())).unwrap(), Seq(events.len() as u64), "it opens");
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
fn a_damaged_snapshot_is_no_snapshot_and_a_lost_entry_is_noticed() {
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    let names: Vec<String> = (0..40).map(|n| format!("thread-{n}")).collect();
    let events: Vec<_> = (1..=40).map(|seq| event(seq, Some(&names[seq as usize - 1]), "text")).collect();
    wait(log.append(&main_society(), Seq(0), &events)).unwrap();
    let entry = |name: &String| StoredEntry {
        name: name.as_str().into(),
        message: Some(("thread-0".into(), 1)),
        person: Some("ann".into()),
        list: Some(IdleList::Thread),
        body: format!("the state of {name}").repeat(9).into_bytes(),
    };
    let entries: Vec<_> = names.iter().map(entry).collect();
    let snapshot = Snapshot { seq: Seq(40), version: 1, body: b"the whole state".to_vec() };
    wait(log.save_snapshot(&main_society(), new_snapshot(&snapshot, &entries))).unwrap();
    drop(log);
    let file = dir.path().join("snapshots/snapshots.db");
    let sound = fs::read(&file).unwrap();
    assert!(!dir.path().join("snapshots/snapshots.db-wal").exists(), "a clean stop leaves everything in one file");
    let (mut lost, mut kept) = (0, 0);
    for at in (0..sound.len()).step_by(61) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&file, &bytes).unwrap();
        let log = LocalLog::open(dir.path()).unwrap();
        let loaded = wait(log.load_snapshot(&main_society())).unwrap();
        assert!(loaded.is_none() || loaded.as_ref() == Some(&snapshot), "byte {at}: {loaded:?}");
        for (name, entry) in names.iter().zip(&entries).filter(|_| loaded.is_some()) {
            match wait(log.idle_entries(&main_society(), Seq(40), &[IdleKey::Name(name.as_str().into())])) {
                Ok(found) => assert_eq!(found, std::slice::from_ref(entry), "byte {at}"),
                Err(_) => {
                    assert_eq!(wait(log.load_snapshot(&main_society())).unwrap(), None, "byte {at}: all of it is given up");
                    lost += 1;
                    break;
                }
            }
        }
        kept += usize::from(loaded.is_some());
        assert_eq!(all(&log, &main_society()).unwrap().len(), 40, "byte {at}: the log is whole");
        drop(log);
        for name in ["snapshots/snapshots.db-wal", "snapshots/snapshots.db-shm"] {
            let _ = fs::remove_file(dir.path().join(name));
        }
    }
    assert!(lost > 20 && kept > lost, "the damage hit entries ({lost}) and was survived ({kept})");
}

#[test]
fn a_snapshot_of_another_history_is_not_used() {
    let (dir, other) = (fresh_dir(), fresh_dir());
    let snapshot = Snapshot { seq: Seq(1), version: 1, body: b"the whole state".to_vec() };
    for (dir, text) in [(&dir, "ours"), (&other, "theirs")] {
        let log = LocalLog::open(dir.path()).unwrap();
        wait(log.append(&main_society(), Seq(0), &[event(1, Some("root"), text)])).unwrap();
        wait(log.save_snapshot(&main_society(), new_snapshot(&snapshot, &[]))).unwrap();
        assert_eq!(wait(log.load_snapshot(&main_society())).unwrap(), Some(snapshot.clone()));
    }
    fs::copy(other.path().join("snapshots/snapshots.db"), dir.path().join("snapshots/snapshots.db")).unwrap();
    fs::write(dir.path().join("snapshots/0123abcd-7-0123abcd"), b"of an older version").unwrap();
    let log = LocalLog::open(dir.path()).unwrap();
    assert_eq!(wait(log.load_snapshot(&main_society())).unwrap(), None);
    assert!(!dir.path().join("snapshots/0123abcd-7-0123abcd").exists());
}

#[test]
fn a_link_in_place_of_the_snapshots_is_not_followed() {
    let (dir, target) = (fresh_dir(), fresh_dir());
    let log = LocalLog::open(dir.path()).unwrap();
    fill(&log, 1);
    fs::write(target.path().join("snapshots.db"), b"a stranger's").unwrap();
    std::os::unix::fs::symlink(target.path(), dir.path().join("snapshots")).unwrap();
    let snapshot = Snapshot { seq: Seq(1), version: 1, body: b"the whole state".to_vec() };
    assert!(wait(log.save_snapshot(&main_society(), new_snapshot(&snapshot, &[]))).is_err());
    assert_eq!(wait(log.load_snapshot(&main_society())).unwrap(), None);
    fs::remove_file(dir.path().join("snapshots")).unwrap();
    fs::create_dir(dir.path().join("snapshots")).unwrap();
    std::os::unix::fs::symlink(target.path().join("snapshots.db"), dir.path().join("snapshots/snapshots.db")).unwrap();
    wait(log.save_snapshot(&main_society(), new_snapshot(&snapshot, &[]))).unwrap();
    assert_eq!(wait(log.load_snapshot(&main_society())).unwrap(), Some(snapshot));
    assert_eq!(fs::read(target.path().join("snapshots.db")).unwrap(), b"a stranger's");
}

/// What a large database is to the log: too large to be looked through at each opening.
const LARGE: Options = Options { checkpoint_bytes: 8 * 1024 * 1024, check_up_to_bytes: 0 };

/// Reads everything that can be asked for: it is as it was written or refused as damaged. Gives whether the damage was
/// noticed, by a read, at the opening or in the background.
fn check_large(dir: &Path, events: &[polis_domain::Recorded], options: Options, what: &str) -> bool {
    let log = match LocalLog::open_with(dir, options) {
        Ok(log) => log,
        // Damaged, or by a change of its head the file of a newer version or of another program.
        Err(_) => return true,
    };
    let last = Seq(events.len() as u64);
    let mut noticed = false;
    let mut same = |is_same: Result<bool, LogError>, read: &str| match is_same {
        Ok(is_same) => assert!(is_same, "{what}: {read} gives something else"),
        Err(LogError::Damaged(_)) => noticed = true,
        Err(other) => panic!("{what}: {read}: {other}"),
    };
    let society = main_society();
    for thread in ["thread-0", "thread-1", "thread-2"] {
        let expected = events.iter().filter(|one| one.thread.as_ref().is_some_and(|name| name.as_str() == thread));
        let read = wait(log.read_thread(&society, &thread.into(), ThreadRange::ALL));
        same(read.map(|read| read.iter().eq(expected)), thread);
    }
    same(all(&log, &society).map(|read| read == events), "the whole log");
    for at in (0..events.len()).step_by(1 + events.len() / 20) {
        let read = wait(log.read(&society, Seq(at as u64), 3));
        same(read.map(|read| read == events[at..events.len().min(at + 3)]), "a part of the log");
    }
    same(wait(log.head(&society)).map(|head| head == last), "the head");
    same(wait(log.societies()).map(|names| names == [main_society()]), "the societies");
    same(wait(log.whole(&society, last)).map(|whole| whole == last), "where the last append ended");
    let in_background = wait(log.checked());
    if noticed {
        assert!(matches!(in_background, Err(LogError::Damaged(_))), "{what}: a read met damage, the check did not");
    }
    noticed || in_background.is_err()
}

#[test]
fn damage_in_a_large_database_is_refused_when_read_and_found_in_the_background() {
    let (written, events) = closed(60);
    let bytes = written["polis.db"].len();
    let mut noticed = 0;
    for n in 0..600 {
        let at = if n < 100 { n } else { 100 + (bytes - 101) * (n - 100) / 499 };
        let mut found = written.clone();
        found["polis.db"][at] ^= 1 << (n % 8);
        let dir = fresh_dir();
        put(dir.path(), &found);
        noticed += usize::from(check_large(dir.path(), &events, LARGE, &format!("byte {at}")));
    }
    assert!(noticed > 300, "only {noticed} of 600 were noticed");
}

#[test]
fn an_index_that_hides_or_invents_something_is_noticed_before_it_is_read() {
    let (written, events) = closed(30);
    // The index is made to forget something.
    let partly = |rest: &str| {
        format!(
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = sql || ' AND {rest}' WHERE name = 'events_by_thread';
             PRAGMA writable_schema = RESET;
             REINDEX;
             PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = replace(sql, ' AND {rest}', '') WHERE name = 'events_by_thread';"
        )
    };
    for sql in [
        partly("thread <> 1"),
        partly("at <> 1700000000004"),
        "UPDATE societies SET name = 'mine'".to_owned(),
        "UPDATE societies SET at = 3".to_owned(),
        "UPDATE threads SET name = 'thread-9' WHERE key = 1".to_owned(),
        "DELETE FROM threads WHERE key = 1".to_owned(),
    ] {
        let dir = fresh_dir();
        put(dir.path(), &written);
        let connection = rusqlite::Connection::open(dir.path().join("polis.db")).unwrap();
        connection.execute_batch(&sql).unwrap();
        drop(connection);
        assert!(check_large(dir.path(), &events, LARGE, &sql), "{sql}");
    }
}

#[test]
fn a_large_database_without_damage_is_found_sound_and_goes_on() {
    let (written, mut events) = closed(60);
    let dir = fresh_dir();
    put(dir.path(), &written);
    for _ in 0..3 {
        let log = LocalLog::open_with(dir.path(), LARGE).unwrap();
        let last = events.len() as u64;
        // What is written meanwhile is none of the check's business.
        let batch = batch_after(last);
        wait(log.append(&main_society(), Seq(last), &batch)).unwrap();
        wait(log.append(&format!("other-{last}").as_str().into(), Seq(0), &batch_after(0))).unwrap();
        events.extend(batch.iter().map(|recorded| polis_domain::Recorded::clone(recorded)));
        wait(log.checked()).unwrap();
        assert_eq!(all(&log, &main_society()).unwrap(), events);
    }
}

#[test]
fn a_database_over_64_mib_is_not_trusted_because_it_was_closed_well() {
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    let mut events = Vec::new();
    let long = noise(0, 24_000);
    while events.len() < 3_600 {
        let seq = events.len() as u64;
        let thread = |n: u64| format!("thread-{}", n % 3);
        let batch: Vec<_> = (seq + 1..=seq + 200).map(|n| event(n, Some(&thread(n)), &format!("{n} {long}"))).collect();
        wait(log.append(&main_society(), Seq(seq), &batch)).unwrap();
        events.extend(batch.iter().map(|recorded| polis_domain::Recorded::clone(recorded)));
    }
    drop(log);
    let path = dir.path().join("polis.db");
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes > 64 << 20, "{bytes}");
    assert!(!check_large(dir.path(), &events, Options::default(), "nothing"));
    let mut noticed = 0;
    for n in 1..12 {
        let at = bytes * n / 12 + 1_000;
        let flip = || {
            let file = fs::File::options().read(true).write(true).open(&path).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 4], at).unwrap();
        };
        let witness = fs::read(dir.path().join("witness")).unwrap();
        flip();
        let log = LocalLog::open(dir.path()).unwrap();
        noticed += usize::from(wait(log.checked()).is_err());
        drop(log);
        // As if it had never been opened.
        flip();
        fs::write(dir.path().join("witness"), &witness).unwrap();
    }
    assert_eq!(noticed, 11, "all of it is text of events");
}

#[test]
fn a_link_in_place_of_the_snapshots_leads_nowhere() {
    let dir = fresh_dir();
    drop(LocalLog::open(dir.path()).unwrap());
    let elsewhere = fresh_dir();
    for name in ["hosts", "0123abcd-7-0123abcd"] {
        fs::write(elsewhere.path().join(name), b"not ours").unwrap();
    }
    let folder = dir.path().join("snapshots");
    let _ = fs::remove_dir_all(&folder);
    std::os::unix::fs::symlink(elsewhere.path(), &folder).unwrap();
    drop(LocalLog::open(dir.path()).unwrap());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 2);
    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("notes.txt"), b"a person's").unwrap();
    drop(LocalLog::open(dir.path()).unwrap());
    assert!(folder.join("notes.txt").exists(), "only bodies of snapshots are removed");
}
