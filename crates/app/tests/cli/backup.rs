//! `polis backup`, `restore` and `verify`: with the real program, also while it serves.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Done, Home, is_ending};

fn json_of(done: Done) -> Value {
    serde_json::from_str(&done.ok()).unwrap()
}

/// A society with an answered request, an artifact and a memory.
fn begun() -> Home {
    let home = Home::new();
    let put = json!({ "name": "report.md", "content": "# Report\n" });
    let model = ModelServer::start(vec![Reply::Call("put_artifact", put), Reply::Repeat]);
    let mut command = home.command(&["run", "--conversation", "root", "write a report"]);
    model.set(&mut command);
    Done::from(command.output().unwrap()).ok();
    home.polis(&["memory", "add", "Ann drinks green tea"]).ok();
    home
}

fn chains(home: &Home, path: &str) -> Value {
    json_of(home.polis(&["verify", path, "--json"]))["societies"].clone()
}

#[test]
fn a_bad_place_or_a_damaged_backup_is_named() {
    let home = begun();
    let kept = json_of(home.polis(&["backup", "turns", "--keep", "2", "--json"]));
    assert!(kept["file"].as_str().unwrap().ends_with("turns/polis-1.backup"), "{kept}");
    home.polis(&["backup", "turns", "--keep", "2"]).ok();
    assert!(home.path().join("turns/polis-2.backup").exists());
    std::os::unix::fs::symlink(home.data(), home.path().join("way")).unwrap();
    for inside in [".polis/", ".polis/memory.db", ".polis/new/deep/x.backup", "way/x.backup"] {
        home.polis(&["backup", inside]).fails(2, "backup_inside_data");
    }
    home.polis(&["verify"]).ok();
    // A file that is no backup does not stop the rotation.
    std::fs::write(home.path().join("turns/polis-1.backup"), "x").unwrap();
    let other = json_of(home.polis(&["backup", "turns", "--keep", "2", "--json"]));
    assert!(other["file"].as_str().unwrap().ends_with("turns/polis-2.backup"), "{other}");
    for args in [&["verify", "nowhere"][..], &["restore", "nowhere", "--to", "new"]] {
        let missing = home.polis(args);
        missing.fails(1, "no_backup");
        assert!(missing.stderr.contains("`nowhere`"), "{}", missing.stderr);
    }
    let whole = std::fs::read(home.path().join("turns/polis-2.backup")).unwrap();
    std::fs::write(home.path().join("cut.backup"), &whole[..whole.len() / 2]).unwrap();
    for args in [&["verify", "cut.backup"][..], &["restore", "cut.backup", "--to", "new"], &["backup", "cut.backup"]] {
        let damaged = home.polis(args);
        damaged.fails(1, "backup_damaged");
        assert!(damaged.stderr.contains("`cut.backup`"), "{}", damaged.stderr);
    }
    assert!(!home.path().join("new").exists());
    std::fs::write(home.path().join("a-file"), "x").unwrap();
    let odd = home.polis(&["backup", "a-file/x.backup"]);
    assert!(odd.code == 1 && odd.stderr.contains("a-file/x.backup"), "{}", odd.stderr);
}

