//! What the routes answer.

use polis_domain::{Effect, Event};
use polis_testkit::{Op, Program};
use serde_json::{Value, json};

use crate::support::{Rig, society};

#[tokio::test]
async fn a_submitted_request_is_answered_and_its_messages_are_told_in_order() {
    let rig = Rig::start().await;
    let program = Program(vec![Op::Tell("on my way".into()), Op::Think("x".into())]).text();
    let accepted = rig.post("/api/submit", json!({ "conversation": "root", "text": program })).await.ok();
    let task = accepted["taskId"].as_str().unwrap();
    rig.ending(&task.into()).await;

    let received = rig.get(&format!("/api/messages/{task}")).await.ok();
    let texts = |body: &Value| -> Vec<(String, String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let all = body["messages"].as_array().unwrap().iter();
        all.map(|message| (text(&message["from"]), text(&message["kind"]), text(&message["payload"]["text"]))).collect()
    };
    let told = |from: &str, kind: &str, text: &str| (from.to_owned(), kind.to_owned(), text.to_owned());
    let (first, second) = (told("root", "message", "on my way"), told("root", "answer", "told a thought"));
    assert_eq!(texts(&received), [first.clone(), second.clone()]);

    let all = rig.get(&format!("/api/messages/{task}?direction=all")).await.ok();
    assert_eq!(texts(&all), [told("user", "message", &program), first, second]);
    // The ids that were given out are those of the message itself (P4).
    assert_eq!(all["messages"][0]["messageId"], accepted["messageId"]);
    assert_eq!(all["messages"][0]["taskId"], accepted["taskId"]);
    assert_eq!(all["messages"][0]["seq"], accepted["seq"]);
}

/// Its state is asked for again and again while it ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_over_has_its_answer() {
    let rig = Rig::start().await;
    let program = Program(vec![Op::Think("x".into())]).text();
    for _ in 0..100 {
        let task = rig.post("/api/submit", json!({ "text": program })).await.ok()["taskId"].clone();
        let target = format!("/api/tasks/{}", task.as_str().unwrap());
        let over = loop {
            let state = rig.get(&target).await.ok();
            if state["status"] != json!("running") && state["status"] != json!("waiting") {
                break state;
            }
        };
        assert_eq!((&over["status"], &over["answer"]), (&json!("done"), &json!("a thought")));
    }
}

#[tokio::test]
async fn a_word_to_an_agent_can_belong_to_a_request_of_before() {
    let rig = Rig::start().await;
    let (task, _) = rig.run(vec![Op::Spawn("bob".into())]).await;
    let text = Program(vec![Op::Think("y".into())]).text();
    let sent = rig.post("/api/send", json!({ "agentId": "bob", "text": text, "taskId": task })).await.ok();
    assert_eq!(sent["taskId"], json!(task));
    rig.until(|recorded| recorded.event.envelope().is_some_and(|envelope| envelope.from.as_str() == "bob")).await;
    let messages = rig.get(&format!("/api/messages/{task}")).await.ok();
    let from: Vec<_> = messages["messages"].as_array().unwrap().iter().map(|message| message["from"].clone()).collect();
    assert_eq!(from, [json!("root"), json!("bob")]);
}

