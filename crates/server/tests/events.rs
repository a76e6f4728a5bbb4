//! Live events: exact resume, filter, deltas, end.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Response, StatusCode};
use polis_domain::{CallResult, EffectClass, Seq};
use polis_engine::{Branch, SystemClock, fork};
use polis_ports::{Frame, Live, StreamedStep};
use polis_testkit::{MemoryLog, Op, Program, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Value, json};

use crate::support::{Rig, TOKEN, send, society};

/// An open stream of events.
struct Stream {
    body: Incoming,
    unread: String,
}

/// One event as it came over the wire.
#[derive(Debug, PartialEq)]
struct Told {
    id: Option<u64>,
    name: String,
    data: Value,
}

impl Stream {
    async fn open(rig: &Rig, target: &str, last_event_id: Option<u64>) -> Self {
        let bearer = format!("Bearer {TOKEN}");
        let id = last_event_id.map(|id| id.to_string());
        let mut headers = vec![("authorization", &*bearer)];
        headers.extend(id.as_deref().map(|id| ("last-event-id", id)));
        let response: Response<Incoming> = send(rig.address, "GET", target, &headers, Vec::new()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), unread: String::new() }
    }

    /// The next event; none at the end of the stream.
    async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let told = field("data: ").map(|data| Told {
                    id: field("id: ").map(|id| id.parse().unwrap()),
                    name: field("event: ").unwrap(),
                    data: serde_json::from_str(&data).unwrap(),
                });
                self.unread = rest.to_owned();
                match told {
                    Some(told) => return Some(told),
                    None => continue,
                }
            }
            let frame = self.body.frame().await?.unwrap();
            self.unread.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
    }

    /// The next event of the log.
    async fn committed(&mut self) -> Told {
        loop {
            let told = self.next().await.unwrap();
            if told.id.is_some() {
                return told;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reconnects_sees_every_event_once_and_in_order() {
    let rig = Rig::start().await;
    let busy = {
        let society = rig.society.clone();
        tokio::spawn(async move {
            for n in 0..20 {
                let text = Program(vec![Op::Think(n.to_string()), Op::Say("x".into())]).text();
                let sent = society.submit(&text).await.unwrap();
                society.answer(&sent).await.unwrap();
            }
            society.submit(&Program(vec![Op::Tell("the end".into())]).text()).await.unwrap()
        })
    };
    let mut seen: Vec<Value> = Vec::new();
    // Each time a different number of events is read before the line goes dead.
    'reading: for lasts in (1..).cycle().take(10_000) {
        let last = seen.len() as u64;
        let mut stream = match lasts % 2 {
            0 => Stream::open(&rig, &format!("/api/events?after={last}"), None).await,
            // The header counts for more than the address that the client began with.
            _ => Stream::open(&rig, "/api/events?after=0", (last > 0).then_some(last)).await,
        };
        for _ in 0..lasts % 13 + 1 {
            let told = stream.committed().await;
            assert_eq!(told.id, Some(seen.len() as u64 + 1), "nothing twice, nothing missing");
            let ended = told.data["event"]["messageSent"]["envelope"]["payload"]["text"] == json!("the end");
            seen.push(told.data);
            if ended {
                break 'reading;
            }
        }
    }
    let last = busy.await.unwrap();
    rig.society.answer(&last).await.unwrap();
    let log = rig.log.events(&society());
    assert!(seen.len() > 100);
    assert_eq!(Value::Array(seen.clone()), serde_json::to_value(&log[..seen.len()]).unwrap());
}

#[tokio::test]
async fn an_event_has_the_name_that_the_log_gives_it() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Think("x".into())]).await;
    let mut stream = Stream::open(&rig, "/api/events", None).await;
    for recorded in rig.log.events(&society()) {
        let told = stream.committed().await;
        let written = serde_json::to_value(&*recorded).unwrap();
        let name = written["event"].as_object().unwrap().keys().next().unwrap().clone();
        assert_eq!(told, Told { id: Some(recorded.seq.0), name, data: written });
    }
}

