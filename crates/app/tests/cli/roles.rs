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
fn names_that_nothing_has_are_found_with_line_and_suggestion() {
    let home = Home::new();
    for folder in ["roles", "sops"] {
        std::fs::create_dir(home.path().join(folder)).unwrap();
    }
    // All that the program brings is known, and so are servers by their section alone.
    let tools: Value = serde_json::from_str(&home.polis(&["tools", "--json"]).ok()).unwrap();
    let tools: Vec<_> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    assert!(tools.len() > 15, "{tools:?}");
    home.write("polis.toml", "[mcp.tickets]\ncommand = \"true\"\nenabled = false\n[providers.lab]\nlike = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n[a2a.courier]\nenabled = false\nurl = \"http://127.0.0.1:9\"\n");
    let all = format!("tools: {}, run_command, fetch_url, web_search, tickets__find, recall*", tools.join(", "));
    home.write("roles/writer.md", &format!("---\n{all}\nmodel: lab/small, offline\n---\nWrite."));
    let sop = "---\nname: s\nwhen: s\nroles: root\n---\n\n## Steps\n\n1. @writer write\n2. @courier carry it\n3. @scout look\n";
    home.write("sops/s.md", sop);
    let check = |home: &Home| {
        let done = home.polis(&["check"]);
        (done.code, done.stdout)
    };
    let scout = "sops/s.md:11: unknown_name: there is no agent or role `scout`; `polis org` lists what there is\n";
    assert_eq!(check(&home), (1, scout.to_owned()));
    // Agents make roles, too: those of the society count.
    home.write("roles/scout.md", "Look.");
    home.polis(&["run", "--model", "offline", "1 + 1"]).ok();
    std::fs::remove_file(home.path().join("roles/scout.md")).unwrap();
    assert_eq!(check(&home), (0, String::new()));
    home.write("roles/writer.md", "---\ntools: raed_file\nskills: house\nmodel: antropic/claude\n---\nWrite.");
    assert_eq!(
        check(&home).1.lines().collect::<Vec<_>>(),
        [
            "roles/writer.md:2: unknown_name: there is no tool `raed_file`; `polis tools` lists what there is; did you mean `read_file`?",
            "roles/writer.md:3: unknown_name: there is no skill `house`; `polis skills` lists what there is",
            "roles/writer.md:4: unknown_name: there is no vendor `antropic`; `polis models` lists what there is; did you mean `anthropic`?",
        ]
    );
}

#[test]
fn a_conversation_is_started_with_an_agent_of_a_role() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("roles")).unwrap();
    home.write("roles/reviewer.md", "---\nname: Code Reviewer\ntools: read_file\n---\nReview.");
    let roles = |home: &Home| -> Vec<String> {
        let conversations: Value = serde_json::from_str(&home.polis(&["conversations", "--json"]).ok()).unwrap();
        let conversations = conversations["conversations"].as_array().or(conversations.as_array()).unwrap().clone();
        let mut roles: Vec<_> = conversations.iter().map(|one| one["roleId"].as_str().unwrap().to_owned()).collect();
        roles.sort();
        roles
    };
    home.polis(&["run", "--role", "reviewer", "2 + 3"]).ok();
    home.polis(&["run", "--role", "code reviewer", "2 + 3"]).ok();
    home.polis(&["run", "2 + 3"]).ok();
    assert_eq!(roles(&home), ["reviewer", "reviewer", "root"]);
    let unknown = home.polis(&["run", "--role", "reveiwer", "2 + 3"]);
    assert!(unknown.stderr.contains("did you mean `reviewer`?"), "{}", unknown.stderr);
    unknown.fails(1, "unknown_role");
    assert_eq!(home.polis(&["run", "--role", "reviewer", "--continue", "2 + 3"]).code, 2);
    // A chat starts with it too, and goes on in the same conversation.
    let chat = home.fed(&["chat", "--role", "reviewer"], b"2 + 3\n4 + 5\n");
    assert!(chat.ok().contains("4 + 5 = 9"));
    assert_eq!(roles(&home), ["reviewer", "reviewer", "reviewer", "root"]);
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
