//! `polis run --strategy workflow`: the offline model plans, does and verifies with the real tools.

use polis_domain::{Effect, Event};

use super::support::Home;

const TAPE: &str = "tape.jsonl";

fn folder() -> Home {
    let home = Home::new();
    home.write("sales.csv", "city,amount\nParis,3\nOslo,5\nParis,4\n");
    home.write("NOTES.md", "# Notes\nbuy milk\n");
    home
}

fn has(text: &str, wants: &[&str]) {
    for want in wants {
        assert!(text.contains(want), "should have: {want}\n{text}");
    }
}

fn count(home: &Home, which: impl Fn(&Event) -> bool) -> usize {
    home.log().into_iter().filter(|recorded| which(&recorded.event)).count()
}

fn is_call(event: &Event) -> bool {
    matches!(event, Event::EffectStarted { effect: Effect::Tool(_), .. })
}

#[test]
fn three_todos_are_done_with_real_results_and_the_run_replays_without_a_model() {
    let home = folder();
    let request = "what is the total amount by city in sales.csv? read NOTES.md; what is 15% of 240";
    let answer = home.polis(&["run", "--strategy", "workflow", "--record", TAPE, request]).ok();
    has(&answer, &["(offline model)", "Paris", "7", "buy milk", "36"]);
    assert!(count(&home, is_call) >= 2);
    assert_eq!(
        count(&home, |event| matches!(event, Event::ThreadOpened { .. })),
        6,
        "workflow, planner, three todos, verifier"
    );
    let tree = home.polis(&["show", "root", "--tree"]).ok();
    has(&tree, &["- [x] read NOTES.md", "→ read_file", "## The current task"]);
    let prompt = home.polis(&["show", "root.messages[1].meta._thread.messages[0].meta._thread", "--prompt"]).ok();
    has(&prompt, &["You are the Planner", "- `read_file`:"]);
    home.polis(&["show", "root", "--prompt"]).fails(1, "no_prompt");

    std::fs::remove_dir_all(home.data()).unwrap();
    let done = home.polis(&["run", "--strategy", "workflow", "--replay", TAPE, request]);
    assert!(!done.stderr.contains("not used"), "{}", done.stderr);
    assert_eq!(done.ok(), answer);
}

#[test]
fn a_request_in_chinese_is_planned_done_and_answered_in_chinese() {
    let home = folder();
    let answer = home.polis(&["run", "--strategy", "workflow", "sales.csv 里按城市的总金额；读 NOTES.md；240 的 15%"]).ok();
    has(&answer, &["（离线模型）", "Paris", "buy milk", "36"]);
}

#[test]
fn what_cannot_be_done_is_told_beside_what_was() {
    let home = folder();
    let answer = home.polis(&["run", "--strategy", "workflow", "read missing.txt; read NOTES.md"]).ok();
    has(&answer, &["I could not do everything that was asked.", "buy milk", "What is missing:", "missing.txt"]);
}

#[test]
fn business_contexts_come_from_the_prompts_folder() {
    let home = folder();
    std::fs::create_dir(home.path().join("prompts")).unwrap();
    home.write("prompts/planner.md", "We sell tea.");
    home.polis(&["run", "--strategy", "workflow", "read NOTES.md"]).ok();
    let prompt = home.polis(&["show", "root.messages[1].meta._thread.messages[0].meta._thread", "--prompt"]).ok();
    has(&prompt, &["We sell tea."]);
}