#[tokio::test]
async fn chunks_of_a_reply_come_before_it_and_have_no_id() {
    let rig = Rig::start().await;
    let mut stream = Stream::open(&rig, &format!("/api/events?after={}", rig.last()), None).await;
    rig.run(vec![Op::Think("x".into())]).await;
    let mut started = None;
    let mut chunks = Vec::new();
    loop {
        let told = stream.next().await.unwrap();
        match told.name.as_str() {
            "effectStarted" => started = Some(told.data["event"]["effectStarted"]["id"].clone()),
            "delta" => {
                assert_eq!(
                    (told.id, Some(&told.data["effect"]), &told.data["thread"]),
                    (None, started.as_ref(), &json!("root"))
                );
                chunks.push(told.data["delta"].clone());
            }
            "effectEnded" => break,
            _ => {}
        }
    }
    assert_eq!(chunks[0], json!({ "content": "a thought" }));
    assert_eq!(chunks.last(), Some(&json!({ "done": "stop" })));
}

#[tokio::test]
async fn a_stream_of_one_request_has_what_is_seen_done_for_it_and_for_no_other() {
    let rig = Rig::start().await;
    let mut stream = Stream::open(&rig, &format!("/api/events?after={}&task=one", rig.last()), None).await;
    for (task, todo) in [("other", None), ("one", Some("a")), ("one", None)] {
        let chunk = StreamedStep {
            task: task.into(),
            thread: "sub_root_1".into(),
            path: "messages[1].meta._thread".parse().unwrap(),
            todo: todo.map(Into::into),
            agent_type: "executor".into(),
            action: "thinking".into(),
            component: None,
            chunk: None,
            duration_ms: None,
            usage: None,
        };
        rig.live.publish(&society(), Frame::Step(Arc::new(chunk)));
    }
    for todo in [json!("a"), json!(null)] {
        let told = stream.next().await.unwrap();
        assert_eq!((&*told.name, &told.data["task"], &told.data["todo"]), ("step", &json!("one"), &todo));
    }
}

#[tokio::test]
async fn a_stream_can_be_of_one_thread_only() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Spawn("bob".into()), Op::Think("x".into())]).await;
    rig.run(vec![Op::Ask { agent: "bob".into(), program: Program(vec![Op::Think("y".into())]), patience_ms: 60_000 }]).await;
    let wanted: Vec<_> = rig
        .log
        .events(&society())
        .iter()
        .filter(|recorded| recorded.thread == Some("bob".into()))
        .map(|recorded| recorded.seq.0)
        .collect();
    let mut stream = Stream::open(&rig, "/api/events?after=0&thread=bob", None).await;
    assert!(wanted.len() >= 4);
    for seq in wanted {
        assert_eq!(stream.committed().await.id, Some(seq));
    }
}

