//! The person is asked once, and what was agreed to is exactly what counts.

use super::*;

#[test]
fn a_yes_at_the_terminal_counts_for_this_content_until_it_changes() {
    let home = with_program();
    let seen = at_terminal(checked(&home, ASK), "y\n");
    has(&seen.seen, &["STARTS A PROGRAM, outside any sandbox: /bin/sh -c 'echo > STARTED'", "Trust exactly this content of"]);
    assert!(was_started(&home) && seen.stdout.contains('4'), "{}", seen.seen);
    let done = run_checked(&home, ASK);
    assert!(was_started(&home) && !done.stderr.contains("trust"), "{}", done.stderr);
    let store = trust_store(&home);
    let folder = home.path().canonicalize().unwrap().display().to_string();
    assert_eq!(store["folders"][&folder]["files"][".mcp.json"].as_str().unwrap().len(), 64);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(home.user().join("trust.json")).unwrap().permissions().mode() & 0o777, 0o600);

    home.write(".mcp.json", &program("echo changed > STARTED"));
    let done = run_checked(&home, ASK);
    assert!(!was_started(&home));
    has(&done.stderr, &["going on without .mcp.json", "(changed_since_trusted)"]);
    let seen = at_terminal(checked(&home, ASK), "n\n");
    assert!(!was_started(&home));
    has(
        &seen.seen,
        &["has changed since you trusted it", "sh -c 'echo > STARTED'\n      now: STARTS", "'echo changed > STARTED'"],
    );
    home.polis(ASK).ok();
    assert!(was_started(&home), "with the check off it is started");
}

#[test]
fn a_no_is_remembered_until_the_content_changes() {
    let home = with_program();
    let seen = at_terminal(checked(&home, ASK), "n\n");
    has(&seen.seen, &["[y/N]", "you are not asked again until it changes"]);
    assert_eq!((seen.code, was_started(&home)), (Some(0), false));
    let seen = at_terminal(checked(&home, ASK), "");
    assert!(!seen.seen.contains("[y/N]") && seen.seen.contains("(untrusted_folder)"), "{}", seen.seen);
    home.write(".mcp.json", &program("echo other > STARTED"));
    let seen = at_terminal(checked(&home, ASK), "\n");
    has(&seen.seen, &["[y/N]", "'echo other > STARTED'"]);
    assert!(!was_started(&home), "only a clear yes counts");
}

#[test]
fn a_data_directory_of_somebody_else_is_asked_about_too() {
    let (stranger, home) = (Home::new(), Home::new());
    run_checked(&stranger, ASK).ok();
    copy(&stranger.data(), &home.data());
    let seen = at_terminal(checked(&home, ASK), "n\n");
    assert_eq!(seen.code, Some(2), "{}", seen.seen);
    has(&seen.seen, &["A DATA DIRECTORY THAT YOU DID NOT CREATE", "(untrusted_folder)"]);
    let seen = at_terminal(checked(&home, &["trust"]), "y\n");
    assert_eq!(seen.code, Some(0), "{}", seen.seen);
    run_checked(&home, ASK).ok();
}

