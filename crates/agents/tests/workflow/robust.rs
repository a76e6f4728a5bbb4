//! What models, tools and people do that nobody plans for: ids used twice, failures half way, texts without end, plans that a
//! person takes apart.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use polis_agents::workflow::{PlanApproval, WorkflowLimits};
use polis_domain::{Effect, Event, Outcome, Verdict};
use polis_ports::ModelError;
use polis_testkit::{ScriptedReply, ScriptedTools};
use serde_json::{Value, json};

use super::bed::{
    Heard, Team, acting, asking, component, engine, executed, given_up, limited, open, open_with, plan, said, team,
    unsatisfied, verified,
};
use super::person::answered;

/// A team with one todo.
fn one(executor: impl Fn(&str, &Heard) -> ScriptedReply + Send + Sync + 'static) -> Team {
    Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[])])),
        executor: Arc::new(executor),
        verifier: Arc::new(|_| verified("a is 1.", &[("a", &["c1"])])),
    }
}

fn look(at: &str) -> ScriptedReply {
    ScriptedReply::call("call_0", "look", &json!({ "at": at }).to_string())
}

#[tokio::test(start_paused = true)]
async fn a_result_belongs_to_the_call_before_it_whatever_ids_the_model_writes() {
    for twice_in_one_reply in [false, true] {
        let bed = open(
            &one(move |todo, heard| match (heard.replies, twice_in_one_reply) {
                (0, true) => look("a").and_call("call_0", "look", "{\"at\":\"nowhere\"}"),
                (0, false) => look("a"),
                (1, false) => look("nowhere"),
                _ => executed(todo, "a is 1"),
            }),
            engine(),
        )
        .await;
        assert_eq!(bed.ask("a?").await, "a is 1.");
        let told = &bed.heard("verifier")[0].first;
        assert!(told.contains("[c1] (a) look {\"at\":\"a\"} returned: 1"), "{told}");
        assert!(told.contains("[c2] (a) look {\"at\":\"nowhere\"} FAILED: there is nothing"), "{told}");
        let messages = bed.workflow().await;
        let evidence = &messages.last().unwrap().meta["evidence"];
        assert_ne!(evidence["c1"], evidence["c2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_done_before_a_failure_is_shown_counted_and_told_to_the_next_planner() {
    let writing = |end: fn() -> ScriptedReply| {
        move |_: &str, heard: &Heard| match heard.replies {
            0 => ScriptedReply::call("w", "write_note", "{\"text\":\"x\"}"),
            _ => end(),
        }
    };
    let rejected = || ScriptedReply::error(ModelError::Rejected { reason: "no".to_owned() });
    for end in [|| ScriptedReply::text("garbage"), rejected as fn() -> ScriptedReply] {
        let failing = Team { verifier: Arc::new(|_| unsatisfied("Do it", &[("a", false, &[])])), ..one(writing(end)) };
        let bed = open(&failing, limited(WorkflowLimits { cycles: 2, ..WorkflowLimits::default() })).await;
        bed.ask("a?").await;
        let told = &bed.heard("verifier")[0].first;
        assert!(told.contains("[c1] (a) write_note {\"text\":\"x\"} returned: written"), "{told}");
        let told = &bed.heard("planner")[1].first;
        assert!(told.contains("Before that it called:\n  | - write_note {\"text\":\"x\"}"), "{told}");
        let paid = bed.count(|event| matches!(event, Event::EffectEnded { outcome: Outcome::Reply(_), .. }));
        let used = bed.workflow().await.last().unwrap().meta["usage"]["outputTokens"].as_u64().unwrap();
        assert!(used >= 5, "{used} of {paid}");
        assert_eq!(used as usize, paid, "every reply that was paid");
    }
}

/// A plan of so many todos that do not wait for each other.
fn many(count: usize) -> ScriptedReply {
    let todo = |n: usize| json!({ "id": format!("t{n}"), "description": "Look.", "priority": 1, "writes": false });
    let todos: Vec<Value> = (0..count).map(todo).collect();
    said("planner-response", json!({ "summary": "p", "needsMorePlanning": false, "todos": todos }))
}

#[tokio::test(start_paused = true)]
async fn the_verifier_is_shown_what_fits_and_its_judgement_is_not_thrown_away() {
    let busy = Team {
        planner: Arc::new(|_| many(20)),
        executor: Arc::new(|todo, heard| match heard.replies {
            n @ 0..5 => look(&format!("big {todo} {n}")),
            _ => executed(todo, &"字".repeat(9_000)),
        }),
        verifier: Arc::new(|_| {
            let tasks: Vec<Value> = (0..20)
                .map(|n| json!({ "id": format!("t{n}"), "completed": true, "feedback": "", "evidence": [format!("m{}", n + 1)] }))
                .collect();
            said(
                "verifier-response",
                json!({ "allCompleted": true, "userNeedsSatisfied": true, "overallFeedback": "f", "summary": "All 20.", "tasks": tasks }),
            )
        }),
    };
    let bed = open(&busy, limited(WorkflowLimits { at_once: 1, ..WorkflowLimits::default() })).await;
    assert_eq!(bed.ask("二十个").await, "All 20.");
    let told = &bed.heard("verifier")[0].first;
    assert!(told.len() < 220_000, "{}", told.len());
    for entry in ["[c1] ", "[c100] ", "[m20] ", "more bytes; the whole is messages[1].meta._thread.messages["] {
        assert!(told.contains(entry), "{entry}");
    }
    let nine = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"];
    for accepted in [&nine[..], &nine[..1]] {
        let judged: Vec<(&str, bool, &[&str])> = accepted.iter().map(|todo| (*todo, true, &["m1"][..])).collect();
        let picky = Team { verifier: Arc::new(move |_| unsatisfied("Shorter", &judged)), ..busy.clone() };
        let bed = open(&picky, limited(WorkflowLimits { cycles: 1, ..WorkflowLimits::default() })).await;
        let answer = bed.ask("二十个").await;
        assert!(answer.len() < 160 * 1024 && answer.contains(" bytes left out) … "), "{}", answer.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_too_long_is_asked_for_again() {
    let planners: [fn() -> ScriptedReply; 3] = [
        || plan(&[("x".repeat(600_000).leak(), 1, &[])]),
        || said("planner-response", json!({ "summary": "字".repeat(60_000), "needsMorePlanning": false, "todos": [] })),
        || ScriptedReply::text(&format!("{{\"component\":\"planner-response\",\"summary\":{}", "[".repeat(300_000))),
    ];
    for bad in planners {
        let planner = move |heard: &Heard| match heard.replies {
            0 => bad(),
            _ => plan(&[("a", 1, &[]), ("b", 1, &[])]),
        };
        let bed = open(&Team { planner: Arc::new(planner), ..team() }, engine()).await;
        assert_eq!(bed.ask("a and b?").await, "a is 1 and b is 2.");
        let second = &bed.heard("planner")[1];
        assert!(second.last.contains("could not be used") && second.last.contains("at most"), "{}", second.last);
        let size: usize = second.request.messages.iter().map(|message| format!("{message:?}").len()).sum();
        assert!(size < 100_000, "what cannot be used is not sent again whole: {size}");
    }
    let bed = open(
        &one(|todo, heard| match heard.replies {
            0 => look("a"),
            1 => executed(todo, &"x".repeat(300_000)),
            _ => executed(todo, "a is 1"),
        }),
        engine(),
    )
    .await;
    assert_eq!(bed.ask("a?").await, "a is 1.");
    assert_eq!(bed.counts(), [1, 3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_todo_that_was_rightly_skipped_is_not_called_completed() {
    let skipping = Team {
        verifier: Arc::new(|_| {
            let tasks = json!([{ "id": "a", "completed": false, "feedback": "skipped", "evidence": ["m1"] }]);
            said(
                "verifier-response",
                json!({ "allCompleted": true, "userNeedsSatisfied": true, "overallFeedback": "f", "summary": "Not needed.", "tasks": tasks }),
            )
        }),
        ..one(|todo, _| acting(todo, "nobody needs it", false, "skip"))
    };
    let bed = open(&skipping, engine()).await;
    assert_eq!(bed.ask("a?").await, "Not needed.");
    assert_eq!(bed.counts(), [1, 1, 1]);
    assert_eq!(component(&bed.workflow().await)["verified"], true);
}

#[tokio::test(start_paused = true)]
async fn planner_and_executors_know_what_was_said_before() {
    let bed = open(&team(), engine()).await;
    bed.ask("my name is Bob").await;
    bed.ask(&"long ".repeat(10_000)).await;
    bed.ask("what is my name?").await;
    for (role, nth) in [("planner", 2), ("executor", 8), ("executor", 10), ("verifier", 2)] {
        let told = &bed.heard(role)[nth].first;
        let (request, before) = told.split_once("### What was said before\n\n").unwrap_or_else(|| panic!("{role}: {told}"));
        assert!(request.contains("what is my name?"), "{request}");
        assert!(before.starts_with("user: my name is Bob\n\nassistant: a is 1 and b is 2.\n\nuser: long "), "{role}: {before}");
        assert!(before.len() < 20_000 && !before.contains("what is my name?"), "{role}: {before}");
    }
    assert!(!bed.heard("planner")[0].first.contains("What was said before"));
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_a_person_has_changed_is_read_strictly_and_every_fault_has_its_place() {
    let edited = |arguments: Value| Verdict { arguments: Some(arguments.to_string().into()), ..Verdict::yes() };
    let todo = |more: Value| {
        let mut todo = json!({ "id": "a", "description": "Do a.", "priority": 1 });
        todo.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "todos": [todo] })
    };
    let bad = vec![
        edited(json!({ "todos": [{ "id": "a" }] })),
        edited(todo(json!({ "dependecies": ["zz"] }))),
        edited(todo(json!({ "dependencies": ["zz"] }))),
        edited(todo(json!({ "dependencies": ["a"] }))),
        edited(todo(json!({}))),
    ];
    let bed = open(
        &one(|todo, heard| if heard.replies == 0 { look("a") } else { executed(todo, "a is 1") }),
        asking(PlanApproval::Always),
    )
    .await;
    let (answer, questions) = answered(&bed, bad).await;
    assert_eq!(answer, "a is 1.");
    for (question, said) in questions[1..].iter().zip([
        "todos[0].description: is missing; must be a text; todos[0].priority: is missing",
        "todos[0].dependecies: is not known",
        "\"a\" depends on \"zz\", which is not in the plan",
        "a -> a wait for each other in a circle",
    ]) {
        assert!(question.starts_with("The changed plan cannot be used (") && question.contains(said), "{question}");
        assert_eq!(question.matches("The changed plan").count(), 1, "{question}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_may_write_is_asked_about() {
    let asks = |event: &Event| matches!(event, Event::EffectStarted { effect: Effect::Approval { .. }, .. });
    for (writes, asked) in [(json!(true), 1), (json!(false), 0), (json!(null), 1)] {
        let planner = move |_: &Heard| {
            let todo = json!({ "id": "a", "description": "把结果保存到文件里", "priority": 1, "writes": writes });
            said("planner-response", json!({ "summary": "p", "needsMorePlanning": false, "todos": [todo] }))
        };
        let writer = Team {
            planner: Arc::new(planner),
            ..one(|todo, heard| if heard.replies == 0 { look("a") } else { executed(todo, "a is 1") })
        };
        let bed = open(&writer, asking(PlanApproval::ASK)).await;
        let (answer, _) = answered(&bed, vec![Verdict::yes(); asked]).await;
        assert_eq!((answer.starts_with("a is 1."), bed.count(asks)), (true, asked));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_plan_and_all_that_was_said_about_it_reach_the_planner_and_cost_no_cycle() {
    let once = |engine: polis_agents::workflow::AgentWorkflowEngine| polis_agents::workflow::AgentWorkflowEngine {
        limits: WorkflowLimits { cycles: 1, ..WorkflowLimits::default() },
        ..engine
    };
    let bed = open(&team(), once(asking(PlanApproval::Always))).await;
    let verdicts = vec![Verdict::no("no c"), Verdict::no("begin with b"), Verdict::no("shorter"), Verdict::yes()];
    let (answer, _) = answered(&bed, verdicts).await;
    assert_eq!(answer, "a is 1 and b is 2.");
    assert_eq!(bed.workflow().await.last().unwrap().meta["cycles"], 1);
    let told = &bed.heard("planner")[3].first;
    assert!(told.contains("## The plan that the user refused\n\n- a [pending] (priority 1) Do a. Done when"), "{told}");
    assert!(told.contains("about earlier ones\n\n- no c\n- begin with b\n- shorter\n"), "{told}");
    assert!(!told.contains("Verifier demands"), "{told}");

    let bed = open(&team(), asking(PlanApproval::Always)).await;
    let (answer, _) = answered(&bed, vec![Verdict::no("no"); 10]).await;
    assert_eq!(answer, "The plan was not agreed to, so nothing was done: 10 plans were refused.");
    assert_eq!(bed.counts(), [10, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn what_there_is_survives_a_planner_or_a_verifier_that_fails_later() {
    let second = |bad: fn() -> ScriptedReply| Team {
        planner: Arc::new(move |heard| if heard.first.contains("Improvements") { bad() } else { plan(&[("a", 1, &[])]) }),
        executor: Arc::new(|todo, _| executed(todo, "result 42")),
        verifier: Arc::new(|_| unsatisfied("Again", &[("a", false, &[])])),
    };
    let rejected = || ScriptedReply::error(ModelError::Rejected { reason: "no".to_owned() });
    for bad in [|| ScriptedReply::text("garbage"), rejected as fn() -> ScriptedReply, || plan(&[("a", 1, &["a"])])] {
        let bed = open(&second(bad), engine()).await;
        let answer = bed.ask("a?").await;
        assert!(
            answer.contains("the planner gave no further plan") && answer.contains("was not accepted: result 42"),
            "{answer}"
        );
    }
    let failed = Team { verifier: Arc::new(|_| ScriptedReply::text("garbage")), ..one(|_, _| given_up("the disk is gone")) };
    let answer = open(&failed, engine()).await.ask("a?").await;
    assert!(answer.starts_with("I could not do everything") && answer.contains("the disk is gone"), "{answer}");
    let unchecked = Team { verifier: Arc::new(|_| ScriptedReply::text("garbage")), ..one(|todo, _| executed(todo, "a is 1")) };
    let answer = open(&unchecked, engine()).await.ask("a?").await;
    assert!(answer.starts_with("Everything that was planned is done, but nobody could check it.\n"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_todo_begins_as_soon_as_what_it_needs_is_done_and_there_is_room() {
    let begun = Arc::new(Mutex::new(Vec::<(String, u64)>::new()));
    let (noting, began) = (begun.clone(), tokio::time::Instant::now());
    let uneven = Team {
        planner: Arc::new(|_| plan(&[("t1", 1, &[]), ("t2", 1, &[]), ("t3", 1, &[]), ("t4", 1, &["t2"]), ("t5", 1, &[])])),
        executor: Arc::new(move |todo, _| {
            noting.lock().unwrap().push((todo.to_owned(), began.elapsed().as_secs()));
            executed(todo, "seen 3").after(Duration::from_secs(if todo == "t1" { 40 } else { 1 }))
        }),
        verifier: Arc::new(|_| unsatisfied("x", &[])),
    };
    let bed = open(&uneven, limited(WorkflowLimits { cycles: 1, ..WorkflowLimits::default() })).await;
    bed.ask("five").await;
    // The plan says so while the slow one is still at work.
    let shown = |event: &Event| match event {
        Event::MessageUpdated { patch, .. } => {
            let todos = patch.meta.get("component").and_then(|it| it["props"]["todos"].as_array());
            let is = |todo: &Value| todo["status"] == if todo["id"] == "t1" { "executing" } else { "completed" };
            todos.is_some_and(|todos| todos.iter().all(is))
        }
        _ => false,
    };
    let is_of_the_slow_one = |reply: &str| reply.contains("\"t1\"") && !reply.contains("\"t2\"");
    let ended = |event: &Event| matches!(event, Event::EffectEnded { outcome: Outcome::Reply(reply), .. } if is_of_the_slow_one(&reply.text));
    assert!(bed.place(shown).unwrap() < bed.place(ended).unwrap());
    let begun = begun.lock().unwrap();
    assert_eq!(begun.len(), 5);
    assert!(begun.iter().all(|(_, at)| *at < 10), "{begun:?}");
}

#[tokio::test(start_paused = true)]
async fn what_the_person_says_reaches_every_executor_at_work_and_the_verifier() {
    let slow = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[]), ("b", 1, &[]), ("c", 1, &[])])),
        executor: Arc::new(|todo, heard| match heard.replies {
            0 => look(todo).after(Duration::from_secs(5)),
            _ => executed(todo, &format!("{todo} is seen")),
        }),
        verifier: Arc::new(|_| unsatisfied("x", &[])),
    };
    let bed = open(&slow, limited(WorkflowLimits { cycles: 1, ..WorkflowLimits::default() })).await;
    let sent = bed.society.submit("a, b and c?").await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    bed.society.send("root".into(), "use euros", Some(sent.task_id.clone())).await.unwrap();
    bed.society.answer(&sent).await.unwrap();
    let second: Vec<_> = bed.heard("executor").into_iter().filter(|heard| heard.replies == 1).collect();
    assert_eq!(second.len(), 3);
    assert!(second.iter().all(|heard| heard.last.ends_with("use euros")), "each of them is told");
    assert!(bed.heard("verifier")[0].last.ends_with("use euros"));
}

#[tokio::test(start_paused = true)]
async fn a_role_without_tools_that_calls_one_is_told_so() {
    let calling = Team {
        planner: Arc::new(|heard| match heard.replies {
            0 => look("a"),
            _ => plan(&[("a", 1, &[]), ("b", 1, &[])]),
        }),
        executor: Arc::new(|todo, _| executed(todo, "seen")),
        verifier: Arc::new(|_| verified("Both are seen.", &[("a", &["m1"]), ("b", &["m2"])])),
    };
    let bed = open_with(&calling, engine(), ScriptedTools::new()).await;
    assert_eq!(bed.ask("a and b?").await, "Both are seen.");
    assert!(bed.heard("planner")[1].last.contains("You called tools, and have none in your role."));
}
