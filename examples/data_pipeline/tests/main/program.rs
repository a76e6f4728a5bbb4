//! The program itself, as somebody runs it, and as somebody kills it.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::place::Place;
use crate::table::shown;

fn program(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_data_pipeline"));
    command.env_remove("POLIS_MODEL").args(["--model", "offline", "--data"]).arg(data).stdin(Stdio::null());
    command
}

fn text(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The figures of the example's own table in the report that the program names.
fn check(output: &Output) {
    assert!(output.status.success(), "{}", text(output));
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    let page = said.lines().find_map(|line| line.strip_prefix("Report: ")).unwrap();
    let shown = shown(&std::fs::read_to_string(page).unwrap());
    assert_eq!(shown[&vec!["quantity".to_owned()]], [11.0, 42.0, 3.81818181818, 1.0, 8.0]);
    assert_eq!(shown[&vec!["Faro".to_owned(), "amount".to_owned()]], [3.0, 48.7, 16.2333333333, 4.5, 37.2]);
    assert!(said.contains("- amount: count 11, sum 229.7, "), "{said}");
}

#[tokio::test]
async fn the_program_answers_and_says_where_the_report_is() {
    if Place::new("the_program_answers_and_says_where_the_report_is").await.is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let sales = concat!(env!("CARGO_MANIFEST_DIR"), "/sales.csv");
    check(&program(home.path()).arg(sales).output().unwrap());
    // And once more in the same society.
    check(&program(home.path()).arg(sales).output().unwrap());
    let none = program(home.path()).output().unwrap();
    assert!(!none.status.success() && text(&none).contains("usage: "), "{}", text(&none));
    let missing = program(home.path()).arg("missing.csv").output().unwrap();
    assert!(!missing.status.success() && text(&missing).contains("missing.csv"), "{}", text(&missing));
}

#[tokio::test]
async fn killed_and_run_again_it_goes_on_with_the_same_request() {
    if Place::new("killed_and_run_again_it_goes_on_with_the_same_request").await.is_none() {
        return;
    }
    let sales = concat!(env!("CARGO_MANIFEST_DIR"), "/sales.csv");
    for reached in ["input.csv", "prepared_data.tsv", "analysis.sh"] {
        let home = tempfile::tempdir().unwrap();
        let mut running = program(home.path()).arg(sales).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let runs = home.path().join("workspace/runs");
        let run = || std::fs::read_dir(&runs).ok()?.next()?.ok().map(|entry| entry.path());
        while !run().is_some_and(|run| run.join(reached).exists()) {
            assert!(running.try_wait().unwrap().is_none_or(|status| status.success()), "it failed");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        running.kill().unwrap();
        running.wait().unwrap();
        let again = program(home.path()).output().unwrap();
        // It may have been done by the time it was killed; then there is nothing to go on with.
        if text(&again).contains("usage: ") {
            continue;
        }
        check(&again);
        assert!(text(&again).contains("data_pipeline: going on with: Analyse `tables/"), "{}", text(&again));
        assert_eq!(std::fs::read_dir(&runs).unwrap().count(), 1);
    }
}
