//! The society as an MCP server, in both generations of the protocol.

use http_body_util::BodyExt;
use polis_domain::Event;
use polis_server::{Scope, Security, Token};
use polis_testkit::{Op, Program};
use serde_json::{Value, json};

use crate::support::{Reply, Rig, TOKEN, send, token_list};

const MODERN: &str = "2026-07-28";

/// A request of the older generation.
async fn old(rig: &Rig, method: &str, params: Value) -> Value {
    let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let reply = rig.ask("POST", "/mcp", &headers, body.to_string().into_bytes()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    last(&reply)
}

/// A request of the newer one, from a client that can show forms.
async fn new(rig: &Rig, method: &str, mut params: Value) -> Reply {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        "progressToken": "p",
    });
    let name = params.get("name").or(params.get("uri")).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", method),
    ];
    if !name.is_empty() {
        headers.push(("mcp-name", &name));
    }
    let body = json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params });
    rig.ask("POST", "/mcp", &headers, body.to_string().into_bytes()).await
}

/// All messages of an answer, be it one or a stream.
fn messages(reply: &Reply) -> Vec<Value> {
    if reply.content_type != "text/event-stream" {
        return vec![reply.json()];
    }
    let text = String::from_utf8(reply.body.clone()).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("data: ")).map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn last(reply: &Reply) -> Value {
    messages(reply).pop().unwrap()
}

fn program(ops: Vec<Op>) -> String {
    Program(ops).text()
}

#[tokio::test]
async fn a_request_is_submitted_told_about_and_answered() {
    let rig = Rig::start().await;
    let begun = old(&rig, "initialize", json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {} })).await;
    assert_eq!(begun["result"]["protocolVersion"], json!("2025-06-18"));
    assert_eq!(begun["result"]["serverInfo"]["name"], json!("polis"));
    let unknown = old(&rig, "initialize", json!({ "protocolVersion": "1.0", "capabilities": {}, "clientInfo": {} })).await;
    assert_eq!(unknown["result"]["protocolVersion"], json!("2025-11-25"));

    let text = program(vec![Op::Think("hm".into()), Op::Call(vec![("note".into(), "{}".into())])]);
    let reply = new(&rig, "tools/call", json!({ "name": "submit", "arguments": { "text": text } })).await;
    let told = messages(&reply);
    let (result, notes) = told.split_last().unwrap();
    let words: Vec<_> = notes.iter().map(|note| note["params"]["message"].as_str().unwrap()).collect();
    assert_eq!(words, ["root asks its model", "root calls note"]);
    let places: Vec<_> = notes.iter().map(|note| &note["params"]["progress"]).collect();
    assert_eq!(places, [&json!(1), &json!(2)], "progress grows");
    let result = &result["result"];
    assert_eq!((&result["resultType"], &result["isError"]), (&json!("complete"), &json!(false)));
    let told = &result["structuredContent"];
    assert_eq!((&told["status"], &told["answer"]), (&json!("done"), &json!("a thought noted")));
    assert_eq!(result["content"][0]["text"].as_str().unwrap(), told.to_string());

    let failed = old(
        &rig,
        "tools/call",
        json!({ "name": "submit", "arguments": { "text": program(vec![Op::Fail("bad_luck".into())]) } }),
    );
    let failed = failed.await["result"].take();
    assert_eq!((&failed["isError"], &failed["structuredContent"]["status"]), (&json!(true), &json!("failed")));
    assert_eq!(failed["structuredContent"]["failure"]["code"], json!("bad_luck"));
}

