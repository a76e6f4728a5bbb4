//! A program that knows nothing of us but the contract asks for everything in it, in ways that fit and in ways that do not.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Rig, TOKEN};

/// The folder that the chore `test` has put it into.
const FOLDER: &str = "POLIS_TEST_SCHEMATHESIS";

/// No answer is a server's error, every answer is in the contract and has its shape, and nothing is told without a token.
const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,ignored_auth";

/// A stream without an end.
const LEFT_OUT: &[&str] = &["/api/events"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_knows_only_the_contract_is_answered_as_it_says() {
    let test = "schemathesis::whoever_knows_only_the_contract_is_answered_as_it_says";
    let Some(folder) = std::env::var_os(FOLDER) else {
        writeln!(std::io::stderr(), "skipped: {test}: {FOLDER} names no folder with schemathesis").unwrap();
        return;
    };
    let python = Path::new(&folder).join("python");
    let rig = Rig::start().await;
    let mut command = Command::new("python3");
    command.arg(python.join("bin/st")).args(["--no-color", "run", &format!("http://{}/openapi.json", rig.address)]);
    command.args(["--header", &format!("Authorization: Bearer {TOKEN}"), "--checks", CHECKS]);
    command.args([
        "--phases",
        "examples,coverage,fuzzing",
        "--max-time",
        "75",
        "--max-examples",
        "40",
        "--request-timeout",
        "10",
    ]);
    // One worker: several change the limit on recursion under each other's feet, and some versions of Python do not bear it.
    command.args(["--seed", "1", "--no-shrink", "--warnings", "off", "--max-failures", "20", "--workers", "1"]);
    for path in LEFT_OUT {
        command.args(["--exclude-path", path]);
    }
    // These answer as their protocols say; clients of those are let at them elsewhere.
    command.args(["--exclude-path-regex", "^/(v1|agui|a2a|mcp|[.]well-known)(/|$)"]);
    let elsewhere = tempfile::tempdir().unwrap();
    command.env("PYTHONPATH", &python).current_dir(elsewhere.path()).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    // The society has come through it.
    assert_eq!(rig.get("/api/health").await.status, 200);
    println!("{said}");
}
