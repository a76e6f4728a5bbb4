//! Clients that others wrote. They are packages of npm, so this has a step of its own in `cargo xtask test`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::cli::support::{Home, Served};

/// Names the folder with the packages, and the `node` in it.
const FOLDER: &str = "POLIS_TEST_PEERS";

/// What the suite for servers asks of every server. The others want tools that only its own example has.
const SCENARIOS: &[(&str, &str)] = &[
    ("2025-11-25", "server-initialize"),
    ("2025-11-25", "ping"),
    ("2025-11-25", "tools-list"),
    ("2025-11-25", "resources-list"),
    ("2025-11-25", "dns-rebinding-protection"),
    ("2026-07-28", "server-stateless"),
    ("2026-07-28", "http-header-validation"),
    ("2026-07-28", "sep-2164-resource-not-found"),
];

/// How the suite says that it could not try something for want of its own tools.
const NOT_TESTABLE: &str = "Error: Not testable:";

#[test]
fn clients_of_others_use_the_program() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        let why = "it has a step of its own in `cargo xtask test`, which installs the clients";
        writeln!(std::io::stderr(), "skipped: clients_of_others_use_the_program: {why}").unwrap();
        return;
    };
    let home = Home::new();
    // So that something waits for a person.
    home.write("polis.toml", "[[policy]]\ntool = \"now\"\nthen = \"ask\"\n");
    let served = home.serve(&[]);
    inspector(&folder, &home, &served);
    a2a_client(&folder, &served);
    let open = Home::new();
    let unguarded = open.serve(&["--no-auth"]);
    for (revision, scenario) in SCENARIOS {
        judged(&folder, &unguarded, revision, scenario);
    }
}

fn node(folder: &Path, script: &str, args: &[&str]) -> (bool, String) {
    let output = Command::new(folder.join("node")).arg(folder.join(script)).args(args).current_dir(folder).output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("\n");
    (output.status.success(), said)
}

/// Its command line, over HTTP and over stdio.
fn inspector(folder: &Path, home: &Home, served: &Served) {
    let script = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
    let (address, bearer) =
        (format!("{}/mcp", served.url()), format!("Authorization: Bearer {}", served.token.as_ref().unwrap()));
    let ask = |reach: &[&str], method: &[&str]| {
        let (well, said) = node(folder, script, &[&["--cli"], reach, &["--method"], method].concat());
        assert!(well, "{method:?}: {said}");
        let from = said.find('{').unwrap_or_else(|| panic!("{said}"));
        let mut values = serde_json::Deserializer::from_str(&said[from..]).into_iter::<Value>();
        values.next().unwrap().unwrap_or_else(|error| panic!("{error}: {said}"))
    };
    let http = [&*address, "--transport", "http", "--header", &bearer];
    let data = home.data();
    let stdio = [env!("CARGO_BIN_EXE_polis"), "mcp", "--data", data.to_str().unwrap()];
    for reach in [&http[..], &stdio[..]] {
        assert_eq!(ask(reach, &["tools/list"])["tools"].as_array().unwrap().len(), 5);
        let called = ask(reach, &["tools/call", "--tool-name", "submit", "--tool-arg", "text=what is 15% of 240?"]);
        assert!(called["structuredContent"]["answer"].as_str().unwrap().contains("36"), "{called}");
        let read = ask(reach, &["resources/read", "--uri", "polis://threads/root"]);
        assert_eq!(read["contents"][0]["mimeType"], json!("application/json"));
        assert!(ask(reach, &["resources/list"])["resources"].to_string().contains("polis://threads/root"));
        assert_eq!(ask(reach, &["resources/templates/list"])["resourceTemplates"].as_array().unwrap().len(), 3);
    }
    let (well, said) = node(folder, script, &["--cli", &address, "--transport", "http", "--method", "tools/list"]);
    assert!(!well && !said.contains("submit"), "without a token nothing is told: {said}");
}

fn a2a_client(folder: &Path, served: &Served) {
    std::fs::write(folder.join("a2a_client.mjs"), include_str!("a2a_client.mjs")).unwrap();
    let (well, said) = node(folder, "a2a_client.mjs", &[&served.url(), served.token.as_ref().unwrap()]);
    assert!(well && said.contains("all well"), "{said}");
}

/// What the suite finds wrong must be what it could not try.
fn judged(folder: &Path, served: &Served, revision: &str, scenario: &str) {
    let script = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
    let url = format!("{}/mcp", served.url());
    let (_, said) = node(folder, script, &["server", "--url", &url, "--scenario", scenario, "--spec-version", revision]);
    let wrong: Vec<_> = said.lines().map(str::trim).filter(|line| line.starts_with("Error:")).collect();
    let failures = said.lines().filter(|line| line.contains("FAILURE")).count();
    let untried = wrong.iter().filter(|line| line.starts_with(NOT_TESTABLE)).count();
    assert!(said.contains("SUCCESS"), "{scenario}: {said}");
    assert_eq!((failures, wrong.len()), (untried, untried), "{scenario}: {said}");
}
