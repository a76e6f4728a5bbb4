//! The society as an A2A agent.

use polis_domain::Event;
use polis_testkit::{Op, Program};
use serde_json::{Value, json};

use crate::support::{Reply, Rig, TOKEN, send};

const HEADERS: [(&str, &str); 2] = [("content-type", "application/json"), ("a2a-version", "1.0")];

async fn ask(rig: &Rig, method: &str, params: Value) -> Reply {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    rig.ask("POST", "/a2a", &HEADERS, body.to_string().into_bytes()).await
}

async fn result(rig: &Rig, method: &str, params: Value) -> Value {
    let mut told = ask(rig, method, params).await.ok();
    assert!(told["error"].is_null(), "{told}");
    told["result"].take()
}

async fn error(rig: &Rig, method: &str, params: Value) -> i64 {
    ask(rig, method, params).await.ok()["error"]["code"].as_i64().unwrap()
}

/// The results of a stream, in order.
fn streamed(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.content_type, "text/event-stream", "{reply:?}");
    let text = String::from_utf8(reply.body.clone()).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str::<Value>(data).unwrap()["result"].take()).collect()
}

fn message(id: &str, ops: Vec<Op>) -> Value {
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": Program(ops).text() }] } })
}

#[tokio::test]
async fn the_address_with_a_slash_is_the_same() {
    let rig = Rig::start().await;
    let body =
        json!({ "jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": message("m1", vec![Op::Say("1".into())]) });
    let bytes = body.to_string().into_bytes();
    let told = rig.ask("POST", "/a2a/", &HEADERS, bytes.clone()).await.ok();
    assert_eq!(told["result"]["task"]["status"]["state"], json!("TASK_STATE_COMPLETED"), "{told}");
    let unknown = crate::support::send(rig.address, "POST", "/a2a/", &HEADERS, bytes).await;
    assert_eq!(unknown.status(), 401, "it is guarded as well");
}

#[tokio::test]
async fn everybody_may_see_the_card_and_it_tells_no_prompt() {
    let rig = Rig::start().await;
    let reply = Reply::of(send(rig.address, "GET", "/.well-known/agent-card.json", &[], Vec::new()).await).await;
    let card = reply.ok();
    let interface =
        json!({ "url": format!("http://{}/a2a", rig.address), "protocolBinding": "JSONRPC", "protocolVersion": "1.0" });
    assert_eq!(card["supportedInterfaces"], json!([interface]));
    assert_eq!((&card["capabilities"]["streaming"], &card["capabilities"]["pushNotifications"]), (&json!(true), &json!(false)));
    assert_eq!(card["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"], json!("Bearer"));
    let skills: Vec<_> = card["skills"].as_array().unwrap().iter().map(|skill| skill["id"].as_str().unwrap()).collect();
    assert_eq!(skills, ["root", "role.worker"]);
    assert!(!card.to_string().contains("You do what you are told"), "{card}");
    assert!(reply.headers.contains_key("etag"));
    let closed = Reply::of(send(rig.address, "POST", "/a2a", &HEADERS, b"{}".to_vec()).await).await;
    assert_eq!(closed.problem(), (401, "unauthorized".to_owned()));
}

