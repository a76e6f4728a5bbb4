//! Requests that would go on without end: agents that write to each other, and the budget that each request has.

use std::cell::Cell;

use polis_domain::{Effect, Event, MessageKind, Recorded};
use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::Home;

/// The agent that a model request comes from, and how many results of tools it has.
fn asker(body: &Value) -> (String, usize) {
    let messages = body["messages"].as_array().unwrap();
    let system = messages[0]["content"].as_str().unwrap_or_default();
    let name = system.split("Your name here is `").nth(1).and_then(|rest| rest.split('`').next()).unwrap_or("root");
    (name.to_owned(), messages.iter().filter(|message| message["role"] == "tool").count())
}

/// Words that differ from message to message, also without their digits.
fn word(n: usize) -> String {
    n.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

/// What root does first: a role, and agents of it.
fn founding(step: usize, agents: &[&str]) -> Option<Reply> {
    match step {
        0 => Some(Reply::Call("create_role", json!({ "name": "Worker", "id": "worker", "rolePrompt": "Work." }))),
        _ => agents.get(step - 1).map(|name| Reply::Call("spawn_agent", json!({ "roleId": "worker", "agentId": name }))),
    }
}

#[test]
fn agents_that_write_to_each_other_end_within_tens_of_calls_with_a_report() {
    let home = Home::new();
    let mut count = 0;
    let model = ModelServer::scripted(move |body| {
        count += 1;
        let (name, step) = asker(body);
        Some(match (name.as_str(), step) {
            ("root", step) => founding(step, &["ping", "pong"]).unwrap_or(match step {
                3 => Reply::Call("send_message", json!({ "to": "ping", "text": "start" })),
                _ => Reply::Say(&["they are at it"]),
            }),
            (name, _) => {
                let to = if name == "ping" { "pong" } else { "ping" };
                Reply::Call("send_message", json!({ "to": to, "text": format!("{}: your turn", word(count)) }))
            }
        })
    });
    let served = home.serve_with(&["--workspace", "."], |command| model.set(command));
    let (status, said) = served.post("/api/submit", &json!({ "text": "have ping and pong talk" }));
    assert_eq!(status, 200, "{said}");
    let (open, is_reported, asked) = (Cell::new(0), Cell::new(false), Cell::new(0));
    let report = |recorded: &Recorded| {
        let envelope = recorded.event.envelope()?;
        let is_report = envelope.to.is_user() && envelope.kind == MessageKind::Message;
        is_report.then(|| envelope.payload.text.to_string())
    };
    served.until(|recorded| {
        match &recorded.event {
            Event::TurnStarted { .. } => open.set(open.get() + 1),
            Event::TurnSettled { .. } => open.set(open.get() - 1),
            Event::EffectStarted { effect: Effect::Model { .. }, .. } => asked.set(asked.get() + 1),
            _ => {}
        }
        is_reported.set(is_reported.get() || report(recorded).is_some());
        // Without an end it is not waited for.
        is_reported.get() && open.get() == 0 || asked.get() > 100
    });
    let calls = model.requests.lock().unwrap().len();
    assert!(calls < 60, "{calls} calls");
    served.stop();
    let reports: Vec<String> = home.log().iter().filter_map(report).collect();
    let [report] = &reports[..] else { panic!("{reports:?}") };
    assert!(report.contains("message_loop") && report.contains("have exchanged 10 messages for this request"), "{report}");
}

#[test]
fn a_request_has_a_budget_by_default_and_one_word_lets_it_go_on() {
    let home = Home::new();
    let mut count = 0;
    let model = ModelServer::scripted(move |body| {
        count += 1;
        let (name, step) = asker(body);
        Some(match name.as_str() {
            // Enough to use up the budget; then they come to an end.
            _ if count > 230 => Reply::Say(&["done"]),
            "root" => founding(step, &["busy"]).unwrap_or_else(|| {
                let asked = json!({ "requests": [{ "to": "busy", "text": format!("{} more", word(count)) }] });
                Reply::Call("request_collaboration", asked)
            }),
            _ => Reply::Call("write_file", json!({ "path": "notes.txt", "content": word(count) })),
        })
    });
    let polis = |args: &[&str]| {
        let mut command = home.command(args);
        model.set(&mut command);
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, _, stderr) = polis(&["run", "--conversation", "root", "--strategy", "simple", "work without end"]);
    assert_eq!(code, Some(3), "{stderr}");
    assert_eq!(model.requests.lock().unwrap().len(), 200);
    let question = stderr.lines().find(|line| line.contains(" asks: 200 of 200 model requests of task")).expect(&stderr);
    assert!(question.contains("May it go on, with as much again?"), "{question}");
    assert!(question.contains("Model calls for this request: busy ") && question.contains(", root "), "{question}");
    let listed: Value = serde_json::from_str(&polis(&["approvals", "--json"]).1).unwrap();
    let id = listed["approvals"][0]["id"].as_str().unwrap().to_owned();
    let (code, _, stderr) = polis(&["approve", &id]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(model.requests.lock().unwrap().len() > 230, "it went on");
}

#[test]
fn a_budget_is_lifted_for_a_run_or_in_the_file() {
    let home = Home::new();
    let budget = |home: &Home| {
        let log = home.log();
        let set = log.iter().rev().find_map(|recorded| match &recorded.event {
            Event::BudgetsSet { budgets } => Some(budgets.task),
            _ => None,
        });
        set.unwrap_or_default()
    };
    home.polis(&["run", "hello"]).ok();
    assert_eq!(budget(&home).requests, Some(200));
    home.polis(&["run", "--budget", "3x", "hello"]).ok();
    assert_eq!(budget(&home).requests, Some(600));
    home.polis(&["run", "--budget", "none", "hello"]).ok();
    assert!(budget(&home).is_open());
    let bad = home.polis(&["run", "--budget", "much", "hello"]);
    assert!(bad.code == 2 && bad.stderr.contains("write `none`, or a factor such as `3x`"), "{}", bad.stderr);
    home.write("polis.toml", "[budget.task]\nrequests = \"none\"\nusd = 1\n");
    home.polis(&["run", "hello"]).ok();
    assert_eq!((budget(&home).requests, budget(&home).cost_nanos), (None, Some(1_000_000_000)));
    home.write("polis.toml", "budget = \"none\"\n");
    home.polis(&["run", "hello"]).ok();
    assert!(budget(&home).is_open());
}
