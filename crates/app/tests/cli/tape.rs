//! `--record` and `--replay`: a run that can be had again without its model.

use polis_domain::Event;
use rustix::process::Signal;
use serde_json::json;

use super::model::{KEY, ModelServer, Reply};
use super::support::{Done, Home, is_ending};

const TAPE: &str = "tape.jsonl";

/// A folder where a run with a tool call was recorded, and its answer. The model's server is gone.
fn recorded() -> (Home, String) {
    let home = Home::new();
    home.write("a.txt", "hello from the file\n");
    let model = ModelServer::start(vec![Reply::Call("read_file", json!({ "path": "a.txt" })), Reply::Repeat]);
    let mut command = home.command(&["run", "--record", TAPE, "what is in a.txt?"]);
    model.set(&mut command);
    let done = Done::from(command.output().unwrap());
    assert!(done.stderr.contains("recording requests and replies in tape.jsonl"), "{}", done.stderr);
    let tape = std::fs::read_to_string(home.path().join(TAPE)).unwrap();
    assert_eq!(tape.lines().count(), 3, "{tape}");
    assert!(!tape.contains(KEY), "a key is never in it");
    (home, done.ok())
}

/// A new society in the same folder.
fn forget(home: &Home) {
    std::fs::remove_dir_all(home.data()).unwrap();
}

#[test]
fn a_recorded_run_with_tool_calls_gives_the_same_answer_without_model_key_or_network() {
    let (home, answer) = recorded();
    assert_eq!(answer, "it says: hello from the file\n\n");
    forget(&home);
    let done = home.polis(&["run", "--replay", TAPE, "what is in a.txt?"]);
    assert!(
        done.stderr.contains("answering from the cassette tape.jsonl; no key is needed and no model is called"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("12 tokens in, 34 out"), "{}", done.stderr);
    assert!(!done.stderr.contains("offline") && !done.stderr.contains("not used"), "{}", done.stderr);
    assert_eq!(done.ok(), answer);

    // A cassette can be chosen by a variable, and for a chat.
    forget(&home);
    let mut command = home.command(&["run", "what is in a.txt?"]);
    assert_eq!(Done::from(command.env("POLIS_REPLAY", TAPE).output().unwrap()).ok(), answer);
    forget(&home);
    let chat = home.fed(&["chat", "--replay", TAPE], b"what is in a.txt?\n/quit\n");
    assert!(chat.ok().contains("it says: hello from the file"));
}

#[test]
fn a_request_that_differs_fails_with_the_difference() {
    let (home, _) = recorded();
    forget(&home);
    let done = home.polis(&["run", "--replay", TAPE, "what is in b.txt?"]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("(model_rejected)"), "{}", done.stderr);
    assert!(done.stderr.contains("- user: what is in a.txt?\n+ user: what is in b.txt?"), "{}", done.stderr);
    let unused = "2 recorded interactions were not used:\n  line 2: user: what is in a.txt?\n  line 3: result of read_file (call_1): hello";
    assert!(done.stderr.contains(unused), "{}", done.stderr);
    assert_eq!(done.stdout, "");

    // The world may differ as well: then it is the tool's result that does.
    forget(&home);
    home.write("a.txt", "something else\n");
    let done = home.polis(&["run", "--replay", TAPE, "what is in a.txt?"]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("+ result of read_file (call_1): something else"), "{}", done.stderr);
}

#[test]
fn a_server_records_and_replays_too() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["from ", "the model"])]);
    let answer = |served: &super::support::Served| {
        served.post("/api/submit", &json!({ "text": "hello" }));
        served.until(is_ending).event.envelope().unwrap().payload.text.to_string()
    };
    let served = home.serve_with(&["--record", TAPE], |command| model.set(command));
    assert_eq!(answer(&served), "from the model");
    served.signal(Signal::TERM);
    assert_eq!(served.wait().0, 0);
    forget(&home);
    let served = home.serve(&["--replay", TAPE]);
    assert_eq!(answer(&served), "from the model");
    assert_eq!(served.get("/api/health").1["model"]["name"], json!("cassette"));
    // Beside a server nothing is replayed, and that is said.
    let beside = home.polis(&["run", "--replay", "missing.jsonl", "hello"]);
    assert!(beside.stderr.contains("nothing is recorded or replayed here"), "{}", beside.stderr);
    beside.fails(1, "model_rejected");
    assert!(!served.stop().1.contains("not used"));
}

#[test]
fn an_agent_cannot_touch_the_cassette_and_only_one_of_both_is_done() {
    let home = Home::new();
    assert_eq!(home.polis(&["run", "--record", TAPE, "write tape.jsonl: mine"]).code, 4, "refused");
    assert!(std::fs::read_to_string(home.path().join(TAPE)).unwrap().starts_with("{\"cassette\":1}\n"));
    assert_eq!(home.polis(&["run", "--record", "a", "--replay", "b", "x"]).code, 2);
    let models = home.log().iter().filter(|recorded| matches!(recorded.event, Event::EffectEnded { .. })).count();
    assert_eq!(models, 4, "what the model was told, and the refused write, which is a result that the model reads");
}
