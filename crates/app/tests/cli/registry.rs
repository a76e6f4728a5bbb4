//! What people do with societies and organisations from the command line: settings that stay, streams that go on, documents that come in.

use std::io::BufRead;

use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::Home;

fn writes(name: &str) -> Reply {
    Reply::Call("write_file", json!({ "path": name, "content": "x" }))
}

#[test]
fn what_was_typed_stays_with_a_society_through_a_rewind_and_goes_to_its_forks() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("ws")).unwrap();
    let files = ["one.txt", "two.txt", "three.txt", "four.txt"];
    let replies = files.iter().flat_map(|name| [writes(name), Reply::Say(&["done"])]).collect();
    let model = ModelServer::start(replies);
    let served = home.serve_with(&["--workspace", "ws"], |command| model.set(command));
    assert_eq!(home.polis(&["run", "one"]).ok(), "done\n");
    let place = served.get("/api/log").1["last"].as_u64().unwrap();
    home.polis(&["rewind", "--to", &place.to_string()]).ok();
    assert_eq!(home.polis(&["run", "two"]).ok(), "done\n", "the same model answers");
    home.polis(&["fork", "try"]).ok();
    assert_eq!(home.polis(&["--society", "try", "run", "three"]).ok(), "done\n", "as in its parent");
    assert_eq!(home.polis(&["--society", "main-1", "run", "four"]).ok(), "done\n", "and in what main was");
    for name in files {
        assert!(home.path().join("ws").join(name).exists() && !home.path().join(name).exists(), "{name}");
    }
    assert_eq!(served.stop().0, 0);
}

#[test]
fn a_fork_of_a_society_with_a_section_has_what_it_says_unless_its_own_says_otherwise() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["one"]), Reply::Say(&["two"]), Reply::Say(&["three"])]);
    let sections = "[society.lab]\nmodel = \"openai/lab-model\"\n[society.third]\nmodel = \"openai/third-model\"\n";
    home.write("polis.toml", sections);
    let run = |society: &str| {
        let mut command = home.command(&["--society", society, "run", "hello"]);
        model.set(&mut command);
        command.env_remove("POLIS_MODEL");
        super::support::Done::from(command.output().unwrap()).ok()
    };
    run("lab");
    home.polis(&["--society", "lab", "fork", "second"]).ok();
    home.polis(&["--society", "second", "fork", "third"]).ok();
    assert_eq!([run("second"), run("third")], ["two\n", "three\n"]);
    let asked = model.requests.lock().unwrap().clone();
    let models: Vec<_> = asked.iter().map(|(_, body)| body["model"].as_str().unwrap()).collect();
    assert_eq!(models, ["lab-model", "lab-model", "third-model"]);
}

#[test]
fn a_stream_on_a_society_that_does_not_work_yet_goes_on_when_it_does_and_ends_with_it() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["one"]), Reply::Say(&["two"])]);
    let served = home.serve_with(&[], |command| model.set(command));
    home.polis(&["run", "first"]).ok();
    home.polis(&["fork", "try"]).ok();
    let stream = served.stream("/s/try/api/events");
    served.post("/s/try/api/submit", &json!({ "text": "second" }));
    let mut lines = stream.lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line.starts_with("data: ") && line.contains(r#""text":"two""#)));
    assert_eq!(served.stop().0, 0);
    let rest: Vec<_> = lines.collect();
    assert!(rest.iter().any(|line| line == "event: stopping"), "{rest:?}");
}

#[test]
fn a_run_begins_a_society_that_is_not_there_also_in_a_server() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["hello"])]);
    home.write("polis.toml", "model = \"openai/test\"\n");
    let served = home.serve_with(&[], |command| model.set(command));
    home.polis(&["--society", "new", "agents"]).fails(1, "unknown_society");
    assert_eq!(home.polis(&["--society", "new", "run", "hello"]).ok(), "hello\n");
    assert_eq!(served.post("/api/societies", &json!({ "name": "new" })).1, json!({ "society": "new", "begun": false }));
    let (status, problem) = served.post("/api/societies", &json!({ "name": "a b" }));
    assert_eq!((status, &problem["code"]), (400, &json!("bad_society_name")));
}

#[test]
fn a_server_says_for_which_society_no_model_is_set() {
    let home = Home::new();
    home.write("polis.toml", "[society.lab]\n");
    let served = home.serve_with(&[], |command| {
        command.env("POLIS_MODEL", "offline");
    });
    let (code, said) = served.stop();
    assert_eq!(code, 0);
    assert!(said.contains("for the society lab: no model is set"), "{said}");
    assert!(!said.lines().any(|line| line.starts_with("polis: no model is set")), "{said}");
}

#[test]
fn the_organisation_is_written_when_a_server_stops() {
    let home = Home::new();
    home.write("polis.toml", "[society.lab]\n");
    let served = home.serve(&[]);
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    let written =
        |name: &str| -> Value { serde_json::from_str(&std::fs::read_to_string(home.data().join(name)).unwrap()).unwrap() };
    let exported: Value = serde_json::from_str(&home.polis(&["export"]).ok()).unwrap();
    assert_eq!(written("org.json"), exported);
    assert_eq!(written("org.lab.json")["agents"][0]["id"], json!("root"));

    std::fs::remove_file(home.data().join("org.json")).unwrap();
    std::fs::create_dir(home.data().join("org.json")).unwrap();
    let (code, said) = home.serve(&[]).stop();
    assert!(code == 0 && said.contains("org.json was not written"), "{said}");
}

