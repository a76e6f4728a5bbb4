//! `polis run`.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use polis_domain::{Artifact, Event, MessageKind, Recorded};
use rustix::process::Signal;
use serde_json::json;

use super::model::{KEY, ModelServer, Reply};
use super::support::{Done, Home, is_ending, signal};

#[test]
fn a_request_goes_through_a_streaming_model_and_a_tool_and_the_answer_alone_is_on_stdout() {
    let home = Home::new();
    home.write("a.txt", "hello from the file\n");
    let model = ModelServer::start(vec![Reply::Call("read_file", json!({ "path": "a.txt" })), Reply::Repeat]);
    let mut command = home.command(&["run", "what", "is in a.txt?"]);
    model.set(&mut command);
    let done = Done::from(command.output().unwrap());
    assert!(done.conversation().starts_with("c-"), "{}", done.stderr);
    for line in ["root asks the model", "root calls read_file {\"path\":\"a.txt\"}", "12 tokens in, 34 out"] {
        assert!(done.stderr.contains(line), "{}", done.stderr);
    }
    assert!(!done.stderr.contains("offline"), "{}", done.stderr);
    assert_eq!(done.ok(), "it says: hello from the file\n\n");

    let requests = model.requests.lock().unwrap();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].1["messages"][2]["content"], json!("what is in a.txt?"));
    assert!(requests[0].0.contains(KEY), "the vendor gets its key");
}

#[test]
fn a_vendors_key_is_nowhere_but_on_the_wire() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Refuse(401, "no such key: sk-this-is-the-secret-of-the-test")]);
    let mut command = home.command(&["run", "x"]);
    model.set(&mut command);
    let done = Done::from(command.env("POLIS_LOG", "trace").output().unwrap());
    assert_eq!(done.code, 1);
    assert!(!done.stderr.contains(KEY) && !done.stdout.contains(KEY), "{}", done.stderr);
    let mut folders = vec![home.data()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()), "{}", path.display());
        }
    }
}

#[test]
fn without_a_key_the_offline_model_answers_and_says_so() {
    let home = Home::new();
    home.write("a.txt", "one\ntwo\n");
    let done = home.polis(&["run", "read a.txt"]);
    assert!(done.stderr.contains("offline model") && done.stderr.contains("OPENAI_API_KEY"), "{}", done.stderr);
    assert!(done.ok().contains("2 lines, 2 words"));
}

#[test]
fn a_request_that_runs_out_of_rounds_is_answered_with_what_there_is_and_status_4() {
    let home = Home::new();
    let mut rounds = 0;
    let model = ModelServer::scripted(move |request| {
        rounds += 1;
        let is_last = request["messages"].as_array().unwrap().last().unwrap().to_string().contains("No more tools can be used");
        Some(match is_last {
            true => Reply::Say(&["half of it"]),
            false => Reply::Call("read_file", json!({ "path": format!("{}.txt", "i".repeat(rounds)) })),
        })
    });
    let mut command = home.command(&["run", "read everything"]);
    model.set(&mut command);
    let done = Done::from(command.output().unwrap());
    assert_eq!((done.code, &*done.stdout), (4, "half of it\n"), "{}", done.stderr);
}

#[test]
fn an_answer_that_is_cut_or_refused_has_a_status_of_its_own() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Limited(&["half of ", "it"]), Reply::Say(&["all of it"])]);
    let run = |args: &[&str]| {
        let mut command = home.command(args);
        model.set(&mut command);
        Done::from(command.output().unwrap())
    };
    let cut = run(&["run", "tell me all"]);
    assert_eq!((cut.code, &*cut.stdout), (4, "half of it\n\n[The reply ends here: it reached the limit of tokens.]\n"));
    assert_eq!(run(&["run", "again"]).ok(), "all of it\n");

    let refused = Home::new().polis(&["run", "tell me a joke"]);
    assert!(refused.code == 4 && refused.stdout.contains("I cannot answer that"), "{}{}", refused.stdout, refused.stderr);
    Home::new().polis(&["run", "6 * 7"]).ok();
}

