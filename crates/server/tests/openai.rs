//! The doors of OpenAI's API, as their clients use them.

use http_body_util::BodyExt;
use polis_domain::{CallResult, Effect, EffectClass, Envelope, Event, Question, Ruling, TaskId};
use polis_testkit::{MemoryLog, Op, Program, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::support::{Reply, Rig, TOKEN, send, society};

pub(crate) const CHAT: &str = "/v1/chat/completions";

pub(crate) fn program(ops: Vec<Op>) -> String {
    Program(ops).text()
}

pub(crate) fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

pub(crate) fn chat(messages: &[Value]) -> Value {
    json!({ "model": "polis", "messages": messages })
}

/// The status, code and parameter of an error, which must have OpenAI's shape.
pub(crate) fn error(reply: &Reply) -> (u16, String, Value) {
    let body = reply.json();
    let error = body["error"].as_object().unwrap_or_else(|| panic!("{body}"));
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()) && error["type"].is_string(), "{body}");
    (reply.status, error["code"].as_str().unwrap().to_owned(), error["param"].clone())
}

/// The data of a stream, one after another.
pub(crate) fn data(reply: &Reply) -> Vec<String> {
    assert_eq!((reply.status, &*reply.content_type), (200, "text/event-stream"), "{reply:?}");
    let text = String::from_utf8(reply.body.clone()).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
}

pub(crate) fn content(chunks: &[String], field: &str) -> String {
    let chunk = |data: &String| serde_json::from_str::<Value>(data).ok();
    let piece = |chunk: Value| chunk["choices"][0]["delta"][field].as_str().map(str::to_owned);
    chunks.iter().filter_map(chunk).filter_map(piece).collect()
}

/// What a person has written, and for which request.
pub(crate) fn envelopes(rig: &Rig) -> Vec<(TaskId, String)> {
    let said = |envelope: &Arc<Envelope>| (envelope.task_id.clone(), envelope.payload.text.to_string());
    let events = rig.log.events(&society());
    let envelopes = events.iter().filter_map(|recorded| match &recorded.event {
        Event::MessageSent { envelope, .. } if envelope.from.is_user() => Some(envelope.clone()),
        _ => None,
    });
    envelopes.map(|envelope| said(&envelope)).collect()
}

/// The first three messages of a request's conversation.
async fn thread(rig: &Rig, task: &TaskId) -> Vec<(&'static str, String)> {
    let thread = rig.society.thread(&task.as_str().into(), &"".parse().unwrap()).await.unwrap();
    let sender = |sender| if sender == polis_domain::Sender::User { "user" } else { "bot" };
    thread.messages.iter().take(3).map(|message| (sender(message.sender), message.text.clone())).collect()
}

#[tokio::test]
async fn the_society_its_agents_and_its_roles_are_models() {
    let rig = Rig::start().await;
    let listed = rig.get("/v1/models").await.ok();
    let ids: Vec<_> = listed["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, ["polis", "agent/root", "role/worker"]);
    assert_eq!(rig.get("/v1/models/agent/root").await.ok()["object"], json!("model"));
    assert_eq!(error(&rig.get("/v1/models/gpt-9").await), (404, "model_not_found".to_owned(), Value::Null));
    let body = json!({ "model": "gpt-9", "messages": [user("hi")] });
    assert_eq!(error(&rig.post(CHAT, body).await), (404, "model_not_found".to_owned(), Value::Null));
    let stranger = Reply::of(send(rig.address, "GET", "/v1/models", &[], Vec::new()).await).await;
    assert_eq!(error(&stranger), (401, "unauthorized".to_owned(), Value::Null));
    assert!(stranger.headers.contains_key("www-authenticate"));
}

#[tokio::test]
async fn an_answer_comes_whole_or_in_chunks_with_its_usage() {
    let rig = Rig::start().await;
    let text = program(vec![Op::Think("x".into())]);
    for model in ["polis", "root", "agent/root", "role/worker", "worker"] {
        let whole = rig.post(CHAT, json!({ "model": model, "messages": [user(&text)] })).await.ok();
        let choice = &whole["choices"][0];
        assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!("a thought"), &json!("stop")), "{model}");
        assert_eq!((&whole["object"], &whole["model"]), (&json!("chat.completion"), &json!(model)));
        assert_eq!(whole["usage"]["total_tokens"], json!(2));
    }
    let mut body = chat(&[user(&text)]);
    body["stream"] = json!(true);
    body["stream_options"] = json!({ "include_usage": true });
    let chunks = data(&rig.post(CHAT, body).await);
    assert_eq!(content(&chunks, "content"), "a thought");
    assert_eq!(chunks.last().unwrap(), "[DONE]");
    let usage: Value = serde_json::from_str(&chunks[chunks.len() - 2]).unwrap();
    assert_eq!((&usage["choices"], &usage["usage"]["prompt_tokens"]), (&json!([]), &json!(1)));
    let last: Value = serde_json::from_str(&chunks[chunks.len() - 3]).unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], json!("stop"));
}

