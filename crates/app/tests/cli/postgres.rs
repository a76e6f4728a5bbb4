//! `--store`: the log in PostgreSQL, with a real server.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use polis_ports::Hasher;
use polis_testkit::postgres::{Server, give};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::support::{Done, Home, http, is_ending};

/// Where a login at an MCP server is stored.
const LOGIN: &str = "logins/there-0.json";

/// A home whose commands use a schema of a server.
struct Node {
    home: Home,
    url: String,
}

impl Node {
    fn new(server: &Server, schema: &str) -> Self {
        Self { home: Home::new(), url: server.url(schema) }
    }

    fn set(&self, command: &mut Command) {
        command.env("POLIS_STORE", &self.url).env("POLIS_LOGINS_KEY", "a key that all nodes of this store share");
    }

    fn polis(&self, args: &[&str]) -> Done {
        let mut command = self.home.command(args);
        self.set(&mut command);
        command.output().unwrap().into()
    }

    fn serve(&self) -> super::support::Served {
        self.home.serve_with(&[], |command| self.set(command))
    }

    /// The same where the owner's token is known.
    fn serve_for(&self, token: &str) -> super::support::Served {
        self.home.serve_with(&[], |command| {
            self.set(command);
            command.env("POLIS_TOKEN", token);
        })
    }
}

fn shared(test: &str) -> Option<(Arc<Server>, String)> {
    let server = Server::shared(&format!("cli::postgres::{test}"))?;
    let schema = server.fresh_schema();
    Some((server, schema))
}

#[test]
fn the_log_is_in_the_database_and_every_command_works_on_it_or_says_what_to_do() {
    let Some((server, schema)) = shared("the_log_is_in_the_database_and_every_command_works_on_it_or_says_what_to_do") else {
        return;
    };
    let node = Node::new(&server, &schema);
    // What a command that only reads has made is the user's own.
    for _ in 0..2 {
        let mut command = node.home.command(&["tasks"]);
        node.set(&mut command);
        Done::from(command.env("POLIS_TRUST", "").output().unwrap()).fails(1, "no_data");
    }
    let doctor = node.polis(&["doctor"]);
    assert!(doctor.stdout.contains("has no society yet"), "{}", doctor.stdout);
    let served = node.serve();
    let (_, accepted) = served.post("/api/submit", &json!({ "text": "what is 7 + 3?" }));
    served.until(is_ending);
    let task = accepted["taskId"].as_str().unwrap();
    // Commands of this data directory find the server.
    assert!(node.polis(&["result", task]).ok().contains("10"));
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("the log, artifacts, memories, tokens and logins at MCP servers are in PostgreSQL at 127.0.0.1"),
        "{said}"
    );
    assert!(!node.home.data().join("polis.db").exists());
    assert_ne!(server.psql(&format!("SELECT count(*) FROM {schema}.events")), "0");
    assert_eq!(server.psql(&format!("SELECT count(*) FROM {schema}.societies WHERE owner IS NOT NULL")), "0", "given back");

    // Without a server they open the store themselves.
    assert!(node.polis(&["result", task]).ok().contains("10"));
    let again = node.polis(&["run", "--continue", "what is 8 + 4?"]);
    assert!(again.ok().contains("12"));
    let log = node.polis(&["log", "--json"]).ok();
    assert_eq!(log.lines().count().to_string(), server.psql(&format!("SELECT count(*) FROM {schema}.events")));
    for args in [
        &["show", "root"][..],
        &["agents"],
        &["conversations"],
        &["threads"],
        &["org"],
        &["export"],
        &["usage"],
        &["approvals"],
        &["deploy"],
        &["replay"],
        &["artifacts"],
        &["artifacts", "gc", "--hours", "0"],
        &["memory"],
    ] {
        node.polis(args).ok();
    }
    let doctor = node.polis(&["doctor"]);
    assert!(doctor.stdout.contains("in PostgreSQL at 127.0.0.1") && doctor.stdout.contains("events"), "{}", doctor.stdout);
    node.polis(&["fork", "other", "--at", "5"]).ok();
    node.polis(&["rewind", "--to", "5"]).ok();
    let societies = node.polis(&["societies"]).ok();
    assert_eq!(societies.lines().count(), 3, "{societies}");
    assert!(node.polis(&["run", "what is 2 + 2?"]).ok().contains('4'), "the rewound one goes on");
    assert!(node.polis(&["--society", "other", "run", "what is 3 + 3?"]).ok().contains('6'), "and the fork");

    for args in [
        &["archive"][..],
        &["backup", "elsewhere"],
        &["restore", "elsewhere"],
        &["verify"],
        &["serve", "--take-over", "--listen", "127.0.0.1:0"],
    ] {
        let refused = node.polis(args);
        refused.fails(2, "needs_local_log");
        assert!(refused.stderr.contains("PostgreSQL at 127.0.0.1"), "{}", refused.stderr);
    }
    assert!(!node.home.data().join("polis.db").exists());
}

