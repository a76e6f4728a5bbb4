//! The words of OTLP in JSON: ids in hexadecimal, enums as numbers, 64-bit integers as text.

use polis_domain::Timestamp;
use serde::Serialize;

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
    pub(crate) start_time_unix_nano: String,
    pub(crate) end_time_unix_nano: String,
    pub(crate) attributes: Attributes,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<SpanEvent>,
    pub(crate) status: Status,
}

/// Something that happened within a span.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpanEvent {
    pub(crate) time_unix_nano: String,
    pub(crate) name: &'static str,
    pub(crate) attributes: Attributes,
}

/// How a span ended; nothing where it went well.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u8>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

impl Status {
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self { code: Some(ERROR), message: message.into() }
    }
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Attributes(Vec<Attribute>);

#[derive(Debug, Clone, Serialize)]
struct Attribute {
    key: &'static str,
    value: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) enum Value {
    #[serde(rename = "stringValue")]
    Text(String),
    #[serde(rename = "boolValue")]
    Bool(bool),
    /// As text.
    #[serde(rename = "intValue")]
    Int(String),
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
        Self::Int(number.to_string())
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

/// Nanoseconds since 1970, as text.
pub(crate) fn nanos(at: Timestamp) -> String {
    (u128::from(at.0) * 1_000_000).to_string()
}

/// US dollars.
pub(crate) fn usd(cost_nanos: u64) -> f64 {
    cost_nanos as f64 / 1e9
}
