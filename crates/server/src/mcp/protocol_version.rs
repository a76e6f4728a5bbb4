//! Which generation of the protocol a request belongs to, and whether its headers and `_meta` agree.

use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::rpc::Fault;

/// What we speak, the newest first.
pub(super) const VERSIONS: &[&str] = &[MODERN, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The newest that begins with `initialize`.
pub(super) const NEWEST_WITH_SESSIONS: &str = "2025-11-25";

/// The first whose requests say everything themselves.
const MODERN: &str = "2026-07-28";

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

/// A generation, with what its client can do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ProtocolEra {
    /// It begins with `initialize`, which says what the client can do.
    Sessions,
    /// Each request is self-contained.
    Modern { capabilities: Value },
}

impl ProtocolEra {
    /// Reads it from a request, and from the headers where it came over HTTP.
    pub(super) fn of(method: &str, params: &Map<String, Value>, headers: Option<&HeaderMap>) -> Result<Self, Fault> {
        let meta = params.get("_meta").and_then(Value::as_object);
        let stated = meta.and_then(|meta| meta.get(VERSION_KEY));
        let header = |name: &str| headers.and_then(|headers| headers.get(name)).and_then(|value| value.to_str().ok());
        let declared = header("mcp-protocol-version").map(str::trim);
        let is_modern = stated.is_some() || declared == Some(MODERN) || method == "server/discover";
        if !is_modern {
            return match declared.is_none_or(|version| VERSIONS.contains(&version)) {
                true => Ok(Self::Sessions),
                false => Err(unsupported(declared.unwrap_or_default())),
            };
        }
        if headers.is_some() {
            check_mirror("Mcp-Method", header("mcp-method"), Some(method))?;
            let name = match method {
                "tools/call" | "prompts/get" => params.get("name"),
                "resources/read" => params.get("uri"),
                _ => None,
            };
            if let Some(name) = name.and_then(Value::as_str) {
                check_mirror("Mcp-Name", header("mcp-name"), Some(name))?;
            }
        }
        let missing = |key: &str| Fault::invalid(format!("`_meta` must have `{key}` in every request of this version"));
        let version = stated.and_then(Value::as_str).ok_or_else(|| missing(VERSION_KEY))?;
        let capabilities = meta.and_then(|meta| meta.get(CAPABILITIES_KEY)).filter(|sent| sent.is_object());
        let capabilities = capabilities.ok_or_else(|| missing(CAPABILITIES_KEY))?.clone();
        if headers.is_some() {
            check_mirror("MCP-Protocol-Version", declared, Some(version))?;
        }
        if version == MODERN { Ok(Self::Modern { capabilities }) } else { Err(unsupported(version)) }
    }

    /// Whether a version begins with `initialize`.
    pub(super) fn has_sessions(version: &str) -> bool {
        version != MODERN
    }

    pub(super) fn is_modern(&self) -> bool {
        matches!(self, Self::Modern { .. })
    }

    /// Whether the answer to a call may be a form that the client shows before it calls again.
    pub(super) fn shows_forms(&self) -> bool {
        matches!(self, Self::Modern { capabilities } if has_forms(capabilities))
    }

    /// A result as the generation has it.
    pub(super) fn finish(&self, mut result: Value) -> Value {
        let Some(fields) = result.as_object_mut() else { return result };
        if self.is_modern() {
            fields.entry("resultType").or_insert(json!("complete"));
        } else {
            fields.remove("ttlMs");
            fields.remove("cacheScope");
        }
        result
    }
}

/// Whether a client with these capabilities shows forms.
pub(super) fn has_forms(capabilities: &Value) -> bool {
    let elicitation = capabilities.get("elicitation").and_then(Value::as_object);
    elicitation.is_some_and(|modes| modes.is_empty() || modes.contains_key("form"))
}

fn unsupported(version: &str) -> Fault {
    let message = format!("version `{version}` of the protocol is not supported");
    Fault::new(UNSUPPORTED_VERSION, message).with_data(json!({ "supported": VERSIONS, "requested": version }))
}

/// A header must have the same value as the body.
fn check_mirror(name: &str, header: Option<&str>, body: Option<&str>) -> Result<(), Fault> {
    let sent = header.map(|value| decoded(value.trim()));
    match (sent, body) {
        (Some(sent), Some(body)) if sent == body => Ok(()),
        (None, _) => Err(Fault::new(HEADER_MISMATCH, format!("the header {name} is missing or cannot be read"))),
        (Some(_), _) => Err(Fault::new(HEADER_MISMATCH, format!("the header {name} does not match the body"))),
    }
}

/// What cannot stand in a header is written as `=?base64?…?=`.
fn decoded(value: &str) -> String {
    let coded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let bytes = coded.and_then(|coded| STANDARD.decode(coded).ok());
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, params: &Value, headers: &[(&'static str, &str)], want: Result<bool, i64>) {
        let headers: HeaderMap = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let era = ProtocolEra::of(method, params.as_object().unwrap(), Some(&headers));
        assert_eq!(era.map(|era| era.is_modern()).map_err(|fault| fault.code), want, "{method} {params} {headers:?}");
    }

    #[test]
    fn a_request_is_of_the_generation_that_it_says() {
        let meta = |version: &str| json!({ "_meta": { VERSION_KEY: version, CAPABILITIES_KEY: {} }, "name": "报" });
        let none = json!({});
        check("initialize", &none, &[], Ok(false));
        check("tools/list", &none, &[("mcp-protocol-version", "2025-06-18")], Ok(false));
        check("tools/list", &none, &[("mcp-protocol-version", "1999-01-01")], Err(UNSUPPORTED_VERSION));
        let list = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")];
        check("tools/list", &meta(MODERN), &list, Ok(true));
        check("tools/list", &none, &list, Err(-32602));
        check("tools/list", &meta(MODERN), &list[..1], Err(HEADER_MISMATCH));
        check("tools/list", &meta(MODERN), &list[1..], Err(HEADER_MISMATCH));
        check("tools/list", &meta("v9"), &[("mcp-protocol-version", "v9"), list[1]], Err(UNSUPPORTED_VERSION));
        check("tools/list", &meta("v9"), &list, Err(HEADER_MISMATCH));
        let call = |name| [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", name)];
        check("tools/call", &meta(MODERN), &call("=?base64?5oql?="), Ok(true));
        check("tools/call", &meta(MODERN), &call("other"), Err(HEADER_MISMATCH));
    }
}
