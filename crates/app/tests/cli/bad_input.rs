//! Bad input on the command line: a clear error with a code, and the log stays as it is.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use super::support::Home;

#[test]
fn bad_input_gets_a_clear_error_with_a_code_and_nothing_changes() {
    let home = Home::new();
    home.polis(&["run", "hello"]).ok();
    let log = home.log();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["send", "nobody", "x"], 1, "unknown_agent"),
        (&["send", "user", "x"], 1, "to_user"),
        (&["send", "root", ""], 1, "empty_text"),
        (&["show", "nobody"], 1, "unknown_thread"),
        (&["show", "root.messages[1].meta._thread"], 1, "unknown_thread"),
        (&["show", "root.messages[1]"], 2, "bad_path"),
        (&["show", "root.messages[01].meta._thread"], 2, "bad_path"),
        (&["cancel", "nothing"], 1, "unknown_task"),
        (&["approve", "1.0"], 1, "not_open"),
        (&["deny", "x"], 1, "not_open"),
        (&["run", "--model", "nobody/x", "y"], 2, "bad_model"),
        (&["run", "--model", "openai/x", "y"], 2, "bad_model"),
        (&["run", "--workspace", "missing", "y"], 2, "bad_workspace"),
        (&["run", "--replay", "missing.jsonl", "y"], 2, "bad_cassette"),
        (&["run", "--record", "missing/tape.jsonl", "y"], 2, "bad_cassette"),
        (&["agents", "--url", "ftp://x"], 2, "bad_url"),
        (&["agents", "--url", "http://127.0.0.1:1"], 1, "server_unreachable"),
        (&["agents", "--config", "missing.toml"], 2, "bad_config"),
    ];
    for (args, status, code) in cases {
        home.polis(args).fails(*status, code);
        assert_eq!(home.log(), log, "{args:?}");
    }
    for args in [&["frobnicate"][..], &["run"], &["show"], &["log", "--from", "x"], &["run", "--approve", "maybe", "x"]] {
        assert_eq!(home.polis(args).code, 2, "{args:?}");
    }
    assert_eq!(home.log(), log);
}

#[test]
fn an_unknown_key_in_the_configuration_is_an_error_with_its_place() {
    let home = Home::new();
    home.write("polis.toml", "model = \"offline\"\ntemprature = 1\n");
    let done = home.polis(&["run", "hello"]);
    done.fails(2, "bad_config");
    assert!(done.stderr.contains("polis.toml line 2, column 1: unknown field `temprature`"), "{}", done.stderr);
    assert!(!home.data().exists());
    home.write("polis.toml", "model = \"offline\"\n");
    home.polis(&["run", "hello"]).ok();
    // Flags count for more than variables, and both for more than the file.
    home.polis(&["run", "--model", "nobody/x", "y"]).fails(2, "bad_model");
    let mut command = home.command(&["run", "--model", "offline", "hello"]);
    assert_eq!(command.env("POLIS_MODEL", "nobody/x").output().unwrap().status.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn arguments_that_are_not_utf8_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let home = Home::new();
    let mut command = home.command(&["run"]);
    command.arg(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    assert_eq!(command.output().unwrap().status.code(), Some(2));
    assert!(!home.data().exists());
}

#[test]
fn a_second_writer_is_refused() {
    let home = Home::new();
    home.polis(&["run", "hello"]).ok();
    let served = home.serve(&[]);
    let last = served.get("/api/log").1["last"].clone();
    let done = home.polis(&["serve", "--listen", "127.0.0.1:0"]);
    done.fails(1, "data_locked");
    assert!(done.stderr.contains(&served.url()), "it says who has it: {}", done.stderr);
    assert_eq!(served.get("/api/log").1["last"], last);
}

#[test]
fn data_of_a_newer_version_are_refused_and_left_alone() {
    let home = Home::new();
    home.polis(&["run", "hello"]).ok();
    let log = home.log();
    let mut file = File::options().read(true).write(true).open(home.data().join("polis.db")).unwrap();
    let mut version = [0; 4];
    file.seek(SeekFrom::Start(60)).unwrap();
    file.read_exact(&mut version).unwrap();
    let mut stamp = |version: [u8; 4]| {
        file.seek(SeekFrom::Start(60)).unwrap();
        file.write_all(&version).unwrap();
    };
    stamp([0x7f, 0, 0, 0]);
    for args in [
        &["run", "x"][..],
        &["serve", "--listen", "127.0.0.1:0"],
        &["log"],
        &["show", "root"],
        &["send", "root", "x"],
        &["chat"],
    ] {
        home.polis(args).fails(1, "data_too_new");
    }
    stamp(version);
    assert_eq!(home.log(), log);
}
