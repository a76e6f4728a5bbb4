//! Replacing a running server by another process: nobody is refused, nothing is lost, nothing happens twice.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use polis_domain::{Event, Failure, Recorded, Response, Role};
use polis_engine::{Agent, Cast, Options, Ports, Society, Turn};
use polis_store_local::LocalLog;
use polis_testkit::{MemoryLog, kill};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::support::{Home, Served, is_ending};

/// Long enough for a busy machine; a longer wait is a hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many clients submit in parallel.
const CLIENTS: usize = 3;

/// A request over a connection of its own. An error is one of the connection: nothing may have happened, or everything.
fn request(address: &str, token: &str, target: &str, key: &str, body: &Value) -> io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let body = body.to_string();
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nIdempotency-Key: {key}\r\n\
         Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "the answer is cut");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
    let status: u16 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(cut)?;
    assert!(status != 503 || head.to_ascii_lowercase().contains("retry-after: 1"), "{head}");
    Ok((status, serde_json::from_str(body).map_err(io::Error::other)?))
}

/// What happens while servers are replaced.
struct Load {
    address: String,
    token: String,
    is_over: AtomicBool,
    accepted: AtomicUsize,
    /// Connections that were refused or cut.
    broken: AtomicUsize,
}

impl Load {
    fn new(served: &Served) -> Arc<Self> {
        let (address, token) = (served.address.clone(), served.token.clone().unwrap());
        let (accepted, broken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { address, token, is_over: AtomicBool::new(false), accepted, broken })
    }

    /// Submits one request after the other, each until it is accepted, and gives their ids.
    fn submit(&self, client: usize) -> Vec<String> {
        let mut tasks = Vec::new();
        while !self.is_over.load(Ordering::Relaxed) {
            let key = format!("{client}-{}", tasks.len());
            let begun = Instant::now();
            let accepted = loop {
                assert!(begun.elapsed() < PATIENCE, "request {key} is not accepted");
                match request(&self.address, &self.token, "/api/submit", &key, &json!({ "text": format!("hello {key}") })) {
                    Ok((200, accepted)) => break accepted,
                    Ok((503, refused)) => assert_eq!(refused["code"], json!("stopping"), "{refused}"),
                    Ok(other) => panic!("{other:?}"),
                    Err(_) => drop(self.broken.fetch_add(1, Ordering::Relaxed)),
                }
                thread::park_timeout(Duration::from_millis(20));
            };
            tasks.push(accepted["taskId"].as_str().unwrap().to_owned());
            self.accepted.fetch_add(1, Ordering::Relaxed);
        }
        tasks
    }

    /// Follows the log like a browser: it connects again with the id of the last event. Gives the positions until `last` says where it
    /// ends.
    fn follow(&self, last: &mpsc::Receiver<u64>) -> Vec<u64> {
        let (mut seen, mut last_id, mut end) = (Vec::new(), None::<String>, None);
        let begun = Instant::now();
        while end.is_none_or(|end| seen.last() != Some(&end)) {
            assert!(begun.elapsed() < 3 * PATIENCE, "the stream is at {:?} of {end:?}", seen.last());
            end = end.or_else(|| last.try_recv().ok());
            let Ok(stream) = self.stream(last_id.as_deref()) else {
                thread::park_timeout(Duration::from_millis(20));
                continue;
            };
            let (mut id, mut is_event) = (None, false);
            for line in BufReader::new(stream).lines() {
                // A line that is cut ends the stream.
                let Ok(line) = line else { break };
                if let Some(text) = line.strip_prefix("id: ") {
                    id = Some(text.to_owned());
                } else if line.starts_with("data: {\"seq\"") {
                    is_event = true;
                } else if line.is_empty() {
                    if let Some(text) = id.take() {
                        if is_event {
                            seen.push(text.split('.').next().unwrap().parse().unwrap());
                        }
                        last_id = Some(text);
                    }
                    is_event = false;
                }
                if end.is_some() && seen.last() == end.as_ref() {
                    break;
                }
            }
        }
        seen
    }

