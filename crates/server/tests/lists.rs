//! Lists in pages, ETags, compression, one agent, figures, a retry and an action.

use std::sync::Arc;

use polis_domain::Recorded;
use polis_engine::{Branch, Options, SystemClock, fork};
use polis_ports::Log;
use polis_server::Security;
use polis_testkit::{GatedLog, MemoryLog, Op, Program, Questions, ScriptedModel, ScriptedTools, worker_role};
use serde_json::{Value, json};

use crate::support::Rig;

#[tokio::test]
async fn every_list_comes_in_pages_that_make_up_the_whole() {
    let rig = Rig::start().await;
    let names = ["ann", "bob", "cid", "dee", "eve"];
    let (task, _) = rig.run(names.iter().map(|name| Op::Spawn((*name).into())).collect()).await;
    rig.run(vec![Op::Tell("one".into()), Op::Tell("two".into())]).await;
    for _ in 0..7 {
        rig.post("/api/submit", json!({ "conversation": "root", "text": Program(vec![Op::Approve("wait".into())]).text() }))
            .await
            .ok();
    }
    while rig.get("/api/approvals").await.ok()["approvals"].as_array().unwrap().is_empty() {}
    let messages = format!("/api/messages/{task}?direction=all");
    for (target, key) in [
        ("/api/agents", "agents"),
        ("/api/roles", "roles"),
        ("/api/threads", "threads"),
        ("/api/tasks", "tasks"),
        ("/api/approvals", "approvals"),
        ("/api/societies", "societies"),
        ("/api/tools", "tools"),
        ("/api/artifacts", "artifacts"),
        ("/api/log", "events"),
        (&messages, "messages"),
    ] {
        let join = if target.contains('?') { '&' } else { '?' };
        let whole = rig.get(&format!("{target}{join}limit=1000")).await.ok()[key].as_array().unwrap().clone();
        assert!(!whole.is_empty() || key == "artifacts", "{target}");
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = rig.get(&format!("{target}{join}limit=2{after}")).await.ok();
            let list = page[key].as_array().unwrap();
            assert!(list.len() <= 2, "{target}");
            seen.extend(list.clone());
            match &page["next"] {
                Value::Null => break,
                Value::String(next) => after = format!("&after={}", next.replace('~', "%7E")),
                next => after = format!("&after={next}"),
            }
        }
        assert_eq!(seen, whole, "{target}");
        assert_eq!(rig.get(&format!("{target}{join}limit=x")).await.problem(), (400, "bad_query".to_owned()));
    }
}

#[tokio::test]
async fn a_page_of_societies_is_one_question_to_the_log() {
    let memory = Arc::new(MemoryLog::new());
    let log = Arc::new(GatedLog { log: memory.clone() as Arc<dyn Log>, gate: Questions::default() });
    let model = ScriptedModel::saying("a thought");
    let options = Options::new(7, worker_role());
    let rig = Rig::wired(memory, log.clone(), model, ScriptedTools::new(), Security::default(), options).await;
    for n in 1..=50 {
        let to = format!("idle-{n:02}").into();
        let branch = Branch { from: rig.society.id().clone(), at: None, to, aside: None, request: None };
        fork(&*log, &SystemClock, &branch, n).await.unwrap();
    }
    for (query, listed, has_more) in
        [("", 51, false), ("?limit=51", 51, false), ("?limit=20", 20, true), ("?after=idle-40", 11, false)]
    {
        log.gate.take();
        let page = rig.get(&format!("/api/societies{query}")).await.ok();
        assert_eq!(log.gate.take(), 1, "{query}");
        assert_eq!((page["societies"].as_array().unwrap().len(), page["next"].is_string()), (listed, has_more), "{query}");
    }
}

