//! The HTTP client for one remote agent: its card, JSON-RPC calls, and a stream of task updates. The token is sent to the
//! address that the operator configured, and nowhere else.

use std::fmt;
use std::time::Duration;

use polis_http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use polis_http::{Body, Bytes, HeaderValue, HttpClient, HttpError, HttpOptions, Request, Response, Timeouts, request};
use serde_json::{Value, json};
use url::Url;

use super::{RemoteAgent, text};
use crate::{http_client, is_plain_http};

const VERSION: &str = "1.0";

const CARD: &str = "/.well-known/agent-card.json";

/// How long an answer may take, and how much of it is read.
const TIMEOUT: Duration = Duration::from_secs(60);
const MAX_BYTES: usize = 8 << 20;

/// Longest detail of an error that is passed on, in characters.
const MAX_DETAIL_CHARS: usize = 300;

/// The client for one remote agent.
pub(super) struct A2aClient {
    http: HttpClient,
    card: Url,
    token_env: Option<String>,
}

/// Why a request gave no usable answer.
#[derive(Debug)]
pub(super) struct A2aError {
    kind: ErrorKind,
    what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorKind {
    /// Nothing was sent.
    Unsent,
    /// Nobody knows whether it arrived.
    Unknown,
    /// It was not taken, and may be later.
    Later,
    /// It was refused, or makes no sense.
    Final,
}

impl A2aError {
    fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into() }
    }

    pub(super) fn unusable(what: &str) -> Self {
        Self::new(ErrorKind::Final, what)
    }

    /// Whether nothing has reached the other side.
    pub(super) fn is_unsent(&self) -> bool {
        matches!(self.kind, ErrorKind::Unsent | ErrorKind::Later)
    }

    /// Whether the same may go well later.
    pub(super) fn is_transient(&self) -> bool {
        self.kind != ErrorKind::Final
    }
}

impl fmt::Display for A2aError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::Unknown => write!(f, "{}; it is not known whether it was received", self.what),
            _ => f.write_str(&self.what),
        }
    }
}

impl From<HttpError> for A2aError {
    fn from(error: HttpError) -> Self {
        Self::new(if error.is_unsent() { ErrorKind::Unsent } else { ErrorKind::Unknown }, error.to_string())
    }
}

impl A2aClient {
    pub(super) fn new(agent: &RemoteAgent, network: &HttpOptions) -> Result<Self, String> {
        let bad = || "its `url` must begin with http:// or https://".to_owned();
        let mut card: Url = agent.url.parse().map_err(|_| bad())?;
        if !matches!(card.scheme(), "http" | "https") || !card.has_host() {
            return Err(bad());
        }
        if agent.token_env.is_some() && is_plain_http(card.as_str()) {
            return Err("its `url` is plain http, which would send the token unencrypted; use https".to_owned());
        }
        if !card.path().ends_with(".json") {
            let path = format!("{}{CARD}", card.path().trim_end_matches('/'));
            card.set_path(&path);
        }
        Ok(Self { http: http_client::client(network), card, token_env: agent.token_env.clone() })
    }

    pub(super) async fn card(&self) -> Result<Value, A2aError> {
        let asked = self.signed(Request::get(self.card.as_str()), Bytes::new())?;
        read(self.patient().send(asked).await?).await
    }

    /// Where the card says that JSON-RPC of our version is spoken. It must be where the operator said.
    pub(super) fn endpoint(&self, card: &Value) -> Result<String, A2aError> {
        let speaks = |it: &&Value| {
            let version = text(it, "protocolVersion").unwrap_or_default();
            it["protocolBinding"] == "JSONRPC" && (version == VERSION || version.starts_with("1.0."))
        };
        let all = card["supportedInterfaces"].as_array().into_iter().flatten();
        let url = all.into_iter().find(speaks).and_then(|it| text(it, "url"));
        let url = url.ok_or_else(|| A2aError::unusable("its card offers no JSON-RPC of A2A 1.0"))?;
        self.checked(url).map(Into::into)
    }

    fn checked(&self, url: &str) -> Result<Url, A2aError> {
        let url: Url = url.parse().map_err(|_| A2aError::unusable("its card has an address that cannot be read"))?;
        if url.origin() != self.card.origin() {
            let what = format!(
                "its card names the address {}; write that address in polis.toml if it is right",
                url.origin().ascii_serialization()
            );
            return Err(A2aError::new(ErrorKind::Final, what));
        }
        Ok(url)
    }

