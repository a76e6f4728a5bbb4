//! Backups: of a directory in use, brought up to date, restored, and never half of one taken for a whole one.

use std::fs;
use std::path::Path;

use polis_domain::{Recorded, Seq, SocietyId};
use polis_ports::{Artifacts, Fork, Log, MemoryTexts};
use polis_store_local::{
    ArtifactLimits, BackupError, BackupReport, Inspection, LocalArtifacts, LocalLog, LocalMemoryTexts, backup, restore,
};
use polis_testkit::conformance::event;

use crate::support::{all, batch_after, files, fill, fresh_dir, main_society, put, wait};

pub(crate) fn add_artifact(data: &Path, content: &[u8]) -> polis_domain::ArtifactId {
    let artifacts = LocalArtifacts::open(data, ArtifactLimits::default()).unwrap();
    wait(artifacts.put(content.into())).unwrap()
}

pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, BackupError>) -> &'static str {
    result.unwrap_err().code()
}

/// The events of each society, the ids of texts, and the artifacts with whether they are sound.
pub(crate) type Contents = (Vec<(SocietyId, Vec<Recorded>)>, Vec<String>, Vec<(String, bool)>);

/// Everything that a data directory has for its users.
pub(crate) fn contents(data: &Path) -> Contents {
    let log = LocalLog::open(data).unwrap();
    let societies = wait(log.societies()).unwrap();
    let events = societies.into_iter().map(|society| (society.clone(), all(&log, &society).unwrap())).collect();
    drop(log);
    let inspection = Inspection::open(data).unwrap();
    let texts = inspection.memory_texts().unwrap().iter().map(ToString::to_string).collect();
    let artifacts = inspection.check_artifacts().unwrap().into_iter().map(|(id, sound)| (id.to_string(), sound)).collect();
    (events, texts, artifacts)
}

/// A directory with two societies, artifacts, texts and tokens.
pub(crate) fn filled(data: &Path) {
    let log = LocalLog::open(data).unwrap();
    fill(&log, 40);
    let at = wait(log.whole(&main_society(), Seq(20))).unwrap();
    let first = event(at.0 + 1, None, "its own");
    wait(log.fork(&Fork { from: main_society(), at, to: "side".into(), aside: None, first })).unwrap();
    add_artifact(data, b"a report");
    add_artifact(data, b"");
    add_artifact(data, &vec![7; 9 << 20]);
    let texts = LocalMemoryTexts::new(data);
    wait(texts.put(&"m1".into(), "green tea")).unwrap();
    wait(texts.put(&"m2".into(), "osprey")).unwrap();
    fs::write(data.join("tokens.json"), "[]").unwrap();
    fs::write(data.join("token"), "secret").unwrap();
}

#[test]
fn a_restored_backup_has_everything_but_secrets_and_goes_on() {
    let dir = fresh_dir();
    let (data, file, to) = (dir.path().join("data"), dir.path().join("backups/b"), dir.path().join("again"));
    filled(&data);
    let report = backup(&data, &file).unwrap();
    assert_eq!((report.artifacts, report.damaged.len()), (3, 0));
    let checked = restore(&file, &to).unwrap();
    assert_eq!(checked, Inspection::open(&data).unwrap().check_events().unwrap(), "the same hash chains");
    assert_eq!(contents(&to), contents(&data));
    assert_eq!(fs::read_to_string(to.join("tokens.json")).unwrap(), "[]");
    assert!(!to.join("token").exists());
    let log = LocalLog::open(&to).unwrap();
    for society in [main_society(), "side".into()] {
        let head = wait(log.head(&society)).unwrap();
        wait(log.append(&society, head, &batch_after(head.0))).unwrap();
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(&to), mode(&dir.path().join("backups"))), (0o600, 0o700, 0o700));
        assert_eq!(mode(&to.join("tokens.json")), 0o600);
    }
}

