//! Sends requests. It follows no redirects and repeats nothing that may have reached a server.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::Sleep;

use crate::connect::{Connector, address_of, proxy_auth_required};
use crate::environment::Proxies;
use crate::error::{find, with_causes};
use crate::resolve::{HyperResolver, Resolver, SystemResolver};
use crate::tls::{Identity, LazyTls, Trust};
use crate::{Body, Environment, HttpError};

/// The `User-Agent` of this program.
pub(crate) const AGENT: &str = concat!("polis/", env!("CARGO_PKG_VERSION"));

/// How long an idle connection is kept, and how often the system probes one.
const MAX_IDLE: Duration = Duration::from_secs(60);
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How long an HTTP/2 connection may leave a ping unanswered.
const MAX_PING: Duration = Duration::from_secs(20);

/// How long things may take. None is without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection is open, with proxy and encryption.
    pub connect: Duration,
    /// Until the response begins, from when the request is given.
    pub first_byte: Option<Duration>,
    /// Until more of the response comes.
    pub between_bytes: Option<Duration>,
    /// Until the response has ended, from when the request is given.
    pub whole: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), first_byte: None, between_bytes: None, whole: None }
    }
}

/// How a client connects. The default reads no variable of this process.
#[derive(Clone)]
pub struct HttpOptions {
    /// Proxies and certificates that the environment names.
    pub environment: Environment,
    /// Which certificates are trusted.
    pub trust: Trust,
    /// The certificate that is presented to servers.
    pub identity: Option<Identity>,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Whether addresses of this machine are reached through a proxy too.
    pub proxies_loopback: bool,
    /// Looks names up, except those that a proxy looks up.
    pub resolver: Arc<dyn Resolver>,
    /// Most idle connections per server.
    pub max_idle_per_host: usize,
}

impl HttpOptions {
    /// The settings of the environment, and defaults for the rest.
    pub fn from_env() -> Self {
        Self::new(Environment::read())
    }

    /// The same with an environment of one's own.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            trust: Trust::System,
            identity: None,
            timeouts: Timeouts::default(),
            proxies_loopback: false,
            resolver: Arc::new(SystemResolver),
            max_idle_per_host: 256,
        }
    }
}

/// Shows neither the proxies nor the resolver.
impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions").field("trust", &self.trust).field("timeouts", &self.timeouts).finish_non_exhaustive()
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self::new(Environment::default())
    }
}

/// An HTTP client with its connections; cloning is cheap, and clones share them.
#[derive(Clone)]
pub struct HttpClient {
    pool: Arc<Mutex<Pool<Connector, Full<Bytes>>>>,
    connector: Connector,
    timeouts: Timeouts,
    max_idle_per_host: usize,
}

impl HttpClient {
    /// A client with no open connection. Errors of certificates or proxies appear with the first request that needs them.
    pub fn new(options: HttpOptions) -> Self {
        let HttpOptions { environment, trust, identity, timeouts, proxies_loopback, resolver, max_idle_per_host } = options;
        let connector = Connector {
            tcp: tcp(resolver.clone(), timeouts.connect),
            resolver,
            proxies: Arc::new(Proxies::new(&environment, proxies_loopback)),
            tls: LazyTls::new(environment, trust, identity),
            timeout: timeouts.connect,
        };
        let pool = Arc::new(Mutex::new(pool(&connector, max_idle_per_host)));
        Self { pool, connector, timeouts, max_idle_per_host }
    }

    /// A client that the environment configures.
    pub fn from_env() -> Self {
        Self::new(HttpOptions::from_env())
    }

    /// The same connections with other time limits; `connect` stays as it was.
    pub fn with_timeouts(&self, timeouts: Timeouts) -> Self {
        Self { timeouts: Timeouts { connect: self.timeouts.connect, ..timeouts }, ..self.clone() }
    }

    /// The same certificates and proxies with another resolver and connections of its own.
    pub fn with_resolver(&self, resolver: Arc<dyn Resolver>) -> Self {
        let tcp = tcp(resolver.clone(), self.timeouts.connect);
        let connector = Connector { tcp, resolver, ..self.connector.clone() };
        let pool = Arc::new(Mutex::new(pool(&connector, self.max_idle_per_host)));
        Self { pool, connector, ..self.clone() }
    }

    /// Reads the certificates, as the first encrypted connection would.
    pub async fn check_certificates(&self) -> Result<(), HttpError> {
        self.connector.tls.get().await.map(drop)
    }

    /// Whether a proxy would carry a request to this address, and look its name up.
    pub fn uses_proxy(&self, target: &Uri) -> Result<bool, HttpError> {
        Ok(self.connector.proxies.for_target(target)?.is_some())
    }

