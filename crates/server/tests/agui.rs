//! AG-UI over the wire: runs, interrupts and their answers, the client's own tools, connecting again.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{CallResult, Effect, EffectClass, Event, Question, Ruling};
use polis_testkit::{MemoryLog, Op, Program, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Value, json};

use crate::support::{Reply, Rig, TOKEN, send};

fn input(run: &str, more: Value) -> Value {
    let mut input = json!({ "threadId": "t1", "runId": run, "messages": [], "tools": [], "context": [], "state": {}, "protocolVersion": "1.0" });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    input
}

fn saying(run: &str, ops: Vec<Op>) -> Value {
    input(run, json!({ "messages": [{ "id": "u1", "role": "user", "content": Program(ops).text() }] }))
}

/// The events of a run.
fn events(reply: &Reply) -> Vec<Value> {
    assert_eq!((reply.status, &*reply.content_type), (200, "text/event-stream"), "{}", String::from_utf8_lossy(&reply.body));
    let text = String::from_utf8(reply.body.clone()).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("data: ")).map(|data| serde_json::from_str(data).unwrap()).collect()
}

async fn run(rig: &Rig, body: Value) -> Vec<Value> {
    let posted = tokio::time::timeout(Duration::from_secs(60), rig.post("/agui/polis", body));
    events(&posted.await.expect("the run never ends"))
}

fn said(events: &[Value]) -> String {
    let is_text = |event: &&Value| event["type"] == json!("TEXT_MESSAGE_CONTENT") && event.get("subagentRunId").is_none();
    events.iter().filter(is_text).map(|event| event["delta"].as_str().unwrap()).collect()
}

fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == json!(kind)).collect()
}

fn resume(run: &str, id: &Value, payload: Value) -> Value {
    input(run, json!({ "resume": [{ "interruptId": id, "status": "resolved", "payload": payload }] }))
}

async fn with_tools(tools: ScriptedTools) -> Rig {
    Rig::on(Arc::new(MemoryLog::new()), ScriptedModel::new(|_| ScriptedReply::text("a thought")), tools).await
}

#[tokio::test]
async fn a_run_tells_its_answer_and_a_delegation_is_a_call_with_a_sub_agent() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Spawn("bob".into())]).await;
    let below = Program(vec![Op::Think("y".into())]);
    let asks = Op::Ask { agent: "bob".into(), program: below, patience_ms: 60_000 };
    let told = run(&rig, saying("r1", vec![asks, Op::Units(vec![Program(vec![Op::Say("z".into())])])])).await;
    assert_eq!((&told[0]["type"], &told[0]["protocolVersion"]), (&json!("RUN_STARTED"), &json!("1.0")));
    let last = told.last().unwrap();
    assert_eq!((&last["type"], &last["outcome"]), (&json!("RUN_FINISHED"), &json!({ "type": "success" })));
    assert_eq!(said(&told), "[a thought] {said:z}");
    assert_eq!(last["result"]["answer"], json!("[a thought] {said:z}"));
    assert_eq!(last["usage"][0]["outputTokens"], json!(1));
    let calls: Vec<_> = of(&told, "TOOL_CALL_START").iter().map(|call| call["toolCallId"].clone()).collect();
    let started = of(&told, "SUBAGENT_STARTED");
    assert_eq!(started.iter().map(|sub| sub["parentToolCallId"].clone()).collect::<Vec<_>>(), calls);
    assert_eq!(started[0]["name"], json!("bob"));
    assert_eq!(of(&told, "SUBAGENT_FINISHED").len(), 2);
    assert!(told.iter().all(|event| event["timestamp"].is_u64()
        || event["type"] == json!("RUN_STARTED")
        || event["type"] == json!("STATE_SNAPSHOT")));
    // The same thread goes on with the same request.
    let more = json!({ "messages": [
        { "id": "u1", "role": "user", "content": "x" }, { "id": "a1", "role": "assistant", "content": "y" },
        { "id": "u2", "role": "user", "content": Program(vec![Op::Say("more".into())]).text() },
    ] });
    assert_eq!(said(&run(&rig, input("r2", more)).await), "said:more");
    assert_eq!(rig.get("/api/messages/t1?direction=all").await.ok()["messages"].as_array().unwrap().len(), 4);
}

/// What the model reads of a call with other arguments, and of one that the person did not want.
const CHANGED: &str = "[polis] The person changed the arguments. What was called: {\"n\":2}. Report that, not your own version.\n\n\
                       paid {\"n\":2}";