#[tokio::test]
async fn agents_are_listed_with_what_they_are_at() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Spawn("bob".into())]).await;
    let agents = async || {
        let listed = rig.get("/api/agents").await.ok();
        let agents = listed["agents"].as_array().unwrap().clone();
        agents.into_iter().map(|agent| (agent["id"].clone(), agent["activity"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(agents().await, [(json!("root"), json!("idle")), (json!("bob"), json!("idle"))]);
    let listed = rig.get("/api/agents").await.ok();
    let bob = &listed["agents"][1];
    assert_eq!((&bob["roleId"], &bob["roleName"], &bob["parentAgentId"]), (&json!("worker"), &json!("Worker"), &json!("root")));

    rig.post("/api/send", json!({ "agentId": "bob", "text": Program(vec![Op::Approve("may I?".into())]).text() })).await.ok();
    rig.until(|recorded| matches!(recorded.event, Event::EffectStarted { .. }) && recorded.thread == Some("bob".into())).await;
    assert_eq!(agents().await, [(json!("root"), json!("idle")), (json!("bob"), json!("waiting"))]);

    // The document's values are beside ours: who exists is active, and who was terminated is in the organisation's record (D37).
    let listed = rig.get("/api/agents").await.ok();
    assert!(listed["agents"].as_array().unwrap().iter().all(|agent| agent["status"] == json!("active")), "{listed}");
    rig.post("/api/agents/bob/terminate", json!({ "now": true })).await.ok();
    assert_eq!(agents().await, [(json!("root"), json!("idle"))]);
    let org = rig.get("/api/org").await.ok();
    let bob = org["agents"].as_array().unwrap().iter().find(|agent| agent["id"] == json!("bob")).unwrap();
    assert_eq!(bob["status"], json!("terminated"));
}

#[tokio::test]
async fn a_thread_is_shown_by_its_path_and_whole() {
    let rig = Rig::start().await;
    let inner = Program(vec![Op::Say("inner".into())]);
    rig.run(vec![Op::Units(vec![inner])]).await;
    let main = rig.get("/api/threads/root").await.ok();
    assert_eq!(main["settings"]["briefStatus"]["phase"], json!("initial_phase"));
    let holder =
        main["messages"].as_array().unwrap().iter().position(|message| message["meta"]["_thread"].is_object()).unwrap();
    assert_eq!(main["messages"][holder]["meta"]["_thread"].as_object().unwrap().len(), 1, "only its id is there");

    let path = format!("messages%5B{holder}%5D.meta._thread");
    let sub = rig.get(&format!("/api/threads/root?path={path}")).await.ok();
    assert!(sub["messages"].as_array().unwrap().iter().any(|message| message["text"] == json!("inner")), "{sub}");
    let tree = rig.get("/api/threads/root?tree=true").await.ok();
    assert_eq!(tree["messages"][holder]["meta"]["_thread"], sub);
}

#[tokio::test]
async fn the_log_is_read_in_pages() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Think("x".into())]).await;
    let all = rig.log.events(&society());
    let mut read = Vec::new();
    loop {
        let page = rig.get(&format!("/api/log?after={}&limit=2", read.len())).await.ok();
        assert_eq!(page["last"], json!(all.len()));
        let events = page["events"].as_array().unwrap().clone();
        if events.is_empty() {
            break;
        }
        assert!(events.len() <= 2);
        read.extend(events);
    }
    assert_eq!(Value::Array(read), serde_json::to_value(&all).unwrap());
}

#[tokio::test]
async fn health_tells_of_the_store_and_the_model() {
    let rig = Rig::start().await;
    let health = rig.get("/api/health").await.ok();
    assert_eq!(health["status"], json!("ok"));
    assert_eq!(health["model"], json!({ "name": "scripted/one", "offline": false }));
    assert_eq!(health["store"], json!({ "ok": true, "seq": rig.last() }));
    assert_eq!(health["version"], rig.get("/api/version").await.ok()["version"]);
}

