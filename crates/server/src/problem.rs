//! How a failed request is answered: `application/problem+json` with a stable `code`. Every error of this crate ends here.

use std::borrow::Cow;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use polis_domain::Refusal;
use polis_engine::{CommandError, ForkError};
use polis_ports::LogError;
use serde_json::{Value, json};

/// How long whoever is told to come back should wait.
const RETRY_AFTER_S: &str = "1";

/// What went wrong, for programs and for people.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: Cow<'static, str>,
    detail: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self { status, code: code.into(), detail: detail.into() }
    }

    pub(crate) fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// Its stable name.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// What went wrong and what to do.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Whether a body is to blame that is no JSON.
    pub(crate) fn is_bad_json(&self) -> bool {
        matches!(&*self.code, "bad_json" | "invalid_utf8")
    }

    /// Whether the same may go well later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(
            self.status,
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS | StatusCode::INSUFFICIENT_STORAGE
        )
    }

    /// The body of the answer.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "type": format!("urn:polis:problem:{}", self.code),
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "code": self.code,
        })
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.to_json().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self.status {
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

impl From<CommandError> for Problem {
    fn from(rejected: CommandError) -> Self {
        let status = match &rejected {
            CommandError::Refused(refusal) => status_of(refusal),
            CommandError::Unavailable(failure) if &*failure.code == "disk_full" => StatusCode::INSUFFICIENT_STORAGE,
            CommandError::Unavailable(_) | CommandError::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, rejected.code().to_owned(), rejected.to_string())
    }
}

impl From<ForkError> for Problem {
    fn from(error: ForkError) -> Self {
        let status = match &error {
            ForkError::BadName(_) => StatusCode::BAD_REQUEST,
            ForkError::Unknown(_) => StatusCode::NOT_FOUND,
            ForkError::NoSuchPlace { .. } | ForkError::TooEarly { .. } | ForkError::Taken(_) => StatusCode::CONFLICT,
            ForkError::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            ForkError::Log(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.code(), error.to_string())
    }
}

impl From<LogError> for Problem {
    fn from(error: LogError) -> Self {
        CommandError::from(error).into()
    }
}

fn status_of(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        Refusal::ToUser
        | Refusal::BadName(_)
        | Refusal::BadTitle(_)
        | Refusal::EmptyText
        | Refusal::BadOrg(_)
        | Refusal::BadAnswer(_) => StatusCode::BAD_REQUEST,
        Refusal::UnknownAgent(_)
        | Refusal::UnknownRole(_)
        | Refusal::UnknownTask(_)
        | Refusal::UnknownThread(_)
        | Refusal::NoSuchMessage { .. } => StatusCode::NOT_FOUND,
        Refusal::TextTooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::Busy(_) | Refusal::BudgetBusy => StatusCode::TOO_MANY_REQUESTS,
        Refusal::NotFounded => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::AlreadyFounded
        | Refusal::DoneBefore(_)
        | Refusal::ForeignTask(_)
        | Refusal::FalseSender(_)
        | Refusal::NotASubThread(_)
        | Refusal::NameTaken(_)
        | Refusal::SameRole(_)
        | Refusal::TooManyHops { .. }
        | Refusal::MessageLoop { .. }
        | Refusal::TooManyTurns { .. }
        | Refusal::Terminating(_)
        | Refusal::NotYourChild(_)
        | Refusal::HasChildren(_)
        | Refusal::RootStays
        | Refusal::TooManyAgents { .. }
        | Refusal::NoRoomAbove { .. }
        | Refusal::TurnNotOpen(_)
        | Refusal::NotParked(_)
        | Refusal::NotOpen(_)
        | Refusal::NotWaiting(_)
        | Refusal::NotAsked(_)
        | Refusal::Denied { .. }
        | Refusal::UsedUp(_)
        | Refusal::OutOfOrder { .. }
        | Refusal::TooManyEffects { .. }
        | Refusal::NotYours
        | Refusal::CallTooLarge { .. }
        | Refusal::WouldDeadlock(_)
        | Refusal::NotYourThread(_)
        | Refusal::NothingToCompress(_)
        | Refusal::NothingToRestore(_)
        | Refusal::ThreadBusy(_)
        | Refusal::SlotTaken { .. } => StatusCode::CONFLICT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_log_cannot_do_is_told_apart() {
        let check = |error: LogError, want: (u16, &str)| {
            let problem = Problem::from(error);
            assert_eq!((problem.status.as_u16(), &*problem.code), want);
        };
        check(LogError::Full("no room".into()), (507, "disk_full"));
        check(LogError::Failed("broken".into()), (503, "log_failed"));
        check(LogError::Damaged("torn".to_owned()), (503, "data_damaged"));
        let stopping = Problem::from(CommandError::Stopping).into_response();
        assert_eq!((stopping.status().as_u16(), stopping.headers().contains_key(RETRY_AFTER)), (503, true));
    }
}
