//! Agents elsewhere as members: two real programs that talk to each other, and what is left of it when one is killed.

use std::io::Write;
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc::channel;

use polis_domain::{Effect, Event, Recorded};
use serde_json::{Value, json};

use super::proxy::{Proxy, read_request};
use crate::cli::model::{ModelServer, Reply};
use crate::cli::support::{Home, Served, is_ending};

const TOKEN: &str = "HELPER_TOKEN";

/// A home whose society has a member at this address.
fn home_with(url: &str) -> Home {
    let home = Home::new();
    home.write("polis.toml", &format!("[a2a.helper]\nurl = \"{url}\"\ntoken_env = \"{TOKEN}\"\ntimeout_seconds = 600\n"));
    home
}

fn with_token(served: &Served) -> impl Fn(&mut Command) + use<> {
    let token = served.token.clone().unwrap();
    move |command| {
        command.env(TOKEN, &token);
    }
}

fn calls(recorded: &Recorded, tool: &str) -> bool {
    matches!(&recorded.event, Event::EffectStarted { effect: Effect::Tool(call), .. } if &*call.tool == tool)
}

/// How many messages of a person the log of a society holds.
fn envelopes(home: &Home) -> usize {
    home.log().iter().filter(|recorded| recorded.event.envelope().is_some_and(|envelope| envelope.from.is_user())).count()
}

fn answer_of(served: &Served, task: &Value) -> Value {
    served.get(&format!("/api/tasks/{}", task.as_str().unwrap())).1
}

#[test]
fn a_request_to_a_member_elsewhere_outlives_a_kill_of_either_side() {
    let there = Home::new();
    let thinks = ModelServer::start(vec![Reply::Hang, Reply::Say(&["done there"])]);
    let other = there.serve_with(&[], |command| thinks.set(command));
    let home = home_with(&other.url());
    let requests = json!({ "requests": [{ "to": "helper", "text": "count the stars" }] });
    let plans = ModelServer::start(vec![Reply::Call("request_collaboration", requests), Reply::Repeat]);
    let token = with_token(&other);
    let set = |command: &mut Command| {
        token(command);
        plans.set(command);
    };
    let here = home.serve_with(&[], set);
    let task = here.post("/api/submit", &json!({ "text": "ask the helper" })).1["taskId"].clone();
    here.until(|recorded| calls(recorded, "_a2a_wait__helper"));
    thinks.wait();
    here.kill();
    let address = other.address.clone();
    other.kill();
    // The one that asks comes back first and finds nobody.
    let here = home.serve_with(&[], set);
    let other = there.serve_at(&address, &[], |command| thinks.set(command));
    here.until(is_ending);
    let answer = answer_of(&here, &task);
    assert!(answer["answer"].as_str().unwrap().contains("done there"), "{answer}");
    let shown = plans.requests.lock().unwrap()[0].1["tools"].to_string();
    assert!(shown.contains("request_collaboration") && !shown.contains("_a2a"), "no model is shown them: {shown}");
    here.stop();
    other.stop();
    assert_eq!(envelopes(&there), 1);
    let log = there.polis(&["log", "--json"]).ok();
    assert!(log.contains("count the stars"), "{log}");
}

#[test]
fn a_message_whose_answer_was_lost_is_sent_again_and_not_done_twice() {
    let there = Home::new();
    let thinks = ModelServer::start(vec![Reply::Say(&["once"])]);
    let other = there.serve_with(&[], |command| thinks.set(command));
    let proxy = Proxy::start(&other.address, "SendMessage");
    let home = home_with(&format!("http://{}", proxy.address));
    let here = home.serve_with(&[], with_token(&other));
    let task = here.post("/api/send", &json!({ "agentId": "helper", "text": "do it" })).1["taskId"].clone();
    proxy.wait();
    here.kill();
    let here = home.serve_with(&[], with_token(&other));
    here.until(is_ending);
    assert_eq!(answer_of(&here, &task)["answer"], json!("once"));
    // The next message belongs to the same conversation.
    let (_, listed) =
        other.post("/a2a?A2A-Version=1.0", &json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {} }));
    assert_eq!(listed["result"]["totalSize"], json!(1), "{listed}");
    here.stop();
    other.stop();
    assert_eq!(envelopes(&there), 1);
    let sends = home.log().iter().filter(|recorded| calls(recorded, "_a2a_send__helper")).count();
    assert_eq!(sends, 1, "one intent, however often it was tried");
}

