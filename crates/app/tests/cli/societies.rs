//! `polis fork`, `rewind`, `replay` and `societies`: on the store itself and through a running server.

use std::io::BufRead;

use polis_domain::{Event, Outcome};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Done, Home};

fn said(done: Done) -> Value {
    serde_json::from_str(&done.ok()).unwrap()
}

/// What the log of a society says, as the command line tells it.
fn log(home: &Home, society: &str) -> Vec<Value> {
    let lines = home.polis(&["--society", society, "log", "--json"]).ok();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn names(home: &Home) -> Vec<String> {
    let listed = said(home.polis(&["societies", "--json"]));
    listed["societies"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_fork_and_the_society_go_their_own_ways() {
    let home = Home::new();
    home.polis(&["fork"]).fails(1, "no_data");
    home.polis(&["run", "what is 2 + 3?"]).ok();
    let shared = home.last();
    let forked = said(home.polis(&["fork", "other", "--json"]));
    assert_eq!((&forked["society"], &forked["at"], &forked["openTurns"]), (&json!("other"), &json!(shared), &json!(0)));
    home.polis(&["--society", "other", "run", "what is 3 + 4?"]).ok();
    assert_eq!(home.last(), shared);
    home.polis(&["run", "what is 4 + 5?"]).ok();
    let (ours, theirs) = (log(&home, "main"), log(&home, "other"));
    let place = shared.0 as usize;
    assert_eq!(ours[..place], theirs[..place]);
    assert!(
        theirs[place]["event"]["societyForked"]["from"] == "main" && ours[place..].iter().all(|event| !theirs.contains(event))
    );
    let words = home.polis(&["fork", "--at", &(place - 1).to_string()]);
    assert!(words.stderr.contains("is inside an append"), "{}", words.stderr);
    assert!(words.ok().starts_with("main-1 shares everything up to event"));
    assert_eq!(names(&home), ["main", "main-1", "other"]);
    home.polis(&["fork", "other"]).fails(1, "society_exists");
    home.polis(&["fork", "a b"]).fails(2, "bad_society_name");
    home.polis(&["fork", "--at", "9999"]).fails(1, "no_such_event");
    home.polis(&["fork", "--at", "1"]).fails(1, "too_early");
    home.polis(&["--society", "nobody", "agents"]).fails(1, "unknown_society");
    home.polis(&["--society", "../x", "agents"]).fails(2, "bad_society_name");
    let found: Vec<_> =
        ["main", "other", "main-1"].iter().map(|name| home.polis(&["--society", name, "replay"]).ok()).collect();
    assert!(found.iter().all(|told| told.contains("no call made, 0 differences")), "{found:?}");
}

#[test]
fn a_rewound_society_goes_on_from_there_and_what_it_was_is_kept() {
    let home = Home::new();
    home.polis(&["run", "--conversation", "root", "what is 2 + 3?"]).ok();
    let place = home.last();
    home.polis(&["run", "--conversation", "root", "what is 3 + 4?"]).ok();
    let whole = log(&home, "main");
    let told = home.polis(&["rewind", "--to", &place.to_string()]).ok();
    assert_eq!(told, format!("main continues from event {place}; its previous history is kept as main-1\n"));
    assert_eq!(log(&home, "main-1"), whole);
    assert_eq!(home.last().0, place.0 + 1);
    home.polis(&["run", "--conversation", "root", "what is 4 + 5?"]).ok();
    assert!(home.polis(&["show", "root"]).ok().contains("4 + 5"));
    assert!(!home.polis(&["show", "root"]).ok().contains("3 + 4"));
    home.polis(&["rewind", "--to", "9999"]).fails(1, "no_such_event");
    let again = said(home.polis(&["rewind", "--to", &place.to_string(), "--json"]));
    assert_eq!(again["kept"], json!("main-2"));
    assert_eq!(names(&home), ["main", "main-1", "main-2"]);
}

#[test]
fn a_replay_asks_no_model_and_says_where_the_state_is_another() {
    let home = Home::new();
    home.write("a.txt", "hello\n");
    home.polis(&["replay"]).fails(1, "no_data");
    assert!(!home.data().exists(), "a data directory without an owner would not be trusted");
    let model = ModelServer::start(vec![Reply::Call("read_file", json!({ "path": "a.txt" })), Reply::Repeat]);
    let mut command = home.command(&["run", "what is in a.txt?"]);
    model.set(&mut command);
    Done::from(command.output().unwrap()).ok();
    home.write("polis.toml", "[mcp.slow]\ncommand = \"false\"\n\n[[policy]]\nserver = \"slow\"\nthen = \"ask\"\n");
    let mut command = home.command(&["replay", "--json"]);
    model.set(&mut command);
    let replayed = Done::from(command.output().unwrap());
    assert!(!replayed.stderr.contains("not set up"), "servers are left out on purpose: {}", replayed.stderr);
    let told = said(replayed);
    assert_eq!(
        (&told["turns"], &told["effects"], &told["calls"], &told["divergences"]),
        (&json!(1), &json!(4), &json!(0), &json!([]))
    );
    assert_eq!(model.requests.lock().unwrap().len(), 2, "nobody was asked again");
}

#[test]
fn before_an_upgrade_the_open_work_of_a_running_server_is_tried_with_the_new_program() {
    let home = Home::new();
    home.polis(&["check", "--against", "nowhere"]).fails(1, "no_data");
    let model = ModelServer::start(vec![Reply::Call("list_files", json!({})), Reply::Hang]);
    let served = home.serve_with(&[], |command| model.set(command));
    served.post("/api/submit", &json!({ "text": "what is here?" }));
    let is_tool = |event: &Event| matches!(event, Event::EffectEnded { outcome: Outcome::Result(_), .. });
    served.until(|recorded| is_tool(&recorded.event));
    let data = home.data().display().to_string();
    let mut command = home.command(&["check", "--against", &data, "--json"]);
    model.set(&mut command);
    assert_eq!(said(Done::from(command.output().unwrap())), json!({ "open": 1, "divergences": [] }));
    let mut command = home.command(&["check", "--against", &data]);
    model.set(&mut command);
    assert_eq!(Done::from(command.output().unwrap()).ok(), "1 open turn: this polis can continue all of them\n");
    assert_eq!(served.get("/api/tasks").1["tasks"].as_array().unwrap().len(), 1, "the server goes on");
    assert!(model.requests.lock().unwrap().len() <= 2, "nobody was asked again");
}

#[test]
fn a_server_forks_and_rewinds_and_its_societies_do_not_disturb_each_other() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["one"]), Reply::Hang, Reply::Say(&["three"])]);
    let served = home.serve_with(&[], |command| model.set(command));
    served.post("/api/submit", &json!({ "text": "first" }));
    served.until(super::support::is_ending);
    let (_, page) = served.get("/api/log?limit=1000");
    let place = page["last"].as_u64().unwrap();
    let (status, forked) = served.post("/api/fork", &json!({ "at": place, "name": "other" }));
    assert_eq!((status, &forked["at"]), (200, &json!(place)), "{forked}");
    // It can be looked at without working.
    assert_eq!(served.get("/s/other/api/log").1["last"], json!(place + 1));
    let works = |name: &str| {
        let listed = served.get("/api/societies").1;
        listed["societies"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap()["works"].clone()
    };
    assert_eq!((works("main"), works("other")), (json!(true), json!(false)));
    // One hangs at its model, the other answers.
    served.post("/api/submit", &json!({ "text": "second" }));
    model.wait();
    model.wait();
    let (status, sent) = served.post("/s/other/api/submit", &json!({ "text": "third", "conversation": "root" }));
    assert_eq!((status, works("other")), (200, json!(true)));
    let target = format!("/s/other/api/tasks/{}", sent["taskId"].as_str().unwrap());
    while served.get(&target).1["status"] != "done" {
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    assert_eq!(served.get(&target).1["answer"], json!("three"));
    for (target, code) in
        [("/s/nobody/api/agents", "unknown_society"), ("/s/a%20b/api/agents", "unknown_society"), ("/s/", "unknown_society")]
    {
        assert_eq!((served.get(target).0, &served.get(target).1["code"]), (404, &json!(code)), "{target}");
    }
    assert_eq!(served.post("/api/fork", &json!({ "name": "other" })).1["code"], json!("society_exists"));
    assert_eq!(served.post("/api/rewind", &json!({ "to": 9999 })).1["code"], json!("no_such_event"));
    // The command line reaches both through the server.
    assert!(home.polis(&["--society", "other", "show", "root"]).ok().contains("third"));
    assert!(!home.polis(&["show", "root"]).ok().contains("third"));
    served.signal(Signal::TERM);
    served.signal(Signal::TERM);
}

#[test]
fn a_rewind_through_a_server_ends_its_event_streams_with_the_reason_and_works_on() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["one"]), Reply::Say(&["two"]), Reply::Say(&["three"])]);
    let served = home.serve_with(&[], |command| model.set(command));
    served.post("/api/submit", &json!({ "text": "first" }));
    served.until(super::support::is_ending);
    let place = served.get("/api/log").1["last"].as_u64().unwrap();
    served.post("/api/submit", &json!({ "text": "second" }));
    let is_second = |recorded: &polis_domain::Recorded| {
        super::support::is_ending(recorded)
            && recorded.event.envelope().is_some_and(|envelope| &*envelope.payload.text == "two")
    };
    served.until(is_second);
    let stream = served.stream("/api/events");
    let told = home.polis(&["rewind", "--to", &place.to_string()]).ok();
    assert!(told.contains("kept as main-1"), "{told}");
    let last: Vec<String> = stream.lines().map(Result::unwrap).collect();
    let word = last.iter().position(|line| line == "event: stopping").unwrap_or_else(|| panic!("{last:?}"));
    assert_eq!(last[word + 1], r#"data: {"reason":"rewound"}"#);
    served.post("/api/submit", &json!({ "text": "third" }));
    let is_third = |recorded: &polis_domain::Recorded| {
        super::support::is_ending(recorded)
            && recorded.event.envelope().is_some_and(|envelope| &*envelope.payload.text == "three")
    };
    served.until(is_third);
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the log of main ends at event") && said.contains("nothing is unfinished"), "{said}");
}

