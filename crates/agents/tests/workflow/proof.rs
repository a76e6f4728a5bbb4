//! What proves that a todo is done, and who may look things up (D27, D39).

use std::sync::Arc;

use polis_agents::workflow::{PlanApproval, WorkflowLimits};
use polis_domain::{Effect, Event, ToolChoice, Verdict};
use polis_testkit::ScriptedReply;
use serde_json::{Value, json};

use super::bed::{
    Bed, Heard, Team, asking, component, engine, executed, limited, open, plan, said, team, todos_of, unsatisfied, verified,
};
use super::person::answered;

/// A planner with one todo of this description.
fn planning(description: &'static str, writes: bool) -> impl Fn(&Heard) -> ScriptedReply {
    move |_| {
        let todo = json!({ "id": "a", "description": description, "priority": 1, "writes": writes });
        said("planner-response", json!({ "summary": "p", "needsMorePlanning": false, "todos": [todo] }))
    }
}

fn look(at: &str) -> ScriptedReply {
    ScriptedReply::call("c", "look", &json!({ "at": at }).to_string())
}

async fn is_verified(bed: &Bed, text: &str) -> bool {
    bed.ask(text).await;
    component(&bed.workflow().await)["verified"] == true
}

#[tokio::test(start_paused = true)]
async fn words_alone_prove_nothing_where_a_todo_is_about_files_tools_figures_or_changes() {
    for (description, writes, result, proved) in [
        ("Write a greeting.", false, "Good morning.", true),
        ("Write 3 lines, as the 2 of us agreed.", false, "One of the 3 lines.", true),
        ("Name e.g. a colour, i.e. one.", false, "1. red\n2. blue", true),
        ("Reckon 15% of 240.", false, "15% × 240 = 36", true),
        ("Say how many there are.", false, "Bonn = 5", false),
        ("Count the orders of each city.", false, "Bonn 5, Ulm 4, Jena 4.", false),
        ("Read sales.csv.", false, "It has columns.", false),
        ("把销售.csv读一遍", false, "读完了", false),
        ("List what is in /etc.", false, "Some files.", false),
        ("Use look_up to find it.", false, "Found.", true),
        ("Use write_note to note it.", false, "Noted.", false),
        ("Greet everybody.", true, "Greeted.", false),
    ] {
        for has_called in [false, true] {
            let one = Team {
                planner: Arc::new(planning(description, writes)),
                executor: Arc::new(move |todo, heard| match (has_called, heard.replies) {
                    (true, 0) => look("a"),
                    _ => executed(todo, result),
                }),
                verifier: Arc::new(move |_| verified(result, &[("a", if has_called { &["c1"] } else { &["m1"] })])),
            };
            let bed = open(&one, engine()).await;
            // `look` changes nothing.
            assert_eq!(is_verified(&bed, "do it").await, proved || (has_called && !writes), "{description} {has_called}");
            if !proved && !has_called {
                let told = &bed.heard("verifier")[1].last;
                assert!(told.contains("words alone do not show that it is done"), "{description}: {told}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_todo_depends_on_may_prove_it_and_what_it_does_not_may_not() {
    for (dependencies, proved) in [(&["a"][..], true), (&[], false)] {
        let two = Team {
            planner: Arc::new(move |_| plan(&[("a", 1, &[]), ("b", 2, dependencies)])),
            executor: Arc::new(|todo, heard| match (todo, heard.replies) {
                ("a", 0) => look("a"),
                ("a", _) => executed(todo, "it is there"),
                _ => executed(todo, "there are 77"),
            }),
            verifier: Arc::new(|_| verified("There are 77.", &[("a", &["c1"]), ("b", &["c1", "m2"])])),
        };
        assert_eq!(is_verified(&open(&two, engine()).await, "count").await, proved, "{dependencies:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_once_proves_nothing_later() {
    for (cited, proved) in [("c1", false), ("m1", false), ("c2", true)] {
        let again = Team {
            planner: Arc::new(|_| plan(&[("a", 1, &[])])),
            executor: Arc::new(|todo, heard| if heard.replies == 0 { look("a") } else { executed(todo, "a is 1") }),
            verifier: Arc::new(move |heard| match heard.first.contains("[m2]") {
                true => verified("a is 1.", &[("a", &[cited])]),
                false => unsatisfied("Look again", &[("a", false, &[])]),
            }),
        };
        let bed = open(&again, engine()).await;
        assert_eq!(is_verified(&bed, "a?").await, proved, "{cited}");
        let shown = &bed.heard("verifier")[1].first;
        assert!(shown.contains("[c1] (refused earlier; no proof) (a) look") && shown.contains("[c2] (a) look"), "{shown}");
        if !proved {
            assert!(bed.heard("verifier")[2].last.contains("cites only an attempt that was refused"), "{cited}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn planner_and_verifier_look_things_up_and_write_nothing() {
    let looking = Team {
        planner: Arc::new(|heard| match heard.replies {
            0 => look("a").and_call("w", "write_note", "{}"),
            _ => planning("Do what is there.", true)(heard),
        }),
        executor: Arc::new(|todo, heard| match heard.replies {
            0 => ScriptedReply::call("w", "write_note", "{\"text\":\"x\"}"),
            _ => executed(todo, "written"),
        }),
        verifier: Arc::new(|heard| match heard.replies {
            0 => look("b").and_call("w", "write_note", "{}"),
            _ => verified(&format!("b is {}.", "2"), &[("a", &["v1"])]),
        }),
    };
    let bed = open(&looking, engine()).await;
    assert!(is_verified(&bed, "do it").await);
    let made = |tool: &str| {
        bed.count(|event| matches!(event, Event::EffectStarted { effect: Effect::Tool(call), .. } if &*call.tool == tool))
    };
    assert_eq!((made("look"), made("write_note")), (2, 1), "only the executor writes");
    assert!(bed.heard("planner")[1].last.contains("write_note was not called: it is not among your tools"));
    let messages = bed.workflow().await;
    let evidence = &messages.last().unwrap().meta["evidence"];
    assert!(evidence["v1"].as_str().unwrap().contains("messages["), "{evidence}");
    assert!(bed.heard("verifier")[1].last.contains("These results are named v1, v2."), "{}", bed.heard("verifier")[1].last);
}

#[tokio::test(start_paused = true)]
async fn a_verifier_reads_anew_what_an_executor_has_read() {
    let team = Team {
        planner: Arc::new(planning("Read a.", false)),
        executor: Arc::new(|todo, heard| if heard.replies == 0 { look("a") } else { executed(todo, "a is 1") }),
        verifier: Arc::new(|heard| match (heard.replies, heard.last.contains("[v1]")) {
            (0, _) => look("a"),
            (_, false) => unsatisfied("Once more", &[("a", false, &[])]),
            (_, true) => verified("a is 1", &[("a", &["v2"])]),
        }),
    };
    let bed = open(&team, engine()).await;
    bed.ask("a?").await;
    let looks =
        bed.count(|event| matches!(event, Event::EffectStarted { effect: Effect::Tool(call), .. } if &*call.tool == "look"));
    let heard = bed.heard("verifier");
    assert!(looks > heard.len() / 2, "{looks} calls in {} requests", heard.len());
    let named: Vec<_> = heard.iter().filter_map(|heard| heard.last.split("named ").nth(1).map(str::to_owned)).collect();
    assert_eq!(named[..2], ["v1.", "v2."], "the numbers go on in the next judgement");
}

#[tokio::test(start_paused = true)]
async fn looking_things_up_has_an_end_and_a_reply_that_cannot_be_read_is_held_to_its_shape() {
    let curious = Team {
        planner: Arc::new(|heard| match heard.request.tool_choice {
            ToolChoice::None => plan(&[("a", 1, &[]), ("b", 1, &[])]),
            _ => look(&"a".repeat(heard.replies + 1)),
        }),
        ..team()
    };
    let bed = open(&curious, engine()).await;
    assert_eq!(bed.ask("a and b?").await, "a is 1 and b is 2.");
    let heard = bed.heard("planner");
    assert_eq!(heard.len(), 5, "four rounds with tools, and one without");
    assert!(heard[4].last.contains("No more tools can be used now"), "{}", heard[4].last);

    let prosaic = Team {
        planner: Arc::new(|heard| match heard.request.format {
            Some(_) => plan(&[("a", 1, &[]), ("b", 1, &[])]),
            None => ScriptedReply::text("I would do a and b."),
        }),
        ..team()
    };
    let bed = open(&prosaic, engine()).await;
    assert_eq!(bed.ask("a and b?").await, "a is 1 and b is 2.");
    let heard = bed.heard("planner");
    assert_eq!((heard.len(), heard[1].request.tools.len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_plan_is_told_to_every_role_as_what_the_person_wants() {
    let edited = json!({ "todos": [
        { "id": "a", "title": "Do a", "description": "Do a, per month.", "priority": 1, "writes": false },
        { "id": "c", "description": "Do c.", "priority": 2, "dependencies": ["a"] },
    ] });
    let verdict = |arguments: Option<Value>| Verdict { arguments: arguments.map(|it| it.to_string().into()), ..Verdict::yes() };
    let picky = Team { verifier: Arc::new(|_| unsatisfied("More", &[("a", false, &[]), ("c", false, &[])])), ..team() };
    let engine = limited(WorkflowLimits { cycles: 2, ..WorkflowLimits::default() });
    let engine = polis_agents::workflow::AgentWorkflowEngine { approval: PlanApproval::Always, ..engine };
    let bed = open(&picky, engine).await;
    answered(&bed, vec![verdict(Some(edited)), verdict(None)]).await;
    let wanted = "The user says meanwhile (this comes before the plan):\n\n\
                  I changed the plan before I agreed to it. These changes are what I want:\n\
                  - changed a: Do a, per month. (before: Do a. Done when: it is seen.)\n\
                  - added c: Do c.\n\
                  - removed b: Do b. Done when: it is seen.";
    let told = |role: &str, nth: usize| {
        let heard = bed.heard(role).swap_remove(nth);
        heard
            .request
            .messages
            .iter()
            .any(|message| matches!(message, polis_ports::ChatMessage::User { text, .. } if &**text == wanted))
    };
    assert!(!told("planner", 0) && told("planner", 1), "a second plan keeps it");
    assert!(told("executor", 0) && told("verifier", 0) && told("verifier", 1));

    let bed = open(&team(), asking(PlanApproval::Always)).await;
    let same = json!({ "todos": todos_of(&[("a", 1, &[]), ("b", 2, &["a"])]) });
    answered(&bed, vec![verdict(Some(same))]).await;
    assert!(bed.heard("executor").iter().all(|heard| !heard.last.contains("I changed the plan")), "nothing was changed");
}
