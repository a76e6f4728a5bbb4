//! A program with agents of its own is `polis` with these agents: `examples/own_agent.rs`.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::support::{Done, Home, Served, is_ending};

/// The program, as `polis` would be started.
fn own(home: &Home, args: &[&str]) -> Command {
    let like = home.command(args);
    let folder = Path::new(like.get_program()).parent().unwrap();
    let mut command = Command::new(folder.join("examples/own_agent"));
    for (name, value) in like.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(args).current_dir(home.path()).stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command
}

#[test]
fn without_arguments_it_serves_its_agents_to_every_client() {
    let home = Home::new();
    home.write("polis.toml", "listen = \"127.0.0.1:0\"\n");
    let served = Served::start(own(&home, &[]));
    let (status, accepted) = served.post("/api/submit", &json!({ "text": "carefully: what is 6 * 7?" }));
    assert_eq!(status, 200, "{accepted}");
    let id = loop {
        let (_, waiting) = served.get("/api/approvals");
        match waiting["approvals"][0]["id"].as_str() {
            Some(id) => break id.to_owned(),
            None => sleep(Duration::from_millis(20)),
        }
    };
    // The program of everybody talks to it.
    home.polis(&["approve", &id]).ok();
    let answer = home.polis(&["run", "what is 6 * 7?"]).ok();
    assert!(answer.starts_with("carefully: ") && answer.contains("42"), "{answer}");
    let (_, agents) = served.get("/api/agents");
    assert_eq!(agents["agents"][0]["roleId"], json!("root"), "{agents}");
    let (_, models) = served.get("/v1/models");
    assert!(models["data"].as_array().unwrap().iter().any(|model| model["id"] == "polis"), "{models}");
    assert_eq!(served.stop().0, 0);
}

#[test]
fn with_arguments_it_is_any_command_and_polis_says_what_runs_its_data() {
    let home = Home::new();
    let answer = Done::from(own(&home, &["run", "what is 6 * 7?"]).output().unwrap()).ok();
    assert!(answer.starts_with("carefully: ") && answer.contains("42"), "{answer}");
    let without = home.polis(&["run", "--continue", "what is 2 + 3?"]);
    assert!(without.code != 0 && without.stderr.contains("(no_behaviour)"), "{}{}", without.stdout, without.stderr);
    assert!(without.stderr.contains("polis::serve"), "{}", without.stderr);
    // The turn goes on where the code is.
    let done = Done::from(own(&home, &["run", "--continue", "what is 3 + 4?"]).output().unwrap()).ok();
    assert!(done.starts_with("carefully: ") && done.contains('7'), "{done}");
    let ended = home.log().into_iter().filter(is_ending).filter_map(|recorded| recorded.event.envelope().cloned());
    let texts: Vec<_> = ended.map(|envelope| envelope.payload.text.to_string()).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts.iter().any(|text| text.starts_with("carefully: ") && text.contains('5')), "{texts:?}");
}
