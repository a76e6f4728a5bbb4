//! Several nodes that share a log in PostgreSQL: any of them serves any request, whichever owns the society.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use polis_domain::Recorded;
use polis_http::Request;
use polis_http::peer::{Peer, PeerKey, admit};
use polis_testkit::postgres::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use super::support::{Done, Home, Served, http, is_ending};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// How long anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// The nodes of a test, which share a schema of a server and the owner's token.
struct Cluster {
    server: Arc<Server>,
    schema: String,
}

impl Cluster {
    fn new(test: &str) -> Option<Self> {
        let server = Server::shared(&format!("cli::nodes::{test}"))?;
        let schema = server.fresh_schema();
        Some(Self { server, schema })
    }

    fn home(&self) -> Home {
        let home = Home::new();
        home.write("polis.toml", "[store]\nlease = \"5s\"\n");
        fs::DirBuilder::new().mode(0o700).create(home.data()).unwrap();
        let mut token =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(home.data().join("token")).unwrap();
        token.write_all(TOKEN.as_bytes()).unwrap();
        home
    }

    /// Starts a node in a home of its own.
    fn node(&self, name: &str) -> Node {
        self.node_in(self.home(), name)
    }

    fn node_in(&self, home: Home, name: &str) -> Node {
        let served = home.serve_with(&["--node-listen", "127.0.0.1:0", "--node-name", name], |command| {
            command.env("POLIS_STORE", self.server.url(&self.schema));
        });
        Node { served, _home: home, prefix: format!("{name}-") }
    }

    fn polis(&self, home: &Home, args: &[&str]) -> Done {
        home.command(args).env("POLIS_STORE", self.server.url(&self.schema)).output().unwrap().into()
    }

    fn sql(&self, sql: &str) -> String {
        self.server.psql(&sql.replace("polis.", &format!("{}.", self.schema)))
    }

    /// The node that owns a society; empty if none does.
    fn owner(&self, society: &str) -> String {
        self.sql(&format!("SELECT owner FROM polis.societies WHERE name = '{society}' AND lease_until > now()"))
    }

    /// Which of two nodes owns a society, and the other one. Waits until it is where it stays.
    fn owner_first(&self, society: &str, nodes: [Node; 2]) -> [Node; 2] {
        let owner = self.sql(&format!(
            "SELECT name FROM polis.nodes ORDER BY sha256(convert_to(name, 'UTF8') || '\\x00'::bytea || '{society}') DESC LIMIT 1"
        ));
        until("the society does not settle", || {
            nodes[0].served.get(&format!("/s/{society}/api/tasks"));
            self.owner(society) == owner
        });
        let [a, b] = nodes;
        if owner.starts_with(&a.prefix) { [a, b] } else { [b, a] }
    }

    /// A new fork of `main` that this node owns.
    fn fork_owned_by(&self, node: &Node) -> String {
        let forks = (0..).map(|n| format!("fork-{n}"));
        let owned = forks.into_iter().find(|fork| {
            assert_eq!(node.served.post("/api/fork", &json!({ "name": fork })).0, 200);
            ask(&node.served, fork, "what is 6 + 7?");
            self.owner(fork).starts_with(&node.prefix)
        });
        owned.unwrap()
    }
}

struct Node {
    served: Served,
    _home: Home,
    prefix: String,
}

/// Looks again and again until it is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Asks in a society and waits for the answer.
fn ask(node: &Served, society: &str, text: &str) -> String {
    let (mut status, mut accepted) = (0, Value::Null);
    // A society that is given away at this moment takes nothing.
    until("the request is not taken", || {
        (status, accepted) = node.post(&format!("/s/{society}/api/submit"), &json!({ "text": text }));
        status != 503
    });
    assert_eq!(status, 200, "{accepted}");
    let task = accepted["taskId"].as_str().unwrap().to_owned();
    let target = format!("/s/{society}/api/tasks/{task}");
    let mut state = Value::Null;
    until("the request does not end", || {
        state = node.get(&target).1;
        state["status"] == "done"
    });
    task
}