#[tokio::test]
async fn what_is_known_is_not_sent_again_and_what_is_long_is_compressed_if_wanted() {
    let rig = Rig::start().await;
    let first = rig.get("/api/agents").await;
    let etag = first.headers["etag"].to_str().unwrap().to_owned();
    assert!(!first.headers.contains_key("content-encoding"));
    let again = rig.ask("GET", "/api/agents", &[("if-none-match", &etag)], Vec::new()).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    rig.run(vec![Op::Spawn("bob".into())]).await;
    let changed = rig.ask("GET", "/api/agents", &[("if-none-match", &etag)], Vec::new()).await;
    assert_eq!(changed.status, 200);

    let packed = rig.ask("GET", "/openapi.json", &[("accept-encoding", "br, gzip;q=0.5")], Vec::new()).await;
    assert_eq!(packed.headers["content-encoding"], "gzip");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&packed.body[..]), &mut text).unwrap();
    assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), polis_server::contract());
    let plain = rig.ask("GET", "/openapi.json", &[("accept-encoding", "gzip;q=0, br")], Vec::new()).await;
    assert!(!plain.headers.contains_key("content-encoding"));
    let bearer = format!("Bearer {}", crate::support::TOKEN);
    let headers = [("accept-encoding", "gzip"), ("authorization", &*bearer)];
    let stream = crate::support::send(rig.address, "GET", "/api/events", &headers, Vec::new()).await;
    assert!(!stream.headers().contains_key("content-encoding"), "a stream is never held back");
    assert_eq!(stream.headers()["x-accel-buffering"], "no");
}

#[tokio::test]
async fn one_agent_is_told_with_its_role_and_its_children() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Spawn("bob".into())]).await;
    let root = rig.get("/api/agents/root").await.ok();
    assert_eq!((&root["id"], &root["children"], &root["role"]["id"]), (&json!("root"), &json!(["bob"]), &json!("worker")));
    assert_eq!(rig.get("/api/agents/nobody").await.problem(), (404, "unknown_agent".to_owned()));
}

#[tokio::test]
async fn figures_are_told_as_prometheus_reads_them() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Think("x".into())]).await;
    rig.get("/nothing").await;
    let reply = rig.get("/metrics").await;
    assert_eq!(reply.status, 200);
    let text = String::from_utf8(reply.body).unwrap();
    let figure = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        line.trim().parse().unwrap()
    };
    assert_eq!(figure("polis_agents "), 1.0);
    assert_eq!(figure("polis_events_total "), rig.last().0 as f64);
    assert_eq!(figure("polis_http_answers_total{status=\"4xx\"} "), 1.0);
    assert_eq!(figure("polis_turns_open{state=\"running\"} "), 0.0);
    for line in text.lines() {
        assert!(line.starts_with("# HELP polis_") || line.starts_with("# TYPE polis_") || line.starts_with("polis_"), "{line}");
    }
}

#[tokio::test]
async fn a_request_that_has_ended_is_done_again_and_one_under_way_is_not() {
    let rig = Rig::start().await;
    let (task, _) = rig.run(vec![Op::Think("x".into())]).await;
    let again = rig.post(&format!("/api/tasks/{task}/retry"), json!({})).await.ok();
    assert_eq!(again["taskId"], json!(task));
    let all = format!("/api/messages/{task}?direction=all");
    while rig.get(&all).await.ok()["messages"].as_array().unwrap().len() < 4 {}
    let messages = rig.get(&all).await.ok()["messages"].clone();
    assert_eq!(messages[2]["payload"]["text"], messages[0]["payload"]["text"]);
    assert_eq!(messages[2]["payload"]["meta"]["_ui_action"], json!("retry"));
    assert_eq!(messages[3]["kind"], json!("answer"));
    let waits = rig
        .post("/api/submit", json!({ "conversation": "root", "text": Program(vec![Op::Approve("wait".into())]).text() }))
        .await
        .ok();
    let retry = format!("/api/tasks/{}/retry", waits["taskId"].as_str().unwrap());
    assert_eq!(rig.post(&retry, json!({})).await.problem(), (409, "still_open".to_owned()));
    assert_eq!(rig.post("/api/tasks/none/retry", json!({})).await.problem(), (404, "unknown_task".to_owned()));
}