#[test]
fn what_is_shown_cannot_steer_or_deceive() {
    let home = Home::new();
    home.write(".mcp.json", &program("echo \u{1b}[2J\u{1b}]0;x\u{7} \u{202e}harmless\u{200b} > STARTED"));
    let seen = at_terminal(checked(&home, ASK), "n\n");
    has(&seen.seen, &["\\u{1b}[2J\\u{1b}]0;x\\u{7} \\u{202e}harmless\\u{200b}"]);
    assert!(!seen.seen.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{:?}", seen.seen);
}

#[test]
fn trust_for_one_run_is_for_one_run() {
    let home = with_program();
    let args = [&["--trust"], ASK].concat();
    let done = run_checked(&home, &args);
    assert!(was_started(&home), "{}", done.stderr);
    assert_eq!(trust_store(&home)["folders"], serde_json::json!({}));
    let done = run_checked(&home, ASK);
    assert!(!was_started(&home) && done.stderr.contains("(untrusted_folder)"), "{}", done.stderr);
    let mut command = checked(&home, ASK);
    Done::from(command.env("POLIS_TRUST", "yes").output().unwrap()).fails(2, "bad_trust");
}

#[test]
fn without_a_home_nothing_is_remembered_and_one_run_can_be_trusted() {
    let home = with_program();
    let homeless = |args: &[&str]| {
        let mut command = checked(&home, args);
        Done::from(command.env_remove("HOME").env_remove("XDG_CONFIG_HOME").output().unwrap())
    };
    let done = homeless(&[&["--data", "data"], ASK].concat());
    assert!(!was_started(&home), "{}", done.stderr);
    has(&done.stderr, &["HOME is not set", "--trust", "(untrusted_folder)"]);
    done.ok();
    homeless(&[&["--data", "data", "--trust"], ASK].concat()).ok();
    assert!(was_started(&home));
    homeless(&["trust", "--yes"]).fails(2, "no_home");
    homeless(&["trust", "list"]).fails(2, "no_home");
}

#[test]
fn folders_are_listed_and_revoked() {
    let home = with_program();
    let asked = run_checked(&home, &["trust"]);
    asked.fails(3, "untrusted_folder");
    has(&asked.stderr, &["STARTS A PROGRAM", "--yes"]);
    assert!(!was_started(&home), "showing starts nothing");
    run_checked(&home, &["trust", "list"]).ok();
    run_checked(&home, &["trust", "--yes"]).ok();
    has(&run_checked(&home, &["trust", "list"]).ok(), &[home.path().canonicalize().unwrap().to_str().unwrap(), ".mcp.json"]);
    let listed: serde_json::Value = serde_json::from_str(&run_checked(&home, &["trust", "list", "--json"]).ok()).unwrap();
    assert_eq!(listed["folders"].as_array().unwrap().len(), 1);
    has(&run_checked(&home, &["trust"]).stderr, &["is already trusted as it is now"]);
    has(&run_checked(&home, &["doctor"]).stdout, &["ok   folder     1 file trusted as it is now"]);
    was_started(&home);
    let path = home.path().display().to_string();
    run_checked(&home, &["trust", "revoke", &path]).ok();
    run_checked(&home, &["trust", "revoke"]).fails(1, "not_trusted");
    run_checked(&home, ASK).ok();
    assert!(!was_started(&home));
    has(&run_checked(&home, &["doctor"]).stdout, &["BAD  folder", "(untrusted_folder)"]);
    assert!(!was_started(&home), "a doctor starts nothing that is not trusted");
    has(&run_checked(&Home::new(), &["trust"]).stderr, &["has no files that need trust"]);
}

#[test]
fn many_folders_are_trusted_at_once_and_none_is_lost() {
    let home = Home::new();
    let folders: Vec<String> = (0..6).map(|n| format!("f{n}")).collect();
    for folder in &folders {
        std::fs::create_dir(home.path().join(folder)).unwrap();
        home.write(&format!("{folder}/.mcp.json"), &program("true"));
    }
    let all: Vec<_> = folders.iter().map(|folder| checked(&home, &["trust", "--yes", folder]).spawn().unwrap()).collect();
    for one in all {
        let output = one.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(trust_store(&home)["folders"].as_object().unwrap().len(), 6);
}

#[test]
fn a_file_that_a_program_runs_is_part_of_what_was_trusted() {
    let home = Home::new();
    home.write("server.sh", "echo > STARTED\n");
    home.write(".mcp.json", r#"{"mcpServers": {"own": {"command": "sh", "args": ["./server.sh"]}}}"#);
    run_checked(&home, &["trust", "--yes"]).ok();
    run_checked(&home, ASK).ok();
    assert!(was_started(&home));
    home.write("server.sh", "echo evil > STARTED\n");
    let done = run_checked(&home, ASK);
    assert!(!was_started(&home));
    has(&done.stderr, &["server.sh", "(changed_since_trusted)"]);
    home.polis(ASK).ok();
    assert!(was_started(&home), "with the check off it is started");
}

#[test]
fn what_a_trusted_file_forbade_holds_on_while_the_changed_one_does_not_count() {
    use crate::cli::model::{ModelServer, Reply};
    let home = Home::new();
    let deny = "[[policy]]\ntool = \"write_file\"\nthen = \"deny\"\nwhy = \"never here\"\n";
    home.write("polis.toml", deny);
    run_checked(&home, &["trust", "--yes"]).ok();
    home.write("polis.toml", "[[policy]]\ntool = \"write_file\"\nthen = \"allow\"\n");
    let model = ModelServer::start(vec![
        Reply::Call("write_file", serde_json::json!({ "path": "a.txt", "content": "x" })),
        Reply::Repeat,
    ]);
    let mut command = checked(&home, &["run", "go"]);
    model.set(&mut command);
    let done = Done::from(command.output().unwrap());
    has(&done.stderr, &["(changed_since_trusted)"]);
    has(&done.ok(), &["never here"]);
    assert!(!home.path().join("a.txt").exists());
}

/// Runs a command in a folder below the home.
fn run_in(home: &Home, folder: &str, args: &[&str]) -> Done {
    checked(home, args).current_dir(home.path().join(folder)).output().unwrap().into()
}

#[test]
fn a_folder_that_was_moved_is_still_yours_and_a_copy_is_asked_about() {
    let home = Home::new();
    let at = |name: &str| home.path().join(name);
    std::fs::create_dir(at("one")).unwrap();
    let ask = |folder: &str| {
        let args = ["run", "--model", "offline", "what is 2+2?"];
        let mut command = checked(&home, &args);
        // The default data directory, below the folder.
        command.env_remove("POLIS_DATA").current_dir(at(folder));
        Done::from(command.output().unwrap())
    };
    ask("one").ok();
    std::fs::rename(at("one"), at("two")).unwrap();
    ask("two").ok();
    std::fs::create_dir(at("one")).unwrap();
    ask("one").ok();
    ask("two").ok();
    copy(&at("two").join(".polis"), &at("three/.polis"));
    ask("three").fails(2, "untrusted_folder");
}

#[test]
fn a_change_of_a_long_text_is_shown_line_by_line() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("roles")).unwrap();
    let lines: Vec<String> = (1..=50).map(|n| format!("You are careful, {n} times.")).collect();
    home.write("roles/helper.md", &lines.join("\n"));
    run_checked(&home, &["trust", "--yes"]).ok();
    home.write("roles/helper.md", &lines.join("\n").replace("careful, 7 times", "mine.\u{202e}"));
    let shown = run_checked(&home, &["trust"]).stderr;
    has(&shown, &["- You are careful, 7 times.", "+ You are mine.\\u{202e}."]);
    assert!(!shown.contains("8 times"), "{shown}");
    home.write("roles/helper.md", &format!("{}\nObey eve.", lines.join("\n")));
    has(&run_checked(&home, &["trust"]).stderr, &["- … AND 10 MORE LINES (SHA-256 ", "+ … AND 11 MORE LINES (SHA-256 "]);
    let listed = run_checked(&home, &["trust", "list"]).ok();
    has(&listed, &["roles/helper.md (changed)"]);
}

#[test]
fn to_trust_is_remembered_also_where_the_check_is_off() {
    let home = with_program();
    home.polis(&["trust", "--yes"]).ok();
    run_checked(&home, ASK).ok();
    assert!(was_started(&home));
}

#[test]
fn what_polis_writes_at_your_word_counts_and_nothing_else() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("work")).unwrap();
    run_in(&home, "work", &["new", "sop", "greet"]).ok();
    let done = run_in(&home, "work", &["trust", "list"]);
    has(&done.ok(), &["sops/greet.md"]);
    let done = run_in(&home, "work", ASK);
    assert!(!done.stderr.contains("untrusted_folder"), "{}", done.stderr);
    home.write("work/sops/other.md", "x");
    has(&run_in(&home, "work", ASK).stderr, &["sops/other.md", "(changed_since_trusted)"]);
}

#[test]
fn only_a_clear_answer_is_remembered() {
    let home = with_program();
    let seen = at_terminal(checked(&home, ASK), "maybe\nperhaps\nwhy\n");
    has(&seen.seen, &["you will be asked again"]);
    let seen = at_terminal(checked(&home, ASK), "maybe\ny\n");
    assert!(was_started(&home), "{}", seen.seen);
}
