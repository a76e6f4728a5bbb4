//! The person sees and edits a plan before it runs, and speaks while it runs.

use std::sync::Arc;
use std::time::Duration;

use polis_agents::workflow::PlanApproval;
use polis_domain::{Effect, Event, MessageKind, Outcome, Resolution, Ruling, Verdict};
use polis_testkit::ScriptedReply;
use serde_json::json;

use super::bed::{Bed, Team, asking, engine, executed, open, open_with, plan, team, tools, verified};

/// Answers the next approval with this verdict and gives what was asked.
async fn rule(bed: &Bed, nth: usize, verdict: Verdict) -> String {
    loop {
        let asked: Vec<_> = bed
            .log
            .events(&"main".into())
            .iter()
            .filter_map(|recorded| match &recorded.event {
                Event::EffectStarted { id, effect: Effect::Approval { question, .. }, .. } => Some((*id, question.clone())),
                _ => None,
            })
            .collect();
        if let Some((id, question)) = asked.get(nth) {
            bed.society.resolve(*id, Resolution::Outcome(Outcome::Verdict(verdict))).await.unwrap();
            return question.clone();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

pub(super) async fn answered(bed: &Bed, verdicts: Vec<Verdict>) -> (String, Vec<String>) {
    let sent = bed.society.submit("a and b?").await.unwrap();
    let mut questions = Vec::new();
    for (nth, verdict) in verdicts.into_iter().enumerate() {
        let asked = tokio::time::timeout(Duration::from_secs(3_600), rule(bed, nth, verdict)).await;
        questions.push(asked.expect("a person is asked"));
    }
    (bed.society.answer(&sent).await.unwrap().payload.text.to_string(), questions)
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_shown_and_runs_when_it_is_agreed_to() {
    let bed = open(&team(), asking(PlanApproval::Always)).await;
    let (answer, questions) = answered(&bed, vec![Verdict::yes()]).await;
    assert_eq!(answer, "a is 1 and b is 2.");
    assert_eq!(
        questions,
        [
            "My plan.\n\nThe plan:\n- [ ] Do a\n- [ ] Do b\n\nMay the plan be carried out? To change it, agree with other todos in its place."
        ]
    );
}

/// The person agrees to the second call with other arguments than the executor wrote.
#[tokio::test(start_paused = true)]
async fn the_executor_and_the_verifier_read_the_arguments_that_the_person_gave() {
    let ruled = tools().ruled(|_, text| if text.contains("\"b\"") { Ruling::Ask(String::new()) } else { Ruling::Allow });
    let bed = open_with(&team(), engine(), ruled).await;
    let changed = Verdict { arguments: Some("{\"at\":\"d\"}".into()), ..Verdict::yes() };
    let (answer, _) = answered(&bed, vec![changed]).await;
    assert_eq!(answer, "a is 1 and b is 2.");
    let told =
        "[polis] The person changed the arguments. What was called: {\"at\":\"d\"}. Report that, not your own version.\n\n4";
    assert_eq!(bed.heard("executor").last().unwrap().last, told);
    let seen = &bed.heard("verifier")[0].first;
    assert!(seen.contains("[c1] (a) look {\"at\":\"a\"} returned: 1\n"), "{seen}");
    assert!(seen.contains("[c2] (b) look {\"at\":\"d\"} (changed by the person) returned: 4\n"), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn a_request_may_have_its_plans_asked_about_more_often_than_the_node_does_and_not_less() {
    let (never, always, ask) = (PlanApproval::Never, PlanApproval::Always, PlanApproval::Ask { todos: 1 });
    for (node, request, asks) in [
        (never, json!("always"), 1),
        (never, json!("ask"), 0),
        (never, json!("never"), 0),
        (never, json!("sometimes"), 1),
        (always, json!("never"), 1),
        (ask, json!("never"), 1),
    ] {
        let bed = open(&team(), asking(node)).await;
        let meta = json!({ PlanApproval::KEY: request }).as_object().unwrap().clone();
        let sent = bed.society.send_with_meta("root".into(), "a and b?", None, meta).await.unwrap();
        for nth in 0..asks {
            tokio::time::timeout(Duration::from_secs(3_600), rule(&bed, nth, Verdict::yes())).await.expect("it asks");
        }
        let answered = tokio::time::timeout(Duration::from_secs(3_600), bed.society.answer(&sent)).await;
        assert_eq!(&*answered.expect("it asks no more").unwrap().payload.text, "a is 1 and b is 2.", "{node:?} {request}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_edited_plan_runs_in_place_of_the_planners_and_a_bad_one_is_asked_about_again() {
    let edited = |arguments: serde_json::Value| Verdict { arguments: Some(arguments.to_string().into()), ..Verdict::yes() };
    let only_b = json!({ "todos": [{ "id": "b", "description": "Do b. Done when: it is seen.", "priority": 1 }] });
    let team = Team { verifier: Arc::new(|_| verified("b is 2.", &[("b", &["c1"])])), ..team() };
    let bed = open(&team, asking(PlanApproval::Always)).await;
    let (answer, questions) = answered(&bed, vec![edited(json!([])), edited(json!("no plan")), edited(only_b)]).await;
    assert_eq!(answer, "b is 2.");
    assert!(questions[1].starts_with("The changed plan cannot be used (todos: is empty"), "{}", questions[1]);
    assert!(questions[2].starts_with("The changed plan cannot be used (write {\"todos\""), "{}", questions[2]);
    assert_eq!(questions[2].matches("The changed plan").count(), 1, "the last error alone");
    assert_eq!(bed.counts(), [1, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_refused_is_planned_anew_with_the_reason_or_not_done() {
    let bed = open(&team(), asking(PlanApproval::Always)).await;
    let (answer, _) = answered(&bed, vec![Verdict::no("Begin with b"), Verdict::yes()]).await;
    assert_eq!(answer, "a is 1 and b is 2.");
    assert!(bed.heard("planner")[1].first.contains("- Begin with b"));
    let bed = open(&team(), asking(PlanApproval::Always)).await;
    let (answer, _) = answered(&bed, vec![Verdict::no("")]).await;
    assert_eq!(answer, "The plan was not agreed to, so nothing was done.");
    assert_eq!(bed.counts(), [1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn which_plans_are_asked_about_is_the_policys_to_say() {
    let asks = |event: &Event| matches!(event, Event::EffectStarted { effect: Effect::Approval { .. }, .. });
    for (approval, asked) in
        [(PlanApproval::Never, 0), (PlanApproval::ASK, 0), (PlanApproval::Ask { todos: 1 }, 1), (PlanApproval::Always, 1)]
    {
        let bed = open(&team(), asking(approval)).await;
        let (answer, _) = answered(&bed, vec![Verdict::yes(); asked]).await;
        assert_eq!(answer, "a is 1 and b is 2.");
        assert_eq!(bed.count(asks), asked, "{approval:?}");
    }
    let writing = |_: &super::bed::Heard| {
        let todo = json!({ "id": "a", "description": "Note it with write_note.", "priority": 1 });
        super::bed::said("planner-response", json!({ "summary": "p", "needsMorePlanning": false, "todos": [todo] }))
    };
    let writer = Team {
        planner: Arc::new(writing),
        executor: Arc::new(|todo, heard| match heard.replies {
            0 => ScriptedReply::call("w", "write_note", "{}"),
            _ => executed(todo, "noted"),
        }),
        verifier: Arc::new(|_| verified("Noted.", &[("a", &["c1"])])),
    };
    let bed = open(&writer, asking(PlanApproval::ASK)).await;
    let (answer, _) = answered(&bed, vec![Verdict::yes()]).await;
    assert_eq!((&*answer, bed.count(asks)), ("Noted.", 1), "it names a tool that writes");
}

#[tokio::test(start_paused = true)]
async fn what_the_person_says_meanwhile_reaches_the_next_round_once_and_the_answer_answers_it() {
    let slow = Team {
        executor: Arc::new(|todo, heard| match heard.replies {
            0 => ScriptedReply::call(&format!("call_{todo}"), "look", &json!({ "at": todo }).to_string())
                .after(Duration::from_secs(5)),
            _ => executed(todo, &format!("{todo} is {}", heard.last)),
        }),
        planner: Arc::new(|_| plan(&[("a", 1, &[]), ("b", 2, &["a"])]).after(Duration::from_secs(5))),
        ..team()
    };
    let bed = open(&slow, engine()).await;
    let sent = bed.society.submit("a and b?").await.unwrap();
    tokio::time::sleep(Duration::from_secs(7)).await;
    let more = bed.society.send("root".into(), "in French please", Some(sent.task_id.clone())).await.unwrap();
    let answer = bed.society.answer(&more).await.unwrap();
    assert_eq!((&answer.kind, &*answer.payload.text), (&MessageKind::Answer, "a is 1 and b is 2."));
    let told: Vec<_> = bed.heard("executor").iter().map(|heard| heard.last.starts_with("The user says meanwhile")).collect();
    assert_eq!(told, [false, true, true, false], "the next round, and whoever begins later");
    assert!(bed.heard("executor")[1].last.ends_with("in French please"));
    assert_eq!(bed.count(|event| matches!(event, Event::MessagesTaken { .. })), 1);
    assert_eq!(
        bed.count(|event| matches!(event, Event::MessageSent { envelope, .. } if envelope.to.is_user())),
        1,
        "one answer"
    );
    let thread = bed.thread("messages[1].meta._thread.messages[2].meta._thread").await;
    assert!(
        thread.messages.iter().any(|message| message.text.contains("in French please")),
        "it can be read where it was heard"
    );
}

#[tokio::test(start_paused = true)]
async fn a_word_in_the_last_round_of_the_last_executor_is_heard_by_the_verifier() {
    let slow = Team {
        executor: Arc::new(|todo, heard| match (todo, heard.replies) {
            ("b", 1) => executed(todo, "b is 2").after(Duration::from_secs(5)),
            (_, 0) => ScriptedReply::call(&format!("call_{todo}"), "look", &json!({ "at": todo }).to_string()),
            _ => executed(todo, &format!("{todo} is {}", heard.last)),
        }),
        ..team()
    };
    let bed = open(&slow, engine()).await;
    let sent = bed.society.submit("a and b?").await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let more = bed.society.send("root".into(), "in French please", Some(sent.task_id.clone())).await.unwrap();
    assert_eq!(&*bed.society.answer(&more).await.unwrap().payload.text, "a is 1 and b is 2.");
    let verifier = &bed.heard("verifier")[0];
    assert!(verifier.last.starts_with("The user says meanwhile") && verifier.last.ends_with("in French please"));
    assert_eq!(
        bed.count(|event| matches!(event, Event::MessageSent { envelope, .. } if envelope.to.is_user())),
        1,
        "one answer"
    );
}

#[tokio::test(start_paused = true)]
async fn a_word_about_another_request_or_after_the_last_round_is_a_turn_of_its_own() {
    let slow = Team { planner: Arc::new(|_| plan(&[("a", 1, &[]), ("b", 1, &[])]).after(Duration::from_secs(5))), ..team() };
    let bed = open(&slow, engine()).await;
    let first = bed.society.submit("a and b?").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let second = bed.society.submit("again").await.unwrap();
    bed.society.answer(&first).await.unwrap();
    bed.society.answer(&second).await.unwrap();
    assert_eq!(bed.count(|event| matches!(event, Event::MessagesTaken { .. })), 0);
    let late = bed.society.send("root".into(), "thanks", Some(first.task_id.clone())).await.unwrap();
    assert_eq!(&*bed.society.answer(&late).await.unwrap().payload.text, "a is 1 and b is 2.");
}

/// Todo `a` waits for an approval; `b`, and `c` after it, do not depend on it.
#[tokio::test(start_paused = true)]
async fn a_todo_that_waits_for_a_person_does_not_stop_those_that_do_not_depend_on_it() {
    let todos = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[]), ("b", 2, &[]), ("c", 3, &["b"]), ("d", 4, &["a"])])),
        verifier: Arc::new(|_| verified("All seen.", &[("a", &["c1"]), ("b", &["c2"]), ("c", &["c3"]), ("d", &["c4"])])),
        ..team()
    };
    let ruled = tools().ruled(|_, text| if text.contains("\"a\"") { Ruling::Ask(String::new()) } else { Ruling::Allow });
    let bed = open_with(&todos, engine(), ruled).await;
    let sent = bed.society.submit("a to d?").await.unwrap();
    let results = || {
        let events = bed.log.events(&"main".into());
        let result = |event: &Event| match event {
            Event::EffectEnded { outcome: Outcome::Result(result), .. } => Some(result.content.to_string()),
            _ => None,
        };
        events.iter().filter_map(|recorded| result(&recorded.event)).collect::<Vec<_>>()
    };
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(results(), ["2", "3"], "b and c are done, d waits for a");
    rule(&bed, 0, Verdict::yes()).await;
    assert_eq!(&*bed.society.answer(&sent).await.unwrap().payload.text, "All seen.");
    assert_eq!(results(), ["2", "3", "1", "4"]);
}
