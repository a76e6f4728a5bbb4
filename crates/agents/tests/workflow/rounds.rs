//! A request from its plan to its answer, and what each `nextAction` does (R227-R243, R262, D19, D26).

use std::sync::Arc;

use polis_agents::workflow::WorkflowLimits;
use polis_domain::{Effect, Event, Sender};
use polis_ports::ChatMessage;
use polis_testkit::ScriptedReply;
use serde_json::json;

use super::bed::{Team, acting, component, executed, given_up, limited, open, plan, team, unsatisfied, verified};

#[tokio::test(start_paused = true)]
async fn a_request_is_planned_done_and_verified_and_the_verifier_writes_the_answer() {
    let bed = open(&team(), super::bed::engine()).await;
    assert_eq!(bed.ask("What are a and b?").await, "a is 1 and b is 2.");
    assert_eq!(bed.counts(), [1, 4, 1]);
    let offered = |role| bed.heard(role).iter().map(|heard| heard.request.tools.len()).max();
    assert_eq!(["planner", "executor", "verifier"].map(offered), [Some(1), Some(2), Some(1)], "only executors may write");
    let shaped = |role| bed.heard(role).iter().all(|heard| heard.request.format.is_some());
    assert_eq!(["planner", "executor", "verifier"].map(shaped), [false; 3], "several vendors take either tools or a shape");
    let main = bed.thread("").await;
    assert_eq!(main.messages.len(), 2, "the placeholder has become the answer");
    assert_eq!(main.messages[1].text, "a is 1 and b is 2.");

    let messages = bed.workflow().await;
    let texts: Vec<_> = messages.iter().map(|message| &*message.text).collect();
    assert_eq!(
        texts,
        ["My plan.", "The plan:\n- [x] Do a\n- [x] Do b", "a is 1", "b is 2", "a is 1 and b is 2.", "a is 1 and b is 2."]
    );
    assert_eq!(messages[1].meta["component"]["props"]["todos"][1]["status"], "completed");
    assert_eq!(component(&messages)["component"], "summary-response");
    assert_eq!(component(&messages)["verified"], true);
    assert_eq!(messages.last().unwrap().meta["usage"]["outputTokens"], 6);
    assert_eq!(
        messages.last().unwrap().meta["evidence"]["c1"],
        "messages[1].meta._thread.messages[2].meta._thread.messages[2]"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_and_what_came_of_them_stand_in_the_todos_own_sub_thread_with_the_rendered_prompt() {
    let bed = open(&team(), super::bed::engine()).await;
    bed.ask("What are a and b?").await;
    let thread = bed.thread("messages[1].meta._thread.messages[2].meta._thread").await;
    let texts: Vec<_> = thread.messages.iter().map(|message| (message.sender, &*message.text)).collect();
    assert!(texts[0].1.contains("## The current task\n\na: Do a."), "{texts:?}");
    assert_eq!(texts[1..], [(Sender::Bot, "→ look {\"at\":\"a\"}"), (Sender::User, "1"), (Sender::Bot, "a is 1")]);
    assert_eq!(thread.phase().as_str(), "completed");
    let prompt = thread.meta["workflow"]["prompt"]["Ok"].as_str().unwrap();
    assert_eq!(prompt, &*bed.heard("executor")[0].request.system, "the log has what the model was told");
    let report = &thread.messages[3].meta;
    assert_eq!(report["workflow"]["outcome"]["executed"]["status"], "completed");
    assert_eq!((&report["workflow"]["rounds"], &report["usage"]["outputTokens"]), (&json!(2), &json!(2)));
}

#[tokio::test(start_paused = true)]
async fn todos_are_done_by_priority_and_dependency_and_those_that_may_at_once() {
    let four: &[(&str, u32, &[&str])] = &[("d", 3, &["c"]), ("c", 2, &[]), ("b", 1, &[]), ("a", 1, &[])];
    let team = |at_once| {
        let team = Team {
            planner: Arc::new(move |_| plan(four)),
            // Those that run in parallel end together.
            executor: Arc::new(|todo, _| executed(todo, &format!("found in {todo}")).at_once()),
            verifier: Arc::new(|_| verified("All four.", &[("b", &["m1"]), ("a", &["m2"]), ("c", &["m3"]), ("d", &["m4"])])),
        };
        (team, limited(WorkflowLimits { at_once, ..WorkflowLimits::default() }))
    };
    for (at_once, order) in [(1, "b a c d"), (2, "b a c d"), (3, "b a c d")] {
        let (team, engine) = team(at_once);
        let bed = open(&team, engine).await;
        assert_eq!(bed.ask("four").await, "All four.");
        let titles: Vec<_> = bed
            .workflow()
            .await
            .iter()
            .filter_map(|message| message.text.strip_prefix("found in ").map(str::to_owned))
            .collect();
        assert_eq!(titles.join(" "), order, "{at_once}");
        let seen = bed.heard("executor");
        let waves: Vec<_> = seen.iter().map(|heard| heard.first.matches("[completed]").count()).collect();
        let wanted: &[usize] = match at_once {
            1 => &[0, 1, 2, 3],
            2 => &[0, 0, 1, 3],
            _ => &[0, 0, 0, 3],
        };
        assert_eq!(waves, wanted, "{at_once}");
        let last = &seen.last().unwrap().first;
        assert!(last.contains("### c\n\nresult: found in c"), "it is told the result that it depends on: {last}");
    }
}

#[tokio::test(start_paused = true)]
async fn improvements_go_back_to_the_planner_and_what_is_done_is_not_done_again() {
    let team = Team {
        planner: Arc::new(|heard| {
            if heard.first.contains("- Look at b as well") { plan(&[("b", 1, &["a"])]) } else { plan(&[("a", 1, &[])]) }
        }),
        verifier: Arc::new(|heard| {
            if heard.first.contains("(b)") {
                verified("Both.", &[("a", &["c1"]), ("b", &["c2"])])
            } else {
                unsatisfied("Look at b as well", &[("a", true, &["c1"])])
            }
        }),
        ..team()
    };
    let bed = open(&team, super::bed::engine()).await;
    assert_eq!(bed.ask("a and b?").await, "Both.");
    assert_eq!(bed.counts(), [2, 4, 2]);
    assert!(
        bed.heard("planner")[1].first.contains("- a [completed] (priority 1) Do a. Done when: it is seen.\n  result: a is 1")
    );
    assert_eq!(bed.workflow().await.last().unwrap().meta["cycles"], 2);
}

#[tokio::test(start_paused = true)]
async fn what_an_executor_wants_next_is_what_happens() {
    let one = |executor: fn(&str, &super::bed::Heard) -> ScriptedReply| Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[])])),
        executor: Arc::new(executor),
        verifier: Arc::new(|heard| {
            let skipped = heard.first.contains("- a [skipped]");
            let failed = heard.first.contains("- a [failed]");
            match (skipped, failed) {
                (true, _) => verified("It was not needed.", &[("a", &["m1"])]),
                (_, true) => unsatisfied("Another way", &[("a", false, &[])]),
                _ => verified("It is there.", &[("a", &["m1"])]),
            }
        }),
    };
    for (name, team, answer, executors) in [
        ("complete", one(|todo, _| acting(todo, "found it", true, "complete")), "It is there.", 1),
        (
            "continue",
            one(|todo, heard| {
                acting(todo, "half of it", heard.replies == 2, if heard.replies == 2 { "complete" } else { "continue" })
            }),
            "It is there.",
            3,
        ),
        ("skip", one(|todo, _| acting(todo, "nobody needs it", false, "skip")), "It was not needed.", 1),
        (
            "retry",
            one(|todo, heard| match heard.last.contains("begin the task anew") {
                true => acting(todo, "found it", true, "complete"),
                false => acting(todo, "wrong way", false, "retry"),
            }),
            "It is there.",
            2,
        ),
    ] {
        let bed = open(&team, super::bed::engine()).await;
        assert_eq!(bed.ask("do it").await, answer, "{name}");
        assert_eq!(bed.counts()[1], executors, "{name}");
    }
    for (name, team, said, executors) in [
        (
            "retry twice",
            one(|todo, _| acting(todo, "wrong way", false, "retry")),
            "it asked to begin again a second time: wrong way",
            6,
        ),
        ("given up", one(|_, _| given_up("the disk is gone")), "Do a: the disk is gone", 3),
    ] {
        let bed = open(&team, super::bed::engine()).await;
        let answer = bed.ask("do it").await;
        assert!(answer.starts_with("I could not do everything that was asked.") && answer.contains(said), "{name}: {answer}");
        assert_eq!(bed.counts(), [3, executors, 3], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_todo_that_fails_takes_those_that_depend_on_it_along_and_others_go_on() {
    let team = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[]), ("b", 2, &["a"]), ("c", 3, &[])])),
        executor: Arc::new(|todo, _| if todo == "a" { given_up("no") } else { executed(todo, "c is there") }),
        verifier: Arc::new(|_| unsatisfied("a must be done", &[("a", false, &[]), ("b", false, &[]), ("c", true, &["m2"])])),
    };
    let bed = open(&team, limited(WorkflowLimits { cycles: 1, at_once: 1, ..WorkflowLimits::default() })).await;
    let answer = bed.ask("三个").await;
    assert_eq!(bed.counts(), [1, 2, 1]);
    assert!(answer.starts_with("没有能完成全部需求。\n\n已完成：\n- Do c: c is there\n\n还缺少："), "{answer}");
    assert!(answer.contains("- Do b: not begun: it depends on \"a\", which failed"), "{answer}");
    assert_eq!(component(&bed.workflow().await)["verified"], false);
}

