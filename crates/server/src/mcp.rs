//! The society as an MCP server: streamable HTTP at `/mcp`, and what `polis mcp` brings from stdio. Its tools are
//! operations of `polis-api`. Two generations of the protocol are spoken: with `initialize`, and with everything in each
//! request. Nothing is remembered between requests but which of them are under way.

pub(crate) mod client_forms;
mod elicitation;
pub(crate) mod in_flight;
mod protocol_version;
mod resources;
mod tools;

use std::convert::Infallible;
use std::pin::Pin;

use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::body::Json;
use crate::caller::{Caller, RequestCaller};
use crate::extract::{CallerState, QueryParams};
use crate::problem::Problem;
use crate::rpc::{self, Fault, Incoming, METHOD_NOT_FOUND, PARSE_ERROR};
use crate::state::SocietyState;
use crate::task_follower::Peer;
use client_forms::FormSender;
use in_flight::InFlightRequest;
use protocol_version::{NEWEST_WITH_SESSIONS, ProtocolEra, VERSIONS};

/// The header with the session id, for clients of the older generation.
const SESSION: &str = "mcp-session-id";

/// Instructions that a client gets first.
const INSTRUCTIONS: &str = "Polis is a durable team of AI agents. `submit` sends it a request and waits for the answer; the work continues even \
     if no client waits, and `status` with the taskId returns its state. When a person must decide something, `status` lists it and `approve` \
     passes on the decision: decide nothing that the person has not decided. Conversations are resources.";

/// Notifications that wait to be written; when there are more, some are left out.
const QUEUED: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TransportQuery {
    /// `stdio` where `polis mcp` hands on what it reads: nothing is mirrored in headers then, and answers may be streams.
    via: Option<String>,
    /// Tells the requests of one process from those of another.
    session: Option<String>,
}

pub(crate) async fn post(
    CallerState(state): CallerState,
    RequestCaller(caller): RequestCaller,
    QueryParams(via): QueryParams<TransportQuery>,
    headers: HeaderMap,
    body: Result<Json<Value>, Problem>,
) -> Result<Response, Problem> {
    let is_stdio = via.via.as_deref() == Some("stdio");
    let session = via.session.or_else(|| headers.get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned));
    let client = Client { session, headers: (!is_stdio).then_some(&headers) };
    Ok(match state.receive(caller, client, rpc::read(body)?).await {
        Reply::Nothing => StatusCode::ACCEPTED.into_response(),
        Reply::Stream(messages) => streamed(messages),
        Reply::One { status, message, session } => {
            let mut response = (status, axum::Json(message)).into_response();
            if let Some(session) = session.and_then(|session| HeaderValue::from_str(&session).ok()) {
                response.headers_mut().insert(SESSION, session);
            }
            response
        }
    })
}

/// Where a message comes from.
struct Client<'a> {
    /// Tells the requests of one client from those of another.
    session: Option<String>,
    /// The headers that repeat parts of the message; none on stdio, where answers may be streams.
    headers: Option<&'a HeaderMap>,
}

/// What comes back for a message.
enum Reply {
    /// A notification was taken.
    Nothing,
    /// The answer, and the name of the session that it starts.
    One { status: StatusCode, message: Value, session: Option<String> },
    /// The answer may take long.
    Stream(McpMessages),
}

impl Reply {
    fn one(status: StatusCode, message: Value) -> Self {
        Self::One { status, message, session: None }
    }
}

impl SocietyState {
    /// Answers one message of an MCP client on stdio, who may do everything. `session` tells the requests of one process from
    /// those of another.
    pub async fn mcp(&self, session: &str, message: &str) -> McpMessages {
        let read = match serde_json::from_str(message) {
            Ok(message) => Incoming::read(message),
            Err(error) => Err(Fault::new(PARSE_ERROR, error.to_string())),
        };
        let client = Client { session: Some(session.to_owned()), headers: None };
        match self.receive(Caller::owner(), client, read).await {
            Reply::Nothing => McpMessages::whole(None),
            Reply::One { message, .. } => McpMessages::whole(Some(message)),
            Reply::Stream(messages) => messages,
        }
    }

