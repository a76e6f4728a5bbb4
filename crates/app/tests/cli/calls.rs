//! Calls that an agent makes again, its plan, and the tools that it was shown, as a person meets them.

use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::Home;

fn settings(model: &ModelServer) -> String {
    format!("model = \"openai/m\"\n[providers.openai]\nbase_url = \"{}\"\n", model.base_url())
}

fn reads() -> Reply {
    Reply::Call("read_file", json!({ "path": "notes.txt" }))
}

fn edits() -> Reply {
    Reply::Call("edit_file", json!({ "path": "notes.txt", "edits": [{ "old_text": "one", "new_text": "two" }] }))
}

/// The tool messages of the last request.
fn results(model: &ModelServer) -> Vec<(String, String)> {
    let requests = model.requests.lock().unwrap();
    let messages = requests.last().unwrap().1["messages"].as_array().unwrap().clone();
    let text = |message: &Value, key: &str| message[key].as_str().unwrap_or_default().to_owned();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results.map(|message| (text(message, "tool_call_id"), text(message, "content"))).collect()
}

#[test]
fn a_file_is_read_once_for_a_request_and_again_after_it_was_edited() {
    let home = Home::new();
    let model = ModelServer::start(vec![reads(), reads(), edits(), reads(), Reply::Say(&["done"])]);
    home.write("polis.toml", &settings(&model));
    home.write("notes.txt", "one");
    let ran = home.polis(&["run", "--conversation", "root", "look at it"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let results = results(&model);
    let contents: Vec<_> = results.iter().map(|(_, content)| content.as_str()).collect();
    assert_eq!((contents.len(), contents[0], contents[3]), (4, "one", "two"), "{contents:?}");
    assert_eq!(contents[1], "one", "a note is no part of the result");
    let last = model.requests.lock().unwrap().last().unwrap().1["messages"].to_string();
    assert_eq!(last.matches("not called again: the same call gave this result before").count(), 1, "{last}");
    assert!(results.iter().all(|(id, _)| !id.is_empty()), "each result names its call (R280)");
    assert!(ran.stderr.contains("root knows read_file"), "{}", ran.stderr);
    let log = home.polis(&["log"]).ok();
    assert_eq!(log.matches("(answered by").count(), 1, "{log}");
    let shown = "ask_person, plan, recall, find_tools, use_tool";
    assert_eq!((log.matches(shown).count(), log.matches("(tools ").count()), (1, 5), "{log}");
}

#[test]
fn a_plan_is_kept_in_the_thread_where_a_person_sees_it() {
    let home = Home::new();
    let steps = json!({ "steps": [{ "text": "look", "status": "completed" }, { "text": "answer" }] });
    let model = ModelServer::start(vec![
        Reply::Call("plan", steps),
        Reply::Call("plan", json!({ "step": 2, "status": "in_progress" })),
        Reply::Call("plan", json!({ "step": 3, "status": "completed" })),
        Reply::Call("plan", json!({ "steps": [{ "text": " " }] })),
        Reply::Call("plan", json!({ "step": 1 })),
        Reply::Say(&["done"]),
        Reply::Call("plan", json!({})),
        Reply::Say(&["done"]),
    ]);
    home.write("polis.toml", &settings(&model));
    home.polis(&["run", "--conversation", "root", "plan it"]).ok();
    let said: Vec<_> = results(&model).into_iter().map(|(_, content)| content).collect();
    assert_eq!(said[..2], ["1. [x] look\n2. [ ] answer", "1. [x] look\n2. [>] answer"]);
    assert!(
        said[2].contains("none with the number 3") && said[3].contains("needs a text") && said[4].contains("give either"),
        "{said:?}"
    );
    let shown: Value = serde_json::from_str(&home.polis(&["show", "root", "--json"]).ok()).unwrap();
    let want = json!([{ "text": "look", "status": "completed" }, { "text": "answer", "status": "in_progress" }]);
    assert_eq!(shown["settings"]["plan"]["steps"], want, "{shown:#}");
    home.polis(&["run", "--conversation", "root", "what is planned?"]).ok();
    let shown = results(&model);
    assert_eq!(shown.last().unwrap().1, "1. [x] look\n2. [>] answer", "another turn finds it");
    assert_eq!(shown.len(), 6, "and the calls of the first turn");
    let listed: Value = serde_json::from_str(&home.polis(&["tools", "--json"]).ok()).unwrap();
    assert!(listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "plan" && tool["effect"] == "idempotent"));
}

#[test]
fn an_agent_that_goes_in_circles_is_stopped_and_what_it_did_is_told() {
    let home = Home::new();
    let looks = || Reply::Call("search_files", json!({ "text": "lost" }));
    let model = ModelServer::start((0..12).map(|_| looks()).collect());
    home.write("polis.toml", &settings(&model));
    let done = home.polis(&["run", "find it"]);
    assert_eq!(done.code, 4, "{}", done.stderr);
    assert!(
        done.stdout.contains("[polis] The agent came to no answer") && done.stdout.contains("- search_files"),
        "{}",
        done.stdout
    );
    let requests = model.requests.lock().unwrap();
    assert_eq!(requests.len(), 10);
    assert_eq!(requests[9].1["tool_choice"], json!("none"), "the last one asks for an answer without tools");
}