#[tokio::test]
async fn streams_end_with_a_word_when_the_server_stops() {
    let rig = Rig::start().await;
    let last = rig.last().0;
    let mut idle = Stream::open(&rig, &format!("/api/events?after={last}"), None).await;
    let mut whole = Stream::open(&rig, "/api/events", None).await;
    let stopping = tokio::spawn(rig.stop());
    assert_eq!(idle.next().await.unwrap().name, "stopping");
    assert_eq!(idle.next().await, None);
    // Whoever is behind still gets what has happened.
    for seq in 1..=last {
        assert_eq!(whole.committed().await.id, Some(seq));
    }
    assert_eq!(whole.next().await.unwrap().name, "stopping");
    tokio::time::timeout(Duration::from_secs(10), stopping).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_stop_waits_for_what_is_under_way_and_answers_in_between() {
    let log = Arc::new(MemoryLog::new());
    let gate = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let opened = gate.clone();
    let tools = ScriptedTools::new()
        .with("write", EffectClass::Write, move |_, _| {
            opened.store(true, std::sync::atomic::Ordering::SeqCst);
            CallResult::good("written")
        })
        .delayed(|_| Duration::from_millis(200));
    let rig = Rig::on(log.clone(), ScriptedModel::new(|_| ScriptedReply::text("")), tools).await;
    let text = Program(vec![Op::Call(vec![("write".into(), "{}".into())])]).text();
    rig.post("/api/submit", json!({ "conversation": "root", "text": text })).await.ok();
    rig.until(|recorded| matches!(recorded.event, polis_domain::Event::EffectStarted { .. })).await;
    rig.stop().await;
    assert!(gate.load(std::sync::atomic::Ordering::SeqCst));
    let ended = |recorded: &Arc<polis_domain::Recorded>| matches!(recorded.event, polis_domain::Event::EffectEnded { .. });
    assert!(log.events(&society()).iter().any(ended), "its result is in the log, so it is not in doubt");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_can_be_of_one_request_or_of_one_agent() {
    let rig = Rig::start().await;
    rig.run(vec![Op::Spawn("bob".into())]).await;
    let asked = Program(vec![Op::Think("y".into())]);
    let ask = Op::Ask { agent: "bob".into(), program: asked, patience_ms: 60_000 };
    let (task, _) = rig.run(vec![Op::Think("x".into()), ask]).await;
    rig.run(vec![Op::Think("z".into())]).await;
    let all = rig.log.events(&society());
    let started = |recorded: &polis_domain::Recorded| match &recorded.event {
        polis_domain::Event::TurnStarted { agent, task, .. } => Some((recorded.seq, agent.clone(), task.id.clone())),
        _ => None,
    };
    let turns: Vec<_> = all.iter().filter_map(|recorded| started(recorded)).collect();
    let of = |recorded: &polis_domain::Recorded| {
        turns.iter().find(|(seq, ..)| recorded.turn().is_some_and(|turn| turn.0 == *seq)).cloned()
    };
    let envelope = |recorded: &polis_domain::Recorded| recorded.event.envelope().cloned();
    let of_task: Vec<u64> = all
        .iter()
        .filter(|one| {
            of(one).is_some_and(|(_, _, other)| other == task) || envelope(one).is_some_and(|one| one.task_id == task)
        })
        .map(|one| one.seq.0)
        .collect();
    let is_bobs = |one: &polis_domain::Recorded| {
        of(one).is_some_and(|(_, agent, _)| agent.as_str() == "bob")
            || envelope(one).is_some_and(|one| one.to.as_str() == "bob" || one.from.as_str() == "bob")
            || matches!(&one.event, polis_domain::Event::AgentSpawned { agent, .. } if agent.as_str() == "bob")
    };
    let bobs: Vec<u64> = all.iter().filter(|one| is_bobs(one)).map(|one| one.seq.0).collect();
    assert!(of_task.len() > 5 && bobs.len() > 5 && bobs.len() < all.len() && of_task.len() < all.len());
    for (target, want) in [(format!("/api/events?task={task}"), of_task), ("/api/events?agent=bob".to_owned(), bobs)] {
        let mut stream = Stream::open(&rig, &target, None).await;
        let mut seen = Vec::new();
        while seen.len() < want.len() {
            seen.push(stream.committed().await.id.unwrap());
        }
        assert_eq!(seen, want, "{target}");
    }
}

/// L5 in small: who does not read loses no event, is told so, and holds nobody up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_told_to_begin_its_replies_anew_and_misses_no_event() {
    let rig = Rig::start().await;
    let mut stalled = Stream::open(&rig, "/api/events", None).await;
    stalled.committed().await;
    // More than the buffers of both sides and of the server hold.
    let live = polis_ports::StreamedDelta {
        effect: "1.0".parse().unwrap(),
        thread: "root".into(),
        delta: polis_ports::Delta::Content("x".repeat(2_000)),
    };
    let live = Arc::new(live);
    for _ in 0..20_000 {
        rig.live.publish(&society(), polis_ports::Frame::Delta(live.clone()));
    }
    rig.run(vec![Op::Think("x".into())]).await;
    let last = rig.last().0;
    let (mut ids, mut resyncs) = (vec![1], 0);
    while *ids.last().unwrap() < last {
        let told = stalled.next().await.unwrap();
        ids.extend(told.id);
        resyncs += usize::from(told.name == "resync");
    }
    assert_eq!(ids, (1..=last).collect::<Vec<_>>());
    assert!(resyncs > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_late_sees_a_reply_from_its_beginning() {
    let rig = Rig::start().await;
    let chunk = |text: &str| {
        let (effect, thread) = ("7.0".parse().unwrap(), "root".into());
        let delta = polis_ports::Delta::Content(text.to_owned());
        polis_ports::Frame::Delta(Arc::new(polis_ports::StreamedDelta { effect, thread, delta }))
    };
    rig.live.publish(&society(), chunk("Once "));
    rig.live.publish(&society(), chunk("upon"));
    let mut late = Stream::open(&rig, "/api/events", None).await;
    let mut told = late.next().await.unwrap();
    while told.name != "delta" {
        told = late.next().await.unwrap();
    }
    assert_eq!(told.data["delta"], json!({ "content": "Once upon" }));
    rig.live.publish(&society(), chunk(" a time"));
    assert_eq!(late.next().await.unwrap().data["delta"], json!({ "content": " a time" }));
}

/// The status of a stream that is gone on with after this id, its first event's id, and what is said where there is none.
async fn after(rig: &Rig, id: &str) -> (u16, String) {
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", &*bearer), ("last-event-id", id)];
    let mut response = send(rig.address, "GET", "/api/events", &headers, Vec::new()).await;
    let status = response.status().as_u16();
    let frame = response.body_mut().frame().await.unwrap().unwrap();
    let text = std::str::from_utf8(frame.data_ref().unwrap()).unwrap().to_owned();
    let id = text.lines().find_map(|line| line.strip_prefix("id: ")).map(str::to_owned);
    (status, id.unwrap_or(text))
}

#[tokio::test]
async fn a_place_of_another_history_is_not_gone_on_with() {
    let first = Rig::start().await;
    for _ in 0..3 {
        first.run(vec![Op::Say("x".into())]).await;
    }
    let (log, old) = (first.log.clone(), first.last());
    assert_eq!(after(&first, "0").await, (200, "1".to_owned()));
    first.stop().await;
    let branch =
        Branch { from: society(), at: Some(Seq(old.0 - 4)), to: society(), aside: Some("main-1".into()), request: None };
    let shared = fork(&*log, &SystemClock, &branch, 99).await.unwrap().at;
    let model = || ScriptedModel::new(|_| ScriptedReply::text("a thought"));
    let rig = Rig::on(log.clone(), model(), ScriptedTools::new()).await;
    while rig.last() <= old {
        rig.run(vec![Op::Say("y".into())]).await;
    }
    let (status, new) = after(&rig, &shared.to_string()).await;
    assert_eq!((status, new.split('.').next().unwrap()), (200, &*shared.next().to_string()), "what both share is one history");
    let (_, mark) = new.split_once('.').expect("places of another history are not named like those of the first");
    assert_eq!(after(&rig, &new).await, (200, format!("{}.{mark}", shared.next().next())), "and that one goes on");
    for lost in [old.to_string(), shared.next().to_string(), format!("{}.feedbeef", shared.next())] {
        let (status, problem) = after(&rig, &lost).await;
        assert_eq!(status, 409, "{lost}");
        let problem: Value = serde_json::from_str(&problem).unwrap();
        assert_eq!(problem["code"], json!("other_history"), "{problem}");
        let from = if lost.contains('.') { 0 } else { shared.0 };
        assert!(problem["detail"].as_str().unwrap().contains(&format!("after={from}")), "{problem}");
    }
    // A second rewind makes a third history, and says what it shares with each of the others.
    let (second, last) = (new.clone(), rig.last());
    rig.stop().await;
    let branch = Branch { at: Some(Seq(shared.0 + 1)), aside: Some("main-2".into()), ..branch };
    let at = fork(&*log, &SystemClock, &branch, 7).await.unwrap().at;
    let rig = Rig::on(log, model(), ScriptedTools::new()).await;
    while rig.last() <= last {
        rig.run(vec![Op::Say("z".into())]).await;
    }
    assert_eq!((after(&rig, &second).await.0, at), (200, Seq(shared.0 + 1)));
    assert_eq!(after(&rig, &format!("{last}.{mark}")).await.0, 409);
    assert_eq!(after(&rig, &format!("{}", shared)).await.0, 200);
}
