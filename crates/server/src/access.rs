//! Who is let in: a `Host` and an `Origin` that are ours, a token, and not too often. Checked before anything else, for every route.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, LOCATION, ORIGIN,
    REFERRER_POLICY, SET_COOKIE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use polis_engine::SystemClock;
use polis_ports::Clock;

use crate::caller::Caller;
use crate::listener::MAX_HEAD_BYTES;
use crate::metrics::Counts;
use crate::nodes::FromNode;
use crate::problem::Problem;
use crate::rate_limit::{Buckets, Rate, RateKey};
use crate::session::Sessions;
use crate::tokens::{AcceptedToken, Tokens};

/// Where a connection comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// Rate limits. The owner has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// With each further token.
    pub token: Rate,
    /// From each address, without a token.
    pub unknown: Rate,
}

impl Default for Rates {
    fn default() -> Self {
        Self { token: Rate { per_second: 100, burst: 1_000 }, unknown: Rate { per_second: 50, burst: 1_000 } }
    }
}

/// The health route.
pub(crate) const HEALTH: &str = "/api/health";

/// How the address of a request begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scheme(pub(crate) &'static str);

/// What is checked.
pub(crate) struct Guard {
    /// None lets everybody in who is on this machine.
    pub(crate) tokens: Option<Tokens>,
    /// The address that we listen on.
    pub(crate) listen: IpAddr,
    /// Names that this server has beside its addresses.
    pub(crate) hosts: Vec<String>,
    /// Origins of other pages that may call.
    pub(crate) origins: Vec<String>,
    pub(crate) sessions: Sessions,
    pub(crate) rates: Rates,
    pub(crate) buckets: Buckets,
    pub(crate) counts: Arc<Counts>,
}

/// Which page a browser asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    /// Our own, or none: a program asks.
    Ours,
    /// Another page whose origin is allowed.
    Allowed,
}

/// Passes a request on with its caller, or answers why not.
pub(crate) async fn check(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let requested_headers = request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|names| names.to_str().ok());
    let requested_headers = requested_headers.unwrap_or_default().to_lowercase();
    let page = check_head_size(&request).and_then(|()| guard.page(&request));
    let is_allowed = matches!(page, Ok(Page::Allowed));
    let mut response = match page {
        Err(problem) => problem.into_response(),
        Ok(Page::Allowed) if request.method() == Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
        Ok(_) if !guard.knows_tokens().await && request.uri().path() != HEALTH => {
            let detail = "the tokens that the nodes share cannot be read now; try again";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "tokens_unavailable", detail).into_response()
        }
        Ok(_) => match (Sessions::requested(request.method(), request.uri()), &guard.tokens) {
            (Some(secret), Some(tokens)) => guard.begin_session(tokens, &secret, &request),
            _ => match guard.caller(&request) {
                Ok((caller, known)) => {
                    let extensions = request.extensions_mut();
                    extensions.insert(caller);
                    extensions.insert(guard.counts.clone());
                    extensions.insert(Scheme(if guard.sessions.is_secure { "https" } else { "http" }));
                    let response = next.run(request).await;
                    match known {
                        Some(known) if is_stream(&response) => guard.clone().until_revoked(known, response),
                        _ => response,
                    }
                }
                Err(problem) => problem.into_response(),
            },
        },
    };
    guard.counts.count(response.status());
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.entry(REFERRER_POLICY).or_insert(HeaderValue::from_static("no-referrer"));
    match origin.filter(|_| is_allowed) {
        Some(origin) => allow(headers, origin, &requested_headers),
        None => {
            headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
        }
    }
    response
}

/// What clients of the protocols that are spoken here send along.
const ALLOWED_HEADERS: &[&str] = &[
    "authorization",
    "content-type",
    "accept",
    "idempotency-key",
    "if-none-match",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "a2a-version",
    "a2a-extensions",
    "openai-beta",
    "openai-organization",
    "openai-project",
    "x-conversation-id",
    "x-librechat-conversation-id",
    "x-openwebui-chat-id",
];

/// Response headers that pages of other origins may read.
const EXPOSED_HEADERS: &str = "etag, idempotent-replayed, mcp-session-id, retry-after, x-should-retry";

/// This limits the header bytes; hyper's buffer limit is separate.
fn check_head_size(request: &Request) -> Result<(), Problem> {
    let lines = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if lines.sum::<usize>() + target <= MAX_HEAD_BYTES {
        return Ok(());
    }
    let detail = format!("the head of the request is longer than {MAX_HEAD_BYTES} bytes; send fewer or shorter headers");
    Err(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "head_too_large", detail))
}

