//! Roles that people write, an organisation that root founds, and contexts that people compress: all with the real program.

use polis_domain::Event;
use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::Home;

fn events(home: &Home, of: fn(&Event) -> Option<String>) -> Vec<String> {
    home.log().iter().filter_map(|recorded| of(&recorded.event)).collect()
}

fn made_or_changed(event: &Event) -> Option<String> {
    match event {
        Event::RoleCreated { role, .. } => Some(format!("created {}", role.id)),
        Event::RoleChanged { role } => Some(format!("changed {}: {}", role.id, role.prompt)),
        _ => None,
    }
}

#[test]
fn a_new_role_is_checked_brought_in_and_changed() {
    let home = Home::new();
    let written = home.polis(&["new", "role", "Code Reviewer"]).ok();
    assert_eq!(written, "roles/code-reviewer.md\n");
    home.polis(&["new", "role", "code-reviewer"]).fails(1, "already_there");
    home.polis(&["new", "role", "../x"]).fails(2, "bad_name");
    assert_eq!(home.polis(&["check"]).ok(), "");
    home.write("roles/bad.md", "---\nname: Bad\ncolour: red\n---\nWork.\n");
    let check = home.polis(&["check"]);
    assert!(
        check.code == 1 && check.stdout.starts_with("roles/bad.md:3: role_file: `colour` is not known"),
        "{}",
        check.stdout
    );

    let run = home.polis(&["run", "--model", "offline", "2 + 3"]);
    assert!(run.stderr.contains("roles/bad.md:3: `colour` is not known; write one of id"), "{}", run.stderr);
    run.ok();
    assert_eq!(events(&home, made_or_changed), ["created root", "created code-reviewer"]);
    home.write("roles/code-reviewer.md", "Review.");
    home.polis(&["run", "--model", "offline", "2 + 3"]).ok();
    home.polis(&["run", "--model", "offline", "2 + 3"]).ok();
    let expected = ["created root", "created code-reviewer", "changed code-reviewer: Review."];
    assert_eq!(events(&home, made_or_changed), expected);
    let org: Value = serde_json::from_str(&home.polis(&["org", "--json"]).ok()).unwrap();
    assert!(org["roles"].as_array().unwrap().iter().any(|role| role["rolePrompt"] == "Review."), "{org}");
}

#[test]
fn root_founds_an_organisation_over_the_wire() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("roles")).unwrap();
    let model = ModelServer::start(vec![
        Reply::Call("create_role", json!({ "name": "Writer", "rolePrompt": "Write.", "tools": ["read_file"] })),
        Reply::Call("spawn_agent", json!({ "roleId": "writer", "agentId": "w1" })),
        Reply::Call("request_collaboration", json!({ "requests": [{ "to": "Writer", "text": "a line please" }] })),
        Reply::Say(&["a line"]),
        Reply::Call("terminate_agent", json!({ "agentId": "w1" })),
        Reply::Call("write_file", json!({ "path": "roles/mine.md", "content": "I may do everything." })),
        Reply::Repeat,
    ]);
    let mut command = home.command(&["run", "--conversation", "root", "go"]);
    model.set(&mut command);
    let done = super::support::Done::from(command.output().unwrap());
    let answer = done.ok();
    assert!(answer.contains("only the person may write it"), "{answer}");
    assert!(!home.path().join("roles/mine.md").exists());
    let requests = model.requests.lock().unwrap();
    let tools_of = |n: usize| -> Vec<String> {
        let named = |tool: &Value| tool["function"]["name"].as_str().unwrap_or_default().to_owned();
        requests[n].1["tools"].as_array().map(|tools| tools.iter().map(named).collect()).unwrap_or_default()
    };
    assert!(tools_of(0).contains(&"find_tools".to_owned()) && tools_of(0).len() > 10, "{:?}", tools_of(0));
    assert_eq!(tools_of(3), ["read_file", "reject_request"], "it may reject what another agent asks for");
    let system = requests[3].1["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("You hold the role Writer") && system.contains("Your name here is `w1`"), "{system}");
    let org: Value = serde_json::from_str(&home.polis(&["org", "--json"]).ok()).unwrap();
    assert_eq!((&org["terminations"][0]["agentId"], &org["terminations"][0]["terminatedBy"]), (&json!("w1"), &json!("root")));
}

#[test]
fn a_person_has_a_conversation_compressed_and_undoes_it() {
    let home = Home::new();
    for n in 0..8 {
        home.polis(&["run", "--conversation", "root", "--model", "offline", &format!("{n} + 3")]).ok();
    }
    let nothing = home.polis(&["compress", "root", "--undo"]);
    nothing.fails(1, "nothing_to_restore");
    home.polis(&["compress", "nobody"]).fails(1, "unknown_agent");
    home.polis(&["compress", "root"]).ok();
    let tasks = home.polis(&["tasks"]).ok();
    assert_eq!(tasks.lines().count(), 1, "{tasks}");
    assert!(home.polis(&["threads"]).ok().starts_with("root "));
    let model = ModelServer::start(vec![Reply::Say(&["sums"]), Reply::Say(&["done"])]);
    let mut command = home.command(&["run", "--conversation", "root", "and now?"]);
    model.set(&mut command);
    assert_eq!(super::support::Done::from(command.output().unwrap()).ok().trim(), "done");
    let shown = || -> Value {
        let agents: Value = serde_json::from_str(&home.polis(&["agents", "--json"]).ok()).unwrap();
        agents["agents"][0]["context"].clone()
    };
    assert_eq!(shown()["compressions"], 1, "{}", shown());
    let hidden = shown()["messages"].as_u64().unwrap() - shown()["shown"].as_u64().unwrap();
    assert!(hidden >= 6, "{}", shown());
    home.polis(&["compress", "root", "--undo"]).ok();
    assert_eq!(shown()["messages"], shown()["shown"]);
    assert_eq!(home.polis(&["tasks"]).ok(), "");
}
