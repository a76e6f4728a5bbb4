//! Questions to the person, as a person meets them: of agents, and of servers while a call runs there.

use polis_domain::{Answer, Event, Inquiry};
use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Home, Served, is_ending};

fn settings(model: &ModelServer, more: &str) -> String {
    format!("model = \"openai/m\"\n{more}\n[providers.openai]\nbase_url = \"{}\"\n", model.base_url())
}

fn asks() -> Reply {
    Reply::Call("ask_person", json!({ "question": "Which colour?", "options": ["red", "blue"] }))
}

fn listed(home: &Home) -> Value {
    let listed: Value = serde_json::from_str(&home.polis(&["approvals", "--json"]).ok()).unwrap();
    listed["approvals"][0].clone()
}

#[test]
fn a_question_ends_a_run_with_3_says_how_to_answer_and_is_answered_in_words() {
    let home = Home::new();
    let model = ModelServer::start(vec![asks(), Reply::Repeat, asks(), Reply::Repeat, asks(), Reply::Repeat]);
    home.write("polis.toml", &settings(&model, ""));
    let waits = home.polis(&["run", "--conversation", "root", "--approve", "all", "paint it"]);
    assert_eq!(waits.code, 3, "{}", waits.stderr);
    let question = listed(&home);
    let id = question["id"].as_str().unwrap();
    assert_eq!((&question["kind"], &question["question"]), (&json!("question"), &json!("Which colour?")));
    assert_eq!(question["wanted"], json!({ "text": { "options": ["red", "blue"] } }));
    for said in [&format!("{id}  root asks: Which colour?  [red | blue]"), &format!("polis answer {id} OPTION")] {
        assert!(waits.stderr.contains(said), "{}", waits.stderr);
    }
    home.polis(&["answer", id, "green"]).fails(1, "bad_answer");
    home.polis(&["approve", id]).fails(1, "not_waiting");
    assert!(home.polis(&["answer", id, "blue"]).ok().contains("it says: blue"));
    home.polis(&["answer", id, "red"]).fails(1, "not_open");

    assert_eq!(home.polis(&["run", "--conversation", "root", "paint it"]).code, 3);
    let id = listed(&home)["id"].as_str().unwrap().to_owned();
    assert!(
        home.polis(&["deny", &id, "no", "paint"])
            .ok()
            .contains("the person declined to answer: \"no paint\"; do not ask again")
    );
    let never = home.polis(&["run", "--approve", "never", "paint it"]).ok();
    assert!(never.contains("not answered: nobody is asked in this run."), "{never}");
}

#[test]
fn a_question_survives_a_kill() {
    let home = Home::new();
    let model = ModelServer::start(vec![asks(), Reply::Repeat]);
    home.write("polis.toml", &settings(&model, ""));
    let first = home.serve(&[]);
    let task = first.post("/api/submit", &json!({ "text": "paint it" })).1["taskId"].clone();
    first.until(|recorded| asks_person(&recorded.event));
    first.kill();
    let second = home.serve(&[]);
    let id = second.get("/api/approvals").1["approvals"][0]["id"].as_str().unwrap().to_owned();
    let (status, refused) = second.post(&format!("/api/approvals/{id}"), &json!({ "answer": "green" }));
    assert_eq!((status, &refused["code"]), (400, &json!("bad_answer")));
    assert_eq!(second.post(&format!("/api/approvals/{id}"), &json!({ "answer": "red" })).0, 200);
    second.until(is_ending);
    assert_eq!(answer_of(&second, &task), "it says: red");
}

fn asks_person(event: &Event) -> bool {
    matches!(event, Event::EffectStarted { effect: polis_domain::Effect::Approval { .. }, .. })
        || matches!(event, Event::CallInquired { inquiry: Inquiry::Person { .. }, .. })
}

fn answer_of(served: &Served, task: &Value) -> String {
    served.get(&format!("/api/tasks/{}", task.as_str().unwrap())).1["answer"].as_str().unwrap_or_default().to_owned()
}

/// A server of `sh` that asks before it answers: `$ASKS` is the request, and the result is what it was told.
const SERVER: &str = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}}\n' "$id" ;;
    *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"method":"tools/call"'*)
      printf '{"jsonrpc":"2.0","id":"q",%s}\n' "$ASKS"
      read -r said
      text=$(printf '%s' "$said" | tr -d '"\\')
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"told %s"}]}}\n' "$id" "$text" ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

const FORM: &str = r#""method":"elicitation/create","params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}"#;

const SAMPLE: &str = r#""method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"A word?"}}],"maxTokens":20}"#;

/// A home with that server, whose tools may be used.
fn asking(model: &ModelServer, asks: &str, more: &str) -> Home {
    let home = Home::new();
    home.write("server.sh", SERVER);
    let server = format!("[mcp.shell]\ncommand = \"sh\"\nargs = [\"server.sh\"]\nenv = {{ ASKS = '{asks}' }}\n{more}");
    home.write("polis.toml", &settings(model, &format!("[[policy]]\nserver = \"shell\"\nthen = \"allow\"\n{server}")));
    home
}

