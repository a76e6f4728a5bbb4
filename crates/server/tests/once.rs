//! `Idempotency-Key`: the first answer again, nothing twice, also after a restart.

use std::sync::Arc;

use polis_server::Security;
use polis_testkit::{MemoryLog, Op, Program, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Value, json};

use crate::support::{Reply, Rig, society};

async fn keyed(rig: &Rig, target: &str, key: &str, body: &Value) -> Reply {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    rig.ask("POST", target, &headers, body.to_string().into_bytes()).await
}

async fn rig(log: &Arc<MemoryLog>) -> Rig {
    let model = ScriptedModel::new(|_| ScriptedReply::text("a thought"));
    Rig::at(log.clone(), model, ScriptedTools::new(), Security::default()).await
}

fn envelopes(log: &MemoryLog) -> usize {
    let events = log.events(&society());
    events.iter().filter(|recorded| recorded.event.envelope().is_some_and(|envelope| envelope.from.is_user())).count()
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_and_sends_nothing_also_after_a_restart() {
    let log = Arc::new(MemoryLog::new());
    let first = rig(&log).await;
    let body = json!({ "text": Program(vec![Op::Think("x".into())]).text() });
    let accepted = keyed(&first, "/api/submit", "k1", &body).await.ok();
    let again = keyed(&first, "/api/submit", "k1", &body).await;
    assert_eq!((again.ok(), again.headers.contains_key("idempotent-replayed")), (accepted.clone(), true));
    assert_ne!(keyed(&first, "/api/submit", "k2", &body).await.ok()["taskId"], accepted["taskId"]);
    let other = json!({ "text": "[]" });
    assert_eq!(keyed(&first, "/api/submit", "k1", &other).await.problem(), (422, "key_reused".to_owned()));
    for bad in ["", &"k".repeat(256)] {
        assert_eq!(keyed(&first, "/api/submit", bad, &body).await.problem(), (400, "bad_idempotency_key".to_owned()));
    }
    let refused = keyed(&first, "/api/send", "k3", &json!({ "agentId": "nobody", "text": "x" })).await;
    assert_eq!(refused.problem(), (404, "unknown_agent".to_owned()));
    first.ending(&accepted["taskId"].as_str().unwrap().into()).await;
    first.stop().await;

    let second = rig(&log).await;
    assert_eq!(keyed(&second, "/api/submit", "k1", &body).await.ok(), accepted);
    assert_eq!(envelopes(&log), 2);
}

/// After damage, say, when people begin anew or put an older copy back: what was answered then was not done in this history.
#[tokio::test]
async fn an_answer_holds_only_in_the_history_that_it_was_given_in() {
    let (lost, fresh) = (Arc::new(MemoryLog::new()), Arc::new(MemoryLog::new()));
    let body = json!({ "text": Program(vec![Op::Think("x".into())]).text() });
    let first = rig(&lost).await;
    keyed(&first, "/api/submit", "k1", &body).await.ok();
    first.stop().await;

    let second = rig(&fresh).await;
    let sent = keyed(&second, "/api/submit", "k1", &body).await;
    assert_eq!((sent.headers.contains_key("idempotent-replayed"), envelopes(&fresh)), (false, 1));
    let again = keyed(&second, "/api/submit", "k1", &body).await;
    assert_eq!((again.ok(), again.headers.contains_key("idempotent-replayed"), envelopes(&fresh)), (sent.ok(), true, 1));
}

/// The answer was never kept, as when the process is killed right after the log has it: the log knows.
#[tokio::test]
async fn a_message_with_a_key_is_not_sent_twice_even_if_the_answer_was_lost() {
    let log = Arc::new(MemoryLog::new());
    let body = json!({ "text": Program(vec![Op::Think("x".into())]).text() });
    let first = rig(&log).await;
    let accepted = keyed(&first, "/api/submit", "k1", &body).await.ok();
    let within =
        json!({ "agentId": "root", "text": Program(vec![Op::Think("y".into())]).text(), "taskId": accepted["taskId"] });
    let word = keyed(&first, "/api/send", "k2", &within).await.ok();
    while first.get("/api/tasks").await.ok()["tasks"].as_array().is_some_and(|open| !open.is_empty()) {}
    let retry = format!("/api/tasks/{}/retry", accepted["taskId"].as_str().unwrap());
    let retried = keyed(&first, &retry, "k3", &json!({})).await.ok();
    first.stop().await;

    let second = rig(&log).await;
    assert_eq!(keyed(&second, "/api/submit", "k1", &body).await.ok(), accepted);
    assert_eq!(keyed(&second, "/api/send", "k2", &within).await.ok(), word);
    assert_eq!(keyed(&second, &retry, "k3", &json!({})).await.ok(), retried);
    assert_eq!(keyed(&second, "/api/submit", "k4", &body).await.status, 200);
    assert_eq!(envelopes(&log), 4);
    second.stop().await;
    let third = rig(&log).await;
    let other = keyed(&third, "/api/submit", "k1", &json!({ "text": "[]" })).await;
    assert_eq!(other.problem(), (422, "key_reused".to_owned()));
}

#[tokio::test]
async fn a_word_on_an_approval_is_answered_the_same_twice() {
    let rig = Rig::start().await;
    rig.post("/api/submit", json!({ "conversation": "root", "text": Program(vec![Op::Approve("May I?".into())]).text() }))
        .await
        .ok();
    let id = loop {
        if let Some(id) = rig.get("/api/approvals").await.ok()["approvals"][0]["id"].as_str() {
            break id.to_owned();
        }
    };
    let target = format!("/api/approvals/{id}");
    let yes = json!({ "approved": true });
    assert_eq!(keyed(&rig, &target, "k", &yes).await.ok(), json!({ "id": id }));
    assert_eq!(keyed(&rig, &target, "k", &yes).await.ok(), json!({ "id": id }));
    assert_eq!(keyed(&rig, &target, "other", &yes).await.problem(), (409, "not_open".to_owned()));
}

#[tokio::test]
async fn a_repeat_is_answered_by_what_was_done_and_not_by_what_is_so_now() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Spawn("bob".into())]).await;
    rig.post("/api/send", json!({ "agentId": "bob", "text": Program(vec![Op::Approve("wait".into())]).text() })).await.ok();
    let waiting = loop {
        if let Some(id) = rig.get("/api/approvals").await.ok()["approvals"][0]["id"].as_str() {
            break id.to_owned();
        }
    };
    let busy = keyed(&rig, "/api/agents/bob/terminate", "k", &json!({})).await.ok();
    assert_eq!(busy, json!({ "ok": false, "terminatedAgentId": "bob" }));
    rig.post(&format!("/api/approvals/{waiting}"), json!({ "approved": true })).await.ok();
    while rig.get("/api/org").await.ok()["terminations"].as_array().unwrap().is_empty() {}
    let again = keyed(&rig, "/api/agents/bob/terminate", "k", &json!({})).await;
    assert_eq!((again.ok(), again.headers.contains_key("idempotent-replayed")), (busy, true));
}

