//! What can go wrong around a backup: changed bytes, missing artifacts, full disks, several runs, pipes, links.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use polis_domain::{Artifact, ArtifactId, Event, Message, Recorded, Seq};
use polis_ports::{Artifacts, Embedding, Hasher, Log, MemoryTexts};
use polis_store_local::{ArtifactLimits, BackupError, Inspection, LocalArtifacts, LocalLog, LocalMemoryTexts, backup, restore};
use polis_stored_event::StoredEvent;
use polis_testkit::conformance::event;

use crate::backups::{add_artifact, code, contents, filled};
use crate::disk_full::SmallDisk;
use crate::support::{batch_after, fill, fresh_dir, main_society, wait};

/// A directory with one of everything, each with a content that is found in the file of a backup.
fn small(data: &Path) {
    let log = LocalLog::open(data).unwrap();
    wait(log.append(&main_society(), Seq(0), &[event(1, Some("t"), "a message")])).unwrap();
    add_artifact(data, b"a report");
    let texts = LocalMemoryTexts::new(data);
    wait(texts.put(&"m1".into(), "green tea")).unwrap();
    let embedding = Embedding { model: "some/model".into(), vector: vec![0.25, 1.5] };
    wait(texts.set_embeddings(vec![("m1".into(), embedding)])).unwrap();
    fs::write(data.join("tokens.json"), r#"[{"name":"bot"}]"#).unwrap();
}

/// Whether a backup passes all checks.
fn is_sound(file: &Path) -> bool {
    let check = || {
        let inspection = Inspection::open(file)?;
        inspection.check_events()?;
        Ok::<_, BackupError>(inspection.check_artifacts()?.values().all(|is_sound| *is_sound))
    };
    check().unwrap_or(false)
}

/// Everything that a restore of a backup brings back.
fn restored(file: &Path) -> Vec<(String, Vec<u8>)> {
    let dir = fresh_dir();
    let to = dir.path().join("to");
    restore(file, &to).unwrap();
    let (events, _, artifacts) = contents(&to);
    let text = wait(LocalMemoryTexts::new(&to).read(vec!["m1".into()])).unwrap();
    let tokens = fs::read(to.join("tokens.json")).unwrap_or_default();
    let whole = format!("{events:?} {artifacts:?} {text:?}");
    vec![("all".to_owned(), whole.into_bytes()), ("tokens".to_owned(), tokens)]
}

#[test]
fn a_changed_byte_of_a_backup_is_noticed_if_it_changes_anything() {
    let dir = fresh_dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("b"));
    small(&data);
    backup(&data, &file).unwrap();
    let (sound, whole) = (fs::read(&file).unwrap(), restored(&file));
    let sqlite = rusqlite::Connection::open(&file).unwrap();
    let event: Vec<u8> = sqlite.query_row("SELECT body FROM events", [], |row| row.get(0)).unwrap();
    drop(sqlite);
    let vector = [0.25_f32.to_le_bytes(), 1.5_f32.to_le_bytes()].concat();
    for content in [&b"green tea"[..], b"some/model", &vector, br#"[{"name":"bot"}]"#, b"a report", &event, b"main"] {
        let places: Vec<_> = (0..sound.len()).filter(|at| sound[*at..].starts_with(content)).collect();
        assert!(!places.is_empty(), "{}", String::from_utf8_lossy(content));
        for at in places.into_iter().flat_map(|at| at..at + content.len()) {
            let mut changed = sound.clone();
            changed[at] ^= 1;
            fs::write(&file, changed).unwrap();
            let is_same = || restored(&file) == whole;
            assert!(!is_sound(&file) || is_same(), "byte {at}, of {}", String::from_utf8_lossy(content));
        }
    }
    let first = sound.windows(9).position(|window| window == b"green tea").unwrap();
    let mut changed = sound.clone();
    changed[first] ^= 1;
    fs::write(&file, changed).unwrap();
    assert_eq!(code(restore(&file, &dir.path().join("to"))), "backup_damaged");
    // Whatever the rest of the file is for: headers, indexes, counts, free room.
    for at in (0..sound.len()).step_by(311) {
        let mut changed = sound.clone();
        changed[at] ^= 0x11;
        fs::write(&file, changed).unwrap();
        assert!(!is_sound(&file) || restored(&file) == whole, "byte {at}");
    }
}

