//! The wire under every vendor: one pooled HTTP client with TLS, and what a status means. Knows no dialect, retries nothing.

mod line;

use std::error::Error;
use std::io;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{DATE, HeaderMap, RETRY_AFTER};
use hyper::http::uri::Scheme;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use polis_ports::ModelError;
use tower_service::Service;

pub(crate) use line::Reply;
use line::{Kept, Line};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Open connections to providers, shared by all models; cloning it is cheap.
#[derive(Debug, Clone)]
pub struct Http {
    connector: HttpsConnector<HttpConnector>,
    kept: Kept,
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
        Self { connector, kept: Kept::default() }
    }

    /// Sends a request, which names its host, and waits for the head of the response.
    ///
    /// A connection that was kept open can end just when it is used again: llama.cpp ends it after each stream although it
    /// promises not to. Nothing has come back then, so the request goes out once more on a new one: that was no attempt.
    pub(crate) async fn send(&self, request: impl Fn() -> Request<Full<Bytes>>) -> Result<Response<Reply>, ModelError> {
        let first = request();
        let target = first.uri().clone();
        let unaddressed = || ModelError::Unreachable(format!("`{target}` is no address").into());
        let authority = target.authority().ok_or_else(unaddressed)?;
        let place = (target.scheme().cloned().unwrap_or(Scheme::HTTP), authority.clone());
        // The server is told the path alone.
        let path = target.path_and_query().cloned().map(Uri::from).unwrap_or_default();
        let relative = |mut request: Request<Full<Bytes>>| {
            *request.uri_mut() = path.clone();
            request
        };
        let kept = self.kept.take(&place).await;
        let was_kept = kept.is_some();
        let mut line = match kept {
            Some(line) => line,
            None => self.connect(&target).await?,
        };
        let mut answer = line.send_request(relative(first)).await;
        if was_kept && answer.as_ref().is_err_and(was_closed) {
            line = self.connect(&target).await?;
            answer = line.send_request(relative(request())).await;
        }
        Ok(answer.map_err(cut)?.map(|body| Reply::new(body, line, place, self.kept.clone())))
    }

    async fn connect(&self, target: &Uri) -> Result<Line, ModelError> {
        let socket = self.connector.clone().call(target.clone()).await;
        let socket = socket.map_err(|error| ModelError::Unreachable(with_causes(&*error).into()))?;
        line::open(socket).await.map_err(cut)
    }
}

impl Default for Http {
    fn default() -> Self {
        Self::new()
    }
}

fn cut(error: hyper::Error) -> ModelError {
    ModelError::Cut { reason: with_causes(&error) }
}

/// Whether the connection ended before anything came back.
fn was_closed(error: &hyper::Error) -> bool {
    let io = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let is_io = matches!(io, Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe));
    error.is_incomplete_message() || error.is_canceled() || is_io
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
pub(crate) async fn error_body(body: Reply) -> Bytes {
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