#[test]
fn what_a_member_elsewhere_asks_is_asked_here_and_answered_after_a_kill() {
    let there = Home::new();
    let asks = Reply::Call("ask_person", json!({ "question": "Which colour?", "options": ["red", "blue"] }));
    let thinks = ModelServer::start(vec![asks, Reply::Repeat]);
    let other = there.serve_with(&[], |command| thinks.set(command));
    let home = home_with(&other.url());
    let here = home.serve_with(&[], with_token(&other));
    let task = here.post("/api/send", &json!({ "agentId": "helper", "text": "paint it" })).1["taskId"].clone();
    here.until(|recorded| matches!(&recorded.event, Event::EffectStarted { effect: Effect::Approval { .. }, .. }));
    here.kill();
    let here = home.serve_with(&[], with_token(&other));
    let asked = here.get("/api/approvals").1["approvals"][0].clone();
    assert!(asked["question"].as_str().unwrap().starts_with("helper asks: Which colour?"), "{asked}");
    let id = asked["id"].as_str().unwrap();
    assert_eq!(here.post(&format!("/api/approvals/{id}"), &json!({ "answer": "red" })).0, 200);
    here.until(is_ending);
    assert_eq!(answer_of(&here, &task)["answer"], json!("it says: red"));
}

#[test]
fn an_agent_that_knows_no_repetition_is_asked_about_and_in_doubt_after_a_kill() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let url = format!("http://{address}");
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            let request = String::from_utf8_lossy(&read_request(&mut stream)).into_owned();
            let body = if request.starts_with("GET ") {
                let interface =
                    json!({ "url": format!("http://{address}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0" });
                json!({ "name": "plain", "supportedInterfaces": [interface], "capabilities": {} })
            } else {
                tell.send(()).unwrap();
                if held.is_empty() {
                    held.push(stream);
                    continue;
                }
                assert!(request.contains("a2a-version: 1.0") && request.contains("Bearer secret"), "{request}");
                let message = json!({ "messageId": "1", "role": "ROLE_AGENT", "parts": [{ "text": "hello from far away" }] });
                json!({ "jsonrpc": "2.0", "id": 1, "result": { "message": message } })
            };
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(body.as_bytes()).unwrap();
        }
    });
    let home = home_with(&url);
    let set = |command: &mut Command| {
        command.env(TOKEN, "secret");
    };
    let here = home.serve_with(&[], set);
    let task = here.post("/api/send", &json!({ "agentId": "helper", "text": "hello" })).1["taskId"].clone();
    here.until(|recorded| matches!(&recorded.event, Event::EffectStarted { effect: Effect::Approval { .. }, .. }));
    let asked = here.get("/api/approvals").1["approvals"][0].clone();
    assert_eq!(asked["call"]["tool"], json!("_a2a_send_once__helper"), "{asked}");
    here.post(&format!("/api/approvals/{}", asked["id"].as_str().unwrap()), &json!({ "approved": true }));
    told.recv().unwrap();
    here.kill();
    let here = home.serve_with(&[], set);
    here.until(|recorded| matches!(&recorded.event, Event::EffectDoubted { .. }));
    assert!(told.try_recv().is_err(), "nothing was sent again unasked");
    let doubt = here.get("/api/approvals").1["approvals"][0].clone();
    assert_eq!(doubt["kind"], json!("in_doubt"));
    here.post(&format!("/api/approvals/{}", doubt["id"].as_str().unwrap()), &json!({ "outcome": "again" }));
    here.until(is_ending);
    assert_eq!(answer_of(&here, &task)["answer"], json!("hello from far away"));
    assert!(!home.polis(&["log", "--json"]).ok().contains("secret"), "the token is in no log");
}

#[test]
fn what_is_wrong_with_a_member_is_said() {
    let home = Home::new();
    for (settings, what) in [
        ("[a2a.Helper]\nurl = \"http://h\"\n", "the A2A agent `Helper` needs a name of a-z"),
        ("[a2a.helper]\nurl = \"h\"\n", "the A2A agent `helper` needs a `url` that begins with http:// or https://"),
        ("[a2a.helper]\nurl = \"http://h\"\ntimeout_seconds = 0\n", "has a `timeout_seconds` that is not above 0"),
        ("[a2a.helper]\nurl = \"http://h\"\ntoken = \"sk-secret\"\n", "unknown field `token`"),
    ] {
        home.write("polis.toml", settings);
        let bad = home.polis(&["agents"]);
        bad.fails(2, "bad_config");
        assert!(bad.stderr.contains(what) && !bad.stderr.contains("sk-secret"), "{}", bad.stderr);
    }
    home.write("polis.toml", "[a2a.helper]\nurl = \"http://127.0.0.1:9\"\ntoken_env = \"NOT_SET\"\ntimeout_seconds = 0.1\n");
    let served = home.serve(&[]);
    let members = served.get("/api/agents").1.to_string();
    assert!(members.contains("\"helper\""), "{members}");
    let task = served.post("/api/send", &json!({ "agentId": "helper", "text": "hello" })).1["taskId"].clone();
    served.until(is_ending);
    let failed = answer_of(&served, &task);
    assert_eq!(failed["failure"]["code"], json!("remote_unreachable"), "{failed}");
    assert!(failed["failure"]["message"].as_str().unwrap().contains("the variable NOT_SET is not set"), "{failed}");
}