#[test]
fn a_served_society_is_backed_up_restored_elsewhere_and_goes_on_there() {
    let home = begun();
    let served = home.serve(&[]);
    let first = json_of(home.polis(&["backup", "copies/", "--json"]));
    assert!(first["file"].as_str().unwrap().ends_with("polis-1.backup") && first["events"].as_u64().unwrap() > 5, "{first}");
    served.post("/api/submit", &json!({ "text": "what is 2 + 3?", "conversation": "root" }));
    served.until(|recorded| is_ending(recorded) && recorded.event.envelope().is_some_and(|it| it.payload.text.contains('5')));
    let second = json_of(home.polis(&["backup", "copies", "--json"]));
    let added = second["events"].as_u64().unwrap();
    assert!(added > 0 && added < first["events"].as_u64().unwrap() && second["artifacts"] == 0, "{second}");
    let sound = home.polis(&["verify"]).ok();
    assert!(
        sound.contains("main: ") && sound.contains("1 artifact, 1 memory text") && sound.ends_with("is sound\n"),
        "{sound}"
    );
    home.polis(&["restore", "copies"]).fails(1, "data_not_empty");
    served.kill();
    home.polis(&["backup", "copies"]).ok();
    assert_eq!(chains(&home, "copies"), chains(&home, ".polis"), "the same history");

    let text = home.polis(&["restore", "copies", "--to", "again"]).ok();
    assert!(text.contains("main: ") && text.contains("was restored to again"), "{text}");
    let of = |args: &[&str]| home.polis(&[&["--data", "again"], args].concat()).ok();
    assert!(of(&["memory"]).contains("green tea") && of(&["artifacts"]).contains("report.md"));
    assert!(of(&["run", "--conversation", "root", "what is 6 * 7?"]).contains("42"));
    assert!(of(&["show", "root"]).contains("2 + 3"));

    // The usual place is the user's own again.
    std::fs::remove_dir_all(home.data()).unwrap();
    let mut restore = home.command(&["restore", "copies"]);
    Done::from(restore.env_remove("POLIS_TRUST").output().unwrap()).ok();
    let mut show = home.command(&["show", "root"]);
    assert!(Done::from(show.env_remove("POLIS_TRUST").output().unwrap()).ok().contains("2 + 3"));
}

