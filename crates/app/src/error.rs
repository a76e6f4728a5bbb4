//! Errors of commands, with a code for programs, a message for people, and the exit status.

use std::borrow::Cow;
use std::fmt;
use std::process::ExitCode;

use polis_api::ApiError;
use polis_client::ClientError;
use polis_engine::{ForkError, OpenError};
use polis_ports::LogError;

use crate::terminal_language::one_language;

/// How the program ends (interface: 0, 1, 2, 3, 4, 130).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    Usage,
    NeedsPerson,
    /// There is an answer, but not to all of it, or nobody could check it.
    Partly,
    Stopped,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NeedsPerson => 3,
            Self::Partly => 4,
            Self::Stopped => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command came to nothing.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) code: Cow<'static, str>,
    pub(crate) message: String,
    pub(crate) exit: Exit,
}

impl CliError {
    /// The work failed.
    pub(crate) fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), exit: Exit::Failed }
    }

    /// The command line, the environment or the configuration is wrong.
    pub(crate) fn usage(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, ..Self::new(code, message) }
    }

    /// The reader of our output has closed it: nobody reads a message.
    pub(crate) fn output_closed() -> Self {
        Self { exit: Exit::Done, ..Self::new("", "") }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message.trim_end(), self.code)
    }
}

impl From<ApiError> for CliError {
    fn from(error: ApiError) -> Self {
        // Errors of the command line, whatever their code.
        let is_typed = matches!(error.code(), "bad_url" | "bad_certificate" | "bad_society_name") && error.status() == 400;
        let exit = if is_typed { Exit::Usage } else { Exit::Failed };
        Self { exit, ..Self::new(error.code().to_owned(), one_language(error.detail())) }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<LogError> for CliError {
    fn from(error: LogError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<ForkError> for CliError {
    fn from(error: ForkError) -> Self {
        let exit = if matches!(error, ForkError::BadName(_)) { Exit::Usage } else { Exit::Failed };
        Self { exit, ..Self::new(error.code(), error.to_string()) }
    }
}

impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
