//! Why an operation failed. Every protocol maps this one type to an error of its own.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why an operation failed: a stable code for programs, a sentence for people, and the HTTP status that says whose fault it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail} ({code})")]
pub struct ApiError {
    status: u16,
    code: Cow<'static, str>,
    detail: String,
}

impl ApiError {
    /// An error of this HTTP status.
    pub fn new(status: u16, code: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self { status, code: code.into(), detail: detail.into() }
    }

    /// An error in what was asked (400).
    pub fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(400, code, detail)
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The stable code; docs/errors has a section for each.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// What went wrong and what to do.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Whether the body was not valid JSON.
    pub fn is_bad_json(&self) -> bool {
        matches!(&*self.code, "bad_json" | "invalid_utf8")
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self.status, 429 | 503 | 507)
    }
}

/// How a failed request is answered: `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemDetails {
    /// `urn:polis:problem:` and the code.
    pub r#type: String,
    /// The name of the HTTP status.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What went wrong and what to do, for people.
    pub detail: String,
    /// What went wrong, for programs; it never changes.
    pub code: String,
}

impl From<ProblemDetails> for ApiError {
    fn from(problem: ProblemDetails) -> Self {
        Self::new(problem.status, problem.code, problem.detail)
    }
}
