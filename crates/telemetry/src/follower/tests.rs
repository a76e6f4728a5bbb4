//! Societies of programmed agents and the spans that come of them.

use std::collections::BTreeMap;

use polis_domain::{CallResult, EffectClass, EffectId, Recorded, Usage};
use polis_engine::{Cast, ConversationStart, Options, Ports, Turn, TurnTool};
use polis_ports::{ChatMessage, Media, ModelError, ModelRequest, ToolSpec};
use polis_testkit::{
    ManualClock, MemoryDocuments, MemoryLog, Op, Program, ProgrammedAgent, ScriptedModel, ScriptedReply, worker_role, world,
};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::otlp::Protocol;
use crate::protobuf::decode;

/// A tool that the turn does itself: it asks the helper.
struct Relay;

impl TurnTool for Relay {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({ "type": "object" });
        ToolSpec { name: "relay".into(), description: String::new(), parameters, class: EffectClass::Write, volatile: false }
    }

    async fn call(&self, turn: &mut Turn, _: &str) -> CallResult {
        match turn.ask(&"helper".into(), &Program(vec![think("relayed")]).text(), Duration::from_secs(60)).await {
            Ok(request) => CallResult::good(request),
            Err(failure) => CallResult::failed(failure.to_string()),
        }
    }
}

/// A society of agents that do what they are told, with a model that cannot answer some things at first.
async fn society() -> Society {
    let failed = Arc::new(AtomicBool::new(false));
    let model = ScriptedModel::new(move |request| {
        let thought = world::model_reply(request);
        if thought.contains("twice") && !failed.swap(true, Ordering::Relaxed) {
            return ScriptedReply::error(ModelError::Cut { reason: "a cable".to_owned() });
        }
        ScriptedReply::text(&thought).costing(Usage {
            input_tokens: 7,
            output_tokens: 3,
            cost_nanos: 2_000,
            ..Usage::default()
        })
    });
    let ports = Ports { toolbox: Arc::new(world::tools(|_, _| {})), ..Ports::new(MemoryLog::new()).with_model(model) };
    let ports = Ports { clock: Arc::new(ManualClock::at(polis_domain::Timestamp(1_700_000_000_000))), ..ports };
    let cast = Cast::new().with(ProgrammedAgent::NAME, ProgrammedAgent).with_tool(Relay);
    Society::open("main".into(), ports, cast, Options::new(7, worker_role())).await.unwrap()
}

async fn ask(society: &Society, ops: Vec<Op>) {
    let sent = society.submit(&Program(ops).text()).await.unwrap();
    society.answer(&sent).await.unwrap();
}

fn think(what: &str) -> Op {
    Op::Think(what.to_owned())
}

fn call(tool: &str) -> Op {
    Op::Call(vec![(tool.to_owned(), "x".to_owned())])
}

fn everything() -> Vec<Op> {
    vec![
        Op::Spawn("helper".to_owned()),
        think("first"),
        call("look"),
        Op::Ask { agent: "helper".to_owned(), program: Program(vec![think("asked"), call("mark")]), patience_ms: 60_000 },
        Op::Units(vec![Program(vec![think("unit")]), Program(vec![Op::Units(vec![Program(vec![call("stamp")])])])]),
    ]
}

async fn log_of(society: &Society) -> Vec<Recorded> {
    society.log().read(society.id(), Seq(0), usize::MAX).await.unwrap()
}

async fn ids(society: &Society) -> Ids {
    let name = society.id().clone();
    society.look(move |spine| Ids::of(name.clone(), spine)).await.unwrap()
}

async fn tracer(society: &Society, content: bool) -> Tracer {
    let tree = society.look(AgentTree::of).await.unwrap();
    Tracer::new(ids(society).await, tree, content, Arc::default())
}

fn json(span: &FinishedSpan) -> String {
    serde_json::to_string(&span.span).unwrap()
}

/// The spans of the whole log, or of what ended after `sent` when only what came after `from` is read.
async fn spans(society: &Society, content: bool, from: Seq, sent: Seq) -> Vec<String> {
    let mut tracer = tracer(society, content).await;
    let mut spans = Vec::new();
    for recorded in log_of(society).await.iter().filter(|recorded| recorded.seq > from) {
        let finished = trace(&mut tracer, &**society.log(), society.id(), recorded).await;
        spans.extend(finished.iter().filter(|_| recorded.seq > sent).map(json));
    }
    spans
}

