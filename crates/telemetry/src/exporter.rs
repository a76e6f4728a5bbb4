//! The OTLP exporter: one pooled HTTP client, one request per batch. It retries nothing.

use std::time::Duration;

use polis_http::header::{CONTENT_TYPE, RETRY_AFTER};
use polis_http::{
    HeaderMap, HeaderName, HeaderValue, HttpClient, HttpError, HttpOptions, Method, Request, StatusCode, Timeouts, Uri,
};
use serde_json::{Value, json};

use crate::Settings;
use crate::otlp::Attributes;

/// How long a collector may take, from the connection to the end of its answer.
const PATIENCE: Duration = Duration::from_secs(10);
const TIMEOUTS: Timeouts = Timeouts { connect: PATIENCE, first_byte: None, between_bytes: None, whole: Some(PATIENCE) };

/// The longest that a collector can have us wait.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

const MAX_ANSWER_BYTES: usize = 64 << 10;

/// A collector that nothing can be sent to. Says nothing of the headers' values.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadCollector(String);

/// Why the collector did not accept a batch.
#[derive(Debug)]
pub(crate) enum ExportError {
    /// It never will be.
    Refused(String),
    /// Perhaps later, and not before this.
    Later { why: String, after: Option<Duration> },
}

/// Sends telemetry to the collector.
pub(crate) struct OtlpExporter {
    client: HttpClient,
    traces: Uri,
    metrics: Uri,
    headers: HeaderMap,
    /// Who we are, as JSON.
    resource: String,
    scope: String,
}

impl OtlpExporter {
    pub(crate) fn new(settings: &Settings) -> Result<Self, BadCollector> {
        let base = settings.endpoint.trim().trim_end_matches('/');
        let bad = || {
            let text = format!("`{base}` is not the address of a collector; write for example http://127.0.0.1:4318");
            BadCollector(text)
        };
        // It is shown to people, and nothing would be made of it.
        if base.split_once("://").is_some_and(|(_, rest)| rest.split('/').next().is_some_and(|host| host.contains('@'))) {
            return Err(BadCollector(
                "the address of the collector contains a user name or a key; use the headers instead".to_owned(),
            ));
        }
        let address = |path: &str| {
            let uri: Uri = format!("{base}{path}").parse().map_err(|_| bad())?;
            let is_http = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty());
            if is_http && uri.query().is_none() { Ok(uri) } else { Err(bad()) }
        };
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        for (name, value) in &settings.headers {
            let unfit = || BadCollector(format!("the header `{name}` of the collector cannot be sent"));
            let name = HeaderName::try_from(name.trim()).map_err(|_| unfit())?;
            let mut value = HeaderValue::try_from(value.trim()).map_err(|_| unfit())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let resource = Attributes::default()
            .with("service.name", settings.service_name.as_str())
            .with("service.version", settings.service_version.as_str());
        Ok(Self {
            client: HttpClient::new(HttpOptions { timeouts: TIMEOUTS, max_idle_per_host: 2, ..HttpOptions::from_env() }),
            traces: address("/v1/traces")?,
            metrics: address("/v1/metrics")?,
            headers,
            resource: json!({ "attributes": resource }).to_string(),
            scope: json!({ "name": "polis", "version": settings.service_version }).to_string(),
        })
    }

    /// Sends spans; how many of them the collector did not want.
    pub(crate) async fn spans(&self, spans: &[String]) -> Result<u64, ExportError> {
        let Self { resource, scope, .. } = self;
        let spans = spans.join(",");
        let body =
            format!(r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"scope":{scope},"spans":[{spans}]}}]}}]}}"#);
        let answer = self.send(&self.traces, body).await?;
        let rejected = &answer["partialSuccess"]["rejectedSpans"];
        Ok(rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or(0))
    }

    /// Sends metrics: a list, as JSON.
    pub(crate) async fn metrics(&self, metrics: &str) -> Result<(), ExportError> {
        let Self { resource, scope, .. } = self;
        let body = format!(
            r#"{{"resourceMetrics":[{{"resource":{resource},"scopeMetrics":[{{"scope":{scope},"metrics":{metrics}}}]}}]}}"#
        );
        self.send(&self.metrics, body).await.map(drop)
    }

    /// Sends nothing, to see whether somebody takes it.
    pub(crate) async fn check(&self) -> Result<(), String> {
        match self.send(&self.traces, r#"{"resourceSpans":[]}"#.to_owned()).await {
            Ok(_) => Ok(()),
            Err(ExportError::Refused(why) | ExportError::Later { why, .. }) => Err(why),
        }
    }

    async fn send(&self, to: &Uri, body: String) -> Result<Value, ExportError> {
        let later = |why: String| ExportError::Later { why, after: None };
        let mut request = Request::new(body.into());
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (Method::POST, to.clone(), self.headers.clone());
        let response = self.client.send(request).await.map_err(|error| later(error.to_string()))?;
        let (head, body) = response.into_parts();
        let answer = match body.read(MAX_ANSWER_BYTES).await {
            Err(late @ HttpError::Late { .. }) => return Err(later(late.to_string())),
            answer => answer,
        };
        if head.status.is_success() {
            // Whatever it says beyond that only tells what it did not want.
            return Ok(answer.ok().and_then(|answer| serde_json::from_slice(&answer).ok()).unwrap_or_default());
        }
        let why = format!("it answered {}", head.status);
        // What is wrong with the batch does not get better; what is wrong with us or with it may.
        if matches!(head.status, StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY) {
            return Err(ExportError::Refused(why));
        }
        let after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        Err(ExportError::Later { why, after: after.map(|seconds| Duration::from_secs(seconds).min(MAX_RETRY_AFTER)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_has_an_address_and_headers_that_can_be_sent() {
        let check = |endpoint: &str, header: (&str, &str)| {
            let settings = Settings {
                endpoint: endpoint.to_owned(),
                headers: vec![(header.0.to_owned(), header.1.to_owned())],
                service_name: "polis".to_owned(),
                service_version: "1".to_owned(),
                content: false,
                metric_interval: Settings::METRIC_INTERVAL,
                folder: "x".into(),
            };
            assert!(!format!("{settings:?}").contains("secret"), "{settings:?}");
            OtlpExporter::new(&settings).map(|post| post.traces.to_string()).map_err(|error| error.to_string())
        };
        let fine = ("authorization", "Bearer secret");
        assert_eq!(check("http://127.0.0.1:4318/", fine), Ok("http://127.0.0.1:4318/v1/traces".to_owned()));
        assert_eq!(check("https://h/otlp", fine), Ok("https://h/otlp/v1/traces".to_owned()));
        for bad in ["", "h:4318", "ftp://h", "http://", "http://h/?a=b"] {
            assert!(check(bad, fine).unwrap_err().contains("is not the address of a collector"), "{bad}");
        }
        let message = check("https://me:secret@h", fine).unwrap_err();
        assert!(message.contains("use the headers") && !message.contains("secret"), "{message}");
        for bad in [("a b", "secret"), ("a", "secret\n")] {
            let message = check("http://h", bad).err().unwrap_or_default();
            assert!(bad.0 == "a" || message.contains("cannot be sent"), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
