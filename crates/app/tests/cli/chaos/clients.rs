//! The clients of a run: writers that send until they are answered, watchers that follow, and the person who decides about writes in
//! doubt. Each goes to whichever node takes it and writes down what it was told.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use polis_domain::Recorded;
use polis_testkit::history::{Acknowledged, Command, Observations};
use serde_json::{Value, json};

use super::rig::{LONG, Rig, TOKEN};
use crate::cli::model;
use crate::cli::support::is_ending;

/// How long one request may take: a request for a society that changes hands waits for the lease and five seconds.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long a stream may be silent before the client asks another node.
const SILENCE: Duration = Duration::from_secs(4);

/// How many requests of a society may be open.
const OPEN: usize = 6;

/// A society and what its clients share.
pub(super) struct Target {
    pub(super) society: &'static str,
    pub(super) acknowledged: AtomicUsize,
    /// Requests whose end a client has seen.
    pub(super) ended: AtomicUsize,
    /// A conversation in which several clients write.
    shared: Mutex<Option<String>>,
    /// The last position; watchers end there.
    pub(super) goal: AtomicU64,
}

impl Target {
    pub(super) fn new(society: &'static str) -> Self {
        let (acknowledged, ended, goal) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicU64::new(u64::MAX));
        Self { society, acknowledged, ended, shared: Mutex::default(), goal }
    }
}

/// Sends one request and reads its answer; none if there is none in time.
pub(super) fn ask(address: &str, method: &str, target: &str, key: Option<&str>, body: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let key = key.map(|key| format!("Idempotency-Key: {key}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
         {key}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).ok()?))
}

/// Sends one numbered request after the other until the run is over, each until it is acknowledged.
pub(super) fn write_until_over(rig: &Rig, target: &Target, writer: usize, is_over: &AtomicBool) -> Vec<Command> {
    let mut commands = Vec::new();
    let mut own = None;
    // Every third writer goes where the first one does.
    let is_guest = writer % 3 == 2;
    let path = format!("/s/{}/api/submit", target.society);
    while !is_over.load(Ordering::Relaxed) {
        let shared = target.shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let open = target.acknowledged.load(Ordering::Relaxed).saturating_sub(target.ended.load(Ordering::Relaxed));
        if open >= OPEN || is_guest && shared.is_none() {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        }
        let n = commands.len();
        let verb = if n % 2 == 0 { "add" } else { "say" };
        let text = format!("{verb} {}-{writer}-{n}", target.society);
        let mut body = json!({ "text": text, "strategy": "simple" });
        if let Some(conversation) = if is_guest { &shared } else { &own } {
            body["conversation"] = json!(conversation);
        }
        let mut command = Command { text: text.clone(), sent: rig.begun.elapsed(), acknowledged: Vec::new() };
        // Some are sent again although they were acknowledged, to another node.
        let times = if n % 5 == 4 { 2 } else { 1 };
        for attempt in 0.. {
            assert!(rig.begun.elapsed() < command.sent + LONG, "`{text}` is not acknowledged");
            let answer = rig.address(writer + n + attempt);
            let answer = answer.and_then(|address| ask(&address, "POST", &path, Some(&text), &body.to_string()));
            match answer {
                Some((200, told)) => {
                    let field = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
                    let seq = polis_domain::Seq(told["seq"].as_u64().unwrap_or_default());
                    let (task, agent) = (field("taskId").as_str().into(), field("conversation").into());
                    command.acknowledged.push(Acknowledged { at: rig.begun.elapsed(), task, agent, seq });
                    own = Some(field("conversation"));
                }
                // What may be tried again. The key makes it once.
                None | Some((500.., _)) => std::thread::sleep(Duration::from_millis(50)),
                Some(refused) => panic!("{text}: {refused:?}"),
            }
            if command.acknowledged.len() == times {
                break;
            }
        }
        if !is_guest {
            target.shared.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| own.clone().unwrap());
        }
        target.acknowledged.fetch_add(1, Ordering::Relaxed);
        commands.push(command);
    }
    commands
}