#[tokio::test]
async fn a_message_begins_a_task_that_is_told_until_it_is_over() {
    let rig = Rig::start().await;
    let done = result(&rig, "SendMessage", message("m1", vec![Op::Think("hm".into())])).await["task"].take();
    assert_eq!(done["status"]["state"], json!("TASK_STATE_COMPLETED"));
    assert_eq!(done["artifacts"][0]["parts"], json!([{ "text": "a thought" }]));
    assert_eq!((&done["history"][0]["messageId"], &done["history"][0]["role"]), (&json!("m1"), &json!("ROLE_USER")));
    assert_eq!(done["history"][1]["role"], json!("ROLE_AGENT"));
    assert!(done["status"]["timestamp"].as_str().unwrap().ends_with('Z'), "{done}");
    let id = &done["id"];
    assert_eq!(result(&rig, "GetTask", json!({ "id": id })).await, done);
    assert!(result(&rig, "GetTask", json!({ "id": id, "historyLength": 0 })).await.get("history").is_none());
    for name in ["historyLength", "history_length"] {
        let one = result(&rig, "GetTask", json!({ "id": id, (name): 1 })).await;
        assert_eq!(one["history"], json!([done["history"][1]]), "{name}");
        assert_eq!(error(&rig, "GetTask", json!({ "id": id, (name): "all" })).await, -32602);
    }
    let mut short = message("m1", vec![Op::Think("hm".into())]);
    short["configuration"] = json!({ "history_length": 0 });
    assert!(result(&rig, "SendMessage", short).await["task"].get("history").is_none());

    let failed = result(&rig, "SendMessage", message("m2", vec![Op::Fail("bad_luck".into())])).await["task"].take();
    assert_eq!(failed["status"]["state"], json!("TASK_STATE_FAILED"));
    assert_eq!(failed["status"]["message"]["metadata"]["code"], json!("bad_luck"));
    assert_eq!(error(&rig, "CancelTask", json!({ "id": id })).await, -32002);
    assert_eq!(error(&rig, "SubscribeToTask", json!({ "id": id })).await, -32004);
    let mut more = message("m3", vec![]);
    more["message"]["taskId"] = id.clone();
    assert_eq!(error(&rig, "SendMessage", more).await, -32004);
}

#[tokio::test]
async fn files_that_agents_make_for_a_task_are_artifacts_of_it() {
    let draw = |_: &str, _: &polis_ports::CallContext| {
        let artifact = polis_domain::Artifact::new(polis_domain::ArtifactId::new([7; 32]), "plan.png", "image/png", 3);
        polis_domain::CallResult { artifacts: vec![artifact], ..polis_domain::CallResult::good("drawn") }
    };
    let tools = polis_testkit::ScriptedTools::new().with("draw", polis_domain::EffectClass::Write, draw);
    let model = polis_testkit::ScriptedModel::new(|_| polis_testkit::ScriptedReply::text("a thought"));
    let rig = Rig::on(std::sync::Arc::new(polis_testkit::MemoryLog::new()), model, tools).await;
    let drawn = Program(vec![Op::Call(vec![("draw".into(), "{}".into())])]);
    // Another agent makes it, and the answer does not mention it.
    let asked = Op::Ask { agent: "helper".into(), program: drawn, patience_ms: 60_000 };
    let ops = vec![Op::Spawn("helper".into()), asked];
    let told = streamed(&ask(&rig, "SendStreamingMessage", message("m1", ops)).await);
    let id = "07".repeat(32);
    let url = format!("http://{}/api/artifacts/{id}", rig.address);
    let file = json!({ "artifactId": id, "name": "plan.png", "parts": [{ "url": url, "filename": "plan.png", "mediaType": "image/png" }] });
    let updates: Vec<_> = told.iter().filter_map(|it| it.get("artifactUpdate")).collect();
    assert_eq!(updates.last().unwrap()["artifact"], file, "{told:?}");
    let task = told[0]["task"]["id"].clone();
    let got = result(&rig, "GetTask", json!({ "id": task })).await;
    assert_eq!(got["artifacts"].as_array().unwrap()[1..], [file], "{got}");
    let listed = result(&rig, "ListTasks", json!({ "includeArtifacts": true })).await;
    assert_eq!(listed["tasks"][0]["artifacts"], got["artifacts"]);
    // A later task does not have it.
    let other = result(&rig, "SendMessage", message("m2", vec![Op::Say("hello".into())])).await["task"].take();
    assert_eq!(other["artifacts"].as_array().unwrap().len(), 1, "{other}");
}