async fn all(society: &Society) -> Vec<Value> {
    spans(society, false, Seq(0), Seq(0)).await.iter().map(|json| serde_json::from_str(json).unwrap()).collect()
}

fn text<'a>(span: &'a Value, field: &str) -> &'a str {
    span[field].as_str().unwrap_or_default()
}

/// An attribute as text, whatever it is.
fn attribute(span: &Value, key: &str) -> Option<String> {
    let attribute = span["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == key)?;
    let value = attribute["value"].as_object().unwrap().values().next().unwrap();
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Each span with all that it stands in, innermost first.
fn lines(spans: &[Value]) -> Vec<String> {
    let by_id: BTreeMap<_, _> = spans.iter().map(|span| (text(span, "spanId"), span)).collect();
    assert_eq!(by_id.len(), spans.len(), "each id once");
    let line = |span| {
        let above = std::iter::successors(Some(span), |span: &&Value| {
            let parent = span.get("parentSpanId")?.as_str().unwrap();
            Some(by_id[parent])
        });
        above.map(|span| text(span, "name")).collect::<Vec<_>>().join(" < ")
    };
    let mut lines: Vec<_> = spans.iter().map(line).collect();
    lines.sort();
    lines
}

#[tokio::test(start_paused = true)]
async fn a_request_is_one_tree_of_turns_calls_and_agents() {
    let society = society().await;
    ask(&society, everything()).await;
    let spans = all(&society).await;
    let root = "turn root < request root";
    let helper = format!("turn helper < invoke_agent helper < {root}");
    let unit = format!("turn root < unit programmed < {root}");
    let nested = format!("turn root < unit programmed < {unit}");
    let mut want = vec![
        "request root".to_owned(),
        root.to_owned(),
        format!("chat < {root}"),
        format!("execute_tool look < {root}"),
        format!("invoke_agent helper < {root}"),
        helper.clone(),
        format!("chat < {helper}"),
        format!("execute_tool mark < {helper}"),
        format!("unit programmed < {root}"),
        format!("unit programmed < {root}"),
        unit.clone(),
        unit.clone(),
        format!("chat < {unit}"),
        format!("unit programmed < {unit}"),
        nested.clone(),
        format!("execute_tool stamp < {nested}"),
    ];
    want.sort();
    assert_eq!(lines(&spans), want);
    for span in &spans {
        assert_eq!((text(span, "traceId").len(), text(span, "spanId").len()), (32, 16));
        assert_eq!(span["traceId"], spans[0]["traceId"]);
        for key in ["polis.society", "polis.task", "polis.agent", "polis.thread", "polis.path", "gen_ai.conversation.id"] {
            assert!(attribute(span, key).is_some(), "{key}: {span}");
        }
        assert_eq!(span["status"], serde_json::json!({}), "{span}");
    }
    let of = |name: &str, key: &str| {
        let named = spans.iter().filter(|span| text(span, "name") == name);
        named.map(|span| attribute(span, key).unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!(of("execute_tool mark", "polis.effect"), ["write"]);
    assert_eq!(of("execute_tool look", "gen_ai.tool.name"), ["look"]);
    assert_eq!(of("invoke_agent helper", "gen_ai.operation.name"), ["invoke_agent"]);
    assert_eq!(of("chat", "gen_ai.usage.input_tokens"), ["7", "7", "7"]);
    // Collectors add up `gen_ai.usage` over all spans, so only model calls have it.
    let with_usage = spans.iter().filter(|span| span["attributes"].to_string().contains("gen_ai.usage"));
    assert!(with_usage.clone().count() == 3 && with_usage.into_iter().all(|span| text(span, "name") == "chat"));
    assert_eq!(of("request root", "polis.input_tokens"), ["21"]);
    assert_eq!(of("request root", "polis.output_tokens"), ["9"]);
    assert_eq!(of("request root", "polis.cost_usd"), ["6e-6"]);
    assert_eq!(
        (of("request root", "polis.model_calls"), of("request root", "polis.tool_calls")),
        (vec!["3".into()], vec!["3".into()])
    );
    let mut paths = of("turn root", "polis.path");
    paths.sort();
    let tree = society.tree(&"root".into(), &"".parse().unwrap_or_default()).await.unwrap();
    let tree = serde_json::to_value(&tree).unwrap();
    assert_eq!((paths.len(), paths[0].as_str()), (4, ""));
    for path in &paths[1..] {
        let found = path.parse::<polis_domain::SubThreadPath>().unwrap();
        assert!(found.find(&tree).is_ok(), "{path}");
    }
    assert_eq!(paths[1..].iter().map(|path| path.matches("messages[").count()).max(), Some(2), "{paths:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_call_does_by_effects_of_the_turn_stands_below_it() {
    let society = society().await;
    ask(&society, vec![Op::Spawn("helper".to_owned()), call("relay"), call("look")]).await;
    let turn = "turn root < request root";
    let relayed = format!("turn helper < invoke_agent helper < execute_tool relay < {turn}");
    let mut want = vec![
        "request root".to_owned(),
        turn.to_owned(),
        format!("execute_tool relay < {turn}"),
        format!("invoke_agent helper < execute_tool relay < {turn}"),
        relayed.clone(),
        format!("chat < {relayed}"),
        format!("execute_tool look < {turn}"),
    ];
    want.sort();
    assert_eq!(lines(&all(&society).await), want);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_a_person_comes_back_to_stands_below_its_first_time() {
    let society = society().await;
    let sent = society.submit(&Program(vec![think("one")]).text()).await.unwrap();
    society.answer(&sent).await.unwrap();
    let again = society.send("root".into(), &Program(vec![think("two")]).text(), Some(sent.task_id)).await.unwrap();
    society.answer(&again).await.unwrap();
    let second = "turn root < request root < request root";
    let mut want =
        ["request root", "turn root < request root", "chat < turn root < request root", "request root < request root"];
    want.sort();
    let spans_sent = lines(&all(&society).await);
    assert!(want.iter().all(|line| spans_sent.iter().any(|spans_sent| spans_sent == line)), "{spans_sent:?}");
    assert!(spans_sent.iter().any(|line| line == second) && spans_sent.len() == 6, "{spans_sent:?}");
}

#[tokio::test(start_paused = true)]
async fn wherever_it_is_cut_the_rest_is_made_again_with_the_same_spans() {
    let society = society().await;
    ask(&society, everything()).await;
    ask(&society, vec![think("again"), Op::Fail("broken".to_owned())]).await;
    let whole = spans(&society, true, Seq(0), Seq(0)).await;
    let log = log_of(&society).await;
    for cut in 0..=log.len() {
        let mut tracer = tracer(&society, true).await;
        let mut spans_sent = Vec::new();
        for recorded in &log[..cut] {
            spans_sent.extend(trace(&mut tracer, &**society.log(), society.id(), recorded).await.iter().map(json));
        }
        let sent = log[..cut].last().map_or(Seq(0), |recorded| recorded.seq);
        let from = tracer.oldest().map_or(sent, |oldest| Seq(oldest.0 - 1));
        spans_sent.extend(spans(&society, true, from, sent).await);
        assert_eq!(spans_sent, whole, "cut after {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_have_a_code_and_attempts_in_vain_are_events() {
    let society = society().await;
    ask(&society, vec![think("twice"), Op::Fail("broken".to_owned())]).await;
    let spans = all(&society).await;
    let named = |name: &str| spans.iter().find(|span| text(span, "name") == name).unwrap();
    for name in ["turn root", "request root"] {
        assert_eq!(named(name)["status"]["code"], 2, "{name}");
        assert!(text(&named(name)["status"], "message").starts_with("broken: "), "{name}");
        assert_eq!(attribute(named(name), "error.type").as_deref(), Some("broken"));
    }
    let chat = named("chat");
    assert_eq!(chat["status"], serde_json::json!({}));
    assert_eq!((&chat["events"][0]["name"], chat["events"].as_array().unwrap().len()), (&"retry".into(), 1));
    assert!(chat["events"].to_string().contains("a cable"));
}

#[tokio::test(start_paused = true)]
async fn what_was_said_is_told_only_where_somebody_wants_it() {
    let society = society().await;
    ask(&society, vec![think("a secret of mine"), call("look")]).await;
    let kept = spans(&society, false, Seq(0), Seq(0)).await.concat();
    assert!(!kept.contains("a secret of mine"));
    let spans_sent = spans(&society, true, Seq(0), Seq(0)).await.concat();
    for key in ["gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"] {
        assert!(spans_sent.contains(key) && !kept.contains(key), "{key}");
    }
    assert!(spans_sent.contains("a secret of mine"));
}

#[tokio::test(start_paused = true)]
async fn all_spans_of_a_request_name_its_conversation() {
    let society = society().await;
    ask(&society, vec![Op::Spawn("helper".to_owned())]).await;
    let asked = Program(vec![Op::Ask {
        agent: "helper".to_owned(),
        program: Program(vec![think("asked"), Op::Spawn("grandchild".to_owned())]),
        patience_ms: 60_000,
    }]);
    let talk = society.start_conversation(ConversationStart::default()).await.unwrap();
    let sent = society.send(talk.clone(), &asked.text(), None).await.unwrap();
    society.answer(&sent).await.unwrap();
    let sent = society.send("grandchild".into(), &Program(vec![think("directly")]).text(), None).await.unwrap();
    society.answer(&sent).await.unwrap();
    let spans = all(&society).await;
    let of = |task: Option<String>| {
        let mut found: Vec<_> = spans
            .iter()
            .filter(|span| attribute(span, "polis.task") == task)
            .map(|span| (text(span, "name").to_owned(), attribute(span, "gen_ai.conversation.id").unwrap()))
            .collect();
        found.sort();
        found
    };
    let task = |name: &str| attribute(spans.iter().find(|span| text(span, "name") == name).unwrap(), "polis.task");
    let want = |conversation: &str, names: &[&str]| {
        names.iter().map(|name| ((*name).to_owned(), conversation.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(of(task("request root")), want("root", &["request root", "turn root"]));
    let (request, turn) = (format!("request {talk}"), format!("turn {talk}"));
    let mut names = ["chat", "invoke_agent helper", &request, "turn helper", &turn];
    names.sort_unstable();
    assert_eq!(of(task(&request)), want(talk.as_str(), &names), "also of the agent that all share");
    assert_eq!(of(task("request grandchild")), want("root", &["chat", "request grandchild", "turn grandchild"]));
}

#[tokio::test(start_paused = true)]
async fn with_content_a_chat_span_has_what_the_model_was_asked() {
    let society_id: SocietyId = "main".into();
    let asked = Arc::new(Requests::default());
    let model = ObservedModel {
        model: Arc::new(ScriptedModel::new(|_| ScriptedReply::text("fine"))),
        society: society_id.clone(),
        requests: asked.clone(),
    };
    let call = |arguments: &str| polis_domain::ToolCall { id: "c1".into(), name: "look".into(), arguments: arguments.into() };
    let effect = EffectId { turn: polis_domain::TurnId(Seq(7)), n: 1 };
    let look = ToolSpec {
        name: "look".into(),
        description: "Looks.".to_owned(),
        parameters: serde_json::json!({ "type": "object" }),
        class: EffectClass::Read,
        volatile: false,
    };
    let mut assistant = ChatMessage::assistant("let me see");
    if let ChatMessage::Assistant { reasoning, tool_calls, .. } = &mut assistant {
        (*reasoning, *tool_calls) = ("hm".into(), vec![call(r#"{"path":"a"}"#), call("torn {")]);
    }
    let request = ModelRequest {
        system: "be brief".into(),
        messages: vec![
            ChatMessage::user("x".repeat(70_000)),
            ChatMessage::User {
                text: "hello".into(),
                media: vec![
                    Media::Inline { media_type: "image/png".into(), name: "".into(), data: "QUJD".into() },
                    Media::Url("https://h/i.png".into()),
                ],
            },
            assistant,
            ChatMessage::Tool {
                call_id: "c1".into(),
                name: "look".into(),
                content: "seen".into(),
                is_error: false,
                media: vec![],
            },
            ChatMessage::user("y".repeat(60_000)),
        ],
        tools: [look].into(),
        effect: Some(effect),
        ..ModelRequest::default()
    };
    // A second attempt replaces the first.
    let _ = model.stream(ModelRequest { system: "first".into(), ..request.clone() }).await.unwrap();
    let _ = model.stream(request.clone()).await.unwrap();
    assert!(asked.take(&"other".into(), effect).0.is_empty());
    let span = serde_json::json!({ "attributes": asked.take(&society_id, effect) });
    assert!(asked.take(&society_id, effect).0.is_empty(), "it is held for one span");
    let read = |key: &str| serde_json::from_str::<Value>(&attribute(&span, key).unwrap()).unwrap();
    assert_eq!(read("gen_ai.system_instructions"), serde_json::json!([{ "type": "text", "content": "be brief" }]));
    let definition =
        serde_json::json!({ "type": "function", "name": "look", "description": "Looks.", "parameters": { "type": "object" } });
    assert_eq!(read("gen_ai.tool.definitions"), serde_json::json!([definition]));
    let messages = read("gen_ai.input.messages");
    // Each text is cut, so that the first message fits too.
    assert_eq!((messages.as_array().unwrap().len(), attribute(&span, "polis.input.messages_omitted")), (5, None));
    assert_eq!(messages[0]["parts"][0]["content"].as_str().unwrap().chars().count(), (16 << 10) + 1);
    let image = |more: Value| {
        let mut part = serde_json::json!({ "modality": "image" });
        part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        part
    };
    assert_eq!(
        messages[1]["parts"],
        serde_json::json!([
            { "type": "text", "content": "hello" },
            image(serde_json::json!({ "type": "blob", "mime_type": "image/png", "content": "" })),
            image(serde_json::json!({ "type": "uri", "uri": "https://h/i.png" })),
        ])
    );
    assert_eq!(
        messages[2],
        serde_json::json!({ "role": "assistant", "parts": [
            { "type": "reasoning", "content": "hm" },
            { "type": "text", "content": "let me see" },
            { "type": "tool_call", "id": "c1", "name": "look", "arguments": { "path": "a" } },
            { "type": "tool_call", "id": "c1", "name": "look", "arguments": "torn {" },
        ] })
    );
    let response = serde_json::json!({ "type": "tool_call_response", "id": "c1", "response": "seen" });
    assert_eq!(messages[3], serde_json::json!({ "role": "tool", "parts": [response] }));

    // Of a long conversation the newest messages are there; of many requests the newest ones.
    let long = (0..10).map(|n| ChatMessage::user(format!("{n}{}", "z".repeat(15_000)))).collect();
    let long = ModelRequest { messages: long, ..request };
    for n in 0..300 {
        let _ = model.stream(ModelRequest { effect: Some(EffectId { n, ..effect }), ..long.clone() }).await.unwrap();
    }
    let span = serde_json::json!({ "attributes": asked.take(&society_id, EffectId { n: 299, ..effect }) });
    let messages: Value = serde_json::from_str(&attribute(&span, "gen_ai.input.messages").unwrap()).unwrap();
    assert_eq!(messages.as_array().unwrap().len(), 4);
    assert!(messages[3]["parts"][0]["content"].as_str().unwrap().starts_with("9z"));
    assert_eq!(attribute(&span, "polis.input.messages_omitted").as_deref(), Some("6"));
    assert!(asked.take(&society_id, EffectId { n: 0, ..effect }).0.is_empty(), "the memory for it is bounded");
}

/// Without empty lists, which protobuf does not have.
fn without_empty_lists(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
            object.values_mut().for_each(without_empty_lists);
        }
        Value::Array(list) => list.iter_mut().for_each(without_empty_lists),
        _ => {}
    }
}

#[tokio::test]
async fn both_protocols_carry_the_same_spans_and_metrics() {
    let mut bodies = Vec::new();
    let society = society().await;
    let opened = society.log().head(society.id()).await.unwrap();
    ask(&society, everything()).await;
    ask(&society, vec![think("twice"), Op::Fail("broken".to_owned())]).await;
    for protocol in [Protocol::Json, Protocol::Protobuf] {
        let (endpoint, requests) = collector(vec![200, 200]).await;
        let settings = Settings { content: true, traces: protocol, metrics: protocol, ..settings(endpoint) };
        Telemetry::new(settings).unwrap().follow(&society, opened, documents()).await.unwrap().finish().await;
        let mut requests = requests.lock().unwrap().clone();
        assert_eq!(requests.iter().map(|(to, _)| to.as_str()).collect::<Vec<_>>(), ["/v1/traces", "/v1/metrics"]);
        for (_, body) in &mut requests {
            without_empty_lists(body);
        }
        bodies.push(requests);
    }
    let spans = |n: usize| bodies[n][0].1.clone();
    assert!(spans(0).to_string().contains("a cable") && spans(0).to_string().contains("broken"));
    assert_eq!(spans(0), spans(1));
    // The metrics have the time at which they were sent.
    let metrics = |n: usize| {
        let mut metrics = bodies[n][1].1["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].clone();
        for metric in metrics.as_array_mut().unwrap() {
            for data in ["sum", "gauge", "histogram"] {
                let points = metric.get_mut(data).and_then(|data| data["dataPoints"].as_array_mut());
                for point in points.into_iter().flatten() {
                    (point["startTimeUnixNano"], point["timeUnixNano"]) = (Value::Null, Value::Null);
                }
            }
        }
        metrics
    };
    assert_eq!(metrics(0).as_array().unwrap().len(), 6);
    assert_eq!(metrics(0), metrics(1));
}

fn documents() -> Arc<dyn Documents> {
    Arc::new(MemoryDocuments::default())
}

fn settings(endpoint: String) -> Settings {
    Settings {
        endpoint,
        headers: Vec::new(),
        service_name: "polis".to_owned(),
        service_version: "1".to_owned(),
        content: false,
        traces: Protocol::Json,
        metrics: Protocol::Json,
        metric_interval: Settings::METRIC_INTERVAL,
        network: polis_http::HttpOptions::default(),
    }
}

/// A collector that answers each request with the next status; the bodies that it heard, by their address.
async fn collector(statuses: Vec<u16>) -> (String, Arc<Mutex<Vec<(String, Value)>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::<Mutex<Vec<_>>>::default();
    let bodies = requests.clone();
    tokio::spawn(async move {
        for status in statuses {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut all = Vec::new();
            let body = loop {
                let mut some = [0; 8_192];
                let count = stream.read(&mut some).await.unwrap();
                assert!(count > 0, "the request breaks off");
                all.extend_from_slice(&some[..count]);
                let Some(end) = all.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
                let (head, body) = (str::from_utf8(&all[..end]).unwrap(), &all[end + 4..]);
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
                if body.len() >= length.unwrap() {
                    let to = head.split(' ').nth(1).unwrap().to_owned();
                    let is_protobuf = head.contains("content-type: application/x-protobuf");
                    let body = if is_protobuf { decode::request(&to, body) } else { serde_json::from_slice(body).unwrap() };
                    break (to, body);
                }
            };
            bodies.lock().unwrap().push(body);
            let answer = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (format!("http://{address}"), requests)
}

#[tokio::test]
async fn what_is_not_taken_is_sent_again_and_what_is_refused_is_not() {
    let society = society().await;
    let (endpoint, requests) = collector(vec![503, 200, 200, 400, 200]).await;
    let documents = documents();
    let telemetry = Telemetry::new(settings(endpoint)).unwrap();
    let opened = society.log().head(society.id()).await.unwrap();
    let first = telemetry.follow(&society, opened, documents.clone()).await.unwrap();
    ask(&society, vec![think("one")]).await;
    first.finish().await;
    assert!(telemetry.0.is_reported.load(Ordering::Relaxed), "it is said that nothing was taken");
    let opened = society.log().head(society.id()).await.unwrap();
    telemetry.follow(&society, opened, documents.clone()).await.unwrap().finish().await;
    let second = telemetry.follow(&society, opened, documents.clone()).await.unwrap();
    ask(&society, vec![think("two")]).await;
    second.finish().await;
    assert_eq!(telemetry.0.dropped.load(Ordering::Relaxed), 3, "a request, a turn and a call are refused for good");
    let requests: Vec<_> = requests.lock().unwrap().iter().map(|(to, body)| (to.clone(), body.clone())).collect();
    let to: Vec<_> = requests.iter().map(|(to, _)| to.as_str()).collect();
    assert_eq!(to, ["/v1/traces", "/v1/traces", "/v1/metrics", "/v1/traces", "/v1/metrics"]);
    assert_eq!(requests[0].1, requests[1].1, "the same spans again");
    let spans = |n: usize| requests[n].1["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().len();
    assert_eq!((spans(1), spans(3)), (3, 3));
    let metrics = |n: usize| requests[n].1["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].to_string();
    assert!(!metrics(2).contains("gen_ai.client.token.usage"), "what another process did is not counted again");
    assert!(metrics(4).contains(r#""asInt":"7""#) && metrics(4).contains("gen_ai.client.operation.duration"), "{}", metrics(4));
}
