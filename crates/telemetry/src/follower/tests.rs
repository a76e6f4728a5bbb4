//! Societies of programmed agents and the spans that come of them.

use std::collections::BTreeMap;

use polis_domain::{CallResult, EffectClass, Recorded, Usage};
use polis_engine::{Cast, Options, Ports, Turn, TurnTool};
use polis_ports::{ModelError, ToolSpec};
use polis_testkit::{ManualClock, MemoryLog, Op, Program, ProgrammedAgent, ScriptedModel, ScriptedReply, worker_role, world};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

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
    society.look(move |spine| Ids::of(name, spine)).await.unwrap()
}

/// The spans of the whole log, or of what ended after `sent` when only what came after `from` is read.
async fn spans(society: &Society, content: bool, from: Seq, sent: Seq) -> Vec<String> {
    let mut tracer = Tracer::new(ids(society).await, "main", content);
    let mut spans = Vec::new();
    for recorded in log_of(society).await.iter().filter(|recorded| recorded.seq > from) {
        let finished = trace(&mut tracer, &**society.log(), society.id(), recorded).await;
        spans.extend(finished.into_iter().filter(|_| recorded.seq > sent).map(|span| span.json));
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
    assert_eq!(of("request root", "gen_ai.usage.output_tokens"), ["9"]);
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
        let mut tracer = Tracer::new(ids(&society).await, "main", true);
        let mut spans_sent = Vec::new();
        for recorded in &log[..cut] {
            spans_sent
                .extend(trace(&mut tracer, &**society.log(), society.id(), recorded).await.into_iter().map(|span| span.json));
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
                let request = String::from_utf8_lossy(&all).into_owned();
                let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
                if body.len() >= length.unwrap() {
                    break (head.split(' ').nth(1).unwrap().to_owned(), serde_json::from_str(body).unwrap());
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
    let folder = tempfile::tempdir().unwrap();
    let telemetry = Telemetry::new(Settings {
        endpoint,
        headers: Vec::new(),
        service_name: "polis".to_owned(),
        service_version: "1".to_owned(),
        content: false,
        metric_interval: Settings::METRIC_INTERVAL,
        folder: folder.path().join("telemetry"),
    })
    .unwrap();
    let opened = society.log().head(society.id()).await.unwrap();
    let first = telemetry.follow(&society, opened).await.unwrap();
    ask(&society, vec![think("one")]).await;
    first.finish().await;
    assert!(telemetry.0.is_reported.load(Ordering::Relaxed), "it is said that nothing was taken");
    let opened = society.log().head(society.id()).await.unwrap();
    telemetry.follow(&society, opened).await.unwrap().finish().await;
    let second = telemetry.follow(&society, opened).await.unwrap();
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
