//! OpenAI's API where the client prescribes the answer, and where it comes back to a response.

use std::sync::Arc;

use http_body_util::BodyExt;
use polis_domain::{CallResult, EffectClass, Failure, Finish, Response, Role, Ruling};
use polis_engine::{Agent, Cast, Options, Turn};
use polis_server::Security;
use polis_testkit::{MemoryLog, Op, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Value, json};

use crate::openai::{CHAT, chat, content, data, envelopes, error, program, user};
use crate::support::{Reply, Rig, TOKEN, send};

const RESPONSES: &str = "/v1/responses";

async fn saying(text: &'static str) -> Rig {
    let tools = ScriptedTools::new().with("pay", EffectClass::Write, |_, _| CallResult::good("done"));
    let tools = tools.ruled(|_, _| Ruling::Ask("it costs".to_owned()));
    Rig::on(Arc::new(MemoryLog::new()), ScriptedModel::new(move |_| ScriptedReply::text(text)), tools).await
}

fn think() -> String {
    program(vec![Op::Think("x".into())])
}

fn number() -> Value {
    json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"], "additionalProperties": false })
}

/// The same question at both endpoints: with a format, or with a call that is required.
fn bodies(text: &str) -> [(&'static str, Value); 4] {
    let nested = json!([{ "type": "function", "function": { "name": "weather" } }]);
    let flat = json!([{ "type": "function", "name": "weather" }]);
    let format = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": number(), "strict": true } });
    let text_format = json!({ "format": { "type": "json_schema", "name": "n", "schema": number(), "strict": true } });
    [
        (CHAT, json!({ "model": "polis", "messages": [user(text)], "response_format": format })),
        (RESPONSES, json!({ "model": "polis", "input": text, "text": text_format })),
        (CHAT, json!({ "model": "polis", "messages": [user(text)], "tools": nested, "tool_choice": "required" })),
        (RESPONSES, json!({ "model": "polis", "input": text, "tools": flat, "tool_choice": "required" })),
    ]
}

fn json_of(data: &[String]) -> Vec<Value> {
    data.iter().filter_map(|data| serde_json::from_str(data).ok()).collect()
}

#[tokio::test]
async fn an_answer_in_another_form_than_the_prescribed_one_is_an_error_and_its_text_is_not_given_out() {
    let rig = saying("it is one").await;
    for (n, (path, mut body)) in bodies(&think()).into_iter().enumerate() {
        let code = if n < 2 { "format_not_kept" } else { "tool_choice_not_kept" };
        assert_eq!(error(&rig.post(path, body.clone()).await), (500, code.to_owned(), Value::Null), "{body}");
        body["stream"] = json!(true);
        let told = data(&rig.post(path, body.clone()).await);
        let last = json_of(&told).pop().unwrap();
        let failed = if path == CHAT { &last["error"] } else { &last["response"]["error"] };
        assert_eq!(failed["code"], json!(code), "{told:?}");
        assert!(!told.join("").contains("it is one"), "{told:?}");
    }
}

#[tokio::test]
async fn an_answer_in_the_prescribed_format_is_given_alone() {
    let rig = saying("```json\n{\"n\": 1}\n```").await;
    let [(chat, chat_body), (responses, response_body), ..] = bodies(&think());
    let whole = rig.post(chat, chat_body.clone()).await.ok();
    assert_eq!(whole["choices"][0]["message"]["content"], json!("{\"n\": 1}"));
    let mut streamed = chat_body;
    streamed["stream"] = json!(true);
    assert_eq!(content(&data(&rig.post(chat, streamed).await), "content"), "{\"n\": 1}");
    let whole = rig.post(responses, response_body).await.ok();
    let text = |response: &Value| response["output"].as_array().unwrap().last().unwrap()["content"][0]["text"].clone();
    assert_eq!(text(&whole), json!("{\"n\": 1}"));
    assert_eq!(whole["text"]["format"]["name"], json!("n"));
    let fetched = rig.get(&format!("{RESPONSES}/{}", whole["id"].as_str().unwrap())).await.ok();
    assert_eq!(text(&fetched), json!("{\"n\": 1}"));
}

#[tokio::test]
async fn what_waits_for_a_person_is_an_error_where_the_form_is_prescribed() {
    let rig = saying("x").await;
    let [(path, body), ..] = bodies(&program(vec![Op::Call(vec![("pay".into(), "{}".into())])]));
    let reply = rig.post(path, body).await;
    assert_eq!(error(&reply), (422, "needs_person".to_owned(), Value::Null));
    assert!(reply.json()["error"]["message"].as_str().unwrap().contains("May root use pay?"));
}

#[tokio::test]
async fn a_required_call_is_given_and_another_message_may_follow_its_result() {
    let rig = saying("x").await;
    let [_, _, (path, body), _] = bodies(&program(vec![Op::Call(vec![("weather".into(), "{}".into())])]));
    let message = rig.post(path, body.clone()).await.ok()["choices"][0]["message"].clone();
    let result = json!({ "role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "rain" });
    let next = user(&program(vec![Op::Say("hi".into())]));
    let more = chat(&[body["messages"][0].clone(), message, result, next]);
    let answer = rig.post(CHAT, more.clone()).await.ok();
    assert_eq!(answer["choices"][0]["message"]["content"], json!("said:hi"), "the message is answered, not the result");
    let said = envelopes(&rig);
    assert!(said.len() == 2 && said[0].0 == said[1].0, "{said:?}");
    // What is not pending any more does not stand in the way of the message.
    assert_eq!(rig.post(CHAT, more).await.ok()["choices"][0]["message"]["content"], json!("said:hi"));
}

#[tokio::test]
async fn a_background_stream_is_continued_with_the_same_numbers() {
    let rig = saying("a thought").await;
    let body = json!({ "model": "polis", "input": think(), "background": true, "stream": true });
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    let mut response = send(rig.address, "POST", RESPONSES, &headers, body.to_string().into_bytes()).await;
    let first = response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let created: Value = serde_json::from_str(first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap()).unwrap();
    assert_eq!((&created["type"], &created["response"]["background"]), (&json!("response.created"), &json!(true)));
    drop(response);
    let id = created["response"]["id"].as_str().unwrap();
    let read = async |query: &str| json_of(&data(&rig.get(&format!("{RESPONSES}/{id}?stream=true{query}")).await));
    let all = read("").await;
    let numbers: Vec<_> = all.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..all.len() as u64).collect::<Vec<_>>());
    assert_eq!((&all[0], &all.last().unwrap()["type"]), (&created, &json!("response.completed")));
    assert_eq!(read("&starting_after=2").await, all[3..]);
    assert_eq!(rig.get(&format!("{RESPONSES}/{id}")).await.ok()["status"], json!("completed"));
}

#[tokio::test]
async fn a_stream_that_is_not_kept_is_told_from_the_log_but_not_continued() {
    let rig = saying("a thought").await;
    let whole = rig.post(RESPONSES, json!({ "model": "polis", "input": think() })).await.ok();
    let path = format!("{RESPONSES}/{}?stream=true", whole["id"].as_str().unwrap());
    let told = json_of(&data(&rig.get(&path).await));
    let last = told.last().unwrap();
    assert_eq!((&last["type"], &last["response"]["output"]), (&json!("response.completed"), &whole["output"]));
    let continued = rig.get(&format!("{path}&starting_after=1")).await;
    assert_eq!(error(&continued), (400, "stream_not_kept".to_owned(), json!("starting_after")));
}

async fn delete(rig: &Rig, path: &str) -> Reply {
    rig.ask("DELETE", path, &[], Vec::new()).await
}

#[tokio::test]
async fn the_input_of_a_response_is_listed_and_a_response_goes_with_its_conversation() {
    let rig = saying("a thought").await;
    let ask = |previous: Value| json!({ "model": "polis", "input": think(), "previous_response_id": previous });
    let first = rig.post(RESPONSES, ask(Value::Null)).await.ok();
    let path = |response: &Value| format!("{RESPONSES}/{}", response["id"].as_str().unwrap());
    let items = rig.get(&format!("{}/input_items", path(&first))).await.ok();
    assert_eq!((&items["object"], &items["data"][0]["content"][0]["text"]), (&json!("list"), &json!(think())));
    let second = rig.post(RESPONSES, ask(first["id"].clone())).await.ok();
    assert_eq!(error(&delete(&rig, &path(&second)).await).1, "response_in_conversation");
    let only = rig.post(RESPONSES, ask(Value::Null)).await.ok();
    let deleted = delete(&rig, &path(&only)).await.ok();
    assert_eq!(deleted, json!({ "id": only["id"], "object": "response", "deleted": true }));
    for gone in [rig.get(&path(&only)).await, delete(&rig, &path(&only)).await] {
        assert_eq!(error(&gone), (404, "response_not_found".to_owned(), Value::Null));
    }
    assert_eq!(rig.get(&path(&first)).await.status, 200);
}

#[tokio::test]
async fn conversations_are_created_read_renamed_and_deleted() {
    let rig = saying("a thought").await;
    const CONVERSATIONS: &str = "/v1/conversations";
    let items = json!([{ "role": "user", "content": "hi" }, { "role": "assistant", "content": "hello" }]);
    let made = rig.post(CONVERSATIONS, json!({ "items": items, "metadata": { "title": "Greetings" } })).await.ok();
    assert_eq!((&made["object"], &made["metadata"]), (&json!("conversation"), &json!({ "title": "Greetings" })));
    let path = format!("{CONVERSATIONS}/{}", made["id"].as_str().unwrap());
    assert_eq!(rig.get(&path).await.ok(), made);
    let renamed = rig.post(&path, json!({ "metadata": { "title": "Other" } })).await.ok();
    assert_eq!(renamed["metadata"], json!({ "title": "Other" }));
    let asked = rig.post(RESPONSES, json!({ "model": "polis", "input": think(), "conversation": made["id"] })).await.ok();
    assert_eq!(asked["conversation"]["id"], made["id"]);
    let thread = rig.get(&format!("/api/threads/{}", made["id"].as_str().unwrap())).await.ok();
    let texts: Vec<_> = thread["messages"].as_array().unwrap().iter().map(|message| message["text"].clone()).collect();
    assert_eq!(texts, [json!("hi"), json!("hello"), json!(think()), json!("a thought")]);
    let kept = rig.post(CONVERSATIONS, json!({ "metadata": { "topic": "x" } })).await;
    assert_eq!(error(&kept), (400, "unsupported_value".to_owned(), json!("metadata.topic")));
    let deleted = delete(&rig, &path).await.ok();
    assert_eq!(deleted, json!({ "id": made["id"], "object": "conversation.deleted", "deleted": true }));
    assert_eq!(error(&rig.get(&path).await), (404, "unknown_conversation".to_owned(), Value::Null));
}

/// Answers with a part, and says why it is not whole.
struct Stopped(Finish);

impl Agent for Stopped {
    async fn execute_task(&self, _: &mut Turn) -> Result<Response, Failure> {
        let mut response = Response::new("half");
        response.meta.insert(Finish::META.to_owned(), json!(self.0));
        Ok(response)
    }
}

#[tokio::test]
async fn an_answer_that_is_not_whole_says_why_in_each_form() {
    for (finish, reason, incomplete) in [
        (Finish::Length, "length", "max_output_tokens"),
        (Finish::ContentFilter, "content_filter", "content_filter"),
        (Finish::Refusal, "content_filter", "content_filter"),
    ] {
        let cast = Cast::new().with("stopped", Stopped(finish));
        let options = Options::new(7, Role::new("root", "stopped"));
        let (log, model, tools) = (Arc::new(MemoryLog::new()), ScriptedModel::saying(""), ScriptedTools::new());
        let rig = Rig::cast(log, model, tools, Security::default(), options, cast).await;
        let whole = rig.post(CHAT, chat(&[user("go")])).await.ok();
        assert_eq!(whole["choices"][0]["finish_reason"], json!(reason), "{whole}");
        let mut body = chat(&[user("go on")]);
        body["stream"] = json!(true);
        let chunks = data(&rig.post(CHAT, body).await);
        assert!(chunks.iter().any(|chunk| chunk.contains(&format!("\"finish_reason\":\"{reason}\""))), "{chunks:?}");
        let asked = rig.post("/v1/responses", json!({ "model": "polis", "input": "go" })).await.ok();
        let again = rig.get(&format!("/v1/responses/{}", asked["id"].as_str().unwrap())).await.ok();
        for response in [asked, again] {
            assert_eq!(response["status"], json!("incomplete"), "{response}");
            assert_eq!(response["incomplete_details"], json!({ "reason": incomplete }));
            assert!(response["output"].to_string().contains("half"));
        }
        let body = json!({ "model": "polis", "input": "go", "stream": true });
        assert!(data(&rig.post("/v1/responses", body).await).iter().any(|event| event.contains("response.incomplete")));
        rig.stop().await;
    }
}
