//! Every loop has an end (R230-R232, R265, D26), and so has proof (D27).

use std::sync::Arc;

use polis_agents::workflow::WorkflowLimits;
use polis_domain::{Effect, Event, ToolChoice};
use polis_testkit::ScriptedReply;

use super::bed::{Team, acting, component, engine, executed, limited, open, plan, team, unsatisfied, unsure, verified};

#[tokio::test(start_paused = true)]
async fn a_planner_that_never_comes_to_an_end_has_three_rounds() {
    let lost = Team { planner: Arc::new(|_| unsure(&[])), ..team() };
    let bed = open(&lost, engine()).await;
    assert_eq!(bed.ask("do it").await, "I need to know more before I can plan this: Which folder?");
    assert_eq!(bed.counts(), [3, 0, 0]);
    assert_eq!(component(&bed.workflow().await)["missing"][0], "Which folder?");

    let unsure = Team { planner: Arc::new(|_| unsure(&[("a", 1, &[]), ("b", 1, &[])])), ..team() };
    let bed = open(&unsure, limited(WorkflowLimits { planning_rounds: 2, ..WorkflowLimits::default() })).await;
    assert_eq!(bed.ask("do it").await, "a is 1 and b is 2.", "what it has planned is done");
    assert_eq!(bed.counts()[0], 2);

    let second = |heard: &super::bed::Heard| match heard.replies {
        0 => super::bed::unsure(&[]),
        _ => plan(&[("a", 1, &[]), ("b", 1, &[])]),
    };
    let bed = open(&Team { planner: Arc::new(second), ..team() }, engine()).await;
    bed.ask("do it").await;
    assert_eq!(bed.counts()[0], 2);
}

#[tokio::test(start_paused = true)]
async fn an_executor_has_ten_rounds_for_a_todo() {
    let talking = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[])])),
        executor: Arc::new(|todo, _| acting(todo, "nearly", false, "continue")),
        verifier: Arc::new(|_| unsatisfied("Do it", &[("a", false, &[])])),
    };
    let one = WorkflowLimits { cycles: 1, ..WorkflowLimits::default() };
    let bed = open(&talking, limited(one)).await;
    let answer = bed.ask("do it").await;
    assert!(answer.contains("Do a: not done after 10 rounds: nearly"), "{answer}");
    assert_eq!(bed.counts(), [1, 10, 1]);

    let calling = Team {
        executor: Arc::new(|_, heard| {
            ScriptedReply::call("again", "look", &format!("{{\"at\":\"{}\"}}", "x".repeat(heard.replies + 1)))
        }),
        ..talking
    };
    let bed = open(&calling, limited(WorkflowLimits { executor_rounds: 4, ..one })).await;
    assert!(bed.ask("do it").await.contains("not done after 4 rounds"));
    assert_eq!(bed.counts(), [1, 6, 1], "in the last round it is asked for a report three times");
    let looked = |event: &Event| matches!(event, Event::EffectStarted { effect: Effect::Tool(_), .. });
    assert_eq!(bed.count(looked), 3, "in the last round nothing is called");
}

#[tokio::test(start_paused = true)]
async fn an_executor_is_told_of_its_last_rounds_and_reports_what_it_has() {
    let busy = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[])])),
        executor: Arc::new(|todo, heard| match heard.request.tool_choice {
            ToolChoice::None => acting(todo, "a is 1, the rest is open", false, "continue"),
            _ => ScriptedReply::call("again", "look", &format!("{{\"at\":\"{}\"}}", "a".repeat(heard.replies + 1))),
        }),
        verifier: Arc::new(|_| unsatisfied("Do it", &[("a", false, &[])])),
    };
    let bed = open(&busy, limited(WorkflowLimits { cycles: 1, executor_rounds: 8, ..WorkflowLimits::default() })).await;
    let answer = bed.ask("do it").await;
    assert!(answer.contains("not done after 8 rounds: a is 1, the rest is open"), "{answer}");
    let heard = bed.heard("executor");
    let warned: Vec<usize> = (0..8).filter(|n| heard[*n].last.contains("You have 3 more rounds")).collect();
    assert_eq!((warned, heard.len()), (vec![5], 8));
    let last = &heard[7];
    assert!(last.last.contains("This is the last round") && !last.request.tools.is_empty(), "{}", last.last);
    let messages = bed.workflow().await;
    assert_eq!(messages.last().unwrap().meta["unfinished"]["code"], "partial_answer");
}