/// What an erased conversation has and nothing else.
const CANARY: &str = "48611";

/// A history with a fork, a rewind and an erasure.
fn history(node: &Node) -> String {
    let done = node.polis(&["run", &format!("what is {CANARY} + 3?")]);
    let erased = done.conversation();
    done.ok();
    let stays = node.polis(&["run", "what is 20 + 3?"]);
    let stays = stays.conversation();
    node.polis(&["fork", "other"]).ok();
    assert!(node.polis(&["log", "--json"]).ok().contains(CANARY));
    node.polis(&["delete", &erased, "--yes"]).ok();
    for society in ["main", "other"] {
        let log = node.polis(&["--society", society, "log", "--json"]).ok();
        assert!(!log.contains(CANARY) && log.contains("20 + 3"), "{log}");
    }
    stays
}

#[test]
fn a_conversation_is_erased_in_the_database() {
    let Some((server, schema)) = shared("a_conversation_is_erased_in_the_database") else { return };
    let node = Node::new(&server, &schema);
    let stays = history(&node);
    assert_ne!(server.psql(&format!("SELECT count(*) FROM {schema}.events WHERE version & 131072 <> 0")), "0");
    assert!(node.polis(&["show", &stays]).ok().contains("20 + 3"));
    node.polis(&["replay"]).ok();
}

/// Each society with its last event and its hash chain.
fn chains(json: &str) -> Vec<Value> {
    let found: Value = serde_json::from_str(json).unwrap();
    let mut societies: Vec<_> =
        found["societies"].as_array().unwrap().iter().map(|it| json!([it["name"], it["events"], it["chain"]])).collect();
    societies.sort_by_key(ToString::to_string);
    societies
}

fn logs(node: &Node, societies: &[&str]) -> Vec<String> {
    societies.iter().map(|society| node.polis(&["--society", society, "log", "--json"]).ok()).collect()
}