#[test]
fn a_second_run_copies_only_what_is_new_and_what_was_erased_is_gone() {
    let dir = fresh_dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("b"));
    filled(&data);
    backup(&data, &file).unwrap();
    assert_eq!(backup(&data, &file).unwrap(), BackupReport::default(), "nothing is new");
    let log = LocalLog::open(&data).unwrap();
    let head = wait(log.head(&main_society())).unwrap();
    let batch = batch_after(head.0);
    wait(log.append(&main_society(), head, &batch)).unwrap();
    let at = wait(log.whole(&main_society(), Seq(30))).unwrap();
    let (aside, first) = (Some("before".into()), event(at.0 + 1, Some("thread-1"), "rewound"));
    wait(log.fork(&Fork { from: main_society(), at, to: main_society(), aside, first })).unwrap();
    let texts = LocalMemoryTexts::new(&data);
    wait(texts.remove(vec!["m2".into()])).unwrap();
    wait(texts.put(&"m3".into(), "the office")).unwrap();
    add_artifact(&data, b"another");
    // The directory is open.
    let report = backup(&data, &file).unwrap();
    assert_eq!((report.events, report.artifacts), (batch.len() as u64 + 1, 1));
    let bytes = fs::read(&file).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"osprey"), "an erased text is not in the file any more");
    drop(log);
    let to = dir.path().join("again");
    restore(&file, &to).unwrap();
    assert_eq!(contents(&to), contents(&data));
}

#[test]
fn a_directory_is_backed_up_while_it_is_written_to() {
    let dir = fresh_dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("b"));
    let log = LocalLog::open(&data).unwrap();
    fill(&log, 10);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..150 {
                let head = wait(log.head(&main_society())).unwrap();
                wait(log.append(&main_society(), head, &batch_after(head.0))).unwrap();
            }
        });
        for n in 0.. {
            backup(&data, &file).unwrap();
            let to = dir.path().join(format!("again-{n}"));
            restore(&file, &to).unwrap();
            let restored = all(&LocalLog::open(&to).unwrap(), &main_society()).unwrap();
            let written = all(&log, &main_society()).unwrap();
            assert_eq!(restored, written[..restored.len()]);
            let is_whole = wait(log.whole(&main_society(), Seq(restored.len() as u64))).unwrap().0 as usize == restored.len();
            assert!(is_whole, "a backup ends where an append ended");
            if writer.is_finished() {
                break;
            }
        }
    });
}

#[test]
fn a_backup_of_another_history_or_no_backup_is_left_as_it_is() {
    let dir = fresh_dir();
    let (data, other, file) = (dir.path().join("data"), dir.path().join("other"), dir.path().join("b"));
    filled(&data);
    fill(&LocalLog::open(&other).unwrap(), 5);
    backup(&data, &file).unwrap();
    let before = fs::read(&file).unwrap();
    assert_eq!(code(backup(&other, &file)), "backup_other_history");
    assert_eq!(fs::read(&file).unwrap(), before);
    for (name, content) in [
        ("text", &b"some text that is long enough to be looked at, but is no database at all, and more and more"[..]),
        ("short", b"x"),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        assert_eq!(code(backup(&data, &path)), "not_a_backup");
        assert_eq!(code(restore(&path, &dir.path().join("to"))), "not_a_backup");
        assert_eq!(fs::read(&path).unwrap(), content);
    }
    assert_eq!(code(backup(&data, &data.join("polis.db"))), "not_a_backup");
    assert_eq!(code(backup(&dir.path().join("nothing"), &file)), "log_failed");
    let newer = rusqlite::Connection::open(&file).unwrap();
    newer.execute_batch("PRAGMA user_version = 0x04020006").unwrap();
    drop(newer);
    assert_eq!(code(backup(&data, &file)), "data_too_new");
    assert_eq!(code(restore(&file, &dir.path().join("to"))), "data_too_new");
}

#[test]
fn a_restore_never_touches_what_is_there() {
    let dir = fresh_dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("b"));
    filled(&data);
    backup(&data, &file).unwrap();
    let before = contents(&data);
    assert_eq!(code(restore(&file, &data)), "data_not_empty");
    let log = LocalLog::open(&data).unwrap();
    assert_eq!(code(restore(&file, &data)), "data_not_empty");
    drop(log);
    assert_eq!(contents(&data), before);
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    restore(&file, &empty).unwrap();
    assert_eq!(contents(&empty), before);
}

