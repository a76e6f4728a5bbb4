//! `polis chat`.

use polis_domain::Event;

use super::model::{ModelServer, Reply};
use super::support::{Done, Home};

#[test]
fn lines_are_answered_in_order_and_the_end_of_input_is_the_end() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["one", " and", " a half"]), Reply::Say(&["二"])]);
    let mut command = home.command(&["chat"]);
    model.set(&mut command);
    let file = home.path().join("input");
    std::fs::write(&file, "first\n\n  \n@root second\n").unwrap();
    let done = Done::from(command.stdin(std::fs::File::open(file).unwrap()).output().unwrap());
    assert_eq!(done.ok(), "one and a half\n二\n");
    let asked: Vec<_> =
        model.requests.lock().unwrap().iter().map(|(_, body)| body["messages"].as_array().unwrap().len()).collect();
    assert_eq!(asked, [2, 4], "the second line is part of the same conversation");
}

#[test]
fn what_is_wrong_with_one_line_does_not_end_the_conversation() {
    let home = Home::new();
    let mut input = b"@nobody hello\n@user hello\n\xff\xfe\n@root\n".to_vec();
    input.extend("a".repeat(256 * 1024 + 1).bytes());
    input.extend(b"\n1 + 1\n/quit\nnever\n");
    let done = home.fed(&["chat"], &input);
    for code in ["unknown_agent", "to_user", "invalid_utf8", "empty_text", "text_too_long"] {
        assert!(done.stderr.contains(&format!("({code})")), "{code}: {}", done.stderr);
    }
    assert_eq!((done.code, done.stdout.lines().count()), (1, 1), "{}", done.stdout);
    let envelopes = home.log().iter().filter(|recorded| matches!(recorded.event, Event::MessageSent { .. })).count();
    assert_eq!(envelopes, 2, "one line was good, and it was answered");
}
