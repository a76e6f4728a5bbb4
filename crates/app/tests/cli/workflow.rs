//! `polis run --strategy workflow`: the offline model plans, does and verifies with the real tools.

use std::io::{BufRead, BufReader};

use polis_domain::{Effect, Event};

use super::model::{ModelServer, Reply};
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
    let recorded = home.polis(&["run", "--strategy", "workflow", "--record", TAPE, request]);
    let id = recorded.conversation();
    let answer = recorded.ok();
    has(&answer, &["(offline model)", "Paris", "7", "buy milk", "36"]);
    assert!(count(&home, is_call) >= 2);
    assert_eq!(
        count(&home, |event| matches!(event, Event::ThreadOpened { .. })),
        6,
        "workflow, planner, three todos, verifier"
    );
    let tree = home.polis(&["show", &id, "--tree"]).ok();
    has(&tree, &["- [x] read NOTES.md", "→ read_file", "## The current task"]);
    let prompt = home.polis(&["show", &planner(&id), "--prompt"]).ok();
    has(&prompt, &["You are the Planner", "- `read_file`:"]);
    home.polis(&["show", &id, "--prompt"]).fails(1, "no_prompt");

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
    let done = home.polis(&["run", "--strategy", "workflow", "read missing.txt; read NOTES.md"]);
    assert_eq!(done.code, 4, "{}", done.stderr);
    has(&done.stdout, &["I could not do everything that was asked.", "buy milk", "What is missing:", "missing.txt"]);
    // It is the same later.
    let task = home.log().iter().find_map(|recorded| recorded.event.envelope().map(|it| it.task_id.to_string())).unwrap();
    for (command, printed) in [("wait", ""), ("attach", &*done.stdout), ("result", &*done.stdout)] {
        let again = home.polis(&[command, &task]);
        assert_eq!((again.code, &*again.stdout), (4, printed), "{command}: {}", again.stderr);
    }
}

#[test]
fn business_contexts_come_from_the_prompts_folder() {
    let home = folder();
    std::fs::create_dir(home.path().join("prompts")).unwrap();
    home.write("prompts/planner.md", "We sell tea.");
    let done = home.polis(&["run", "--strategy", "workflow", "read NOTES.md"]);
    let planner = planner(&done.conversation());
    done.ok();
    let prompt = home.polis(&["show", &planner, "--prompt"]).ok();
    has(&prompt, &["We sell tea."]);
}

#[test]
fn business_contexts_come_from_the_documents_folder_too_and_what_is_odd_about_them_is_said() {
    let home = folder();
    std::fs::create_dir_all(home.path().join("agents/prompts")).unwrap();
    home.write("agents/prompts/planner.md", "We sell tea. Answer with a planner-response.");
    let done = home.polis(&["run", "--strategy", "workflow", "read NOTES.md"]);
    has(&done.stderr, &["agents/prompts/planner.md: the business context names `planner-response`"]);
    let planner = planner(&done.conversation());
    done.ok();
    let prompt = home.polis(&["show", &planner, "--prompt"]).ok();
    has(&prompt, &["We sell tea."]);
    let found = home.polis(&["doctor"]);
    has(&found.stdout, &["BAD  prompts    agents/prompts/planner.md: "]);
}

#[test]
fn the_command_that_goes_on_with_a_plan_repeats_model_and_workspace() {
    let home = folder();
    std::fs::create_dir(home.path().join("a b")).unwrap();
    let args =
        ["run", "--strategy", "workflow", "--plan-approval", "always", "--model", "offline", "--workspace", "a b", "read x"];
    let asked = home.polis(&args);
    has(&asked.stderr, &[" --model offline --workspace 'a b'`"]);
    assert_eq!(asked.code, 3, "{}", asked.stderr);
}

#[test]
fn a_run_without_approvals_pays_for_one_plan_and_does_nothing() {
    let home = folder();
    let args = ["run", "--strategy", "workflow", "--plan-approval", "always", "--approve", "never", "read NOTES.md"];
    let done = home.polis(&args);
    assert_eq!(done.code, 4, "{}", done.stderr);
    has(&done.stdout, &["The plan was not agreed to, so nothing was done."]);
    assert_eq!(times_asked(&home), 1);
}