#[tokio::test]
async fn each_result_has_the_shape_that_its_tool_promises() {
    let rig = Rig::start().await;
    let listed = old(&rig, "tools/list", json!({})).await["result"]["tools"].take();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["submit", "send", "status", "approve", "cancel"]);
    let text = program(vec![Op::Say("hello".into()), Op::Approve("really?".into())]);
    let submitted = old(&rig, "tools/call", json!({ "name": "submit", "arguments": { "text": text } })).await;
    let task = submitted["result"]["structuredContent"]["taskId"].clone();
    for (tool, arguments) in [
        ("send", json!({ "agentId": "root", "text": program(vec![]), "waitSeconds": 0 })),
        ("status", json!({})),
        ("status", json!({ "taskId": task })),
        ("cancel", json!({ "taskId": task, "reason": "enough" })),
    ] {
        let result = old(&rig, "tools/call", json!({ "name": tool, "arguments": arguments })).await["result"].take();
        let spec = listed.as_array().unwrap().iter().find(|spec| spec["name"] == tool).unwrap();
        let told = result["structuredContent"].as_object().unwrap_or_else(|| panic!("{tool}: {result}"));
        let promised = &spec["outputSchema"];
        for name in promised["required"].as_array().unwrap() {
            assert!(told.contains_key(name.as_str().unwrap()), "{tool}: {name}");
        }
        assert!(told.keys().all(|name| promised["properties"].get(name).is_some()), "{tool}: {told:?}");
    }
    let over = old(&rig, "tools/call", json!({ "name": "status", "arguments": { "taskId": task } })).await;
    assert_eq!(over["result"]["structuredContent"]["tasks"][0]["status"], json!("cancelled"));
}

#[tokio::test]
async fn each_tool_takes_what_its_operation_takes_and_nothing_else() {
    let rig = Rig::start().await;
    let listed = old(&rig, "tools/list", json!({})).await["result"]["tools"].take();
    let check = |tool: &str, fields: &[&str], required: &[&str]| {
        let spec = listed.as_array().unwrap().iter().find(|spec| spec["name"] == tool).unwrap();
        let schema = &spec["inputSchema"];
        let mut names: Vec<_> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, fields, "{tool}");
        assert_eq!((&schema["required"], &schema["additionalProperties"]), (&json!(required), &json!(false)), "{tool}");
        assert!(!schema.to_string().contains("$ref"), "{tool}: {schema}");
    };
    let submit = [
        "artifacts",
        "context",
        "conversation",
        "model",
        "planApproval",
        "roleId",
        "settings",
        "strategy",
        "text",
        "waitSeconds",
    ];
    check("submit", &submit, &["text"]);
    check(
        "send",
        &["agentId", "artifacts", "context", "planApproval", "settings", "taskId", "text", "waitSeconds"],
        &["agentId", "text"],
    );
    check("status", &["taskId", "waitSeconds"], &[]);
    let decision = ["always", "answer", "approved", "arguments", "id", "outcome", "reason", "result", "where"];
    check("approve", &decision, &["id"]);
    check("cancel", &["reason", "taskId", "turn"], &["taskId"]);
    assert!(listed[0]["inputSchema"]["properties"]["strategy"].to_string().contains("template"), "{listed}");
    assert_eq!(listed[0]["inputSchema"]["properties"]["waitSeconds"]["default"], json!(50.0));

    let before = rig.last();
    for (tool, arguments) in [
        ("status", json!({ "task": "t" })),
        ("status", json!({ "taskId": 7 })),
        ("submit", json!({ "text": "x", "strategy": "other" })),
        ("submit", json!({ "text": "x", "waitSeconds": "long" })),
        ("cancel", json!({ "taskId": "t", "turn": "first" })),
        ("cancel", json!({ "reason": "none named" })),
        ("approve", json!({ "id": "1.0", "outcome": "perhaps" })),
    ] {
        let result = old(&rig, "tools/call", json!({ "name": tool, "arguments": arguments })).await["result"].take();
        assert_eq!(result["isError"], json!(true), "{tool} {arguments}: {result}");
        assert!(result["content"][0]["text"].as_str().unwrap().ends_with("(bad_arguments)"), "{tool}: {result}");
    }
    assert_eq!(rig.last(), before, "nothing was begun");
}