#[tokio::test]
async fn a_request_tells_where_it_stands_and_can_be_called_off() {
    let rig = Rig::start().await;
    let status = async |task: &Value| rig.get(&format!("/api/tasks/{}", task.as_str().unwrap())).await.ok();
    let (done, _) = rig.run(vec![Op::Think("x".into())]).await;
    assert_eq!(
        status(&json!(done)).await,
        json!({ "id": done, "status": "done", "answer": "a thought", "conversation": "root" })
    );
    let (failed, _) = rig.run(vec![Op::Fail("no_luck".into())]).await;
    assert_eq!(status(&json!(failed)).await["status"], json!("failed"));
    assert_eq!(status(&json!(failed)).await["failure"]["code"], json!("no_luck"));

    let ask = Program(vec![Op::Approve("may I?".into())]).text();
    let task = rig.post("/api/submit", json!({ "conversation": "root", "text": ask })).await.ok()["taskId"].clone();
    rig.until(|recorded| matches!(recorded.event, Event::EffectStarted { effect: Effect::Approval { .. }, .. })).await;
    assert_eq!(status(&task).await["status"], json!("needs_person"));
    // One that stands behind it in the inbox waits for it, and says at whom.
    let behind = rig.post("/api/submit", json!({ "conversation": "root", "text": "[]" })).await.ok()["taskId"].clone();
    assert_eq!(status(&behind).await, json!({ "id": behind, "status": "waiting", "behind": "root", "conversation": "root" }));

    let cancelled =
        rig.post(&format!("/api/tasks/{}/cancel", task.as_str().unwrap()), json!({ "reason": "enough" })).await.ok();
    assert_eq!(cancelled, json!({ "taskId": task }));
    assert_eq!(
        status(&task).await,
        json!({ "id": task, "status": "cancelled", "failure": { "code": "cancelled", "message": "enough" }, "conversation": "root" })
    );
    rig.ending(&behind.as_str().unwrap().into()).await;
    assert_eq!(status(&behind).await["status"], json!("done"));
}

#[tokio::test]
async fn what_was_set_aside_is_listed_with_whose_it_was_and_why() {
    let rig = Rig::start().await;
    assert_eq!(rig.get("/api/dead-letters").await.ok(), json!({ "deadLetters": [] }));
    let (task, _) = rig.run(vec![Op::Panic("broken".into())]).await;
    let listed = rig.get("/api/dead-letters").await.ok();
    let dead = &listed["deadLetters"][0];
    assert_eq!((&dead["agent"], &dead["task"]), (&json!("root"), &json!(task)));
    assert_eq!(dead["failure"]["code"], "panicked");
    assert_eq!(listed["deadLetters"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_request_with_a_failed_part_that_nobody_waited_for_is_partial() {
    let rig = Rig::start().await;
    rig.society.spawn("bob".into(), "worker".into(), "root".into()).await.unwrap();
    let part = |op: Op| Op::Send("bob".into(), Program(vec![op]));
    let (task, _) = rig.run(vec![part(Op::Fail("no_luck".into()))]).await;
    let noted = |recorded: &polis_domain::Recorded| {
        recorded.event.envelope().is_some_and(|envelope| envelope.to.is_user() && &*envelope.payload.text == "noted")
    };
    rig.until(noted).await;
    let failure = json!({ "code": "no_luck", "message": "`bob` failed: as the program says" });
    let status = async || rig.get(&format!("/api/tasks/{task}")).await.ok();
    let partial = json!({ "id": task, "status": "partial", "answer": "noted", "failure": failure, "conversation": "root" });
    assert_eq!(status().await, partial);
    let listed = rig.get("/api/dead-letters").await.ok()["deadLetters"].clone();
    let dead = &listed[0];
    assert_eq!((listed.as_array().unwrap().len(), &dead["agent"], &dead["task"]), (1, &json!("bob"), &json!(task)));
    assert_eq!((&dead["failure"]["code"], &dead["handled"]), (&json!("no_luck"), &json!(false)));

    // Doing it again and better makes it good.
    let again =
        rig.society.send("root".into(), &Program(vec![part(Op::Think("x".into()))]).text(), Some(task.clone())).await.unwrap();
    rig.society.answer(&again).await.unwrap();
    rig.until(|recorded| {
        recorded.seq > again.seq
            && matches!(&recorded.event, Event::TurnSettled { .. })
            && recorded.thread == Some("bob".into())
    })
    .await;
    assert_eq!(status().await["status"], json!("done"));
    assert_eq!(rig.get("/api/dead-letters").await.ok()["deadLetters"][0]["handled"], json!(true));
}