/// Tells a browser that a page of another site may ask, with a token and never with our cookie.
fn allow(headers: &mut HeaderMap, origin: HeaderValue, requested_headers: &str) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("Origin"));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    // Names of one client's own headers are not all known, but how they begin is.
    let own = requested_headers.split(',').map(str::trim).filter(|name| name.starts_with("x-stainless-"));
    let names: Vec<&str> = ALLOWED_HEADERS.iter().copied().chain(own).collect();
    headers.extend(HeaderValue::from_str(&names.join(", ")).ok().map(|names| (ACCESS_CONTROL_ALLOW_HEADERS, names)));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED_HEADERS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
}

impl Guard {
    fn page(&self, request: &Request) -> Result<Page, Problem> {
        // The node that has passed it on has checked by its own names.
        if request.extensions().get::<FromNode>().is_some() {
            return Ok(Page::Ours);
        }
        let headers = request.headers();
        let host = self.check_host(request.uri().authority(), headers)?;
        self.check_origin(&host, request.method(), headers)
    }

    /// A page of somebody else's, whose name was made to point here, still says its own name.
    fn check_host(&self, named: Option<&Authority>, headers: &HeaderMap) -> Result<String, Problem> {
        let mut given = headers.get_all(HOST).iter();
        let host = match (named, given.next(), given.next()) {
            // Who names the server twice must mean the same one.
            (Some(authority), host, None) if host.is_none_or(|host| host.as_bytes() == authority.as_str().as_bytes()) => {
                Some(authority.as_str())
            }
            (None, Some(host), None) => host.to_str().ok(),
            _ => None,
        };
        let host = host.filter(|host| self.is_ours(host));
        host.map(str::to_owned).ok_or_else(|| {
            let detail = "the Host header does not name this server; use the address that it printed at its start";
            Problem::new(StatusCode::FORBIDDEN, "bad_host", detail)
        })
    }

    fn is_ours(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let name = authority.host();
        if authority.as_str().contains('@') {
            return false;
        }
        if name.eq_ignore_ascii_case("localhost") || self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(name)) {
            return true;
        }
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        // Only names can be made to point elsewhere; who listens for others is reached under any of its addresses.
        address.is_ok_and(|address| address.is_loopback() || address == self.listen || !self.listen.is_loopback())
    }

    /// A browser says which page asks. Our own may, which has the same host and port, and those that were named.
    fn check_origin(&self, host: &str, method: &Method, headers: &HeaderMap) -> Result<Page, Problem> {
        let ours = |origin: &str| {
            // One that stands before us may encrypt, and has a name for it; to this machine itself nobody does.
            let is_named = self.hosts.iter().any(|name| is_host(host, name));
            let encrypted = origin.strip_prefix("https://").filter(|_| self.sessions.is_secure || is_named);
            let from = encrypted.or_else(|| origin.strip_prefix("http://").filter(|_| !self.sessions.is_secure));
            from.is_some_and(|from| from.eq_ignore_ascii_case(host))
        };
        let origins: Vec<_> = headers.get_all(ORIGIN).iter().map(|origin| origin.to_str().unwrap_or_default()).collect();
        if let [origin] = origins[..]
            && !ours(origin)
            && self.origins.iter().any(|allowed| allowed == origin)
        {
            return Ok(Page::Allowed);
        }
        if origins.into_iter().all(ours) && !is_cross_site(method, headers) {
            return Ok(Page::Ours);
        }
        let detail = "the request comes from another site; only this server's own page and those listed under `cors` in polis.toml are allowed";
        Err(Problem::new(StatusCode::FORBIDDEN, "bad_origin", detail))
    }

    /// Who asks, if it is not too often, and with which token, if it can be revoked.
    fn caller(&self, request: &Request) -> Result<(Caller, Option<AcceptedToken>), Problem> {
        let Some(tokens) = &self.tokens else { return Ok((Caller::owner(), None)) };
        let headers = request.headers();
        let mut said = headers.get_all(AUTHORIZATION).iter();
        let known = match said.next() {
            // Of two, nobody knows which one is meant.
            Some(_) if said.next().is_some() => None,
            Some(value) => bearer(value).and_then(|secret| tokens.find(secret)),
            None => self.sessions.token_of_cookie(request.method(), headers, tokens, now_s()),
        };
        let (caller, who, rate) = match &known {
            Some(known) if known.is_owner() => return Ok((known.caller(), None)),
            Some(known) => (known.caller(), RateKey::Token(known.name.clone()), self.rates.token),
            None => (Caller::unknown(), RateKey::address(peer(request)), self.rates.unknown),
        };
        // Whether the server is well may be looked at however often others ask. What another node passes on it has counted.
        if request.uri().path() != HEALTH && request.extensions().get::<FromNode>().is_none() {
            self.count(who, rate)?;
        }
        Ok((caller, known))
    }

    /// Reads the tokens again when it is time; whether they are known.
    async fn knows_tokens(&self) -> bool {
        match &self.tokens {
            Some(tokens) => tokens.refresh().await,
            None => true,
        }
    }

    /// The same stream, which ends as soon as its token is revoked.
    fn until_revoked(self: Arc<Self>, known: AcceptedToken, response: Response) -> Response {
        let is_known = move || {
            let (guard, known) = (self.clone(), known.clone());
            async move {
                let is_readable = guard.knows_tokens().await;
                let now = guard.tokens.as_ref().and_then(|tokens| tokens.find_by_name(&known.name));
                is_readable && now.is_some_and(|now| now.is_same(&known))
            }
        };
        response.map(|body| Body::from_stream(body.into_data_stream().take_while(move |_| is_known())))
    }

    fn count(&self, who: RateKey, rate: Rate) -> Result<(), Problem> {
        self.buckets.take(who, rate, Instant::now()).map_err(|wait| {
            let detail = format!("too many requests in a short time; try again in {} ms", wait.as_millis() + 1);
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail)
        })
    }

    /// Gives the page a cookie for the token of its address, and has the browser forget that address.
    fn begin_session(&self, tokens: &Tokens, secret: &str, request: &Request) -> Response {
        if let Err(problem) = self.count(RateKey::address(peer(request)), self.rates.unknown) {
            return problem.into_response();
        }
        let known: Option<AcceptedToken> = tokens.find(secret);
        let cookie = known.and_then(|known| HeaderValue::from_str(&self.sessions.cookie(&known, now_s())).ok());
        match cookie {
            Some(cookie) => {
                (StatusCode::SEE_OTHER, [(LOCATION, HeaderValue::from_static("/")), (SET_COOKIE, cookie)]).into_response()
            }
            None => Caller::unknown().is_known().map_err(Problem::from).into_response(),
        }
    }
}

