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
    let json = serde_json::from_slice(body).ok();
    let reason = reason(status, headers, body);
    let report = json.as_ref().map(|json: &Value| json.get(0).unwrap_or(json)).map(|json| json.get("error").unwrap_or(json));
    if status == StatusCode::PAYMENT_REQUIRED || report.is_some_and(|report| is_out_of_credit(report, &reason)) {
        return out_of_credit(&reason);
    }
    let mut error = status::to_error(status, headers, reason);
    if let ModelError::Throttled { retry_after: wait @ None, .. } | ModelError::Failed { retry_after: wait @ None, .. } =
        &mut error
    {
        *wait = json.as_ref().and_then(retry_delay);
    }
    error
}

/// An error that came inside a stream that had begun well.
pub(crate) fn reported_error(error: &Value) -> ModelError {
    let message_text = message(error).unwrap_or_else(|| error.to_string());
    let (reason, retry_after) = (shortened(&message_text), retry_delay(error));
    if is_out_of_credit(error, &reason) {
        return out_of_credit(&reason);
    }
    let words = words(error);
    let status = words.iter().find_map(|word| StatusCode::from_bytes(word.as_bytes()).ok());
    if let Some(status) = status.filter(|status| status.as_u16() >= 400) {
        return match status::to_error(status, &HeaderMap::new(), reason) {
            ModelError::Throttled { reason, .. } => ModelError::Throttled { reason, retry_after },
            other => other,
        };
    }
    let has = |parts: &[&str]| words.iter().any(|word| parts.iter().any(|part| word.contains(part)));
    let has_no_words = words.iter().all(String::is_empty);
    let says = |parts: &[&str]| has_no_words && parts.iter().any(|part| reason.to_lowercase().contains(part));
    if has(&["rate_limit", "too_many", "throttl", "resource_exhausted"]) || says(&["rate limit", "too many requests"]) {
        ModelError::Throttled { reason, retry_after }
    } else if has(REJECTED) || says(REJECTED_IN_PROSE) {
        ModelError::Rejected { reason }
    } else {
        ModelError::Failed { reason, retry_after }
    }
}

/// The error in an event that stands in place of a reply; none if the event may be part of one.
pub(super) fn in_place_of_reply(data: &str) -> Option<ModelError> {
    let json: Value = serde_json::from_str(data).ok()?;
    let is_reply = ["choices", "candidates", "type"].iter().any(|key| json.get(key).is_some_and(|value| !value.is_null()));
    let is_report = ["detail", "message", "msg", "error_msg", "errors"].iter().any(|key| match json.get(key) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(_)) => true,
        _ => false,
    });
    (!is_reply && is_report).then(|| reported_error(&json))
}

/// The error in MiniMax's `base_resp`, which comes with every reply and status 200.
pub(crate) fn in_base_resp(base: &Value) -> Option<ModelError> {
    let code = base.get("status_code")?.as_i64().filter(|code| *code != 0)?;
    let reason = shortened(&format!("{} ({code})", base.get("status_msg").map(loose::text).unwrap_or_default()));
    Some(match code {
        1002 | 1039 | 1041 => ModelError::Throttled { reason, retry_after: None },
        1000 | 1001 | 1013 | 1024 | 1033 => ModelError::Failed { reason, retry_after: None },
        1008 => out_of_credit(&reason),
        _ => ModelError::Rejected { reason },
    })
}

/// Whether a report says that nothing is left to pay with. Most vendors answer so with the status of a rate limit, and no retry
/// helps.
fn is_out_of_credit(report: &Value, reason: &str) -> bool {
    let codes = ["insufficient_quota", "insufficient_balance", "billing_hard_limit_reached", "1113"];
    let prose = ["余额不足", "欠费", "insufficient balance", "insufficient credit", "credit balance is too low"];
    let reason = reason.to_lowercase();
    words(report).iter().any(|word| codes.contains(&&**word)) || prose.iter().any(|part| reason.contains(part))
}

fn out_of_credit(reason: &str) -> ModelError {
    ModelError::Rejected { reason: format!("the account has no credit left: {reason}") }
}

/// The words for programs in a report.
fn words(error: &Value) -> [String; 3] {
    ["code", "type", "status"].map(|key| error.get(key).map(loose::text).unwrap_or_default().to_lowercase())
}

/// Parts of sentences about requests that a vendor will never take, where there is nothing but a sentence.
const REJECTED_IN_PROSE: &[&str] =
    &["invalid", "unauthor", "not auth", "authentication", "permission", "forbidden", "not found", "not support"];

/// Said when nothing comes back.
pub(super) const EMPTY_ANSWER: &str = "the answer is empty";

/// What to say of an answer in an encoding that was not asked for.
pub(super) fn unreadable_encoding(encoding: &str) -> ModelError {
    let reason = format!(
        "the answer is compressed with {}, which was not asked for and cannot be read; a proxy may have done it",
        shortened(encoding)
    );
    ModelError::Rejected { reason }
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
    let inner =
        ["error", "message", "Message", "detail", "errors", "msg", "error_msg"].into_iter().find_map(|key| error.get(key))?;
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
