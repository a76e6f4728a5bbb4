//! The organisation over HTTP: who is sent away, what is exported, what is brought in.

use polis_testkit::Op;
use serde_json::json;

use crate::support::Rig;

#[tokio::test]
async fn an_agent_is_sent_away_and_then_gone() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Spawn("bob".into()), Op::Spawn("eve".into())]).await;
    let gone = rig.post("/api/agents/bob/terminate", json!({ "reason": "done" })).await.ok();
    assert_eq!(gone, json!({ "ok": true, "terminatedAgentId": "bob" }));
    let org = rig.get("/api/org").await.ok();
    assert_eq!(org["terminations"][0]["agentId"], json!("bob"));
    assert_eq!((&org["terminations"][0]["terminatedBy"], &org["terminations"][0]["reason"]), (&json!("user"), &json!("done")));
    assert_eq!(rig.get("/api/roles").await.ok()["roles"], org["roles"]);
    let again = rig.post("/api/agents/bob/terminate", json!({})).await.problem();
    assert_eq!(again, (409, "leaving".to_owned()));
    assert_eq!(rig.post("/api/agents/nobody/terminate", json!({})).await.problem(), (404, "unknown_agent".to_owned()));
    assert_eq!(rig.post("/api/agents/root/terminate", json!({})).await.problem(), (409, "root_stays".to_owned()));
    let sent = rig.post("/api/send", json!({ "agentId": "bob", "text": "hello" })).await.problem();
    assert_eq!(sent, (409, "leaving".to_owned()));
}

#[tokio::test]
async fn what_one_society_exports_another_brings_in_whole_or_not_at_all() {
    let old = Rig::start().await;
    old.run(vec![Op::Spawn("bob".into())]).await;
    let mut org = old.get("/api/org").await.ok();
    org["roles"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "id": "writer", "name": "Writer", "rolePrompt": "Write.", "behaviour": "programmed" }));
    let new = Rig::start().await;
    let mut bad = org.clone();
    bad["agents"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "id": "a b", "roleId": "writer", "parentAgentId": "bob", "status": "active" }));
    let before = new.last();
    assert_eq!(new.post("/api/org", bad).await.problem(), (400, "bad_name".to_owned()));
    assert_eq!(new.last(), before, "nothing has changed");
    assert_eq!(new.post("/api/org", org.clone()).await.ok(), json!({ "roles": 1, "agents": 1 }));
    assert_eq!(new.post("/api/org", org).await.problem(), (400, "bad_org".to_owned()));
}

#[tokio::test]
async fn conversations_and_what_is_under_way_are_listed_and_a_context_is_compressed_by_a_task() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Spawn("bob".into())]).await;
    let threads = rig.get("/api/threads").await.ok();
    assert_eq!((&threads["threads"][0]["id"], &threads["threads"][0]["path"]), (&json!("root"), &json!("")));
    assert_eq!(rig.get("/api/threads?limit=0").await.ok(), json!({ "threads": [] }));
    assert_eq!(rig.get("/api/tasks").await.ok(), json!({ "tasks": [] }));
    let agents = rig.get("/api/agents").await.ok();
    let context = &agents["agents"][0]["context"];
    assert_eq!((&context["shown"], &context["compressions"]), (&context["messages"], &json!(0)));
    let undone = rig.post("/api/agents/root/compress", json!({ "undo": true })).await.problem();
    assert_eq!(undone, (409, "nothing_to_restore".to_owned()));
    assert_eq!(rig.post("/api/agents/nobody/compress", json!({})).await.problem(), (404, "unknown_agent".to_owned()));
    let told = rig.post("/api/agents/bob/compress", json!({})).await.ok();
    assert!(told["ok"] == true && told["taskId"].is_string(), "{told}");
}

#[tokio::test]
async fn the_one_agent_of_a_role_is_addressed_by_it_everywhere() {
    let rig = Rig::start().await;
    let role = json!({ "id": "writer", "name": "Scribe", "rolePrompt": "Write." });
    let agent = json!({ "id": "will", "roleId": "writer", "parentAgentId": "root", "status": "active" });
    let made = rig.post("/api/org", json!({ "roles": [role], "agents": [agent] })).await.ok();
    assert_eq!(made, json!({ "roles": 1, "agents": 1 }));
    rig.post("/api/send", json!({ "agentId": "Scribe", "text": "hello" })).await.ok();
    rig.post("/api/agents/writer/compress", json!({})).await.ok();
    let gone = rig.post("/api/agents/writer/terminate", json!({ "now": true })).await.ok();
    assert_eq!(gone["terminatedAgentId"], json!("will"));
    assert_eq!(rig.post("/api/org", json!({ "roles": 5 })).await.problem(), (400, "bad_org".to_owned()));
}
