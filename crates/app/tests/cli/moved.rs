//! A society that changes hands while the command line follows it: its event streams end, and the command goes on by itself.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;

use super::support::{Done, Home, Served, is_ending, signal};

/// Stands before a server as a node that has to let go of its society after each event, so many times.
struct Node {
    address: String,
    /// How many streams were ended so.
    moves: Arc<AtomicUsize>,
}

impl Node {
    fn before(served: &Served, most: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let moves = Arc::new(AtomicUsize::new(0));
        let (counted, to) = (moves.clone(), served.address.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (moves, server) = (counted.clone(), TcpStream::connect(&to).unwrap());
                std::thread::spawn(move || carry(client, server, &moves, most));
            }
        });
        Self { address, moves }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Carries one exchange. The server is asked as an old client would, so that the answer has no chunks and ends with the connection.
fn carry(client: TcpStream, mut server: TcpStream, moves: &AtomicUsize, most: usize) -> Option<()> {
    let mut to_client = client.try_clone().ok()?;
    let mut client = BufReader::new(client);
    let mut line = String::new();
    client.read_line(&mut line).ok()?;
    let is_stream = line.contains("/api/events");
    server.write_all(line.replace("HTTP/1.1", "HTTP/1.0").as_bytes()).ok()?;
    let mut to_server = server.try_clone().ok()?;
    std::thread::spawn(move || std::io::copy(&mut client, &mut to_server));
    let mut server = BufReader::new(server);
    let mut seen = false;
    loop {
        let mut line = Vec::new();
        if server.read_until(b'\n', &mut line).ok()? == 0 {
            break;
        }
        to_client.write_all(&line).ok()?;
        seen |= line.starts_with(b"id:");
        // The end of an event of the log.
        if is_stream
            && seen
            && line == b"\n"
            && moves.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| (n < most).then_some(n + 1)).is_ok()
        {
            to_client.write_all(b"event: stopping\ndata: {\"reason\":\"moved\"}\n\n").ok()?;
            break;
        }
    }
    to_client.shutdown(Shutdown::Both).ok()
}

#[test]
fn run_attach_and_wait_follow_a_society_to_its_next_node() {
    let home = Home::new();
    let served = home.serve(&["--model", "offline"]);
    let token = served.token.clone().unwrap();
    // The society moves three times under each command.
    let moved = |args: &[&str]| {
        let node = Node::before(&served, 3);
        let mut command = home.command(&[&["--url", &node.url()], args].concat());
        let done = Done::from(command.env("POLIS_TOKEN", &token).output().unwrap());
        assert_eq!(node.moves.load(Ordering::SeqCst), 3, "{args:?}: {}", done.stderr);
        done
    };
    let run = moved(&["run", "what is 6 times 7?"]);
    let task = run.stderr.split("request ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    assert!(run.ok().ends_with("6 × 7 = 42\n"));
    assert!(moved(&["attach", &task]).ok().ends_with("6 × 7 = 42\n"));
    moved(&["wait", &task]).ok();
}

#[test]
fn a_followed_log_has_each_event_once_across_moves() {
    let home = Home::new();
    let served = home.serve(&["--model", "offline"]);
    let token = served.token.clone().unwrap();
    let node = Node::before(&served, 4);
    let mut command = home.command(&["--url", &node.url(), "log", "--follow", "--json"]);
    let mut log = command.env("POLIS_TOKEN", &token).spawn().unwrap();
    let mut lines = BufReader::new(log.stdout.take().unwrap()).lines();
    // What was there before the command followed.
    let mut seen = Vec::new();
    let mut next = |seen: &mut Vec<u64>| {
        let line = lines.next().unwrap().unwrap();
        seen.push(serde_json::from_str::<serde_json::Value>(&line).unwrap()["seq"].as_u64().unwrap());
    };
    next(&mut seen);
    served.post("/api/submit", &serde_json::json!({ "text": "what is 6 times 7?" }));
    let ended = served.until(is_ending);
    while seen.last() != Some(&ended.seq.0) {
        next(&mut seen);
    }
    assert_eq!(seen, (1..=ended.seq.0).collect::<Vec<_>>());
    assert_eq!(node.moves.load(Ordering::SeqCst), 4);
    signal(&log, Signal::INT);
    assert_eq!(log.wait().unwrap().code(), Some(130));
}
