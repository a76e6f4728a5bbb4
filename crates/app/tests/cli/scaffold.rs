//! `polis new agent` and `polis check`: what is written compiles, its tests pass, and the check is content with it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::support::{Done, Home};

/// Runs the tests of a project, with the artifacts of this one at hand and nothing from outside.
fn cargo_test(project: &Path) -> Option<Done> {
    cargo(project, &["test", "--lib"], &[])
}

fn cargo(project: &Path, args: &[&str], after: &[&str]) -> Option<Done> {
    let target = Path::new(env!("CARGO_BIN_EXE_polis")).ancestors().nth(2)?;
    let mut cargo = Command::new(std::env::var_os("CARGO")?);
    cargo.args(args).args(["--offline", "--config", "profile.dev.debug=\"line-tables-only\""]);
    cargo.args(["--config", "profile.dev.package.\"*\".debug=false"]).args(after);
    cargo.env("POLIS_MODEL", "offline").env("CARGO_TARGET_DIR", target).env("CARGO_TERM_COLOR", "never").current_dir(project);
    Some(cargo.output().ok()?.into())
}

#[test]
fn new_agents_compile_pass_their_tests_and_keep_the_rules() {
    let home = Home::new();
    let written = home.polis(&["new", "agent", "OrderTracking"]).ok();
    assert!(written.contains("order_tracking/src/order_tracking/order_tracking_agent.rs\n"), "{written}");
    // More of them, as modules of the crate that is there now.
    let project = home.path().join("order_tracking");
    let inside = |args: &[&str]| Done::from(home.command(args).current_dir(project.join("src")).output().unwrap());
    let done = inside(&["new", "agent", "book_publishing", "--sub", "proof_reading"]);
    assert!(done.stderr.contains("write `mod book_publishing;` into ./lib.rs"), "{}", done.stderr);
    assert!(!done.stderr.contains("needs"), "{}", done.stderr);
    done.ok();
    inside(&["new", "agent", "article_creation", "--sub", "source_research", "--sub", "DraftWriting"]).ok();
    let lib = project.join("src/lib.rs");
    let text = fs::read_to_string(&lib).unwrap();
    fs::write(&lib, format!("{text}\npub mod article_creation;\npub mod book_publishing;\n")).unwrap();

    let report: Value = serde_json::from_str(&home.polis(&["check", "--json"]).ok()).unwrap();
    assert_eq!(report, json!({ "findings": [], "agents": 6 }));
    let Some(done) = cargo_test(&project) else {
        use std::io::Write;
        let _ =
            writeln!(std::io::stderr(), "skipped: new_agents_compile_pass_their_tests_and_keep_the_rules: there is no cargo");
        return;
    };
    assert!(!done.stderr.contains("warning"), "{}", done.stderr);
    assert!(done.ok().contains("3 passed"));
}

#[test]
fn the_examples_keep_the_rules() {
    let home = Home::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut agents = 0;
    for example in fs::read_dir(examples).unwrap().map(|entry| entry.unwrap().path()) {
        let report: Value = serde_json::from_str(&home.polis(&["check", example.to_str().unwrap(), "--json"]).ok()).unwrap();
        assert_eq!(report["findings"], json!([]), "{}", example.display());
        agents += report["agents"].as_u64().unwrap();
    }
    assert!(agents >= 6, "only {agents} agents were looked at");
}

#[test]
fn the_check_tells_file_line_and_rule_and_its_exit_status_says_how_it_went() {
    let home = Home::new();
    // It has nothing to do with a society, so bad settings do not matter.
    home.write("polis.toml", "nonsense");
    assert_eq!(home.polis(&["check"]).ok(), "");
    home.polis(&["new", "agent", "order_tracking", "--sub", "parcel_search"]).ok();
    home.polis(&["check", "order_tracking"]).ok();
    let folder = "order_tracking/src/order_tracking/";
    fs::rename(home.path().join(folder).join("parcel_search"), home.path().join(folder).join("parcelSearch")).unwrap();
    fs::remove_file(home.path().join(folder).join("prompt/initial_phase_system_prompt.md")).unwrap();
    home.write(&format!("{folder}prompt/intake_system_prompt.md"), "");
    let done = home.polis(&["check", "order_tracking"]);
    assert_eq!(done.code, 1);
    let begins = [
        format!(
            "{folder}parcelSearch/parcel_search_agent.rs:1: naming_style: the folder `parcelSearch` is not in snake_case; call it `parcel_search`"
        ),
        format!("{folder}prompt/intake_system_prompt.md:1: prompt_phase: no agent here has a phase `intake`; "),
    ];
    let lines: Vec<_> = done.stdout.lines().collect();
    assert_eq!(lines.len(), begins.len(), "{}", done.stdout);
    assert!(lines.iter().zip(&begins).all(|(line, begin)| line.starts_with(begin)), "{}", done.stdout);
    assert_eq!(done.stderr, "polis: 2 findings in 2 folders of agents\n");
    let done = home.polis(&["check", "--json"]);
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(
        (done.code, &report["findings"][0]["rule"], &report["findings"][0]["line"]),
        (1, &json!("naming_style"), &json!(1))
    );
    home.polis(&["check", "missing"]).fails(2, "bad_folder");
    assert_eq!(home.polis(&["check", "--frobnicate"]).code, 2);
}