    fn stream(&self, last_id: Option<&str>) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let resume = last_id.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let (address, token) = (&self.address, &self.token);
        write!(
            stream,
            "GET /api/events?after=0 HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{resume}Connection: close\r\n\r\n"
        )?;
        Ok(stream)
    }

    /// Waits until `more` further requests are accepted.
    fn wait_for(&self, more: usize) {
        let (before, begun) = (self.accepted.load(Ordering::Relaxed), Instant::now());
        while self.accepted.load(Ordering::Relaxed) < before + more {
            assert!(begun.elapsed() < PATIENCE, "no request is accepted any more");
            thread::park_timeout(Duration::from_millis(5));
        }
    }
}

/// Runs clients and a follower while `upgrades` replaces servers; gives back the last one, what was accepted, and what was seen.
fn under_load(home: &Home, first: Served, upgrades: impl FnOnce(Served, &Load) -> Served) -> Arc<Load> {
    let load = Load::new(&first);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let load = load.clone();
            thread::spawn(move || load.submit(client))
        })
        .collect();
    let (end, last) = mpsc::channel();
    let follower = {
        let load = load.clone();
        thread::spawn(move || load.follow(&last))
    };
    load.wait_for(3);
    let served = upgrades(first, &load);
    load.wait_for(3);
    load.is_over.store(true, Ordering::Relaxed);
    let tasks: Vec<String> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    let begun = Instant::now();
    while !served.get("/api/tasks").1["tasks"].as_array().unwrap().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "requests stay open");
        thread::park_timeout(Duration::from_millis(20));
    }
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    let log = home.log();
    end.send(log.len() as u64).unwrap();
    // The follower sees the rest in one more life of the server.
    let again = home.serve_at(&load.address, &[], |_| {});
    let seen = follower.join().unwrap();
    again.stop();
    assert_eq!(seen, (1..=log.len() as u64).collect::<Vec<_>>(), "no gap and nothing twice");
    check(&log, &tasks);
    load
}

/// Everything that was accepted is in the log once and answered once, and nothing else is.
fn check(log: &[Recorded], tasks: &[String]) {
    let (mut asked, mut answered) = (BTreeMap::<String, usize>::new(), BTreeMap::<String, usize>::new());
    for recorded in log {
        if let Event::MessageSent { envelope, .. } = &recorded.event {
            let count = if envelope.to.is_user() { &mut answered } else { &mut asked };
            *count.entry(envelope.task_id.to_string()).or_default() += 1;
        }
    }
    let expected: BTreeMap<_, _> = tasks.iter().map(|task| (task.clone(), 1)).collect();
    assert_eq!(expected.len(), tasks.len(), "each request has an id of its own");
    assert_eq!(asked, expected, "each request is in the log once");
    assert_eq!(answered, expected, "each request is answered once");
}

#[test]
fn upgrades_under_load_lose_nothing_refuse_nobody_and_double_nothing() {
    let home = Home::new();
    let first = home.serve(&[]);
    let load = under_load(&home, first, |mut served, load| {
        for _ in 0..4 {
            let next = home.serve_at(&load.address, &["--take-over"], |_| {});
            let (code, said) = served.ends();
            assert_eq!(code, 0, "{said}");
            assert!(said.contains("another process has taken over"), "{said}");
            load.wait_for(3);
            served = next;
        }
        served
    });
    assert!(load.accepted.load(Ordering::Relaxed) >= 3 * CLIENTS);
    assert_eq!(load.broken.load(Ordering::Relaxed), 0, "no connection was refused or cut");
}

/// Which of the two is killed, and after how many milliseconds.
const KILLS: &[(bool, u64)] =
    &[(true, 5), (false, 40), (true, 150), (false, 200), (true, 250), (false, 300), (true, 330), (false, 400), (true, 450)];

#[test]
fn a_kill_at_any_point_of_an_upgrade_loses_nothing() {
    let home = Home::new();
    let first = home.serve(&[]);
    under_load(&home, first, |mut served, load| {
        for (kills_new, after_ms) in KILLS {
            let mut next =
                home.command(&["serve", "--listen", &load.address, "--take-over"]).stdout(Stdio::null()).spawn().unwrap();
            // A point of the upgrade like any other.
            thread::sleep(Duration::from_millis(*after_ms));
            if *kills_new {
                next.kill().unwrap();
                next.wait().unwrap();
                served = match is_serving(load, &mut served) {
                    true => served,
                    // It had handed over, and its successor is dead: a new one is started.
                    false => home.serve_at(&load.address, &[], |_| {}),
                };
            } else {
                served.kill();
                served = Served::of(next, &load.address, &load.token);
                assert!(is_serving(load, &mut served), "{}", served.ends().1);
            }
            load.wait_for(3);
        }
        served
    });
}

