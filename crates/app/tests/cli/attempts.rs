//! No call that is not in the log: the requests that a vendor receives, the attempts in the log and the count of the budget are the
//! same number, whatever the vendor does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use polis_domain::{BudgetScope, Event, Failure, Recorded, Response, Role, Timestamp};
use polis_engine::{Agent, Cast, Options, Ports, Society, Turn};
use polis_ports::{ChatMessage, Clock, Format, ModelRequest};
use polis_providers::{GuardedModel, HttpClient, Rate, RemoteModel, RemoteOptions};
use polis_testkit::hostile::{BodyFault, END, HostileServer, ServerAction, chunk, faulty_response, head};
use polis_testkit::{MemoryLog, ask};
use serde_json::json;

use super::model::KEY;
use super::support::{Done, Home};

const SSE: &str = "text/event-stream";

/// A whole reply that costs seven tokens.
const HI: &str = concat!(
    "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n"
);

fn good() -> Vec<ServerAction> {
    vec![ServerAction::Send([head(200, SSE), chunk(HI.as_bytes()), END.to_vec()].concat())]
}

fn status(status: u16, message: &str) -> Vec<ServerAction> {
    let body = json!({ "error": { "message": message } }).to_string();
    vec![ServerAction::Send([head(status, "application/json"), chunk(body.as_bytes()), END.to_vec()].concat())]
}

/// What a vendor may do to a request that it has received, and what the attempt is called then.
fn faults() -> Vec<(&'static str, Vec<ServerAction>, &'static str)> {
    let within = |deed| faulty_response(SSE, HI.as_bytes(), 40, deed);
    vec![
        ("closed without a word", vec![ServerAction::Close], "model_cut"),
        ("reset without a word", vec![ServerAction::Reset], "model_cut"),
        (
            "closed within the head",
            vec![ServerAction::Send(b"HTTP/1.1 200 OK\r\nconte".to_vec()), ServerAction::Close],
            "model_cut",
        ),
        ("closed within the stream", within(BodyFault::Close), "model_cut"),
        ("reset within the stream", within(BodyFault::Reset), "model_cut"),
        ("silent", vec![ServerAction::Stall], "model_cut"),
        ("silent within the stream", within(BodyFault::Stall), "model_cut"),
        ("429", status(429, "slow down"), "model_throttled"),
        ("500", status(500, "broken"), "model_failed"),
        ("400 for response_format", status(400, "unknown field response_format"), "model_adapted"),
    ]
}

/// Gives good replies but for one request.
async fn server(bad: usize, fault: Vec<ServerAction>) -> HostileServer {
    let seen = AtomicUsize::new(0);
    let script = move |_| if seen.fetch_add(1, Ordering::SeqCst) == bad { fault.clone() } else { good() };
    HostileServer::start(script).await.unwrap()
}

/// Time passes for it only when somebody waits, and then at once.
#[derive(Default)]
struct Hasty(AtomicUsize);

#[async_trait::async_trait]
impl Clock for Hasty {
    fn now(&self) -> Timestamp {
        Timestamp(1_700_000_000_000 + self.0.load(Ordering::SeqCst) as u64)
    }

    async fn sleep_until(&self, until: Timestamp) {
        self.0.fetch_max(until.0.saturating_sub(1_700_000_000_000) as usize, Ordering::SeqCst);
    }
}

/// Asks a model for an answer of a given shape three times.
struct Asks;

impl Agent for Asks {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let format = Arc::new(Format { name: "answer".into(), schema: json!({ "type": "object" }) });
        let mut said = String::new();
        for number in 0..3 {
            let messages = vec![ChatMessage::user(format!("{number}"))];
            let request = ModelRequest { messages, format: Some(format.clone()), ..ModelRequest::default() };
            said.push_str(&turn.model(request).await?.text);
        }
        Ok(Response::new(said))
    }
}

fn attempts(log: &[Recorded]) -> (Vec<String>, u64) {
    let (mut failed, mut requests) = (Vec::new(), 0);
    for recorded in log {
        match &recorded.event {
            Event::EffectRetried { attempt, spent, .. } => {
                failed.push(attempt.failure.code.to_string());
                requests += spent.requests;
            }
            Event::EffectEnded { spent: Some(spent), .. } => requests += spent.requests,
            _ => {}
        }
    }
    (failed, requests)
}

#[tokio::test]
async fn a_vendor_receives_as_many_requests_as_the_log_has_attempts_and_the_budget_counts() {
    for (what, fault, code) in faults() {
        // The first request opens a connection, the later ones use it again.
        for bad in 0..3 {
            let server = server(bad, fault.clone()).await;
            let mut options = RemoteOptions::new("test", server.url(0), "small");
            (options.first_timeout, options.idle_timeout) = (Duration::from_millis(250), Duration::from_millis(250));
            let remote = Arc::new(RemoteModel::new(HttpClient::default(), options).unwrap());
            let log = Arc::new(MemoryLog::new());
            let model = GuardedModel::new("test", remote, Rate::default());
            let clock = Arc::new(Hasty::default());
            let ports = Ports { log: log.clone(), clock, ..Ports::new(MemoryLog::new()).with_model(model) };
            let cast = Cast::new().with("root", Asks);
            let role = Role::new("root", "root");
            let society = Society::open("main".into(), ports, cast, Options::new(1, role)).await.unwrap();
            assert_eq!(ask(&society, "go").await.unwrap(), "hihihi", "{what}");
            let booked = society.look(|spine| spine.ledger[&BudgetScope::Society].spent.requests).await.unwrap();
            let events: Vec<Recorded> = log.events(&"main".into()).iter().map(|event| Recorded::clone(event)).collect();
            let (failed, logged) = attempts(&events);
            assert_eq!(failed, [code], "{what}, request {bad}");
            assert_eq!((server.requests() as u64, logged, booked), (4, 4, 4), "{what}, request {bad}");
        }
    }
}

#[test]
fn the_program_logs_a_request_that_the_vendor_read_and_dropped() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(server(1, vec![ServerAction::Close]));
    let home = Home::new();
    home.write("input", "one\ntwo\nthree\n");
    let mut command = home.command(&["chat"]);
    command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", server.url(0)).env("POLIS_MODEL", "openai/test");
    let input = std::fs::File::open(home.path().join("input")).unwrap();
    assert_eq!(Done::from(command.stdin(input).output().unwrap()).ok(), "hi\nhi\nhi\n");
    let (failed, logged) = attempts(&home.log());
    assert_eq!((failed, logged, server.requests()), (vec!["model_cut".to_owned()], 4, 4));
}
