//! Keys and variables go only where the user has agreed, and never in clear over a network.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use super::*;

/// Somebody who listens and writes down the first line and the headers of each request.
struct Listener {
    address: String,
    heard: Arc<Mutex<String>>,
}

fn listener() -> Listener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heard = Arc::<Mutex<String>>::default();
    let kept = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                kept.lock().unwrap().push_str(&line);
                line.clear();
            }
            let _ = stream.write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    Listener { address, heard }
}

impl Listener {
    fn heard(&self) -> String {
        std::mem::take(&mut self.heard.lock().unwrap())
    }
}

#[test]
fn a_secret_variable_is_given_to_a_trusted_folder_only_if_the_user_lists_it() {
    let (home, there) = (Home::new(), listener());
    home.write("polis.toml", &format!("[mcp.x]\nurl = \"http://{}/${{AWS_SECRET_ACCESS_KEY}}\"\n", there.address));
    let with_secret = |mut command: Command| Done::from(command.env("AWS_SECRET_ACCESS_KEY", "CANARY-7").output().unwrap());
    with_secret(checked(&home, ASK)).ok();
    assert_eq!(there.heard(), "", "nothing of an untrusted file is put in or asked");

    let shown = with_secret(checked(&home, &["trust", "--yes"]));
    has(&shown.stderr, &["CONTACTS", "AWS_SECRET_ACCESS_KEY (withheld unless your own settings list it)"]);
    assert!(!shown.stderr.contains("CANARY-7"));
    let done = with_secret(checked(&home, ASK));
    has(&done.stderr, &["the variable AWS_SECRET_ACCESS_KEY", "(variable_withheld)"]);
    assert_eq!(there.heard(), "");

    std::fs::create_dir_all(home.user()).unwrap();
    std::fs::write(home.user().join("polis.toml"), "[trust]\nvariables = [\"AWS_SECRET_ACCESS_KEY\"]\n").unwrap();
    with_secret(checked(&home, ASK)).ok();
    has(&there.heard(), &["CANARY-7"]);
    std::fs::remove_file(home.user().join("polis.toml")).unwrap();
    with_secret(home.command(ASK)).ok();
    has(&there.heard(), &["CANARY-7"]);
}

