//! The official conformance suite for clients. It is a package of npm, so this has a step of its own in `cargo xtask test`.
//!
//! The suite starts a server for each scenario, then a client with the server's address, and judges what it saw. That client is
//! this test program again, acting in `client.rs` on top of [`McpServers`](polis_tools::mcp::McpServers).

pub(super) mod browser;
mod client;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Names the folder with the package, and the `node` in it.
const FOLDER: &str = "POLIS_TEST_MCP_CONFORMANCE";

/// What each revision of the protocol requires of clients.
const REVISIONS: &[&str] = &["2025-11-25", "2026-07-28"];

/// What older servers need, which no revision requires any more.
const OLDER: &[(&str, &str)] =
    &[("2025-03-26", "auth/2025-03-26-oauth-metadata-backcompat"), ("2025-03-26", "auth/2025-03-26-oauth-endpoint-fallback")];

/// Scenarios that are expected to fail: the revision, the name, and why that is right or not ours to change. One that stands
/// here and passes is red as well.
const EXPECTED: &[(&str, &str, &str)] = &[];

#[test]
fn the_official_suite_for_clients_passes() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        let why = "it has a step of its own in `cargo xtask test`, which installs the suite";
        writeln!(std::io::stderr(), "skipped: the_official_suite_for_clients_passes: {why}").unwrap();
        return;
    };
    let suite = Suite { folder: folder.into() };
    let mut scenarios = Vec::new();
    for revision in REVISIONS {
        scenarios.extend(suite.required(revision).into_iter().map(|name| (*revision, name)));
    }
    assert!(scenarios.len() > 40, "the suite lists too little: {scenarios:?}");
    scenarios.extend(OLDER.iter().map(|(revision, name)| (*revision, (*name).to_owned())));
    let mut wrong = Vec::new();
    for (revision, name) in scenarios {
        let is_expected = EXPECTED.iter().any(|it| (it.0, it.1) == (revision, &name));
        match suite.run(revision, &name) {
            Ok(()) if is_expected => wrong.push(format!("{name} ({revision}) passes, although it stands among the failures")),
            Err(said) if !is_expected => {
                eprintln!("{said}");
                wrong.push(format!("{name} ({revision}) fails"));
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The package, and a `node` that runs it.
struct Suite {
    folder: PathBuf,
}

impl Suite {
    /// The scenarios that a revision requires.
    fn required(&self, revision: &str) -> Vec<String> {
        let listed = self.command(&["list", "--client", "--requirements", revision]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let required = listed.lines().skip_while(|line| !line.starts_with("Client scenarios"));
        let required = required.take_while(|line| !line.starts_with("Run and reported"));
        required.filter_map(|line| line.strip_prefix("  - ")).map(|name| name.trim().to_owned()).collect()
    }

    /// Runs one scenario. One in which nothing was judged has not passed.
    fn run(&self, revision: &str, scenario: &str) -> Result<(), String> {
        let program = std::env::current_exe().unwrap();
        let client = format!("{} --exact mcp::conformance::client::performs --nocapture", program.display());
        let args = ["client", "--command", &client, "--spec-version", revision, "--scenario", scenario];
        let output = self.command(&args).output().expect("the suite can be started");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if output.status.success() && said.contains("Passed: ") && !said.contains("Passed: 0/") { Ok(()) } else { Err(said) }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.folder.join("node"));
        command.arg(self.folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js")).args(args);
        command.current_dir(&self.folder).env_remove(FOLDER).stdin(Stdio::null());
        command
    }
}