const NO: &str = "not made: the person said no: \"too dear\". Do not try it again, nor reach the same end another way. Go on without \
                  it, or ask with ask_person what they want instead.";

#[tokio::test]
async fn an_interrupt_is_answered_by_another_run_with_a_yes_a_no_or_other_arguments() {
    for (payload, want) in [
        (json!({ "approved": true }), "paid {\"n\":1}"),
        (json!({ "approved": true, "editedArgs": { "n": 2 } }), CHANGED),
        (json!({ "approved": false, "reason": "too dear" }), NO),
    ] {
        let tools = ScriptedTools::new().with("pay", EffectClass::Write, |n, _| CallResult::good(format!("paid {n}")));
        let rig = with_tools(tools.ruled(|_, _| Ruling::Ask("it costs".to_owned()))).await;
        let units = Op::Units(vec![Program(vec![Op::Call(vec![("pay".into(), "{\"n\":1}".into())])])]);
        let first = run(&rig, saying("r1", vec![units])).await;
        let outcome = first.last().unwrap()["outcome"].clone();
        let interrupt = &outcome["interrupts"][0];
        assert_eq!((&outcome["type"], &interrupt["reason"]), (&json!("interrupt"), &json!("tool_call")));
        assert_eq!(interrupt["responseSchema"]["properties"]["editedArgs"]["type"], json!("object"));
        let call = of(&first, "TOOL_CALL_START").into_iter().find(|call| call["toolCallName"] == json!("pay")).unwrap();
        assert_eq!(interrupt["toolCallId"], call["toolCallId"]);
        assert_eq!(interrupt["subagentRunId"], call["subagentRunId"]);
        let suspended = of(&first, "SUBAGENT_FINISHED");
        assert_eq!(suspended[0]["outcome"], json!({ "type": "suspended", "interruptIds": [interrupt["id"]] }));
        // Nothing else may be said meanwhile, and all must be answered.
        let blocked = run(&rig, saying("r2", vec![Op::Say("x".into())])).await;
        assert_eq!(blocked.last().unwrap()["code"], json!("interrupts_pending"));
        let unknown = run(&rig, resume("r3", &json!("999.0"), json!({ "approved": true }))).await;
        assert_eq!(unknown.last().unwrap()["code"], json!("interrupts_pending"));
        let unfit = run(&rig, resume("r4", &interrupt["id"], json!({ "yes": 1 }))).await;
        assert_eq!(unfit.last().unwrap()["code"], json!("bad_answer"));
        let second = run(&rig, resume("r5", &interrupt["id"], payload.clone())).await;
        assert_eq!(second.last().unwrap()["outcome"]["type"], json!("success"), "{second:#?}");
        let results = of(&second, "TOOL_CALL_RESULT");
        assert_eq!(results[0]["toolCallId"], call["toolCallId"]);
        assert!(of(&second, "TOOL_CALL_START").is_empty(), "the call is not told again");
        assert!(said(&second).contains(want), "{}", said(&second));
        // An answer that comes twice changes nothing.
        let last = rig.last();
        let late = run(&rig, resume("r6", &interrupt["id"], payload)).await;
        assert_eq!((late.last().unwrap()["type"].clone(), rig.last()), (json!("RUN_FINISHED"), last));
    }
}

#[tokio::test]
async fn questions_and_writes_in_doubt_are_interrupts_as_well() {
    let ask = |_: &str, _: &polis_ports::CallContext| CallResult::failed("it is never run");
    let tools = ScriptedTools::new().with("ask_person", EffectClass::Read, ask);
    let options = || vec!["red".to_owned(), "blue".to_owned()];
    let rig = with_tools(tools.ruled(move |_, question| Ruling::Person(Question::words(question, options())))).await;
    let first = run(&rig, saying("r1", vec![Op::Call(vec![("ask_person".into(), "which?".into())])])).await;
    let interrupt = &first.last().unwrap()["outcome"]["interrupts"][0];
    assert_eq!((&interrupt["reason"], &interrupt["message"]), (&json!("input_required"), &json!("which?")));
    assert_eq!(interrupt["responseSchema"]["properties"]["answer"]["enum"], json!(["red", "blue"]));
    let wrong = run(&rig, resume("r2", &interrupt["id"], json!({ "answer": "green" }))).await;
    assert_eq!(wrong.last().unwrap()["code"], json!("bad_answer"));
    assert_eq!(said(&run(&rig, resume("r3", &interrupt["id"], json!({ "answer": "blue" }))).await), "blue");

    let log = Arc::new(MemoryLog::new());
    let write = |hours: u64| {
        let tools = ScriptedTools::new().with("write", EffectClass::Write, |_, _| CallResult::good("written"));
        tools.delayed(move |_| Duration::from_secs(3_600 * hours))
    };
    let silent = || ScriptedModel::new(|_| ScriptedReply::text(""));
    let first = Rig::on(log.clone(), silent(), write(1)).await;
    let text = Program(vec![Op::Call(vec![("write".into(), "{}".into())])]).text();
    first.society.send("root".into(), &text, Some("t1".into())).await.unwrap();
    first.until(|recorded| matches!(recorded.event, Event::EffectStarted { .. })).await;
    first.society.stop(Duration::ZERO).await;
    let second = Rig::on(log, silent(), write(0)).await;
    second.until(|recorded| matches!(recorded.event, Event::EffectDoubted { .. })).await;
    let connected = events(&second.post("/agui/polis/connect", input("c1", json!({}))).await);
    let interrupt = &connected.last().unwrap()["outcome"]["interrupts"][0];
    assert_eq!(interrupt["reason"], json!("polis:in_doubt"), "{connected:#?}");
    let settled = run(&second, resume("r9", &interrupt["id"], json!({ "outcome": "again" }))).await;
    assert_eq!(said(&settled), "written");
}