    async fn receive(&self, caller: Caller, client: Client<'_>, message: Result<Incoming, Fault>) -> Reply {
        // Knowing the name of another caller's session gives no access to it.
        let session = client.session.map(|session| format!("{} {session}", caller.name()));
        let (id, method, params) = match message {
            Ok(Incoming::Request { id, method, params }) => (id, method, params),
            Ok(Incoming::Notification { method, params }) => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.get("requestId")
                {
                    self.in_flight.cancel(session.as_deref(), id);
                }
                return Reply::Nothing;
            }
            Ok(Incoming::Answer { id, message }) => {
                self.client_forms.answer(session.as_deref(), &id, message);
                return Reply::Nothing;
            }
            Err(fault) => return Reply::one(StatusCode::BAD_REQUEST, fault.answer(None)),
        };
        let era = match ProtocolEra::of(&method, &params, client.headers) {
            Ok(era) => era,
            Err(fault) => return Reply::one(StatusCode::BAD_REQUEST, fault.answer(Some(&id))),
        };
        let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("text/event-stream"));
        let takes_streams = client.headers.is_none_or(|headers| headers.get_all(ACCEPT).iter().any(accepts));
        let call = Call { peer: Peer { state: self.for_caller(&caller), caller }, era, method, params };
        if call.is_long() && takes_streams {
            let forms_session = session.clone().filter(|session| !call.era.is_modern() && self.client_forms.has(session));
            let in_flight = self.in_flight.begin(session, &id);
            return Reply::Stream(McpMessages::of(call, id, in_flight, forms_session));
        }
        let starts_session = call.method == "initialize";
        let fresh = starts_session.then(in_flight::fresh_name);
        if let Some(fresh) = &fresh {
            // On stdio the process is the session.
            let session = session.unwrap_or_else(|| format!("{} {fresh}", call.peer.caller.name()));
            let capabilities = call.params.get("capabilities").unwrap_or(&Value::Null);
            self.client_forms.set(&session, protocol_version::has_forms(capabilities));
        }
        let is_modern = call.era.is_modern();
        let (status, message) = match call.answer(None, None, &InFlightRequest::default()).await {
            Ok(result) => (StatusCode::OK, rpc::done(&id, &result)),
            Err(fault) if fault.code == METHOD_NOT_FOUND && is_modern => (StatusCode::NOT_FOUND, fault.answer(Some(&id))),
            Err(fault) => (StatusCode::OK, fault.answer(Some(&id))),
        };
        let session = fresh.filter(|_| status == StatusCode::OK);
        Reply::One { status, message, session }
    }
}

/// A request that is understood as far as its generation goes.
struct Call {
    peer: Peer,
    era: ProtocolEra,
    method: String,
    params: Map<String, Value>,
}

impl Call {
    /// Whether its answer may be long in coming.
    fn is_long(&self) -> bool {
        self.method == "tools/call" && tools::waits(&self.params)
    }

    async fn answer(
        &self,
        progress: Option<Progress>,
        forms: Option<&FormSender>,
        in_flight: &InFlightRequest,
    ) -> Result<Value, Fault> {
        let cached = |mut result: Value| {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
            result
        };
        let result = match (&*self.method, self.era.is_modern()) {
            ("initialize", false) => self.initialize()?,
            ("ping", false) => json!({}),
            ("server/discover", true) => cached(json!({
                "supportedVersions": VERSIONS,
                "capabilities": capabilities(),
                "instructions": INSTRUCTIONS,
                "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
            })),
            ("tools/list", _) => cached(json!({ "tools": tools::list() })),
            ("tools/call", _) => tools::call(self, progress, forms, in_flight).await?,
            ("resources/list", _) => cached(resources::list(&self.peer, &self.params).await?),
            ("resources/templates/list", _) => cached(json!({ "resourceTemplates": resources::templates() })),
            ("resources/read", _) => cached(resources::read(&self.peer, &self.params, &self.era).await?),
            (method, _) => return Err(Fault::new(METHOD_NOT_FOUND, format!("there is no method `{method}`"))),
        };
        Ok(self.era.finish(result))
    }