#[test]
fn nothing_that_is_there_is_touched_and_bad_names_write_nothing() {
    let home = Home::new();
    let entries = || fs::read_dir(home.path()).unwrap().count();
    for args in [
        &["helper"][..],
        &["order_mgmt"],
        &["order_tracking", "--sub", "SubThread"],
        &["order_tracking", "--sub", "order_tracking"],
    ] {
        home.polis(&[&["new", "agent"], args].concat()).fails(2, "bad_business_name");
    }
    home.polis(&["new", "agent", "order_tracking", "--polis", "/nowhere"]).fails(2, "no_library");
    assert_eq!(entries(), 0);
    fs::create_dir_all(home.path().join("order_tracking/src")).unwrap();
    home.write("order_tracking/src/lib.rs", "mine");
    home.polis(&["new", "agent", "order_tracking"]).fails(1, "already_there");
    assert_eq!(fs::read_dir(home.path().join("order_tracking")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(home.path().join("order_tracking/src/lib.rs")).unwrap(), "mine");
    // A git address needs no checkout; it stands in the manifest.
    home.polis(&["new", "agent", "book_publishing", "--dir", "deep/er", "--polis", "https://example.org/polis.git"]).ok();
    let manifest = fs::read_to_string(home.path().join("deep/er/book_publishing/Cargo.toml")).unwrap();
    assert!(manifest.contains("polis = { git = \"https://example.org/polis.git\", features = [\"serve\"] }"), "{manifest}");
}

#[test]
fn a_new_agent_goes_beside_others_and_what_is_in_the_way_is_named() {
    let home = Home::new();
    home.polis(&["new", "agent", "order_tracking", "--sub", "parcel_search"]).ok();
    let inside = |folder: &str| {
        let folder = home.path().join("order_tracking/src").join(folder);
        Done::from(home.command(&["new", "agent", "invoice_writing"]).current_dir(folder).output().unwrap())
    };
    for folder in ["order_tracking", "order_tracking/parcel_search"] {
        let done = inside(folder);
        assert!(done.stderr.contains("next to it"), "{folder}: {}", done.stderr);
        done.fails(2, "bad_folder");
    }
    inside("").ok();
    home.polis(&["check", "order_tracking"]).ok();

    home.write("invoice_writing", "mine");
    let done = home.polis(&["new", "agent", "invoice_writing"]);
    assert!(done.stderr.contains("./invoice_writing already exists"), "{}", done.stderr);
    done.fails(1, "already_there");
}

#[test]
fn a_new_workflow_has_the_modules_compiles_and_answers_without_a_key() {
    let home = Home::new();
    let written = home.polis(&["new", "workflow", "TeaTrade"]).ok();
    for file in ["Cargo.toml", "README.md", "src/main.rs"] {
        assert!(written.contains(&format!("tea_trade/{file}\n")), "{written}");
    }
    for module in ["engine", "prompts", "backend", "tools", "types"] {
        assert!(written.contains(&format!("tea_trade/src/{module}/mod.rs\n")), "{written}");
    }
    home.polis(&["new", "workflow", "TeaTrade"]).fails(1, "already_there");
    home.polis(&["new", "workflow", "helper"]).fails(2, "bad_business_name");
    let project = home.path().join("tea_trade");
    let Some(done) = cargo_test(&project) else {
        use std::io::Write;
        let why = "there is no cargo";
        let _ =
            writeln!(std::io::stderr(), "skipped: a_new_workflow_has_the_modules_compiles_and_answers_without_a_key: {why}");
        return;
    };
    assert!(!done.stderr.contains("warning"), "{}", done.stderr);
    assert!(done.ok().contains("3 passed"));
    // The request that its own quick start names.
    let readme = fs::read_to_string(project.join("README.md")).unwrap();
    assert!(readme.contains("cargo run -- \"What is 12 * 12?\""), "{readme}");
    let done = cargo(&project, &["run"], &["--", "What is 12 * 12?"]).unwrap();
    assert!(done.ok().contains("144"));
}

#[test]
fn a_prompt_for_another_language_is_printed_and_what_it_needs_is_asked_for() {
    let home = Home::new();
    home.write("tea.md", "## Overview\n\nWe sell tea.\n");
    let prompt = |more: &[&str]| home.polis(&[&["new", "workflow", "--language", "Python"], more].concat());
    let printed = prompt(&["--platform", "FastAPI", "--business", "tea.md", "--provider", "Anthropic"]).ok();
    assert!(printed.contains("in **Python** for **FastAPI**. Model provider: Anthropic."), "{printed}");
    assert!(printed.contains("We sell tea.") && printed.contains("PLANNER_CORE_TEMPLATE"), "{printed}");
    assert_eq!(prompt(&[]).code, 2);
    assert_eq!(home.polis(&["new", "workflow", "tea_trade", "--language", "Go"]).code, 2);
    prompt(&["--platform", "FastAPI", "--business", "missing.md"]).fails(2, "bad_template_variable");
    prompt(&["--platform", " ", "--business", "tea.md"]).fails(2, "bad_template_variable");
}