#[tokio::test]
async fn the_clients_own_tools_are_left_to_the_client() {
    let rig = Rig::start().await;
    let tools = json!([{ "name": "pick_colour", "description": "asks", "parameters": { "type": "object" } }]);
    let mut body = saying("r1", vec![Op::Call(vec![("pick_colour".into(), "{}".into())])]);
    body["tools"] = tools;
    let first = run(&rig, body).await;
    let call = of(&first, "TOOL_CALL_START")[0]["toolCallId"].clone();
    assert_eq!(first.last().unwrap()["outcome"], json!({ "type": "success", "pendingToolCallIds": [call] }));
    let messages = json!([
        { "id": "a1", "role": "assistant", "toolCalls": [{ "id": call, "type": "function", "function": { "name": "pick_colour", "arguments": "{}" } }] },
        { "id": "t1", "role": "tool", "toolCallId": call, "content": "blue" },
    ]);
    let second = run(&rig, input("r2", json!({ "messages": messages }))).await;
    assert_eq!(said(&second), "blue");
    let late = run(&rig, input("r3", json!({ "messages": messages }))).await;
    assert_eq!(late.last().unwrap()["code"], json!("unknown_tool_call"));
}

#[tokio::test]
async fn whoever_connects_is_told_what_is_there_and_a_repeated_run_is_one_run() {
    let rig = Rig::start().await;
    let nothing = events(&rig.post("/agui/polis/connect", input("c0", json!({}))).await);
    assert_eq!(nothing[1], json!({ "type": "MESSAGES_SNAPSHOT", "messages": [] }));
    assert_eq!(nothing.last().unwrap()["outcome"]["type"], json!("success"));
    let body = saying("r1", vec![Op::Think("x".into()), Op::Call(vec![("note".into(), "{}".into())])]);
    let first = run(&rig, body.clone()).await;
    let last = rig.last();
    let again = run(&rig, body).await;
    assert_eq!((said(&again), rig.last()), (said(&first), last), "nothing is said twice");
    let connected = events(&rig.post("/agui/polis/connect", input("c1", json!({}))).await);
    assert_eq!(connected[1]["messages"].as_array().unwrap().len(), 1, "what was said before the last answer");
    assert_eq!(said(&connected), said(&first));
    let ids =
        |events: &[Value]| of(events, "TOOL_CALL_START").iter().map(|call| call["toolCallId"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&connected), ids(&first));
    assert_eq!(rig.last(), last);
}

#[tokio::test]
async fn a_run_that_was_called_off_or_failed_says_so() {
    let rig = Rig::start().await;
    let failed = run(&rig, saying("r1", vec![Op::Fail("odd".into())])).await;
    let last = failed.last().unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!("odd")));
    let waits = saying("r2", vec![Op::Sleep(3_600_000)]);
    let (cancelled, _) = tokio::join!(run(&rig, waits), async {
        rig.until(|recorded| matches!(&recorded.event, Event::EffectStarted { .. })).await;
        rig.post("/api/tasks/t1/cancel", json!({})).await.ok();
    });
    assert_eq!(cancelled.last().unwrap()["outcome"], json!({ "type": "cancelled" }));
    let empty = run(&rig, input("r3", json!({}))).await;
    assert_eq!(empty.last().unwrap()["code"], json!("no_message"));
    assert_eq!(rig.post("/agui/nobody", input("r4", json!({}))).await.problem(), (404, "unknown_agent".to_owned()));
    assert_eq!(rig.post("/agui/polis", json!({ "runId": "r" })).await.problem(), (400, "bad_json".to_owned()));
}