#[tokio::test]
async fn a_conversation_goes_on_in_its_request_and_a_branch_is_another() {
    let rig = Rig::start().await;
    let [one, two, three] = ["1", "2", "3"].map(|text| program(vec![Op::Tell(text.into())]));
    let assistant = json!({ "role": "assistant", "content": "told" });
    rig.post(CHAT, chat(&[user(&one)])).await.ok();
    rig.post(CHAT, chat(&[user(&one), assistant.clone(), user(&two)])).await.ok();
    let shortened = json!({ "role": "assistant", "content": "…" });
    rig.post(CHAT, chat(&[user(&one), shortened, user(&two), assistant.clone(), user(&three)])).await.ok();
    let said = envelopes(&rig);
    assert_eq!(said.iter().map(|(_, text)| text).collect::<Vec<_>>(), [&one, &two, &three], "what is known is not said again");
    assert!(said.iter().all(|(task, _)| *task == said[0].0));
    // The same beginning is another conversation, and so is one that was changed in the middle.
    rig.post(CHAT, chat(&[user(&one)])).await.ok();
    rig.post(CHAT, chat(&[user(&one), assistant.clone(), user(&three)])).await;
    let said = envelopes(&rig);
    assert_ne!(said[3].0, said[0].0);
    assert_eq!(said[4].0, said[3].0, "the newest of those that begin alike is gone on with");
    rig.post(CHAT, chat(&[user(&one), assistant, user("changed")])).await;
    let (task, text) = envelopes(&rig)[5].clone();
    assert!(task != said[0].0 && task != said[3].0);
    assert_eq!(text, "changed");
    let told: Vec<_> = thread(&rig, &task).await;
    assert_eq!(
        told,
        [("user", one.clone()), ("bot", "told".to_owned()), ("user", "changed".to_owned())],
        "the branch knows what was said"
    );
}

#[tokio::test]
async fn instructions_go_along_once_and_a_named_conversation_is_believed() {
    let rig = Rig::start().await;
    let system = json!({ "role": "system", "content": "be brief" });
    let named = |messages: &[Value]| json!({ "model": "polis", "messages": messages, "metadata": { "chat_id": "c1" } });
    rig.post(CHAT, named(&[system.clone(), user("hi")])).await;
    rig.post(CHAT, named(&[system, user("quite another")])).await;
    let said = envelopes(&rig);
    assert_eq!(said[0].1, "[Instructions that came with the request]\nbe brief\n\n[The request]\nhi");
    assert_eq!((said[1].1.as_str(), &said[1].0), ("quite another", &said[0].0));
}

#[tokio::test]
async fn a_repetition_that_says_so_joins_what_was_asked() {
    let rig = Rig::start().await;
    let body = chat(&[user(&program(vec![Op::Think("x".into())]))]);
    rig.post(CHAT, body.clone()).await.ok();
    let headers = [("content-type", "application/json"), ("x-stainless-retry-count", "1")];
    let again = rig.ask("POST", CHAT, &headers, body.to_string().into_bytes()).await.ok();
    assert_eq!(again["choices"][0]["message"]["content"], json!("a thought"));
    assert_eq!(envelopes(&rig).len(), 1, "nothing is asked twice");
}