    fn initialize(&self) -> Result<Value, Fault> {
        let asked = self.params.get("protocolVersion").and_then(Value::as_str);
        let asked = asked.ok_or_else(|| Fault::invalid("`protocolVersion` is missing"))?;
        let known = VERSIONS.iter().find(|version| **version == asked && ProtocolEra::has_sessions(version));
        Ok(json!({
            "protocolVersion": known.unwrap_or(&NEWEST_WITH_SESSIONS),
            "capabilities": capabilities(),
            "serverInfo": server_info(),
            "instructions": INSTRUCTIONS,
        }))
    }
}

fn capabilities() -> Value {
    json!({ "tools": {}, "resources": {} })
}

fn server_info() -> Value {
    json!({ "name": "polis", "title": "Polis", "version": env!("CARGO_PKG_VERSION") })
}

/// Tells the client of a request how it goes on.
struct Progress {
    token: Value,
    count: u64,
    queue: mpsc::Sender<Value>,
}

impl Progress {
    /// One more thing was done. A client that does not keep up misses some.
    fn report(&mut self, message: &str) {
        self.count += 1;
        let params = json!({ "progressToken": self.token, "progress": self.count, "message": message });
        let _ = self.queue.try_send(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
    }
}

/// The messages that come back for one: notifications, then the answer.
pub struct McpMessages {
    /// The answer; nothing where the request was cancelled.
    work: Pin<Box<dyn Future<Output = Option<Value>> + Send>>,
    notes: mpsc::Receiver<Value>,
    /// The answer, once it is there: earlier notifications go first.
    last: Option<Option<Value>>,
}

impl McpMessages {
    /// What is known already.
    fn whole(message: Option<Value>) -> Self {
        let (_, notes) = mpsc::channel(1);
        Self { work: Box::pin(std::future::ready(None)), notes, last: Some(message) }
    }

    /// The answer to a call, which is worked out while it is waited for.
    fn of(call: Call, id: Value, in_flight: InFlightRequest, forms_session: Option<String>) -> Self {
        let (queue, notes) = mpsc::channel(QUEUED);
        let forms = call.peer.state.client_forms.clone();
        let forms = forms_session.map(|session| FormSender { forms, session, queue: queue.clone() });
        let token = call.params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
        let progress = token.map(|token| Progress { token, count: 0, queue });
        let work = async move {
            let answer = call.answer(progress, forms.as_ref(), &in_flight).await;
            match answer {
                _ if in_flight.is_cancelled() => None,
                Ok(result) => Some(rpc::done(&id, &result)),
                Err(fault) => Some(fault.answer(Some(&id))),
            }
        };
        Self { work: Box::pin(work), notes, last: None }
    }

    /// The next message; none after the last one.
    pub async fn next(&mut self) -> Option<Value> {
        if self.last.is_none() {
            tokio::select! {
                biased;
                Some(note) = self.notes.recv() => return Some(note),
                last = &mut self.work => self.last = Some(last),
            }
        }
        match self.notes.try_recv() {
            Ok(note) => Some(note),
            Err(_) => self.last.as_mut().and_then(Option::take),
        }
    }
}

fn streamed(messages: McpMessages) -> Response {
    let events = stream::unfold(messages, |mut messages| async move {
        let message = messages.next().await?;
        Some((Ok::<_, Infallible>(Event::default().event("message").data(message.to_string())), messages))
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(crate::events::KEEP_ALIVE)).into_response();
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
