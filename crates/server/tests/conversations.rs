//! Conversations over HTTP: listed, changed and deleted; and many clients of all protocols side by side.

use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Ruling};
use polis_ports::{DeltaStream, Model, ModelError, ModelRequest};
use polis_server::{Scopes, Security, Token};
use polis_testkit::{MemoryLog, Op, Program, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::support::{Reply, Rig, TOKEN, send, society, token_list};

fn program(ops: Vec<Op>) -> String {
    Program(ops).text()
}

fn say(text: &str) -> String {
    program(vec![Op::Say(text.into())])
}

async fn submit(rig: &Rig, body: Value) -> (String, String) {
    let accepted = rig.post("/api/submit", body).await.ok();
    let text = |field: &str| accepted[field].as_str().unwrap().to_owned();
    rig.ending(&text("taskId").as_str().into()).await;
    (text("conversation"), text("taskId"))
}

async fn listed(rig: &Rig, query: &str) -> Vec<String> {
    let list = rig.get(&format!("/api/conversations{query}")).await.ok();
    let ids = list["conversations"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned());
    ids.collect()
}

#[tokio::test]
async fn requests_start_conversations_or_go_on_in_them() {
    let rig = Rig::start().await;
    assert_eq!(listed(&rig, "").await, Vec::<String>::new(), "root has no messages yet");
    let (first, task) = submit(&rig, json!({ "text": say("1"), "model": "small/one", "strategy": "simple" })).await;
    let (second, _) = submit(&rig, json!({ "text": say("2") })).await;
    assert_ne!(first, second);
    assert_eq!(listed(&rig, "").await, [second.clone(), first.clone()]);
    let (again, more) = submit(&rig, json!({ "text": say("3"), "conversation": first })).await;
    assert_eq!(again, first);
    assert_ne!(more, task, "one more request of the conversation");
    assert_eq!(listed(&rig, "").await, [first.clone(), second.clone()], "the newest message comes first");
    submit(&rig, json!({ "text": say("4"), "conversation": "root" })).await;
    assert_eq!(listed(&rig, "").await, ["root", &first, &second]);

    let one = rig.get(&format!("/api/conversations/{first}")).await.ok();
    assert_eq!((&one["model"], &one["person"], &one["status"]), (&json!("small/one"), &json!("owner"), &json!("idle")));
    assert_eq!(one["strategy"], json!("simple"));
    assert!(one["title"].as_str().unwrap().contains("say"), "{one}");
    let thread = rig.get(&format!("/api/threads/{first}")).await.ok();
    let texts: Vec<_> = thread["messages"].as_array().unwrap().iter().map(|message| message["text"].clone()).collect();
    let told = ["1", "3"].map(|text| [say(text), text.to_owned(), format!("said:{text}")]).concat();
    assert_eq!(texts, told.iter().map(|text| json!(text)).collect::<Vec<_>>(), "nothing of the others");

    let context = json!([{ "sender": "user", "text": "2 + 2?" }, { "sender": "bot", "text": "4" }]);
    let (seeded, _) = submit(&rig, json!({ "text": say("5"), "context": context })).await;
    let thread = rig.get(&format!("/api/threads/{seeded}")).await.ok();
    assert_eq!((&thread["messages"][0]["text"], &thread["messages"][1]["sender"]), (&json!("2 + 2?"), &json!("bot")));
    let view = rig.get(&format!("/api/views/conversation/{seeded}")).await.ok();
    let shown = &view["threads"].as_array().unwrap().iter().find(|thread| thread["id"] == json!(seeded)).unwrap()["messages"];
    assert_eq!(shown["0"]["text"], json!("2 + 2?"), "{view:#}");
    assert_eq!(view["conversations"][0]["id"], json!(seeded));

    // An object is what the application says about the request.
    let about = json!({ "currentResourceId": "doc-7", "selection": "row 3" });
    let told = async |path: &str, body: Value| {
        let accepted = rig.post(path, body).await.ok();
        rig.ending(&accepted["taskId"].as_str().unwrap().into()).await;
        let events = rig.log.events(&society());
        let sent = events.iter().filter_map(|recorded| recorded.event.envelope()).rfind(|envelope| envelope.from.is_user());
        let meta = json!(sent.unwrap().payload.meta);
        assert_eq!(json!(sent.unwrap().task_id), accepted["taskId"]);
        (meta["currentResourceId"].clone(), meta["requestContext"].clone())
    };
    let want = (json!("doc-7"), about.clone());
    assert_eq!(told("/api/submit", json!({ "text": say("6"), "conversation": first, "context": about })).await, want);
    assert_eq!(told("/api/submit", json!({ "text": say("6"), "context": about })).await, want);
    assert_eq!(told("/api/send", json!({ "text": say("6"), "agentId": first, "context": about })).await, want);

    let refused = async |body: Value| rig.post("/api/submit", body).await.problem();
    let long = json!({ "text": "x", "context": { "a": "x".repeat(9_000) } });
    assert_eq!(refused(long).await, (400, "context_too_large".to_owned()));
    assert_eq!(refused(json!({ "text": "x", "context": 7 })).await.0, 400);
    assert_eq!(refused(json!({ "text": "x", "conversation": "c-nothing" })).await, (404, "unknown_conversation".to_owned()));
    let both = json!({ "text": "x", "conversation": first, "roleId": "worker" });
    assert_eq!(refused(both).await, (400, "conversation_started".to_owned()));
    assert_eq!(refused(json!({ "text": "x", "roleId": "nobody" })).await, (404, "unknown_role".to_owned()));
}

#[tokio::test]
async fn conversations_are_renamed_pinned_archived_searched_and_deleted() {
    let rig = Rig::start().await;
    let mut ids = Vec::new();
    for title in ["A trip to Rome", "Taxes 2026", "A trip to Oslo"] {
        let started = rig.post("/api/conversations", json!({ "title": title, "strategy": "simple" })).await.ok();
        assert_eq!((&started["title"], &started["strategy"]), (&json!(title), &json!("simple")));
        ids.push(started["id"].as_str().unwrap().to_owned());
    }
    let [rome, taxes, oslo] = <[String; 3]>::try_from(ids).unwrap();
    assert_eq!(listed(&rig, "").await, [oslo.clone(), taxes.clone(), rome.clone()]);
    assert_eq!(listed(&rig, "?search=TRIP%20rome").await, std::slice::from_ref(&rome));
    let change = async |id: &str, body: Value| rig.post(&format!("/api/conversations/{id}"), body).await;
    change(&rome, json!({ "pinned": true, "title": "Roma", "model": "m/x" })).await.ok();
    assert_eq!(listed(&rig, "").await, [rome.clone(), oslo.clone(), taxes.clone()], "pinned ones come first");
    let page = rig.get("/api/conversations?limit=1").await.ok();
    let rest = listed(&rig, &format!("?after={}", page["next"].as_str().unwrap())).await;
    assert_eq!(rest, [oslo.clone(), taxes.clone()]);
    let unset = change(&rome, json!({ "model": "", "pinned": false })).await.ok();
    assert_eq!((unset.get("model"), &unset["title"], &unset["strategy"]), (None, &json!("Roma"), &json!("simple")));
    change(&taxes, json!({ "archived": true })).await.ok();
    assert_eq!((listed(&rig, "").await.len(), listed(&rig, "?archived=true").await), (2, vec![taxes.clone()]));
    submit(&rig, json!({ "text": say("x"), "conversation": taxes })).await;
    assert_eq!(listed(&rig, "").await[0], taxes, "a message takes it up again");

    rig.post(&format!("/api/conversations/{oslo}/delete"), json!({})).await.ok();
    assert_eq!(listed(&rig, "").await, [taxes, rome.clone()]);
    let gone = rig.get(&format!("/api/conversations/{oslo}")).await.problem();
    assert_eq!(gone, (404, "unknown_conversation".to_owned()));
    assert_eq!(rig.post("/api/conversations/root/delete", json!({})).await.problem(), (409, "root_stays".to_owned()));
    assert_eq!(change(&rome, json!({ "title": " " })).await.problem(), (400, "bad_name".to_owned()));
    assert_eq!(rig.get("/api/conversations?after=x").await.problem(), (400, "bad_cursor".to_owned()));
    let taken = rig.post("/api/conversations", json!({ "id": rome })).await.problem();
    assert_eq!(taken, (409, "name_taken".to_owned()));
}

#[tokio::test]
async fn a_search_finds_words_of_requests_and_answers_and_shows_where_they_are() {
    let rig = Rig::start().await;
    let (first, _) = submit(&rig, json!({ "text": say("heron") })).await;
    let (_, task) = submit(&rig, json!({ "text": say("the  old LIGHTHOUSE"), "conversation": first })).await;
    let (second, _) = submit(&rig, json!({ "text": say("another heron") })).await;
    for n in 0..3 {
        rig.post("/api/conversations", json!({ "title": format!("Hay {n}") })).await.ok();
    }
    let found = async |words: &str| rig.get(&format!("/api/conversations?search={words}")).await.ok();
    let list = found("said:the%20Lighthouse").await;
    assert_eq!(list["conversations"].as_array().unwrap().len(), 1, "{list}");
    let excerpt = json!({ "conversation": first, "taskId": task, "text": "said:the  old LIGHTHOUSE" });
    assert_eq!(list["excerpts"], json!([excerpt]), "only the answer says it like this");
    assert_eq!(listed(&rig, "?search=heron%20lighthouse").await, std::slice::from_ref(&first), "each word is somewhere in it");
    assert_eq!(listed(&rig, "?search=heron").await, [second, first.clone()]);
    assert_eq!(found("hay%202").await.get("excerpts"), None, "a title needs no excerpt");
    assert_eq!(listed(&rig, "?search=ostrich").await, Vec::<String>::new());
    let page = rig.get("/api/conversations?search=heron&limit=1").await.ok();
    assert_eq!(
        listed(&rig, &format!("?search=heron&after={}", page["next"].as_str().unwrap())).await,
        std::slice::from_ref(&first)
    );

    rig.post(&format!("/api/conversations/{first}/erase"), json!({})).await.ok();
    assert_eq!(listed(&rig, "?search=lighthouse").await, Vec::<String>::new());
}

/// Answers nobody before all have asked.
struct Together {
    inner: ScriptedModel,
    barrier: Barrier,
}

#[async_trait]
impl Model for Together {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        self.barrier.wait().await;
        self.inner.stream(request).await
    }
}

