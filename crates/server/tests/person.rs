//! What waits for a person, and what comes of their word.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{CallResult, EffectClass, Event, Question, Ruling};
use polis_testkit::{MemoryLog, Op, Program, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Value, json};

use crate::support::{Rig, society};

async fn answer_of(rig: &Rig, task: &Value) -> Value {
    let task = task.as_str().unwrap();
    rig.ending(&task.into()).await;
    rig.get(&format!("/api/tasks/{task}")).await.ok()["answer"].clone()
}

#[tokio::test]
async fn an_approval_is_listed_with_its_question_and_answered_once() {
    for (word, want) in
        [(json!({ "approved": true }), "approved"), (json!({ "approved": false, "reason": "not today" }), "denied:not today")]
    {
        let rig = Rig::start().await;
        let text = Program(vec![Op::Units(vec![Program(vec![Op::Approve("delete it?".into())])])]).text();
        let task = rig.post("/api/submit", json!({ "conversation": "root", "text": text })).await.ok()["taskId"].clone();
        let asks = |event: &Event| matches!(event, Event::EffectStarted { effect: polis_domain::Effect::Approval { .. }, .. });
        let asked = rig.until(|recorded| asks(&recorded.event)).await;
        let listed = rig.get("/api/approvals").await.ok();
        let approval = &listed["approvals"][0];
        let id = asked.event.effect().unwrap().to_string();
        assert_eq!(approval["id"], json!(id));
        assert_eq!((&approval["kind"], &approval["question"]), (&json!("approval"), &json!("delete it?")));
        assert_eq!((&approval["agentId"], &approval["taskId"], &approval["thread"]), (&json!("root"), &task, &json!("root")));
        let path = approval["path"].as_str().unwrap();
        assert!(path.starts_with("messages[") && path.ends_with("].meta._thread"), "the address of the sub-thread: {path}");

        assert_eq!(rig.post(&format!("/api/approvals/{id}"), word.clone()).await.ok(), json!({ "id": id }));
        assert!(answer_of(&rig, &task).await.as_str().unwrap().contains(want));
        let last = rig.last();
        assert_eq!(rig.post(&format!("/api/approvals/{id}"), word).await.problem(), (409, "not_open".to_owned()));
        assert_eq!(rig.last(), last);
    }
}

#[tokio::test]
async fn a_request_of_which_one_part_has_ended_and_another_asks_needs_a_person() {
    let parts = || vec![Program(vec![Op::Approve("may I?".into())]), Program(vec![Op::Say("done".into())])];
    let ask = |program| Op::Ask { agent: "other".into(), program, patience_ms: 3_600_000 };
    let agents = vec![Op::Spawn("other".into()), Op::Units(vec![Program(vec![ask(parts().remove(0))]), parts().remove(1)])];
    for ops in [vec![Op::Units(parts())], vec![Op::Units(parts().into_iter().rev().collect())], agents] {
        let rig = Rig::start().await;
        let text = Program(ops).text();
        let task = rig.post("/api/submit", json!({ "conversation": "root", "text": text })).await.ok()["taskId"].clone();
        let task = task.as_str().unwrap();
        let needs = async {
            while rig.get(&format!("/api/tasks/{task}")).await.ok()["status"] != "needs_person" {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), needs).await.expect("it says that it needs a person");
        let id = rig.get("/api/approvals").await.ok()["approvals"][0]["id"].as_str().unwrap().to_owned();
        rig.post(&format!("/api/approvals/{id}"), json!({ "approved": true })).await.ok();
        rig.ending(&task.into()).await;
    }
}

