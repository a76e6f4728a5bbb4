//! One agent of others over HTTP: its card, questions and answers, and a sign when a task has changed. The token goes to the
//! address that the operator wrote, and nowhere else.

use std::fmt;
use std::time::Duration;

use polis_http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use polis_http::{Body, Bytes, HeaderValue, HttpClient, HttpError, Request, Response, Timeouts, request};
use serde_json::{Value, json};
use url::Url;

use super::{RemoteAgent, text};
use crate::{is_plain_http, outgoing};

const VERSION: &str = "1.0";

const CARD: &str = "/.well-known/agent-card.json";

/// How long an answer may take, and how much of it is read.
const TIMEOUT: Duration = Duration::from_secs(60);
const MAX_BYTES: usize = 8 << 20;

/// Most of what a server says about a failure.
const MAX_COMPLAINT: usize = 300;

/// How an agent is reached.
pub(super) struct Wire {
    http: HttpClient,
    card: Url,
    token_env: Option<String>,
}

/// Why nothing came back that can be used.
#[derive(Debug)]
pub(super) struct Trouble {
    kind: Kind,
    what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing was sent.
    Unsent,
    /// Nobody knows whether it arrived.
    Unknown,
    /// It was not taken, and may be later.
    Later,
    /// It was refused, or makes no sense.
    Final,
}

impl Trouble {
    fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into() }
    }

    pub(super) fn strange(what: &str) -> Self {
        Self::new(Kind::Final, what)
    }

    /// Whether nothing has reached the other side.
    pub(super) fn is_unsent(&self) -> bool {
        matches!(self.kind, Kind::Unsent | Kind::Later)
    }

    /// Whether the same may go well later.
    pub(super) fn is_passing(&self) -> bool {
        self.kind != Kind::Final
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Unknown => write!(f, "{}; it is not known whether it was received", self.what),
            _ => f.write_str(&self.what),
        }
    }
}

impl From<HttpError> for Trouble {
    fn from(error: HttpError) -> Self {
        Self::new(if error.is_unsent() { Kind::Unsent } else { Kind::Unknown }, error.to_string())
    }
}

impl Wire {
    pub(super) fn new(agent: &RemoteAgent) -> Result<Self, String> {
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
        Ok(Self { http: outgoing::client(), card, token_env: agent.token_env.clone() })
    }

    pub(super) async fn card(&self) -> Result<Value, Trouble> {
        let asked = self.signed(Request::get(self.card.as_str()), Bytes::new())?;
        read(self.patient().send(asked).await?).await
    }

    /// Where the card says that JSON-RPC of our version is spoken. It must be where the operator said.
    pub(super) fn endpoint(&self, card: &Value) -> Result<String, Trouble> {
        let speaks = |it: &&Value| {
            let version = text(it, "protocolVersion").unwrap_or_default();
            it["protocolBinding"] == "JSONRPC" && (version == VERSION || version.starts_with("1.0."))
        };
        let all = card["supportedInterfaces"].as_array().into_iter().flatten();
        let url = all.into_iter().find(speaks).and_then(|it| text(it, "url"));
        let url = url.ok_or_else(|| Trouble::strange("its card offers no JSON-RPC of A2A 1.0"))?;
        self.checked(url).map(Into::into)
    }

    fn checked(&self, url: &str) -> Result<Url, Trouble> {
        let url: Url = url.parse().map_err(|_| Trouble::strange("its card has an address that cannot be read"))?;
        if url.origin() != self.card.origin() {
            let what = format!(
                "its card names the address {}; write that address in polis.toml if it is right",
                url.origin().ascii_serialization()
            );
            return Err(Trouble::new(Kind::Final, what));
        }
        Ok(url)
    }