#[test]
fn a_society_has_the_model_the_budget_and_the_keys_of_its_section() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["one"]), Reply::Say(&["two"]), Reply::Say(&["three"])]);
    home.write(
        "polis.toml",
        "[society.lab]\nkeys = \"LAB_\"\nmodel = \"openai/lab-model\"\n[society.lab.budget]\nrequests = 2\n",
    );
    let run = |society: &str, key: &str| {
        let mut command = home.command(&["--society", society, "run", "hello"]);
        model.set(&mut command);
        command.env_remove("OPENAI_API_KEY").env(key, "sk-of-this-one");
        if society == "lab" {
            command.env_remove("POLIS_MODEL");
        }
        Done::from(command.output().unwrap())
    };
    assert_eq!(run("lab", "OPENAI_API_KEY").ok(), "one\n");
    assert_eq!(run("lab", "LAB_OPENAI_API_KEY").ok(), "two\n");
    let asked = model.requests.lock().unwrap().clone();
    let sent = |n: usize| (asked[n].0.contains("sk-of-this-one"), asked[n].1["model"].clone());
    assert_eq!((sent(0), sent(1)), ((false, json!("lab-model")), (true, json!("lab-model"))), "a key is its society's alone");
    assert_eq!(run("lab", "LAB_OPENAI_API_KEY").code, 3, "its budget is used up");
    assert_eq!(run("main", "OPENAI_API_KEY").code, 0, "and that of another is not");
    home.write("polis.toml", "[society.\"a b\"]\n");
    home.polis(&["agents"]).fails(2, "bad_config");
}

#[test]
fn the_key_variable_of_a_provider_is_the_societys_own_too() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["one"])]);
    home.write(
        "polis.toml",
        &format!(
            "model = \"corp/m\"\n[providers.corp]\nbase_url = \"{}\"\ndialect = \"openai\"\nkey_variable = \"CORP_TOKEN\"\n\
             [society.lab]\nkeys = \"LAB_\"\n",
            model.base_url()
        ),
    );
    let run = |variable: &str| {
        let mut command = home.command(&["--society", "lab", "run", "hello"]);
        Done::from(command.env(variable, "sk-of-the-lab").output().unwrap())
    };
    run("CORP_TOKEN").fails(2, "bad_model");
    assert_eq!(run("LAB_CORP_TOKEN").ok(), "one\n");
    assert!(model.requests.lock().unwrap()[0].0.contains("sk-of-the-lab"));
}