#[tokio::test]
async fn a_write_in_doubt_is_settled_by_a_persons_word_only() {
    for (word, want) in [
        (json!({ "outcome": "done", "result": "it is there" }), "it is there"),
        (json!({ "outcome": "not_done" }), "a person looked: this was not done"),
        (json!({ "outcome": "again" }), "written"),
    ] {
        let log = Arc::new(MemoryLog::new());
        let write = |hours: u64| {
            let act = |_: &str, _: &polis_ports::CallContext| CallResult::good("written");
            ScriptedTools::new().with("write", EffectClass::Write, act).delayed(move |_| Duration::from_secs(3_600 * hours))
        };
        let silent = || ScriptedModel::new(|_| ScriptedReply::text(""));
        // The first life ends while the tool is at it.
        let first = Rig::on(log.clone(), silent(), write(1)).await;
        let text = Program(vec![Op::Call(vec![("write".into(), "{\"to\":\"a\"}".into())])]).text();
        let task = first.post("/api/submit", json!({ "conversation": "root", "text": text })).await.ok()["taskId"].clone();
        first.until(|recorded| matches!(recorded.event, Event::EffectStarted { .. })).await;
        first.society.stop(Duration::ZERO).await;

        let second = Rig::on(log, silent(), write(0)).await;
        let doubted = second.until(|recorded| matches!(recorded.event, Event::EffectDoubted { .. })).await;
        let id = doubted.event.effect().unwrap().to_string();
        let listed = second.get("/api/approvals").await.ok();
        assert_eq!(listed["approvals"][0]["kind"], json!("in_doubt"));
        assert_eq!(listed["approvals"][0]["call"]["tool"], json!("write"));
        assert_eq!(listed["approvals"][0]["call"]["arguments"], json!("{\"to\":\"a\"}"));
        let agents = second.get("/api/agents").await.ok();
        assert_eq!(agents["agents"][0]["activity"], json!("parked"));

        let last = second.last();
        let unfit = second.post(&format!("/api/approvals/{id}"), json!({ "approved": true })).await;
        assert_eq!(unfit.problem(), (409, "not_waiting".to_owned()));
        assert_eq!(second.last(), last);
        second.post(&format!("/api/approvals/{id}"), word).await.ok();
        assert_eq!(answer_of(&second, &task).await, json!(want));
        let restarts = second
            .log
            .events(&society())
            .iter()
            .filter(|recorded| matches!(recorded.event, Event::EffectRestarted { .. }))
            .count();
        assert_eq!(restarts, usize::from(want == "written"), "nothing is done again unasked");
    }
}

#[tokio::test]
async fn a_question_is_listed_with_what_it_wants_and_takes_only_what_answers_it() {
    let ask = |_: &str, _: &polis_ports::CallContext| CallResult::failed("it is never run");
    let options = || vec!["red".to_owned(), "blue".to_owned()];
    let tools = ScriptedTools::new().with("ask_person", EffectClass::Read, ask);
    let tools = tools.ruled(move |_, question| Ruling::Person(Question::words(question, options())));
    let rig = Rig::on(Arc::new(MemoryLog::new()), ScriptedModel::new(|_| ScriptedReply::text("")), tools).await;
    let text = Program(vec![Op::Call(vec![("ask_person".into(), "which?".into())])]).text();
    let task = rig.post("/api/submit", json!({ "conversation": "root", "text": text })).await.ok()["taskId"].clone();
    let asked = rig.until(|recorded| matches!(recorded.event, Event::EffectStarted { .. })).await;
    let id = asked.event.effect().unwrap().to_string();
    let listed = rig.get("/api/approvals").await.ok();
    let question = &listed["approvals"][0];
    assert_eq!((&question["kind"], &question["question"]), (&json!("question"), &json!("which?")));
    assert_eq!(question["wanted"], json!({ "text": { "options": ["red", "blue"] } }));
    let task_path = format!("/api/tasks/{}", task.as_str().unwrap());
    assert_eq!(rig.get(&task_path).await.ok()["status"], json!("needs_person"));
    let address = format!("/api/approvals/{id}");
    for (word, problem) in [
        (json!({ "approved": true }), (400, "bad_answer")),
        (json!({ "answer": "green" }), (400, "bad_answer")),
        (json!({ "answer": null }), (400, "bad_answer")),
        (json!({ "outcome": "cancelled" }), (409, "not_waiting")),
        (json!({ "outcome": "again" }), (409, "not_waiting")),
    ] {
        assert_eq!(rig.post(&address, word.clone()).await.problem(), (problem.0, problem.1.to_owned()), "{word}");
    }
    assert_eq!(rig.post("/api/approvals/1.2.3", json!({ "answer": "x" })).await.problem(), (409, "not_open".to_owned()));
    rig.post(&address, json!({ "answer": "blue" })).await.ok();
    assert_eq!(answer_of(&rig, &task).await, json!("blue"));
}
