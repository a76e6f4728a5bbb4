//! Looking: `polis log`, `show`, `agents`, `approvals`, `conversations`, `tasks`. It works beside a server and without one, and changes nothing.

use std::io::{BufRead, BufReader};

use polis_domain::{Recorded, Thread};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Home, signal};

const LOOKS: &[&[&str]] = &[
    &["log"],
    &["log", "--json", "--from", "3"],
    &["log", "--follow"],
    &["show", "root"],
    &["show", "root", "--json", "--tree"],
    &["agents"],
    &["agents", "--json"],
    &["approvals"],
    &["approvals", "--json"],
    &["conversations"],
    &["conversations", "search", "hello", "--json"],
    &["tasks"],
];

#[test]
fn looking_where_nothing_is_says_so_and_makes_nothing() {
    let home = Home::new();
    for look in LOOKS {
        home.polis(look).fails(1, "no_data");
    }
    home.polis(&["send", "root", "x"]).fails(1, "no_data");
    assert!(!home.data().exists());
}

#[test]
fn looking_starts_no_turn_and_changes_nothing() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Hang, Reply::Say(&["never"])]);
    let served = home.serve_with(&[], |command| model.set(command));
    served.post("/api/submit", &json!({ "text": "x" }));
    model.wait();
    served.kill();
    let log = home.log();
    for look in LOOKS {
        let mut command = home.command(look);
        model.set(&mut command);
        assert_eq!(command.output().unwrap().status.code(), Some(0), "{look:?}");
        assert_eq!(home.log(), log, "{look:?}");
    }
    assert_eq!(model.requests.lock().unwrap().len(), 1, "nobody asked the model again");
}

#[test]
fn a_look_is_the_same_beside_a_server_and_without_one() {
    let home = Home::new();
    home.polis(&["run", "--conversation", "root", "hello"]).ok();
    let all: Vec<_> = LOOKS.iter().filter(|look| !look.contains(&"--follow")).collect();
    let alone: Vec<String> = all.iter().map(|look| home.polis(look).ok()).collect();
    let served = home.serve(&[]);
    let beside: Vec<String> = all.iter().map(|look| home.polis(look).ok()).collect();
    assert_eq!(alone, beside);
    // From elsewhere it takes the address and the token.
    let elsewhere = Home::new();
    elsewhere.polis(&["agents", "--url", &served.url()]).fails(1, "unauthorized");
    let mut command = elsewhere.command(&["agents"]);
    command.env("POLIS_URL", served.url()).env("POLIS_TOKEN", served.token.as_ref().unwrap());
    assert_eq!(String::from_utf8(command.output().unwrap().stdout).unwrap(), alone[4]);
    assert!(!elsewhere.data().exists());
}

#[test]
fn the_log_is_shown_for_people_and_for_programs() {
    let home = Home::new();
    home.polis(&["run", "--conversation", "root", "hello"]).ok();
    let log = home.log();
    let printed = home.polis(&["log", "--json"]).ok();
    let read: Vec<Recorded> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, log);
    let lines = home.polis(&["log", "--from", "4"]).ok();
    assert_eq!(lines.lines().count(), log.len() - 3);
    assert!(lines.starts_with("     4  2") && lines.contains("messageSent  user to root: hello"), "{lines}");
}

#[test]
fn the_log_can_be_followed() {
    let home = Home::new();
    let served = home.serve(&[]);
    let mut child = home.command(&["log", "--follow", "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str::<Recorded>(&line.unwrap()).unwrap());
    assert_eq!(lines.next().unwrap().seq.0, 1);
    served.post("/api/submit", &json!({ "text": "hello" }));
    let mut last = 1;
    for recorded in lines.by_ref() {
        last += 1;
        assert_eq!(recorded.seq.0, last);
        if super::support::is_ending(&recorded) {
            break;
        }
    }
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_thread_is_shown_with_its_phase_and_in_the_documents_shape() {
    let home = Home::new();
    home.polis(&["run", "--conversation", "root", "hello"]).ok();
    let shown = home.polis(&["show", "root"]).ok();
    assert!(shown.starts_with("root  (phase initial_phase, 2 messages)\n[0] user  2"), "{shown}");
    assert!(shown.contains("    hello\n[1] bot  2"), "{shown}");
    let json = home.polis(&["show", "root", "--json"]).ok();
    let thread: Thread = serde_json::from_str(&json).unwrap();
    assert_eq!(thread.messages[0].text, "hello");
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["settings"], json!({ "briefStatus": { "phase": "initial_phase" } }));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_trouble() {
    let home = Home::new();
    home.polis(&["run", "hello"]).ok();
    let mut child = home.command(&["log", "--json"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}
