//! Spans and metrics as a collector gets them, and logs for machines.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use polis_domain::{Effect, Event};
use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::support::{Done, Home, is_ending};

/// A collector that takes everything.
struct Collector {
    address: String,
    /// Where each request went, its head, and what it said.
    heard: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard = Arc::<Mutex<Vec<_>>>::default();
        let noted = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let noted = noted.clone();
                std::thread::spawn(move || attend(&stream, &noted));
            }
        });
        Self { address, heard }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn set(&self, command: &mut Command) {
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", self.url()).env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    }

    /// All spans so far, in the order in which they came.
    fn spans(&self) -> Vec<Value> {
        let heard = self.heard.lock().unwrap();
        let of = |body: &Value| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default();
        heard.iter().flat_map(|(_, body)| of(body)).collect()
    }

    fn metrics(&self) -> Value {
        let heard = self.heard.lock().unwrap();
        let bodies = heard.iter().rev().filter_map(|(_, body)| body.get("resourceMetrics"));
        bodies.map(|body| body[0]["scopeMetrics"][0]["metrics"].clone()).next().unwrap()
    }
}

/// Answers everything that comes over a connection.
fn attend(stream: &TcpStream, noted: &Mutex<Vec<(String, Value)>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        // Whoever sends may be killed.
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        noted.lock().unwrap().push((head, serde_json::from_slice(&body).unwrap()));
        if (&*stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").is_err() {
            return;
        }
    }
}