#[tokio::test(start_paused = true)]
async fn a_verifier_that_is_never_satisfied_ends_after_three_plans_with_what_there_is() {
    let picky = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[])])),
        verifier: Arc::new(|_| unsatisfied("Add the year", &[("a", true, &["c1"])])),
        ..team()
    };
    let bed = open(&picky, engine()).await;
    let answer = bed.ask("a?").await;
    assert_eq!(
        answer,
        "I could not do everything that was asked.\n\nWhat was done:\n- Do a: a is 1\n\nWhat is missing:\n- not accepted after 3 plans\n- Add the year"
    );
    assert_eq!(bed.counts(), [3, 2, 3], "what is done is not done again");
    let bed = open(&picky, limited(WorkflowLimits { cycles: 1, ..WorkflowLimits::default() })).await;
    assert!(bed.ask("a?").await.contains("not accepted after 1 plans"));
    assert_eq!(bed.counts(), [1, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn what_there_is_and_was_not_accepted_is_told_as_well() {
    let harsh = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[])])),
        verifier: Arc::new(|_| unsatisfied("Add the year", &[("a", false, &[])])),
        ..team()
    };
    let bed = open(&harsh, limited(WorkflowLimits { cycles: 1, ..WorkflowLimits::default() })).await;
    let answer = bed.ask("a?").await;
    assert!(answer.ends_with("- Do a: look again\n  What there was, and was not accepted: a is 1"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn done_without_proof_is_refused_once_and_then_reported_as_unverified() {
    let repenting = Team {
        verifier: Arc::new(|heard| match heard.replies {
            0 => verified("a and b are there.", &[("a", &[]), ("b", &["c9"])]),
            _ => verified("a is 1, b is 2.", &[("a", &["c1"]), ("b", &["c2"])]),
        }),
        ..team()
    };
    let bed = open(&repenting, engine()).await;
    assert_eq!(bed.ask("a and b?").await, "a is 1, b is 2.");
    let told = &bed.heard("verifier")[1].last;
    assert!(told.starts_with("[polis] ") && !told.contains("JSON"), "its form was right: {told}");
    assert!(told.contains("\"a\" has completed: true without evidence") && told.contains("\"b\" cites \"c9\""), "{told}");

    let stubborn = Team { verifier: Arc::new(|_| verified("a and b are there.", &[("a", &[]), ("b", &["c2"])])), ..team() };
    let bed = open(&stubborn, engine()).await;
    let answer = bed.ask("a and b?").await;
    assert!(
        answer.starts_with(
            "a and b are there.\n\nThis answer could not be verified:\n- Do a: no record shows that this was done"
        ),
        "{answer}"
    );
    assert_eq!(bed.counts(), [1, 4, 2], "refused once, not for ever");
    assert_eq!(component(&bed.workflow().await)["verified"], false);
}

#[tokio::test(start_paused = true)]
async fn the_words_of_a_reply_decide_nothing() {
    let boasting = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[])])),
        executor: Arc::new(|todo, heard| match heard.replies {
            0 => acting(todo, "The task is completed. Done. 任务已完成。", false, "continue"),
            _ => executed(todo, "It failed and is not completed, but here is a word."),
        }),
        verifier: Arc::new(|_| verified("A word.", &[("a", &["m1"])])),
    };
    let bed = open(&boasting, engine()).await;
    assert_eq!(bed.ask("do it").await, "A word.");
    assert_eq!(bed.counts(), [1, 2, 1]);
}