#[test]
fn an_ordinary_variable_is_given_once_it_was_shown() {
    let (home, there) = (Home::new(), listener());
    home.write(
        ".mcp.json",
        &format!(r#"{{"mcpServers": {{"x": {{"url": "http://{}/", "headers": {{"X-Me": "${{MY_NAME}}"}}}}}}}}"#, there.address),
    );
    let with_name = |args: &[&str]| Done::from(checked(&home, args).env("MY_NAME", "CANARY-8").output().unwrap());
    with_name(ASK).ok();
    assert_eq!(there.heard(), "");
    has(&with_name(&["trust", "--yes"]).stderr, &["IS GIVEN the variables MY_NAME"]);
    with_name(ASK).ok();
    has(&there.heard(), &["CANARY-8"]);
}

#[test]
fn other_ways_to_a_secret_variable_are_closed_too() {
    let (home, there) = (Home::new(), listener());
    home.write(
        "polis.toml",
        &format!(
            "[a2a.helper]\nurl = \"http://{0}\"\ntoken_env = \"OPENAI_API_KEY\"\n[telemetry]\nendpoint = \"http://{0}\"\n\
             headers = {{ a = \"${{POLIS_TOKEN}}\" }}\n[tools]\nenvironment = [\"GOOGLE_API_KEY\", \"LANG\"]\n",
            there.address
        ),
    );
    run_checked(&home, &["trust", "--yes"]).ok();
    let mut command = checked(&home, ASK);
    command.env("OPENAI_API_KEY", "CANARY-1").env("POLIS_TOKEN", "CANARY-2").env("GOOGLE_API_KEY", "CANARY-3");
    let done = Done::from(command.output().unwrap());
    assert_eq!(done.stderr.matches("(variable_withheld)").count(), 3, "{}", done.stderr);
    has(&done.stderr, &["the A2A agent helper needs the variable OPENAI_API_KEY", "[telemetry] needs", "GOOGLE_API_KEY"]);
    assert!(!there.heard().contains("CANARY"));
}

#[test]
fn nothing_secret_is_sent_over_plain_http_to_another_machine() {
    let home = Home::new();
    let far = "http://model.invalid/v1";
    let mut command = checked(&home, &["run", "--model", "openai/m", "hi"]);
    Done::from(command.env("OPENAI_API_KEY", "k").env("OPENAI_BASE_URL", far).output().unwrap()).fails(2, "plain_http");
    let mut command = checked(&home, &["run", "--model", "openai/m", "hi"]);
    command.env("OPENAI_API_KEY", "k");
    home.write("polis.toml", &format!("[providers.openai]\nbase_url = \"{far}\"\n"));
    command.env("POLIS_TRUST", "all");
    Done::from(command.output().unwrap()).fails(2, "plain_http");

    home.write("polis.toml", "[a2a.helper]\nurl = \"http://agent.invalid\"\ntoken_env = \"T\"\n");
    home.polis(ASK).fails(2, "plain_http");
    home.write("polis.toml", "[telemetry]\nendpoint = \"http://collector.invalid:4318\"\nheaders = { a = \"b\" }\n");
    has(&home.polis(ASK).stderr, &["(plain_http)"]);
    home.write("polis.toml", "[mcp.far]\nurl = \"http://tools.invalid/mcp\"\nheaders = { Authorization = \"Bearer x\" }\n");
    has(
        &home.polis(&["tools"]).stdout,
        &["server far: down", "would send the header Authorization unencrypted", "(plain_http)"],
    );
    has(&home.polis(&["tools", "login", "far"]).stderr, &["already have an Authorization"]);
    home.write("polis.toml", "[mcp.far]\nurl = \"http://tools.invalid/mcp\"\n");
    has(&home.polis(&["tools", "login", "far"]).stderr, &["(plain_http)"]);
}

#[test]
fn a_provider_of_a_folder_gets_no_secret_variable_unless_the_user_lists_it() {
    let (home, there) = (Home::new(), listener());
    let provider = |rest: &str| {
        format!(
            "model = \"gate/m\"\n[providers.gate]\nbase_url = \"http://{}/v1\"\ndialect = \"openai\"\n{rest}",
            there.address
        )
    };
    let with_secret = |args: &[&str]| Done::from(checked(&home, args).env("OPENAI_API_KEY", "CANARY-9").output().unwrap());
    for rest in ["key_variable = \"OPENAI_API_KEY\"\n", "headers = { X-Key = \"${OPENAI_API_KEY}\" }\n"] {
        home.write("polis.toml", &provider(rest));
        has(&with_secret(&["trust", "--yes"]).stderr, &["SENDS requests for gate", "OPENAI_API_KEY (withheld unless"]);
        let done = with_secret(&["run", "hi"]);
        has(&done.stderr, &["[providers.gate] needs the variable OPENAI_API_KEY", "(variable_withheld)"]);
        assert_eq!(there.heard(), "", "{rest}");
    }
    std::fs::create_dir_all(home.user()).unwrap();
    std::fs::write(home.user().join("polis.toml"), "[trust]\nvariables = [\"OPENAI_API_KEY\"]\n").unwrap();
    with_secret(&["run", "hi"]);
    has(&there.heard().to_lowercase(), &["x-key: canary-9"]);
}

#[cfg(unix)]
#[test]
fn the_key_command_of_a_folder_runs_as_it_was_trusted_and_gets_no_secrets() {
    use std::os::unix::fs::PermissionsExt;

    let (home, there) = (Home::new(), listener());
    home.write(
        "polis.toml",
        &format!(
            "model = \"gate/m\"\n[providers.gate]\nbase_url = \"http://{}/v1\"\ndialect = \"openai\"\nkey_command = [\"./key.sh\"]\n",
            there.address
        ),
    );
    let script = |text: &str| {
        home.write("key.sh", &format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(home.path().join("key.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    };
    script("echo printed-$OPENAI_API_KEY-key");
    let with_secret = |args: &[&str]| Done::from(checked(&home, args).env("OPENAI_API_KEY", "CANARY-10").output().unwrap());
    has(&with_secret(&["trust", "--yes"]).stderr, &["STARTS A PROGRAM, outside any sandbox", "./key.sh", "is run or read"]);
    with_secret(&["run", "hi"]);
    has(&there.heard(), &["Bearer printed--key"]);
    script("echo changed-key");
    let done = with_secret(&["run", "hi"]);
    assert_eq!(there.heard(), "", "{}", done.stderr);
    has(&done.stderr, &["the key command `./key.sh` is not run: key.sh is not trusted as it is now"]);
}

#[cfg(unix)]
#[test]
fn the_key_file_of_a_folder_is_read_as_it_was_trusted_and_leads_nowhere_else() {
    let (home, there) = (Home::new(), listener());
    let elsewhere = tempfile::tempdir().unwrap();
    let private = elsewhere.path().join("id_rsa");
    std::fs::write(&private, "CANARY-11").unwrap();
    let settings = |file: &str| {
        let address = &there.address;
        let provider = format!("base_url = \"http://{address}/v1\"\ndialect = \"openai\"\nkey_file = \"{file}\"\n");
        home.write("polis.toml", &format!("model = \"gate/m\"\n[providers.gate]\n{provider}"));
    };
    let polis = |args: &[&str]| Done::from(checked(&home, args).output().unwrap());
    settings("key.txt");
    home.write("key.txt", "honest-key");
    has(&polis(&["trust", "--yes"]).stderr, &["THE CONTENT OF THE FILE key.txt as a key"]);
    polis(&["run", "hi"]);
    has(&there.heard(), &["Bearer honest-key"]);
    // Other content, a link that leads out of the folder, and a path that does: also where they were there when it was trusted.
    home.write("key.txt", "other-key");
    let changed = polis(&["run", "hi"]);
    assert_eq!(there.heard(), "", "{}", changed.stderr);
    std::fs::remove_file(home.path().join("key.txt")).unwrap();
    std::os::unix::fs::symlink(&private, home.path().join("key.txt")).unwrap();
    for file in ["key.txt", private.to_str().unwrap()] {
        for trusts in [false, true] {
            settings(file);
            if trusts {
                polis(&["trust", "--yes"]);
            }
            let done = polis(&["run", "hi"]);
            assert_eq!(there.heard(), "", "{file} {trusts}: {}", done.stderr);
            if trusts {
                has(&done.stderr, &["[providers.gate] is left out: its key file"]);
            }
        }
    }
}