/// The shape that document 002 gives, and nothing more.
fn documented() -> Value {
    json!({
        "roles": [{ "id": "analyst", "name": "Analyst", "rolePrompt": "Count.", "createdBy": "root", "createdAt": "2026-01-06T12:00:00.000Z" }],
        "agents": [
            { "id": "ann", "roleId": "analyst", "parentAgentId": "root", "createdAt": "2026-01-06T12:00:00.000Z", "terminatedAt": null, "status": "active" },
            { "id": "old", "roleId": "analyst", "parentAgentId": "root", "createdAt": "2026-01-06T12:00:00.000Z", "terminatedAt": "2026-01-07T12:00:00.000Z", "status": "terminated" },
        ],
        "terminations": [{ "agentId": "old", "terminatedBy": "root", "terminatedAt": "2026-01-07T12:00:00.000Z", "reason": "done" }],
    })
}

#[test]
fn the_documented_organisation_is_imported_and_begins_a_society() {
    let home = Home::new();
    home.write("doc.json", &documented().to_string());
    let done = home.polis(&["import", "doc.json"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        done.stderr.contains("1 role and 1 agent") && done.stderr.contains("not imported: agents that are gone"),
        "{}",
        done.stderr
    );
    assert!(home.polis(&["agents"]).ok().contains("ann"));
    assert!(home.polis(&["run", "what is 2 + 3?"]).ok().contains('5'));

    // The one agent of a role can be called by it.
    assert!(home.polis(&["send", "analyst", "hello"]).ok().starts_with("sent "));
    home.polis(&["terminate", "Analyst", "--now", "clear\u{1b}[2J this", &"long ".repeat(200)]).ok();
    let shown = home.polis(&["org"]).ok();
    assert!(shown.contains("ann") && !shown.contains('\u{1b}'), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() < 500), "{shown}");
}

#[test]
fn a_document_that_would_lose_something_is_refused_with_the_place() {
    let home = Home::new();
    let import = |change: &dyn Fn(&mut Value)| {
        let mut document = documented();
        change(&mut document);
        home.write("doc.json", &document.to_string());
        home.polis(&["import", "doc.json"])
    };
    let refused = |change: &dyn Fn(&mut Value), place: &str| {
        let done = import(change);
        done.fails(1, "bad_org");
        assert!(done.stderr.contains(place), "{place}: {}", done.stderr);
    };
    refused(&|it| it["agents"][0]["terminatedAt"] = json!("2026-01-07T12:00:00.000Z"), "`ann` is active");
    refused(&|it| it["agents"][1]["terminatedAt"] = Value::Null, "`old` is terminated");
    refused(&|it| it["terminations"][0]["agentId"] = json!("nobody"), "`nobody`");
    refused(&|it| it["roles"][0]["behaviour"] = json!("nope"), "`nope`");
    refused(&|it| it["roles"][0]["model"] = json!("nonsense"), "`nonsense`");
    refused(&|it| it["roles"][0]["name"] = json!(" "), "has no name");
    refused(&|it| it["roles"][0]["rolePrompt"] = json!(""), "has no rolePrompt");
    refused(&|it| it["roles"][0]["colour"] = json!("red"), "roles[0] has `colour`");
    refused(&|it| it["agents"][0]["status"] = json!("asleep"), "agents[0]");
    refused(&|it| *it = json!([]), "no object");
    import(&|it| it["roles"][0]["name"] = json!("ev\u{1b}]0;pwned\u{7}il\nroot")).fails(1, "bad_name");
    let long = import(&|it| it["roles"][0]["rolePrompt"] = "long ".repeat(1 << 20).into());
    assert_eq!(long.code, 0, "{}", long.stderr);
    import(&|it| it["roles"][0]["rolePrompt"] = "long ".repeat(4 << 20).into()).fails(1, "body_too_large");
}

#[test]
fn roots_role_stays_unless_a_person_says_otherwise() {
    let home = Home::new();
    let mut document = documented();
    let root = json!({ "id": "root", "name": "Root", "rolePrompt": "Be another." });
    document["roles"].as_array_mut().unwrap().push(root);
    home.write("doc.json", &document.to_string());
    let done = home.polis(&["import", "doc.json"]);
    assert!(done.code == 0 && done.stderr.contains("root's role `root` stays"), "{}", done.stderr);
    let prompt = || {
        let org: Value = serde_json::from_str(&home.polis(&["export"]).ok()).unwrap();
        org["roles"].as_array().unwrap().iter().find(|role| role["id"] == "root").unwrap()["rolePrompt"].clone()
    };
    assert_ne!(prompt(), json!("Be another."));
    home.polis(&["import", "--root", "doc.json"]).ok();
    assert_eq!(prompt(), json!("Be another."));
}

#[test]
fn procedures_with_faults_are_told_at_the_start_and_by_the_doctor() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("sops")).unwrap();
    home.write("sops/bad.md", "---\nname: bad\nwhen: do it\n---\n1. look (within ten minutes)\n");
    let (_, said) = home.serve(&[]).stop();
    assert!(said.contains("sops/bad.md:5: ") && said.contains("(bad_sop)"), "{said}");
    let found = home.polis(&["doctor"]);
    assert!(found.code == 1 && found.stdout.contains("BAD  sops"), "{}", found.stdout);
}

#[test]
fn a_role_with_a_model_that_cannot_be_is_made_with_a_warning() {
    let home = Home::new();
    let role = json!({ "name": "Odd", "rolePrompt": "Work.", "model": "nonsense" });
    let model = ModelServer::start(vec![Reply::Call("create_role", role), Reply::Repeat]);
    let mut command = home.command(&["run", "make it"]);
    model.set(&mut command);
    let told = super::support::Done::from(command.output().unwrap()).ok();
    assert!(told.contains("modelThatCannotBe") && told.contains("names no known vendor"), "{told}");
}
