//! The messages of OTLP. Serialised as they are they are OTLP's JSON: ids in hexadecimal, enums as numbers, 64-bit integers as
//! text. `protobuf.rs` writes the same messages as protobuf.

use polis_domain::Timestamp;
use serde::{Serialize, Serializer};

/// How the messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// `http/protobuf`, which every collector takes.
    #[default]
    Protobuf,
    /// `http/json`.
    Json,
}

impl Protocol {
    /// The protocol of this name, as `OTEL_EXPORTER_OTLP_PROTOCOL` has it.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "http/protobuf" => Some(Self::Protobuf),
            "http/json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// What a span is to its neighbours.
pub(crate) const INTERNAL: u8 = 1;
pub(crate) const SERVER: u8 = 2;
pub(crate) const CLIENT: u8 = 3;

/// A status that says that it failed.
const ERROR: u8 = 2;

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Span {
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_span_id: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: u8,
    #[serde(serialize_with = "as_text")]
    pub(crate) start_time_unix_nano: u64,
    #[serde(serialize_with = "as_text")]
    pub(crate) end_time_unix_nano: u64,
    pub(crate) attributes: Attributes,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<SpanEvent>,
    pub(crate) status: Status,
}

/// Something that happened within a span.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpanEvent {
    #[serde(serialize_with = "as_text")]
    pub(crate) time_unix_nano: u64,
    pub(crate) name: &'static str,
    pub(crate) attributes: Attributes,
}

/// How a span ended; nothing where it went well.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<u8>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

impl Status {
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self { code: Some(ERROR), message: message.into() }
    }
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Attributes(pub(crate) Vec<Attribute>);

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Attribute {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) enum Value {
    #[serde(rename = "stringValue")]
    Text(String),
    #[serde(rename = "boolValue")]
    Bool(bool),
    #[serde(rename = "intValue", serialize_with = "as_text")]
    Int(u64),
    #[serde(rename = "doubleValue")]
    Double(f64),
    #[serde(rename = "arrayValue")]
    List { values: Vec<Value> },
}

impl Attributes {
    /// The same with one more.
    pub(crate) fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.set(key, value);
        self
    }

    /// The same with one more, where there is one.
    pub(crate) fn with_some(self, key: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    pub(crate) fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        self.0.push(Attribute { key, value: value.into() });
    }

    /// These and then others.
    pub(crate) fn and(mut self, others: &Self) -> Self {
        self.0.extend(others.0.iter().cloned());
        self
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Int(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Double(number)
    }
}

impl From<bool> for Value {
    fn from(is: bool) -> Self {
        Self::Bool(is)
    }
}

/// One metric with all its data points.
#[derive(Debug, Serialize)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) description: &'static str,
    #[serde(flatten)]
    pub(crate) data: Data,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Data {
    Sum { aggregation_temporality: u8, is_monotonic: bool, data_points: Vec<Point> },
    Gauge { data_points: Vec<Point> },
    Histogram { aggregation_temporality: u8, data_points: Vec<Point> },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Point {
    pub(crate) attributes: Attributes,
    #[serde(serialize_with = "as_text")]
    pub(crate) start_time_unix_nano: u64,
    #[serde(serialize_with = "as_text")]
    pub(crate) time_unix_nano: u64,
    #[serde(flatten)]
    pub(crate) value: MetricValue,
}

#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(crate) enum MetricValue {
    Int {
        #[serde(serialize_with = "as_text")]
        as_int: u64,
    },
    Double {
        as_double: f64,
    },
    Histogram {
        #[serde(serialize_with = "as_text")]
        count: u64,
        sum: f64,
        #[serde(serialize_with = "all_as_text")]
        bucket_counts: Vec<u64>,
        explicit_bounds: &'static [f64],
    },
}

impl Data {
    pub(crate) fn points(&self) -> &[Point] {
        match self {
            Self::Sum { data_points, .. } | Self::Gauge { data_points } | Self::Histogram { data_points, .. } => data_points,
        }
    }
}

/// Nanoseconds since 1970.
pub(crate) fn nanos(at: Timestamp) -> u64 {
    at.0.saturating_mul(1_000_000)
}

/// US dollars.
pub(crate) fn usd(cost_nanos: u64) -> f64 {
    cost_nanos as f64 / 1e9
}

fn as_text<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

fn all_as_text<S: Serializer>(numbers: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.iter().map(u64::to_string))
}