#[test]
fn a_log_is_moved_to_the_database_and_back_with_all_that_is_in_it_or_not_at_all() {
    let test = "a_log_is_moved_to_the_database_and_back_with_all_that_is_in_it_or_not_at_all";
    let Some((server, schema)) = shared(test) else { return };
    let mut node = Node { home: Home::new(), url: String::new() };
    let url = server.url(&schema);
    history(&node);
    node.polis(&["rewind", "--to", "20"]).ok();
    node.polis(&["run", "what is 5 + 6?"]).ok();
    let names: Vec<String> =
        node.polis(&["societies"]).ok().lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(names.len(), 3);
    let (long, short) = ("0123456789abcdef".repeat(200_000), "short".to_owned());
    let ids = [&long, &short].map(|text| attach(&node, text));
    let at = |data: &str, args: &[&str]| node.home.polis(&[&["--data", data], args].concat()).ok();
    let beside = |node: &Node| {
        let contents = ids.each_ref().map(|id| node.polis(&["artifacts", "get", id]).ok());
        assert!(contents == [long.clone(), short.clone()]);
        (node.polis(&["memory"]).ok(), node.polis(&["token", "list"]).ok())
    };
    node.polis(&["memory", "add", "Ann drinks tea"]).ok();
    node.polis(&["memory", "add", "Ann eats cake"]).ok();
    node.polis(&["token", "new", "--name", "ci", "--scope", "read"]).ok();
    let beside_before = beside(&node);
    assert!(beside_before.0.contains("tea") && beside_before.1.starts_with("ci  read"), "{beside_before:?}");
    let (before, sound) = (logs(&node, &names), node.polis(&["verify", "--json"]).ok());
    let login_before = br#"{"url":"https://there/mcp","credentials":"refresh"}"#;
    fs::create_dir(node.home.data().join("logins")).unwrap();
    fs::write(node.home.data().join(LOGIN), login_before).unwrap();
    let there: &[&str] = &["migrate", "--from", ".polis", "--to", &url, "--json"];

    // One that is killed in the middle has left nothing.
    node.url.clone_from(&url);
    node.polis(&["doctor"]);
    server.psql(&format!(
        "CREATE FUNCTION {schema}.wait() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_sleep(3600); RETURN NEW; END $$;
         CREATE TRIGGER wait BEFORE INSERT ON {schema}.events FOR EACH ROW WHEN (NEW.seq = 9) EXECUTE FUNCTION {schema}.wait()"
    ));
    let mut killed = node.home.command(there).spawn().unwrap();
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND application_name = 'polis'";
    while server.psql(waits) == "0" {
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    server.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND application_name = 'polis'",
    );
    server.psql(&format!("DROP TRIGGER wait ON {schema}.events"));
    assert_eq!(server.psql(&format!("SELECT count(*) FROM {schema}.societies")), "0");

    let moved = node.polis(there).ok();
    assert_eq!(chains(&moved), chains(&sound));
    let counts = |json: &str| {
        let found: Value = serde_json::from_str(json).unwrap();
        ["artifacts", "memories", "tokens", "logins"].map(|what| found[what].as_u64().unwrap())
    };
    assert_eq!(counts(&moved), [2, 2, 1, 1]);
    let login = format!("SELECT encode(body, 'escape') FROM {schema}.documents WHERE name LIKE 'encrypted/%/{LOGIN}'");
    assert!(!server.psql(&login).is_empty() && !server.psql(&login).contains("refresh"), "encrypted");
    assert_eq!(logs(&node, &names), before);
    for what in ["artifacts", "memory.db", "tokens.json"] {
        fs::rename(node.home.data().join(what), node.home.path().join(what)).unwrap();
    }
    assert_eq!(beside(&node), beside_before);
    // What is erased now does not come back with what an earlier log has left.
    let listed: Value = serde_json::from_str(&node.polis(&["memory", "--json"]).ok()).unwrap();
    let cake = listed["memories"].as_array().unwrap().iter().find(|it| it["text"] == "Ann eats cake").unwrap();
    node.polis(&["memory", "forget", cake["id"].as_str().unwrap(), "--yes"]).ok();
    node.polis(&["token", "revoke", "ci"]).ok();
    let beside_after = beside(&node);
    node.polis(there).fails(1, "log_failed");
    let restricted = node.home.serve_with(&[], |command| node.set(command));
    node.polis(&["migrate", "--from", &url, "--to", "back"]).fails(1, "owned_elsewhere");
    restricted.stop();
    assert!(node.polis(&["run", "what is 8 + 4?"]).ok().contains("12"), "it goes on");
    node.polis(&["replay"]).ok();
    let after = logs(&node, &names);

    // And back, into a folder in which one that was killed has left something.
    fs::create_dir_all(node.home.path().join("back/migrating")).unwrap();
    fs::write(node.home.path().join("back/migrating/polis.db"), "half").unwrap();
    for what in ["memory.db", "tokens.json"] {
        fs::rename(node.home.path().join(what), node.home.path().join("back").join(what)).unwrap();
    }
    let back: &[&str] = &["migrate", "--from", &url, "--to", "back", "--json"];
    let moved = node.polis(back).ok();
    assert_eq!(counts(&moved), [2, 1, 0, 1]);
    assert_eq!(fs::read(node.home.path().join("back").join(LOGIN)).unwrap(), login_before);
    node.polis(back).fails(1, "log_failed");
    node.url = String::new();
    assert_eq!(chains(&moved), chains(&node.polis(&["verify", "back", "--json"]).ok()));
    assert!(!node.home.path().join("back/migrating").exists());
    let at_back = |args: &[&str]| node.polis(&[&["--data", "back"], args].concat()).ok();
    let came: Vec<_> = names.iter().map(|society| at_back(&["--society", society, "log", "--json"])).collect();
    assert_eq!(came, after);
    assert_eq!((at("back", &["memory"]), at("back", &["token", "list"])), beside_after);
    assert_eq!(ids.each_ref().map(|id| at("back", &["artifacts", "get", id]).len()), [long.len(), short.len()]);
    let texts = fs::read(node.home.path().join("back/memory.db")).unwrap();
    assert!(!texts.windows(4).any(|four| four == b"cake"));
    assert!(at_back(&["run", "what is 9 + 4?"]).contains("13"));
    at_back(&["replay"]);
    node.polis(&["migrate", "--from", ".polis", "--to", "elsewhere"]).fails(2, "bad_migration");
    node.polis(&["migrate", "--from", "nowhere", "--to", &url]).fails(1, "no_data");
}