/// The system calls by which a process leaves something behind: on the disk, or at the other process.
const CALLS: &[&str] =
    &["fdatasync", "fsync", "pwrite64", "rename", "unlink", "ftruncate", "flock", "sendmsg", "sendto", "shutdown"];

/// So many calls of a kind are tried; those that follow are made by the work that goes on.
const MOST: usize = 24;

/// Kills the new process, or the running one, at calls of an upgrade, until none is made any more. Gives the number of kills.
fn kill_at_calls(home: &Home, kills_new: bool, call: &str, tasks: &mut Vec<String>, mut served: Served) -> (Served, usize) {
    let (address, token) = (served.address.clone(), served.token.clone().unwrap());
    let load = Load::new(&served);
    // A process that was to be killed may be killed while it answers; then another one is started.
    let submit = |tasks: &mut Vec<String>, mut served: Served| {
        let key = format!("task-{}", tasks.len());
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "{key} is not accepted");
            if let Ok((200, accepted)) = request(&address, &token, "/api/submit", &key, &json!({ "text": "hello" })) {
                tasks.push(accepted["taskId"].as_str().unwrap().to_owned());
                return served;
            }
            if !served.is_running() {
                served = home.serve_at(&address, &[], |_| {});
            }
        }
    };
    let mut kills = 0;
    for n in (1..=MOST).step_by(kill::step(4)) {
        served = submit(tasks, served);
        let harm = format!("inject={call}:signal=SIGKILL:when={n}");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-q", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &harm]);
        let serve = home.command(&["serve", "--listen", &address, "--take-over"]);
        let is_killed = if kills_new {
            // With -D the child is the server and not its tracer.
            strace
                .args(["-D", "--"])
                .arg(serve.get_program())
                .args(serve.get_args())
                .current_dir(serve.get_current_dir().unwrap());
            strace.env_clear().envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
            let mut next = strace.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let begun = Instant::now();
            while served.is_running() && next.try_wait().unwrap().is_none() {
                assert!(begun.elapsed() < PATIENCE, "{call} {n}: nobody takes over, and nobody ends");
                thread::park_timeout(Duration::from_millis(5));
            }
            // It may die when it has just taken over.
            let mut next = Served::of(next, &address, &token);
            let serves = !served.is_running() && is_serving(&load, &mut next);
            if serves {
                // One that may be killed later, and cannot be traced twice.
                next.signal(Signal::TERM);
                next.end();
                served = home.serve_at(&address, &[], |_| {});
            } else if !is_serving(&load, &mut served) {
                served = home.serve_at(&address, &[], |_| {});
            }
            !serves
        } else {
            let mut strace = strace.args(["-p", &served.id().to_string()]).stderr(Stdio::null()).spawn().unwrap();
            // The work that goes on may make the call first.
            while !is_traced(served.id()) && strace.try_wait().unwrap().is_none() {
                thread::park_timeout(Duration::from_millis(5));
            }
            let mut serve = serve;
            let next = Served::of(serve.stdout(Stdio::null()).spawn().unwrap(), &address, &token);
            let (status, _) = std::mem::replace(&mut served, next).end();
            strace.wait().unwrap();
            if !is_serving(&load, &mut served) {
                panic!("{call} {n}: the new one does not serve: {}", String::from_utf8_lossy(&served.end().1));
            }
            status.code().is_none()
        };
        served = submit(tasks, served);
        if !is_killed {
            break;
        }
        kills += 1;
    }
    (served, kills)
}

/// Whether all threads of a process are traced.
fn is_traced(id: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let status = |path: std::path::PathBuf| std::fs::read_to_string(path.join("status")).unwrap_or_default();
    threads.map(|thread| status(thread.unwrap().path())).all(|status| !status.contains("TracerPid:\t0\n"))
}