#[test]
fn whoever_waits_sees_who_works_on_what_where_and_what_it_took() {
    let home = folder();
    let done = home.polis(&["run", "--conversation", "root", "--strategy", "workflow", "read NOTES.md; what is 15% of 240"]);
    has(
        &done.stderr,
        &[
            "· planner begins: Planning … (root.messages[1].meta._thread.messages[0].meta._thread)\n",
            "· planner asks the model\n",
            // `plans` while it is being written, `the plan has` for who comes late: a model that takes no time can be either.
            " task-1: read NOTES.md (priority 1)\n",
            "· planner ends: the plan stands (1 round, 0.",
            "· executor task-1 begins: read NOTES.md (root.messages[1].meta._thread.messages[2].meta._thread)\n",
            "· executor task-1 calls read_file {\"path\":\"NOTES.md\"}\n",
            "· executor task-1 ends: read NOTES.md: completed (2 rounds, 0.",
            " tokens in, ",
            "· verifier ends: ",
        ],
    );
    done.ok();
}

#[test]
fn todos_appear_while_the_planner_still_writes() {
    let server = ModelServer::start(vec![Reply::Half(&[
        "{\"type\":\"component\",\"component\":\"planner-response\",\"summary\":\"p\",\"needsMorePlanning\":false,\"todos\":[",
        "{\"id\":\"a\",\"title\":\"Do a\",\"description\":\"Do a now.\",\"priority\":1}",
        ",{\"id\":\"b\"",
    ])]);
    let home = folder();
    let mut command = home.command(&["run", "--strategy", "workflow", "two things"]);
    server.set(&mut command);
    let mut child = command.spawn().unwrap();
    let mut seen = Vec::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    // The reply never comes to its end, however often it is asked for.
    let is_told =
        lines.by_ref().inspect(|line| seen.push(line.clone())).any(|line| line == "· planner plans a: Do a (priority 1)");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_told, "{seen:#?}");
}

#[test]
fn a_plan_is_asked_about_as_flag_variable_and_file_say_in_this_order() {
    let asks = |file: Option<&str>, variable: Option<&str>, flag: Option<&str>| {
        let home = folder();
        if let Some(when) = file {
            home.write("polis.toml", &format!("[workflow]\nplan_approval = \"{when}\"\n"));
        }
        let mut args = vec!["run", "--strategy", "workflow", "read NOTES.md"];
        args.extend(flag.iter().flat_map(|when| ["--plan-approval", *when]));
        let mut command = home.command(&args);
        if let Some(when) = variable {
            command.env("POLIS_PLAN_APPROVAL", when);
        }
        let done = super::support::Done::from(command.output().unwrap());
        if done.code == 3 {
            has(&done.stderr, &["May the plan be carried out?", "polis approve "]);
        } else {
            has(&done.ok(), &["buy milk"]);
        }
        times_asked(&home)
    };
    for (file, variable, flag, wanted) in [
        (None, None, None, 0),
        (Some("always"), None, None, 1),
        (Some("always"), Some("never"), None, 0),
        (Some("never"), Some("never"), Some("always"), 1),
        (Some("ask"), None, None, 0),
    ] {
        assert_eq!(asks(file, variable, flag), wanted, "{file:?} {variable:?} {flag:?}");
    }
}

#[test]
fn a_request_keeps_its_own_policy_also_behind_another_and_with_a_server() {
    let home = folder();
    let args = ["run", "--conversation", "root", "--strategy", "workflow", "--plan-approval", "always", "read NOTES.md"];
    for _ in 0..2 {
        assert_eq!(home.polis(&args).code, 3);
    }
    let waiting: serde_json::Value = serde_json::from_str(&home.polis(&["approvals", "--json"]).ok()).unwrap();
    home.polis(&["deny", waiting["approvals"][0]["id"].as_str().unwrap()]);
    assert_eq!(
        home.polis(&["run", "--conversation", "root", "what is 1+1?"]).code,
        3,
        "the second one has its plan asked about as well"
    );
    assert_eq!(times_asked(&home), 2);

    let home = folder();
    let served = home.serve(&["--model", "offline"]);
    assert_eq!(home.polis(&args).code, 3);
    let task = served.get("/api/tasks").1["tasks"][0]["id"].as_str().unwrap().to_owned();
    has(&home.polis(&["tasks"]).ok(), &["root  open"]);
    home.polis(&["cancel", &task]).ok();
    let listed = home.polis(&["tasks"]).ok();
    assert!(listed.contains("root  ended before it was done") && !listed.contains("root  open"), "{listed}");
}

