//! Pictures from the command line to the model.

use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Done, Home};

const PNG: &[u8] = b"\x89PNG1";
const URL: &str = "data:image/png;base64,iVBORzE=";

fn home() -> Home {
    let home = Home::new();
    std::fs::write(home.path().join("cat.png"), PNG).unwrap();
    home
}

/// The pictures in each request to the model.
fn shown(model: &ModelServer) -> Vec<Vec<Value>> {
    let picture = |part: &Value| (part["type"] == "image_url").then(|| part["image_url"]["url"].clone());
    let pictures =
        |message: &Value| message["content"].as_array().into_iter().flatten().filter_map(picture).collect::<Vec<_>>();
    let requests = model.requests.lock().unwrap();
    requests.iter().map(|(_, body)| body["messages"].as_array().unwrap().iter().flat_map(pictures).collect()).collect()
}

#[test]
fn a_run_shows_a_picture_and_goes_on_without_it_where_the_vendor_refuses_it() {
    let home = home();
    let refusal = r#"{"error":{"message":"messages[1]: unknown variant `image_url`, expected `text`"}}"#;
    let model = ModelServer::start(vec![Reply::Refuse(400, refusal), Reply::Say(&["a cat, I am told"])]);
    let mut command = home.command(&["run", "--file", "cat.png", "what is this?"]);
    model.set(&mut command);
    let done = Done::from(command.output().unwrap());
    assert!(done.stderr.contains("the model is not shown cat.png: this model takes no pictures"), "{}", done.stderr);
    assert_eq!(done.ok(), "a cat, I am told\n");
    assert_eq!(shown(&model), [vec![json!(URL)], vec![]]);
    let last = model.requests.lock().unwrap()[1].1["messages"].to_string();
    assert!(last.contains("[not shown: artifact ") && last.contains("(cat.png, image/png, 5 bytes)"), "{last}");
}

#[test]
fn a_chat_shows_a_file_with_the_next_message_and_later_ones() {
    let home = home();
    let model = ModelServer::scripted(|_| Some(Reply::Say(&["well"])));
    let mut command = home.command(&["chat"]);
    model.set(&mut command);
    let file = home.path().join("input");
    std::fs::write(&file, "hello\n/file nothing.png\n/file cat.png\nwhat is this?\nreally?\n").unwrap();
    let done = Done::from(command.stdin(std::fs::File::open(file).unwrap()).output().unwrap());
    assert!(
        done.stderr.contains("(unreadable_file)") && done.stderr.contains("the next message brings cat.png"),
        "{}",
        done.stderr
    );
    assert_eq!(done.stdout, "well\nwell\nwell\n");
    assert_eq!(shown(&model), [vec![], vec![json!(URL)], vec![json!(URL)]]);
}

#[test]
fn a_picture_is_shown_again_after_a_kill() {
    let home = home();
    let model = ModelServer::start(vec![Reply::Hang, Reply::Say(&["a cat"])]);
    let served = home.serve_with(&[], |command| model.set(command));
    let mut run = home.command(&["run", "--file", "cat.png", "what is this?"]).spawn().unwrap();
    model.wait();
    served.kill();
    run.wait().unwrap();
    let tasks: Value = serde_json::from_str(&home.polis(&["tasks", "--json"]).ok()).unwrap();
    let task = tasks["tasks"][0]["id"].as_str().unwrap_or_else(|| panic!("{tasks}")).to_owned();
    let mut follow = home.command(&["attach", &task]);
    model.set(&mut follow);
    assert_eq!(Done::from(follow.output().unwrap()).ok(), "a cat\n");
    assert_eq!(shown(&model), [vec![json!(URL)], vec![json!(URL)]]);
}
