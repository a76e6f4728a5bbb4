//! The errors of a society's public operations.

use polis_domain::{Failure, Refusal};
use polis_ports::LogError;

/// Why a command changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The command is not allowed in the present state. Trying again without a change gives the same refusal.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The log cannot be written or read now. Nothing was acknowledged; try again later.
    #[error("{}", .0.message)]
    Unavailable(Failure),
    /// Others decide this: these persons.
    #[error("this is decided by {0}; ask them")]
    NotApprover(String),
    /// The society is stopping or has stopped.
    #[error("the society is stopping and accepts nothing; try again after its restart")]
    Stopping,
}

impl CommandError {
    /// A stable code for programs.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Unavailable(failure) => &failure.code,
            Self::NotApprover(_) => "not_approver",
            Self::Stopping => "stopping",
        }
    }

    pub(crate) fn unavailable(error: &LogError) -> Self {
        Self::Unavailable(Failure::new(error.code(), error.to_string()))
    }
}

impl From<LogError> for CommandError {
    fn from(error: LogError) -> Self {
        Self::unavailable(&error)
    }
}

/// Why a society could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Its log cannot be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Its agents do not fit together.
    #[error(transparent)]
    Cast(#[from] CastError),
}

impl OpenError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Log(error) => error.code(),
            Self::Cast(_) => "bad_agent",
        }
    }
}

/// The registered agents do not fit together. The message lists every fault; no society opens with such a cast.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the agents cannot be used as they are: {}", .0.join("; "))]
pub struct CastError(pub(crate) Vec<String>);