#[test]
fn what_is_wrong_is_found_in_a_data_directory_and_in_a_backup() {
    let home = begun();
    home.polis(&["backup", "b"]).ok();
    home.polis(&["backup", "b", "--json"]).ok();
    let artifacts = home.data().join("artifacts");
    let stored = walk(&artifacts).remove(0);
    let bytes = std::fs::read(&stored).unwrap();
    std::fs::write(&stored, b"something else").unwrap();
    let found = home.polis(&["verify"]);
    found.fails(1, "verify_failed");
    assert!(found.stdout.contains("is not what was stored (artifact_damaged)"), "{}", found.stdout);
    // The copy from before is intact, and a new one says what it lacks.
    home.polis(&["verify", "b"]).ok();
    home.polis(&["backup", "other"]).fails(1, "artifact_damaged");
    let lacking = home.polis(&["verify", "other"]);
    assert!(lacking.stdout.contains("refers to, is missing (unknown_artifact)"), "{}", lacking.stdout);
    std::fs::write(&stored, bytes).unwrap();
    std::fs::remove_file(home.data().join("memory.db")).unwrap();
    let found = home.polis(&["verify", "--json"]);
    let listed: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!((found.code, &listed["findings"][0]["code"]), (1, &json!("unknown_memory")), "{listed}");
    // The last frame of zstd is the body of an event.
    let mut database = std::fs::read(home.data().join("polis.db")).unwrap();
    let at = database.windows(4).rposition(|window| window == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    database[at + 10..][..8].iter_mut().for_each(|byte| *byte ^= 0xff);
    std::fs::write(home.data().join("polis.db"), database).unwrap();
    let found = home.polis(&["verify"]);
    assert!(
        found.code == 1 && found.stdout.contains("is damaged: ") && found.stdout.contains("(data_damaged)"),
        "{}",
        found.stdout
    );
    assert!(!home.data().join("DAMAGED").exists(), "looking changes nothing");
    for (args, code) in [
        (&["verify", "nothing"][..], "no_backup"),
        (&["verify", "copies/"], "no_backup"),
        (&["restore", "nothing", "--to", "x"], "no_backup"),
        (&["restore", "sales.csv", "--to", "x"], "not_a_backup"),
        (&["--data", "nowhere", "backup", "b"], "no_data"),
    ] {
        home.write("sales.csv", "a,b\n");
        std::fs::create_dir_all(home.path().join("copies")).unwrap();
        home.polis(args).fails(1, code);
    }
    home.polis(&["--url", "http://127.0.0.1:9", "backup", "b"]).fails(2, "bad_url");
}

#[test]
fn a_server_keeps_copies_in_turn_and_says_when_it_cannot() {
    let home = begun();
    home.write("polis.toml", "[backup]\nto = \"copies\"\nevery = \"1s\"\nkeep = 2\n");
    let served = home.serve(&[]);
    let (one, two) = (home.path().join("copies/polis-1.backup"), home.path().join("copies/polis-2.backup"));
    let begin = Instant::now();
    let is_whole = |path: &Path| home.polis(&["verify", path.to_str().unwrap()]).code == 0;
    while !(is_whole(&one) && is_whole(&two)) {
        assert!(begin.elapsed() < Duration::from_secs(60), "no two copies");
        std::thread::sleep(Duration::from_millis(50));
    }
    served.stop();
    home.write("polis.toml", "[backup]\nto = \"sales.csv\"\n");
    home.write("sales.csv", "a,b\n");
    let mut served = home.serve(&[]);
    let mut said = served.said();
    assert!(said.any(|line| line.contains("no backup could be made")), "nothing was said");
    assert_eq!(served.get("/api/health").0, 200, "it goes on");
    home.write("polis.toml", "[backup]\nto = \"copies\"\nevery = \"soon\"\n");
    home.polis(&["societies"]).fails(2, "bad_config");
}

/// A fork shares the events and the one store of texts, so a text that its origin erased is missing there on purpose.
#[test]
fn a_memory_that_was_erased_on_purpose_is_not_reported_as_missing() {
    let home = begun();
    let place = home.last().0.to_string();
    home.polis(&["fork", "side"]).ok();
    home.polis(&["memory", "forget", "--all", "--yes"]).ok();
    home.polis(&["verify"]).ok();
    home.polis(&["rewind", "--to", &place]).ok();
    home.polis(&["backup", "b"]).ok();
    for path in [".polis", "b"] {
        assert!(home.polis(&["verify", path]).ok().contains("side: "), "{path}");
    }
    // One that was not erased is.
    home.polis(&["--society", "side", "memory", "add", "the office is in Rome"]).ok();
    std::fs::remove_file(home.data().join("memory.db")).unwrap();
    let found = home.polis(&["verify"]);
    found.fails(1, "verify_failed");
    assert_eq!(found.stdout.matches("unknown_memory").count(), 1, "{}", found.stdout);
}

#[test]
fn a_missing_artifact_is_reported_by_every_backup_that_lacks_it() {
    let home = begun();
    home.polis(&["backup", "whole"]).ok();
    let stored = walk(&home.data().join("artifacts")).remove(0);
    std::fs::remove_file(&stored).unwrap();
    for _ in 0..2 {
        let lacking = home.polis(&["backup", "b"]);
        lacking.fails(1, "unknown_artifact");
        assert!(lacking.stderr.contains("1 artifact could not be backed up, everything else is in the backup"));
    }
    let listed: Value = serde_json::from_str(&home.polis(&["backup", "b", "--json"]).stdout).unwrap();
    assert_eq!(listed["missing"].as_array().unwrap().len(), 1, "{listed}");
    // A backup from before still has it.
    home.polis(&["backup", "whole"]).ok();
    home.polis(&["verify", "whole"]).ok();
}

#[test]
fn a_damaged_newest_backup_is_not_silently_replaced_by_an_older_one() {
    let home = begun();
    home.polis(&["backup", "copies", "--keep", "2"]).ok();
    home.polis(&["memory", "add", "the office is in Rome"]).ok();
    home.polis(&["backup", "copies", "--keep", "2"]).ok();
    let newest = home.path().join("copies/polis-2.backup");
    let sound = std::fs::read(&newest).unwrap();
    let at = sound.windows(4).position(|window| window == b"Rome").unwrap();
    let mut changed = sound.clone();
    changed[at] ^= 1;
    for damaged in [changed, sound[..sound.len() / 2].to_vec(), b"x".to_vec()] {
        std::fs::write(&newest, damaged).unwrap();
        for path in ["copies", "copies/polis-2.backup"] {
            assert_eq!(home.polis(&["verify", path]).code, 1, "{path}");
        }
        let refused = home.polis(&["restore", "copies", "--to", "a new one"]);
        assert_eq!(refused.code, 1);
        for part in ["copies/polis-2.backup`", "polis restore copies/polis-1.backup --to 'a new one'", "polis-1.backup` of 20"]
        {
            assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
        }
        assert!(!home.path().join("a new one").exists());
    }
    std::fs::remove_file(home.path().join("copies/polis-1.backup")).unwrap();
    let refused = home.polis(&["restore", "copies", "--to", "a new one"]);
    assert!(refused.stderr.contains("No other backup in `copies` is sound"), "{}", refused.stderr);
    std::fs::write(&newest, sound).unwrap();
    home.polis(&["restore", "copies", "--to", "a new one"]).ok();
}

#[test]
fn four_backups_at_once_into_one_directory_leave_a_sound_one() {
    let home = begun();
    let start = |_| home.command(&["backup", "copies", "--keep", "2"]).spawn().unwrap();
    let running: Vec<_> = (0..4).map(start).collect();
    let runs: Vec<Done> = running.into_iter().map(|run| run.wait_with_output().unwrap().into()).collect();
    assert!(runs.iter().any(|run| run.code == 0));
    for refused in runs.iter().filter(|run| run.code != 0) {
        refused.fails(1, "backup_running");
    }
    assert_eq!(chains(&home, "copies"), chains(&home, ".polis"));
}

#[test]
fn doctor_tells_the_age_of_the_newest_backup_and_a_path_may_begin_at_home() {
    let home = begun();
    let finding = || {
        let mut command = home.command(&["doctor", "--json"]);
        let said = Done::from(command.env("HOME", home.path()).output().unwrap());
        let report: Value = serde_json::from_str(&said.stdout).unwrap();
        let found = report["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == "backup").cloned();
        found.map(|found| (found["ok"].as_bool().unwrap(), found["found"].as_str().unwrap().to_owned()))
    };
    assert_eq!(finding(), None);
    home.write("polis.toml", "[backup]\nto = \"~/copies\"\n");
    let (ok, found) = finding().unwrap();
    assert!(ok && found.contains("yet; `polis serve` makes one") && !found.contains('~'), "{found}");
    home.polis(&["backup", "copies", "--keep", "1"]).ok();
    let (ok, found) = finding().unwrap();
    assert!(ok && found.contains("copies/polis-1.backup is the newest, ") && found.ends_with(" old"), "{found}");
    home.write("copies/polis-1.backup", "x");
    let (ok, found) = finding().unwrap();
    assert!(!ok && found.contains("not_a_backup"), "{found}");
}

/// A command that opens the pipe waits for a writer for ever, so this test would fail by not ending.
#[test]
fn a_pipe_in_a_data_directory_is_refused_by_every_command_that_would_read_it() {
    let home = begun();
    for (name, args, code) in [
        ("token", &["serve", "--listen", "127.0.0.1:0"][..], "bad_token_file"),
        ("tokens.json", &["token", "list"], "bad_token_file"),
        ("witness", &["run", "hello"], "log_failed"),
        ("lock", &["societies"], "log_failed"),
        ("memory.db-journal", &["memory"], "log_failed"),
        ("polis.db", &["verify"], "log_failed"),
        ("polis.db", &["backup", "b"], "log_failed"),
    ] {
        let (path, kept) = (home.data().join(name), home.data().join("kept"));
        let was_there = std::fs::rename(&path, &kept).is_ok();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        home.polis(args).fails(1, code);
        std::fs::remove_file(&path).unwrap();
        if was_there {
            std::fs::rename(kept, path).unwrap();
        }
    }
    home.polis(&["verify"]).ok();
}

fn walk(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