#[tokio::test]
async fn a_client_without_forms_hears_that_a_person_is_waited_for_and_brings_their_word() {
    let rig = Rig::start().await;
    let text = program(vec![Op::Approve("delete it?".into())]);
    let waiting = old(&rig, "tools/call", json!({ "name": "submit", "arguments": { "text": text } })).await["result"].take();
    let told = &waiting["structuredContent"];
    assert_eq!((&told["status"], &waiting["isError"]), (&json!("needs_person"), &json!(false)));
    assert_eq!(told["approvals"][0]["question"], json!("delete it?"));
    assert!(told["hint"].as_str().unwrap().contains("approve"), "{told}");
    let id = &told["approvals"][0]["id"];
    let approved = old(&rig, "tools/call", json!({ "name": "approve", "arguments": { "id": id, "approved": true } })).await;
    assert_eq!(approved["result"]["structuredContent"]["id"], *id);
    let arguments = json!({ "taskId": told["taskId"], "waitSeconds": 60 });
    let over = old(&rig, "tools/call", json!({ "name": "status", "arguments": arguments })).await;
    assert_eq!(over["result"]["structuredContent"]["tasks"][0]["answer"], json!("approved"));
    let twice = old(&rig, "tools/call", json!({ "name": "approve", "arguments": { "id": id, "approved": true } })).await;
    assert_eq!(twice["result"]["isError"], json!(true));
    assert!(twice["result"]["content"][0]["text"].as_str().unwrap().ends_with("(not_open)"), "{twice}");
}

#[tokio::test]
async fn a_client_with_forms_is_asked_and_nothing_is_submitted_twice() {
    let rig = Rig::start().await;
    let arguments = json!({ "text": program(vec![Op::Approve("first?".into()), Op::Approve("second?".into())]) });
    let params = json!({ "name": "submit", "arguments": arguments });
    let mut asked = last(&new(&rig, "tools/call", params.clone()).await)["result"].take();
    let state = asked["requestState"].clone();
    for (question, said) in [("first?", json!({ "approved": true })), ("second?", json!({ "approved": false, "reason": "no" }))]
    {
        assert_eq!(asked["resultType"], json!("input_required"), "{asked}");
        assert_eq!(asked["requestState"], state);
        let requests = asked["inputRequests"].as_object().unwrap();
        let (id, request) = requests.iter().next().unwrap();
        assert_eq!((requests.len(), &request["method"]), (1, &json!("elicitation/create")));
        assert!(request["params"]["message"].as_str().unwrap().starts_with(question), "{request}");
        let mut again = params.clone();
        again["requestState"] = state.clone();
        again["inputResponses"] = json!({ (id): { "action": "accept", "content": said } });
        asked = last(&new(&rig, "tools/call", again).await)["result"].take();
    }
    assert_eq!(asked["structuredContent"]["answer"], json!("approved denied:no"));
    assert_eq!(asked["structuredContent"]["taskId"], state);
    let envelopes = rig.society.messages(&state.as_str().unwrap().into()).await.unwrap();
    assert_eq!(envelopes.iter().filter(|(_, envelope)| envelope.from.is_user()).count(), 1);

    let mut forged = params;
    forged["requestState"] = json!("of nobody");
    let refused = last(&new(&rig, "tools/call", forged).await);
    assert!(refused["result"]["content"][0]["text"].as_str().unwrap().ends_with("(unknown_task)"), "{refused}");
}

/// A client of the older generation that shows forms.
struct FormClient<'a> {
    rig: &'a Rig,
    session: String,
}

/// The stream of a call of it.
struct CallStream {
    body: hyper::body::Incoming,
    text: String,
}

impl<'a> FormClient<'a> {
    async fn initialize(rig: &'a Rig, capabilities: Value) -> Self {
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {} });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let reply = rig.post("/mcp", message).await;
        Self { rig, session: reply.headers["mcp-session-id"].to_str().unwrap().to_owned() }
    }

    async fn send(&self, session: &str, message: Value) -> hyper::Response<hyper::body::Incoming> {
        let bearer = format!("Bearer {TOKEN}");
        let accept = ("accept", "application/json, text/event-stream");
        let headers = [("content-type", "application/json"), accept, ("authorization", &*bearer), ("mcp-session-id", session)];
        send(self.rig.address, "POST", "/mcp", &headers, message.to_string().into_bytes()).await
    }

    async fn submit(&self, ops: Vec<Op>) -> CallStream {
        let params = json!({ "name": "submit", "arguments": { "text": program(ops) } });
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        CallStream { body: self.send(&self.session, call).await.into_body(), text: String::new() }
    }

    async fn answer(&self, session: &str, id: &Value, response: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "id": id });
        message.as_object_mut().unwrap().extend(response.as_object().unwrap().clone());
        assert_eq!(self.send(session, message).await.status(), 202);
    }
}