#[tokio::test]
async fn the_same_message_twice_is_done_once_also_by_a_new_server() {
    let rig = Rig::start().await;
    let request = message("m1", vec![Op::Call(vec![("note".into(), "{}".into())])]);
    let first = result(&rig, "SendMessage", request.clone()).await;
    assert_eq!(result(&rig, "SendMessage", request.clone()).await, first);
    let log = rig.log.clone();
    rig.stop().await;
    let rig = Rig::on(
        log,
        polis_testkit::ScriptedModel::new(|_| polis_testkit::ScriptedReply::text("")),
        polis_testkit::ScriptedTools::new(),
    )
    .await;
    assert_eq!(result(&rig, "SendMessage", request.clone()).await, first);
    let calls =
        rig.log.events(&crate::support::society()).iter().filter(|it| matches!(it.event, Event::EffectStarted { .. })).count();
    assert_eq!(calls, 1);
    // Two at once are one as well.
    let request = message("m2", vec![Op::Say("hello".into())]);
    let (one, other) = tokio::join!(result(&rig, "SendMessage", request.clone()), result(&rig, "SendMessage", request));
    assert_eq!(one["task"]["id"], other["task"]["id"]);
    let envelopes = rig.society.messages(&one["task"]["id"].as_str().unwrap().into()).await.unwrap();
    assert_eq!(envelopes.len(), 2);
}

#[tokio::test]
async fn a_person_who_is_asked_answers_through_the_client() {
    let rig = Rig::start().await;
    let ops = vec![Op::Approve("first?".into()), Op::Approve("second?".into()), Op::Approve("third?".into())];
    let mut task = result(&rig, "SendMessage", message("m1", ops)).await["task"].take();
    let answers: [(&str, Value); 3] = [
        ("first?", json!([{ "text": "Yes" }])),
        ("second?", json!([{ "data": { "approved": false, "reason": "too late" } }])),
        ("third?", json!([{ "text": "不同意" }])),
    ];
    for (n, (question, parts)) in answers.into_iter().enumerate() {
        assert_eq!(task["status"]["state"], json!("TASK_STATE_INPUT_REQUIRED"));
        let asked = &task["status"]["message"];
        assert!(asked["parts"][0]["text"].as_str().unwrap().starts_with(question), "{asked}");
        let mut answer = json!({ "messageId": format!("a{n}"), "role": "ROLE_USER", "taskId": task["id"], "parts": parts });
        answer["metadata"] = json!({ "approvalId": asked["metadata"]["approvalId"] });
        let unclear = json!({ "messageId": "x", "role": "ROLE_USER", "taskId": task["id"], "parts": [{ "text": "perhaps" }] });
        assert_eq!(error(&rig, "SendMessage", json!({ "message": unclear })).await, -32602);
        let next = result(&rig, "SendMessage", json!({ "message": answer })).await["task"].take();
        // The same answer once more says nothing about the next question.
        assert_eq!(result(&rig, "SendMessage", json!({ "message": answer })).await["task"], next);
        // Another word about it comes too late, and so does one about what was never asked.
        let contrary = json!([{ "data": { "approved": n > 0 } }]);
        let late = json!({ "messageId": format!("l{n}"), "role": "ROLE_USER", "taskId": task["id"], "parts": contrary,
            "metadata": answer["metadata"] });
        assert_eq!(error(&rig, "SendMessage", json!({ "message": late })).await, -32004);
        let unknown = json!({ "messageId": format!("u{n}"), "role": "ROLE_USER", "taskId": task["id"], "parts": [{ "text": "yes" }],
            "metadata": { "approvalId": "999.0" } });
        assert_eq!(error(&rig, "SendMessage", json!({ "message": unknown })).await, -32602);
        task = next;
    }
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], json!("approved denied:too late denied:"));
}