/// Follows a society from its first event to the goal, through one node after the other.
pub(super) fn watch(rig: &Rig, target: &Target, watcher: usize) -> Observations {
    let client = format!("watcher {watcher} of {}", target.society);
    let mut seen = Observations { client, ..Observations::default() };
    let last = |seen: &Observations| seen.events.last().map_or(0, |(_, recorded)| recorded.seq.0);
    let mut silent_since = Instant::now();
    for attempt in 0.. {
        let before = last(&seen);
        if before >= target.goal.load(Ordering::SeqCst) || silent_since.elapsed() > LONG {
            break;
        }
        if let Some(address) = rig.address(watcher + attempt) {
            follow(rig, target, watcher == 0, &address, &mut seen);
        }
        if last(&seen) > before {
            silent_since = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    seen
}

/// Follows through one node for as long as it works.
fn follow(rig: &Rig, target: &Target, counts: bool, address: &str, seen: &mut Observations) -> Option<()> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(SILENCE)).ok()?;
    let last = seen.events.last().map_or(0, |(_, recorded)| recorded.seq.0);
    write!(
        stream,
        "GET /s/{}/api/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nLast-Event-ID: {last}\r\n\r\n",
        target.society
    )
    .ok()?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    if !line.contains(" 200 ") {
        return None;
    }
    loop {
        line.clear();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let data = line.strip_suffix('\n').and_then(|line| line.strip_prefix("data: "));
        if let Some(recorded) = data.and_then(|data| serde_json::from_str::<Recorded>(data).ok()) {
            if counts && is_ending(&recorded) {
                target.ended.fetch_add(1, Ordering::Relaxed);
            }
            let is_last = recorded.seq.0 >= target.goal.load(Ordering::SeqCst);
            seen.events.push((rig.begun.elapsed(), recorded));
            if is_last {
                return Some(());
            }
        }
    }
}

/// Says of each write in doubt that it was not done. Gives whatever else waits for a person, which nothing should.
pub(super) fn decide(rig: &Rig, target: &Target, is_over: &AtomicBool) -> BTreeSet<String> {
    let mut strange = BTreeSet::new();
    let path = format!("/s/{}/api/approvals", target.society);
    for attempt in 0.. {
        if is_over.load(Ordering::SeqCst) {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
        let Some(address) = rig.address(attempt) else { continue };
        let Some((200, waiting)) = ask(&address, "GET", &path, None, "") else { continue };
        for approval in waiting["approvals"].as_array().into_iter().flatten() {
            let id = approval["id"].as_str().unwrap_or_default();
            let verdict = match approval["kind"].as_str() {
                Some("in_doubt") => json!({ "outcome": "not_done", "result": "nobody knows" }),
                _ => {
                    strange.insert(approval.to_string());
                    json!({ "outcome": "again" })
                }
            };
            // Another answer may have been taken before, and the connection lost.
            let _ = ask(&address, "POST", &format!("{path}/{id}"), None, &verdict.to_string());
        }
    }
    strange
}

/// A model that calls `add` for a request to add, and says what came of it. Gives where it is.
pub(super) fn model() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // A node that is stopped in the middle of a request holds up nobody.
            let Ok(stream) = stream else { continue };
            std::thread::spawn(move || reply(stream));
        }
    });
    format!("http://{address}/v1")
}

fn reply(mut stream: TcpStream) {
    // A node may be killed at any time.
    let _ = stream.set_read_timeout(Some(LONG));
    let body = std::panic::catch_unwind(|| model::read(&stream).1).unwrap_or_default();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let Some(last) = messages.iter().rev().find(|message| !model::is_environment(message)) else { return };
    let content = match &last["content"] {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let wanted = content.split_once("add ").and_then(|(_, rest)| rest.split_whitespace().next());
    let _ = match (last["role"].as_str(), wanted) {
        (Some("user"), Some(id)) => model::call(&mut stream, "ledger__add", &json!({ "id": id })),
        _ => model::say(&mut stream, &[&format!("It is done: {content}")]),
    };
}