#[test]
fn a_further_run_does_not_give_a_damaged_text_a_new_checksum() {
    let dir = fresh_dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("b"));
    small(&data);
    backup(&data, &file).unwrap();
    let sqlite = rusqlite::Connection::open(&file).unwrap();
    sqlite.execute_batch("UPDATE texts SET text = 'black tea'").unwrap();
    drop(sqlite);
    assert_eq!(code(Inspection::open(&file).map(drop)), "backup_damaged");
    assert_eq!(code(backup(&data, &file)), "backup_damaged");
    assert_eq!(code(Inspection::open(&file).map(drop)), "backup_damaged");
}

/// An event that refers to an artifact.
fn referring(seq: u64, id: ArtifactId) -> Arc<Recorded> {
    let mut recorded = Recorded::clone(&event(seq, Some("t"), "see the report"));
    let Event::MessageAdded { message, .. } = &mut recorded.event else { unreachable!("a message of a thread") };
    let mut meta = serde_json::Map::new();
    Artifact::attach(&mut meta, &[Artifact::new(id, "report.md", "text/markdown", 8)]);
    *message = Arc::new(Message { meta: meta.into(), ..Message::clone(message) });
    Arc::new(recorded)
}

fn path_of(data: &Path, id: ArtifactId) -> std::path::PathBuf {
    let name = id.to_string();
    data.join("artifacts").join(&name[..2]).join(&name[2..])
}

#[test]
fn a_missing_artifact_is_reported_by_each_run_until_it_is_back() {
    let dir = fresh_dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("b"));
    small(&data);
    let id = add_artifact(&data, b"a report");
    let log = LocalLog::open(&data).unwrap();
    wait(log.append(&main_society(), Seq(1), &[referring(2, id)])).unwrap();
    fs::remove_file(path_of(&data, id)).unwrap();
    for _ in 0..2 {
        assert_eq!(backup(&data, &file).unwrap().missing, [id]);
    }
    assert!(is_sound(&file), "everything else is in it");
    add_artifact(&data, b"a report");
    assert_eq!(backup(&data, &file).unwrap().missing, []);
    // What was backed up once is not lost with the directory's copy.
    fs::remove_file(path_of(&data, id)).unwrap();
    assert_eq!(backup(&data, &file).unwrap().missing, []);
}

/// The hash chain of versions 1 and 2, over events that were appended one by one.
fn chain_of_bodies(events: Vec<Recorded>) -> [u8; 32] {
    let society = main_society();
    events.into_iter().fold([0; 32], |chain, recorded| {
        let (before, seq, at, thread) = (Seq(recorded.seq.0 - 1), recorded.seq, recorded.at, recorded.thread.clone());
        let batch = polis_stored_event::encode(&society, before, &[Arc::new(recorded)]).unwrap();
        let (version, body) = (batch.rows[0].version, batch.bodies.into());
        let mut hasher = Hasher::default();
        hasher.update(&chain);
        let stored = StoredEvent { seq, at, version, crc: 0, original: None, body };
        stored.feed(&society, thread.as_ref(), |bytes| hasher.update(bytes));
        hasher.id().digest()
    })
}

#[test]
fn a_backup_of_version_1_is_restored_and_gets_what_it_lacks_with_the_next_run() {
    let dir = fresh_dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("b"));
    small(&data);
    let id = add_artifact(&data, b"a report");
    let log = LocalLog::open(&data).unwrap();
    wait(log.append(&main_society(), Seq(1), &[referring(2, id)])).unwrap();
    let events = wait(log.read(&main_society(), Seq(0), 9)).unwrap();
    drop(log);
    backup(&data, &file).unwrap();
    let sqlite = rusqlite::Connection::open(&file).unwrap();
    sqlite.execute("UPDATE heads SET chain = ?1", [chain_of_bodies(events)]).unwrap();
    let version: u32 = sqlite.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    sqlite.execute_batch("DROP TABLE named; DROP TABLE checksum; DELETE FROM artifacts").unwrap();
    sqlite.pragma_update(None, "user_version", version & 0x00ff_ffff | 1 << 24).unwrap();
    drop(sqlite);
    restore(&file, &dir.path().join("old")).unwrap();
    fs::remove_file(path_of(&data, id)).unwrap();
    assert_eq!(backup(&data, &file).unwrap().missing, [id], "the references of older events are known now");
    let sqlite = rusqlite::Connection::open(&file).unwrap();
    sqlite.execute_batch("UPDATE texts SET text = 'black tea'").unwrap();
    drop(sqlite);
    assert_eq!(code(restore(&file, &dir.path().join("new"))), "backup_damaged");
}