#[test]
fn a_second_node_is_refused_until_the_lease_of_the_first_has_ended_which_stops_by_itself() {
    let test = "a_second_node_is_refused_until_the_lease_of_the_first_has_ended_which_stops_by_itself";
    let Some((server, schema)) = shared(test) else { return };
    let [first, second] = [(); 2].map(|()| Node::new(&server, &schema));
    for node in [&first, &second] {
        node.home.write("polis.toml", "[store]\nlease = \"5s\"\n");
    }
    let one = first.serve();
    one.post("/api/submit", &json!({ "text": "what is 7 + 3?" }));
    one.until(is_ending);
    // The other node may read, but not write.
    assert!(second.polis(&["log"]).ok().contains("7 + 3"));
    for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["run", "what is 1 + 1?"]] {
        let refused = second.polis(args);
        refused.fails(1, "owned_elsewhere");
        let owner = server.psql(&format!("SELECT owner FROM {schema}.societies WHERE name = 'main'"));
        assert!(owner.contains(", process ") && refused.stderr.contains(&owner), "{owner}: {}", refused.stderr);
    }
    // One that stands still for longer than its lease has lost it when it goes on.
    one.signal(Signal::STOP);
    let two = second.serve_for(one.token.as_deref().unwrap());
    two.post("/api/submit", &json!({ "text": "what is 8 + 4?" }));
    two.until(|recorded| is_ending(recorded) && serde_json::to_string(recorded).unwrap().contains("12"));
    one.signal(Signal::CONT);
    let (code, said) = one.ends();
    assert_eq!(code, 1, "{said}");
    assert!(said.trim_end().ends_with("(lease_lost)") || said.trim_end().ends_with("(log_conflict)"), "{said}");
    // One that was killed keeps nobody waiting for longer than its lease.
    two.kill();
    let one = first.serve();
    assert!(first.polis(&["log"]).ok().contains("8 + 4"));
    // One that is stopped keeps nobody waiting at all.
    one.stop();
    let (_, said) = second.serve().stop();
    assert!(!said.contains("takes over"), "{said}");
}

#[test]
fn a_store_that_cannot_be_opened_says_why_and_what_to_do() {
    let Some((server, schema)) = shared("a_store_that_cannot_be_opened_says_why_and_what_to_do") else { return };
    let mut node = Node::new(&server, &schema);
    node.polis(&["run", "what is 7 + 3?"]).ok();
    let refused = |node: &Node, status: i32, code: &str, advice: &str| {
        let done = node.polis(&["log"]);
        done.fails(status, code);
        assert!(done.stderr.contains(advice), "{}", done.stderr);
    };
    server.psql(&format!("UPDATE {schema}.versions SET events = events + 1"));
    refused(&node, 1, "data_too_new", "Use that polis");
    server.psql(&format!("UPDATE {schema}.versions SET events = events - 1"));
    server.psql(&format!("UPDATE {schema}.events SET at = at + 1 WHERE seq = 3"));
    refused(&node, 1, "data_damaged", "event 3 of `main`");
    node.url = format!("postgres://polis@127.0.0.1:{}/nowhere", server.port());
    refused(&node, 1, "log_failed", "create the database");
    node.url = "postgres://polis:secret@127.0.0.1:1/postgres".to_owned();
    refused(&node, 1, "log_failed", "PostgreSQL at 127.0.0.1:1");
    refused(&node, 1, "log_failed", "check that the server runs");
    node.url = "mysql://polis:secret@127.0.0.1/x".to_owned();
    refused(&node, 2, "bad_store", "postgres://");
}

#[test]
fn a_password_comes_from_the_environment_and_is_never_shown() {
    let Some(server) = Server::own("cli::postgres::a_password_comes_from_the_environment_and_is_never_shown") else { return };
    server.psql("ALTER ROLE polis PASSWORD 'secret'");
    let hba = server.dir().join("data/pg_hba.conf");
    fs::write(&hba, "host all all 127.0.0.1/32 scram-sha-256\n").unwrap();
    give(&hba);
    server.kill();
    server.start();
    let home = Home::new();
    let run = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = home.command(args);
        command.envs(variables.iter().copied()).env("POLIS_LOG", "debug");
        let done = Done::from(command.output().unwrap());
        assert!(!done.stdout.contains("secret") && !done.stderr.contains("secret"), "{}{}", done.stdout, done.stderr);
        done
    };
    let at = |user: &str| format!("postgres://{user}@127.0.0.1:{}/postgres", server.port());
    let (plain, whole) = (at("polis"), at("polis:secret"));
    let missing = run(&["run", "what is 7 + 3?"], &[("POLIS_STORE", &plain)]);
    assert!(missing.stderr.contains("asks for a password"), "{}", missing.stderr);
    let wrong = run(&["run", "what is 7 + 3?"], &[("POLIS_STORE", &plain), ("POLIS_STORE_PASSWORD", "wrong")]);
    assert!(wrong.stderr.contains("check user and password"), "{}", wrong.stderr);
    home.write("polis.toml", &format!("[store]\nurl = \"{plain}\"\n"));
    assert!(run(&["run", "what is 7 + 3?"], &[("POLIS_STORE_PASSWORD", "secret")]).ok().contains("10"));
    home.write("polis.toml", "");
    assert!(run(&["doctor"], &[("POLIS_STORE", &whole)]).stdout.contains("in PostgreSQL at"));
    run(&["--help"], &[("POLIS_STORE", &whole)]).ok();
    let flag = run(&["--store", &whole, "log"], &[]);
    assert!(flag.stderr.contains("can read the password in --store"), "{}", flag.stderr);
    flag.ok();
    home.write("polis.toml", &format!("[store]\nurl = \"{whole}\"\n"));
    run(&["log"], &[]).fails(2, "bad_config");
    // What a folder's file says is not obeyed: it would be where everything goes that is said.
    home.write("polis.toml", &format!("[store]\nurl = \"{plain}\"\n"));
    run(&["trust", "--yes"], &[("POLIS_TRUST", "")]);
    let folder = run(&["log"], &[("POLIS_TRUST", ""), ("POLIS_STORE_PASSWORD", "secret")]);
    assert!(folder.stderr.contains("(store_withheld)"), "{}", folder.stderr);
}

