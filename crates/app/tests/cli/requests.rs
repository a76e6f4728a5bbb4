//! Requests that were submitted before: `polis tasks`, `wait`, `attach` and `result`.

use std::io::{BufRead, BufReader};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Done, Home, Served};

/// A model that answers when it may.
struct SlowModel {
    server: ModelServer,
    arrived: Receiver<()>,
    go: Sender<()>,
}

impl SlowModel {
    fn start() -> Self {
        let ((arrive, arrived), (go, wait)) = (channel(), channel());
        let server = ModelServer::scripted(move |_| {
            arrive.send(()).unwrap();
            wait.recv().ok().map(|()| Reply::Say(&["at ", "last"]))
        });
        Self { server, arrived, go }
    }
}

/// Submits a request; its id and its conversation.
fn submit(served: &Served, text: &str) -> (String, String) {
    let (status, accepted) = served.post("/api/submit", &json!({ "text": text }));
    assert_eq!(status, 200, "{accepted}");
    let field = |name: &str| accepted[name].as_str().unwrap().to_owned();
    (field("taskId"), field("conversation"))
}

#[test]
fn a_request_of_a_server_is_listed_attached_to_and_waited_for() {
    let home = Home::new();
    let model = SlowModel::start();
    let served = home.serve_with(&[], |command| model.server.set(command));
    let (task, conversation) = submit(&served, "what takes\nso long?");
    model.arrived.recv().unwrap();

    let tasks = home.polis(&["tasks"]).ok();
    let asked = format!("  by owner  in {conversation}  what takes so long?");
    assert!(tasks.starts_with(&format!("{task}  running")) && tasks.contains(&asked), "{tasks}");
    let tasks: Value = serde_json::from_str(&home.polis(&["tasks", "--json"]).ok()).unwrap();
    assert_eq!(tasks["isServed"], json!(true));
    assert_eq!(tasks["tasks"][0]["text"], json!("what takes\nso long?"));
    assert_eq!(tasks["tasks"][0]["conversation"], json!(conversation));
    let early = home.polis(&["result", &task]);
    early.fails(1, "still_open");
    assert!(early.stderr.contains("running") && early.stdout.is_empty(), "{}", early.stderr);

    let waiting = home.command(&["wait", &task]).spawn().unwrap();
    let mut attached = home.command(&["attach", &task]).spawn().unwrap();
    let mut said = BufReader::new(attached.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.contains(&format!("{conversation} asks the model"))), "what was done before is shown");
    model.go.send(()).unwrap();
    assert!(said.any(|line| line.contains("has its reply")));
    assert_eq!(Done::from(attached.wait_with_output().unwrap()).ok(), "at last\n");
    assert_eq!(Done::from(waiting.wait_with_output().unwrap()).ok(), "");

    // It is over, here and without the server.
    let over = |command: &str| home.polis(&[command, &task]).ok();
    let all = || ["wait", "attach", "result", "tasks"].map(over);
    assert_eq!(all(), ["", "at last\n", "at last\n", ""]);
    served.stop();
    assert_eq!(all(), ["", "at last\n", "at last\n", ""]);
    for command in ["wait", "attach", "result", "tasks"] {
        let done = home.polis(&[command, "t-nothing"]);
        assert!(
            done.stderr.contains("there is no request `t-nothing`") && done.stderr.contains("`polis tasks` lists"),
            "{}",
            done.stderr
        );
        done.fails(1, "unknown_task");
    }
}

#[test]
fn a_request_that_nobody_works_on_continues_where_it_is_waited_for() {
    for (command, printed) in [("wait", ""), ("attach", "and now\n")] {
        let home = Home::new();
        let model = ModelServer::start(vec![Reply::Hang, Reply::Say(&["and ", "now"])]);
        let served = home.serve_with(&[], |command| model.set(command));
        let (task, _) = submit(&served, "x");
        model.wait();
        served.kill();
        let tasks = home.polis(&["tasks"]);
        assert!(tasks.stderr.contains("no society is running"), "{}", tasks.stderr);
        assert!(tasks.ok().contains("  nobody works on it  x"));
        let mut follow = home.command(&[command, &task]);
        model.set(&mut follow);
        assert_eq!(Done::from(follow.output().unwrap()).ok(), printed);
        assert_eq!(home.polis(&["result", &task]).ok(), "and now\n");
        let state: Value = serde_json::from_str(&home.polis(&["result", "--json", &task]).ok()).unwrap();
        assert_eq!((&state["status"], &state["answer"]), (&json!("done"), &json!("and now")));
    }
}

#[test]
fn a_request_that_failed_is_reported_with_the_status_of_a_run() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Refuse(400, "the model is on holiday"), Reply::Say(&["back"])]);
    let served = home.serve_with(&[], |command| model.set(command));
    let (task, _) = submit(&served, "x");
    served.until(super::support::is_ending);
    for command in ["wait", "attach", "result"] {
        let done = home.polis(&[command, &task]);
        done.fails(1, "model_rejected");
        assert!(done.stderr.contains("on holiday") && done.stdout.is_empty(), "{}", done.stderr);
    }
    // The last attempt counts.
    served.post(&format!("/api/tasks/{task}/retry"), &json!({}));
    home.polis(&["wait", &task]).ok();
    assert_eq!(home.polis(&["result", &task]).ok(), "back\n");
}

/// An agent leaves a part to another one and does not wait; the model refuses that one.
#[test]
fn a_failed_part_that_nobody_waited_for_is_reported_listed_and_not_called_done() {
    let home = Home::new();
    let mut calls = vec![
        Reply::Call("send_message", json!({ "to": "kid", "text": "count the words" })),
        Reply::Call("spawn_agent", json!({ "roleId": "counter", "agentId": "kid" })),
        Reply::Call("create_role", json!({ "name": "Counter", "rolePrompt": "Count." })),
    ];
    let model = ModelServer::scripted(move |request| {
        let messages = request["messages"].as_array().unwrap();
        let is_kid = messages[0]["content"].to_string().contains("Your name here is `kid`");
        let is_notice = messages.last().unwrap()["content"].to_string().contains("[from kid]");
        Some(match (is_kid, is_notice) {
            (true, _) => Reply::Refuse(400, "the model is on holiday"),
            (false, true) => Reply::Say(&["kid could not do it"]),
            (false, false) => calls.pop().unwrap_or(Reply::Say(&["kid is at it"])),
        })
    });
    let served = home.serve_with(&[], |command| model.set(command));
    let (task, _) = submit(&served, "count");
    served.until(|recorded| recorded.event.envelope().is_some_and(|envelope| &*envelope.payload.text == "kid could not do it"));
    let done = home.polis(&["result", &task]);
    assert_eq!((done.code, &*done.stdout), (4, "kid could not do it\n"), "{}", done.stderr);
    assert!(done.stderr.contains("a part of the request failed: `kid` failed: "), "{}", done.stderr);
    assert!(done.stderr.contains("on holiday") && done.stderr.contains("(model_rejected)"), "{}", done.stderr);
    let state = served.get(&format!("/api/tasks/{task}")).1;
    assert_eq!((&state["status"], &state["failure"]["code"]), (&json!("partial"), &json!("model_rejected")));
    let listed = home.polis(&["tasks"]).ok();
    assert!(listed.contains(&format!("{task}  kid  dead-lettered at ")), "{listed}");
}
