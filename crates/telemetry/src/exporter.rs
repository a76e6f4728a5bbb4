//! The OTLP exporter: one pooled HTTP client, one request per batch. It retries nothing.

use std::time::Duration;

use polis_http::header::{CONTENT_TYPE, RETRY_AFTER};
use polis_http::{
    HeaderMap, HeaderName, HeaderValue, HttpClient, HttpError, HttpOptions, Method, Request, StatusCode, Timeouts, Uri,
};
use serde_json::{Value, json};

use crate::Settings;
use crate::otlp::{Attributes, Metric, Protocol, Span};
use crate::protobuf::{self, Message};

/// The name of the instrumentation scope.
const SCOPE: &str = "polis";

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
    traces: Signal,
    metrics: Signal,
}

/// Where one kind of telemetry goes, and how it is written.
struct Signal {
    uri: Uri,
    protocol: Protocol,
    headers: HeaderMap,
    /// Who we are, as it is sent.
    resource: Vec<u8>,
    scope: Vec<u8>,
    /// The names of the nested lists in JSON, outermost first.
    lists: [&'static str; 3],
}

impl Signal {
    /// The request that carries these items.
    fn body(&self, items: &[Vec<u8>]) -> Vec<u8> {
        let Self { resource, scope, lists: [outer, middle, inner], .. } = self;
        match self.protocol {
            Protocol::Json => {
                let mut body = Vec::new();
                body.extend(format!(r#"{{"{outer}":[{{"resource":"#).bytes());
                body.extend(resource);
                body.extend(format!(r#","{middle}":[{{"scope":"#).bytes());
                body.extend(scope);
                body.extend(format!(r#","{inner}":["#).bytes());
                body.extend(items.join(&b','));
                body.extend(b"]}]}]}");
                body
            }
            // The messages of traces and metrics have the same field numbers.
            Protocol::Protobuf => {
                let mut message = Message::default();
                message.message(1, |whole| {
                    whole.bytes(1, resource);
                    whole.message(2, |scoped| {
                        scoped.bytes(1, scope);
                        items.iter().for_each(|item| scoped.bytes(2, item));
                    });
                });
                message.into_bytes()
            }
        }
    }
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
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let unfit = || BadCollector(format!("the header `{name}` of the collector cannot be sent"));
            let name = HeaderName::try_from(name.trim()).map_err(|_| unfit())?;
            let mut value = HeaderValue::try_from(value.trim()).map_err(|_| unfit())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let signal = |path: &str, protocol: Protocol, lists| {
            let attributes = Attributes::default()
                .with("service.name", settings.service_name.as_str())
                .with("service.version", settings.service_version.as_str());
            let (resource, scope, content_type) = match protocol {
                Protocol::Json => {
                    let scope = json!({ "name": SCOPE, "version": settings.service_version });
                    (json!({ "attributes": attributes }).to_string().into(), scope.to_string().into(), "application/json")
                }
                Protocol::Protobuf => {
                    let (mut resource, mut scope) = (Message::default(), Message::default());
                    resource.attributes(1, &attributes);
                    scope.text(1, SCOPE);
                    scope.text(2, &settings.service_version);
                    (resource.into_bytes(), scope.into_bytes(), "application/x-protobuf")
                }
            };
            let mut headers = headers.clone();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            Ok(Signal { uri: address(path)?, protocol, headers, resource, scope, lists })
        };
        Ok(Self {
            client: HttpClient::new(HttpOptions { timeouts: TIMEOUTS, max_idle_per_host: 2, ..settings.network.clone() }),
            traces: signal("/v1/traces", settings.traces, ["resourceSpans", "scopeSpans", "spans"])?,
            metrics: signal("/v1/metrics", settings.metrics, ["resourceMetrics", "scopeMetrics", "metrics"])?,
        })
    }

    /// A span as it is sent.
    pub(crate) fn encode(&self, span: &Span) -> Vec<u8> {
        match self.traces.protocol {
            Protocol::Json => serde_json::to_vec(span).expect("a span is plain data"),
            Protocol::Protobuf => protobuf::span(span),
        }
    }

    /// Sends encoded spans; how many of them the collector did not want.
    pub(crate) async fn spans(&self, spans: &[Vec<u8>]) -> Result<u64, ExportError> {
        let answer = self.send(&self.traces, spans).await?;
        let rejected = match self.traces.protocol {
            Protocol::Protobuf => protobuf::rejected_spans(&answer),
            Protocol::Json => serde_json::from_slice::<Value>(&answer).ok().and_then(|answer| {
                let rejected = &answer["partialSuccess"]["rejectedSpans"];
                rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok())
            }),
        };
        Ok(rejected.unwrap_or(0))
    }

    /// Sends metrics.
    pub(crate) async fn metrics(&self, metrics: &[Metric]) -> Result<(), ExportError> {
        let encode = |metric: &Metric| match self.metrics.protocol {
            Protocol::Json => serde_json::to_vec(metric).expect("metrics are plain data"),
            Protocol::Protobuf => protobuf::metric(metric),
        };
        self.send(&self.metrics, &metrics.iter().map(encode).collect::<Vec<_>>()).await.map(drop)
    }

    /// Sends nothing, to see whether the collector accepts it.
    pub(crate) async fn check(&self) -> Result<(), String> {
        match self.send(&self.traces, &[]).await {
            Ok(_) => Ok(()),
            Err(ExportError::Refused(why) | ExportError::Later { why, .. }) => Err(why),
        }
    }

    /// Sends items; what the collector answered.
    async fn send(&self, to: &Signal, items: &[Vec<u8>]) -> Result<Vec<u8>, ExportError> {
        let later = |why: String| ExportError::Later { why, after: None };
        let mut request = Request::new(to.body(items).into());
        *request.method_mut() = Method::POST;
        (*request.uri_mut(), *request.headers_mut()) = (to.uri.clone(), to.headers.clone());
        let response = self.client.send(request).await.map_err(|error| later(error.to_string()))?;
        let (head, body) = response.into_parts();
        let answer = match body.read(MAX_ANSWER_BYTES).await {
            Err(late @ HttpError::Late { .. }) => return Err(later(late.to_string())),
            answer => answer,
        };
        if head.status.is_success() {
            // Whatever it says beyond that only tells what it did not want.
            return Ok(answer.unwrap_or_default());
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
                traces: Protocol::default(),
                metrics: Protocol::default(),
                metric_interval: Settings::METRIC_INTERVAL,
                network: HttpOptions::default(),
            };
            assert!(!format!("{settings:?}").contains("secret"), "{settings:?}");
            OtlpExporter::new(&settings).map(|exporter| exporter.traces.uri.to_string()).map_err(|error| error.to_string())
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