impl CallStream {
    async fn next(&mut self) -> Value {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.text = rest.to_owned();
                match data {
                    Some(data) => return serde_json::from_str(&data).unwrap(),
                    None => continue,
                }
            }
            let frame = self.body.frame().await.expect("the stream goes on").unwrap();
            self.text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
    }
}

#[tokio::test]
async fn a_client_of_the_older_generation_with_forms_is_asked_within_its_call() {
    let rig = Rig::start().await;
    let client = FormClient::initialize(&rig, json!({ "elicitation": {} })).await;
    let ops = vec![Op::Approve("first?".into()), Op::Approve("second?".into()), Op::Approve("third?".into())];
    let mut call = client.submit(ops).await;
    let accept = |content: Value| json!({ "result": { "action": "accept", "content": content } });
    for (question, response) in
        [("first?", accept(json!({ "approved": true }))), ("second?", json!({ "result": { "action": "decline" } }))]
    {
        let asked = call.next().await;
        assert_eq!(asked["method"], json!("elicitation/create"), "{asked}");
        let params = &asked["params"];
        assert!(params["message"].as_str().unwrap().starts_with(question), "{asked}");
        assert_eq!((&params["requestedSchema"]["type"], params.get("mode")), (&json!("object"), None));
        // Answers of others, and to other questions, count for nothing.
        client.answer("other-session", &asked["id"], accept(json!({ "approved": false }))).await;
        client.answer(&client.session, &json!("other"), accept(json!({ "approved": false }))).await;
        client.answer(&client.session, &asked["id"], response).await;
    }
    // The third one is decided elsewhere: the form is withdrawn.
    let asked = call.next().await;
    let waiting = rig.get("/api/approvals").await.ok();
    let id = waiting["approvals"][0]["id"].as_str().unwrap().to_owned();
    rig.post(&format!("/api/approvals/{id}"), json!({ "approved": true })).await.ok();
    let withdrawn = call.next().await;
    assert_eq!((&withdrawn["method"], &withdrawn["params"]["requestId"]), (&json!("notifications/cancelled"), &asked["id"]));
    let result = call.next().await;
    assert_eq!((&result["id"], &result["result"]["structuredContent"]["status"]), (&json!(7), &json!("done")), "{result}");
    let answer = &result["result"]["structuredContent"]["answer"];
    assert_eq!(answer, &json!("approved denied:the person declined approved"));
}

#[tokio::test]
async fn a_form_that_is_dismissed_or_not_understood_leaves_the_decision_open() {
    let rig = Rig::start().await;
    let client = FormClient::initialize(&rig, json!({ "elicitation": { "form": {} } })).await;
    let not_understood = json!({ "error": { "code": -32601, "message": "what?" } });
    for response in [json!({ "result": { "action": "cancel" } }), not_understood] {
        let mut call = client.submit(vec![Op::Approve("really?".into())]).await;
        let asked = call.next().await;
        client.answer(&client.session, &asked["id"], response).await;
        let told = call.next().await["result"]["structuredContent"].take();
        assert_eq!((&told["status"], &told["approvals"][0]["question"]), (&json!("needs_person"), &json!("really?")));
        rig.post(&format!("/api/approvals/{}", told["approvals"][0]["id"].as_str().unwrap()), json!({ "approved": true }))
            .await
            .ok();
    }
    // A client that shows only pages, or nothing, is not sent a form.
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } })] {
        let client = FormClient::initialize(&rig, capabilities).await;
        let told = client.submit(vec![Op::Approve("really?".into())]).await.next().await["result"].take();
        let told = &told["structuredContent"];
        assert_eq!(told["status"], json!("needs_person"), "{told}");
        rig.post(&format!("/api/approvals/{}", told["approvals"][0]["id"].as_str().unwrap()), json!({ "approved": true }))
            .await
            .ok();
    }
}