/// The messages as a client has them after a run: role, id and text.
fn messages(events: &[Value]) -> Vec<(String, String, String)> {
    let mut messages: Vec<(String, String, String)> = Vec::new();
    let text = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    for event in events.iter().filter(|event| event.get("subagentRunId").is_none()) {
        let (role, id) = match event["type"].as_str().unwrap() {
            "TEXT_MESSAGE_CONTENT" => ("assistant", text(event, "messageId")),
            "REASONING_MESSAGE_CONTENT" => ("reasoning", text(event, "messageId")),
            "TOOL_CALL_START" => {
                let parent = text(event, "parentMessageId");
                ("assistant", if parent.is_empty() { text(event, "toolCallId") } else { parent })
            }
            "TOOL_CALL_RESULT" => ("tool", text(event, "messageId")),
            _ => continue,
        };
        let more = text(event, "delta") + &text(event, "content");
        match messages.iter_mut().find(|(_, known, _)| *known == id) {
            Some((_, _, text)) => text.push_str(&more),
            None => messages.push((role.to_owned(), id, more)),
        }
    }
    messages
}

#[tokio::test]
async fn whoever_connects_later_gets_the_ids_the_calls_and_the_reasoning_of_the_runs() {
    let tools = ScriptedTools::new().with("note", EffectClass::Write, |_, _| CallResult::good("noted"));
    let model = ScriptedModel::new(|_| ScriptedReply::text("a thought").reasoning("hm"));
    let rig = Rig::on(Arc::new(MemoryLog::new()), model, tools).await;
    let program = |ops| Program(ops).text();
    let say = |run: &str, id: &str, text: String| {
        run_input(
            run,
            json!([{ "id": "a0", "role": "assistant", "content": "" }, { "id": id, "role": "user", "content": text }]),
        )
    };
    let note = Op::Call(vec![("note".into(), "{}".into())]);
    let (one, two) = (program(vec![Op::Think("x".into()), note]), program(vec![Op::Fail("odd".into())]));
    let first = run(&rig, say("r1", "u-one", one.clone())).await;
    run(&rig, say("r2", "u-two", two.clone())).await;
    let third = run(&rig, say("r3", "u-three", program(vec![Op::Say("z".into())]))).await;
    let connected = events(&rig.post("/agui/polis/connect", input("c1", json!({}))).await);
    let snapshot = connected[1]["messages"].as_array().unwrap().clone();
    let text = |message: &Value, name: &str| message[name].as_str().unwrap().to_owned();
    let mut told: Vec<_> =
        snapshot.iter().map(|message| (text(message, "role"), text(message, "id"), text(message, "content"))).collect();
    told.extend(messages(&connected[2..]));
    let said = |id: &str, text: &str| ("user".to_owned(), id.to_owned(), text.to_owned());
    let mut want = vec![said("u-one", &one)];
    want.extend(messages(&first));
    want.push(said("u-two", &two));
    let (failure, rest) = told[want.len()..].split_first().unwrap();
    assert!(failure.2.contains("odd"), "{failure:?}");
    let mut last = vec![said("u-three", &program(vec![Op::Say("z".into())]))];
    last.extend(messages(&third));
    assert_eq!((&told[..want.len()], rest), (&*want, &*last));
    assert!(want.iter().any(|(role, ..)| role == "reasoning"), "{want:?}");
    let call = snapshot.iter().find_map(|message| message["toolCalls"].as_array()).unwrap();
    assert_eq!(call[0]["function"]["name"], json!("note"));
}

fn run_input(run: &str, messages: Value) -> Value {
    input(run, json!({ "messages": messages }))
}

#[tokio::test]
async fn the_clients_part_of_the_state_stays_and_is_there_for_who_connects() {
    let rig = Rig::start().await;
    let mut body = saying("r1", vec![Op::Say("x".into())]);
    body["state"] = json!({ "page": 7, "taskId": "not mine" });
    let told = run(&rig, body).await;
    assert_eq!(of(&told, "STATE_SNAPSHOT")[0]["snapshot"], json!({ "page": 7, "taskId": "t1", "todos": [] }));
    let sent = rig.get("/api/messages/t1?direction=all").await.ok().to_string();
    assert!(sent.contains("The state of the application: {\\\"page\\\":7}"), "{sent}");
    let connected = events(&rig.post("/agui/polis/connect", input("c1", json!({}))).await);
    assert_eq!(of(&connected, "STATE_SNAPSHOT")[0]["snapshot"]["page"], json!(7));
}