#[test]
fn the_configuration_says_which_model_and_where() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["from ", "the file"])]);
    home.write("polis.toml", &format!("model = \"openai/m\"\n\n[providers.openai]\nbase_url = \"{}\"\n", model.base_url()));
    assert_eq!(home.polis(&["run", "x"]).ok(), "from the file\n");
    assert_eq!(model.requests.lock().unwrap()[0].1["model"], json!("m"));
}

#[test]
fn an_agent_reads_and_writes_the_workspace_but_not_our_data() {
    let home = Home::new();
    home.polis(&["run", "write notes/a.txt: 你好"]).ok();
    assert_eq!(std::fs::read_to_string(home.path().join("notes/a.txt")).unwrap(), "你好");
    assert_eq!(home.polis(&["run", "write .polis/token: mine"]).code, 4);
    assert!(!home.data().join("token").exists());
    let refused = home.polis(&["run", "read .polis/polis.db"]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(refused.stdout.contains("no agent may touch"), "{}", refused.stdout);
    let outside = Home::new();
    let workspace = outside.path().to_str().unwrap();
    home.polis(&["run", "--workspace", workspace, "write b.txt: there"]).ok();
    assert_eq!(std::fs::read_to_string(outside.path().join("b.txt")).unwrap(), "there");
}

#[test]
fn json_prints_every_event_of_the_request_as_a_line() {
    let home = Home::new();
    let printed = home.polis(&["run", "--json", "hello"]).ok();
    let events: Vec<Recorded> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let log = home.log();
    let first = log.iter().position(|recorded| recorded.event.envelope().is_some()).unwrap();
    assert_eq!(events, log[first..]);
    let last = events.last().and_then(|recorded| recorded.event.envelope()).unwrap();
    assert_eq!((last.to.as_str(), &last.kind), ("user", &MessageKind::Answer));
}

#[test]
fn a_failure_is_told_with_its_reason() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Refuse(400, "the model is on holiday")]);
    let mut command = home.command(&["run", "x"]);
    model.set(&mut command);
    let done = Done::from(command.output().unwrap());
    done.fails(1, "model_rejected");
    assert!(done.stderr.contains("the model is on holiday"), "{}", done.stderr);
    assert_eq!(done.stdout, "");
}

#[test]
fn a_strategy_is_one_of_four() {
    let home = Home::new();
    assert_eq!(home.polis(&["run", "--strategy", "other", "x"]).code, 2);
    assert!(!home.data().exists());
    home.polis(&["run", "--strategy", "simple", "hello"]).ok();
    home.polis(&["run", "--strategy", "template", "x"]).fails(1, "no_sop");
    home.polis(&["run", "--strategy", "workflow", "what is 2 + 3?"]).ok();
    let opened = || home.polis(&["log", "--json"]).ok().matches("threadOpened").count();
    let before = opened();
    home.polis(&["run", "--continue", "--strategy", "auto", "what is 2 + 4?"]).ok();
    assert_eq!(opened(), before, "auto counts for this request");
    home.polis(&["run", "--continue", "what is 2 + 5?"]).ok();
    assert!(opened() > before, "the conversation keeps the strategy that it was begun with");
}

#[test]
fn a_run_beside_a_server_goes_through_it() {
    let home = Home::new();
    let served = home.serve(&[]);
    let done = home.polis(&["run", "hello"]);
    assert!(done.stderr.contains(&format!("using the server at {}", served.url())), "{}", done.stderr);
    assert!(done.ok().contains("offline model"));
    let (_, agents) = served.get("/api/agents");
    assert_eq!(agents["agents"][0]["id"], json!("root"));
    served.stop();
    let envelopes = home.log().iter().filter(|recorded| matches!(recorded.event, Event::MessageSent { .. })).count();
    assert_eq!(envelopes, 2);
}

