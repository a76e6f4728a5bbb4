//! Servers that crash, hang, lie, flood or never come up: each stays its own trouble.

use std::time::Duration;

use polis_ports::{ServerState, ServerWait, Toolbox};
use polis_tools::mcp::{McpOptions, McpServers, ServerSettings, ServerTransport};
use serde_json::json;

use super::{PATIENCE, acting, bad, good, names, open, open_with, options, states, until};

#[tokio::test]
async fn a_server_that_crashes_in_a_call_is_started_again() {
    let servers = open([acting("good"), acting("liar")]).await;
    let said = bad(&servers, "good__crash", json!({})).await;
    assert!(said.contains("whether anything was done is not known"), "{said}");
    assert_eq!(good(&servers, "liar__echo", json!({})).await, "{}", "the other one did not notice");
    until("it is there again", || names(&servers).contains(&"good__echo".to_owned())).await;
    assert_eq!(good(&servers, "good__echo", json!({})).await, "{}");
}

#[tokio::test]
async fn a_tool_that_hangs_is_given_up_and_its_server_stays() {
    let servers = open([ServerSettings { timeout: Duration::from_millis(200), ..acting("good") }]).await;
    let said = bad(&servers, "good__hang", json!({})).await;
    assert!(said.contains("no sign of life for 0.2 s"), "{said}");
    assert_eq!(good(&servers, "good__told", json!({})).await, "1", "the same server, which was told");
}

#[tokio::test]
async fn a_server_that_hangs_altogether_is_started_again() {
    let servers = open([ServerSettings { timeout: Duration::from_millis(200), ..acting("deaf") }]).await;
    bad(&servers, "deaf__hang", json!({})).await;
    until("it is found out", || !names(&servers).contains(&"deaf__echo".to_owned())).await;
    until("it is there again", || names(&servers).contains(&"deaf__echo".to_owned())).await;
    assert_eq!(good(&servers, "deaf__echo", json!({})).await, "{}");
}

#[tokio::test]
async fn a_server_that_never_comes_up_keeps_nobody_waiting() {
    let gone = ServerSettings::new("gone", ServerTransport::command("/no/such/program", [""; 0]));
    let unset = ServerSettings::new("unset", ServerTransport::command("${POLIS_TEST_NEVER_SET}", [""; 0]));
    let unreachable =
        ServerTransport::Http { url: "http://127.0.0.1:9/mcp?key=hidden".to_owned(), headers: Default::default() };
    let strange = ServerTransport::Http { url: "file:///etc/passwd".to_owned(), headers: Default::default() };
    let (args, env) = (Vec::new(), Default::default());
    let nowhere = ServerTransport::Command { command: "true".to_owned(), args, env, cwd: Some("/no/such/folder".into()) };
    let all = [
        acting("mute"),
        gone,
        unset,
        ServerSettings::new("unreachable", unreachable),
        ServerSettings::new("strange", strange),
        ServerSettings::new("nowhere", nowhere),
        acting("good"),
    ];
    let options = McpOptions { start_timeout: Duration::from_secs(3), ..options() };
    let servers = open_with(all, options).await;
    assert_eq!(good(&servers, "good__echo", json!({})).await, "{}");
    until("all have failed", || states(&servers)[..6].iter().all(|(_, state)| *state == ServerState::Down)).await;
    let why = |place: usize| servers.servers()[place].detail.clone();
    assert!(why(0).contains("not ready after 3 s"), "{}", why(0));
    assert!(why(1).contains("`/no/such/program` cannot be started"), "{}", why(1));
    assert!(why(2).contains("POLIS_TEST_NEVER_SET is not set"), "{}", why(2));
    assert!(!why(3).is_empty() && !why(3).contains("hidden"), "{}", why(3));
    assert!(why(4).contains("neither https:// nor http://"), "{}", why(4));
    assert_eq!(why(5), "its `cwd` /no/such/folder is no folder");
}

#[tokio::test]
async fn a_turn_waits_as_long_as_the_settings_say_and_a_call_until_the_start_has_ended() {
    let impatient = ServerSettings { start_wait: Duration::ZERO, ..acting("mute") };
    let options = McpOptions { start_timeout: Duration::from_millis(500), ..options() };
    let servers = McpServers::open([impatient, acting("good")], options.clone());
    servers.wait_for_server("mute", ServerWait::Turn).await;
    assert_eq!(states(&servers)[0].1, ServerState::Starting);
    servers.wait_for_server("mute", ServerWait::Call).await;
    assert_eq!(states(&servers)[0].1, ServerState::Down);
    servers.close().await;
    let servers = McpServers::open([acting("good")], McpOptions { start_timeout: PATIENCE, ..options });
    servers.wait_for_server("good", ServerWait::Turn).await;
    assert_eq!(states(&servers)[0].1, ServerState::Connected);
    servers.wait_for_server("unknown", ServerWait::Call).await;
}

#[tokio::test]
async fn garbage_on_stdout_is_passed_over() {
    let servers = open([acting("garbage")]).await;
    assert_eq!(good(&servers, "garbage__echo", json!({ "a": 1 })).await, r#"{"a":1}"#);
}

#[tokio::test]
async fn lists_that_lie_or_never_end_are_cut() {
    let servers = open([acting("liar"), acting("endless"), acting("circling"), acting("weighty")]).await;
    let (names, count) =
        (names(&servers), |server: &str| servers.tools().iter().filter(|tool| tool.name.starts_with(server)).count());
    assert_eq!(&names[..2], ["liar__echo", "liar__nothing"]);
    assert_eq!((count("endless__"), count("circling__")), (512, 1));
    assert_eq!(count("weighty__"), 15, "more than 16 MiB are not kept");
}

#[tokio::test]
async fn a_flood_is_survived() {
    let servers = open([acting("good"), acting("pushy")]).await;
    assert_eq!(good(&servers, "good__flood", json!({})).await, "still here");
    let huge = good(&servers, "good__huge", json!({})).await;
    assert!(huge.len() < 50_000 && huge.contains("bytes are left out here]"), "{}", huge.len());
    assert!(states(&servers).contains(&("good".to_owned(), ServerState::Connected)));
    until("the pushy one is cut off", || states(&servers)[1].1 == ServerState::Down).await;
}

#[cfg(unix)]
#[tokio::test]
async fn closing_ends_what_a_server_has_started() {
    for end in ["wait", "exit 3"] {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("child");
        let script = format!("sleep 600 & echo $! > {}; {end}", note.display());
        let options =
            McpOptions { start_timeout: Duration::from_millis(300), first_pause: Duration::from_secs(60), ..options() };
        let servers = open_with([ServerSettings::new("shell", ServerTransport::command("sh", ["-c", &script]))], options).await;
        let child: i32 = std::fs::read_to_string(&note).unwrap().trim().parse().unwrap();
        servers.close().await;
        let child = rustix::process::Pid::from_raw(child).unwrap();
        until("the child of the shell has ended", || has_ended(child)).await;
    }
}

/// A zombie that nobody has reaped has ended, too.
#[cfg(unix)]
fn has_ended(process: rustix::process::Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    rustix::process::test_kill_process(process).is_err() || status.is_ok_and(|text| text.contains(") Z"))
}
