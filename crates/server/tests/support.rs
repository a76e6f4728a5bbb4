//! A society with its server, and a client that can be as wrong as a test wants.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use polis_domain::{CallResult, EffectClass, MessageKind, Recorded, Seq, SocietyId, TaskId};
use polis_engine::{Cast, LocalLive, Options, Ports, Society, SystemClock};
use polis_ports::{Log, Model, Toolbox};
use polis_server::{Access, HostSettings, Listener, Security, SocietyState, Token, TokenList};
use polis_testkit::{
    MemoryArtifacts, MemoryDocuments, MemoryLog, Op, Program, ProgrammedAgent, ScriptedModel, ScriptedReply, ScriptedTools,
    worker_role,
};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::contract;

/// The longest artifact that is kept.
pub(crate) const ARTIFACT_BYTES: u64 = 1 << 20;

/// A list of tokens that is empty.
pub(crate) fn token_list() -> TokenList {
    TokenList::new(Arc::new(MemoryDocuments::default()))
}

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A society on a server of its own.
pub(crate) struct Rig {
    pub(crate) log: Arc<MemoryLog>,
    pub(crate) artifacts: MemoryArtifacts,
    pub(crate) society: Society,
    pub(crate) live: Arc<LocalLive>,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Rig {
    pub(crate) async fn start() -> Self {
        let tools = ScriptedTools::new().with("note", EffectClass::Write, |_, _| CallResult::good("noted"));
        Self::on(Arc::new(MemoryLog::new()), ScriptedModel::new(|_| ScriptedReply::text("a thought")), tools).await
    }

    /// The same behind a door with more to it.
    pub(crate) async fn behind(security: Security) -> Self {
        let model = ScriptedModel::new(|_| ScriptedReply::text("a thought"));
        Self::at(Arc::new(MemoryLog::new()), model, ScriptedTools::new(), security).await
    }

    pub(crate) async fn on(log: Arc<MemoryLog>, model: impl Model + 'static, toolbox: impl Toolbox + 'static) -> Self {
        Self::at(log, model, toolbox, Security::default()).await
    }

    pub(crate) async fn at(
        log: Arc<MemoryLog>,
        model: impl Model + 'static,
        toolbox: impl Toolbox + 'static,
        security: Security,
    ) -> Self {
        Self::opened(log, model, toolbox, security, Options::new(7, worker_role())).await
    }

    /// The same with other options.
    pub(crate) async fn opened(
        log: Arc<MemoryLog>,
        model: impl Model + 'static,
        toolbox: impl Toolbox + 'static,
        security: Security,
        options: Options,
    ) -> Self {
        Self::wired(log.clone(), log, model, toolbox, security, options).await
    }

    /// The same with other agents.
    pub(crate) async fn cast(
        log: Arc<MemoryLog>,
        model: impl Model + 'static,
        toolbox: impl Toolbox + 'static,
        security: Security,
        options: Options,
        cast: Cast,
    ) -> Self {
        Self::whole(log.clone(), log, model, toolbox, security, options, cast).await
    }

    /// The same, where the society reaches its log another way.
    pub(crate) async fn wired(
        log: Arc<MemoryLog>,
        port: Arc<dyn Log>,
        model: impl Model + 'static,
        toolbox: impl Toolbox + 'static,
        security: Security,
        options: Options,
    ) -> Self {
        let cast = Cast::new().with(ProgrammedAgent::NAME, ProgrammedAgent);
        Self::whole(log, port, model, toolbox, security, options, cast).await
    }

    async fn whole(
        log: Arc<MemoryLog>,
        port: Arc<dyn Log>,
        model: impl Model + 'static,
        toolbox: impl Toolbox + 'static,
        security: Security,
        options: Options,
        cast: Cast,
    ) -> Self {
        let artifacts = MemoryArtifacts::limited(ARTIFACT_BYTES);
        let live = Arc::new(LocalLive::remembering());
        let ports = Ports {
            log: port,
            model: Arc::new(model),
            toolbox: Arc::new(toolbox),
            live: live.clone(),
            clock: Arc::new(SystemClock),
            artifacts: Arc::new(artifacts.clone()),
            memory_texts: Arc::new(polis_testkit::InMemoryTexts::default()),
            embedder: None,
        };
        let society = Society::open(society(), ports, cast, options).await.unwrap();
        let access = Access { token: Token::new(TOKEN), insecure_listen: false };
        let listener = Listener::bind_with("127.0.0.1:0".parse().unwrap(), access, security).await.unwrap();
        let address = listener.address();
        let stop = CancellationToken::new();
        let state =
            SocietyState::new(society.clone(), HostSettings { model: "scripted/one".to_owned(), ..HostSettings::default() });
        let serving = tokio::spawn(listener.serve(state, stop.clone(), Duration::from_secs(30)));
        Self { log, artifacts, society, live, address, stop, serving }
    }

    /// The log's last place.
    pub(crate) fn last(&self) -> Seq {
        Seq(self.log.events(&society()).len() as u64)
    }

    pub(crate) async fn get(&self, target: &str) -> Reply {
        self.ask("GET", target, &[], Vec::new()).await
    }

    pub(crate) async fn post(&self, target: &str, body: Value) -> Reply {
        self.ask("POST", target, &[("content-type", "application/json")], body.to_string().into_bytes()).await
    }

    /// With the token, and with the right `Host` unless the headers say otherwise.
    pub(crate) async fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Reply {
        let bearer = format!("Bearer {TOKEN}");
        let headers: Vec<_> = headers.iter().copied().chain([("authorization", &*bearer)]).collect();
        let reply = Reply::of(send(self.address, method, target, &headers, body).await).await;
        contract::check(method, target, &reply);
        reply
    }

    /// Submits a program and waits for the message that ends it.
    pub(crate) async fn run(&self, ops: Vec<Op>) -> (TaskId, Arc<polis_domain::Envelope>) {
        let sent = self.society.submit(&Program(ops).text()).await.unwrap();
        let envelope = self.society.answer(&sent).await.unwrap();
        (sent.task_id, envelope)
    }

    /// Waits until the log holds what is looked for.
    pub(crate) async fn until(&self, wanted: impl Fn(&Recorded) -> bool) -> Arc<Recorded> {
        let mut watch = self.society.watch(Seq(0));
        loop {
            let recorded = watch.next_event().await.unwrap().unwrap();
            if wanted(&recorded) {
                return recorded;
            }
        }
    }

    /// Waits for the message that ends a task.
    pub(crate) async fn ending(&self, task: &TaskId) -> Arc<Recorded> {
        let ends = |recorded: &Recorded| {
            let envelope = recorded.event.envelope();
            envelope.is_some_and(|envelope| {
                envelope.task_id == *task && envelope.to.is_user() && envelope.kind != MessageKind::Message
            })
        };
        self.until(ends).await
    }

    /// Asks the server to stop and waits until it has.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
    }
}