#[tokio::test]
async fn clients_of_all_protocols_are_answered_side_by_side_while_an_approval_is_open() {
    const CLIENTS: usize = 64;
    let model = Together { inner: ScriptedModel::new(|_| ScriptedReply::text("a thought")), barrier: Barrier::new(CLIENTS) };
    let tools = ScriptedTools::new().with("pay", EffectClass::Write, |_, _| CallResult::good("paid"));
    let rig = Rig::on(Arc::new(MemoryLog::new()), model, tools.ruled(|_, _| Ruling::Ask("it costs".to_owned()))).await;
    let open = program(vec![Op::Call(vec![("pay".into(), "{}".into())])]);
    rig.post("/api/submit", json!({ "text": open })).await.ok();
    let text = program(vec![Op::Think("x".into())]);
    let client = async |n: usize| {
        let message = json!({ "role": "user", "content": text });
        match n % 4 {
            0 => rig.post("/v1/chat/completions", json!({ "model": "polis", "messages": [message] })).await,
            1 => {
                let run = json!({ "threadId": format!("t{n}"), "runId": "r", "messages": [{ "id": "u", "role": "user", "content": text }] });
                rig.post("/agui/root", run).await
            }
            2 => {
                let message = json!({ "messageId": format!("m{n}"), "role": "ROLE_USER", "parts": [{ "text": text }] });
                let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": { "message": message } });
                let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
                rig.ask("POST", "/a2a", &headers, body.to_string().into_bytes()).await
            }
            _ => {
                let arguments = json!({ "text": text, "waitSeconds": 60 });
                let call = json!({ "jsonrpc": "2.0", "id": n, "method": "tools/call",
                    "params": { "name": "submit", "arguments": arguments } });
                rig.post("/mcp", call).await
            }
        }
    };
    let all = futures_util::future::join_all((0..CLIENTS).map(client));
    let replies = tokio::time::timeout(std::time::Duration::from_secs(60), all).await.expect("somebody waits for another");
    for (n, reply) in replies.iter().enumerate() {
        let text = String::from_utf8_lossy(&reply.body);
        assert!(reply.status == 200 && text.contains("a thought"), "client {n}: {text}");
    }
    assert_eq!(rig.get("/api/approvals").await.ok()["approvals"].as_array().unwrap().len(), 1, "it still waits");
    assert_eq!(listed(&rig, "").await.len(), CLIENTS + 1);
}

