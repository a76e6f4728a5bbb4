//! What the command line says where something was misspelt, is empty or is out of order: one language, no log lines, and the name
//! that was meant.

use super::support::Home;

#[test]
fn what_was_misspelt_is_answered_with_what_was_meant() {
    let home = Home::new();
    home.polis(&["run", "what is 2 + 3?"]).ok();
    home.polis(&["token", "new", "--name", "phone"]).ok();
    home.write("other.toml", "[mcp.time]\ncommand = \"true\"\nenabled = false\n");
    let other = |args: &[&'static str]| [&["--config", "other.toml"], args].concat();
    for (args, status, meant) in [
        (vec!["rnu", "hello"], 2, "'run'"),
        (vec!["conversatoins"], 2, "'conversations'"),
        (vec!["tools", "ad"], 2, "'add'"),
        (vec!["run", "--modle", "x", "y"], 2, "'--model'"),
        (vec!["run", "--approve", "nevr", "x"], 2, "'never'"),
        (vec!["send", "rot", "x"], 1, "`root`?"),
        (vec!["terminate", "roots"], 1, "`root`?"),
        (vec!["show", "rooot"], 1, "`root`?"),
        (vec!["run", "--conversation", "waht", "x"], 1, "`what is 2 + 3?`?"),
        (vec!["--society", "mian", "agents"], 1, "`main`?"),
        (vec!["models", "opnai"], 2, "`openai`?"),
        (vec!["run", "--model", "antropic/x", "y"], 2, "`anthropic`?"),
        (vec!["tools", "add", "playwrite"], 2, "`playwright`?"),
        (other(&["tools", "remove", "tiem"]), 2, "`time`?"),
        (other(&["tools", "login", "tiem"]), 2, "`time`?"),
        (vec!["token", "revoke", "phoen"], 1, "`phone`?"),
    ] {
        let done = home.polis(&args);
        assert_eq!(done.code, status, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(meant), "{args:?}: {}", done.stderr);
    }
    // What is like nothing gets no guess, and what is there is not guessed at.
    for args in [&["send", "nobody", "x"][..], &["show", "root.messages[9].meta._thread"], &["run", "--model", "zzz/x", "y"]] {
        let done = home.polis(args);
        assert!(!done.stderr.contains("did you mean"), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn a_wrong_key_of_the_settings_gets_the_right_one() {
    let home = Home::new();
    for (text, meant) in
        [("modle = \"x\"\n", "did you mean `model`?"), ("[providers.openai]\napi_key = \"sk-1\"\n", "variables alone")]
    {
        home.write("polis.toml", text);
        let done = home.polis(&["run", "hello"]);
        done.fails(2, "bad_config");
        assert!(done.stderr.contains(meant) && !done.stderr.contains("sk-1"), "{}", done.stderr);
    }
}

#[test]
fn an_error_is_in_the_language_of_the_terminal() {
    let home = Home::new();
    for (lang, says) in [("en_GB.UTF-8", "polis: invalid sub-thread path: "), ("zh_CN.UTF-8", "polis: 无效的子线程路径: ")]
    {
        let mut command = home.command(&["show", "root.messages[99]"]);
        let done = super::support::Done::from(command.env("LC_ALL", lang).output().unwrap());
        done.fails(2, "bad_path");
        assert!(done.stderr.starts_with(says), "{}", done.stderr);
    }
}

#[test]
fn an_empty_list_says_so() {
    let home = Home::new();
    home.polis(&["run", "hello"]).ok();
    for args in [
        &["artifacts"][..],
        &["approvals"],
        &["tasks"],
        &["memory"],
        &["memory", "search", "zebra"],
        &["conversations", "search", "zebra"],
        &["conversations", "--archived"],
        &["token", "list"],
        &["trust", "list"],
        &["skills"],
    ] {
        let done = home.polis(args);
        let starts = ["polis: there are no ", "polis: there is nothing "];
        assert!(starts.iter().any(|start| done.stderr.starts_with(start)), "{args:?}: {}", done.stderr);
        assert_eq!(done.ok(), "", "{args:?}");
    }
}

#[test]
fn a_warning_is_a_line_for_people_unless_the_log_is_asked_for() {
    let home = Home::new();
    home.write("polis.toml", "[mcp.broken]\ncommand = \"false\"\n");
    let warning = |log: Option<&str>| {
        let mut served = home.serve_with(&[], |command| {
            log.iter().for_each(|log| {
                command.env("POLIS_LOG", log);
            });
        });
        served.said().find(|line| line.contains("is down")).unwrap()
    };
    let line = warning(None);
    assert!(line.starts_with("polis: warning: the MCP server is down") && line.ends_with("(server: broken)"), "{line}");
    let line = warning(Some("warn"));
    assert!(line.contains(" WARN polis_tools::mcp::server: "), "{line}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_data_directory_that_cannot_be_made_is_named() {
    let home = Home::new();
    let done = home.polis(&["--data", "/proc/polis", "run", "hello"]);
    done.fails(1, "log_failed");
    assert!(done.stderr.contains("/proc/polis: "), "{}", done.stderr);
}
