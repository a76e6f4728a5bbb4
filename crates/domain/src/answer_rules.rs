//! What the client of a request prescribes for its answer: a call of one of its own tools, or a text of a given format.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::misfits;

/// What the client of a request prescribes for its answer. Without rules the agent answers as it likes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct AnswerRules {
    /// Whether the answer must be a call of one of the client's tools.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub must_call: bool,
    /// The client's tools that may be called; all of them if this is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Arc<str>>>,
    /// Whether the client takes one call at a time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub one_call: bool,
    /// The format of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Arc<Format>>,
    /// Whether no answer is wanted, because the client has gone on to another message.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_answer: bool,
}

impl AnswerRules {
    /// Whether an answer can break them.
    pub fn are_binding(&self) -> bool {
        self.must_call || self.format.is_some()
    }

    /// Whether this tool of the client may be called.
    pub fn allow(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| **name == *tool))
    }
}

/// The schema of a structured reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Format {
    /// A name for the schema: letters, digits, `_` and `-`.
    pub name: String,
    /// JSON schema of the text.
    pub schema: Value,
}

impl Format {
    /// The JSON in a text that has this format, without the fence that many models put around it; otherwise what is wrong.
    pub fn read<'a>(&self, text: &'a str) -> Result<&'a str, String> {
        let text = text.trim();
        let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
        let json = inner.map_or(text, |inner| inner.strip_prefix("json").unwrap_or(inner).trim());
        let value: Value = serde_json::from_str(json).map_err(|error| format!("it is not JSON alone: {error}"))?;
        match misfits(&self.schema, &value) {
            faults if faults.is_empty() => Ok(json),
            faults => Err(faults.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_has_a_format_if_it_is_json_that_fits_be_it_fenced() {
        let format = Format { name: "n".to_owned(), schema: json!({ "type": "object", "required": ["n"] }) };
        assert_eq!(format.read(" {\"n\": 1}\n"), Ok("{\"n\": 1}"));
        assert_eq!(format.read("```json\n{\"n\":1}\n```"), Ok("{\"n\":1}"));
        assert_eq!(format.read("{}"), Err("n: is missing".to_owned()));
        for prose in ["", "one", "Here it is: {\"n\":1}", "{\"n\":1} {\"n\":2}"] {
            assert!(format.read(prose).unwrap_err().starts_with("it is not JSON alone"), "{prose}");
        }
    }

    #[test]
    fn tools_that_are_not_named_are_not_allowed() {
        let rules = |tools| AnswerRules { tools, ..AnswerRules::default() };
        assert!(rules(None).allow("a"));
        assert!(rules(Some(vec!["a".into()])).allow("a") && !rules(Some(vec!["a".into()])).allow("b"));
        assert!(!rules(Some(Vec::new())).allow("a"));
    }
}