#[tokio::test(start_paused = true)]
async fn what_the_verifier_does_not_accept_is_done_again() {
    let team = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[])])),
        executor: Arc::new(|todo, heard| executed(todo, if heard.first.contains("Do it") { "a is one" } else { "a is none" })),
        verifier: Arc::new(|heard| match heard.first.contains("[m2]") {
            true => verified("a is 1.", &[("a", &["m2"])]),
            false => unsatisfied("Look again", &[("a", false, &[])]),
        }),
    };
    let bed = open(&team, super::bed::engine()).await;
    assert_eq!(bed.ask("a?").await, "a is 1.");
    assert_eq!(bed.counts(), [2, 2, 2]);
    assert!(
        bed.heard("planner")[1]
            .first
            .contains("- a [pending] (priority 1) Do a. Done when: it is seen.\n  refused, because: look again")
    );
}

#[tokio::test(start_paused = true)]
async fn an_executor_knows_the_results_that_its_todo_depends_on_and_no_call_is_made_twice() {
    let same = Team {
        executor: Arc::new(|todo, heard| match heard.replies {
            0 => ScriptedReply::call(&format!("call_{todo}"), "look", "{ \"at\": \"a\" }"),
            _ => executed(todo, &format!("{todo}: {}", heard.last)),
        }),
        ..team()
    };
    let bed = open(&same, super::bed::engine()).await;
    bed.ask("a, twice?").await;
    let heard = bed.heard("executor");
    assert!(
        heard[2].first.contains("## Results of the tasks that it depends on\n\n### a\n\nresult: a: 1"),
        "{}",
        heard[2].first
    );
    assert_eq!(heard[1].last, "1");
    let [.., ChatMessage::Tool { content, .. }, ChatMessage::User { text, .. }] = &*heard[3].request.messages else { panic!() };
    assert_eq!(&**content, "1", "a note is no part of the result");
    assert!(text.starts_with("[polis] About look (call_b): not called again: the same call gave this result before"), "{text}");
    assert!(
        bed.heard("verifier")[0].first.contains("[c2] (b) look { \"at\": \"a\" } returned: 1\n"),
        "nor of what is shown as evidence"
    );
    let calls = |known: bool| {
        bed.count(
            |event| matches!(event, Event::EffectStarted { effect: Effect::Tool(call), .. } if call.from.is_some() == known),
        )
    };
    assert_eq!((calls(false), calls(true)), (1, 1));
}