    /// Sends a request and waits for the head of the response.
    ///
    /// One call writes at most one request: whatever may have reached the server is an attempt, which the caller counts. Only a
    /// request of which no byte was written goes to another connection, because the kept one had ended before.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, HttpError> {
        let (request, proxy) = self.prepared(request)?;
        let address: Arc<str> = address_of(request.uri()).into();
        let deadline = self.timeouts.whole.map(|after| (Box::pin(tokio::time::sleep(after)), after));
        let mut silence = self.timeouts.first_byte.map(|after| (Box::pin(tokio::time::sleep(after)), after));
        let mut deadline = deadline;
        // A server may have closed a kept connection a moment ago, and only the kernel knows. The runtime looks at its sockets
        // while this task waits, and the task that drives the connection sees it in the next round: llama.cpp closes after each
        // stream although it promises not to.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        let sending = self.pool().request(request.map(Full::new));
        let response = tokio::select! {
            biased;
            response = sending => response.map_err(|error| self.failed(&address, &error))?,
            after = wait_for_timeout(&mut silence) => return Err(HttpError::Silent { address: address.to_string(), after }),
            after = wait_for_timeout(&mut deadline) => return Err(HttpError::Late { address: address.to_string(), after }),
        };
        match proxy {
            Some(proxy) if response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED => Err(proxy_auth_required(&proxy)),
            _ => Ok(response.map(|body| Body::new(body, address, self.timeouts.between_bytes, deadline))),
        }
    }

    /// The request as it is written, and the proxy that will read it.
    fn prepared(&self, mut request: Request<Bytes>) -> Result<(Request<Bytes>, Option<Intercept>), HttpError> {
        let target = request.uri();
        let has_host = target.host().is_some_and(|host| !host.is_empty());
        if !has_host || !matches!(target.scheme_str(), Some("http" | "https")) {
            return Err(HttpError::BadAddress { address: without_login(target).to_string() });
        }
        let proxy = match target.scheme_str() {
            Some("http") => self.connector.proxies.for_target(target)?,
            _ => None,
        };
        let proxy = proxy.filter(|proxy| matches!(proxy.uri().scheme_str(), Some("http" | "https")));
        let own_login = login_in(target);
        let headers = request.headers_mut();
        if let Some(login) = own_login {
            headers.entry(AUTHORIZATION).or_insert(login);
        }
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        if let Some(login) = proxy.as_ref().and_then(Intercept::basic_auth) {
            headers.insert(PROXY_AUTHORIZATION, login.clone());
        }
        *request.uri_mut() = without_login(request.uri());
        Ok((request, proxy))
    }

    fn failed(&self, address: &str, error: &hyper_util::client::legacy::Error) -> HttpError {
        if let Some(error) = find::<HttpError>(error) {
            return error.clone();
        }
        // The other kept connections are as old: the next attempt gets a new one.
        *self.pool() = pool(&self.connector, self.max_idle_per_host);
        HttpError::Cut { address: address.to_owned(), reason: with_causes(error) }
    }

    fn pool(&self) -> MutexGuard<'_, Pool<Connector, Full<Bytes>>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new(HttpOptions::default())
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("timeouts", &self.timeouts).finish_non_exhaustive()
    }
}

fn tcp(resolver: Arc<dyn Resolver>, timeout: Duration) -> HttpConnector<HyperResolver> {
    let mut tcp = HttpConnector::new_with_resolver(HyperResolver(resolver));
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp.set_connect_timeout(Some(timeout));
    tcp
}

fn pool(connector: &Connector, max_idle_per_host: usize) -> Pool<Connector, Full<Bytes>> {
    Pool::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(MAX_IDLE)
        .pool_max_idle_per_host(max_idle_per_host)
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_keep_alive_timeout(MAX_PING)
        .build(connector.clone())
}

/// Waits for a timer, for ever if there is none, and returns its duration.
async fn wait_for_timeout(alarm: &mut Option<(Pin<Box<Sleep>>, Duration)>) -> Duration {
    match alarm {
        Some((sleep, after)) => {
            sleep.as_mut().await;
            *after
        }
        None => std::future::pending().await,
    }
}

/// The user and password of an address, as a header. Addresses of proxies hold them in the same form.
fn login_in(target: &Uri) -> Option<HeaderValue> {
    if !target.authority()?.as_str().contains('@') {
        return None;
    }
    let reader = Matcher::builder().all(target.to_string()).build();
    reader.intercept(target)?.basic_auth().cloned()
}

/// The same address without user and password, as it is sent and may be shown.
fn without_login(target: &Uri) -> Uri {
    let mut parts = target.clone().into_parts();
    let bare = parts.authority.as_ref().and_then(|authority| authority.as_str().rsplit_once('@')?.1.parse().ok());
    match bare {
        Some(bare) => {
            parts.authority = Some(bare);
            Uri::from_parts(parts).unwrap_or_default()
        }
        None => target.clone(),
    }
}