/// Has a request with a file answered; gives the id of the file.
fn attach(node: &Node, text: &str) -> String {
    node.home.write("file.txt", text);
    node.polis(&["run", "--file", "file.txt", "what is 3 + 4?"]).ok();
    Hasher::id_of(text.as_bytes()).to_string()
}

/// Asks with a token until the answer has this status.
fn until_status(address: &str, token: &str, wanted: u16) {
    while http(address, "GET", "/api/version", Some(token), "").0 != wanted {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn nodes_share_artifacts_memories_and_tokens() {
    let Some((server, schema)) = shared("nodes_share_artifacts_memories_and_tokens") else { return };
    let [first, second] = [(); 2].map(|()| Node::new(&server, &schema));
    let one = first.serve();
    let owners = one.token.clone().unwrap();
    // A token that one node makes opens the other, and one that it revokes does not.
    let made = second.polis(&["token", "new", "--name", "ci", "--scope", "read"]).ok();
    until_status(&one.address, made.trim(), 200);
    assert!(first.polis(&["token", "list"]).ok().starts_with("ci  read"));
    second.polis(&["token", "revoke", "ci"]).ok();
    until_status(&one.address, made.trim(), 401);
    assert!(!second.home.data().join("tokens.json").exists());
    let stored = server.psql(&format!("SELECT convert_from(body, 'UTF8') FROM {schema}.documents"));
    assert!(stored.contains("sha256") && !stored.contains(&owners) && !stored.contains(made.trim()), "{stored}");

    first.polis(&["memory", "add", "Ann drinks tea"]).ok();
    second.polis(&["artifacts", "gc"]).fails(1, "owned_elsewhere");
    let (code, said) = one.stop();
    assert_eq!(code, 0, "{said}");
    let id = attach(&first, "a file of the first node");
    assert_eq!(second.polis(&["artifacts", "get", &id]).ok(), "a file of the first node");
    assert!(second.polis(&["memory"]).ok().contains("Ann drinks tea"));
    assert_eq!(second.polis(&["artifacts", "gc", "--hours", "0"]).ok(), "removed 0 artifacts (0 bytes), kept 1\n");
    assert!(!first.home.data().join("artifacts").exists() && !first.home.data().join("memory.db").exists());

    // The owner's token is the one that the first node has made.
    let two = second.serve();
    assert_eq!(two.token, None);
    assert_eq!(http(&two.address, "GET", "/api/version", Some(&owners), "").0, 200);
    let (_, said) = two.stop();
    assert!(said.contains("this node does not have the owner's token"), "{said}");
    assert!(!second.home.data().join("token").exists());
    let two = second.serve_for(&owners);
    assert_eq!(two.token.as_deref(), Some(&*owners));
    two.stop();
    let two = second.serve_for(&"0".repeat(64));
    assert_eq!((two.token.as_deref(), http(&two.address, "GET", "/api/version", Some(&"0".repeat(64)), "").0), (None, 401));

    // When it is revoked it opens nothing, until a node makes another one.
    first.polis(&["token", "revoke", "owner"]).ok();
    assert!(!first.home.data().join("token").exists());
    until_status(&two.address, &owners, 401);
    two.stop();
    let two = second.serve();
    let renewed = two.token.clone().unwrap();
    assert_ne!(renewed, owners);
    assert_eq!(http(&two.address, "GET", "/api/version", Some(&renewed), "").0, 200);
    two.stop();
}
