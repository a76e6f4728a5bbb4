//! A clock of the machine that is set back while a process runs.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::model::{ModelServer, Reply};
use super::support::Home;

/// The library that gives a process a clock of its own, where it is installed.
pub(super) fn fake_clock() -> Option<PathBuf> {
    // The folder between has the name of the system.
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1")).find(|library| library.is_file())
}

#[test]
fn a_wait_of_a_second_takes_no_day_when_the_clock_is_set_back_by_one() {
    let Some(library) = fake_clock() else {
        writeln!(
            std::io::stderr(),
            "skipped: cli::clock::a_wait_of_a_second_takes_no_day_when_the_clock_is_set_back_by_one: libfaketime is not there (Debian's package `faketime`)"
        )
        .unwrap();
        return;
    };
    let home = Home::new();
    let clock = home.path().join("clock");
    fs::write(&clock, "+0\n").unwrap();
    let model = ModelServer::start(vec![Reply::Refuse(503, "busy"), Reply::Say(&["four"])]);
    let mut command = home.command(&["run", "what is 2 + 2?"]);
    model.set(&mut command);
    command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &clock).env("FAKETIME_NO_CACHE", "1");
    let mut run = command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").spawn().unwrap();
    model.wait();
    // The call is made again after a pause, in which the clock goes back.
    let set = Instant::now();
    while run.try_wait().unwrap().is_none() && set.elapsed() < Duration::from_millis(400) {
        std::thread::sleep(Duration::from_millis(10));
    }
    fs::write(&clock, "-86400\n").unwrap();
    while run.try_wait().unwrap().is_none() && set.elapsed() < Duration::from_secs(100) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let has_ended = run.try_wait().unwrap().is_some();
    let _ = run.kill();
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(has_ended, "it waits: {said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "four", "{said}");
}
