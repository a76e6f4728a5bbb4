//! JSON-RPC 2.0 as MCP and A2A use it: what comes in, and how a request is answered. It knows no method.

use polis_api::ApiError;
use serde_json::{Map, Value, json};

use crate::body::Json;
use crate::problem::Problem;

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const INTERNAL_ERROR: i64 = -32603;

/// A message that came in.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    /// Somebody wants an answer.
    Request { id: Value, method: String, params: Map<String, Value> },
    /// A message without an answer.
    Notification { method: String, params: Map<String, Value> },
    /// An answer to something that we asked, with `result` or `error`.
    Answer { id: Value, message: Map<String, Value> },
}

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl Fault {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The whole answer. A request that could not be read has no id.
    pub(crate) fn answer(&self, id: Option<&Value>) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }
}

/// The whole answer to a request that was done.
pub(crate) fn done(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Reads a body. One that is no JSON is answered by the protocol, one that is no body of ours by HTTP.
pub(crate) fn read(body: Result<Json<Value>, Problem>) -> Result<Result<Incoming, Fault>, Problem> {
    match body {
        Ok(Json(message)) => Ok(Incoming::read(message)),
        Err(problem) if problem.is_bad_json() => Ok(Err(Fault::new(PARSE_ERROR, problem.detail()))),
        Err(problem) => Err(problem),
    }
}

impl Incoming {
    pub(crate) fn read(message: Value) -> Result<Self, Fault> {
        let bad = |what: &str| Fault::new(INVALID_REQUEST, what);
        let Value::Object(mut message) = message else {
            return Err(bad("send one message at a time, as an object"));
        };
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(bad("`jsonrpc` must be \"2.0\""));
        }
        let method = match message.remove("method") {
            Some(Value::String(method)) => method,
            None if message.contains_key("result") || message.contains_key("error") => {
                let id = message.remove("id").unwrap_or_default();
                return Ok(Self::Answer { id, message });
            }
            _ => return Err(bad("`method` must be a text")),
        };
        let params = match message.remove("params") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err(Fault::invalid("`params` must be an object")),
        };
        match message.remove("id") {
            None => Ok(Self::Notification { method, params }),
            Some(id @ (Value::String(_) | Value::Number(_))) => Ok(Self::Request { id, method, params }),
            Some(_) => Err(bad("`id` must be a text or a number")),
        }
    }
}

/// An API error as a JSON-RPC error.
impl From<&ApiError> for Fault {
    fn from(error: &ApiError) -> Self {
        let code = if error.status() == 500 || error.is_transient() { INTERNAL_ERROR } else { INVALID_PARAMS };
        Self::new(code, error.detail()).with_data(json!({ "code": error.code() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_told_apart() {
        let code = |message: Value| Incoming::read(message).map_err(|fault| fault.code);
        let params = Map::new();
        let asked = Incoming::Request { id: json!(1), method: "a".into(), params: params.clone() };
        assert_eq!(code(json!({ "jsonrpc": "2.0", "id": 1, "method": "a" })), Ok(asked));
        let told = Incoming::Notification { method: "a".into(), params };
        assert_eq!(code(json!({ "jsonrpc": "2.0", "method": "a", "params": null })), Ok(told));
        let answer = code(json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
        assert!(matches!(answer, Ok(Incoming::Answer { id, message }) if id == json!(1) && message["result"] == json!({})));
        for bad in [
            json!([]),
            json!({ "id": 1, "method": "a" }),
            json!({ "jsonrpc": "2.0", "id": 1 }),
            json!({ "jsonrpc": "2.0", "id": null, "method": "a" }),
            json!({ "jsonrpc": "2.0", "id": 1, "method": 2 }),
        ] {
            assert_eq!(code(bad.clone()), Err(INVALID_REQUEST), "{bad}");
        }
        assert_eq!(code(json!({ "jsonrpc": "2.0", "id": 1, "method": "a", "params": [1] })), Err(INVALID_PARAMS));
    }
}
