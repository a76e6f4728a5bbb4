//! A person logs in at an MCP server, and nothing secret is said anywhere.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use polis_testkit::postgres::Server;
use serde_json::json;

use super::model::{ModelServer, Reply};
use super::support::{Done, Home};

#[allow(dead_code, reason = "another crate's tests use the rest of it")]
#[path = "../../../tools/tests/main/mcp/remote.rs"]
mod remote;

use remote::{MARKS, Remote};

#[test]
fn a_person_logs_in_once_and_nothing_secret_is_said() {
    let (home, remote) = (Home::new(), Remote::closed(3_600));
    home.write("polis.toml", &format!("[mcp.remote]\nurl = \"{}\"\ntools.session.effect = \"read\"\n", remote.url()));
    let before = home.polis(&["tools"]).ok();
    let hint = "server remote: down, 0 tools; it requires a login: run `polis tools login remote`\n";
    assert!(before.contains(hint), "{before}");
    assert!(!home.data().exists(), "looking makes nothing");

    let said = log_in(&home, |_| {});
    assert!(said.contains("polis: open this in your browser to log in to remote:"), "{said}");
    assert!(is_clean(&said), "{said}");

    let after = home.polis(&["tools"]).ok();
    assert!(after.contains("server remote: connected, 6 tools; remote 1\n"), "{after}");
    let model = ModelServer::start(vec![Reply::Call("remote__session", json!({})), Reply::Say(&["done"])]);
    let mut command = home.command(&["run", "which session?"]);
    model.set(&mut command);
    assert!(
        command
            .env("POLIS_LOG", "trace")
            .output()
            .is_ok_and(|output| { output.status.success() && is_clean(&String::from_utf8_lossy(&output.stderr)) })
    );
    assert!(home.polis(&["log", "--json"]).ok().contains("session-1"));
    secrets_are_only_in(&home.data(), "logins");

    assert_eq!(home.polis(&["tools", "logout", "remote"]).ok(), "logged out at remote\n");
    assert_eq!(home.polis(&["tools", "logout", "remote"]).ok(), "not logged in at remote\n");
    home.polis(&["tools", "login", "nobody"]).fails(2, "unknown_server");
}

#[test]
fn a_login_that_is_refused_or_cannot_be_had_says_why() {
    let home = Home::new();
    home.write("polis.toml", "[mcp.gone]\nurl = \"http://127.0.0.1:9/mcp\"\n[mcp.here]\ncommand = \"sh\"\n");
    home.polis(&["tools", "login", "gone"]).fails(1, "login_failed");
    let program = home.polis(&["tools", "login", "here"]);
    assert!(program.stderr.contains("it has no login"), "{}", program.stderr);
    program.fails(1, "login_failed");
}

#[test]
fn a_server_that_hides_its_metadata_is_found_by_the_login_itself() {
    let (home, remote) = (Home::new(), Remote::hidden());
    home.write("polis.toml", &format!("[mcp.remote]\nurl = \"{}\"\n", remote.url()));
    log_in(&home, |_| {});
    let after = home.polis(&["tools"]).ok();
    assert!(after.contains("server remote: connected, 6 tools; remote 1\n"), "{after}");
}

#[test]
fn nodes_that_share_a_store_and_a_key_share_logins() {
    let Some(server) = Server::shared("cli::login::nodes_that_share_a_store_and_a_key_share_logins") else { return };
    let (schema, remote) = (server.fresh_schema(), Remote::closed(3_600));
    let url = server.url(&schema);
    let node = || {
        let home = Home::new();
        home.write("polis.toml", &format!("[mcp.remote]\nurl = \"{}\"\n", remote.url()));
        home
    };
    let stores = |key: &'static str| {
        let url = url.clone();
        move |command: &mut Command| {
            command.env("POLIS_STORE", &url).env("POLIS_LOGINS_KEY", key);
        }
    };
    let tools = |home: &Home, key: &'static str| {
        let mut command = home.command(&["tools"]);
        stores(key)(&mut command);
        Done::from(command.output().unwrap()).ok()
    };
    const KEY: &str = "a key that all nodes of this store share";
    let (one, two, alone) = (node(), node(), node());
    log_in(&one, stores(KEY));
    assert!(tools(&two, KEY).contains("server remote: connected"));
    assert!(tools(&two, "another key, which no other node of this has").contains("polis tools login remote"));
    // Without a key a login stays where it was made, and the database has none that can be read.
    log_in(&alone, stores(""));
    assert!(tools(&alone, "").contains("server remote: connected"));
    assert!(alone.data().join("logins").exists() && !one.data().join("logins").exists());
    let stored = server.psql(&format!("SELECT encode(body, 'escape') FROM {schema}.documents WHERE name LIKE 'encrypted/%'"));
    assert!(!stored.is_empty() && is_clean(&stored), "{stored}");
    let mut short = one.command(&["tools"]);
    stores("short")(&mut short);
    Done::from(short.output().unwrap()).fails(2, "bad_key");
}

/// Logs in at the server `remote` as a person does, with a browser; what was said on stderr.
fn log_in(home: &Home, set: impl Fn(&mut Command)) -> String {
    let mut command = home.command(&["tools", "login", "remote"]);
    set(&mut command);
    let mut child = command.env("POLIS_LOG", "trace").spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    let address = loop {
        let mut line = String::new();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "{said}");
        said.push_str(&line);
        if line.starts_with("http://") {
            break line.trim().to_owned();
        }
    };
    let agreed = visit(&address);
    visit(&agreed);
    stderr.read_to_string(&mut said).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "logged in at remote\n", "{said}");
    said
}

fn is_clean(text: &str) -> bool {
    !MARKS.iter().any(|mark| text.contains(mark))
}

fn secrets_are_only_in(folder: &Path, there: &str) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            assert!(is_clean(&String::from_utf8_lossy(&bytes)), "{}", entry.path().display());
        } else if entry.file_name() != there {
            secrets_are_only_in(&entry.path(), there);
        }
    }
}

/// Opens an address like a browser; says where it is sent, if anywhere.
fn visit(address: &str) -> String {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut server = TcpStream::connect(host).unwrap();
    server.write_all(format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    server.read_to_string(&mut answer).unwrap();
    answer.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap_or_default().to_owned()
}
