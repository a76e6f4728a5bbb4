//! Agents make an organisation with their tools, work in it, and clean up (R164, R175-R190).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polis_agents::society::with_society_tools;
use polis_agents::{Converse, PlanTool};
use polis_domain::{AgentId, Children, Effect, Event, MessageKind, Org, OrgStatus, Recorded, Role, Settlement};
use polis_engine::{Cast, Ports, Society};
use polis_ports::{ChatMessage, ModelError, ModelRequest};
use polis_testkit::{MemoryLog, ScriptedModel, ScriptedReply, ask, crash, open};
use serde_json::{Value, json};

fn cast() -> Cast {
    with_society_tools(Cast::new().with("root", Converse::default()).with_tool(PlanTool), "root")
}

/// Whose request it is.
fn who(request: &ModelRequest) -> &str {
    request.system.split("Your name here is `").nth(1).and_then(|rest| rest.split('`').next()).unwrap_or("root")
}

/// The results that a request has so far.
fn results(request: &ModelRequest) -> Vec<&str> {
    let of_this_turn =
        request.messages.rsplit(|message| matches!(message, ChatMessage::User { .. })).next().unwrap_or_default();
    of_this_turn
        .iter()
        .filter_map(|message| match message {
            ChatMessage::Tool { content, .. } => Some(&**content),
            ChatMessage::User { .. } | ChatMessage::Assistant { .. } => None,
        })
        .collect()
}

