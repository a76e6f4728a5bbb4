//! Maps errors of the database to [`LogError`].

use polis_ports::LogError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::options::with_cause;

/// Maps an error by what the caller can do about it.
pub(crate) fn from_postgres(error: Error) -> LogError {
    // Without its cause, the text of an error only says of which kind it is.
    let text = error
        .as_db_error()
        .map_or_else(|| with_cause(&error), |error| format!("{} ({})", error.message(), error.code().code()));
    match error.code() {
        Some(code) if *code == SqlState::DISK_FULL => LogError::Full(text.into()),
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            LogError::Failed(format!("{text}; the user must own the schema, or have the right to create it").into())
        }
        Some(code) if *code == SqlState::DATA_CORRUPTED || *code == SqlState::INDEX_CORRUPTED => LogError::Damaged(text),
        _ => LogError::Failed(text.into()),
    }
}

/// Why no connection could be made to a host, and what to do.
pub(crate) fn no_connection(host: &str, error: &Error) -> LogError {
    let text =
        error.as_db_error().map_or_else(|| with_cause(error), |error| format!("{} ({})", error.message(), error.code().code()));
    let advice = match error.code() {
        Some(code) if *code == SqlState::INVALID_PASSWORD || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "; check user and password, and pg_hba.conf of the server"
        }
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => "; create the database, or correct its name in the address",
        Some(_) => "",
        None if text.contains("password") => "; the server asks for a password, and none is set",
        None => "; check that the server runs and that this machine reaches it",
    };
    LogError::Failed(format!("PostgreSQL at {host}: {text}{advice}").into())
}

/// A column that does not have what was written.
pub(crate) fn from_column(error: Error) -> LogError {
    LogError::Damaged(with_cause(&error))
}

/// Whether a transaction was rolled back only because of others: what is tried again may work.
pub(crate) fn is_rolled_back(error: &Error) -> bool {
    let codes = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
    error.code().is_some_and(|code| codes.contains(code))
}

/// The error after the log was closed.
pub(crate) fn stopped() -> LogError {
    LogError::Failed("the log is closed".into())
}