#[tokio::test]
async fn a_repeated_yes_decides_nothing_else() {
    let rig = Rig::start().await;
    let ops = vec![Op::Approve("first?".into()), Op::Approve("second?".into())];
    let task = result(&rig, "SendMessage", message("m1", ops)).await["task"].take();
    let yes = |id: &str, text: &str| json!({ "message": { "messageId": id, "role": "ROLE_USER", "taskId": task["id"], "parts": [{ "text": text }] } });
    let next = result(&rig, "SendMessage", yes("y1", "yes")).await["task"].take();
    assert!(next["status"]["message"]["parts"][0]["text"].as_str().unwrap().starts_with("second?"), "{next}");
    for _ in 0..2 {
        assert_eq!(result(&rig, "SendMessage", yes("y1", "yes")).await["task"], next, "the second question still waits");
    }
    assert_eq!(error(&rig, "SendMessage", yes("y1", "no")).await, -32602, "the id belongs to another answer");
    let done = result(&rig, "SendMessage", yes("y2", "yes")).await["task"].take();
    assert_eq!(done["status"]["state"], json!("TASK_STATE_COMPLETED"));
    assert_eq!(result(&rig, "SendMessage", yes("y2", "yes")).await["task"]["status"]["state"], json!("TASK_STATE_COMPLETED"));
}

#[tokio::test]
async fn a_stream_begins_with_the_task_and_ends_with_its_end_or_with_a_question() {
    let rig = Rig::start().await;
    let ops = vec![Op::Approve("really?".into()), Op::Call(vec![("note".into(), "{}".into())])];
    let told = streamed(&ask(&rig, "SendStreamingMessage", message("m1", ops)).await);
    let task = &told[0]["task"];
    assert!(task["id"].is_string(), "{told:?}");
    let last = told.last().unwrap();
    let last = last.get("statusUpdate").or(last.get("task")).unwrap();
    assert_eq!(last["status"]["state"], json!("TASK_STATE_INPUT_REQUIRED"), "{told:?}");

    // Who subscribes waits for the end, whoever answers.
    let bearer = format!("Bearer {TOKEN}");
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "SubscribeToTask", "params": { "id": task["id"] } });
    let headers = [HEADERS[0], HEADERS[1], ("authorization", &*bearer)];
    let open = send(rig.address, "POST", "/a2a", &headers, body.to_string().into_bytes()).await;
    let approvals = rig.get("/api/approvals").await.ok();
    let id = approvals["approvals"][0]["id"].as_str().unwrap();
    rig.post(&format!("/api/approvals/{id}"), json!({ "approved": true })).await.ok();
    let told = streamed(&Reply::of(open).await);
    assert_eq!(told[0]["task"]["status"]["state"], json!("TASK_STATE_INPUT_REQUIRED"));
    let steps: Vec<_> =
        told.iter().filter_map(|it| it["statusUpdate"]["status"]["message"]["parts"][0]["text"].as_str()).collect();
    assert_eq!(steps, ["root calls note"], "{told:?}");
    let ends = &told[told.len() - 2..];
    assert_eq!(ends[0]["artifactUpdate"]["artifact"]["parts"][0]["text"], json!("approved noted"));
    assert_eq!(ends[1]["statusUpdate"]["status"]["state"], json!("TASK_STATE_COMPLETED"));
}

