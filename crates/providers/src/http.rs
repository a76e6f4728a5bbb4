//! The wire under every vendor: one pooled HTTP client with TLS, and what a status means. Knows no dialect, retries nothing
//! that may have been sent.

mod line;

use std::error::Error;
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
    /// One call sends at most one request: whatever may have reached the server is an attempt, which the caller logs and counts.
    /// Only a request of which provably no byte was written goes to another connection. A reused connection is therefore
    /// checked first: llama.cpp closes after each stream although it promises not to.
    pub(crate) async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Reply>, ModelError> {
        let target = request.uri().clone();
        let unaddressed = || ModelError::Unreachable(format!("`{target}` is no address").into());
        let authority = target.authority().ok_or_else(unaddressed)?;
        let place = (target.scheme().cloned().unwrap_or(Scheme::HTTP), authority.clone());
        // The server is told the path alone.
        *request.uri_mut() = target.path_and_query().cloned().map(Uri::from).unwrap_or_default();
        while let Some(mut line) = self.kept.take(&place).await {
            match line.send(request).await {
                Ok(response) => return Ok(response.map(|body| Reply::new(body, line, place, self.kept.clone()))),
                Err(mut error) => match error.take_message() {
                    // The connection had ended before it took the request.
                    Some(unsent) => request = unsent,
                    None => {
                        // The others are as old: the next attempt gets a new one.
                        self.kept.forget(&place);
                        return Err(cut(error.into_error()));
                    }
                },
            }
        }
        let mut line = self.connect(&target).await?;
        let response = line.send(request).await.map_err(|error| cut(error.into_error()))?;
        Ok(response.map(|body| Reply::new(body, line, place, self.kept.clone())))
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