#[test]
fn a_full_disk_is_said_and_leaves_the_backup_before_or_none() {
    let dir = fresh_dir();
    let test = "a_full_disk_is_said_and_leaves_the_backup_before_or_none";
    let Some(disk) = SmallDisk::mount_for(test, &dir.path().join("disk")) else { return };
    let (data, file) = (dir.path().join("data"), disk.0.join("b"));
    filled(&data);
    // Nine megabytes fail at a commit, twenty more before it, when SQLite has to write in the middle of a transaction.
    for _ in 0..2 {
        let refused = backup(&data, &file).unwrap_err();
        assert_eq!(refused.code(), "disk_full", "{refused}");
        assert!(refused.to_string().contains("no room for the backup `"), "{refused}");
        let left: Vec<_> = fs::read_dir(&disk.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.is_empty(), "{left:?}");
        add_artifact(&data, &vec![8; 20 << 20]);
    }

    let small_data = dir.path().join("small");
    small(&small_data);
    backup(&small_data, &file).unwrap();
    let before = restored(&file);
    let log = LocalLog::open(&small_data).unwrap();
    let head = wait(log.head(&main_society())).unwrap();
    wait(log.append(&main_society(), head, &batch_after(head.0))).unwrap();
    drop(log);
    for content in 1..6 {
        add_artifact(&small_data, &vec![content; 400_000]);
    }
    assert_eq!(code(backup(&small_data, &file)), "disk_full");
    let ballast = disk.0.join("ballast");
    fs::write(&ballast, []).unwrap();
    assert!(is_sound(&file));
    let now = restored(&file);
    let is_before = |now: &[(String, Vec<u8>)]| String::from_utf8_lossy(&now[0].1).matches("message-").count();
    assert_eq!(is_before(&now), is_before(&before), "the events of the backup before");

    let whole = dir.path().join("b");
    backup(&data, &whole).unwrap();
    let refused = restore(&whole, &disk.0.join("data")).unwrap_err();
    assert_eq!(refused.code(), "disk_full", "{refused}");
    assert!(refused.to_string().contains("no room to restore to `"), "{refused}");
    assert!(!disk.0.join("data").exists() && !disk.0.join(".data.restoring").exists());
}