#[tokio::test]
async fn the_clients_own_tools_are_called_by_the_client() {
    let rig = Rig::start().await;
    let calls = vec![("weather".into(), "{\"city\":\"Bo\"}".into()), ("weather".into(), "{\"city\":\"Li\"}".into())];
    let tools = json!([{ "type": "function", "function": { "name": "weather", "parameters": { "type": "object" } } }]);
    let ask = user(&program(vec![Op::Call(calls)]));
    let mut body = chat(std::slice::from_ref(&ask));
    body["tools"] = tools.clone();
    let first = rig.post(CHAT, body.clone()).await.ok();
    let choice = &first["choices"][0];
    assert_eq!((&choice["finish_reason"], &choice["message"]["content"]), (&json!("tool_calls"), &Value::Null));
    let calls = choice["message"]["tool_calls"].as_array().unwrap().clone();
    assert_eq!(
        calls.iter().map(|call| &call["function"]["arguments"]).collect::<Vec<_>>(),
        ["{\"city\":\"Bo\"}", "{\"city\":\"Li\"}"]
    );
    let result = |call: &Value, text: &str| json!({ "role": "tool", "tool_call_id": call["id"], "content": text });
    // One after the other: what is missing is asked for again.
    let mut messages = vec![ask, choice["message"].clone(), result(&calls[0], "rain")];
    let mut more = chat(&messages);
    more["tools"] = tools;
    more["stream"] = json!(true);
    let chunks = data(&rig.post(CHAT, more).await);
    let called: Vec<Value> = chunks.iter().filter_map(|data| serde_json::from_str(data).ok()).collect();
    let called =
        called.iter().find_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0]["id"].as_str()).unwrap().to_owned();
    assert_eq!(json!(called), calls[1]["id"]);
    messages.push(result(&calls[1], "sun"));
    let last = rig.post(CHAT, chat(&messages)).await.ok();
    assert_eq!(last["choices"][0]["message"]["content"], json!("rain,sun"));
    assert_eq!(envelopes(&rig).len(), 1);
    assert_eq!(error(&rig.post(CHAT, chat(&messages)).await), (409, "unknown_tool_call".to_owned(), Value::Null));
}

#[tokio::test]
async fn a_side_request_of_a_chat_client_starts_nothing() {
    let rig = Rig::start().await;
    let last = rig.last();
    let text = "### Task:\nGenerate a concise, 3-5 word title.\n### Output:\nJSON format: { \"title\": \"…\" }\n### Chat History:\n\
                <chat_history>\nUSER: bake bread\nASSISTANT: yes\n</chat_history>";
    let whole = rig.post(CHAT, chat(&[user(text)])).await.ok();
    assert_eq!(whole["choices"][0]["message"]["content"], json!("{\"title\":\"bake bread\"}"));
    let mut body = chat(&[user(text)]);
    body["stream"] = json!(true);
    let chunks = data(&rig.post(CHAT, body).await);
    assert_eq!(
        (content(&chunks, "content").as_str(), chunks.last().unwrap().as_str()),
        ("{\"title\":\"bake bread\"}", "[DONE]")
    );
    assert_eq!(rig.last(), last);
}

#[tokio::test]
async fn what_cannot_be_taken_is_named() {
    let rig = Rig::start().await;
    let last = rig.last();
    let picture = json!({ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "data:" } }] });
    let with = |name: &str, value: Value| {
        let mut body = chat(&[user("hi")]);
        body[name] = value;
        body
    };
    for (body, want) in [
        (chat(&[picture]), ("bad_attachment", json!("messages[0].content[0]"))),
        (chat(&[]), ("no_message", json!("messages"))),
        (chat(&[json!({ "role": "assistant", "content": "hi" })]), ("no_message", json!("messages"))),
        (with("n", json!(2)), ("unsupported_value", json!("n"))),
        (with("functions", json!([])), ("unsupported_parameter", json!("functions"))),
        (with("tool_choice", json!("required")), ("unsupported_value", json!("tool_choice"))),
        (with("tools", json!([{ "type": "web_search" }])), ("unsupported_tool", json!("tools[0]"))),
        (with("response_format", json!({ "type": "audio" })), ("unsupported_value", json!("response_format"))),
        (json!({ "model": "polis" }), ("bad_json", Value::Null)),
    ] {
        let reply = rig.post(CHAT, body.clone()).await;
        assert_eq!(error(&reply), (400, want.0.to_owned(), want.1), "{body}");
    }
    assert_eq!(rig.last(), last);
}

