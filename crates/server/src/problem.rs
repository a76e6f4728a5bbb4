//! How a failed request is answered: `application/problem+json` with a stable `code`. Every error of this crate ends here.

use std::borrow::Cow;
use std::ops::Deref;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use polis_api::{ApiError, ProblemDetails};
use serde_json::json;

/// The `Retry-After` of a temporary error, in seconds.
const RETRY_AFTER_S: &str = "1";

/// An error of an operation as HTTP has it.
#[derive(Debug)]
pub(crate) struct Problem(ApiError);

impl Problem {
    pub(crate) fn new(status: StatusCode, code: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self(ApiError::new(status.as_u16(), code, detail))
    }

    pub(crate) fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self(ApiError::bad_request(code, detail))
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The body of the answer.
    pub(crate) fn details(&self) -> ProblemDetails {
        ProblemDetails {
            r#type: format!("urn:polis:problem:{}", self.code()),
            title: self.status().canonical_reason().unwrap_or("Error").to_owned(),
            status: self.0.status(),
            detail: self.detail().to_owned(),
            code: self.code().to_owned(),
        }
    }

    /// The same as text.
    pub(crate) fn to_json(&self) -> String {
        json!(self.details()).to_string()
    }
}

impl Deref for Problem {
    type Target = ApiError;

    fn deref(&self) -> &ApiError {
        &self.0
    }
}

impl<E: Into<ApiError>> From<E> for Problem {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status(), self.to_json()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self.status() {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"polis\""));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use polis_engine::CommandError;

    use super::*;

    #[test]
    fn who_is_to_come_back_is_told_when() {
        let stopping = Problem::from(CommandError::Stopping).into_response();
        assert_eq!((stopping.status().as_u16(), stopping.headers().contains_key(RETRY_AFTER)), (503, true));
    }
}