#[tokio::test]
async fn a_task_is_cancelled_and_tasks_are_listed_by_context_state_and_page() {
    let rig = Rig::start().await;
    let mut slow = message("slow", vec![Op::Sleep(3_600_000)]);
    slow["configuration"] = json!({ "returnImmediately": true });
    slow["message"]["contextId"] = json!("c1");
    let slow = result(&rig, "SendMessage", slow).await["task"].take();
    let mut queued = message("queued", vec![]);
    queued["configuration"] = json!({ "returnImmediately": true });
    queued["message"]["contextId"] = json!("c1");
    let queued = result(&rig, "SendMessage", queued).await["task"].take();
    assert_eq!(queued["status"]["state"], json!("TASK_STATE_SUBMITTED"), "it lies in the inbox: {queued}");
    assert_eq!(queued["contextId"], json!("c1"));
    let listed = async |params: Value| {
        let listed = result(&rig, "ListTasks", params).await;
        let ids: Vec<Value> = listed["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect();
        (ids, listed)
    };
    assert_eq!(listed(json!({ "status": "TASK_STATE_WORKING" })).await.0, [slow["id"].clone()]);
    let cancelled = result(&rig, "CancelTask", json!({ "id": slow["id"] })).await;
    assert_eq!(cancelled["status"]["state"], json!("TASK_STATE_CANCELED"));
    rig.ending(&queued["id"].as_str().unwrap().into()).await;
    let other = result(&rig, "SendMessage", message("other", vec![])).await["task"].take();
    assert_eq!(other["contextId"], other["id"], "a context of its own");

    let (all, whole) = listed(json!({})).await;
    assert_eq!((all.len(), &whole["totalSize"], &whole["pageSize"]), (3, &json!(3), &json!(50)));
    assert_eq!(whole["nextPageToken"], json!(""));
    assert!(whole["tasks"].as_array().unwrap().iter().all(|task| task.get("artifacts").is_none()), "{whole}");
    assert!(listed(json!({ "includeArtifacts": true })).await.1["tasks"][0]["artifacts"].is_array());
    assert_eq!(listed(json!({ "contextId": "c1" })).await.0.len(), 2);
    assert_eq!(listed(json!({ "status": "TASK_STATE_CANCELED" })).await.0, [slow["id"].clone()]);
    let mut pages = Vec::new();
    let mut token = json!("");
    loop {
        let (page, listed) = listed(json!({ "pageSize": 1, "pageToken": token })).await;
        pages.extend(page);
        token = listed["nextPageToken"].clone();
        if token == "" {
            break;
        }
    }
    assert_eq!(pages, all);
    let later = json!({ "statusTimestampAfter": "9000-01-01T00:00:00.000Z" });
    assert_eq!(listed(later).await.0.len(), 0);
}

#[tokio::test]
async fn what_cannot_be_done_has_the_protocols_code() {
    let rig = Rig::start().await;
    let last = rig.last();
    for (method, params, code) in [
        ("GetTask", json!({ "id": "none" }), -32001),
        ("CancelTask", json!({ "id": "none" }), -32001),
        ("SubscribeToTask", json!({ "id": "none" }), -32001),
        ("GetTask", json!({}), -32602),
        ("GetTask", json!({ "id": "none", "historyLength": -1 }), -32602),
        ("SendMessage", json!({}), -32602),
        (
            "SendMessage",
            json!({ "message": { "messageId": "1", "role": "ROLE_USER", "taskId": "none", "parts": [{ "text": "a" }] } }),
            -32001,
        ),
        ("SendMessage", json!({ "message": { "messageId": "1", "role": "ROLE_USER", "parts": [{ "text": " " }] } }), -32602),
        (
            "SendMessage",
            json!({ "message": { "messageId": "1", "role": "ROLE_USER", "metadata": { "agentId": "nobody" }, "parts": [{ "text": "a" }] } }),
            -32602,
        ),
        ("SendMessage", json!({ "configuration": { "taskPushNotificationConfig": { "url": "http://h" } } }), -32003),
        ("CreateTaskPushNotificationConfig", json!({}), -32003),
        ("ListTaskPushNotificationConfigs", json!({}), -32003),
        ("GetExtendedAgentCard", json!({}), -32004),
        ("ListTasks", json!({ "pageSize": 0 }), -32602),
        ("ListTasks", json!({ "pageToken": "x" }), -32602),
        ("message/send", json!({}), -32601),
    ] {
        let told = ask(&rig, method, params.clone()).await.ok();
        assert_eq!((&told["error"]["code"], &told["id"]), (&json!(code), &json!(7)), "{method} {params} {told}");
        let data = &told["error"]["data"];
        assert!(data.is_null() || data[0]["@type"] == "type.googleapis.com/google.rpc.ErrorInfo", "{told}");
    }
    let json_type = [("content-type", "application/json")];
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}"#.to_vec();
    for version in ["", "0.3", "2.0", "1.00", "1"] {
        let told = rig.ask("POST", "/a2a", &[json_type[0], ("a2a-version", version)], body.clone()).await.ok();
        assert_eq!(told["error"]["code"], json!(-32009), "{version}");
    }
    for target in ["/a2a?A2A-Version=1.0", "/a2a?a2a-version=1.0.3"] {
        assert_eq!(rig.ask("POST", target, &json_type, body.clone()).await.ok()["error"]["code"], json!(-32001), "{target}");
    }
    for (body, code) in [("{", -32700), ("[]", -32600)] {
        assert_eq!(rig.ask("POST", "/a2a", &HEADERS, body.as_bytes().to_vec()).await.ok()["error"]["code"], json!(code));
    }
    assert_eq!(rig.last(), last);
}