#[tokio::test]
async fn work_that_failed_is_an_error_with_its_code_and_is_not_asked_for_again() {
    let rig = Rig::start().await;
    let mut body = chat(&[user(&program(vec![Op::Fail("odd".into())]))]);
    let failed = rig.post(CHAT, body.clone()).await;
    assert_eq!(
        (error(&failed), &failed.headers["x-should-retry"]),
        ((500, "odd".to_owned(), Value::Null), &"false".parse().unwrap())
    );
    body["stream"] = json!(true);
    let chunks = data(&rig.post(CHAT, body).await);
    let last: Value = serde_json::from_str(chunks.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], json!("odd"));
}

/// What the model reads of a call that the person did not want.
const NO: &str = "not made: the person said no: \"too dear\". Do not try it again, nor reach the same end another way. Go on without \
                  it, or ask with ask_person what they want instead.";

#[tokio::test]
async fn what_waits_for_a_person_is_said_and_their_words_are_understood() {
    for (word, want) in [("approve", "done"), ("deny too dear", NO)] {
        let tools = ScriptedTools::new().with("pay", EffectClass::Write, |_, _| CallResult::good("done"));
        let tools = tools.ruled(|_, _| Ruling::Ask("it costs".to_owned()));
        let rig = Rig::on(Arc::new(MemoryLog::new()), ScriptedModel::new(|_| ScriptedReply::text("")), tools).await;
        let ask = user(&program(vec![Op::Call(vec![("pay".into(), "{\"n\":1}".into())])]));
        let first = rig.post(CHAT, chat(std::slice::from_ref(&ask))).await.ok();
        let notice = first["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
        assert!(notice.contains("May root use pay? it costs") && notice.contains("`pay {\"n\":1}`"), "{notice}");
        let assistant = json!({ "role": "assistant", "content": notice });
        let second = rig.post(CHAT, chat(&[ask, assistant, user(word)])).await.ok();
        assert_eq!(second["choices"][0]["message"]["content"], json!(want));
        assert_eq!(envelopes(&rig).len(), 1, "a word on what waits is no new message");
    }
}

#[tokio::test]
async fn who_leaves_cancels_nothing() {
    let ask = |_: &str, _: &polis_ports::CallContext| CallResult::failed("it is never run");
    let tools = ScriptedTools::new().with("ask_person", EffectClass::Read, ask).with("note", EffectClass::Write, |_, _| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        CallResult::good("noted")
    });
    let tools = tools.ruled(|tool, question| match tool {
        "ask_person" => Ruling::Person(Question::words(question, Vec::new())),
        _ => Ruling::Allow,
    });
    let rig = Rig::on(Arc::new(MemoryLog::new()), ScriptedModel::new(|_| ScriptedReply::text("x")), tools).await;
    let mut body = chat(&[user(&program(vec![Op::Call(vec![("note".into(), "{}".into())]), Op::Think("x".into())]))]);
    body["stream"] = json!(true);
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    let mut response = send(rig.address, "POST", CHAT, &headers, body.to_string().into_bytes()).await;
    response.body_mut().frame().await.unwrap().unwrap();
    drop(response);
    let task = envelopes(&rig)[0].0.clone();
    let ended = rig.ending(&task).await;
    assert_eq!(&*ended.event.envelope().unwrap().payload.text, "noted x");
}

#[tokio::test]
async fn a_response_belongs_to_a_conversation_that_others_continue() {
    let rig = Rig::start().await;
    let ask = |text: &str, conversation: Value| json!({ "model": "polis", "input": program(vec![Op::Say(text.into())]), "conversation": conversation });
    let first = rig.post("/v1/responses", ask("1", Value::Null)).await.ok();
    let id = first["conversation"]["id"].as_str().unwrap().to_owned();
    let second = rig.post("/v1/responses", ask("2", json!({ "id": id }))).await.ok();
    assert_eq!((&second["conversation"], second["id"] == first["id"]), (&first["conversation"], false));
    let thread = rig.get(&format!("/api/threads/{id}")).await.ok();
    let said: Vec<_> = thread["messages"].as_array().unwrap().iter().filter(|message| message["sender"] == "user").collect();
    assert_eq!(said.len(), 2, "{thread}");
    let fetched = rig.get(&format!("/v1/responses/{}", second["id"].as_str().unwrap())).await.ok();
    assert_eq!(fetched["conversation"], first["conversation"]);
    assert_eq!(error(&rig.post("/v1/responses", ask("3", json!("c-nothing"))).await).1, "unknown_conversation");
    let mut both = ask("4", json!(id));
    both["previous_response_id"] = first["id"].clone();
    assert_eq!(error(&rig.post("/v1/responses", both).await).2, json!("conversation"));
}