#[test]
fn a_kill_at_a_call_of_an_upgrade_that_leaves_something_behind_loses_nothing() {
    if !Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output().is_ok_and(|output| output.status.success()) {
        let _ = writeln!(
            io::stderr(),
            "skipped: a_kill_at_a_call_of_an_upgrade_that_leaves_something_behind_loses_nothing: there is no strace"
        );
        return;
    }
    let home = Home::new();
    let mut served = home.serve(&[]);
    let (mut tasks, mut kills) = (Vec::new(), BTreeMap::new());
    for kills_new in [true, false] {
        for call in CALLS {
            let killed;
            (served, killed) = kill_at_calls(&home, kills_new, call, &mut tasks, served);
            kills.insert((if kills_new { "new" } else { "old" }, *call), killed);
        }
    }
    let begun = Instant::now();
    while !served.get("/api/tasks").1["tasks"].as_array().unwrap().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "requests stay open");
        thread::park_timeout(Duration::from_millis(20));
    }
    assert_eq!(served.stop().0, 0);
    check(&home.log(), &tasks);
    println!("killed at {kills:?}");
    let of = |wanted: &str| kills.iter().filter(|((which, _), _)| *which == wanted).map(|(_, count)| count).sum::<usize>();
    assert!(of("new") >= 6 && of("old") >= 6, "{kills:?}");
}

/// Whether this server answers in the end; no if it ends.
fn is_serving(load: &Load, served: &mut Served) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if !served.is_running() {
            return false;
        }
        let answer = request(&load.address, &load.token, "/api/submit", "health", &json!({}));
        if answer.is_ok_and(|(status, _)| status == 400 || status == 422) {
            return true;
        }
        thread::park_timeout(Duration::from_millis(20));
    }
    panic!("nobody serves, and nobody ends");
}

#[test]
fn a_program_that_cannot_take_over_leaves_the_running_one_as_it_is() {
    let home = Home::new();
    let served = home.serve(&[]);
    served.post("/api/submit", &json!({ "text": "hello" }));
    served.until(is_ending);
    let events = |served: &Served| served.get("/api/log?after=0").1["events"].as_array().unwrap().len();
    let before = events(&served);
    home.polis(&["serve", "--take-over", "--listen", "127.0.0.1:1"]).fails(2, "no_take_over");
    let mut bad = home.command(&["serve", "--take-over", "--listen", &served.address]);
    bad.args(["--tls-cert", "nowhere.pem", "--tls-key", "nowhere.pem"]);
    super::support::Done::from(bad.output().unwrap()).fails(2, "bad_certificate");
    assert_eq!(events(&served), before, "it did not even stop");

    // What only fails once the data directory is open: the running one opens it again.
    let mut late = home.command(&["serve", "--take-over", "--listen", &served.address]);
    late.env("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://nowhere");
    let failed = super::support::Done::from(late.output().unwrap());
    assert_ne!(failed.code, 0, "{}", failed.stderr);
    let token = served.token.clone().unwrap();
    let answer = request(&served.address, &token, "/api/submit", "again", &json!({ "text": "again" }));
    let (status, accepted) = answer.expect("the running server has gone although its successor does not serve");
    assert_eq!(status, 200, "{accepted}");
    served.until(|recorded| matches!(&recorded.event, Event::MessageSent { envelope, .. } if *envelope.task_id.as_str() == *accepted["taskId"].as_str().unwrap() && envelope.to.is_user()));
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the process that was to take over has ended"), "{said}");
    // Where nothing runs, there is nothing to take over.
    assert!(home.serve(&["--take-over"]).stop().1.contains("no polis serves this data directory"));
}

