//! `polis chat`.

use polis_domain::Event;
use serde_json::json;

use super::model::{ModelServer, Reply, is_environment};
use super::support::{Done, Home};
use super::terminal::Terminal;

#[test]
fn lines_are_answered_in_order_and_the_end_of_input_is_the_end() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["one", " and", " a half"]), Reply::Say(&["二"])]);
    let mut command = home.command(&["chat"]);
    model.set(&mut command);
    let file = home.path().join("input");
    std::fs::write(&file, "first\n\n  \nsecond\n").unwrap();
    let done = Done::from(command.stdin(std::fs::File::open(file).unwrap()).output().unwrap());
    assert_eq!(done.ok(), "one and a half\n二\n");
    let asked: Vec<_> =
        model.requests.lock().unwrap().iter().map(|(_, body)| body["messages"].as_array().unwrap().len()).collect();
    assert_eq!(asked, [3, 5], "the second line is part of the same conversation");
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

/// Chats with these lines from a pipe.
fn chat(home: &Home, model: &ModelServer, args: &[&str], lines: &str) -> Done {
    let mut command = home.command(&[&["chat"], args].concat());
    model.set(&mut command);
    let file = home.path().join("input");
    std::fs::write(&file, lines).unwrap();
    command.stdin(std::fs::File::open(file).unwrap()).output().unwrap().into()
}

