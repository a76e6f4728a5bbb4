//! `polis tools add` and `remove`: a known MCP server goes into `polis.toml` and out again, and nothing else changes.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Done, Home};

const MINE: &str = "# mine\nmodel = \"offline\" # no key\n";

fn settings(home: &Home) -> String {
    fs::read_to_string(home.path().join("polis.toml")).unwrap()
}

#[test]
fn a_link_of_a_folder_does_not_lead_to_other_settings() {
    let home = Home::new();
    home.write("elsewhere.toml", "# mine\n");
    std::os::unix::fs::symlink("elsewhere.toml", home.path().join("polis.toml")).unwrap();
    home.polis(&["tools", "add", "time"]).fails(2, "bad_config");
    assert_eq!(std::fs::read_to_string(home.path().join("elsewhere.toml")).unwrap(), "# mine\n");
}

#[test]
fn a_server_is_added_below_what_is_there_and_removed_again() {
    let home = Home::new();
    home.write("polis.toml", MINE);
    let dry = home.polis(&["tools", "add", "brave-search", "--dry-run"]);
    assert_eq!(settings(&home), MINE);
    let section = dry.ok();
    assert!(
        section.starts_with("[mcp.brave-search]\ncommand = \"npx\"\nargs = [\"-y\", \"@brave/brave-search-mcp-server@"),
        "{section}"
    );
    assert!(section.contains("env = { BRAVE_API_KEY = \"${BRAVE_API_KEY}\" }\n"), "{section}");
    assert!(section.contains("tools.brave_web_search = { effect = \"read\", volatile = true }\n"), "{section}");

    let done = home.polis(&["tools", "add", "brave-search"]);
    assert_eq!(settings(&home), format!("{MINE}\n{section}"));
    for told in [
        "runs, as you and outside the sandbox: npx -y",
        "the variable BRAVE_API_KEY; it is NOT set",
        "then = \"ask\"",
        "next: polis tools",
    ] {
        assert!(done.stderr.contains(told), "{told}: {}", done.stderr);
    }
    done.ok();
    home.polis(&["tools", "add", "brave-search"]).fails(1, "already_there");
    home.polis(&["tools", "add", "brave-search", "--as", "web"]).ok();
    assert!(settings(&home).contains("\n[mcp.web]\n"));
    home.polis(&["tools", "remove", "web"]).ok();
    home.polis(&["tools", "remove", "brave-search"]).ok();
    assert_eq!(settings(&home), MINE);
    home.polis(&["tools", "remove", "brave-search"]).fails(2, "unknown_server");
    let listed = home.polis(&["tools", "add", "--list"]).ok();
    assert!(listed.contains("playwright ") && listed.contains("filesystem FOLDER"), "{listed}");
}

#[test]
fn what_cannot_be_added_is_refused_with_the_reason_and_nothing_is_written() {
    let home = Home::new();
    fs::create_dir(home.path().join("documents")).unwrap();
    for (args, code, why) in [
        (&["nothing"][..], "unknown_server", "playwright"),
        (&["filesystem"], "bad_server_argument", "polis tools add filesystem /srv/documents"),
        (&["filesystem", "missing"], "bad_server_argument", "is not a folder"),
        (&["filesystem", "."], "bad_server_argument", "agents could change their own rules"),
        (&["time", "here"], "bad_server_argument", "takes no `here`"),
        (&["github", "--", "--x"], "bad_server_argument", "is an address"),
        (&["time", "--as", "a b"], "bad_server_argument", "letters, digits"),
    ] {
        let done = home.polis(&[&["tools", "add"], args].concat());
        assert!(done.stderr.contains(why), "{args:?}: {}", done.stderr);
        done.fails(2, code);
    }
    assert_eq!(home.polis(&["tools", "add"]).code, 2);
    assert!(!home.path().join("polis.toml").exists());
    home.polis(&["tools", "add", "filesystem", "documents"]).ok();
    let folder = home.path().canonicalize().unwrap().join("documents");
    assert!(settings(&home).contains(&format!("\"{}\"]", folder.display())), "{}", settings(&home));
    home.write("polis.toml", "nonsense");
    home.polis(&["tools", "add", "time"]).fails(2, "bad_config");
    assert_eq!(settings(&home), "nonsense");
}

#[test]
fn a_trusted_file_stays_trusted_and_an_untrusted_one_does_not_become_so() {
    let pending = |home: &Home| {
        let mut doctor = home.command(&["doctor", "--json"]);
        let done = Done::from(doctor.env_remove("POLIS_TRUST").output().unwrap());
        let report: Value = serde_json::from_str(&done.stdout).unwrap();
        let folder = report["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == "folder").unwrap();
        folder["ok"] == false
    };
    let add = |home: &Home, name: &str| {
        let mut add = home.command(&["tools", "add", name]);
        Done::from(add.env_remove("POLIS_TRUST").output().unwrap())
    };
    let home = Home::new();
    add(&home, "github").ok();
    assert!(!pending(&home), "a file that polis itself wrote is trusted");
    add(&home, "context7").ok();
    assert!(!pending(&home));
    let home = Home::new();
    home.write("polis.toml", MINE);
    let done = add(&home, "github");
    assert!(done.stderr.contains("polis.toml is not trusted"), "{}", done.stderr);
    done.ok();
    assert!(pending(&home));
    // The user's own file counts everywhere and needs no trust.
    home.polis(&["tools", "add", "time", "--user"]).ok();
    assert!(fs::read_to_string(home.user().join("polis.toml")).unwrap().contains("[mcp.time]"));
    add(&home, "time").fails(1, "already_there");
}

/// Names the folder with the packages, which a step of `cargo xtask test` installs.
const FOLDER: &str = "POLIS_TEST_MCP_SERVERS";

#[test]
fn an_added_browser_opens_a_page() {
    let has_browser = ["google-chrome", "google-chrome-stable", "chromium", "chromium-browser"]
        .iter()
        .any(|name| std::env::split_paths(&std::env::var_os("PATH").unwrap()).any(|folder| folder.join(name).is_file()));
    let (Some(folder), true) = (std::env::var_os(FOLDER), has_browser) else {
        let why = "it needs Chromium, and has a step of its own in `cargo xtask test`, which installs the server";
        let _ = writeln!(std::io::stderr(), "skipped: an_added_browser_opens_a_page: {why}");
        return;
    };
    let home = Home::new();
    // npx takes the package from here instead of the network.
    std::os::unix::fs::symlink(Path::new(&folder).join("node_modules"), home.path().join("node_modules")).unwrap();
    home.polis(&["tools", "add", "playwright", "--", "--no-sandbox"]).ok();
    let page = "data:text/html,<title>Oaks</title><h1>The oldest oak</h1>";
    let model = ModelServer::start(vec![
        Reply::Call("playwright__browser_navigate", json!({ "url": page })),
        Reply::Call("playwright__browser_snapshot", json!({})),
        Reply::Repeat,
    ]);
    let mut command = home.command(&["run", "--approve", "all", "open the page"]);
    model.set(&mut command);
    let done = Done::from(command.output().unwrap());
    let told = done.stderr.clone();
    assert!(done.ok().contains("The oldest oak"), "{told}");
    let log = home.polis(&["log", "--json"]).ok();
    assert!(log.contains("playwright__browser_snapshot"), "{log}");
}