#[tokio::test]
async fn the_same_words_of_two_persons_are_two_conversations() {
    let (file, token) = (token_list(), Token::of_bits([9; 32]));
    file.add("ann", None, Scopes::ALL, &token).await.unwrap();
    let rig = Rig::behind(Security { tokens: Some(file), ..Security::default() }).await;
    let user = |text: &str| json!({ "role": "user", "content": say(text) });
    let chat = async |secret: &str, messages: Vec<Value>| {
        let bearer = format!("Bearer {secret}");
        let headers = [("content-type", "application/json"), ("authorization", &*bearer)];
        let body = json!({ "model": "polis", "messages": messages }).to_string().into_bytes();
        Reply::of(send(rig.address, "POST", "/v1/chat/completions", &headers, body).await).await.ok()
    };
    let assistant = json!({ "role": "assistant", "content": "said:1" });
    chat(TOKEN, vec![user("1")]).await;
    chat(token.as_str(), vec![user("1"), assistant.clone(), user("2")]).await;
    let list = rig.get("/api/conversations").await.ok();
    let mut persons: Vec<_> = list["conversations"].as_array().unwrap().iter().map(|one| one["person"].clone()).collect();
    persons.sort_by_key(Value::to_string);
    assert_eq!(persons, ["ann", "owner"]);
    chat(
        token.as_str(),
        vec![user("1"), assistant.clone(), user("2"), json!({ "role": "assistant", "content": "said:2" }), user("3")],
    )
    .await;
    assert_eq!(listed(&rig, "").await.len(), 2, "each goes on with their own");
}
