//! Errors in OpenAI's shape, with our codes.

use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use polis_engine::CommandError;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::body::Json;
use crate::problem::Problem;
use crate::state::SocietyState;

/// Longest problem that is put into the other shape.
const MAX_PROBLEM_BYTES: usize = 64 << 10;

/// What went wrong, as clients of OpenAI read it.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: String,
    message: String,
    param: Option<String>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status, code: code.into(), message: message.into(), param: None }
    }

    /// Something in the request that cannot be used.
    pub(crate) fn invalid(code: &str, param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..Self::new(StatusCode::BAD_REQUEST, code, message) }
    }

    /// What the work came to that failed.
    pub(crate) fn failed(code: &str, message: &str) -> Self {
        let status = match code {
            "cancelled" => StatusCode::CONFLICT,
            "model_throttled" | "rate_limited" => StatusCode::TOO_MANY_REQUESTS,
            "stopping" => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, code, message)
    }

    pub(crate) fn to_json(&self) -> Value {
        let kind = match self.status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            400..=499 => "invalid_request_error",
            _ => "server_error",
        };
        json!({ "error": { "message": self.message, "type": kind, "param": self.param, "code": self.code } })
    }

    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self::new(problem.status(), problem.code(), problem.detail())
    }
}

impl From<polis_api::ApiError> for ApiError {
    fn from(error: polis_api::ApiError) -> Self {
        Problem::from(error).into()
    }
}

impl From<CommandError> for ApiError {
    fn from(rejected: CommandError) -> Self {
        Problem::from(rejected).into()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(self.to_json())).into_response();
        // Clients ask again by themselves; work that has failed would only fail again.
        if self.status == StatusCode::INTERNAL_SERVER_ERROR {
            response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// A body of JSON, whose errors have OpenAI's shape.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned + 'static> FromRequest<SocietyState> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &SocietyState) -> Result<Self, ApiError> {
        let Json(value) = Json::<T>::from_request(request, state).await?;
        Ok(Self(value))
    }
}

/// Gives problems that come from in front of these routes, such as a missing token, what OpenAI's clients read beside what ours
/// do.
pub(crate) async fn shaped(request: Request, next: Next) -> Response {
    let is_ours = request.uri().path().starts_with("/v1/");
    let response = next.run(request).await;
    let is_problem = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/problem+json");
    if !is_ours || !is_problem {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let problem = to_bytes(body, MAX_PROBLEM_BYTES).await.unwrap_or_default();
    let mut problem: Map<String, Value> = serde_json::from_slice(&problem).unwrap_or_default();
    let text = |name: &str| problem.get(name).and_then(Value::as_str).unwrap_or_default();
    if let Value::Object(error) = ApiError::new(parts.status, text("code"), text("detail")).to_json() {
        problem.extend(error);
    }
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, axum::body::Body::from(Value::Object(problem).to_string()))
}