#[tokio::test]
async fn files_come_in_as_artifacts_and_an_agent_can_be_named() {
    let rig = Rig::start().await;
    let parts =
        json!([{ "text": Program(vec![]).text() }, { "raw": "aGVsbG8=", "filename": "a.txt", "mediaType": "text/plain" }]);
    let request = json!({ "messageId": "m1", "role": "ROLE_USER", "metadata": { "agentId": "root" }, "parts": parts });
    let task = result(&rig, "SendMessage", json!({ "message": request })).await["task"].take();
    assert_eq!(task["status"]["state"], json!("TASK_STATE_COMPLETED"));
    let kept = rig.get("/api/artifacts").await.ok()["artifacts"][0].take();
    assert_eq!((&kept["name"], &kept["mediaType"], &kept["bytes"]), (&json!("a.txt"), &json!("text/plain"), &json!(5)));
}

#[tokio::test]
async fn the_answer_is_streamed_in_chunks_that_make_it_up() {
    let chunks = ["w0 ", "w1 ", "w2 ", "w3"];
    let tools = polis_testkit::ScriptedTools::new()
        .with("note", polis_domain::EffectClass::Write, |_, _| polis_domain::CallResult::good("noted"));
    let model = polis_testkit::ScriptedModel::new(move |_| {
        polis_testkit::ScriptedReply::chunks(&chunks).after(std::time::Duration::from_millis(300))
    });
    let rig = Rig::on(std::sync::Arc::new(polis_testkit::MemoryLog::new()), model, tools).await;
    let think = || Op::Think("x".into());
    let note = Op::Call(vec![("note".into(), "{}".into())]);
    for (id, ops, least) in [("m1", vec![think()], 3), ("m2", vec![think(), note, think()], 4)] {
        let told = streamed(&ask(&rig, "SendStreamingMessage", message(id, ops)).await);
        let updates: Vec<_> = told.iter().filter_map(|one| one.get("artifactUpdate")).collect();
        assert!(updates.len() > least, "{told:#?}");
        let mut text = String::new();
        for update in &updates {
            assert_eq!(update["artifact"]["artifactId"], json!("answer"));
            if update["append"] != json!(true) {
                text.clear();
            }
            text.push_str(update["artifact"]["parts"][0]["text"].as_str().unwrap());
        }
        let task = told.iter().find_map(|one| one["task"]["id"].as_str()).unwrap();
        let whole = result(&rig, "GetTask", json!({ "id": task })).await;
        assert_eq!(json!(text), whole["artifacts"][0]["parts"][0]["text"]);
        let ends: Vec<_> = updates.iter().map(|update| update["lastChunk"] == json!(true)).collect();
        assert_eq!(ends.iter().filter(|is_last| **is_last).count(), 1);
        assert_eq!(ends.last(), Some(&true));
        if id == "m1" {
            assert!(updates[1..].iter().all(|update| update["append"] == json!(true)), "nothing is told twice: {updates:#?}");
        }
    }
}
