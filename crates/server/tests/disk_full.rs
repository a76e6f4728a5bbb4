//! While nothing can be written, everything can be read.

use std::sync::Arc;

use http_body_util::BodyExt;
use polis_engine::Options;
use polis_server::Security;
use polis_testkit::{FullDisk, GatedLog, MemoryLog, Op, ScriptedModel, ScriptedReply, ScriptedTools, worker_role};
use serde_json::json;

use crate::support::{Rig, TOKEN, send};

/// Routes whose answer does not end, or that are of other protocols with bodies of their own.
const STREAMS: [&str; 2] = ["/api/events", "/mcp"];

#[tokio::test]
async fn while_the_disk_is_full_reads_metrics_health_and_streams_go_on_and_writes_are_refused() {
    let memory = Arc::new(MemoryLog::new());
    let log = Arc::new(GatedLog { log: memory.clone(), gate: FullDisk::default() });
    let model = ScriptedModel::new(|_| ScriptedReply::text("a thought"));
    let options = Options::new(7, worker_role());
    let rig = Rig::wired(memory, log.clone(), model, ScriptedTools::new(), Security::default(), options).await;
    let (task, _) = rig.run(vec![Op::Say("before".into())]).await;
    let before = rig.last();
    log.gate.fill(true);
    let refused = rig.post("/api/submit", json!({ "conversation": "root", "text": "no room" })).await;
    assert_eq!(refused.problem(), (507, "disk_full".to_owned()));

    let contract = rig.get("/openapi.json").await.ok();
    let paths = contract["paths"].as_object().unwrap();
    let listed = paths.iter().filter(|(path, of)| of.get("get").is_some() && !STREAMS.contains(&path.as_str()));
    let mut answered = 0;
    for (path, _) in listed {
        let target = path.replace("{task}", task.as_str()).replace("{thread}", "root").replace("{agent}", "root");
        let reply = rig.get(&target.replace("{id}", "root").replace("{taskId}", task.as_str())).await;
        assert!(reply.status < 500, "{target}: {} {}", reply.status, String::from_utf8_lossy(&reply.body));
        answered += usize::from(reply.status == 200);
    }
    assert!(answered > 15, "{answered} routes answered");

    let health = rig.get("/api/health").await.ok();
    assert_eq!((&health["status"], &health["store"]["code"]), (&json!("degraded"), &json!("disk_full")), "{health}");
    assert_eq!(health["store"]["seq"], json!(before));
    assert_eq!(rig.get("/metrics").await.status, 200);
    assert_eq!(rig.get(&format!("/api/messages/{task}")).await.ok()["messages"].as_array().unwrap().len(), 1);

    let bearer = format!("Bearer {TOKEN}");
    let stream = send(rig.address, "GET", "/api/events?after=0", &[("authorization", &bearer)], Vec::new()).await;
    assert_eq!(stream.status(), 200);
    let mut body = stream.into_body();
    let mut heard = String::new();
    while !heard.contains(&format!("id: {before}\n")) && !heard.contains(&format!("id:{before}\n")) {
        let frame = body.frame().await.expect("the stream goes on").unwrap();
        heard.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap()));
    }
    for (target, body) in [
        ("/api/submit", json!({ "conversation": "root", "text": "still no room" })),
        ("/api/send", json!({ "agentId": "root", "text": "still no room" })),
    ] {
        assert_eq!(rig.post(target, body).await.problem(), (507, "disk_full".to_owned()), "{target}");
    }
    log.gate.fill(false);
    while rig.get("/api/health").await.ok()["status"] != "ok" {}
    rig.run(vec![Op::Say("after".into())]).await;
    drop(body);
    rig.stop().await;
}
