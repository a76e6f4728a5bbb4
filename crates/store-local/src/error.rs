//! Maps errors of SQLite and of the file system to [`LogError`].

use std::io;

use polis_ports::LogError;
use rusqlite::{ErrorCode, ffi};

/// Maps an error of SQLite by what the caller can do about it.
pub(crate) fn from_sqlite(error: rusqlite::Error) -> LogError {
    let full = match &error {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => return LogError::Damaged(error.to_string()),
            ErrorCode::DiskFull => true,
            // The index of the WAL is a file of its own, and growing it is the first thing to fail on a full disk.
            _ => failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE,
        },
        // Our statements only read columns that we wrote: a wrong type or range can only come from damage.
        rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..) => return LogError::Damaged(error.to_string()),
        _ => false,
    };
    if full { LogError::Full(error.into()) } else { LogError::Failed(error.into()) }
}

/// Maps an error of the file system.
pub(crate) fn from_io(error: io::Error) -> LogError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LogError::Full(error.into()),
        _ => LogError::Failed(error.into()),
    }
}