#[tokio::test]
async fn a_cancelled_request_calls_its_task_off_and_a_closed_stream_does_not() {
    let rig = Rig::start().await;
    let text = program(vec![Op::Sleep(3_600_000)]);
    let bearer = format!("Bearer {TOKEN}");
    let session = ("mcp-session-id", "s1");
    let headers = [("content-type", "application/json"), ("accept", "text/event-stream"), ("authorization", &*bearer), session];
    let submit = |id: u32| {
        let params = json!({ "name": "submit", "arguments": { "text": text, "waitSeconds": 3600 } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string().into_bytes()
    };
    // Waits for so many messages of the person.
    let begun = async |count: usize| {
        let seen = std::cell::Cell::new(0);
        let is_message = |event: &Event| event.envelope().is_some_and(|envelope| envelope.from.is_user());
        rig.until(|recorded| {
            seen.set(seen.get() + usize::from(is_message(&recorded.event)));
            seen.get() == count
        })
        .await;
    };
    // The stream is dropped; the work goes on.
    let closed = send(rig.address, "POST", "/mcp", &headers, submit(1)).await;
    begun(1).await;
    drop(closed);
    let open = send(rig.address, "POST", "/mcp", &headers, submit(2)).await;
    begun(2).await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    for session in [("mcp-session-id", "s2"), session] {
        let headers = [("content-type", "application/json"), session];
        assert_eq!(rig.ask("POST", "/mcp", &headers, cancel.to_string().into_bytes()).await.status, 202);
    }
    let told = Reply::of(open).await;
    assert_eq!(messages_of(&told), 0, "whoever cancels is told nothing more: {told:?}");
    let under_way = old(&rig, "tools/call", json!({ "name": "status", "arguments": {} })).await;
    assert_eq!(under_way["result"]["structuredContent"]["tasks"].as_array().unwrap().len(), 1, "{under_way}");
}

#[tokio::test]
async fn a_request_is_called_off_by_the_token_that_made_it_and_by_no_other() {
    let (file, token) = (token_list(), Token::of_bits([9; 32]));
    file.add("reader", Some("owner"), [Scope::Read].into_iter().collect(), &token).await.unwrap();
    let rig = Rig::behind(Security { tokens: Some(file), ..Security::default() }).await;
    let cancel = async |bearer: &str| {
        let headers = [("content-type", "application/json"), ("mcp-session-id", "s1"), ("authorization", bearer)];
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
        assert_eq!(send(rig.address, "POST", "/mcp", &headers, note.to_string().into_bytes()).await.status(), 202);
    };
    let (owner, reader) = (format!("Bearer {TOKEN}"), format!("Bearer {}", token.as_str()));
    let json = ("content-type", "application/json");
    let headers = [json, ("accept", "text/event-stream"), ("mcp-session-id", "s1"), ("authorization", &*owner)];
    let params = json!({ "name": "submit", "arguments": { "text": program(vec![Op::Sleep(3_600_000)]), "waitSeconds": 3600 } });
    let submit = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let open = send(rig.address, "POST", "/mcp", &headers, submit.to_string().into_bytes()).await;
    rig.until(|recorded| matches!(recorded.event, Event::EffectStarted { .. })).await;
    cancel(&reader).await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert_eq!(rig.get("/api/tasks").await.ok()["tasks"].as_array().unwrap().len(), 1, "it goes on");
    cancel(&owner).await;
    assert_eq!(messages_of(&Reply::of(open).await), 0);
    assert_eq!(rig.get("/api/tasks").await.ok()["tasks"], json!([]));
}

fn messages_of(reply: &Reply) -> usize {
    String::from_utf8_lossy(&reply.body).lines().filter(|line| line.starts_with("data: ")).count()
}

#[tokio::test]
async fn threads_tasks_and_artifacts_are_resources() {
    let rig = Rig::start().await;
    let (task, envelope) =
        rig.run(vec![Op::Say("hello".into()), Op::Units(vec![Program(vec![])]), Op::Keep("kept words".into())]).await;
    let listed = old(&rig, "resources/list", json!({})).await["result"]["resources"].take();
    let listed = listed.as_array().unwrap();
    assert!(listed.iter().any(|resource| resource["uri"] == "polis://threads/root"), "{listed:?}");
    assert!(listed.iter().any(|resource| resource["name"].as_str().unwrap().starts_with("sub_")), "{listed:?}");
    let read = async |uri: &str| old(&rig, "resources/read", json!({ "uri": uri })).await;
    let thread = read("polis://threads/root").await["result"]["contents"][0].take();
    assert_eq!((&thread["uri"], &thread["mimeType"]), (&json!("polis://threads/root"), &json!("application/json")));
    let told: Value = serde_json::from_str(thread["text"].as_str().unwrap()).unwrap();
    assert!(told["messages"][1].to_string().contains("hello"), "{told}");
    let below = read("polis://threads/root?path=messages%5B2%5D.meta._thread").await;
    assert!(below["result"]["contents"][0]["text"].is_string(), "{below}");
    let about = read(&format!("polis://tasks/{task}")).await["result"]["contents"][0].take();
    assert!(about["text"].as_str().unwrap().contains(&*envelope.payload.text), "{about}");
    let kept = rig.get("/api/artifacts").await.ok()["artifacts"][0]["id"].take();
    let kept = read(&format!("polis://artifacts/{}", kept.as_str().unwrap())).await["result"]["contents"][0].take();
    assert_eq!(kept["text"], json!("kept words"));
    for uri in ["polis://threads/nobody", "polis://tasks/none", "polis://artifacts/1", "file:///etc/passwd", "polis://x"] {
        assert_eq!(read(uri).await["error"]["code"], json!(-32002), "{uri}");
        let modern = last(&new(&rig, "resources/read", json!({ "uri": uri })).await);
        assert_eq!((&modern["error"]["code"], &modern["error"]["data"]["uri"]), (&json!(-32602), &json!(uri)));
    }
    let templates = old(&rig, "resources/templates/list", json!({})).await["result"]["resourceTemplates"].take();
    assert_eq!(templates.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn what_is_no_request_of_the_protocol_is_answered_by_it() {
    let rig = Rig::start().await;
    let last_event = rig.last();
    let json_type = [("content-type", "application/json")];
    for (body, status, code) in [
        ("{", 400, -32700),
        ("[]", 400, -32600),
        ("{\"jsonrpc\":\"1.0\"}", 400, -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nothing\"}", 200, -32601),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", 200, -32602),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}", 200, -32602),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"submit\",\"arguments\":7}}",
            200,
            -32602,
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/list\"}", 200, -32601),
    ] {
        let reply = rig.ask("POST", "/mcp", &json_type, body.as_bytes().to_vec()).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (status, &json!(code)), "{body}");
    }
    for (arguments, code) in [
        (json!({}), "(bad_arguments)"),
        (json!({ "text": "" }), "(empty_text)"),
        (json!({ "text": "x", "other": 1 }), "(bad_arguments)"),
        (json!({ "text": "x", "waitSeconds": -1 }), "(bad_arguments)"),
    ] {
        let told = old(&rig, "tools/call", json!({ "name": "submit", "arguments": arguments })).await["result"].take();
        assert_eq!(told["isError"], json!(true));
        assert!(told["content"][0]["text"].as_str().unwrap().ends_with(code), "{told}");
    }
    assert_eq!(new(&rig, "nothing", json!({})).await.status, 404);
    assert_eq!(new(&rig, "initialize", json!({})).await.status, 404);
    assert_eq!(rig.ask("GET", "/mcp", &[], Vec::new()).await.status, 405);
    let found = new(&rig, "server/discover", json!({})).await.ok()["result"].take();
    assert_eq!((&found["supportedVersions"][0], &found["cacheScope"]), (&json!(MODERN), &json!("private")));
    assert_eq!(rig.last(), last_event, "nothing was asked of the society");
}