/// A root that makes these calls one after another and then answers with all results, in a society of others who answer at once.
fn reply(calls: &[(&'static str, Value)], request: &ModelRequest) -> ScriptedReply {
    let done = results(request);
    match (who(request), calls.get(done.len())) {
        ("root", Some((tool, arguments))) => ScriptedReply::call(&format!("c{}", done.len()), tool, &arguments.to_string()),
        ("root", None) => ScriptedReply::text(&done.join("\n")),
        ("slow", _) => ScriptedReply::text("at last").after(Duration::from_secs(60)),
        (name, _) => ScriptedReply::text(&format!("{name} did it")),
    }
}

fn scripted(calls: Vec<(&'static str, Value)>) -> ScriptedModel {
    ScriptedModel::new(move |request| reply(&calls, request))
}

async fn open_with(calls: Vec<(&'static str, Value)>) -> (Society, Arc<MemoryLog>) {
    let log = Arc::new(MemoryLog::new());
    let ports = Ports { log: log.clone(), ..Ports::new(MemoryLog::new()).with_model(scripted(calls)) };
    (open(cast(), ports).await, log)
}

/// What root reads after each of these calls.
async fn read(calls: Vec<(&'static str, Value)>) -> Vec<Value> {
    let (society, _) = open_with(calls).await;
    let answer = ask(&society, "go").await.unwrap();
    answer.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| line.into())).collect()
}

fn role(name: &str) -> (&'static str, Value) {
    ("create_role", json!({ "name": name, "rolePrompt": "Do what you are asked." }))
}

fn agent(role: &str, name: &str) -> (&'static str, Value) {
    ("spawn_agent", json!({ "roleId": role, "agentId": name }))
}

fn request(to: &str) -> Value {
    json!({ "to": to, "text": "please" })
}

fn found_and_dissolve() -> Vec<(&'static str, Value)> {
    vec![
        role("Writer"),
        role("Checker"),
        agent("writer", "w1"),
        agent("checker", "c1"),
        ("request_collaboration", json!({ "requests": [request("w1"), request("Checker")] })),
        ("send_message", json!({ "to": "user", "text": "nearly done" })),
        ("terminate_agent", json!({ "agentId": "w1", "reason": "done" })),
        ("terminate_agent", json!({ "agentId": "c1" })),
        ("list_agents", json!({})),
    ]
}

#[tokio::test(start_paused = true)]
async fn root_founds_an_organisation_asks_it_and_sends_it_away() {
    let (society, _) = open_with(found_and_dissolve()).await;
    let answer = ask(&society, "go").await.unwrap();
    let read: Vec<Value> = answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read[0], json!({ "ok": true, "roleId": "writer" }));
    assert_eq!(read[2], json!({ "ok": true, "agentId": "w1", "roleId": "writer", "parentAgentId": "root" }));
    let answers = json!([
        { "from": "w1", "status": "completed", "answer": "w1 did it" },
        { "from": "c1", "status": "completed", "answer": "c1 did it" },
    ]);
    assert_eq!(read[4], json!({ "ok": true, "answers": answers }));
    assert_eq!(read[6], json!({ "ok": true, "terminatedAgentId": "w1" }));
    assert_eq!((&read[8]["count"], &read[8]["agents"][0]["id"]), (&json!(1), &json!("root")));
    let org = society.look(Org::of).await.unwrap();
    let gone = org.agents.iter().filter(|agent| agent.status == OrgStatus::Terminated).count();
    let founder = org.roles.iter().find(|role| role.role.id.as_str() == "writer").map(|role| role.created_by.clone());
    assert_eq!((gone, founder), (2, Some(AgentId::root())));
    let of_writer = org.terminations.iter().find(|gone| gone.agent_id.as_str() == "w1").unwrap();
    assert_eq!((&*of_writer.reason, &of_writer.terminated_by), ("done", &AgentId::root()));
}

#[tokio::test(start_paused = true)]
async fn an_organisation_survives_a_crash_after_every_commit() {
    let survived = crash::at_every_commit(&cast(), || scripted(found_and_dissolve()), &["go"]).await.unwrap();
    let spawned = survived.log.iter().filter(|recorded| matches!(recorded.event, Event::AgentSpawned { .. })).count();
    assert_eq!(spawned, 3, "root and two more");
    assert!(survived.stops > 20, "{}", survived.stops);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_done_is_read_by_the_model_with_a_code_and_what_to_do() {
    let code = |read: &Value| read["code"].as_str().unwrap_or("none").to_owned();
    let read = read(vec![
        role("Writer"),
        role("Writer"),
        agent("nobody", "x"),
        agent("writer", "w1"),
        agent("writer", "w1"),
        ("request_collaboration", json!({ "requests": [request("wrong")] })),
        ("request_collaboration", json!({ "requests": [request("root")] })),
        ("request_collaboration", json!({ "requests": [request("user")] })),
        ("terminate_agent", json!({ "agentId": "root" })),
        ("terminate_agent", json!({ "agentId": "nobody" })),
        ("send_message", json!({ "to": "w1" })),
        ("terminate_agent", json!({ "agentId": "w1" })),
        ("send_message", json!({ "to": "w1", "text": "are you there?" })),
        ("compress_context", json!({ "summary": "all", "keepRecentCount": -1 })),
        ("compress_context", json!({ "summary": "all" })),
    ])
    .await;
    let codes: Vec<_> = read.iter().map(code).collect();
    let expected = [
        "none",
        "name_taken",
        "unknown_role",
        "none",
        "name_taken",
        "unknown_agent",
        "would_deadlock",
        "to_user",
        "root_stays",
        "unknown_agent",
        "bad_arguments",
        "none",
        "leaving",
        "bad_arguments",
        "none",
    ];
    assert_eq!(codes, expected);
    assert!(read[2]["error"].as_str().unwrap().contains("there are: root, writer"), "{}", read[2]);
    assert!(read[5]["error"].as_str().unwrap().contains("w1 (writer)"), "{}", read[5]);
    assert!(read[12]["error"].as_str().unwrap().contains("is being terminated"), "{}", read[12]);
    assert_eq!(read[14]["compressedCount"], 0);
}

#[tokio::test(start_paused = true)]
async fn one_that_answers_too_late_is_a_result_and_the_others_count() {
    let read = read(vec![
        role("Worker"),
        agent("worker", "slow"),
        agent("worker", "quick"),
        ("request_collaboration", json!({ "requests": [request("slow"), request("quick")], "timeoutSeconds": 5 })),
        ("request_collaboration", json!({ "requests": [request("Worker")] })),
    ])
    .await;
    let answers = &read[3]["answers"];
    assert_eq!((&answers[0]["code"], &answers[1]["answer"]), (&json!("timed_out"), &json!("quick did it")));
    assert_eq!(read[4]["code"], "unknown_agent", "two have that role, so that the name says nothing");
}

/// A society in which the agent `proud` rejects what other agents ask.
fn with_a_proud_agent() -> ScriptedModel {
    let calls = [role("Worker"), agent("worker", "proud"), agent("worker", "quick")];
    let requests = json!({ "requests": [request("proud"), request("quick")] });
    let alone = json!({ "requests": [request("proud")] });
    let calls = calls.into_iter().chain([("request_collaboration", requests), ("request_collaboration", alone)]);
    let calls: Vec<_> = calls.collect();
    ScriptedModel::new(move |request| {
        let may_reject = request.tools.iter().any(|tool| &*tool.name == "reject_request");
        match who(request) {
            "root" => assert!(!may_reject, "no agent waits for root"),
            _ => assert!(may_reject),
        }
        match who(request) {
            "proud" => ScriptedReply::call("r", "reject_request", r#"{"reason":"that is the work of a clerk"}"#),
            _ => reply(&calls, request),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn an_agent_rejects_a_request_and_the_one_that_asked_reads_why_whatever_crashes() {
    let survived = crash::at_every_commit(&cast(), with_a_proud_agent, &["go"]).await.unwrap();
    let failed = |recorded: &Recorded| match &recorded.event {
        Event::TurnSettled { settlement: Settlement::Failed(failure), .. } => Some(failure.to_string()),
        _ => None,
    };
    let ends: Vec<_> = survived.log.iter().filter_map(failed).collect();
    let rejection = "that is the work of a clerk (request_rejected)";
    assert_eq!(ends, [rejection, rejection]);
    let answer = ask(&open(cast(), Ports::new(MemoryLog::new()).with_model(with_a_proud_agent())).await, "go").await.unwrap();
    let read: Vec<Value> = answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let why = "that is the work of a clerk";
    let rejected = json!({ "from": "proud", "status": "rejected", "error": why, "code": "request_rejected" });
    let done = json!({ "from": "quick", "status": "completed", "answer": "quick did it" });
    assert_eq!(read[3], json!({ "ok": true, "answers": [rejected, done] }));
    assert_eq!((&read[4]["ok"], &read[4]["code"]), (&json!(false), &json!("request_rejected")));
}

#[tokio::test(start_paused = true)]
async fn a_request_is_rejected_with_a_reason_and_only_where_an_agent_waits() {
    let calls =
        vec![role("Worker"), agent("worker", "proud"), ("request_collaboration", json!({ "requests": [request("proud")] }))];
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = asked.clone();
    let model = ScriptedModel::new(move |request| {
        heard.lock().unwrap().push((who(request).to_owned(), request.clone()));
        let reject = |reason: &str| ScriptedReply::call("r", "reject_request", reason).and_call("l", "list_roles", "{}");
        match (who(request), request.messages.last().unwrap()) {
            ("root", _) => reply(&calls, request),
            (_, ChatMessage::User { .. }) => reject(r#"{"reason":" "}"#),
            (_, ChatMessage::Tool { .. }) if !results(request)[0].contains("no agent waits") => {
                reject(r#"{"reason":"not mine"}"#)
            }
            _ => ScriptedReply::text("well then"),
        }
    });
    let society = open(cast(), Ports::new(MemoryLog::new()).with_model(model)).await;
    let answer = ask(&society, "go").await.unwrap();
    assert!(answer.contains("not mine") && answer.contains("request_rejected"), "{answer}");
    let sent = society.send("proud".into(), "hello", None).await.unwrap();
    assert_eq!(&*society.answer(&sent).await.unwrap().payload.text, "well then");
    let asked = asked.lock().unwrap();
    let of_proud: Vec<_> = asked.iter().filter(|(name, _)| name == "proud").map(|(_, request)| request).collect();
    assert_eq!(of_proud.len(), 4);
    let first = results(of_proud[1]);
    assert!(first[0].contains("nothing was rejected: `reason` is missing") && first[1].contains("roles"), "{first:?}");
    let second = results(of_proud[3]);
    assert!(second.iter().any(|result| result.contains("nothing was rejected: no agent waits for your answer")), "{second:?}");
    assert!(of_proud.iter().all(|request| request.tools == of_proud[0].tools), "vendors cache the list");
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_told_whether_the_sender_waits_and_later_as_at_first() {
    let request = ("request_collaboration", json!({ "requests": [request("worker1")] }));
    let calls =
        vec![role("Worker"), agent("worker", "worker1"), ("send_message", json!({ "to": "worker1", "text": "note" })), request];
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = asked.clone();
    let model = ScriptedModel::new(move |request| match who(request) {
        "root" => reply(&calls, request),
        _ => {
            heard.lock().unwrap().push(request.messages.clone());
            ScriptedReply::text("done")
        }
    });
    let society = open(cast(), Ports::new(MemoryLog::new()).with_model(model)).await;
    ask(&society, "go").await.unwrap();
    let asked = asked.lock().unwrap();
    let texts = |n: usize| {
        let user = |message: &ChatMessage| match message {
            ChatMessage::User { text, .. } => Some(text.lines().next().unwrap_or_default().to_owned()),
            ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => None,
        };
        asked[n].iter().filter_map(user).collect::<Vec<_>>()
    };
    assert_eq!(texts(0), ["[from root, no answer awaited]"]);
    assert_eq!(texts(1), ["[from root, no answer awaited]", "[from root]"]);
}

#[tokio::test(start_paused = true)]
async fn only_whoever_made_an_agent_sends_it_away() {
    let calls = vec![("terminate_agent", json!({ "agentId": "grandchild" }))];
    let (society, _) = open_with(calls).await;
    society.spawn("child".into(), "root".into(), AgentId::root()).await.unwrap();
    society.spawn("grandchild".into(), "root".into(), "child".into()).await.unwrap();
    let answer = ask(&society, "go").await.unwrap();
    let read: Value = serde_json::from_str(&answer).unwrap();
    assert!(read["error"].as_str().unwrap().starts_with("只能终止自己创建的子智能体"), "{read}");
    assert!(society.look(|spine| spine.agents.contains_key(&AgentId::from("grandchild"))).await.unwrap());
}

type Seen = Arc<Mutex<Vec<(String, Vec<String>)>>>;

/// Notes which tools each agent is shown; `narrow` makes a child of a wide role and asks it.
fn noting(seen: Seen) -> ScriptedModel {
    ScriptedModel::new(move |request| {
        let (name, step) = (who(request).to_owned(), results(request).len());
        let tools = request.tools.iter().map(|tool| tool.name.to_string()).collect();
        seen.lock().unwrap().push((name.clone(), tools));
        match (&*name, step) {
            ("narrow", 0) => ScriptedReply::call("a", "spawn_agent", r#"{"roleId":"wide","agentId":"child"}"#),
            ("narrow", 1) => {
                ScriptedReply::call("b", "request_collaboration", r#"{"requests":[{"to":"child","text":"list"}]}"#)
                    .and_call("c", "plan", "{}")
            }
            ("child", 0) => ScriptedReply::call("d", "list_agents", "{}"),
            _ => ScriptedReply::text(&results(request).join("\n")),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn an_agent_has_the_tools_of_its_role_and_its_children_no_more() {
    let seen = Seen::default();
    let society = open(cast(), Ports::new(MemoryLog::new()).with_model(noting(seen.clone()))).await;
    let narrow = Role::new("narrow", "root").with_tools(["spawn_*", "request_collaboration"]);
    society.create_role(narrow).await.unwrap();
    society.create_role(Role::new("wide", "root")).await.unwrap();
    society.spawn("narrow".into(), "narrow".into(), AgentId::root()).await.unwrap();
    let sent = society.send("narrow".into(), "go", None).await.unwrap();
    let answer = society.answer(&sent).await.unwrap().payload.text.to_string();
    let tools_of = |name: &str| seen.lock().unwrap().iter().find(|(agent, _)| agent == name).unwrap().1.clone();
    let allowed = ["spawn_agent", "request_collaboration", "reject_request"];
    assert_eq!(
        (tools_of("narrow"), tools_of("child")),
        (allowed.map(str::to_owned).to_vec(), allowed.map(str::to_owned).to_vec())
    );
    assert!(answer.contains("list_agents may not be used here: role `narrow` does not have it"), "{answer}");
    assert!(answer.contains("plan may not be used here"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_compresses_sees_its_summary_at_once() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = seen.clone();
    let model = ScriptedModel::new(move |request| {
        asked.lock().unwrap().push(request.clone());
        let last = request.messages.iter().rev().find_map(|message| match message {
            ChatMessage::User { text, .. } => Some(text.to_string()),
            _ => None,
        });
        if last.as_deref() == Some("compress") && results(request).is_empty() {
            return ScriptedReply::call("c", "compress_context", r#"{"summary":"we talked","keepRecentCount":2}"#);
        }
        ScriptedReply::text("an answer of some length, so that a summary can be shorter than it is")
    });
    let society = open(cast(), Ports::new(MemoryLog::new()).with_model(model)).await;
    for text in ["one", "two", "three", "compress"] {
        ask(&society, text).await.unwrap();
    }
    let seen = seen.lock().unwrap();
    let [before, after] = &seen[seen.len() - 2..] else { panic!("{}", seen.len()) };
    assert_eq!(after.messages[0], ChatMessage::user("[历史摘要] we talked"));
    assert_eq!(before.system, after.system, "the instructions stay as they are");
    assert_eq!(
        (before.messages.len(), after.messages.len()),
        (7, 6),
        "the summary, two older ones, the request, the call, its result"
    );
}

/// Has agents of these names run with a model until nothing happens any more; gives the log, the model calls, and what the
/// person was told along the way.
async fn run_out(names: &[&str], to: &str, model: ScriptedModel) -> (Vec<Arc<Recorded>>, usize, Vec<String>) {
    let log = Arc::new(MemoryLog::new());
    let society = open(cast(), Ports { log: log.clone(), ..Ports::new(MemoryLog::new()).with_model(model) }).await;
    for name in names {
        society.spawn((*name).into(), "root".into(), AgentId::root()).await.unwrap();
    }
    society.send(to.into(), "start", None).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let open = society.look(|spine| spine.turns.len()).await.unwrap();
    assert_eq!(open, 0, "everything has come to an end");
    society.stop(Duration::from_secs(30)).await;
    let events = log.events(&"main".into());
    let asked = |event: &Event| matches!(event, Event::EffectStarted { effect: Effect::Model { .. }, .. });
    let calls = events.iter().filter(|recorded| asked(&recorded.event)).count();
    let told = events
        .iter()
        .filter_map(|recorded| recorded.event.envelope())
        .filter(|envelope| envelope.to == AgentId::user() && envelope.kind == MessageKind::Message);
    let told = told.map(|envelope| envelope.payload.text.to_string()).collect();
    (events, calls, told)
}

/// The next agent of a ring.
fn next_of(names: &'static [&'static str], name: &str) -> Option<&'static str> {
    let place = names.iter().position(|other| *other == name)?;
    Some(names[(place + 1) % names.len()])
}

#[tokio::test(start_paused = true)]
async fn agents_that_write_to_each_other_end_within_tens_of_calls_and_the_person_is_told() {
    const RINGS: [&[&str]; 3] = [&["ping", "pong"], &["x", "y", "z"], &["p", "q", "r", "s", "t"]];
    for ring in RINGS {
        // One answers after each message; the other one never does, and never writes the same twice.
        for answers in [true, false] {
            let count = Arc::new(AtomicUsize::new(0));
            let model = ScriptedModel::new(move |request| match (next_of(ring, who(request)), results(request).last()) {
                (Some(_), Some(result)) if answers => ScriptedReply::text(result),
                (Some(to), _) => {
                    let n = count.fetch_add(1, Ordering::Relaxed);
                    let word: String = format!("{n}").chars().map(|digit| ((digit as u8 - b'0') + b'a') as char).collect();
                    ScriptedReply::call(
                        "c",
                        "send_message",
                        &json!({ "to": to, "text": format!("{word}, your turn") }).to_string(),
                    )
                }
                (None, _) => ScriptedReply::text("hello"),
            });
            let (events, calls, told) = run_out(ring, ring[0], model).await;
            assert!(calls < 33 * ring.len(), "{ring:?} made {calls} calls");
            let [report] = &told[..] else { panic!("{ring:?}: {told:?}") };
            assert!(report.contains(&format!("{} to {} ", ring[0], ring[1])) && report.contains("Model calls: "), "{report}");
            let code = if ring.len() > 2 && answers { "too_many_hops" } else { "message_loop" };
            let is_refused = |event: &Event| matches!(event, Event::EffectRefused { failure, .. } if &*failure.code == code);
            assert!(report.contains(&format!("({code})")), "{report}");
            assert!(events.iter().any(|recorded| is_refused(&recorded.event)), "the agent is told as well");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_manager_asks_ten_workers_three_times_each_and_nobody_is_stopped() {
    let model = ScriptedModel::new(|request| match who(request) {
        "boss" => {
            let rounds = results(request).len();
            if rounds == 3 {
                return ScriptedReply::text(&format!("done: {}", results(request).join(" ").matches("worked").count()));
            }
            let requests: Vec<_> =
                (0..10).map(|n| json!({ "to": format!("w{n}"), "text": format!("part {rounds}") })).collect();
            ScriptedReply::call("c", "request_collaboration", &json!({ "requests": requests }).to_string())
        }
        _ => ScriptedReply::text(&format!("worked after {}", request.messages.len())),
    });
    let names: Vec<String> = std::iter::once("boss".to_owned()).chain((0..10).map(|n| format!("w{n}"))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (events, calls, told) = run_out(&names, "boss", model).await;
    let answer = events
        .iter()
        .rev()
        .filter_map(|recorded| recorded.event.envelope())
        .find(|envelope| envelope.kind == MessageKind::Answer);
    assert_eq!(answer.map(|envelope| envelope.payload.text.to_string()), Some("done: 30".to_owned()));
    assert_eq!((calls, told), (34, Vec::<String>::new()));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_delegated_six_deep_comes_back() {
    const CHAIN: [&str; 7] = ["d0", "d1", "d2", "d3", "d4", "d5", "d6"];
    let model = ScriptedModel::new(|request| {
        let place = CHAIN.iter().position(|name| *name == who(request));
        match (place, results(request).last()) {
            (Some(6), _) => ScriptedReply::text("bottom"),
            (Some(place), None) => {
                let asked = json!({ "requests": [{ "to": CHAIN[place + 1], "text": "deeper" }] });
                ScriptedReply::call("c", "request_collaboration", &asked.to_string())
            }
            (Some(_), Some(result)) if result.contains("bottom") => ScriptedReply::text("bottom, passed up"),
            _ => ScriptedReply::text("lost"),
        }
    });
    let (events, _, told) = run_out(&CHAIN, "d0", model).await;
    let answer = events
        .iter()
        .rev()
        .filter_map(|recorded| recorded.event.envelope())
        .find(|envelope| envelope.kind == MessageKind::Answer);
    assert_eq!(answer.map(|envelope| envelope.payload.text.to_string()), Some("bottom, passed up".to_owned()));
    assert_eq!(told, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_nobody_reads_comes_back_with_the_reason() {
    let model = ScriptedModel::new(|request| match who(request) {
        "slow" => ScriptedReply::text("at last").after(Duration::from_secs(600)),
        "writer" if results(request).is_empty() && request.messages.len() == 1 => {
            ScriptedReply::call("c", "send_message", r#"{"to":"slow","text":"read this"}"#)
        }
        _ => ScriptedReply::text("ok"),
    });
    let log = Arc::new(MemoryLog::new());
    let society = open(cast(), Ports { log: log.clone(), ..Ports::new(MemoryLog::new()).with_model(model) }).await;
    for name in ["slow", "writer"] {
        society.spawn(name.into(), "root".into(), AgentId::root()).await.unwrap();
    }
    society.send("slow".into(), "be busy", None).await.unwrap();
    let sent = society.send("writer".into(), "write", None).await.unwrap();
    society.answer(&sent).await.unwrap();
    society.terminate("slow".into(), Children::Cascade, "enough", true).await.unwrap();
    let back = log.events(&"main".into()).iter().rev().find_map(|recorded| recorded.event.envelope().cloned()).unwrap();
    assert_eq!((back.to.as_str(), back.from.as_str()), ("writer", "slow"));
    assert!(matches!(&back.kind, MessageKind::Failure(failure) if &*failure.code == "terminated"));
    assert!(back.payload.text.contains("read this"), "{}", back.payload.text);
}

#[tokio::test(start_paused = true)]
async fn an_agent_sees_its_usage_and_sends_away_the_one_that_has_a_role() {
    let read = read(vec![
        role("Worker"),
        agent("worker", "w1"),
        ("list_agents", json!({})),
        ("terminate_agent", json!({ "agentId": "Worker" })),
        ("request_collaboration", json!({ "requests": [request("nobody")] })),
        ("request_collaboration", json!({ "requests": [request("nobody")], "timeoutSeconds": 0 })),
        ("create_role", json!({ "name": "a\nb", "rolePrompt": "work", "id": "odd" })),
    ])
    .await;
    let own = &read[2]["yourContext"];
    assert_eq!((&own["messages"], &own["maxMessages"]), (&json!(1), &json!(50)), "{own}");
    assert_eq!(read[2]["agents"][1]["contextMessages"], json!({ "now": 0, "most": 50 }));
    assert_eq!(read[3]["terminatedAgentId"], "w1");
    assert_eq!((&read[4]["ok"], &read[4]["answers"][0]["code"]), (&json!(false), &json!("unknown_agent")));
    assert_eq!((&read[5]["code"], &read[6]["code"]), (&json!("bad_arguments"), &json!("bad_name")));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_sent_away_by_its_role_survives_a_crash_after_every_commit() {
    let calls = || vec![role("Worker"), agent("worker", "w1"), ("terminate_agent", json!({ "agentId": "worker" }))];
    let survived = crash::at_every_commit(&cast(), || scripted(calls()), &["go"]).await.unwrap();
    assert_eq!(survived.log.iter().filter(|recorded| matches!(recorded.event, Event::AgentTerminated { .. })).count(), 1);
}

/// Root leaves a part to `kid` and does not wait; the model of `kid` refuses. Root's own model refuses the notice too if
/// `root_fails`.
fn unawaited(root_fails: bool) -> ScriptedModel {
    let refused = || ScriptedReply::error(ModelError::Rejected { reason: "bad request".to_owned() });
    let calls = [role("Writer"), agent("writer", "kid"), ("send_message", request("kid"))];
    ScriptedModel::new(move |request| {
        let done = results(request);
        let last = request.messages.iter().rev().find_map(|message| match message {
            ChatMessage::User { text, .. } => Some(text.to_string()),
            ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => None,
        });
        let notice = last.filter(|text| text.starts_with("[from kid]"));
        match (who(request), notice, calls.get(done.len())) {
            // Root has answered by then, at any pace.
            ("kid", ..) => refused().after(Duration::from_secs(60)),
            (_, Some(_), _) if root_fails => refused(),
            (_, Some(notice), _) => ScriptedReply::text(&notice),
            (_, None, Some((tool, arguments))) => {
                ScriptedReply::call(&format!("c{}", done.len()), tool, &arguments.to_string())
            }
            (_, None, None) => ScriptedReply::text("kid does it"),
        }
    })
}

/// What the person is told, in order.
fn told(log: &[Recorded]) -> Vec<(String, String)> {
    let envelopes = log.iter().filter_map(|recorded| recorded.event.envelope()).filter(|envelope| envelope.to.is_user());
    let kind = |kind: &MessageKind| match kind {
        MessageKind::Failure(failure) => failure.code.to_string(),
        MessageKind::Answer => "answer".to_owned(),
        MessageKind::Message => "message".to_owned(),
    };
    envelopes.map(|envelope| (kind(&envelope.kind), envelope.payload.text.to_string())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_while_nobody_waits_is_reported_to_its_parent_whatever_crashes() {
    let survived = crash::at_every_commit(&cast(), || unawaited(false), &["go"]).await.unwrap();
    let told = told(&survived.log);
    assert_eq!(told[0], ("answer".to_owned(), "kid does it".to_owned()));
    assert_eq!((told.len(), &*told[1].0), (2, "answer"), "root answers about the failure: {told:?}");
    let says = ["[from kid]", "`kid` failed:", "(model_rejected)", "It was asked: please"];
    assert!(says.iter().all(|part| told[1].1.contains(part)), "{}", told[1].1);
    let dead = survived.log.iter().filter(|recorded| matches!(recorded.event, Event::MessageDeadLettered { .. })).count();
    assert_eq!(dead, 1, "in the log once");
}

#[tokio::test(start_paused = true)]
async fn the_person_gets_the_failure_when_the_parent_fails_on_it_too() {
    let survived = crash::at_every_commit(&cast(), || unawaited(true), &["go"]).await.unwrap();
    let told = told(&survived.log);
    let kinds: Vec<_> = told.iter().map(|(kind, _)| &**kind).collect();
    assert_eq!(kinds, ["answer", "model_rejected"], "{told:?}");
}
