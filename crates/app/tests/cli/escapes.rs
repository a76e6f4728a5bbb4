//! What a model writes cannot steer the terminal that it is read on, nor hide anything from its reader.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::Home;

/// Sets the clipboard, clears the screen with a C1 control, turns the direction of writing, hides a tag and a joiner.
const EVIL: &str = "before\u{1b}]52;c;ZXZpbA==\u{7} \u{9b}2J \u{202e}txt.exe\u{202c} \u{e0041} a\u{200b}b after";

const PIECES: &[&str] = &["before\u{1b}]52;c;ZXZp", "bA==\u{7} \u{9b}2J \u{202e}txt.exe\u{202c} \u{e0041} a\u{200b}b after"];

/// What must not reach a terminal.
fn steers(text: &str) -> bool {
    let is_hidden = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t' | '\r'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}'..='\u{200f}' | '\u{e0000}'..='\u{e0fff}')
    };
    text.contains(is_hidden)
}

/// First a call with the same in its arguments, which is told on stderr; then the answer.
fn model() -> ModelServer {
    ModelServer::start(vec![Reply::Call("read_file", json!({ "path": EVIL })), Reply::Say(PIECES)])
}

#[test]
fn what_a_model_writes_is_made_visible_in_a_pipe_unless_it_is_wanted_raw() {
    let home = Home::new();
    let run = |args: &[&str]| {
        let model = model();
        let mut command = home.command(&[&["run", "--strategy", "simple"], args, &["hello"]].concat());
        model.set(&mut command);
        let output = command.output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (stdout, stderr) = run(&[]);
    let shown = "before\\u001b]52;c;ZXZpbA==\\u0007 \\u009b2J \\u202etxt.exe\\u202c \\udb40\\udc41 a\\u200bb after\n";
    assert_eq!(stdout, shown);
    assert!(stderr.contains("ZXZpbA==") && !steers(&stderr), "{stderr}");
    let (stdout, stderr) = run(&["--raw"]);
    assert_eq!(stdout, format!("{EVIL}\n"));
    assert!(!steers(&stderr), "{stderr}");
    let (stdout, _) = run(&["--json"]);
    assert!(!steers(&stdout), "{stdout}");
    let texts = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let answers = texts.filter(|event| event.to_string().contains("ZXZpbA==") && event.to_string().contains("answer"));
    assert!(answers.count() > 0, "JSON stays JSON, and means the same");
    for looked in [&["show", "root"][..], &["log"], &["tasks"]] {
        let stdout = home.polis(looked).ok();
        assert!(!steers(&stdout), "{looked:?}: {stdout}");
    }
}

#[test]
fn what_a_model_writes_is_made_visible_on_a_terminal_even_raw() {
    let home = Home::new();
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        writeln!(
            std::io::stderr(),
            "skipped: what_a_model_writes_is_made_visible_on_a_terminal_even_raw: there is no `script` to make a terminal"
        )
        .unwrap();
        return;
    }
    for raw in ["", "--raw"] {
        let model = model();
        let polis = env!("CARGO_BIN_EXE_polis");
        let mut command = Command::new("script");
        let line = format!("{polis} run {raw} --strategy simple hello");
        command.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(home.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("POLIS_")) {
            command.env_remove(name);
        }
        model.set(&mut command);
        let output = command.output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(shown.contains("after") && shown.contains("\\u001b]52;c;ZXZp"), "{shown}");
        assert!(!shown.contains("\u{1b}]52") && !shown.contains(['\u{9b}', '\u{202e}', '\u{7}', '\u{e0041}']), "{shown:?}");
    }
}