impl Reply {
    pub(crate) async fn of(response: Response<Incoming>) -> Self {
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (content_type, retry_after) = (header("content-type").unwrap_or_default(), header("retry-after"));
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.into_body().collect().await.unwrap().to_bytes().to_vec();
        Self { status, content_type, headers, retry_after, body }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The body of a good answer.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// The status and code of a problem, which must have the shape of one.
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(self.content_type, "application/problem+json", "{self:?}");
        let problem = self.json();
        let code = problem["code"].as_str().unwrap().to_owned();
        assert_eq!(problem["status"], json!(self.status));
        assert_eq!(problem["type"], json!(format!("urn:polis:problem:{code}")));
        assert!(problem["title"].is_string() && !problem["detail"].as_str().unwrap().is_empty(), "{problem}");
        (self.status, code)
    }
}

pub(crate) fn society() -> SocietyId {
    "main".into()
}

/// One request on a connection of its own, with exactly these headers and a `Host` if none is given.
pub(crate) async fn send(
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Response<Incoming> {
    let stream = TcpStream::connect(address).await.unwrap();
    let host = address.to_string();
    let own = [("host", &*host)];
    let own = if headers.iter().any(|(name, _)| *name == "host") { &own[..0] } else { &own[..] };
    let headers: Vec<_> = own.iter().chain(headers).copied().collect();
    sent(TokioIo::new(stream), method, target, &headers, body).await.unwrap()
}

/// One request over a stream, with exactly these headers.
pub(crate) async fn sent(
    stream: impl hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> hyper::Result<Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(stream).await?;
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    sender.send_request(request.body(Full::new(Bytes::from(body))).unwrap()).await
}
