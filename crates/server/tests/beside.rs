//! Several clients at one society: each hears its own answer word for word, and decides nothing of the others' requests.

use std::sync::Arc;

use polis_domain::{CallResult, EffectClass, Event, Ruling, TaskId};
use polis_engine::Options;
use polis_server::Security;
use polis_testkit::{MemoryLog, Op, Program, ScriptedModel, ScriptedReply, ScriptedTools, worker_role};
use serde_json::{Value, json};

use crate::support::{Reply, Rig};

const CHAT: &str = "/v1/chat/completions";

fn program(ops: Vec<Op>) -> String {
    Program(ops).text()
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn note() -> ScriptedTools {
    ScriptedTools::new().with("note", EffectClass::Write, |_, _| CallResult::good("noted"))
}

/// A society where paying needs a person's word.
async fn dear() -> Rig {
    let tools = ScriptedTools::new().with("pay", EffectClass::Write, |_, _| CallResult::good("paid"));
    let tools = tools.ruled(|_, _| Ruling::Ask("it costs".to_owned()));
    Rig::on(Arc::new(MemoryLog::new()), ScriptedModel::new(|_| ScriptedReply::text("a thought")), tools).await
}

/// The data of a stream, one after another.
fn data(reply: &Reply) -> Vec<Value> {
    assert_eq!((reply.status, &*reply.content_type), (200, "text/event-stream"), "{reply:?}");
    let text = String::from_utf8(reply.body.clone()).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

fn content(reply: &Value) -> String {
    reply["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
}

/// A run of a thread that says this.
fn run(thread: &str, id: &str, text: &str) -> Value {
    json!({ "threadId": thread, "runId": id, "messages": [{ "id": "u", "role": "user", "content": text }] })
}

fn resume(thread: &str, id: &str, interrupt: &str, approved: bool) -> Value {
    let answer = json!({ "interruptId": interrupt, "status": "resolved", "payload": { "approved": approved } });
    json!({ "threadId": thread, "runId": id, "messages": [], "resume": [answer] })
}

async fn told(rig: &Rig, body: Value) -> Vec<Value> {
    let posted = tokio::time::timeout(std::time::Duration::from_secs(60), rig.post("/agui/polis", body));
    data(&posted.await.expect("the run never ends"))
}

fn said(events: &[Value]) -> String {
    let is_text = |event: &&Value| event["type"] == json!("TEXT_MESSAGE_CONTENT") && event.get("subagentRunId").is_none();
    events.iter().filter(is_text).map(|event| event["delta"].as_str().unwrap()).collect()
}

/// A conversation whose agent waits for a tool of its client: what the client sees of it.
async fn abandoned(rig: &Rig) -> (Value, Value) {
    abandoned_at(rig, "polis").await
}

async fn abandoned_at(rig: &Rig, model: &str) -> (Value, Value) {
    let ask = user(&program(vec![Op::Call(vec![("weather".into(), "{\"city\":\"Bo\"}".into())])]));
    let tools = json!([{ "type": "function", "function": { "name": "weather" } }]);
    let body = json!({ "model": model, "messages": [ask], "tools": tools, "metadata": { "chat_id": "a" } });
    let message = rig.post(CHAT, body).await.ok()["choices"][0]["message"].take();
    assert!(message["tool_calls"].is_array(), "{message}");
    (ask, message)
}

async fn status(rig: &Rig, task: &str) -> Value {
    rig.get(&format!("/api/tasks/{task}")).await.ok()
}

fn tasks(rig: &Rig) -> Vec<TaskId> {
    let events = rig.log.events(&crate::support::society());
    let envelopes = events.iter().filter_map(|recorded| recorded.event.envelope());
    envelopes.filter(|envelope| envelope.from.is_user()).map(|envelope| envelope.task_id.clone()).collect()
}

#[tokio::test]
async fn chunks_joined_are_the_answer_however_many_they_are() {
    for chunks in [&["echo"][..], &["echo: ", "plain"], &["let x", " = ", "{\n", "\n  1 ", "};", " "]] {
        let whole = chunks.concat();
        let line: Vec<&'static str> = chunks.to_vec();
        let model = ScriptedModel::new(move |_| ScriptedReply::chunks(&line));
        let rig = Rig::on(Arc::new(MemoryLog::new()), model, note()).await;
        let think = || Op::Think("x".into());
        let several = vec![think(), Op::Call(vec![("note".into(), "{}".into())]), think()];
        let answer = format!("{whole} noted {whole}");
        for (ops, want) in [(vec![think()], whole.clone()), (several, [&*whole, &*whole, &*answer].join("\n\n"))] {
            let body = json!({ "model": "polis", "stream": true, "messages": [user(&program(ops.clone()))] });
            let chunks = data(&rig.post(CHAT, body).await);
            let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
            assert_eq!(text, want);
            let body = json!({ "model": "polis", "stream": true, "input": program(ops.clone()) });
            let events = data(&rig.post("/v1/responses", body).await);
            let of = |kind: &str, field: &str| -> String {
                let of = events.iter().filter(|event| event["type"] == json!(kind));
                of.filter_map(|event| event[field].as_str()).collect()
            };
            assert_eq!(of("response.output_text.delta", "delta"), of("response.output_text.done", "text"));
            assert!(of("response.output_text.done", "text").ends_with(want.rsplit("\n\n").next().unwrap()));
            let told = told(&rig, run(&format!("t{}", rig.last()), "r", &program(ops))).await;
            assert!(said(&told).ends_with(told.last().unwrap()["result"]["answer"].as_str().unwrap()), "{told:#?}");
        }
    }
}

#[tokio::test]
async fn words_of_one_conversation_are_never_the_result_of_anothers_tool() {
    let rig = Rig::on(Arc::new(MemoryLog::new()), ScriptedModel::new(|_| ScriptedReply::text("")), note()).await;
    let (ask, message) = abandoned(&rig).await;
    let [first, second] = ["1", "2"].map(|text| user(&program(vec![Op::Say(text.into())])));
    let said = rig.post(CHAT, json!({ "model": "polis", "messages": [first] })).await.ok();
    assert_eq!(content(&said), "said:1", "one client waits for no other");
    let assistant = json!({ "role": "assistant", "content": content(&said) });
    let more = rig.post(CHAT, json!({ "model": "polis", "messages": [first, assistant, second] })).await.ok();
    assert_eq!(content(&more), "said:2");
    let sent = tasks(&rig);
    assert_eq!((sent.len(), &sent[1]), (3, &sent[2]), "what was said is said to the agent");
    let result = json!({ "role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "rain" });
    let body = json!({ "model": "polis", "messages": [ask, message, result], "metadata": { "chat_id": "a" } });
    assert_eq!(content(&rig.post(CHAT, body).await.ok()), "rain");
    rig.ending(&sent[1]).await;
}

#[tokio::test]
async fn a_client_approves_nothing_of_anothers_request() {
    let rig = dear().await;
    let text = program(vec![Op::Call(vec![("pay".into(), "{\"to\":\"A-secret\"}".into())])]);
    let first = rig.post("/api/submit", json!({ "conversation": "root", "text": text })).await.ok()["taskId"]
        .as_str()
        .unwrap()
        .to_owned();
    rig.until(|recorded| matches!(recorded.event, Event::EffectStarted { .. })).await;
    let waits = rig.get("/api/approvals").await.ok()["approvals"][0]["id"].as_str().unwrap().to_owned();
    let hello = program(vec![Op::Say("b".into())]);
    let other = told(&rig, run("b", "r1", &hello)).await;
    assert_eq!(said(&other), "said:b");
    assert!(!json!(other).to_string().contains("A-secret"), "{other:#?}");
    let taken = told(&rig, resume("b", "r2", &waits, true)).await;
    assert_eq!(taken.last().unwrap()["code"], json!("unknown_interrupt"), "{taken:#?}");
    for word in ["approve".to_owned(), format!("approve {waits}"), "yes".to_owned()] {
        let ask = user(&program(vec![Op::Say(word.clone())]));
        let assistant = json!({ "role": "assistant", "content": "…" });
        rig.post(CHAT, json!({ "model": "polis", "messages": [ask] })).await.ok();
        rig.post(CHAT, json!({ "model": "polis", "messages": [ask, assistant, user(&word)] })).await;
    }
    assert_eq!(rig.get("/api/approvals").await.ok()["approvals"].as_array().unwrap().len(), 1, "it still waits");
    rig.post(&format!("/api/approvals/{waits}"), json!({ "approved": true })).await.ok();
    rig.ending(&first.as_str().into()).await;
    assert_eq!(said(&told(&rig, run("b", "r1", &hello)).await), "said:b");
}

#[tokio::test]
async fn a_call_that_its_client_never_answers_ends_by_itself_and_the_next_request_is_done() {
    let patience = std::time::Duration::from_millis(500);
    let options = Options { client_patience: patience, ..Options::new(7, worker_role()) };
    let model = || ScriptedModel::new(|_| ScriptedReply::text(""));
    let log = Arc::new(MemoryLog::new());
    let first = Rig::opened(log.clone(), model(), note(), Security::default(), options.clone()).await;
    let (ask, message) = abandoned(&first).await;
    let open = first.get("/api/approvals").await.ok()["approvals"][0].take();
    assert!(open["deadline"].is_u64(), "whoever looks sees how long it is waited: {open}");
    // The deadline is in the log: it holds for the next process as well.
    first.society.stop(std::time::Duration::ZERO).await;
    let rig = Rig::opened(log, model(), note(), Security::default(), options).await;
    let next =
        rig.post("/api/submit", json!({ "conversation": "root", "text": program(vec![Op::Say("b".into())]) })).await.ok();
    let done = rig.ending(&next["taskId"].as_str().unwrap().into()).await;
    assert_eq!(&*done.event.envelope().unwrap().payload.text, "said:b");
    let own = tasks(&rig)[0].clone();
    let told = rig.ending(&own).await.event.envelope().unwrap().payload.text.clone();
    assert!(told.contains("did not say in time"), "the model is told: {told}");
    let result = json!({ "role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "rain" });
    let body = json!({ "model": "polis", "messages": [ask, message, result], "metadata": { "chat_id": "a" } });
    let late = rig.post(CHAT, body).await;
    assert_eq!((late.status, late.json()["error"]["code"].clone()), (409, json!("unknown_tool_call")));
}

#[tokio::test]
async fn a_request_behind_anothers_wait_stands_alike_at_every_door() {
    let rig = Rig::on(Arc::new(MemoryLog::new()), ScriptedModel::new(|_| ScriptedReply::text("")), note()).await;
    // An agent that is named has one thing to do at a time.
    rig.society.spawn("clerk".into(), worker_role().id, "root".into()).await.unwrap();
    abandoned_at(&rig, "agent/clerk").await;
    let own = tasks(&rig)[0].to_string();
    assert_eq!(status(&rig, &own).await["status"], json!("needs_person"));
    let text = program(vec![Op::Say("b".into())]);
    let sent = rig.post("/api/send", json!({ "agentId": "clerk", "text": text })).await.ok();
    let task = sent["taskId"].as_str().unwrap().to_owned();
    let stands = status(&rig, &task).await;
    assert_eq!((&stands["status"], &stands["behind"]), (&json!("waiting"), &json!("clerk")), "{stands}");
    let a2a = async |method: &str, params: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
        let asked = rig.ask("POST", "/a2a", &headers, body.to_string().into_bytes());
        tokio::time::timeout(std::time::Duration::from_secs(20), asked).await.expect("nobody waits for another")
    };
    let message = json!({ "messageId": "m1", "role": "ROLE_USER", "parts": [{ "text": text }],
        "metadata": { "agentId": "clerk" } });
    let sent = a2a("SendMessage", json!({ "message": message })).await.ok()["result"]["task"].take();
    assert_eq!(sent["status"]["state"], json!("TASK_STATE_SUBMITTED"), "{sent}");
    assert_eq!(sent["status"]["message"]["metadata"]["code"], json!("agent_busy"), "{sent}");
    assert!(!sent.to_string().contains("weather"), "{sent}");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "send", "arguments": { "agentId": "clerk", "text": text, "waitSeconds": 20 } } });
    let told = rig.post("/mcp", call).await.ok()["result"]["structuredContent"].take();
    assert_eq!(told["status"], json!("waiting"), "{told}");
    assert!(told["hint"].as_str().unwrap().contains("busy with another request"), "{told}");
    let refused = rig.post(CHAT, json!({ "model": "agent/clerk", "messages": [user(&text)] })).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (409, &json!("agent_busy")), "an error, no answer");
    let run = run("c", "r1", &text);
    let refused = data(&rig.post("/agui/clerk", run).await);
    assert_eq!(refused.last().unwrap()["code"], json!("agent_busy"), "{refused:#?}");
}

#[tokio::test]
async fn a_repeated_resume_repeats_its_run_and_a_contrary_one_is_refused() {
    let rig = dear().await;
    let text = program(vec![Op::Call(vec![("pay".into(), "{}".into())]), Op::Think("x".into())]);
    let first = told(&rig, run("t", "r1", &text)).await;
    let interrupt = first.last().unwrap()["outcome"]["interrupts"][0]["id"].as_str().unwrap().to_owned();
    let resumed = told(&rig, resume("t", "r2", &interrupt, true)).await;
    let heard = |events: &[Value]| {
        let of = |kind: &str| events.iter().filter(|event| event["type"] == json!(kind)).cloned().collect::<Vec<_>>();
        let result: Vec<_> = of("TOOL_CALL_RESULT").into_iter().map(|event| event["content"].clone()).collect();
        (result, said(events), events.last().unwrap()["result"]["answer"].clone())
    };
    assert_eq!(heard(&resumed).2, json!("paid a thought"));
    let last = rig.last();
    let again = told(&rig, resume("t", "r2", &interrupt, true)).await;
    assert_eq!(heard(&again), heard(&resumed), "{again:#?}");
    let contrary = told(&rig, resume("t", "r3", &interrupt, false)).await;
    let end = contrary.last().unwrap();
    assert_eq!((&end["type"], &end["code"]), (&json!("RUN_ERROR"), &json!("already_answered")), "{contrary:#?}");
    assert_eq!(rig.last(), last, "nothing is done twice");
}
