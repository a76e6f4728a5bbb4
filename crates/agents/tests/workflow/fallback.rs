//! A request for which no plan can be read is answered without one, in the same turn.

use std::sync::Arc;

use polis_agents::workflow::{PlanApproval, WorkflowLimits};
use polis_domain::{Effect, Event, Finish, ToolChoice};
use polis_testkit::ScriptedReply;
use serde_json::json;

use super::bed::{Bed, Heard, Team, asking, component, engine, limited, open, role, team};

const NOTE: &str =
    "[polis] No plan could be made for this request, so it was answered without one. Nothing of it was verified.";

/// A team whose planner says this, and whose role without a plan says that.
fn planless(bad: &'static str, answer: impl Fn(&Heard) -> ScriptedReply + Send + Sync + 'static) -> Team {
    let planner = move |heard: &Heard| match role(&heard.request) {
        "fallback" => answer(heard),
        _ => ScriptedReply::text(bad),
    };
    Team { planner: Arc::new(planner), ..team() }
}

fn look(at: &str) -> ScriptedReply {
    ScriptedReply::call("c", "look", &json!({ "at": at }).to_string())
}

fn calls(bed: &Bed) -> usize {
    bed.count(|event| matches!(event, Event::EffectStarted { effect: Effect::Tool(_), .. }))
}

#[tokio::test(start_paused = true)]
async fn a_model_that_writes_no_plan_answers_without_one_and_says_so() {
    for bad in ["I will do a, then b.", "", "{\"component\":\"planner-response\",\"todos\":[", "{\"plan\":[1,2]}"] {
        let team = planless(bad, |heard| match heard.replies {
            0 => look("a"),
            _ => ScriptedReply::text(&format!("It is {}.", heard.last)),
        });
        let bed = open(&team, engine()).await;
        assert_eq!(bed.ask("What is a?").await, format!("It is 1.\n\n{NOTE}"), "{bad}");
        let heard = bed.heard("fallback");
        assert_eq!((bed.counts(), heard.len(), calls(&bed)), ([3, 0, 0], 2, 1), "{bad}");
        assert!(heard[0].first.contains("What is a?"), "{}", heard[0].first);
        assert_eq!(heard[0].request.tools.len(), 2, "it has the executor's tools");
        let messages = bed.workflow().await;
        assert_eq!(component(&messages)["verified"], false);
        assert!(!messages.last().unwrap().meta.contains_key("unfinished"));
        let titles: Vec<_> = messages.iter().map(|message| &*message.text).collect();
        assert!(titles[1].starts_with("It is 1."), "its work can be read in the log: {titles:?}");
    }
    let bed = open(&planless("没有计划", |_| ScriptedReply::text("是 1。")), engine()).await;
    let answer = bed.ask("a 是什么？").await;
    assert!(answer.starts_with("是 1。\n\n[polis] 没能为这个需求做出计划"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn where_plans_need_approval_it_may_only_read() {
    let team = planless("no", |heard| match heard.replies {
        0 => ScriptedReply::call("w", "write_note", "{}").and_call("c", "look", "{\"at\":\"a\"}"),
        _ => ScriptedReply::text("Looked."),
    });
    let bed = open(&team, asking(PlanApproval::Always)).await;
    assert!(bed.ask("note it").await.starts_with("Looked."));
    let heard = bed.heard("fallback");
    let offered: Vec<_> = heard[0].request.tools.iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!((offered, calls(&bed)), (vec!["look".to_owned()], 1));
}

#[tokio::test(start_paused = true)]
async fn its_last_reply_has_no_tools_and_what_is_unfinished_is_named_so() {
    let team = planless("no", |heard| match heard.request.tool_choice {
        ToolChoice::None => ScriptedReply::text("Half of it."),
        _ => look(&"a".repeat(heard.replies + 1)),
    });
    let bed = open(&team, limited(WorkflowLimits { executor_rounds: 3, ..WorkflowLimits::default() })).await;
    assert_eq!(bed.ask("all of it").await, format!("Half of it.\n\n{NOTE}"));
    assert_eq!(calls(&bed), 3);
    assert_eq!(bed.workflow().await.last().unwrap().meta["unfinished"]["code"], "partial_answer");
}

#[tokio::test(start_paused = true)]
async fn where_it_says_nothing_its_calls_are_told() {
    let team = planless("no", |heard| if heard.replies == 0 { look("a") } else { ScriptedReply::text("") });
    let answer = open(&team, engine()).await.ask("all of it").await;
    assert!(answer.starts_with("The model wrote no answer. It called:\n- look {\"at\":\"a\"}"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_cut_within_a_call_is_asked_for_again() {
    let team = planless("no", |heard| match heard.replies {
        0 => ScriptedReply::text("I look.").and_call("c", "look", "{\"at\":").ending(Finish::Length),
        _ => ScriptedReply::text("It is 1."),
    });
    let bed = open(&team, engine()).await;
    assert_eq!(bed.ask("What is a?").await, format!("It is 1.\n\n{NOTE}"));
    assert!(bed.heard("fallback")[1].last.contains("within a call of look"), "{}", bed.heard("fallback")[1].last);
}

#[tokio::test(start_paused = true)]
async fn where_it_goes_in_circles_its_calls_are_told() {
    let bed = open(&planless("no", |_| look("a")), engine()).await;
    let answer = bed.ask("What is a?").await;
    assert!(answer.starts_with("The model wrote no answer. It called:\n- look {\"at\":\"a\"}"), "{answer}");
    assert!(answer.ends_with(NOTE), "{answer}");
    assert!(bed.workflow().await.last().unwrap().meta.contains_key("unfinished"));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_cannot_be_asked_is_a_failure_as_before() {
    let down = Team {
        planner: Arc::new(|_| ScriptedReply::error(polis_ports::ModelError::Rejected { reason: "no".to_owned() })),
        ..team()
    };
    let bed = open(&down, engine()).await;
    let failure = polis_testkit::ask(&bed.society, "a?").await.unwrap_err();
    assert_eq!((&*failure.code, bed.counts()), ("model_rejected", [1, 0, 0]));
}
