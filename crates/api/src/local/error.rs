//! How errors of the engine, the log and the artifacts appear to callers.

use polis_domain::{Failure, FailureCode, Refusal, TaskId};
use polis_engine::{CommandError, ForkError};
use polis_ports::{ArtifactError, LogError};

use crate::ApiError;

/// There is no request with this id, or none that the caller may see.
pub(super) fn unknown_task(task: &TaskId) -> ApiError {
    let detail = format!("there is no request `{task}`; GET /api/tasks or `polis tasks` lists those that are open");
    ApiError::new(404, "unknown_task", detail)
}

impl From<CommandError> for ApiError {
    fn from(rejected: CommandError) -> Self {
        let status = match &rejected {
            CommandError::Refused(refusal) => status_of(refusal),
            CommandError::NotApprover(_) => 403,
            CommandError::Unavailable(Failure { code: FailureCode::DiskFull | FailureCode::QuotaExceeded, .. }) => 507,
            CommandError::Unavailable(_) | CommandError::Stopping => 503,
            _ => 500,
        };
        Self::new(status, rejected.code().to_owned(), rejected.to_string())
    }
}

impl From<ForkError> for ApiError {
    fn from(error: ForkError) -> Self {
        let status = match &error {
            ForkError::BadName(_) => 400,
            ForkError::Unknown(_) => 404,
            ForkError::NoSuchPlace { .. } | ForkError::TooEarly { .. } | ForkError::Taken(_) => 409,
            ForkError::KeyReused => 422,
            ForkError::Log(_) => 503,
            _ => 500,
        };
        Self::new(status, error.code(), error.to_string())
    }
}

impl From<LogError> for ApiError {
    fn from(error: LogError) -> Self {
        CommandError::from(error).into()
    }
}

fn status_of(refusal: &Refusal) -> u16 {
    match refusal {
        Refusal::KeyReused => 422,
        Refusal::ToUser
        | Refusal::BadName(_)
        | Refusal::BadTitle(_)
        | Refusal::EmptyText
        | Refusal::BadOrg(_)
        | Refusal::BadAnswer(_) => 400,
        Refusal::UnknownAgent(_)
        | Refusal::UnknownConversation(_)
        | Refusal::UnknownRole(_)
        | Refusal::UnknownMemory(_)
        | Refusal::UnknownTask(_)
        | Refusal::UnknownThread(_)
        | Refusal::NoSuchMessage { .. } => 404,
        Refusal::TextTooLong { .. } => 413,
        Refusal::Busy(_) | Refusal::BudgetBusy => 429,
        Refusal::NotFounded => 503,
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
        | Refusal::ErasedAlready(_)
        | Refusal::ConversationBusy { .. }
        | Refusal::ConversationInUse(_)
        | Refusal::NoParent(_)
        | Refusal::TooManyAgents { .. }
        | Refusal::TooManyMemories { .. }
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
        | Refusal::SlotTaken { .. } => 409,
    }
}

impl From<ArtifactError> for ApiError {
    fn from(error: ArtifactError) -> Self {
        let status = match error {
            ArtifactError::TooLarge { .. } => 413,
            ArtifactError::NoRoom(_) | ArtifactError::Full => 507,
            ArtifactError::Unknown(_) | ArtifactError::None => 404,
            // Damaged or failed; also whatever the port may add.
            _ => 500,
        };
        Self::new(status, error.code(), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_log_cannot_do_is_told_apart() {
        let check = |error: LogError, want: (u16, &str)| {
            let error = ApiError::from(error);
            assert_eq!((error.status(), error.code()), want);
        };
        check(LogError::Full("no room".into()), (507, "disk_full"));
        check(LogError::Failed("broken".into()), (503, "log_failed"));
        check(LogError::Damaged("torn".to_owned()), (503, "data_damaged"));
        assert_eq!(ApiError::from(CommandError::Stopping).status(), 503);
    }
}
