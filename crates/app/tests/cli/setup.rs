//! Setting a folder up: `polis init`, `polis new skill` and `new tool`, and what `polis doctor` says to do next.

use std::fs;
use std::io::Write;
use std::process::Command;

use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Done, Home};
use super::terminal::Terminal;

/// Without trusting everything, as a person has it.
fn polis(home: &Home, args: &[&str]) -> Done {
    let mut command = home.command(args);
    command.env_remove("POLIS_TRUST");
    Done::from(command.output().unwrap())
}

fn next(home: &Home) -> String {
    let said = polis(home, &["doctor"]).stdout;
    said.lines().last().and_then(|line| line.strip_prefix("Try this next: ")).unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn init_without_a_terminal_takes_options_and_defaults_and_trusts_what_it_wrote() {
    let home = Home::new();
    fs::create_dir(home.path().join("notes")).unwrap();
    polis(&home, &["init"]).ok();
    let text = fs::read_to_string(home.path().join("polis.toml")).unwrap();
    assert!(
        text.contains("\n# model = ") && text.contains("\nworkspace = \".\"") && text.contains("\ncommands = false"),
        "{text}"
    );
    // A second time nothing is touched.
    polis(&home, &["init", "--allow", "both"]).fails(1, "already_there");
    assert_eq!(fs::read_to_string(home.path().join("polis.toml")).unwrap(), text);
    fs::remove_file(home.path().join("polis.toml")).unwrap();
    polis(&home, &["init", "--model", "offline", "--workspace", "notes", "--allow", "web"]).ok();
    let done = polis(&home, &["run", "what is 6 * 7?"]);
    assert!(!done.stderr.contains("not trusted"), "{}", done.stderr);
    assert!(done.ok().contains("42"));
    let listed = polis(&home, &["tools"]).ok();
    assert!(listed.contains("fetch") && !listed.contains("run_command"), "{listed}");
}

#[test]
fn init_refuses_what_cannot_be_meant_and_writes_nothing() {
    let home = Home::new();
    for (args, code) in [(&["--model", "opnai/x"][..], "bad_model"), (&["--workspace", "missing"], "bad_workspace")] {
        polis(&home, &[&["init"], args].concat()).fails(2, code);
    }
    assert_eq!(polis(&home, &["init", "--allow", "all"]).code, 2);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    // A key may come later.
    let done = polis(&home, &["init", "--model", "openai/gpt-5"]);
    assert!(done.stderr.contains("OPENAI_API_KEY"), "{}", done.stderr);
    assert!(fs::read_to_string(home.path().join("polis.toml")).unwrap().contains("model = \"openai/gpt-5\""));
}

#[test]
fn init_asks_three_questions_at_a_terminal() {
    let home = Home::new();
    let mut terminal = Terminal::start(home.command(&["init"]));
    terminal.until("1. Which model, as vendor/name? [offline] ");
    terminal.types("\n");
    terminal.until("2. Which folder");
    terminal.types("\n");
    terminal.until("3. What else");
    terminal.types("commands\n");
    terminal.until("wrote polis.toml");
    assert_eq!(terminal.ends(), Some(0));
    let text = fs::read_to_string(home.path().join("polis.toml")).unwrap();
    assert!(text.contains("commands = true") && text.contains("workspace = \".\""), "{text}");
}

#[test]
fn doctor_ends_with_the_command_that_helps_most() {
    let home = Home::new();
    assert_eq!(next(&home), "polis init");
    polis(&home, &["init", "--model", "ollama/x"]).ok();
    assert_eq!(next(&home), "polis run \"what can you do here?\"");
    polis(&home, &["run", "--model", "offline", "hello"]).ok();
    assert_eq!(next(&home), "polis serve");
    home.write("polis.toml", "model = \"offline\"\n");
    assert_eq!(next(&home), "polis trust");
    polis(&home, &["trust", "--yes"]).ok();
    fs::create_dir(home.path().join("sops")).unwrap();
    home.write("sops/bad.md", "nothing\n");
    polis(&home, &["trust", "--yes"]).ok();
    assert_eq!(next(&home), "polis check");
    let report: Value = serde_json::from_str(&polis(&home, &["doctor", "--json"]).stdout).unwrap();
    assert_eq!(report["next"], "polis check");
}

#[test]
fn a_new_skill_is_used_at_once() {
    let home = Home::new();
    polis(&home, &["new", "skill", "Monthly Report"]).ok();
    let listed = polis(&home, &["skills"]).ok();
    assert!(listed.starts_with("monthly-report ") && !listed.contains("not used"), "{listed}");
    polis(&home, &["check"]).ok();
    polis(&home, &["new", "skill", "monthly-report"]).fails(1, "already_there");
    polis(&home, &["new", "skill", "../x"]).fails(2, "bad_name");
}

#[test]
fn a_new_tool_can_be_called_at_once() {
    let home = Home::new();
    home.write("polis.toml", "# mine\n");
    polis(&home, &["trust", "--yes"]).ok();
    polis(&home, &["new", "tool", "word_count"]).ok();
    assert!(fs::read_to_string(home.path().join("polis.toml")).unwrap().starts_with("# mine\n\n[mcp.word_count]\n"));
    let twice = polis(&home, &["new", "tool", "word_count"]);
    assert!(twice.stderr.contains("or choose another name (already_there)"), "{}", twice.stderr);
    twice.fails(1, "already_there");
    polis(&home, &["new", "tool", "Word Count"]).fails(2, "bad_name");
    if Command::new("python3").arg("--version").output().is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: a_new_tool_can_be_called_at_once: there is no python3");
        return;
    }
    let model = ModelServer::start(vec![
        Reply::Call("word_count__word_count", json!({ "text": "one two three" })),
        Reply::Say(&["three"]),
    ]);
    let mut command = home.command(&["run", "--approve", "never", "how many words?"]);
    model.set(command.env_remove("POLIS_TRUST"));
    let done = Done::from(command.output().unwrap());
    assert!(!done.stderr.contains("not trusted"), "{}", done.stderr);
    done.ok();
    let log = home.polis(&["log", "--json"]).ok();
    assert!(log.contains("3 words"), "{log}");
}
