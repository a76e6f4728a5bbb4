//! Turns the error responses of providers, in their many shapes, into a [`ModelError`].

use std::time::Duration;

use polis_http::header::LOCATION;
use polis_http::{HeaderMap, StatusCode};
use polis_ports::ModelError;
use serde_json::Value;

use super::{loose, status};

/// Longest message of a provider that is passed on, in characters.
const MAX_REASON_CHARS: usize = 500;

/// The error for an unsuccessful response.
pub(super) fn from_response(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ModelError {
    let mut error = status::to_error(status, headers, reason(status, headers, body));
    if let ModelError::Throttled { retry_after: wait @ None, .. } | ModelError::Failed { retry_after: wait @ None, .. } =
        &mut error
    {
        *wait = serde_json::from_slice(body).ok().as_ref().and_then(retry_delay);
    }
    error
}

/// An error that came inside a stream that had begun well.
pub(crate) fn reported_error(error: &Value) -> ModelError {
    let message_text = message(error).unwrap_or_else(|| error.to_string());
    let (reason, retry_after) = (shortened(&message_text), retry_delay(error));
    let words = ["code", "type", "status"].map(|key| error.get(key).map(loose::text).unwrap_or_default().to_lowercase());
    let status = words.iter().find_map(|word| StatusCode::from_bytes(word.as_bytes()).ok());
    if let Some(status) = status.filter(|status| status.as_u16() >= 400) {
        return match status::to_error(status, &HeaderMap::new(), reason) {
            ModelError::Throttled { reason, .. } => ModelError::Throttled { reason, retry_after },
            other => other,
        };
    }
    let has = |parts: &[&str]| words.iter().any(|word| parts.iter().any(|part| word.contains(part)));
    if has(&["rate_limit", "too_many", "throttl", "resource_exhausted"]) {
        ModelError::Throttled { reason, retry_after }
    } else if has(REJECTED) {
        ModelError::Rejected { reason }
    } else {
        ModelError::Failed { reason, retry_after }
    }
}

/// Parts of the words that vendors have for requests that they will never take.
const REJECTED: &[&str] = &[
    "invalid",
    "auth",
    "permission",
    "not_found",
    "context_length",
    "quota",
    "policy",
    "filter",
    "billing",
    "too_large",
    "failed_precondition",
    "unsupported",
];

/// What to say of an answer that no model gives.
pub(super) fn unreadable_answer(body: &[u8]) -> ModelError {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * MAX_REASON_CHARS)]);
    if text.trim_start().starts_with('<') {
        return ModelError::Rejected { reason: WEB_PAGE.to_owned() };
    }
    ModelError::Failed { reason: format!("the answer cannot be read: {}", shortened(text.trim())), retry_after: None }
}

/// Said when a web page comes back.
pub(super) const WEB_PAGE: &str = "a web page came back; is the base URL right?";

fn reason(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> String {
    if let Some(to) = headers.get(LOCATION).filter(|_| status.is_redirection()) {
        return format!("{status}: it moved to {}; set the base URL to that", String::from_utf8_lossy(to.as_bytes()));
    }
    let text = String::from_utf8_lossy(body);
    let message_text = match serde_json::from_str::<Value>(&text) {
        Ok(json) => message(&json).unwrap_or_else(|| json.to_string()),
        Err(_) => text.trim().to_owned(),
    };
    if message_text.is_empty() { status.to_string() } else { format!("{status}: {}", shortened(&message_text)) }
}

/// The words for people in the many shapes of an error.
fn message(error: &Value) -> Option<String> {
    match error {
        Value::String(text) => return Some(text.clone()),
        Value::Array(errors) => return message(errors.first()?),
        _ => {}
    }
    let inner = ["error", "message", "detail", "errors"].into_iter().find_map(|key| error.get(key))?;
    Some(message(inner).unwrap_or_else(|| inner.to_string()))
}

/// Google says in the body how long to wait: `"retryDelay": "17s"` among the details.
fn retry_delay(error: &Value) -> Option<Duration> {
    let error = error.get(0).unwrap_or(error);
    let error = error.get("error").unwrap_or(error);
    let message_text = error.get("details")?.as_array()?.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(message_text.strip_suffix('s')?.parse().ok()?).ok()
}

/// As much of a text as is worth passing on.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_REASON_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wait_is_found_among_the_details_of_an_error() {
        let error = json!({ "code": 429, "message": "slow", "details": [{ "@type": "x" }, { "retryDelay": "1.5s" }] });
        let wait = Some(Duration::from_millis(1500));
        assert_eq!(reported_error(&error).retry_after(), wait);
        for body in [json!({ "error": error }), json!([{ "error": error }])] {
            let refused = from_response(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), body.to_string().as_bytes());
            assert_eq!(refused.retry_after(), wait);
            assert!(refused.to_string().ends_with(": slow"), "{refused}");
        }
    }
}