#[tokio::test]
async fn a_step_has_the_name_by_which_people_know_the_agent() {
    let rig = Rig::start().await;
    let told = run(&rig, saying("r1", vec![Op::Say("x".into())])).await;
    assert_eq!(of(&told, "STEP_STARTED")[0]["stepName"], json!("root: initial_phase"));
}

#[tokio::test]
async fn clients_from_before_version_1_get_only_outcomes_that_they_know() {
    let rig = Rig::start().await;
    let old = |mut body: Value| {
        body.as_object_mut().unwrap().remove("protocolVersion");
        body
    };
    let mut body = old(saying("r1", vec![Op::Call(vec![("pick".into(), "{}".into())])]));
    body["tools"] = json!([{ "name": "pick", "description": "", "parameters": {} }]);
    let told = run(&rig, body).await;
    assert_eq!(told.last().unwrap()["outcome"], json!({ "type": "success" }));
    let call = of(&told, "TOOL_CALL_START")[0]["toolCallId"].clone();
    let result = json!([{ "id": "x1", "role": "tool", "toolCallId": call, "content": "blue" }]);
    assert_eq!(said(&run(&rig, old(run_input("r2", result))).await), "blue");
    let waits = old(saying("r3", vec![Op::Sleep(3_600_000)]));
    let (cancelled, _) = tokio::join!(run(&rig, waits), async {
        rig.until(|recorded| {
            matches!(&recorded.event, Event::EffectStarted { effect: polis_domain::Effect::Sleep { .. }, .. })
        })
        .await;
        rig.post("/api/tasks/t1/cancel", json!({})).await.ok();
    });
    let last = cancelled.last().unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!("cancelled")));
}

#[tokio::test]
async fn an_agent_says_what_it_can_do() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Spawn("bob".into())]).await;
    let able = rig.get("/agui/polis").await.ok();
    assert_eq!(able["multiAgent"]["subagents"], json!([{ "name": "bob", "description": "Worker" }]));
    assert_eq!((&able["humanInTheLoop"]["approveWithEdits"], &able["tools"]["clientProvided"]), (&json!(true), &json!(true)));
    assert!(!able.to_string().contains("null"));
}

#[tokio::test]
async fn a_run_is_told_to_its_end_when_the_server_stops_behind_it() {
    for _ in 0..5 {
        let tools = ScriptedTools::new().with("note", EffectClass::Read, |_, _| CallResult::good("noted"));
        let rig = with_tools(tools.delayed(|_| Duration::from_millis(50))).await;
        let bearer = format!("Bearer {TOKEN}");
        let headers = [("content-type", "application/json"), ("authorization", &*bearer)];
        let body = saying("r1", vec![Op::Call(vec![("note".into(), "{}".into())])]).to_string().into_bytes();
        let streaming = send(rig.address, "POST", "/agui/polis", &headers, body).await;
        rig.until(|recorded| matches!(recorded.event, Event::EffectStarted { .. })).await;
        let (told, ()) = tokio::join!(Reply::of(streaming), rig.stop());
        let last = events(&told).pop().unwrap();
        assert_eq!(last["type"], json!("RUN_FINISHED"), "the work had time to end: {last}");
    }
}

#[tokio::test]
async fn a_message_during_a_run_gets_its_own_answer_and_not_the_earlier_one() {
    let rig = Rig::start().await;
    let first = async { run(&rig, saying("r1", vec![Op::Sleep(300), Op::Say("one".into())])).await };
    let second = async {
        rig.until(|recorded| matches!(&recorded.event, Event::EffectStarted { effect: Effect::Sleep { .. }, .. })).await;
        // Many clients send all their messages each time; the first one is already worked on.
        let message = |id: &str, ops: Vec<Op>| json!({ "id": id, "role": "user", "content": Program(ops).text() });
        let both = [message("u1", vec![Op::Sleep(300), Op::Say("one".into())]), message("u2", vec![Op::Say("two".into())])];
        run(&rig, input("r2", json!({ "messages": both }))).await
    };
    let (first, second) = tokio::join!(first, second);
    assert!(said(&first).contains("said:one"), "{first:?}");
    assert!(said(&second).contains("said:two"), "{second:?}");
}