#[tokio::test]
async fn retries_with_one_key_at_once_are_one_retry() {
    let rig = Rig::start().await;
    let body = json!({ "text": Program(vec![Op::Think("x".into())]).text() });
    let accepted = rig.post("/api/submit", body).await.ok();
    rig.ending(&accepted["taskId"].as_str().unwrap().into()).await;
    let target = format!("/api/tasks/{}/retry", accepted["taskId"].as_str().unwrap());
    let all = futures_util::future::join_all((0..8).map(|_| async { keyed(&rig, &target, "k", &json!({})).await.ok() })).await;
    assert!(all.iter().all(|answer| *answer == all[0]), "{all:?}");
}

#[tokio::test]
async fn a_repeat_is_answered_also_after_its_conversation_was_deleted() {
    let log = Arc::new(MemoryLog::new());
    let rig = rig(&log).await;
    let started = rig.post("/api/conversations", json!({})).await.ok();
    let id = started["id"].as_str().unwrap();
    let body = json!({ "text": Program(vec![Op::Say("x".into())]).text(), "conversation": id });
    let accepted = keyed(&rig, "/api/submit", "k1", &body).await.ok();
    rig.ending(&accepted["taskId"].as_str().unwrap().into()).await;
    rig.post(&format!("/api/conversations/{id}/delete"), json!({})).await.ok();
    assert_eq!(keyed(&rig, "/api/submit", "k1", &body).await.ok(), accepted);
    assert_eq!(keyed(&rig, "/api/submit", "k2", &body).await.problem(), (404, "unknown_conversation".to_owned()));
}
