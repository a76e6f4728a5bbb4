//! The page in a real browser, against the real binary. The checks themselves are in `web/test/page`; they need packages of npm
//! and a Chromium, so this has a step of its own in `cargo xtask test`.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Names the folder with the checks and their packages.
const FOLDER: &str = "POLIS_TEST_PAGE";

#[test]
fn it_does_in_a_browser_what_it_promises() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        let why = "it has a step of its own in `cargo xtask test`, which installs a browser";
        writeln!(std::io::stderr(), "skipped: it_does_in_a_browser_what_it_promises: {why}").unwrap();
        return;
    };
    let checks = PathBuf::from(folder).join("test/page/run.mjs");
    let output =
        Command::new("node").arg(checks).arg(env!("CARGO_BIN_EXE_polis")).stdin(Stdio::null()).output().expect("node starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("checks of the page passed, 0 failed"), "{said}");
    // Past libtest's capture: `cargo xtask test` records each check by its name.
    for line in said.lines().filter(|line| line.starts_with("ok: ")) {
        writeln!(std::io::stderr(), "{line}").unwrap();
    }
}