#[test]
fn a_run_that_is_stopped_says_so_and_the_request_is_not_lost() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Hang, Reply::Say(&["late, ", "but here"])]);
    let mut command = home.command(&["run", "x"]);
    model.set(&mut command);
    let mut child = command.spawn().unwrap();
    model.wait();
    // The first asks it to come to a safe point, which a silent model does not let it reach; the second is the end.
    signal(&child, Signal::INT);
    let said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.into_iter().any(|line| line.contains("when polis runs again here")));
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));

    let served = home.serve_with(&[], |command| model.set(command));
    let answer = served.until(is_ending);
    assert_eq!(&*answer.event.envelope().unwrap().payload.text, "late, but here");
    served.stop();
}

#[test]
fn the_request_can_come_from_standard_input_and_does_so_only_when_it_is_asked_for() {
    let home = Home::new();
    let model = ModelServer::scripted(|_| Some(Reply::Say(&["well"])));
    let asked = |args: &[&str], piped: &[u8]| {
        let mut command = home.command(args);
        model.set(&mut command);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(piped).unwrap();
        Done::from(child.wait_with_output().unwrap()).ok();
        model.requests.lock().unwrap().last().unwrap().1["messages"].as_array().unwrap().last().unwrap()["content"].clone()
    };
    assert_eq!(asked(&["run", "-"], b"one\ntwo\n"), json!("one\ntwo"));
    assert_eq!(asked(&["run", "sum", "up", "-"], b"one\ntwo\n"), json!("sum up\n\none\ntwo"));
    assert_eq!(asked(&["run", "sum", "up", "-"], b""), json!("sum up"));
    assert_eq!(asked(&["run", "sum up"], b""), json!("sum up"));

    // The pipe stays open, and nothing is written to it.
    let mut command = home.command(&["run", "sum up"]);
    model.set(&mut command);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let pipe = child.stdin.take();
    assert_eq!(Done::from(child.wait_with_output().unwrap()).ok(), "well\n");
    drop(pipe);

    let home = Home::new();
    home.fed(&["run", "-"], b"\xff\xfe").fails(1, "invalid_utf8");
    assert!(!home.data().exists(), "nothing was created for it");
    home.fed(&["run", "-"], b" \n").fails(1, "empty_text");
}

#[test]
fn files_are_stored_and_go_with_the_request() {
    let home = Home::new();
    home.write("notes.md", "# what was said\n");
    let picture = b"\x89PNG\0".repeat(40_000);
    std::fs::write(home.path().join("picture"), &picture).unwrap();
    home.polis(&["run", "--file", "nothing.md", "x"]).fails(2, "unreadable_file");
    home.polis(&["run", "--file", ".", "x"]).fails(2, "unreadable_file");
    assert!(!home.data().exists(), "nothing was created for it");

    let with_server = home.serve(&[]);
    home.polis(&["run", "--file", "notes.md", "--file", "picture", "read them"]).ok();
    with_server.stop();
    home.polis(&["run", "--file", "notes.md", "read notes.md"]).ok();
    let log = home.log();
    let sent = log.iter().filter_map(|recorded| recorded.event.envelope()).filter(|envelope| envelope.from.is_user());
    let attached: Vec<Vec<_>> = sent
        .map(|envelope| Artifact::attached(&envelope.payload.meta).into_iter().map(|it| it.to_string()).collect())
        .collect();
    assert_eq!(attached.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1], "{attached:?}");
    let listed = home.polis(&["artifacts"]).ok();
    let bytes = format!("{}  image/png  picture", picture.len());
    for kind in ["text/markdown; charset=utf-8  notes.md", &bytes] {
        assert!(listed.contains(kind), "{listed}");
    }
    let id = listed.split(' ').next().unwrap();
    assert_eq!(home.polis(&["artifacts", "get", id]).ok(), "# what was said\n");
}