#[test]
fn damage_of_a_backup_is_found_before_anything_is_restored() {
    let dir = fresh_dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("b"));
    filled(&data);
    backup(&data, &file).unwrap();
    let sound = fs::read(&file).unwrap();
    let crc = "UPDATE events SET body = (SELECT body FROM events WHERE id & 0xffffffffff = 12) WHERE id & 0xffffffffff = 11";
    for sql in [
        crc,
        "DELETE FROM events WHERE id = (SELECT max(id) FROM events WHERE id >> 40 = 1)",
        "DELETE FROM events WHERE id = (SELECT min(id) + 5 FROM events)",
        "DELETE FROM threads WHERE key = 1",
        "UPDATE heads SET chain = zeroblob(32) WHERE society = 1",
        "UPDATE artifacts SET bytes = x'00' WHERE part = 1",
        "DELETE FROM societies WHERE key = 1",
    ] {
        fs::write(&file, &sound).unwrap();
        rusqlite::Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        let to = dir.path().join("to");
        let refused = code(restore(&file, &to));
        assert!(matches!(refused, "backup_damaged" | "data_damaged"), "{sql}: {refused}");
        assert!(!to.exists(), "{sql}");
    }
    fs::write(&file, &sound).unwrap();
    let unfinished = rusqlite::Connection::open(&file).unwrap();
    unfinished.execute_batch("DELETE FROM point").unwrap();
    drop(unfinished);
    assert_eq!(code(restore(&file, &dir.path().join("to"))), "backup_unfinished");
}

/// An event whose checksum was made to fit shows in the hash chain.
#[test]
fn a_change_with_a_matching_checksum_shows_in_the_hash_chain() {
    let (a, b) = (fresh_dir(), fresh_dir());
    for (dir, text) in [(&a, "as it was"), (&b, "as it is now")] {
        let log = LocalLog::open(dir.path()).unwrap();
        wait(log.append(&main_society(), Seq(0), &[event(1, Some("t"), text), event(2, Some("t"), "the same")])).unwrap();
    }
    let chain = |dir: &Path| Inspection::open(dir).unwrap().check_events().unwrap().remove(0).chain;
    assert_ne!(chain(a.path()), chain(b.path()));
    let copy = fresh_dir();
    put(copy.path(), &files(a.path()));
    assert_eq!(chain(copy.path()), chain(a.path()));
}

#[test]
fn damage_of_a_data_directory_is_found_while_it_is_open_and_a_damaged_artifact_does_not_stop_a_backup() {
    let dir = fresh_dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("b"));
    filled(&data);
    let id = add_artifact(&data, b"a report");
    let name = id.to_string();
    fs::write(data.join("artifacts").join(&name[..2]).join(&name[2..]), b"a forgery").unwrap();
    let log = LocalLog::open(&data).unwrap();
    let inspection = Inspection::open(&data).unwrap();
    assert_eq!(inspection.check_events().unwrap().len(), 2);
    let damaged: Vec<_> = inspection.check_artifacts().unwrap().into_iter().filter(|(_, sound)| !sound).collect();
    assert_eq!(damaged, [(id, false)]);
    let report = backup(&data, &file).unwrap();
    assert_eq!((report.damaged, report.artifacts), (vec![id], 2));
    rusqlite::Connection::open(data.join("polis.db"))
        .unwrap()
        .execute_batch("UPDATE events SET at = at + 1 WHERE id & 1023 = 7")
        .unwrap();
    assert_eq!(code(Inspection::open(&data).unwrap().check_events()), "data_damaged");
    let other = dir.path().join("b2");
    assert_eq!(code(backup(&data, &other)), "data_damaged");
    assert_eq!(code(restore(&other, &dir.path().join("to"))), "backup_unfinished");
    drop(log);
}
