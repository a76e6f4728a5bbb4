//! How arguments come in and results go out, the same for every tool.

use polis_domain::CallResult;
use polis_ports::ToolError;
use serde::de::DeserializeOwned;

/// Longest text of a parser that is passed on to the model, in characters.
const MAX_COMPLAINT_CHARS: usize = 300;

/// Longest result, in bytes; about as much as a model can use at once.
pub(crate) const MAX_RESULT_BYTES: usize = 48 << 10;

/// Reads the arguments as the model wrote them. What cannot be read is never guessed (D22).
pub(crate) fn arguments<T: DeserializeOwned>(text: &str) -> Result<T, ToolError> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    serde_json::from_str(text).map_err(|error| {
        let complaint: String = error.to_string().chars().take(MAX_COMPLAINT_CHARS).collect();
        ToolError::BadArguments(complaint)
    })
}

/// A good result.
pub(crate) fn good(content: String) -> CallResult {
    CallResult { content: content.into(), is_error: false }
}

/// A failure that the model reads; the first word tells it even where the flag is lost on the way.
pub(crate) fn failed(reason: impl std::fmt::Display) -> CallResult {
    CallResult { content: format!("error: {reason}").into(), is_error: true }
}

/// A name as it can stand on a line of a result.
pub(crate) fn on_one_line(name: &str) -> std::borrow::Cow<'_, str> {
    if name.contains(char::is_control) { name.escape_debug().to_string().into() } else { name.into() }
}
