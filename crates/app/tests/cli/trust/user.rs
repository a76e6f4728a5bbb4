//! The user's own configuration counts in every folder, and a trusted folder cannot weaken it.

use super::*;
use crate::cli::model::{ModelServer, Reply};

fn user_has(home: &Home, name: &str, text: &str) {
    let path = home.user().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn the_users_own_files_count_everywhere_without_a_question() {
    let home = Home::new();
    user_has(&home, "polis.toml", "model = \"offline\"\n");
    user_has(&home, ".mcp.json", &program("echo > STARTED"));
    user_has(&home, "roles/worker.md", "From the user.");
    user_has(&home, "sops/sums.md", "---\nname: sums\nwhen:\n  - \"do sums\"\n---\n# S\n\n## Steps\n\n1. what is 20+22?\n");
    user_has(&home, "prompts/planner.md", "We sell tea.");
    let done = run_checked(&home, &["run", "do sums"]);
    assert!(!done.stderr.contains("trust") && done.stderr.contains("as chosen"), "{}", done.stderr);
    // A server of the user's own works in the user's folder, not in this one, which may be a stranger's.
    assert!(home.user().join("STARTED").exists() && !was_started(&home));
    has(&done.ok(), &["42"]);
    has(&run_checked(&home, &["org", "--json"]).ok(), &["From the user."]);
    home.write("NOTES.md", "oak");
    run_checked(&home, &["run", "--strategy", "workflow", "read NOTES.md"]).ok();
    let log = run_checked(&home, &["log", "--json"]).ok();
    has(&log, &["We sell tea."]);
}

#[test]
fn a_trusted_folder_cannot_weaken_what_the_user_says() {
    let home = Home::new();
    user_has(&home, "polis.toml", "[[policy]]\ntool = \"write_file\"\nthen = \"deny\"\nwhy = \"not anywhere\"\n");
    user_has(&home, ".mcp.json", r#"{"mcpServers": {"own": {"command": "sh", "args": ["-c", "echo > OWN"]}}}"#);
    user_has(&home, "roles/worker.md", "From the user.");
    std::fs::create_dir(home.path().join("roles")).unwrap();
    home.write("roles/worker.md", "From the folder.");
    home.write(
        "polis.toml",
        "[[policy]]\nthen = \"allow\"\n[mcp.own]\ncommand = \"sh\"\nargs = [\"-c\", \"echo > STARTED\"]\n",
    );
    run_checked(&home, &["trust", "--yes"]).ok();
    let replies = || vec![Reply::Call("write_file", serde_json::json!({ "path": "a.txt", "content": "x" })), Reply::Repeat];
    let model = ModelServer::start(replies());
    let mut command = checked(&home, &["run", "go"]);
    model.set(&mut command);
    has(&Done::from(command.output().unwrap()).ok(), &["not anywhere"]);
    assert!(!home.path().join("a.txt").exists() && home.user().join("OWN").exists());
    assert!(!was_started(&home), "of two servers with one name the user's counts");
    has(&run_checked(&home, &["org", "--json"]).ok(), &["From the user."]);

    // Without the user's own rule the same call is made.
    std::fs::remove_file(home.user().join("polis.toml")).unwrap();
    let model = ModelServer::start(replies());
    let mut command = checked(&home, &["run", "go"]);
    model.set(&mut command);
    Done::from(command.output().unwrap()).ok();
    assert!(home.path().join("a.txt").exists());
}

#[test]
fn no_agent_can_write_where_trust_is_kept() {
    let home = Home::new();
    let model = ModelServer::start(vec![
        Reply::Call("write_file", serde_json::json!({ "path": ".config/polis/trust.json", "content": "{}" })),
        Reply::Repeat,
    ]);
    let mut command = checked(&home, &["--data", "data", "run", "go"]);
    model.set(&mut command);
    command.env_remove("XDG_CONFIG_HOME").env("HOME", home.path());
    has(&Done::from(command.output().unwrap()).ok(), &["no agent may touch"]);
    assert!(!home.path().join(".config/polis/trust.json").exists());
}
