//! `polis serve`.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::json;

use super::model::{ModelServer, Reply};
use super::support::{Done, Home, http, is_ending};

#[test]
fn a_server_says_where_it_is_answers_and_keeps_what_it_was_told() {
    let home = Home::new();
    let served = home.serve(&[]);
    let (status, health) = http(&served.address, "GET", "/api/health", None, "");
    assert_eq!(
        (status, &health["status"], &health["model"]),
        (200, &json!("ok"), &json!({ "name": "offline", "offline": true }))
    );
    assert_eq!(http(&served.address, "GET", "/api/agents", None, "").1["code"], json!("unauthorized"));

    let (status, accepted) = served.post("/api/submit", &json!({ "text": "hello" }));
    assert_eq!(status, 200);
    served.until(is_ending);
    let target = format!("/api/messages/{}", accepted["taskId"].as_str().unwrap());
    let (_, messages) = served.get(&target);
    assert_eq!(messages["messages"].as_array().unwrap().len(), 1);
    assert_eq!(messages["messages"][0]["from"], accepted["conversation"]);

    let token = served.token.clone();
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("offline model") && said.contains("polis stopped"), "{said}");

    let again = home.serve(&[]);
    assert_eq!(again.token, token, "the token stays");
    assert_eq!(again.get(&target).1, messages);
    again.kill();
    let third = home.serve(&[]);
    assert_eq!(third.get(&target).1, messages, "a killed server leaves nothing that stands in the way");
}

/// Whoever looks after programs is to see it, and to start it again.
#[cfg(unix)]
#[test]
fn a_server_whose_log_was_taken_away_says_so_and_ends() {
    let home = Home::new();
    let served = home.serve(&[]);
    served.post("/api/submit", &json!({ "text": "hello" }));
    served.until(is_ending);
    std::fs::rename(home.data().join("polis.db"), home.data().join("elsewhere.db")).unwrap();
    let (status, problem) = served.post("/api/submit", &json!({ "text": "are you there?" }));
    assert_eq!((status, &problem["code"]), (503, &json!("log_conflict")));
    let (code, said) = served.ends();
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("log_conflict"), "{said}");
}

#[cfg(unix)]
#[test]
fn the_token_is_long_and_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let served = home.serve(&[]);
    let token = home.data().join("token");
    assert_eq!(std::fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(home.data()).unwrap().permissions().mode() & 0o777, 0o700);
    let text = std::fs::read_to_string(token).unwrap();
    assert_eq!(Some(text.trim()), served.token.as_deref());
    assert!(text.trim().len() == 64 && text.trim().bytes().all(|byte| byte.is_ascii_hexdigit()));
}

#[test]
fn only_who_says_so_opens_the_door() {
    let home = Home::new();
    home.polis(&["serve", "--listen", "0.0.0.0:0"]).fails(2, "not_loopback");
    home.polis(&["serve", "--listen", "0.0.0.0:0", "--no-auth", "--insecure-listen"]).fails(2, "no_auth_not_loopback");
    home.polis(&["serve", "--listen", "somewhere"]).fails(2, "bad_listen");
    let served = home.serve(&["--no-auth"]);
    assert_eq!(served.token, None);
    assert_eq!(served.get("/api/agents").0, 200);
    assert!(served.stop().1.contains("WARNING: --no-auth"));
}

#[test]
fn a_taken_port_is_an_error_and_nothing_runs() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    home.polis(&["serve", "--listen", &address]).fails(1, "port_taken");
    assert_eq!(home.log(), [], "not even begun");
}

/// R173: with a person at the console, the console goes on.
#[cfg(unix)]
#[test]
fn with_a_taken_port_the_console_goes_on_on_a_terminal() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut child = home.command(&["serve", "--listen", &address]).stdin(theirs).spawn().unwrap();
    let mut keyboard = File::from(ours);
    keyboard.write_all(b"hello\n").unwrap();
    let mut answer = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    assert!(answer.contains("offline model"), "{answer}");
    keyboard.write_all(b"/quit\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("(port_taken)") && said.contains("continuing in this console, without HTTP"), "{said}");
}