/// Whether a `Host` is this name, whatever its port.
fn is_host(host: &str, name: &str) -> bool {
    host.parse::<Authority>().is_ok_and(|authority| authority.host().eq_ignore_ascii_case(name))
}

fn is_stream(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(secret.trim())
}

pub(crate) fn peer(request: &Request) -> IpAddr {
    request.extensions().get::<PeerAddress>().map_or(Ipv4Addr::LOCALHOST.into(), |peer| peer.0)
}

fn now_s() -> u64 {
    SystemClock.now().0 / 1_000
}

/// Whether the browser says that a page of another site, or of another port, asks. Following a link to us is nothing else
/// than typing the address: what comes is shown to the person alone.
fn is_cross_site(method: &Method, headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|given| given == value);
    let is_ours =
        !headers.contains_key("sec-fetch-site") || is("sec-fetch-site", "same-origin") || is("sec-fetch-site", "none");
    let is_link = *method == Method::GET && is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document");
    !is_ours && !is_link
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(listen: &str) -> Guard {
        Guard {
            tokens: None,
            listen: listen.parse().unwrap(),
            hosts: vec!["polis.example".to_owned()],
            origins: Vec::new(),
            sessions: Sessions { port: 1, is_secure: false, browsers_say: true },
            rates: Rates::default(),
            buckets: Buckets::default(),
            counts: Arc::default(),
        }
    }

    #[test]
    fn only_our_own_names_are_ours() {
        let ours = |listen: &str, host: &str| guard(listen).is_ours(host);
        for host in
            ["127.0.0.1", "127.0.0.1:3000", "localhost:9", "LocalHost", "[::1]:3000", "127.9.9.9:1", "Polis.example:3000"]
        {
            assert!(ours("127.0.0.1", host), "{host}");
        }
        for host in
            ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:3000", "10.0.0.1", "a@127.0.0.1", "::1x"]
        {
            assert!(!ours("127.0.0.1", host), "{host}");
        }
        assert!(ours("0.0.0.0", "10.0.0.1:3000"));
        assert!(!ours("0.0.0.0", "evil.example"));
    }
}