    /// Asks one thing.
    pub(super) async fn ask(&self, endpoint: &str, method: &str, params: &Value) -> Result<Value, A2aError> {
        let asked = self.post(endpoint, method, params, "application/json")?;
        let response = self.patient().send(asked).await?;
        let mut answer = read(response).await?;
        if let Some(error) = answer.get("error").filter(|error| error.is_object()) {
            let what = text(error, "message").unwrap_or("it gives no reason");
            let passing = error["code"] == -32603;
            let what = format!("it refuses: {} ({})", shortened(what), error["code"]);
            return Err(A2aError::new(if passing { ErrorKind::Later } else { ErrorKind::Final }, what));
        }
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(A2aError::unusable("its answer is not JSON-RPC")),
        }
    }

    /// Has changes of a task told.
    pub(super) async fn subscribe(&self, endpoint: &str, params: &Value) -> Result<TaskUpdates, A2aError> {
        let asked = self.post(endpoint, "SubscribeToTask", params, "text/event-stream")?;
        let http = self.http.with_timeouts(Timeouts { first_byte: Some(TIMEOUT), ..Timeouts::default() });
        let response = http.send(asked).await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !response.status().is_success() || !kind.starts_with("text/event-stream") {
            return Err(A2aError::unusable("it tells of no changes"));
        }
        Ok(TaskUpdates(response.into_body()))
    }

    fn patient(&self) -> HttpClient {
        self.http.with_timeouts(Timeouts { whole: Some(TIMEOUT), ..Timeouts::default() })
    }

    fn post(&self, endpoint: &str, method: &str, params: &Value, accept: &'static str) -> Result<Request<Bytes>, A2aError> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let asked = Request::post(self.checked(endpoint)?.as_str()).header(CONTENT_TYPE, "application/json");
        self.signed(asked.header(ACCEPT, accept), body.to_string().into())
    }

    /// With what the other side wants to see. A variable that is not set is an error; an empty token is never sent.
    fn signed(&self, request: request::Builder, body: Bytes) -> Result<Request<Bytes>, A2aError> {
        let mut request = request.header("a2a-version", VERSION);
        if let Some(variable) = &self.token_env {
            let token = std::env::var(variable).ok().filter(|token| !token.trim().is_empty());
            let token = token.ok_or_else(|| A2aError::new(ErrorKind::Final, format!("the variable {variable} is not set")))?;
            let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
            let mut value = value
                .map_err(|_| A2aError::new(ErrorKind::Final, format!("the variable {variable} does not contain a token")))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        request.body(body).map_err(|_| A2aError::unusable("its address cannot be asked"))
    }
}

/// A stream that yields whenever the task has changed.
pub(super) struct TaskUpdates(Body);

impl TaskUpdates {
    /// Waits for a change; false when the stream has ended.
    pub(super) async fn next(&mut self) -> bool {
        loop {
            match self.0.chunk().await {
                // A comment only keeps the connection alive.
                Ok(Some(chunk)) if chunk.starts_with(b":") => {}
                Ok(Some(_)) => return true,
                Ok(None) | Err(_) => return false,
            }
        }
    }
}

/// The JSON of an answer. Anything that is not JSON-RPC becomes an error by its status.
async fn read(response: Response<Body>) -> Result<Value, A2aError> {
    let status = response.status();
    let body = match response.into_body().read(MAX_BYTES).await {
        Err(HttpError::TooLong { .. }) => return Err(A2aError::unusable("its answer is too long")),
        body => body?,
    };
    let json = serde_json::from_slice::<Value>(&body);
    match (status.is_success(), json) {
        (true, Ok(json)) => Ok(json),
        (false, Ok(json)) if json.get("jsonrpc").is_some() => Ok(json),
        (true, Err(_)) => Err(A2aError::unusable("its answer is not JSON")),
        (false, json) => {
            let detail = json.ok().and_then(|json| text(&json, "detail").map(shortened)).unwrap_or_default();
            let kind = match status.as_u16() {
                408 | 425 | 429 | 502..=504 => ErrorKind::Later,
                _ => ErrorKind::Final,
            };
            Err(A2aError::new(kind, format!("it answers {status} {detail}").trim_end()))
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_DETAIL_CHARS).filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(url: &str) -> Result<A2aClient, String> {
        let patience = Duration::from_secs(1);
        A2aClient::new(
            &RemoteAgent { name: "a".to_owned(), url: url.to_owned(), token_env: None, patience },
            &HttpOptions::default(),
        )
    }

    #[test]
    fn the_card_is_found_from_any_address_and_leads_nowhere_else() {
        for (url, card) in [
            ("http://h:1", "http://h:1/.well-known/agent-card.json"),
            ("https://h/s/two/", "https://h/s/two/.well-known/agent-card.json"),
            ("http://h/card.json", "http://h/card.json"),
        ] {
            assert_eq!(client(url).unwrap().card.as_str(), card);
        }
        for url in ["", "h:1", "ftp://h", "file:///etc/passwd"] {
            assert!(client(url).is_err(), "{url}");
        }
        let client = client("http://h:1").unwrap();
        let card = |url: &str, binding: &str, version: &str| json!({ "supportedInterfaces": [{ "url": url, "protocolBinding": binding, "protocolVersion": version }] });
        assert_eq!(client.endpoint(&card("http://h:1/a2a", "JSONRPC", "1.0")).unwrap(), "http://h:1/a2a");
        for (url, binding, version) in [
            ("http://evil:1/a2a", "JSONRPC", "1.0"),
            ("https://h:1/a2a", "JSONRPC", "1.0"),
            ("http://h:2/a2a", "JSONRPC", "1.0"),
            ("http://h:1/a2a", "GRPC", "1.0"),
            ("http://h:1/a2a", "JSONRPC", "0.3"),
        ] {
            assert!(!client.endpoint(&card(url, binding, version)).unwrap_err().is_transient(), "{url} {binding} {version}");
        }
    }
}