/// D13: what waits for a person holds nothing up; the summary tells what goes on later.
#[test]
fn a_server_that_stops_tells_its_streams_why_and_sums_up_what_is_unfinished() {
    let home = Home::new();
    home.write("polis.toml", "[[policy]]\ntool = \"write_file\"\nthen = \"ask\"\n");
    let model = ModelServer::start(vec![Reply::Call("write_file", json!({ "path": "a.txt", "content": "x" }))]);
    let served = home.serve_with(&[], |command| model.set(command));
    let (_, first) = served.post("/api/submit", &json!({ "text": "first" }));
    while served.get("/api/approvals").1["approvals"].as_array().unwrap().is_empty() {
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    served.post("/api/submit", &json!({ "text": "second", "conversation": first["conversation"] }));
    let stream = served.stream("/api/events");
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("1 turn and 1 pending message continue at the next start"), "{said}");
    let told: Vec<String> = stream.lines().map(Result::unwrap).collect();
    let word = told.iter().position(|line| line == "event: stopping").unwrap_or_else(|| panic!("{told:?}"));
    assert_eq!(told[word + 1], r#"data: {"reason":"stopped"}"#);
    assert!(!home.path().join("a.txt").exists());
}

#[test]
fn a_second_signal_ends_a_server_that_still_waits_for_its_turns() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Hang]);
    let mut served = home.serve_with(&[], |command| model.set(command));
    served.post("/api/submit", &json!({ "text": "x", "conversation": "root" }));
    model.wait();
    served.signal(Signal::INT);
    assert!(served.said().any(|line| line.contains("press Ctrl-C again to stop immediately")));
    // From then on nothing new is taken in; what comes while it is being said still may be.
    let mut tries = (0..100).map(|_| served.post("/api/submit", &json!({ "text": "y" })));
    let (status, refused) = tries.find(|(status, _)| *status != 200).unwrap();
    assert_eq!((status, &refused["code"]), (503, &json!("stopping")));
    served.signal(Signal::TERM);
    assert_eq!(served.wait().0, 130);
    assert_eq!(home.polis(&["agents"]).ok().split_whitespace().nth(1), Some("running"), "its turn is owed at the next start");
}

/// The tokens of others: made, shown once, good for what they are for, and revoked while the server runs.
#[test]
fn a_token_for_others_does_what_it_may_until_it_is_revoked() {
    let home = Home::new();
    home.polis(&["token", "list"]).fails(1, "no_data");
    for command in [&["token", "list"][..], &["token", "new", "--name", "x"], &["token", "revoke", "x"]] {
        home.polis(&[&["--url", "http://127.0.0.1:9"], command].concat()).fails(2, "bad_url");
    }
    let served = home.serve(&[]);
    let made = home.polis(&["token", "new", "--name", "bot", "--scope", "read,send"]).ok();
    let token = made.trim();
    let asked = |method: &str, target: &str, body: &str| http(&served.address, method, target, Some(token), body);
    assert_eq!(asked("GET", "/api/agents", "").0, 200);
    assert_eq!(asked("POST", "/api/submit", "{\"text\":\"hello\"}").0, 200);
    assert_eq!(asked("POST", "/api/agents/root/terminate", "{}").1["code"], json!("missing_scope"));
    // In the server's own folder too, the token that is named counts.
    let named = home.command(&["terminate", "root"]).env("POLIS_TOKEN", token).output().unwrap();
    Done::from(named).fails(1, "missing_scope");
    home.polis(&["token", "new", "--name", "bot"]).fails(1, "token_exists");
    home.polis(&["token", "new", "--name", "b", "--scope", "write"]).fails(2, "bad_scope");
    assert_eq!(home.polis(&["token", "list"]).ok().trim(), "bot  read,send");
    assert!(!std::fs::read_to_string(home.data().join("tokens.json")).unwrap().contains(token));
    home.polis(&["token", "revoke", "bot"]).ok();
    home.polis(&["token", "revoke", "bot"]).fails(1, "unknown_token");
    while asked("GET", "/api/agents", "").0 != 401 {
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    }
}

/// Encrypted from end to end: the command line trusts whom it is told to, and nobody else.
#[test]
fn with_a_certificate_the_command_line_still_finds_its_server() {
    let home = Home::new();
    let file = |name: &str| format!("{}/../server/tests/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", &file("certificate.pem")]);
    let mut child = command.args(["--tls-key", &file("key.pem")]).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.starts_with("polis is listening on https://127.0.0.1:"), "{ready}");
    home.polis(&["agents"]).fails(1, "bad_certificate");
    let mut trusting = home.command(&["agents"]);
    let done = trusting.env("POLIS_TLS_CA", file("authority.pem")).output().unwrap();
    assert!(String::from_utf8_lossy(&done.stdout).contains("root"), "{}", String::from_utf8_lossy(&done.stderr));
    super::support::signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    home.polis(&["serve", "--tls-cert", &file("key.pem"), "--tls-key", &file("key.pem")]).fails(2, "bad_certificate");
}