/// Where the planner of the first request works.
fn planner(conversation: &str) -> String {
    format!("{conversation}.messages[1].meta._thread.messages[0].meta._thread")
}

/// How often a person was asked.
fn times_asked(home: &Home) -> usize {
    count(home, |event| matches!(event, Event::EffectStarted { effect: Effect::Approval { .. }, .. }))
}

#[test]
fn an_edited_plan_is_what_is_done_and_one_that_is_denied_is_not() {
    let home = folder();
    home.polis(&["run", "--strategy", "workflow", "--plan-approval", "always", "read NOTES.md; read sales.csv"]);
    let waiting: serde_json::Value = serde_json::from_str(&home.polis(&["approvals", "--json"]).ok()).unwrap();
    let id = waiting["approvals"][0]["id"].as_str().unwrap().to_owned();
    let todos = r#"{"todos":[{"id":"only","description":"read NOTES.md","priority":1}]}"#;
    let done = home.polis(&["approve", &id, "--arguments", todos]);
    has(&done.stderr, &["executor only begins: read NOTES.md"]);
    let answer = done.ok();
    assert!(answer.contains("buy milk") && !answer.contains("Oslo"), "{answer}");

    home.polis(&["run", "--strategy", "workflow", "--plan-approval", "always", "read NOTES.md"]);
    let waiting: serde_json::Value = serde_json::from_str(&home.polis(&["approvals", "--json"]).ok()).unwrap();
    let id = waiting["approvals"][0]["id"].as_str().unwrap().to_owned();
    let done = home.polis(&["deny", &id]);
    assert_eq!(done.code, 4, "{}", done.stderr);
    has(&done.stdout, &["The plan was not agreed to, so nothing was done."]);
}

#[test]
fn a_plan_that_is_changed_into_none_is_refused_at_once_and_nothing_changes() {
    let home = folder();
    home.polis(&["run", "--strategy", "workflow", "--plan-approval", "always", "read NOTES.md"]);
    let waiting = home.polis(&["approvals", "--json"]).ok();
    let shown: serde_json::Value = serde_json::from_str(&waiting).unwrap();
    let id = shown["approvals"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(shown["approvals"][0]["change"]["required"][0], "todos");
    let events = home.log().len();
    for (todos, fault) in [
        (r#"{"todos":"x"}"#, "todos: must be a list, but is \"x\""),
        (r#"{"todos":[]}"#, "todos: must have at least 1 and at most 50 elements, but has 0"),
        (
            r#"{"todos":[{"id":"a","priority":0,"dependecies":["zz"]}]}"#,
            "todos[0].description: is missing; todos[0].dependecies: is not known; there are dependencies, description, id",
        ),
    ] {
        let done = home.polis(&["approve", &id, "--arguments", todos]);
        has(&done.stderr, &[fault]);
        done.fails(1, "bad_answer");
        assert_eq!(home.polis(&["approvals", "--json"]).ok(), waiting);
    }
    let more = home.log().split_off(events);
    assert!(more.iter().all(|recorded| matches!(recorded.event, Event::TurnRevived { .. })), "{more:?}");
}

#[test]
fn a_failure_is_told_once_where_it_happens_and_once_at_the_end() {
    let server = ModelServer::start(vec![Reply::Refuse(401, "who are you")]);
    let home = folder();
    let mut command = home.command(&["run", "--strategy", "workflow", "two things"]);
    server.set(&mut command);
    let done = super::support::Done::from(command.output().unwrap());
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(!done.stderr.contains(&format!("· {}: ", done.conversation())), "{}", done.stderr);
    assert_eq!(done.stderr.matches("\npolis: ").count(), 1, "{}", done.stderr);
    assert_eq!(done.stderr.matches("· planner: ").count(), 1, "{}", done.stderr);
}