fn greets() -> Reply {
    Reply::Call("shell__greet", json!({ "to": "all" }))
}

#[test]
fn a_server_asks_the_person_by_name_and_goes_on_with_a_form_that_fits() {
    let model = ModelServer::start(vec![greets(), Reply::Repeat]);
    let home = asking(&model, FORM, "");
    let served = home.serve(&[]);
    let task = served.post("/api/submit", &json!({ "text": "greet", "conversation": "root" })).1["taskId"].clone();
    served.until(|recorded| asks_person(&recorded.event));
    assert_eq!(served.get(&format!("/api/tasks/{}", task.as_str().unwrap())).1["status"], json!("needs_person"));
    let question = listed(&home);
    let id = question["id"].as_str().unwrap();
    assert_eq!((&question["kind"], &question["server"]), (&json!("question"), &json!("shell")));
    assert_eq!(question["wanted"]["form"]["schema"]["required"], json!(["name"]));
    assert_eq!(question["call"]["tool"], json!("shell__greet"));
    let told = home.polis(&["approvals"]).ok();
    let line = format!(
        "{id}  The server `shell` asks: Your name?  (for root, which calls shell__greet {{\"to\":\"all\"}})  {{name: string}}\n"
    );
    assert_eq!(told, line);
    home.polis(&["answer", id, "Ada"]).fails(2, "bad_answer");
    home.polis(&["answer", id, "{\"name\": 7}"]).fails(1, "bad_answer");
    home.polis(&["answer", id, "{\"name\": \"Ada\"}"]).ok();
    served.until(is_ending);
    let answer = answer_of(&served, &task);
    assert!(answer.contains("action:accept") && answer.contains("content:{name:Ada}"), "{answer}");
    served.kill();
    assert_eq!(home.log().iter().filter(|it| matches!(it.event, Event::CallAnswered { .. })).count(), 1);
}

#[test]
fn a_servers_question_is_void_after_a_kill_and_its_call_is_in_doubt() {
    let model = ModelServer::start(vec![greets(), Reply::Repeat]);
    let home = asking(&model, FORM, "");
    let first = home.serve(&[]);
    first.post("/api/submit", &json!({ "text": "greet" }));
    let asked = first.until(|recorded| asks_person(&recorded.event));
    let call = asked.event.effect().unwrap();
    first.kill();
    let second = home.serve(&[]);
    second.until(|recorded| matches!(recorded.event, Event::EffectDoubted { .. }));
    let (status, gone) = second.post(&format!("/api/approvals/{call}.{}", asked.seq), &json!({ "approved": false }));
    assert_eq!((status, &gone["code"]), (409, &json!("not_open")));
    assert_eq!(second.get("/api/approvals").1["approvals"][0]["kind"], json!("in_doubt"));
}

#[test]
fn where_nobody_can_answer_a_server_is_told_so_and_the_run_goes_on() {
    let model = ModelServer::start(vec![greets(), Reply::Repeat]);
    let said = asking(&model, FORM, "").polis(&["run", "greet"]).ok();
    assert!(said.contains("action:cancel"), "{said}");
}

#[test]
fn a_server_gets_a_models_words_once_it_is_allowed_and_they_are_paid_for() {
    let model = ModelServer::start(vec![greets(), Reply::Repeat]);
    let home = asking(&model, SAMPLE, "");
    // Nobody lends it a model: it is not trusted, and leave to use its tools is not enough.
    let said = home.polis(&["run", "--approve", "never", "greet"]).ok();
    assert!(said.contains("a person did not agree"), "{said}");
    assert!(home.log().iter().any(|it| matches!(&it.event, Event::CallInquired { by, .. } if &**by == "shell")));

    let model = ModelServer::start(vec![greets(), Reply::Say(&["oak"]), Reply::Repeat]);
    let home = asking(&model, SAMPLE, "trusted = true\n");
    let said = home.polis(&["run", "greet"]).ok();
    assert!(said.contains("text:oak"), "{said}");
    let sampled = |event: &Event| matches!(event, Event::CallAnswered { answer: Answer::Reply(reply), spent: Some(spent), .. } if reply.text == "oak" && spent.tokens == 46);
    assert!(home.log().iter().any(|it| sampled(&it.event)));
    let usage = home.polis(&["usage"]).ok();
    assert!(
        usage.lines().any(|line| line.starts_with("society") && line.contains("138 tokens") && line.contains("3 requests")),
        "{usage}"
    );
}

#[test]
fn the_tool_that_asks_is_listed() {
    let told = Home::new().polis(&["tools"]).ok();
    assert!(told.contains("read       ask_person "), "{told}");
}
