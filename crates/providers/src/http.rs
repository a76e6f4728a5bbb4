//! The wire under every vendor: one pooled HTTP client with TLS, and what a status means. Knows no dialect, retries nothing.

use std::collections::HashSet;
use std::error::Error;
use std::io;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{DATE, HeaderMap, RETRY_AFTER};
use hyper::http::uri::Authority;
use hyper::{Request, Response, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use polis_ports::ModelError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const POOL_IDLE: Duration = Duration::from_secs(60);
const POOL_MAX_IDLE_PER_HOST: usize = 256;
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Open connections to providers, shared by all models; cloning it is cheap.
#[derive(Debug, Clone)]
pub struct Http {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// The hosts to which a connection may have been kept.
    kept: Arc<RwLock<HashSet<String>>>,
}

impl Http {
    /// A client with no connection open yet.
    pub fn new() -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEP_ALIVE));
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())
            .expect("ring speaks the TLS versions that rustls wants by default")
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_MAX_IDLE_PER_HOST)
            // Whoever asks says it with the other headers, which are the same for every request.
            .set_host(false)
            .build(connector);
        Self { client, kept: Arc::default() }
    }

    fn keeps(&self, host: &str) -> bool {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).contains(host)
    }

    fn kept(&self) -> RwLockWriteGuard<'_, HashSet<String>> {
        self.kept.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request, which names its host, and waits for the head of the response.
    ///
    /// A connection that was kept open can end just when it is used again: llama.cpp ends it after each stream although it
    /// promises not to. Nothing has come back then, so the request goes out once more on another one.
    pub(crate) async fn send(&self, request: impl Fn() -> Request<Full<Bytes>>) -> Result<Response<Incoming>, ModelError> {
        let first = request();
        let uri = first.uri().clone();
        let host = uri.authority().map_or("", Authority::as_str);
        let was_kept = self.keeps(host);
        let mut sent = self.client.request(first).await;
        // A connection that was kept from before may have ended in the meantime: that is no attempt. A new one is.
        if was_kept && sent.as_ref().is_err_and(was_closed) {
            sent = self.client.request(request()).await;
        }
        match (sent.is_ok(), was_kept) {
            (true, false) => drop(self.kept().insert(host.to_owned())),
            (false, true) => drop(self.kept().remove(host)),
            (true, true) | (false, false) => {}
        }
        sent.map_err(|error| {
            let reason = with_causes(&error);
            if error.is_connect() { ModelError::Unreachable(reason.into()) } else { ModelError::Cut { reason } }
        })
    }
}

impl Default for Http {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether the connection ended before anything came back.
fn was_closed(error: &hyper_util::client::legacy::Error) -> bool {
    let Some(cause) = error.source().and_then(|cause| cause.downcast_ref::<hyper::Error>()) else { return false };
    let io = cause.source().and_then(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    cause.is_incomplete_message() || matches!(io, Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe))
}

/// What an unsuccessful status means to the caller (D09).
pub(crate) fn refusal(status: StatusCode, headers: &HeaderMap, reason: String) -> ModelError {
    match status.as_u16() {
        429 => ModelError::Throttled { reason, retry_after: retry_after(headers) },
        408 | 409 | 425 | 500.. => ModelError::Failed { reason, retry_after: retry_after(headers) },
        _ => ModelError::Rejected { reason },
    }
}

/// Reads the body of an unsuccessful response as far as that is worth it.
pub(crate) async fn error_body(body: Incoming) -> Bytes {
    let whole = Limited::new(body, MAX_ERROR_BODY_BYTES).collect();
    match tokio::time::timeout(ERROR_BODY_TIMEOUT, whole).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) | Err(_) => Bytes::new(),
    }
}

/// An error and what caused it, in one line: the outermost alone says too little.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.ends_with(&text) {
            line = format!("{line}: {text}");
        }
        cause = error.source();
    }
    line
}

/// How long the provider wants us to wait. A date is compared with the response's own, so no clock is needed.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str, unit: f64| Duration::try_from_secs_f64(text.parse::<f64>().ok()? * unit).ok();
    if let Some(wait) = text("retry-after-ms").and_then(|text| number(text, 0.001)) {
        return Some(wait);
    }
    let wait = text(RETRY_AFTER.as_str())?;
    number(wait, 1.0).or_else(|| {
        let until = httpdate::parse_http_date(wait).ok()?;
        let now = httpdate::parse_http_date(text(DATE.as_str())?).ok()?;
        Some(until.duration_since(now).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn wait(headers: &[(&'static str, &'static str)]) -> Option<Duration> {
        let pair = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        retry_after(&headers.iter().map(pair).collect())
    }

    #[test]
    fn a_wait_is_read_in_every_form_that_providers_use() {
        assert_eq!(wait(&[("retry-after", "3")]), Some(Duration::from_secs(3)));
        assert_eq!(wait(&[("retry-after", " 0.25 ")]), Some(Duration::from_millis(250)));
        assert_eq!(wait(&[("retry-after", "9"), ("retry-after-ms", "1500")]), Some(Duration::from_millis(1500)));
        let (now, later) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:07 GMT");
        assert_eq!(wait(&[("date", now), ("retry-after", later)]), Some(Duration::from_secs(30)));
        assert_eq!(wait(&[("date", later), ("retry-after", now)]), Some(Duration::ZERO));
    }

    #[test]
    fn a_wait_that_cannot_be_read_is_none() {
        for bad in ["", "soon", "-1", "inf", "NaN", "1e300", "Sun, 06 Nov 1994 08:49:37 GMT"] {
            assert_eq!(wait(&[("retry-after", bad)]), None, "{bad:?}");
        }
        assert_eq!(wait(&[]), None);
    }
}
