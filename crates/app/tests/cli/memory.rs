//! Memory on the command line, and in the whole program: from one run to the next, until it is erased or switched off.

use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Done, Home};

fn run(home: &Home, model: &ModelServer, text: &str) -> Done {
    let mut command = home.command(&["run", text]);
    model.set(&mut command);
    command.output().unwrap().into()
}

fn listed(home: &Home, args: &[&str]) -> Vec<(String, String)> {
    let listed: Value = serde_json::from_str(&home.polis(&[&["memory", "--json"], args].concat()).ok()).unwrap();
    let text = |one: &Value, field: &str| one[field].as_str().unwrap().to_owned();
    listed["memories"].as_array().unwrap().iter().map(|one| (text(one, "id"), text(one, "text"))).collect()
}

fn texts(home: &Home, args: &[&str]) -> Vec<String> {
    listed(home, args).into_iter().map(|(_, text)| text).collect()
}

/// Whether any file of the data directory has this word.
fn is_on_disk(home: &Home, word: &str) -> bool {
    let files = walk(&home.data());
    files.iter().any(|file| {
        let bytes = std::fs::read(file).unwrap();
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    })
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn memories_are_added_searched_edited_exported_and_erased_for_good() {
    let home = Home::new();
    home.polis(&["run", "hello"]);
    home.polis(&["memory", "add", "Ann", "drinks", "green tea"]).ok();
    home.polis(&["memory", "add", "安的暗号是鱼鹰"]).ok();
    home.polis(&["memory", "add", "--everyone", "the office is in Rome"]).ok();
    assert_eq!(texts(&home, &[]), ["the office is in Rome", "安的暗号是鱼鹰", "Ann drinks green tea"]);
    assert_eq!(texts(&home, &["search", "tea"]), ["Ann drinks green tea"]);
    let (id, text) = listed(&home, &["search", "暗号"]).remove(0);
    assert_eq!(text, "安的暗号是鱼鹰");
    assert!(is_on_disk(&home, "鱼鹰"));
    home.polis(&["memory", "edit", &id, "安的暗号是翠鸟"]).ok();
    assert!(is_on_disk(&home, "翠鸟") && !is_on_disk(&home, "鱼鹰"));
    home.polis(&["memory", "forget", &id]).fails(3, "not_confirmed");
    home.polis(&["memory", "forget", &id, "--yes"]).ok();
    assert!(!is_on_disk(&home, "翠鸟"));
    home.polis(&["memory", "forget", &id, "--yes"]).fails(1, "unknown_memory");
    let exported: Value = serde_json::from_str(&home.polis(&["memory", "export"]).ok()).unwrap();
    assert_eq!(exported["memories"].as_array().unwrap().len(), 2);
    home.polis(&["memory", "forget", "--all", "--yes"]).ok();
    assert_eq!(texts(&home, &[]), ["the office is in Rome"]);
}

/// The names of the tools that a model is offered.
fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

#[test]
fn what_is_remembered_in_one_run_is_recalled_in_another_unless_memory_is_off() {
    let home = Home::new();
    let model = ModelServer::scripted(|request| {
        let last = request["messages"].as_array()?.last()?.clone();
        let said = last["content"].as_str().unwrap_or_default().to_owned();
        Some(match last["role"].as_str()? {
            "tool" => Reply::Repeat,
            _ if said.contains("keep") => Reply::Call("remember", json!({ "text": "Ann drinks green tea" })),
            _ if offered(request).contains(&"recall") => Reply::Call("recall", json!({ "query": "tea" })),
            _ => Reply::Say(&["no memory here"]),
        })
    });
    assert!(run(&home, &model, "keep this").ok().contains("memoryId"));
    assert!(run(&home, &model, "what do I drink?").ok().contains("Ann drinks green tea"));
    let (id, _) = listed(&home, &[]).remove(0);
    let log: Vec<_> = home.log().iter().map(|recorded| json!(recorded.event)).collect();
    let kept = log.iter().find(|event| event["memoryChanged"]["change"].get("kept").is_some()).unwrap();
    assert!(kept["memoryChanged"]["change"]["kept"]["memory"]["conversation"].as_str().unwrap().starts_with("c-"), "{kept}");
    home.polis(&["memory", "forget", &id, "--yes"]).ok();
    assert!(!run(&home, &model, "what do I drink?").ok().contains("green"));
    home.write("polis.toml", "[memory]\nenabled = false\n");
    assert!(run(&home, &model, "what do I drink?").ok().contains("no memory here"));
    let last = model.requests.lock().unwrap().last().unwrap().1.clone();
    let tools = offered(&last);
    assert!(
        tools.contains(&"read_file") && !["remember", "recall", "forget"].iter().any(|tool| tools.contains(tool)),
        "{tools:?}"
    );
    let checked = home.polis(&["doctor"]).stdout;
    assert!(checked.contains("agents remember nothing across conversations"), "{checked}");
}

#[test]
fn an_embedding_model_that_cannot_be_asked_is_said_before_anything_runs() {
    let home = Home::new();
    home.write(
        "polis.toml",
        "[embeddings]\nmodel = \"anthropic/claude\"\n[providers.anthropic]\nbase_url = \"http://127.0.0.1:1\"\n",
    );
    home.polis(&["run", "hello"]).fails(2, "bad_model");
    home.write("polis.toml", "[embeddings]\nmodel = \"ollama/nomic-embed-text\"\ndimensions = 256\n");
    let listed = home.polis(&["models"]).stdout;
    assert!(listed.contains("memory   ollama/nomic-embed-text  (embeddings)"), "{listed}");
    let checked = home.polis(&["doctor"]).stdout;
    assert!(checked.contains("found by words and by meaning, with ollama/nomic-embed-text#256"), "{checked}");
}

#[test]
fn a_person_switches_memory_off_and_on() {
    let home = Home::new();
    home.polis(&["run", "hello"]);
    home.polis(&["memory", "add", "Ann drinks green tea"]).ok();
    let off = home.polis(&["memory", "off"]);
    assert!(off.stderr.contains("neither store nor recall") && off.stderr.contains("polis memory on"), "{}", off.stderr);
    let listed = home.polis(&["memory"]);
    assert!(listed.stderr.contains("memory is off for you") && listed.stdout.contains("green tea"), "{}", listed.stderr);
    assert_eq!(home.polis(&["memory", "on", "--json"]).ok().trim(), r#"{"enabled":true}"#);
    assert!(!home.polis(&["memory"]).stderr.contains("memory is off"));
}