/// The user's texts in the last request to a model.
fn last_asked(model: &ModelServer) -> Vec<String> {
    let requests = model.requests.lock().unwrap();
    let messages = requests.last().unwrap().1["messages"].as_array().unwrap();
    let said = messages.iter().filter(|message| message["role"] == "user").filter(|message| !is_environment(message));
    said.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_chat_begins_a_conversation_and_can_continue_or_switch_to_another() {
    let home = Home::new();
    let model = ModelServer::scripted(|_| Some(Reply::Say(&["well"])));
    let first = chat(&home, &model, &[], "a trip\nto Rome\n");
    let trip = first.conversation();
    assert!(trip.starts_with("c-"), "{}", first.stderr);
    assert_eq!(first.ok(), "well\nwell\n");
    assert_eq!(last_asked(&model), ["a trip", "to Rome"]);

    let second = chat(&home, &model, &[], "a poem\n/new\na song\n");
    assert_eq!(last_asked(&model), ["a song"]);
    assert_eq!(second.stderr.matches("polis: conversation c-").count(), 2, "{}", second.stderr);
    second.ok();

    chat(&home, &model, &["--continue"], "in two parts\n").ok();
    assert_eq!(last_asked(&model), ["a song", "in two parts"]);
    chat(&home, &model, &["--conversation", &trip], "by train\n").ok();
    assert_eq!(last_asked(&model), ["a trip", "to Rome", "by train"]);
    let switched = chat(&home, &model, &[], "/switch poem\nin rhymes\n/list\n");
    assert_eq!(last_asked(&model), ["a poem", "in rhymes"]);
    let marked: Vec<_> = switched.stderr.lines().filter(|line| line.starts_with("* ")).collect();
    assert!(marked.len() == 1 && marked[0].ends_with("a poem"), "{}", switched.stderr);
    chat(&home, &model, &[], "/switch nothing like it\n").fails(1, "unknown_conversation");
}

#[test]
fn a_chat_can_change_the_model_of_its_conversation() {
    let home = Home::new();
    let model = ModelServer::scripted(|_| Some(Reply::Say(&["well"])));
    let done = chat(&home, &model, &[], "/model\n/model openai/other\none\n/model openai/third\ntwo\n/new\nthree\n");
    let asked: Vec<_> =
        model.requests.lock().unwrap().iter().map(|(_, body)| body["model"].as_str().unwrap().to_owned()).collect();
    assert_eq!(asked, ["other", "third", "test"]);
    assert!(done.stderr.contains("asks the model of its role"), "{}", done.stderr);
    done.ok();
}

#[test]
fn without_a_terminal_lines_are_sent_as_they_are_unless_they_look_like_commands() {
    let home = Home::new();
    let model = ModelServer::scripted(|_| Some(Reply::Say(&["well"])));
    let done = chat(&home, &model, &[], "C:\\\n/nwe\n/bogus\n/approve\n/help\n/etc/hosts\n");
    assert_eq!(last_asked(&model), ["C:\\", "/etc/hosts"]);
    for told in ["no command /nwe; did you mean `/new`? The", "no command /bogus. The commands are /new, /list, /switch"] {
        assert!(done.stderr.contains(told), "{told}: {}", done.stderr);
    }
    assert_eq!(done.code, 1, "a line was not sent");
}

#[test]
fn at_a_terminal_a_backslash_continues_the_line_and_an_unknown_command_is_not_sent() {
    let home = Home::new();
    let model = ModelServer::scripted(|_| Some(Reply::Say(&["well"])));
    let mut command = home.command(&["chat"]);
    model.set(&mut command);
    let mut terminal = Terminal::start(command);
    terminal.until("> ");
    terminal.types("/nwe\n");
    terminal.until("there is no command /nwe");
    terminal.until("> ");
    terminal.types("one\\\n");
    terminal.until("… ");
    terminal.types("two\n");
    terminal.until("well");
    terminal.until("> ");
    terminal.types("/quit\n");
    assert_eq!(terminal.ends(), Some(0));
    assert_eq!(last_asked(&model), ["one\ntwo"]);
}

#[test]
fn ctrl_c_at_a_terminal_stops_the_request_and_the_second_one_the_chat() {
    let home = Home::new();
    let model = ModelServer::start(vec![Reply::Say(&["well"]), Reply::Stall(&["half ", "of it"]), Reply::Say(&["fine"])]);
    let mut command = home.command(&["chat"]);
    model.set(&mut command);
    let mut terminal = Terminal::start(command);
    terminal.until("> ");
    terminal.types("one\n");
    terminal.until("well");
    terminal.until("> ");
    terminal.types("two\n");
    terminal.until("half of it");
    terminal.interrupt();
    terminal.until("the request is cancelled, the conversation goes on");
    terminal.until("> ");
    terminal.types("three\n");
    terminal.until("fine");
    terminal.until("> ");
    terminal.interrupt();
    assert_eq!(terminal.ends(), Some(130));
    let note =
        "[polis] Your turn was stopped here, before you had answered: the person pressed Ctrl-C. What its calls did is done.";
    assert_eq!(last_asked(&model), ["one", "two", note, "three"], "what was said is kept");
    let requests = model.requests.lock().unwrap();
    let shown = requests.last().unwrap().1["messages"].to_string();
    assert!(shown.contains(r#"{"content":"half of it","role":"assistant"}"#), "also of the reply: {shown}");
}

#[test]
fn at_a_terminal_lines_are_edited_and_recalled_in_the_next_chat() {
    let home = Home::new();
    let model = ModelServer::scripted(|_| Some(Reply::Say(&["well"])));
    let start = || {
        let mut command = home.command(&["chat"]);
        model.set(&mut command);
        let mut terminal = Terminal::start(command);
        terminal.until("> ");
        terminal
    };
    let mut first = start();
    // Back over the l, an a before it, and the end again.
    first.types("C\u{e9}s\u{7f}sr\u{1b}[D\u{1b}[D\u{1b}[D\u{5}!\r");
    first.until("well");
    first.until("> ");
    first.types("not sent\u{3}");
    assert_eq!(first.ends(), Some(130), "Ctrl-C at the prompt leaves");
    assert_eq!(last_asked(&model), ["Césr!"]);
    let mut second = start();
    second.types("\u{1b}[A\u{1b}[H我: \r");
    second.until("well");
    second.until("> ");
    second.types("\u{4}");
    assert_eq!(second.ends(), Some(0), "Ctrl-D ends the input");
    assert_eq!(last_asked(&model), ["我: Césr!"]);
    let kept = std::fs::metadata(home.data().join("chat_history")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&kept.permissions()) & 0o777, 0o600);
}

#[test]
fn what_waits_for_a_person_is_decided_in_a_chat() {
    let home = Home::new();
    home.write("polis.toml", "[[policy]]\ntool = \"write_file\"\nthen = \"ask\"\n");
    let call = Reply::Call("write_file", json!({ "path": "a.txt", "content": "x" }));
    let model = ModelServer::start(vec![call, Reply::Say(&["written"])]);
    let mut command = home.command(&["run", "write it"]);
    model.set(&mut command);
    assert_eq!(command.output().unwrap().status.code(), Some(3));
    let mut command = home.command(&["chat"]);
    model.set(&mut command);
    let mut terminal = Terminal::start(command);
    terminal.until("> ");
    terminal.types("/approve\n");
    terminal.until("approve? [y");
    terminal.types("y\n");
    terminal.until("polis: recorded");
    model.wait();
    model.wait();
    terminal.types("/approve\n");
    terminal.until("nothing waits for you");
    terminal.types("/quit\n");
    assert_eq!(terminal.ends(), Some(0));
    assert_eq!(std::fs::read_to_string(home.path().join("a.txt")).unwrap(), "x");
}

#[test]
fn a_run_asks_only_about_its_own_request() {
    let home = Home::new();
    home.write("polis.toml", "[[policy]]\ntool = \"write_file\"\nthen = \"ask\"\n");
    let call = |path: &str| Reply::Call("write_file", json!({ "path": path, "content": "x" }));
    let model = ModelServer::start(vec![call("first.txt"), call("second.txt")]);
    let run = || {
        let mut command = home.command(&["run", "write it"]);
        model.set(&mut command);
        let done = command.output().unwrap();
        assert_eq!(done.status.code(), Some(3));
        String::from_utf8(done.stderr).unwrap()
    };
    assert!(run().contains("first.txt"));
    let said = run();
    assert!(said.contains("second.txt") && !said.contains("first.txt"), "{said}");
}