fn attribute(span: &Value, key: &str) -> Option<String> {
    let attribute = span["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == key)?;
    let value = attribute["value"].as_object().unwrap().values().next().unwrap();
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

fn operations(spans: &[Value], operation: &str) -> usize {
    spans.iter().filter(|span| attribute(span, "gen_ai.operation.name").as_deref() == Some(operation)).count()
}

fn tokens(span: &Value, prefix: &str) -> u64 {
    let keys = ["input_tokens", "output_tokens"].map(|key| format!("{prefix}.{key}"));
    keys.iter().filter_map(|key| attribute(span, key)?.parse::<u64>().ok()).sum()
}

/// The one span that stands in no other; every other one's parent is there.
fn root(spans: &[Value]) -> &Value {
    let by_id: BTreeMap<_, _> = spans.iter().map(|span| (span["spanId"].as_str().unwrap(), span)).collect();
    assert_eq!(by_id.len(), spans.len(), "each span once");
    let (inner, outer): (Vec<_>, Vec<_>) = spans.iter().partition(|span| span.get("parentSpanId").is_some());
    for span in inner {
        assert!(by_id.contains_key(span["parentSpanId"].as_str().unwrap()), "{span}");
    }
    assert_eq!(outer.len(), 1, "{outer:?}");
    outer[0]
}

#[test]
fn a_workflow_arrives_as_one_tree_with_the_calls_and_tokens_that_polis_itself_counts() {
    let home = Home::new();
    home.write("NOTES.md", "# Notes\nbuy milk\n");
    let collector = Collector::start();
    home.write(
        "polis.toml",
        &format!(
            "[telemetry]\nendpoint = \"{}\"\nprotocol = \"http/json\"\nheaders = {{ X-Key = \"k ${{COLLECTOR_KEY}}\" }}\n",
            collector.url()
        ),
    );
    let mut command =
        home.command(&["run", "--conversation", "root", "--strategy", "workflow", "read NOTES.md; what is 15% of 240"]);
    Done::from(command.env("COLLECTOR_KEY", "of-the-collector").output().unwrap()).ok();

    let spans = collector.spans();
    let request = root(&spans);
    let log = home.log();
    let count = |which: fn(&Effect) -> bool| {
        log.iter().filter(|it| matches!(&it.event, Event::EffectStarted { effect, .. } if which(effect))).count()
    };
    assert_eq!(operations(&spans, "chat"), count(|effect| matches!(effect, Effect::Model { .. })));
    assert_eq!(
        operations(&spans, "execute_tool"),
        count(|effect| matches!(effect, Effect::Tool(call) if !call.is_environment()))
    );
    assert!(operations(&spans, "chat") > 3 && operations(&spans, "execute_tool") > 0);
    let mut usage = home.command(&["usage", "--json"]);
    let usage = Done::from(usage.env("COLLECTOR_KEY", "x").output().unwrap()).ok();
    let usage: Value = serde_json::from_str(&usage).unwrap();
    let society = usage["accounts"].as_array().unwrap().iter().find(|account| account["scope"] == "society").unwrap();
    let spent = society["spent"]["tokens"].as_u64().unwrap();
    assert!(spent > 0);
    let counted = spans.iter().map(|span| tokens(span, "gen_ai.usage")).sum::<u64>();
    assert_eq!((counted, tokens(request, "polis")), (spent, spent), "over all spans each token is counted once");
    let nested = "messages[1].meta._thread.messages[0].meta._thread";
    let inner =
        spans.iter().find(|span| span["name"] == "turn root" && attribute(span, "polis.path").as_deref() == Some(nested));
    let above = spans.iter().find(|span| span["spanId"] == inner.unwrap()["parentSpanId"]).unwrap();
    assert!(above["name"].as_str().unwrap().starts_with("unit "), "{above}");
    assert!(spans.iter().all(|span| attribute(span, "polis.task") == attribute(request, "polis.task")));

    let heard = collector.heard.lock().unwrap().iter().map(|(head, body)| format!("{head}{body}")).collect::<String>();
    assert!(heard.contains("POST /v1/traces") && heard.contains("x-key: k of-the-collector"), "{heard}");
    assert!(!heard.contains("buy milk") && !heard.contains("15%"), "what was said stays here");
    let metrics = collector.metrics();
    let named = |name: &str| metrics.as_array().unwrap().iter().find(|metric| metric["name"] == name).unwrap().clone();
    let points = named("polis.tokens")["sum"]["dataPoints"].as_array().unwrap().clone();
    let counted: u64 = points.iter().map(|point| point["asInt"].as_str().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(counted, spent);
    let calls = &named("gen_ai.client.operation.duration")["histogram"]["dataPoints"][0]["count"];
    assert_eq!(calls, &json!(operations(&spans, "chat").to_string()));
    assert_eq!(named("polis.requests.active")["gauge"]["dataPoints"][0]["asInt"], json!("0"));
}

#[test]
fn without_a_collector_the_answer_comes_all_the_same_and_the_spans_later() {
    let home = Home::new();
    let mut command = home.command(&["run", "--conversation", "root", "what is 2 + 3?"]);
    let done = Done::from(command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9").output().unwrap());
    assert_eq!(done.stderr.matches("the telemetry collector does not accept data").count(), 1, "{}", done.stderr);
    assert!(done.ok().contains('5'));
    let mut doctor = home.command(&["doctor"]);
    let done = Done::from(doctor.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9").output().unwrap());
    assert!(
        done.code == 1 && done.stdout.contains("BAD  telemetry  http://127.0.0.1:9 does not accept data"),
        "{}",
        done.stdout
    );

    let collector = Collector::start();
    let mut command = home.command(&["run", "what is 3 + 4?"]);
    collector.set(&mut command);
    Done::from(command.output().unwrap()).ok();
    let spans = collector.spans();
    let requests: Vec<_> = spans.iter().filter(|span| span.get("parentSpanId").is_none()).collect();
    assert_eq!(requests.len(), 2, "both requests are told");
    assert_ne!(requests[0]["traceId"], requests[1]["traceId"]);
    let mut doctor = home.command(&["doctor"]);
    collector.set(&mut doctor);
    assert!(Done::from(doctor.output().unwrap()).ok().contains("which answers"));
    let mut bad = home.command(&["run", "x"]);
    Done::from(bad.env("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318").output().unwrap()).fails(2, "bad_telemetry");
}

#[test]
fn with_content_a_chat_span_has_the_request_of_its_conversation() {
    let home = Home::new();
    let collector = Collector::start();
    home.write(
        "polis.toml",
        &format!("[telemetry]\nendpoint = \"{}\"\nprotocol = \"http/json\"\ncontent = true\n", collector.url()),
    );
    home.polis(&["run", "what is 2 + 3?"]).ok();
    let spans = collector.spans();
    let chat = spans.iter().find(|span| attribute(span, "gen_ai.operation.name").as_deref() == Some("chat")).unwrap();
    let read = |key: &str| serde_json::from_str::<Value>(&attribute(chat, key).unwrap()).unwrap();
    let messages = read("gen_ai.input.messages");
    let last = messages.as_array().unwrap().last().unwrap();
    assert_eq!((&last["role"], &last["parts"][0]["type"]), (&json!("user"), &json!("text")));
    assert!(last["parts"][0]["content"].as_str().unwrap().contains("what is 2 + 3?"), "{last}");
    assert_eq!(read("gen_ai.system_instructions")[0]["type"], "text");
    let tools = read("gen_ai.tool.definitions");
    assert!(tools.as_array().unwrap().iter().any(|tool| tool["name"] == "read_file" && tool["type"] == "function"));
    let conversation = attribute(chat, "gen_ai.conversation.id").unwrap();
    assert_eq!(attribute(root(&spans), "polis.agent"), Some(conversation.clone()));
    assert_ne!(conversation, "root", "a new request is a conversation of its own");
}

#[test]
fn a_kill_loses_no_span_and_what_is_sent_twice_is_the_same_twice() {
    let home = Home::new();
    home.write("a.txt", "hello\n");
    let model = ModelServer::start(vec![
        Reply::Call("read_file", json!({ "path": "a.txt" })),
        Reply::Hang,
        Reply::Say(&["it says ", "hello"]),
    ]);
    let collector = Collector::start();
    let serve = |collector: &Collector| {
        home.serve_with(&[], |command| {
            model.set(command);
            collector.set(command);
        })
    };
    let served = serve(&collector);
    let place = home.data().join("telemetry/main.json");
    let at_first = std::fs::read(&place).unwrap();
    served.post("/api/submit", &json!({ "text": "what is in a.txt?", "conversation": "root" }));
    model.wait();
    model.wait();
    // A call that only reads, and one of a model, may begin before their intents are in the log.
    let calls = Cell::new(0);
    served.until(|recorded| {
        let is_call = matches!(&recorded.event, Event::EffectStarted { effect: Effect::Model { .. }, .. });
        calls.set(calls.get() + u32::from(is_call));
        calls.get() == 2
    });
    served.kill();

    let served = serve(&collector);
    served.until(is_ending);
    assert_eq!(served.stop().0, 0);
    let spans = collector.spans();
    let request = root(&spans);
    assert_eq!(attribute(request, "polis.model_calls").as_deref(), Some("2"));
    assert_eq!((operations(&spans, "chat"), operations(&spans, "execute_tool"), spans.len()), (2, 1, 5));
    let turn = spans.iter().find(|span| span["name"] == "turn root").unwrap();
    assert_eq!(turn["events"][0]["name"], "revived", "{turn}");
    let log = home.log();
    assert!(log.iter().any(|recorded| matches!(recorded.event, Event::TurnRevived { .. })));

    std::fs::write(&place, at_first).unwrap();
    let again = Collector::start();
    assert_eq!(serve(&again).stop().0, 0);
    assert_eq!(again.spans(), spans);
    let quiet = Collector::start();
    assert_eq!(serve(&quiet).stop().0, 0);
    assert_eq!(quiet.spans(), [Value::Null; 0], "nothing is sent that was");
}

#[test]
fn a_rewound_society_and_a_fork_are_told_from_there_on() {
    let home = Home::new();
    let run = |society: &str, request: &str| {
        let collector = Collector::start();
        let mut command = home.command(&["--society", society, "run", request]);
        collector.set(&mut command);
        Done::from(command.output().unwrap()).ok();
        let spans = collector.spans();
        (root(&spans)["traceId"].clone(), spans)
    };
    let (first, _) = run("main", "what is 2 + 3?");
    let shared = home.last();
    let (second, long) = run("main", "what is 3 + 4?");
    home.polis(&["fork", "--at", &shared.0.to_string(), "other"]).ok();
    home.polis(&["rewind", "--to", &shared.0.to_string()]).ok();
    let (third, spans) = run("main", "what is 3 + 4?");
    let (fourth, others) = run("other", "what is 3 + 4?");
    assert_eq!((spans.len(), others.len()), (long.len(), long.len()), "the same work, told again");
    let mut traces: Vec<_> = [first, second, third, fourth].iter().map(Value::to_string).collect();
    traces.sort();
    traces.dedup();
    assert_eq!(traces.len(), 4);
    let ids = |spans: &[Value]| spans.iter().map(|span| span["spanId"].to_string()).collect::<Vec<_>>();
    assert!(ids(&long).iter().all(|id| !ids(&spans).contains(id) && !ids(&others).contains(id)));
}

#[test]
fn everything_on_stderr_is_json_where_somebody_wants_it() {
    let home = Home::new();
    let mut command = home.command(&["run", "what is 2 + 3?"]);
    command.env("POLIS_LOG_FORMAT", "json").env("POLIS_LOG", "debug").env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let done = Done::from(command.output().unwrap());
    let lines: Vec<Value> =
        done.stderr.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    for line in &lines {
        for field in ["time", "level", "target", "message"] {
            assert!(line[field].is_string(), "{field}: {line}");
        }
    }
    let warned = lines.iter().find(|line| line["level"] == "WARN").unwrap();
    assert_eq!((&warned["target"], &warned["collector"]), (&json!("polis_telemetry::follower"), &json!("http://127.0.0.1:9")));
    assert!(lines.iter().any(|line| line["target"] == "polis" && line["message"].as_str().unwrap().contains("offline model")));
    done.ok();
    let mut bad = home.command(&["run", "x"]);
    Done::from(bad.env("POLIS_LOG_FORMAT", "xml").output().unwrap()).fails(2, "bad_log_format");
}