#[tokio::test]
async fn instructions_count_for_the_response_that_they_come_with() {
    let rig = Rig::start().await;
    let ask = |instructions: &str, previous: &Value| json!({ "model": "polis", "input": program(vec![]), "instructions": instructions, "previous_response_id": previous });
    let first = rig.post("/v1/responses", ask("be brief", &Value::Null)).await.json();
    let second = rig.post("/v1/responses", ask("be polite", &first["id"])).await.json();
    rig.post("/v1/responses", ask("", &second["id"])).await;
    let said: Vec<String> = envelopes(&rig).into_iter().map(|(_, text)| text).collect();
    assert!(said[0].contains("be brief") && said[1].contains("be polite"), "{said:?}");
    assert!(!said[1].contains("be brief") && !said[2].contains("be"), "{said:?}");
}

#[tokio::test]
async fn a_response_can_be_gone_on_with_fetched_and_called_off() {
    let rig = Rig::start().await;
    let ask = |input: Value, previous: Value| json!({ "model": "polis", "input": input, "previous_response_id": previous });
    let first = rig.post("/v1/responses", ask(json!(program(vec![Op::Think("x".into())])), Value::Null)).await.ok();
    assert_eq!((&first["object"], &first["status"]), (&json!("response"), &json!("completed")));
    let text = |response: &Value| {
        let items = response["output"].as_array().unwrap();
        let message = items.iter().find(|item| item["type"] == json!("message")).unwrap();
        message["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!((text(&first).as_str(), &first["usage"]["total_tokens"]), ("a thought", &json!(2)));
    let input = json!([{ "role": "user", "content": [{ "type": "input_text", "text": program(vec![Op::Say("hi".into())]) }] }]);
    let second = rig.post("/v1/responses", ask(input, first["id"].clone())).await.ok();
    assert_eq!((text(&second).as_str(), &second["previous_response_id"]), ("said:hi", &first["id"]));
    let said = envelopes(&rig);
    assert_eq!(said[0].0, said[1].0);
    // A response that something followed is gone on with in a branch.
    rig.post("/v1/responses", ask(json!("else"), first["id"].clone())).await;
    let (task, branched) = envelopes(&rig)[2].clone();
    assert!(task != said[0].0 && branched == "else", "{branched}");
    let told = thread(&rig, &task).await;
    assert_eq!((&*told[1].1, told[1].0, &*told[2].1), ("a thought", "bot", "else"), "{told:?}");
    let id = first["id"].as_str().unwrap();
    let fetched = rig.get(&format!("/v1/responses/{id}")).await.ok();
    assert_eq!((text(&fetched).as_str(), &fetched["status"]), ("a thought", &json!("completed")));
    assert_eq!((&fetched["usage"], &fetched["previous_response_id"]), (&first["usage"], &Value::Null));
    let fetched = rig.get(&format!("/v1/responses/{}", second["id"].as_str().unwrap())).await.ok();
    assert_eq!((&fetched["previous_response_id"], &fetched["usage"]), (&first["id"], &second["usage"]));
    let over = rig.post(&format!("/v1/responses/{id}/cancel"), json!({})).await.ok();
    assert_eq!(over["status"], json!("completed"), "what is over stays as it is");
    assert_eq!(error(&rig.post("/v1/responses/resp_1_nothing/cancel", json!({})).await).0, 404);
    let waits = ask(json!(program(vec![Op::Approve("may I?".into())])), Value::Null);
    let mut background = waits;
    background["background"] = json!(true);
    let running = rig.post("/v1/responses", background).await.ok();
    assert_eq!(running["status"], json!("in_progress"));
    let address = format!("/v1/responses/{}", running["id"].as_str().unwrap());
    let cancelled = rig.post(&format!("{address}/cancel"), json!({})).await.ok();
    assert_eq!((&cancelled["status"], &rig.get(&address).await.ok()["status"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!(error(&rig.get("/v1/responses/resp_7_x").await).1, "response_not_found");
    let unknown = rig.post("/v1/responses", ask(json!("hi"), json!("resp_1_none"))).await;
    assert_eq!(error(&unknown), (400, "previous_response_not_found".to_owned(), json!("previous_response_id")));
}

#[tokio::test]
async fn a_streamed_response_tells_its_items_and_calls_in_order() {
    let rig = Rig::start().await;
    let tools = json!([{ "type": "function", "name": "weather", "parameters": { "type": "object" } }]);
    let text = program(vec![Op::Think("x".into()), Op::Call(vec![("weather".into(), "{}".into())])]);
    let body = json!({ "model": "polis", "input": text, "tools": tools, "stream": true });
    let events: Vec<Value> =
        data(&rig.post("/v1/responses", body).await).iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap().trim_start_matches("response.")).collect();
    assert_eq!(&kinds[..2], ["created", "in_progress"]);
    let numbers: Vec<_> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let order = ["output_text.delta", "output_text.done", "content_part.done", "output_item.done"];
    let places: Vec<_> = order.iter().map(|kind| kinds.iter().position(|known| known == kind).unwrap()).collect();
    assert!(places.is_sorted(), "{kinds:?}");
    let done = events.iter().find(|event| event["type"] == json!("response.function_call_arguments.done")).unwrap();
    assert_eq!(done["arguments"], json!("{}"));
    let completed = &events.last().unwrap()["response"];
    let call = completed["output"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&completed["status"], &call["name"]), (&json!("completed"), &json!("weather")));
    let output = json!([{ "type": "function_call_output", "call_id": call["call_id"], "output": "sun" }]);
    let body = json!({ "model": "polis", "input": output, "previous_response_id": completed["id"] });
    let last = rig.post("/v1/responses", body).await.ok();
    assert!(last["output"].to_string().contains("a thought sun"), "{last}");
}

#[tokio::test]
async fn a_call_that_waits_for_the_client_outlives_the_server() {
    let log = Arc::new(MemoryLog::new());
    let silent = || ScriptedModel::new(|_| ScriptedReply::text(""));
    let first = Rig::on(log.clone(), silent(), ScriptedTools::new()).await;
    let ask = user(&program(vec![Op::Call(vec![("weather".into(), "{}".into())])]));
    let mut body = chat(std::slice::from_ref(&ask));
    body["tools"] = json!([{ "type": "function", "function": { "name": "weather" } }]);
    let asked = first.post(CHAT, body).await.ok()["choices"][0]["message"].clone();
    first.society.stop(std::time::Duration::ZERO).await;
    let second = Rig::on(log, silent(), ScriptedTools::new()).await;
    let result = json!({ "role": "tool", "tool_call_id": asked["tool_calls"][0]["id"], "content": "sun" });
    let answer = second.post(CHAT, chat(&[ask, asked, result])).await.ok();
    assert_eq!(answer["choices"][0]["message"]["content"], json!("sun"));
}

#[tokio::test]
async fn a_message_during_another_of_its_conversation_is_sent_alone_and_gets_its_own_answer() {
    let rig = Rig::start().await;
    let slow = program(vec![Op::Sleep(300), Op::Say("one".into())]);
    let chat = async |texts: &[&str]| {
        let messages: Vec<_> = texts.iter().map(|text| json!({ "role": "user", "content": text })).collect();
        let body = json!({ "model": "polis", "messages": messages }).to_string().into_bytes();
        let headers = [("content-type", "application/json"), ("x-conversation-id", "mine")];
        let told = rig.ask("POST", "/v1/chat/completions", &headers, body).await.ok();
        told["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    };
    let second = async {
        rig.until(|recorded| matches!(&recorded.event, Event::EffectStarted { effect: Effect::Sleep { .. }, .. })).await;
        chat(&[&slow, &program(vec![Op::Say("two".into())])]).await
    };
    let alone = [slow.as_str()];
    let (first, second) = tokio::join!(chat(&alone), second);
    assert_eq!((first.as_str(), second.as_str()), ("slept said:one", "said:two"));
}
