//! Commands and pages, offered by the configuration and kept from what governs them.

use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Done, Home};

fn settings(model: &ModelServer, tools: &str) -> String {
    format!("model = \"openai/x\"\n[tools]\n{tools}\n[providers.openai]\nbase_url = \"{}\"\n", model.base_url())
}

fn offered(model: &ModelServer) -> Vec<String> {
    let requests = model.requests.lock().unwrap();
    let tools = requests[0].1["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn commands_and_pages_are_offered_only_where_the_configuration_says_so() {
    let home = Home::new();
    for (tools, want) in [("", [false, false]), ("commands = true", [true, false]), ("fetch = true", [false, true])] {
        let model = ModelServer::start(vec![Reply::Say(&["hello"])]);
        home.write("polis.toml", &settings(&model, tools));
        home.polis(&["run", "hi"]).ok();
        let offered = offered(&model);
        assert_eq!(["run_command", "fetch_url"].map(|tool| offered.iter().any(|name| name == tool)), want, "{tools}");
    }
    for (tools, want) in
        [("fetch_allow = [\"a b\"]", "`a b` is no host"), ("commands = true\nreadable = [\"x\"]", "not an absolute")]
    {
        let model = ModelServer::start(vec![]);
        home.write("polis.toml", &settings(&model, tools));
        let refused = home.polis(&["run", "hi"]);
        assert!(refused.code == 2 && refused.stderr.contains(want), "{}", refused.stderr);
        let ill = home.polis(&["doctor"]);
        assert!(ill.code == 1 && ill.stdout.contains("BAD  tools      in [tools] of polis.toml"), "{}", ill.stdout);
        assert!(ill.stdout.contains(want), "{}", ill.stdout);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_runs_in_the_workspace_and_sees_neither_the_data_nor_a_key() {
    let home = Home::new();
    let doctor: Value = serde_json::from_str(&home.polis(&["doctor", "--json"]).ok()).unwrap();
    let sandbox = doctor["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == "sandbox").unwrap();
    let found = sandbox["found"].as_str().unwrap();
    if found.contains("too little") || found.starts_with("none") {
        use std::io::Write;
        let _ = writeln!(
            std::io::stderr(),
            "skipped: a_command_runs_in_the_workspace_and_sees_neither_the_data_nor_a_key: {found}"
        );
        return;
    }
    assert!(found.contains("seccomp") && found.contains("commands are not offered"), "{found}");
    home.write("a.txt", "hello\n");
    let command = "cat a.txt; cat .polis/* polis.toml; env; cat /proc/*/environ | tr '\\0' '\\n'; ls -A";
    let model = ModelServer::start(vec![Reply::Call("run_command", json!({ "command": command })), Reply::Repeat]);
    home.write("polis.toml", &settings(&model, "commands = true\nenvironment = [\"OPENAI_API_KEY\"]"));
    let mut run = home.command(&["run", "go", "--approve", "all"]);
    let done = Done::from(run.env("OPENAI_API_KEY", "the-key").env("POLIS_DATA", ".polis").output().unwrap());
    let said = done.ok();
    assert!(said.contains("exit status 0") && said.contains("\nhello\n") && said.contains("HOME="), "{said}");
    for secret in ["OPENAI_API_KEY", "the-key", "POLIS_", "base_url", "SQLite"] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_ends_when_polis_is_killed() {
    let home = Home::new();
    let mark = format!("7{}", std::process::id());
    let command = format!("setsid sleep {mark} & echo x > begun; sleep {mark}");
    let model = ModelServer::start(vec![Reply::Call("run_command", json!({ "command": command }))]);
    // Where there are no namespaces, nothing new can be made beside the data.
    let private = home.path().join("private");
    std::fs::create_dir(home.path().join("work")).unwrap();
    std::fs::create_dir(&private).unwrap();
    let settings = settings(&model, "commands = true");
    home.write("polis.toml", &format!("workspace = \"work\"\n{settings}"));
    let mut run = home.command(&["run", "go", "--approve", "all"]);
    let mut run = run.env("OPENAI_API_KEY", "k").env("TMPDIR", &private).spawn().unwrap();
    until(|| home.path().join("work/begun").exists());
    run.kill().unwrap();
    run.wait().unwrap();
    let is_running = || {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let mut lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.any(|line| String::from_utf8_lossy(&line).contains(&mark))
    };
    until(|| !is_running());
    until(|| std::fs::read_dir(&private).unwrap().count() == 0);
}

/// Looks again and again, for two minutes at most.
#[cfg(target_os = "linux")]
pub(crate) fn until(holds: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed().as_secs() < 120, "it never came to hold");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