#[test]
fn several_runs_into_one_file_succeed_or_say_that_another_is_running() {
    let dir = fresh_dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("b"));
    filled(&data);
    for _ in 0..3 {
        let runs: Vec<_> = thread::scope(|scope| {
            let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| backup(&data, &file))).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        assert!(runs.iter().any(Result::is_ok), "{runs:?}");
        for refused in runs.into_iter().filter_map(Result::err) {
            assert_eq!(refused.code(), "backup_running", "{refused}");
        }
        assert!(is_sound(&file));
        let to = fresh_dir();
        restore(&file, &to.path().join("to")).unwrap();
        assert_eq!(contents(&to.path().join("to")), contents(&data));
        fs::remove_file(&file).unwrap();
    }
    let lock = File::create(dir.path().join("b.lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(code(backup(&data, &file)), "backup_running");
    assert!(!file.exists());
    drop(lock);
    backup(&data, &file).unwrap();
    assert!(!dir.path().join("b.lock").exists());
}

#[test]
fn a_backup_that_is_being_written_is_neither_read_nor_restored() {
    let dir = fresh_dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("b"));
    small(&data);
    backup(&data, &file).unwrap();
    let writer = rusqlite::Connection::open(&file).unwrap();
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(code(restore(&file, &dir.path().join("to"))), "backup_running");
    drop(writer);
    restore(&file, &dir.path().join("to")).unwrap();
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Runs something that must not block. The limit is only there to have a failure instead of a suite that hangs.
fn at_once<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    result.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{what} blocks"))
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_and_blocks_nothing() {
    for name in ["polis.db", "polis.db-wal", "witness", "lock", "memory.db", "memory.db-journal", "DAMAGED", "tokens.json"] {
        let dir = fresh_dir();
        let data = dir.path().join("data");
        small(&data);
        let _ = fs::remove_file(data.join(name));
        make_pipe(&data.join(name));
        let file = dir.path().join("b");
        let refused = |what: &str, error: String| {
            assert!(error.contains(&format!("{name}` is a directory, a pipe")), "{what} with {name}: {error}");
        };
        let from = data.clone();
        refused("backup", at_once(name, move || backup(&from, &file).unwrap_err().to_string()));
        let from = data.clone();
        refused("verify", at_once(name, move || Inspection::open(&from).map(drop).unwrap_err().to_string()));
        refused("open", at_once(name, move || LocalLog::open(&data).map(drop).unwrap_err().to_string()));
    }
}

#[test]
fn a_pipe_in_the_place_of_an_artifact_is_a_damaged_artifact_and_one_as_a_backup_is_none() {
    let dir = fresh_dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("b"));
    small(&data);
    let id = add_artifact(&data, b"a report");
    fs::remove_file(path_of(&data, id)).unwrap();
    make_pipe(&path_of(&data, id));
    let (from, to) = (data.clone(), file.clone());
    assert_eq!(at_once("backup", move || backup(&from, &to).unwrap().damaged), [id]);
    let from = data.clone();
    let checked = at_once("verify", move || Inspection::open(&from).unwrap().check_artifacts().unwrap());
    assert_eq!(checked.into_iter().collect::<Vec<_>>(), [(id, false)]);
    let from = data.clone();
    let read = at_once("read", move || {
        let artifacts = LocalArtifacts::open(&from, ArtifactLimits::default()).unwrap();
        wait(artifacts.read(&id, 0, 10)).unwrap_err().to_string()
    });
    assert!(read.contains(&id.to_string()), "{read}");
    let pipe = dir.path().join("pipe");
    make_pipe(&pipe);
    let (from, to) = (data.clone(), pipe.clone());
    assert_eq!(at_once("backup", move || code(backup(&from, &to))), "not_a_backup");
    let to = data.join("to");
    assert_eq!(at_once("restore", move || code(restore(&pipe, &to))), "not_a_backup");
    make_pipe(&dir.path().join("b-journal"));
    assert_eq!(at_once("verify", move || code(Inspection::open(&file).map(drop))), "not_a_backup");
}

#[test]
fn a_restore_follows_a_link_and_leaves_nothing_behind_when_it_fails() {
    let dir = fresh_dir();
    let (data, file) = (dir.path().join("data"), dir.path().join("b"));
    filled(&data);
    backup(&data, &file).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir_all(elsewhere.join("empty")).unwrap();
    for target in ["empty", "new"] {
        let link = dir.path().join(format!("to-{target}"));
        std::os::unix::fs::symlink(Path::new("elsewhere").join(target), &link).unwrap();
        restore(&file, &link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(contents(&elsewhere.join(target)), contents(&data));
    }
    let sqlite = rusqlite::Connection::open(&file).unwrap();
    sqlite.execute_batch("UPDATE artifacts SET bytes = x'00' WHERE part = 1").unwrap();
    drop(sqlite);
    assert_eq!(code(restore(&file, &dir.path().join("failed"))), "backup_damaged");
    for folder in [dir.path(), &elsewhere] {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<_> = names.filter(|name| name.ends_with(".restoring") || name == "failed").collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn artifacts_are_private_before_and_after_a_restore() {
    use std::os::unix::fs::PermissionsExt;
    let dir = fresh_dir();
    let (data, file, to) = (dir.path().join("data"), dir.path().join("b"), dir.path().join("to"));
    fill(&LocalLog::open(&data).unwrap(), 3);
    let id = add_artifact(&data, b"a report");
    backup(&data, &file).unwrap();
    restore(&file, &to).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for data in [&data, &to] {
        let path = path_of(data, id);
        let modes = [&path, path.parent().unwrap(), &data.join("artifacts")].map(mode);
        assert_eq!(modes, [0o600, 0o700, 0o700], "{}", data.display());
    }
}