    /// Asks one thing.
    pub(super) async fn ask(&self, endpoint: &str, method: &str, params: &Value) -> Result<Value, Trouble> {
        let asked = self.post(endpoint, method, params, "application/json")?;
        let response = self.patient().send(asked).await?;
        let mut answer = read(response).await?;
        if let Some(error) = answer.get("error").filter(|error| error.is_object()) {
            let what = text(error, "message").unwrap_or("it gives no reason");
            let passing = error["code"] == -32603;
            let what = format!("it refuses: {} ({})", shortened(what), error["code"]);
            return Err(Trouble::new(if passing { Kind::Later } else { Kind::Final }, what));
        }
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(Trouble::strange("its answer is not JSON-RPC")),
        }
    }

    /// Has changes of a task told.
    pub(super) async fn subscribe(&self, endpoint: &str, params: &Value) -> Result<Changes, Trouble> {
        let asked = self.post(endpoint, "SubscribeToTask", params, "text/event-stream")?;
        let http = self.http.with_timeouts(Timeouts { first_byte: Some(TIMEOUT), ..Timeouts::default() });
        let response = http.send(asked).await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !response.status().is_success() || !kind.starts_with("text/event-stream") {
            return Err(Trouble::strange("it tells of no changes"));
        }
        Ok(Changes(response.into_body()))
    }

    fn patient(&self) -> HttpClient {
        self.http.with_timeouts(Timeouts { whole: Some(TIMEOUT), ..Timeouts::default() })
    }

    fn post(&self, endpoint: &str, method: &str, params: &Value, accept: &'static str) -> Result<Request<Bytes>, Trouble> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let asked = Request::post(self.checked(endpoint)?.as_str()).header(CONTENT_TYPE, "application/json");
        self.signed(asked.header(ACCEPT, accept), body.to_string().into())
    }

    /// With what the other side wants to see. A variable that is not set is an error; an empty token is never sent.
    fn signed(&self, request: request::Builder, body: Bytes) -> Result<Request<Bytes>, Trouble> {
        let mut request = request.header("a2a-version", VERSION);
        if let Some(variable) = &self.token_env {
            let token = std::env::var(variable).ok().filter(|token| !token.trim().is_empty());
            let token = token.ok_or_else(|| Trouble::new(Kind::Final, format!("the variable {variable} is not set")))?;
            let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
            let mut value =
                value.map_err(|_| Trouble::new(Kind::Final, format!("the variable {variable} does not contain a token")))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        request.body(body).map_err(|_| Trouble::strange("its address cannot be asked"))
    }
}

/// Tells when a task has changed.
pub(super) struct Changes(Body);

impl Changes {
    /// Waits for a change; false when no more will be told.
    pub(super) async fn next(&mut self) -> bool {
        loop {
            match self.0.chunk().await {
                // What only keeps the connection alive changes nothing.
                Ok(Some(chunk)) if chunk.starts_with(b":") => {}
                Ok(Some(_)) => return true,
                Ok(None) | Err(_) => return false,
            }
        }
    }
}

/// The JSON of an answer. What is no answer of the protocol is told by its status.
async fn read(response: Response<Body>) -> Result<Value, Trouble> {
    let status = response.status();
    let body = match response.into_body().read(MAX_BYTES).await {
        Err(HttpError::TooLong { .. }) => return Err(Trouble::strange("its answer is too long")),
        body => body?,
    };
    let told = serde_json::from_slice::<Value>(&body);
    match (status.is_success(), told) {
        (true, Ok(told)) => Ok(told),
        (false, Ok(told)) if told.get("jsonrpc").is_some() => Ok(told),
        (true, Err(_)) => Err(Trouble::strange("its answer is not JSON")),
        (false, told) => {
            let detail = told.ok().and_then(|told| text(&told, "detail").map(shortened)).unwrap_or_default();
            let kind = match status.as_u16() {
                408 | 425 | 429 | 502..=504 => Kind::Later,
                _ => Kind::Final,
            };
            Err(Trouble::new(kind, format!("it answers {status} {detail}").trim_end()))
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_COMPLAINT).filter(|envelope| !envelope.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(url: &str) -> Result<Wire, String> {
        let patience = Duration::from_secs(1);
        Wire::new(&RemoteAgent { name: "a".to_owned(), url: url.to_owned(), token_env: None, patience })
    }

    #[test]
    fn the_card_is_found_from_any_address_and_leads_nowhere_else() {
        for (url, card) in [
            ("http://h:1", "http://h:1/.well-known/agent-card.json"),
            ("https://h/s/two/", "https://h/s/two/.well-known/agent-card.json"),
            ("http://h/card.json", "http://h/card.json"),
        ] {
            assert_eq!(wire(url).unwrap().card.as_str(), card);
        }
        for url in ["", "h:1", "ftp://h", "file:///etc/passwd"] {
            assert!(wire(url).is_err(), "{url}");
        }
        let wire = wire("http://h:1").unwrap();
        let card = |url: &str, binding: &str, version: &str| json!({ "supportedInterfaces": [{ "url": url, "protocolBinding": binding, "protocolVersion": version }] });
        assert_eq!(wire.endpoint(&card("http://h:1/a2a", "JSONRPC", "1.0")).unwrap(), "http://h:1/a2a");
        for (url, binding, version) in [
            ("http://evil:1/a2a", "JSONRPC", "1.0"),
            ("https://h:1/a2a", "JSONRPC", "1.0"),
            ("http://h:2/a2a", "JSONRPC", "1.0"),
            ("http://h:1/a2a", "GRPC", "1.0"),
            ("http://h:1/a2a", "JSONRPC", "0.3"),
        ] {
            assert!(!wire.endpoint(&card(url, binding, version)).unwrap_err().is_passing(), "{url} {binding} {version}");
        }
    }
}