#[tokio::test]
async fn an_agent_says_what_it_offers_and_is_told_what_that_says() {
    let rig = Rig::start().await;
    let offered = rig.get("/api/agents/root").await.ok()["operations"].clone();
    assert_eq!((&offered[0]["name"], &offered[0]["label"]), (&json!("nothing"), &json!("Do nothing")));
    assert_eq!(offered[0]["labels"], json!({ "zh": "什么都不做" }));
    let path = "/api/agents/root/operate";
    for (language, (text, label)) in [("", ("[]", "Do nothing")), ("zh", ("[ ]", "什么都不做")), ("fr", ("[]", "Do nothing"))]
    {
        let sent = rig.post(path, json!({ "operation": "nothing", "language": language })).await.ok();
        let is_it =
            |recorded: &Recorded| recorded.event.envelope().is_some_and(|envelope| json!(envelope.id) == sent["messageId"]);
        let sent = rig.until(is_it).await;
        let envelope = sent.event.envelope().unwrap();
        assert_eq!(&*envelope.payload.text, text);
        assert_eq!(envelope.payload.meta["_ui_action"], json!("nothing"));
        assert_eq!(envelope.payload.meta["_operation"], json!(label));
    }
    assert_eq!(rig.post(path, json!({ "operation": "dance" })).await.problem(), (404, "unknown_operation".to_owned()));
    let nobody = rig.post("/api/agents/nobody/operate", json!({ "operation": "nothing" })).await;
    assert_eq!(nobody.problem(), (404, "unknown_agent".to_owned()));
}

#[tokio::test]
async fn an_action_of_a_component_is_a_word_to_its_agent_or_the_answer_to_what_waits() {
    let rig = Rig::start().await;
    let action = json!({ "component": "todo-list", "action": "select", "data": { "id": 3 } });
    let acted = rig.post("/api/actions", action).await.ok();
    let sent = rig.until(|recorded| recorded.event.envelope().is_some_and(|envelope| envelope.from.is_user())).await;
    let envelope = sent.event.envelope().unwrap();
    assert_eq!(json!(envelope.id), acted["message"]["messageId"]);
    assert_eq!(&*envelope.payload.text, "[todo-list select] {\"id\":3}");
    assert_eq!(envelope.payload.meta["_component_action"]["data"], json!({ "id": 3 }));
    for bad in [json!({ "component": "a b", "action": "x" }), json!({ "component": "a", "action": "" })] {
        assert_eq!(rig.post("/api/actions", bad).await.problem(), (400, "bad_action".to_owned()));
    }
    let long = json!({ "component": "a", "action": "b", "data": "x".repeat(70_000) });
    assert_eq!(rig.post("/api/actions", long).await.problem(), (413, "body_too_large".to_owned()));
    let nobody = json!({ "component": "a", "action": "b", "agentId": "nobody" });
    assert_eq!(rig.post("/api/actions", nobody).await.problem(), (404, "unknown_agent".to_owned()));

    let asked = rig
        .post("/api/submit", json!({ "conversation": "root", "text": Program(vec![Op::Approve("May I?".into())]).text() }))
        .await
        .ok();
    let id = loop {
        let open = rig.get("/api/approvals").await.ok();
        if let Some(id) = open["approvals"][0]["id"].as_str() {
            break id.to_owned();
        }
    };
    let answer = json!({ "component": "approval", "action": "agree", "approvalId": id });
    assert_eq!(rig.post("/api/actions", answer.clone()).await.ok(), json!({ "approvalId": id }));
    rig.ending(&asked["taskId"].as_str().unwrap().into()).await;
    assert_eq!(rig.post("/api/actions", answer).await.problem(), (409, "not_open".to_owned()));
}
