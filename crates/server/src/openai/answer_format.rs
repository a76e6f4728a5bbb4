//! The format that a client prescribes for the text of an answer, and the check of an answer against all that it prescribes.

use axum::http::StatusCode;
use polis_domain::{AnswerRules, Format};
use serde_json::{Value, json};

use super::error::ApiError;

/// Longest name of a format that vendors take.
const MAX_NAME: usize = 64;

/// The format in `response_format` of a chat completion or `text.format` of a response; none for plain text.
pub(super) fn read_format(format: &Value, param: &str) -> Result<Option<Format>, ApiError> {
    let invalid = |message: String| ApiError::invalid("unsupported_value", param, message);
    match format.get("type").and_then(Value::as_str) {
        None if format.is_null() => Ok(None),
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(Format { name: "object".to_owned(), schema: json!({ "type": "object" }) })),
        Some("json_schema") => {
            let nested = format.get("json_schema").unwrap_or(format);
            let schema = nested.get("schema").cloned().unwrap_or_else(|| json!({}));
            if !schema.is_object() {
                return Err(invalid("the schema is not an object".to_owned()));
            }
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            let name = nested.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).unwrap_or("answer");
            let name = name.chars().take(MAX_NAME).map(|c| if is_plain(c) { c } else { '_' }).collect();
            Ok(Some(Format { name, schema }))
        }
        kind => {
            let message = format!("unknown format `{}`; use text, json_object or json_schema", kind.unwrap_or_default());
            Err(invalid(message))
        }
    }
}

/// The text of an answer that is not a call, if it keeps the rules. Agents keep them themselves; this is for those that know
/// nothing of rules.
pub(super) fn checked_text(rules: &AnswerRules, text: &str) -> Result<String, ApiError> {
    if rules.must_call {
        let message = "the answer must be a call of the client's tools, and the agent answered with text";
        return Err(ApiError::failed("tool_choice_not_kept", message));
    }
    match &rules.format {
        Some(format) => format.read(text).map(str::to_owned).map_err(|wrong| {
            let message = format!("the answer does not have the prescribed format: {wrong}");
            ApiError::failed("format_not_kept", &message)
        }),
        None => Ok(text.to_owned()),
    }
}

/// An approval that is pending cannot be told in a prescribed form.
pub(super) fn needs_person(notice: &str) -> ApiError {
    let message = format!("the answer waits for a person, and what waits does not have the prescribed form. {notice}");
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "needs_person", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_both_endpoints_are_read() {
        let read = |format: Value| {
            let format = read_format(&format, "response_format").map_err(|error| error.message().to_owned())?;
            Ok::<_, String>(format.map(|format| (format.name, format.schema)))
        };
        let schema = json!({ "type": "array" });
        let named = || Ok(Some(("a_b".to_owned(), schema.clone())));
        assert_eq!(read(Value::Null), Ok(None));
        assert_eq!(read(json!({ "type": "text" })), Ok(None));
        assert_eq!(read(json!({ "type": "json_object" })), Ok(Some(("object".to_owned(), json!({ "type": "object" })))));
        let nested = json!({ "type": "json_schema", "json_schema": { "name": "a b", "schema": schema, "strict": true } });
        assert_eq!(read(nested), named());
        assert_eq!(read(json!({ "type": "json_schema", "name": "a_b", "schema": schema })), named());
        assert!(read(json!({ "type": "json_schema", "json_schema": { "schema": 7 } })).unwrap_err().contains("schema"));
        assert!(read(json!({ "type": "audio" })).unwrap_err().contains("`audio`"));
        assert!(read(json!("json")).is_err());
    }
}