/// The events of a stream until one is what is looked for, or until the stream ends. Gives the ids too.
fn follow(stream: &mut BufReader<TcpStream>, mut is_last: impl FnMut(&Recorded) -> bool) -> Vec<Recorded> {
    let mut events = Vec::new();
    let mut line = String::new();
    loop {
        line.clear();
        match stream.read_line(&mut line) {
            Ok(0) => return events,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof) => return events,
            Err(error) => panic!("{error}"),
        }
        if let Some(recorded) = line.strip_prefix("data: ").and_then(|data| serde_json::from_str::<Recorded>(data).ok()) {
            let is_last = is_last(&recorded);
            events.push(recorded);
            if is_last {
                return events;
            }
        }
    }
}

/// A stream that goes on after an event.
fn resumed(node: &Served, last: u64) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(&node.address).unwrap();
    write!(
        stream,
        "GET /api/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nLast-Event-ID: {last}\r\n\r\n",
        node.address
    )
    .unwrap();
    let mut stream = BufReader::new(stream);
    let mut status = String::new();
    stream.read_line(&mut status).unwrap();
    assert!(status.contains("200"), "{status}");
    stream
}

fn raw(node: &Served, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(&node.address).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn any_node_serves_a_society_that_another_one_owns() {
    let Some(cluster) = Cluster::new("any_node_serves_a_society_that_another_one_owns") else { return };
    let nodes = ["a", "b"].map(|name| cluster.node(name));
    ask(&nodes[0].served, "main", "what is 7 + 3?");
    let [owner, other] = cluster.owner_first("main", nodes);
    assert!(cluster.owner("main").starts_with(&owner.prefix));
    let (owner, other) = (&owner.served, &other.served);
    // Events, commands and reads.
    other.until(is_ending);
    let task = ask(other, "main", "what is 20 + 22?");
    for node in [owner, other] {
        let (status, messages) = node.get(&format!("/api/messages/{task}"));
        assert!(status == 200 && messages.to_string().contains("42"), "{messages}");
    }
    // A body that is streamed, with and without a length.
    let content = "0123456789abcdef".repeat(128 << 10);
    let head = |framing: &str| {
        format!(
            "POST /api/artifacts?name=long.txt HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: text/plain\r\n\
             Connection: close\r\n{framing}\r\n\r\n",
            other.address
        )
    };
    let length = format!("{}{content}", head(&format!("Content-Length: {}", content.len())));
    let chunked = format!("{}{:x}\r\n{content}\r\n0\r\n\r\n", head("Transfer-Encoding: chunked"), content.len());
    let mut stored = Vec::new();
    for request in [length, chunked] {
        let answer = raw(other, request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let artifact: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        stored.push(artifact["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(stored[0], stored[1]);
    let get = format!(
        "GET /api/artifacts/{} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n",
        stored[0], other.address
    );
    assert!(raw(other, get.as_bytes()).ends_with(&content), "the content comes back");
    // Protocols.
    let (status, models) = other.get("/v1/models");
    assert!(status == 200 && models.to_string().contains("root"), "{models}");
    let chat = json!({ "model": "root", "messages": [{ "role": "user", "content": "what is 30 + 3?" }] });
    let (status, completion) = other.post("/v1/chat/completions", &chat);
    assert!(status == 200 && completion.to_string().contains("33"), "{completion}");
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let (status, listed) = other.post("/mcp", &initialize);
    assert!(status == 200 && listed.to_string().contains("submit"), "{listed}");
    // The owner checks the token itself, and the client is told as by one server.
    assert_eq!(super::support::http(&other.address, "GET", "/api/tasks", Some(&"f".repeat(64)), "").0, 401);
    assert_eq!(other.get("/s/nothing/api/tasks").0, 404);
    // The nodes.
    let (status, listed) = other.get("/api/nodes");
    assert_eq!(status, 200, "{listed}");
    assert_eq!(listed["nodes"].as_array().unwrap().len(), 2, "{listed}");
    let home = cluster.home();
    let shown = cluster.polis(&home, &["nodes"]);
    let (out, setup) = (&shown.stdout, listed["nodes"][0]["setup"].as_str().unwrap());
    assert!(out.lines().count() == 2 && out.contains(&format!("societies 1      setup {setup} lease")), "{out}");
    assert!(out.lines().all(|line| line.contains(setup)) && shown.stderr.is_empty(), "{out}{}", shown.stderr);
    // Where a node listens is its own; a role is not.
    let another = cluster.home();
    another.write("polis.toml", "[store]\nlease = \"5s\"\n[cluster]\nname = \"third\"\n");
    let third = cluster.node_in(another, "third");
    assert_eq!(cluster.polis(&home, &["nodes"]).stderr, "");
    third.served.stop();
    let another = cluster.home();
    fs::create_dir(another.path().join("roles")).unwrap();
    another.write("roles/poet.md", "---\nname: Poet\n---\nYou write poems.\n");
    let _fourth = cluster.node_in(another, "fourth");
    let differs = cluster.polis(&home, &["nodes"]).stderr;
    assert!(differs.contains("nodes have different settings, roles"), "{differs}");
    assert_eq!(other.get("/api/health").0, 200);
    cluster.polis(&home, &["drain", "nobody"]).fails(1, "unknown_node");
}

#[test]
fn a_stream_through_another_node_goes_on_after_its_owner_was_killed() {
    let Some(cluster) = Cluster::new("a_stream_through_another_node_goes_on_after_its_owner_was_killed") else { return };
    let nodes = ["a", "b"].map(|name| cluster.node(name));
    ask(&nodes[0].served, "main", "what is 7 + 3?");
    let [owner, other] = cluster.owner_first("main", nodes);
    let mut stream = other.served.stream("/api/events?after=0");
    let mut seen = follow(&mut stream, is_ending);
    owner.served.kill();
    seen.extend(follow(&mut stream, |_| false));
    // The next request waits until the society is this node's.
    let mut stream = resumed(&other.served, seen.last().unwrap().seq.0);
    assert!(cluster.owner("main").starts_with(&other.prefix));
    ask(&other.served, "main", "what is 20 + 22?");
    seen.extend(follow(&mut stream, |recorded| is_ending(recorded) && format!("{recorded:?}").contains("42")));
    let seqs: Vec<u64> = seen.iter().map(|recorded| recorded.seq.0).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_node_that_joins_gets_a_share_and_one_that_is_drained_or_stopped_gives_its_own_away() {
    let test = "a_node_that_joins_gets_a_share_and_one_that_is_drained_or_stopped_gives_its_own_away";
    let Some(cluster) = Cluster::new(test) else { return };
    let a = cluster.node("a");
    let names: Vec<String> = (0..8).map(|n| format!("team-{n}")).collect();
    for name in &names {
        let (status, begun) = a.served.post("/api/societies", &json!({ "name": name }));
        assert_eq!(status, 200, "{begun}");
    }
    // Alone, it has them all.
    let count = |node: &Node| names.iter().filter(|name| cluster.owner(name).starts_with(&node.prefix)).count();
    assert_eq!(count(&a), 8);
    // A society of which a stream is open tells its clients to come again, and goes on elsewhere.
    let b = cluster.node("b");
    until("the node that joined gets nothing", || {
        // Idle ones have no owner until a request for them arrives.
        names.iter().for_each(|name| assert_eq!(a.served.get(&format!("/s/{name}/api/tasks")).0, 200));
        count(&b) > 0 && count(&a) + count(&b) == 8
    });
    let home = cluster.home();
    let drained = cluster.polis(&home, &["drain", "a-"]).ok();
    assert!(drained.contains("gives its societies"), "{drained}");
    until("the drained node keeps some", || count(&a) == 0);
    assert_eq!(a.served.get("/api/health").0, 503);
    for name in &names {
        assert_eq!(a.served.get(&format!("/s/{name}/api/tasks")).0, 200, "it still passes requests on");
    }
    assert_eq!(count(&b), 8);
    cluster.polis(&home, &["drain", "a-", "--undo"]).ok();
    until("it takes none again", || {
        names.iter().for_each(|name| assert_eq!(b.served.get(&format!("/s/{name}/api/tasks")).0, 200));
        count(&a) > 0
    });
    // One that stops hands over what it has; nobody waits for a lease.
    let (code, said) = b.served.stop();
    assert_eq!(code, 0, "{said}");
    let begun = Instant::now();
    for name in &names {
        ask(&a.served, name, "what is 20 + 22?");
    }
    assert_eq!(count(&a), 8, "after {:?}", begun.elapsed());
    assert_eq!(cluster.sql("SELECT count(*) FROM polis.nodes"), "1");
}

#[test]
fn a_node_that_stands_still_beyond_its_lease_loses_its_societies_and_passes_requests_on() {
    let test = "a_node_that_stands_still_beyond_its_lease_loses_its_societies_and_passes_requests_on";
    let Some(cluster) = Cluster::new(test) else { return };
    let nodes = ["a", "b"].map(|name| cluster.node(name));
    ask(&nodes[0].served, "main", "what is 7 + 3?");
    let [owner, other] = cluster.owner_first("main", nodes);
    owner.served.signal(Signal::STOP);
    // Nobody asks for it, and it is continued all the same.
    until("nobody takes over", || cluster.owner("main").starts_with(&other.prefix));
    // The connection to the owner is still there; what only reads is asked for again.
    assert_eq!(other.served.get("/api/tasks").0, 200);
    ask(&other.served, "main", "what is 20 + 22?");
    assert!(cluster.owner("main").starts_with(&other.prefix));
    owner.served.signal(Signal::CONT);
    // Any node answers with the log that has both requests.
    let mut served = owner.served;
    let task = ask(&served, "main", "what is 30 + 3?");
    let (_, through) = served.get(&format!("/api/messages/{task}"));
    assert_eq!(through, other.served.get(&format!("/api/messages/{task}")).1);
    assert!(served.is_running());
    let (_, log) = other.served.get("/api/log?after=0&limit=1000");
    let log = log.to_string();
    for text in ["7 + 3", "20 + 22", "30 + 3"] {
        assert!(log.contains(text), "{text}");
    }
}

#[test]
fn only_a_node_is_let_in_and_only_the_node_with_the_listed_key_is_asked() {
    let Some(cluster) = Cluster::new("only_a_node_is_let_in_and_only_the_node_with_the_listed_key_is_asked") else { return };
    let node = cluster.node("a");
    ask(&node.served, "main", "what is 7 + 3?");
    let address = cluster.sql("SELECT address FROM polis.nodes");
    let key: Vec<u8> = cluster
        .sql("SELECT encode(key, 'hex') FROM polis.nodes")
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let request = || {
        let request = Request::get("https://127.0.0.1/api/tasks").header("authorization", format!("Bearer {TOKEN}"));
        request.header("x-polis-client", "127.0.0.1").body(String::new()).unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answered = |own: &PeerKey| {
        runtime.block_on(async {
            let mut peer: Peer<String> = own.connect(&address, &key).await.ok()?;
            Some(peer.send(request()).await.ok()?.status().as_u16())
        })
    };
    let own = PeerKey::generate().unwrap();
    assert_eq!(answered(&own), None, "a stranger with the owner's token");
    // Without a key, and without TLS.
    let plain = format!("GET /api/tasks HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(plain.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/"), "{answer:?}");
    // A process that can write to the table is a node.
    let digest: String = own.digest().iter().map(|byte| format!("{byte:02x}")).collect();
    cluster.sql(&format!(
        "INSERT INTO polis.nodes (name, address, key, lease_until, draining)
         VALUES ('friend', '127.0.0.1:1', decode('{digest}', 'hex'), now() + interval '1 hour', true)"
    ));
    assert_eq!(answered(&own), Some(200));
    // A row with a wrong key sends nothing to where it points.
    let wrong = "00".repeat(32);
    cluster.sql(&format!(
        "INSERT INTO polis.nodes (name, address, key, lease_until, draining)
         VALUES ('false', '{address}', decode('{wrong}', 'hex'), now() + interval '1 hour', true)"
    ));
    cluster.sql(
        "INSERT INTO polis.societies (name, first_name, owner, lease_until, epoch)
         VALUES ('theirs', 'theirs', 'false', now() + interval '1 hour', 1)",
    );
    let (status, problem) = node.served.get("/s/theirs/api/tasks");
    assert_eq!((status, problem["code"].as_str()), (503, Some("society_moving")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("another key"), "{problem}");
}

#[test]
fn what_a_node_needs_is_asked_for() {
    let home = Home::new();
    for args in [
        &["serve", "--node-listen", "127.0.0.1:0"][..],
        &["serve", "--node-address", "127.0.0.1:9"],
        &["--store", "postgres://polis@127.0.0.1:1/x", "serve", "--node-listen", "0.0.0.0:0"],
        &["--store", "postgres://polis@127.0.0.1:1/x", "serve", "--node-listen", "127.0.0.1:0", "--node-address", "here"],
        &["--store", "postgres://polis@127.0.0.1:1/x", "serve", "--node-listen", "127.0.0.1:0", "--node-name", "a b"],
    ] {
        home.polis(args).fails(2, "bad_node");
    }
    home.polis(&["nodes"]).fails(2, "no_nodes");
    let served = home.serve(&[]);
    let (status, problem) = served.get("/api/nodes");
    assert_eq!((status, problem["code"].as_str()), (409, Some("no_nodes")), "{problem}");
}

/// A node that reads the head of each request and is gone then. Gives how many it has read.
async fn gone_at_once(own: PeerKey, listener: tokio::net::TcpListener, read: Arc<AtomicUsize>) {
    while let Ok((stream, _)) = listener.accept().await {
        let Ok((mut stream, _)) = own.accept(stream).await else { continue };
        admit(&mut stream).await.unwrap();
        // The preface, and frames until the one with the head.
        stream.read_exact(&mut [0; 24]).await.unwrap();
        loop {
            let mut frame = [0; 9];
            stream.read_exact(&mut frame).await.unwrap();
            let length = u32::from_be_bytes([0, frame[0], frame[1], frame[2]]);
            stream.read_exact(&mut vec![0; length as usize]).await.unwrap();
            if frame[3] == 1 {
                break;
            }
        }
        read.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_request_that_may_change_something_is_sent_to_one_node_only_unless_it_has_a_key() {
    let test = "a_request_that_may_change_something_is_sent_to_one_node_only_unless_it_has_a_key";
    let Some(cluster) = Cluster::new(test) else { return };
    let node = cluster.node("a");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (own, read) = (PeerKey::generate().unwrap(), Arc::new(AtomicUsize::new(0)));
    let digest: String = own.digest().iter().map(|byte| format!("{byte:02x}")).collect();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(gone_at_once(own, listener, read.clone()));
    cluster.sql(&format!(
        "INSERT INTO polis.nodes (name, address, key, lease_until, draining)
         VALUES ('weak', '{address}', decode('{digest}', 'hex'), now() + interval '1 hour', true)"
    ));
    cluster.sql(
        "INSERT INTO polis.societies (name, first_name, owner, lease_until, epoch)
         VALUES ('main', 'main', 'weak', now() + interval '1 hour', 1)
         ON CONFLICT (name) DO UPDATE SET owner = 'weak', lease_until = now() + interval '1 hour', epoch = 99",
    );
    // The node may have had it; then it has to notice that it has not.
    until("the request is passed on", || node.served.get("/api/tasks").1["code"] == "society_moving");
    let before = read.load(Ordering::SeqCst);
    assert!(before > 1, "what only reads is asked for again");
    let body = json!({ "text": "what is 7 + 3?" });
    let (status, problem) = node.served.post("/api/submit", &body);
    assert_eq!((status, problem["code"].as_str()), (502, Some("node_lost")), "{problem}");
    assert_eq!(read.load(Ordering::SeqCst), before + 1);
    let (status, problem) = try_submit(&node.served.address, "a key", &body).unwrap();
    assert_eq!((status, problem["code"].as_str()), (503, Some("society_moving")), "{problem}");
    assert!(read.load(Ordering::SeqCst) > before + 2);
}

/// A request with a key, through any node; none if there was no answer.
fn try_submit(address: &str, key: &str, body: &Value) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let body = body.to_string();
    let head = format!(
        "POST /api/submit HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
         Idempotency-Key: {key}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).ok()?))
}

/// Sends one numbered request after the other in a conversation of its own, each until it is acknowledged. Gives the texts.
fn write_until(addresses: &Mutex<Vec<String>>, writer: usize, acknowledged: &AtomicUsize, is_over: &AtomicBool) -> Vec<String> {
    let (mut texts, mut conversation) = (Vec::new(), None);
    while !is_over.load(Ordering::Relaxed) {
        let text = format!("what is {writer}000 + {}?", texts.len());
        let mut body = json!({ "text": text });
        if let Some(conversation) = &conversation {
            body["conversation"] = json!(conversation);
        }
        let begun = Instant::now();
        for attempt in 0.. {
            assert!(begun.elapsed() < LONG, "`{text}` is not acknowledged");
            let address = {
                let all = addresses.lock().unwrap();
                all[(writer + texts.len() + attempt) % all.len()].clone()
            };
            match try_submit(&address, &text, &body) {
                Some((200, accepted)) => {
                    conversation = Some(accepted["conversation"].as_str().unwrap().to_owned());
                    break;
                }
                // What may be tried again. The key makes it once.
                None | Some((503, _)) => std::thread::yield_now(),
                Some(refused) => panic!("{text}: {refused:?}"),
            }
        }
        texts.push(text);
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
    texts
}

/// Each acknowledged request is in the log once and in the order of its conversation, and is answered once.
#[test]
fn three_nodes_of_which_one_after_the_other_is_killed_lose_and_repeat_nothing() {
    let test = "three_nodes_of_which_one_after_the_other_is_killed_lose_and_repeat_nothing";
    let Some(cluster) = Cluster::new(test) else { return };
    let mut nodes: Vec<Node> = ["a", "b", "c"].map(|name| cluster.node(name)).into();
    let listed = |nodes: &[Node]| -> Vec<String> { nodes.iter().map(|node| node.served.address.clone()).collect() };
    let (addresses, acknowledged, is_over) = (Mutex::new(listed(&nodes)), AtomicUsize::new(0), AtomicBool::new(false));
    let written: Vec<Vec<String>> = std::thread::scope(|scope| {
        let (addresses, acknowledged, is_over) = (&addresses, &acknowledged, &is_over);
        let writers: Vec<_> =
            (1..=3).map(|writer| scope.spawn(move || write_until(addresses, writer, acknowledged, is_over))).collect();
        let more = |count: usize| {
            let wanted = acknowledged.load(Ordering::Relaxed) + count;
            until("nothing is acknowledged", || acknowledged.load(Ordering::Relaxed) >= wanted);
        };
        for kills in 0..kills() {
            more(5);
            let owner = cluster.owner("main");
            let at = nodes.iter().position(|node| owner.starts_with(&node.prefix)).unwrap_or(0);
            nodes.remove(at).served.kill();
            nodes.push(cluster.node(&format!("n{kills}")));
            *addresses.lock().unwrap() = listed(&nodes);
        }
        more(5);
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    // Everything that was acknowledged is answered in the end.
    let through = &nodes[0].served;
    until("open requests do not end", || through.get("/api/tasks").1["tasks"].as_array().is_some_and(Vec::is_empty));
    let (mut log, mut after) = (Vec::new(), 0);
    loop {
        let (_, page) = through.get(&format!("/api/log?after={after}&limit=500"));
        let events: Vec<Recorded> = serde_json::from_value(page["events"].clone()).unwrap();
        let Some(last) = events.last() else { break };
        after = last.seq.0;
        log.extend(events);
    }
    assert!(log.iter().zip(1..).all(|(recorded, seq)| recorded.seq.0 == seq), "no gap");
    let said: Vec<&str> = log
        .iter()
        .filter_map(|recorded| recorded.event.envelope())
        .filter(|envelope| envelope.from.is_user())
        .map(|envelope| envelope.payload.own_words())
        .collect();
    for texts in &written {
        let writer = texts[0].split("000 ").next().unwrap();
        let theirs: Vec<&str> = said.iter().filter(|text| text.starts_with(&format!("{writer}000 "))).copied().collect();
        assert_eq!(&theirs, texts, "once each, in order");
    }
    let answers = log.iter().filter(|recorded| is_ending(recorded)).count();
    assert_eq!(answers, written.iter().map(Vec::len).sum::<usize>());
}

/// How many nodes are killed.
fn kills() -> usize {
    std::env::var("POLIS_TEST_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(3)
}

#[test]
fn nodes_share_rate_limits() {
    let Some(cluster) = Cluster::new("nodes_share_rate_limits") else { return };
    let nodes = ["one", "two"].map(|name| {
        let home = cluster.home();
        home.write("polis.toml", "[store]\nlease = \"5s\"\n[server]\nrequests_per_second = 1\n");
        let served = home.serve_with(&["--node-listen", "127.0.0.1:0", "--node-name", name], |command| {
            command.env("POLIS_STORE", cluster.server.url(&cluster.schema));
        });
        Node { served, _home: home, prefix: format!("{name}-") }
    });
    let token = cluster.polis(&nodes[0]._home, &["token", "new", "--name", "ci", "--scope", "read"]).ok();
    let [one, two] = cluster.owner_first("main", nodes);
    ask(&one.served, "main", "what is 2 + 3?");
    // Each answers itself.
    let fork = format!("/s/{}/api/tasks", cluster.fork_owned_by(&two));
    let asked = |node: &Node, target: &str| http(&node.served.address, "GET", target, Some(token.trim()), "").0;
    until("the token is not known", || asked(&one, "/api/tasks") == 200 && asked(&two, &fork) == 200);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Whatever may be taken is taken at the first node.
        scope.spawn(|| {
            let begun = Instant::now();
            while !is_over.load(Ordering::Relaxed) && begun.elapsed() < LONG {
                asked(&one, "/api/tasks");
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        // Fewer requests than the limit allows, and yet they are refused.
        until("the second node does not know what the first has taken", || {
            std::thread::sleep(Duration::from_millis(1_200));
            asked(&two, &fork) == 429
        });
        is_over.store(true, Ordering::Relaxed);
    });
    // With time there is something left again.
    until("the limit stays reached", || {
        std::thread::sleep(Duration::from_millis(1_200));
        asked(&two, &fork) == 200
    });
}

#[test]
fn an_erasure_reaches_the_societies_of_other_nodes_that_share_the_texts() {
    let test = "an_erasure_reaches_the_societies_of_other_nodes_that_share_the_texts";
    let Some(cluster) = Cluster::new(test) else { return };
    let [one, two] = cluster.owner_first("main", [cluster.node("one"), cluster.node("two")]);
    let asked = |text: &str| {
        let (_, accepted) = one.served.post("/api/submit", &json!({ "text": text }));
        let task = format!("/api/tasks/{}", accepted["taskId"].as_str().unwrap());
        until("the request does not end", || one.served.get(&task).1["status"] == "done");
        accepted["conversation"].as_str().unwrap().to_owned()
    };
    let (erased, stays) = (asked("wintergreen: what is 2 + 3?"), asked("what is 4 + 5?"));
    let fork = cluster.fork_owned_by(&two);
    let listed = || two.served.get(&format!("/s/{fork}/api/conversations")).1;
    let said = || two.served.get(&format!("/s/{fork}/api/conversations/{erased}")).1.to_string();
    assert!(listed().to_string().contains("wintergreen") && listed().to_string().contains(&stays), "{}", listed());
    assert_eq!(one.served.post(&format!("/api/conversations/{erased}/erase"), &json!({})).0, 200);
    until("the fork still has the text", || {
        let listed = listed().to_string();
        // What it shares otherwise is there all the time.
        assert!(listed.contains(&stays), "{listed}");
        !listed.contains("wintergreen")
    });
    assert!(!said().contains("wintergreen"), "{}", said());
    assert!(cluster.owner(&fork).starts_with(&two.prefix));
    ask(&two.served, &fork, "what is 8 + 9?");
}

#[test]
fn an_erasure_reaches_a_process_that_is_none_of_several_nodes() {
    let test = "an_erasure_reaches_a_process_that_is_none_of_several_nodes";
    let Some(cluster) = Cluster::new(test) else { return };
    let homes = [cluster.home(), cluster.home()];
    let serve = |home: &Home, args: &[&str]| {
        home.serve_with(args, |command| {
            command.env("POLIS_STORE", cluster.server.url(&cluster.schema));
        })
    };
    let one = serve(&homes[0], &[]);
    let (_, accepted) = one.post("/api/submit", &json!({ "text": "wintergreen: what is 2 + 3?" }));
    let task = format!("/api/tasks/{}", accepted["taskId"].as_str().unwrap());
    until("the request does not end", || one.get(&task).1["status"] == "done");
    assert_eq!(one.post("/api/fork", &json!({ "name": "other" })).0, 200);
    let two = serve(&homes[1], &["--society", "other"]);
    let listed = || two.get("/api/conversations").1.to_string();
    assert!(listed().contains("wintergreen"), "{}", listed());
    let erased = accepted["conversation"].as_str().unwrap();
    assert_eq!(one.post(&format!("/api/conversations/{erased}/erase"), &json!({})).0, 200);
    until("the fork still has the text", || !listed().contains("wintergreen"));
    assert!(!two.get(&format!("/api/conversations/{erased}")).1.to_string().contains("wintergreen"));
}