#[test]
fn the_copy_of_a_check_that_was_killed_is_removed_by_the_next_start_and_that_of_one_that_runs_stays() {
    let home = Home::new();
    home.serve(&[]).stop();
    let folder = home.data().join("check");
    let files = || {
        let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<Vec<_>>()
    };
    let data = home.data();
    assert_eq!(home.polis(&["check", "--against", data.to_str().unwrap()]).code, 0);
    assert_eq!(files(), ["lock"]);

    std::fs::create_dir(folder.join("data")).unwrap();
    std::fs::write(folder.join("data/polis.db"), "a copy").unwrap();
    let lock = std::fs::File::open(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    home.serve(&[]).stop();
    assert!(folder.join("data/polis.db").exists(), "another process works on it");
    lock.unlock().unwrap();
    home.serve(&[]).stop();
    assert_eq!(files(), ["lock"]);
}

/// The socket of a service manager is the standard input: it outlives every process.
#[test]
fn a_socket_on_the_standard_input_is_served_and_keeps_its_clients_over_a_restart() {
    let home = Home::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let with_socket = || Stdio::from(OwnedFd::from(socket.try_clone().unwrap()));
    let first = home.serve_at("127.0.0.1:1", &[], |command| {
        command.stdin(with_socket());
    });
    assert_eq!(first.address, address);
    assert_eq!(first.get("/api/health").0, 200);
    let token = first.token.clone().unwrap();
    assert_eq!(first.stop().0, 0);
    let waiting = thread::spawn({
        let address = address.clone();
        move || request(&address, &token, "/api/submit", "k", &json!({ "text": "hello" })).unwrap()
    });
    let second = home.serve_at("127.0.0.1:1", &[], |command| {
        command.stdin(with_socket());
    });
    assert_eq!(waiting.join().unwrap().0, 200);
    second.until(is_ending);
    assert_eq!(second.stop().0, 0);
}

/// An agent of another program, which has it in version 2.
struct Newer;

impl Agent for Newer {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        turn.approve("go on?", Value::Null, None).await?;
        Ok(Response::new("done"))
    }
}

/// A turn that a program with version 2 of `role` has left open.
fn leave_open_turn(home: &Home) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        std::fs::create_dir_all(home.data()).unwrap();
        let log = Arc::new(LocalLog::open(&home.data()).unwrap());
        let ports = Ports { log, ..Ports::new(MemoryLog::new()) };
        let cast = Cast::new().with_version("role", 2, Newer);
        let society = Society::open("main".into(), ports, cast, Options::new(1, Role::new("root", "role"))).await.unwrap();
        society.submit("hello").await.unwrap();
        while !society.look(|spine| spine.turns.values().any(|turn| !turn.open.is_empty())).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        society.stop(Duration::ZERO).await;
    });
}

#[test]
fn deploy_says_which_versions_open_turns_need_and_who_lacks_them_takes_nothing_over() {
    let home = Home::new();
    leave_open_turn(&home);
    let is_told = |answer: &str| {
        let line = answer.lines().find(|line| line.contains("version 2")).unwrap_or_else(|| panic!("{answer}"));
        assert!(line.starts_with("main") && line.contains("role"), "{line}");
        assert!(line.contains("1 open turn") && line.contains("not registered"), "{line}");
        assert!(answer.lines().any(|line| line.contains("version 1") && line.contains("new turns begin with it")), "{answer}");
    };
    let told = home.polis(&["deploy"]);
    assert_eq!(told.code, 1, "{}", told.stderr);
    is_told(&told.stdout);

    let served = home.serve(&[]);
    let told = home.polis(&["deploy"]);
    assert_eq!(told.code, 1, "{}", told.stderr);
    is_told(&told.stdout);
    let told = home.polis(&["deploy", "--json"]);
    let json: Value = serde_json::from_str(&told.stdout).unwrap();
    let versions = json["societies"][0]["versions"].as_array().unwrap();
    let old = versions.iter().find(|it| it["version"] == json!(2)).unwrap();
    assert_eq!((&json["done"], &old["registered"], &old["turns"][0]["agent"]), (&json!(false), &json!(false), &json!("root")));
    let (_, same) = served.get("/api/deployment");
    assert_eq!(same["versions"], json["societies"][0]["versions"]);

    // The one that runs lacks it as well, but another one that cannot continue an open turn does not replace it.
    let open = served.get("/api/approvals").1["approvals"][0]["id"].as_str().unwrap().to_owned();
    home.polis(&["approve", &open]);
    served.until(|recorded| matches!(&recorded.event, Event::TurnParked { reason, .. } if &*reason.code == "version_missing"));
    let refused = home.polis(&["serve", "--take-over", "--listen", &served.address]);
    refused.fails(1, "no_take_over");
    assert_eq!(served.get("/api/health").0, 200);
}
