//! Conversations on the command line: starting, continuing, listing, changing and deleting them.

use serde_json::{Value, json};

use super::model::{ModelServer, Reply, is_environment};
use super::support::{Done, Home};
use super::terminal::Terminal;

/// Runs with this model.
fn run(home: &Home, model: &ModelServer, args: &[&str]) -> Done {
    let mut command = home.command(&[&["run"], args].concat());
    model.set(&mut command);
    command.output().unwrap().into()
}

/// Starts a conversation; its id.
fn start(home: &Home, text: &str) -> String {
    let done = home.polis(&["run", text]);
    // The offline model does not do all that these tests ask for.
    assert!([0, 4].contains(&done.code), "{}", done.stderr);
    done.conversation()
}

fn listed(home: &Home, args: &[&str]) -> Vec<Value> {
    let listed: Value = serde_json::from_str(&home.polis(&[&["conversations", "--json"], args].concat()).ok()).unwrap();
    listed["conversations"].as_array().unwrap().clone()
}

fn ids(home: &Home, args: &[&str]) -> Vec<String> {
    listed(home, args).iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_run_starts_a_conversation_and_names_it_on_stderr_only() {
    let home = Home::new();
    for args in [&["run", "hello"][..], &["run", "--json", "hello"]] {
        let done = home.polis(args);
        let id = done.conversation();
        let line = format!("polis: conversation {id} (continue it with --continue or --conversation {id}), request ");
        assert!(id.starts_with("c-") && done.stderr.contains(&line), "{}", done.stderr);
        let request = done.stderr.split(&line).nth(1).unwrap().lines().next().unwrap();
        assert!(home.polis(&["result", request]).ok().contains("offline model"));
        assert!(!done.stdout.contains("polis: conversation"), "{}", done.stdout);
        let shown = home.polis(&["show", &id]).ok();
        assert!(shown.starts_with(&format!("{id}  (phase initial_phase, 2 messages)\n")), "{shown}");
    }
    assert_eq!(ids(&home, &[]).len(), 2, "root has no message");
}

#[test]
fn a_conversation_is_continued_as_the_newest_or_by_its_id_or_by_its_title() {
    let home = Home::new();
    let model = ModelServer::scripted(|_| Some(Reply::Say(&["well"])));
    run(&home, &model, &["--continue", "x"]).fails(1, "no_conversation");
    let trip = run(&home, &model, &["plan a trip"]).conversation();
    let poem = run(&home, &model, &["write a poem"]).conversation();
    assert_ne!(trip, poem);
    for (args, to) in [
        (&["--continue", "in rhymes"][..], &poem),
        (&["--conversation", &trip, "to Rome"], &trip),
        (&["--continue", "by train"], &trip),
        (&["--conversation", "Write a POEM", "shorter"], &poem),
        (&["--conversation", "trip", "by night"], &trip),
    ] {
        let done = run(&home, &model, args);
        assert_eq!(done.conversation(), *to, "{args:?}");
        assert_eq!(done.ok(), "well\n");
    }
    // A pinned one is listed first, and is not the newest for that.
    home.polis(&["conversations", "pin", &poem]).ok();
    assert_eq!(run(&home, &model, &["--continue", "cheaper"]).conversation(), trip);
    let last = model.requests.lock().unwrap().last().unwrap().1["messages"].clone();
    let said = last.as_array().unwrap().iter().filter(|message| message["role"] == "user" && !is_environment(message));
    let said: Vec<_> = said.collect();
    let texts: Vec<_> = said.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["plan a trip", "to Rome", "by train", "by night", "cheaper"]);

    run(&home, &model, &["another trip"]).ok();
    run(&home, &model, &["--conversation", "trip", "x"]).fails(2, "ambiguous_conversation");
    run(&home, &model, &["--conversation", "c-nothing", "x"]).fails(1, "unknown_conversation");
    assert_eq!(run(&home, &model, &["--continue", "--conversation", &trip, "x"]).code, 2);
}

#[test]
fn conversations_are_listed_searched_renamed_archived_pinned_and_deleted() {
    for with_server in [false, true] {
        let home = Home::new();
        home.polis(&["conversations"]).fails(1, "no_data");
        let _served = with_server.then(|| home.serve(&[]));
        let (one, two) = (start(&home, "plan a trip"), start(&home, "write a poem"));
        let lines = home.polis(&["conversations"]).ok();
        let line = |n: usize| lines.lines().nth(n).unwrap();
        assert!(line(0).starts_with(&format!("{two}  2")) && line(0).ends_with("  idle     write a poem"), "{lines}");
        assert!(line(1).starts_with(&format!("{one}  2")) && line(1).ends_with("  idle     plan a trip"), "{lines}");
        assert_eq!(ids(&home, &["search", "POEM", "write"]), [two.as_str()]);

        home.polis(&["conversations", "rename", &one, "Rome", "by", "train"]).ok();
        assert_eq!(listed(&home, &["search", "rome"])[0]["title"], json!("Rome by train"));
        home.polis(&["conversations", "pin", &one]).ok();
        assert_eq!(ids(&home, &[]), [one.clone(), two.clone()]);
        home.polis(&["conversations", "unpin", &one]).ok();
        assert_eq!(ids(&home, &[]), [two.clone(), one.clone()]);
        home.polis(&["conversations", "archive", &two]).ok();
        assert_eq!((ids(&home, &[]), ids(&home, &["--archived"])), (vec![one.clone()], vec![two.clone()]));
        home.polis(&["conversations", "unarchive", &two]).ok();
        assert_eq!(ids(&home, &[]), [two.clone(), one.clone()]);

        // Nobody is there to be asked.
        home.polis(&["conversations", "delete", &two]).fails(3, "not_confirmed");
        assert_eq!(ids(&home, &[]).len(), 2);
        home.polis(&["conversations", "delete", &two, "--yes"]).ok();
        assert_eq!(ids(&home, &[]), [one]);
        for command in ["archive", "unarchive", "pin", "unpin", "delete"] {
            home.polis(&["conversations", command, &two]).fails(1, "unknown_conversation");
        }
    }
}

#[test]
fn a_search_finds_words_of_answers_and_only_a_title_names_a_conversation() {
    let home = Home::new();
    let id = start(&home, "What is 15% of 240?");
    assert_eq!(ids(&home, &["search", "36"]), [id.as_str()]);
    home.polis(&["conversations", "delete", "36", "--yes"]).fails(1, "unknown_conversation");
    home.polis(&["conversations", "rename", "15%", "Percent"]).ok();
    assert_eq!(listed(&home, &["search", "36"])[0]["title"], json!("Percent"));
}

#[test]
fn a_person_at_a_terminal_is_asked_before_a_conversation_is_deleted() {
    let home = Home::new();
    let id = start(&home, "plan a trip");
    for (answer, code, left) in [("n\n", Some(3), 1), ("y\n", Some(0), 0)] {
        let mut terminal = Terminal::start(home.command(&["conversations", "delete", &id]));
        terminal.until(&format!("Delete {id} (plan a trip) with its 2 messages? [y/N] "));
        terminal.types(answer);
        terminal.until(if left == 0 { "deleted" } else { "(not_confirmed)" });
        assert_eq!(terminal.ends(), code);
        assert_eq!(ids(&home, &[]).len(), left);
    }
}
