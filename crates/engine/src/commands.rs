//! What the actor has to know of a command or an event: whose it is, whether it may be repeated, and which waits it ends.

use std::sync::Arc;

use polis_domain::{Command, Effect, EffectClass, Event, Failure, OpenKind, Recorded, Refusal, Spine, TurnId};

use crate::plant::{Plant, is_planted};

/// Whether these are only intents that may be lost with a crash: the turn then declares the same again, and nothing has happened
/// that must not happen twice. They are those of calls that only read, and of model calls. A turn makes such calls before their
/// intents are in the log.
///
/// A call whose result comes from an earlier effect is not among them: the turn reads that result from the log.
pub(crate) fn are_repeatable_intents(recorded: &[Arc<Recorded>]) -> bool {
    recorded.iter().all(|recorded| match &recorded.event {
        Event::EffectStarted { effect: Effect::Model { .. }, .. } | Event::ToolPinned { .. } => true,
        Event::EffectStarted { effect: Effect::Tool(call), .. } => is_read(call.class) && call.from.is_none(),
        _ => false,
    })
}

/// Whether a command ends an effect that may be repeated, so that its result may be lost with a crash.
pub(crate) fn ends_repeatable(spine: &Spine, command: &Command) -> bool {
    let Command::End { id, .. } = command else { return false };
    spine.open_effect(*id).is_some_and(|open| match open.kind {
        OpenKind::Model(_) => true,
        OpenKind::Tool(class) => is_read(class),
        _ => false,
    })
}

fn is_read(class: EffectClass) -> bool {
    class == EffectClass::Read || is_planted(Plant::RepeatWrites)
}

/// Why a turn is parked whose command was refused, and what a person can do.
pub(crate) fn command_refused(refusal: &Refusal) -> Failure {
    let message = format!(
        "a command of the turn was refused: {refusal}. Resume the turn: it runs again from its journal. If it is parked again, \
         cancel it and correct its code: an effect that the turn has asked for must be awaited to its end, not dropped by a \
         timeout or `select!`"
    );
    Failure::new("command_refused", message)
}

/// Whether a call that was deferred may be made after an event: budget is free, or an identical read has ended.
pub(crate) fn ends_wait(event: &Event) -> bool {
    matches!(
        event,
        Event::EffectEnded { .. }
            | Event::CallAnswered { .. }
            | Event::TurnSettled { .. }
            | Event::TurnParked { .. }
            | Event::BudgetGranted { .. }
            | Event::BudgetsSet { .. }
    )
}

/// The turn that issued a command; none for commands from outside.
pub(crate) fn turn_of(command: &Command) -> Option<TurnId> {
    match command {
        Command::DeclareEffects { turn, .. }
        | Command::Settle { turn, .. }
        | Command::Crash { turn, .. }
        | Command::Park { turn, .. } => Some(*turn),
        Command::Answer { id, answer, .. } => (!answer.is_persons()).then_some(id.call.turn),
        Command::Retry { id, .. }
        | Command::Inquire { id, .. }
        | Command::End { id, .. }
        | Command::Act { id, .. }
        | Command::Doubt { id }
        | Command::Restart { id } => Some(id.turn),
        Command::Once { command, .. } | Command::By { command, .. } => turn_of(command),
        Command::Found { .. }
        | Command::Revive
        | Command::Rest { .. }
        | Command::Fork { .. }
        | Command::SetVersions { .. }
        | Command::SetBudgets { .. }
        | Command::CreateRole { .. }
        | Command::Spawn { .. }
        | Command::Terminate { .. }
        | Command::Import { .. }
        | Command::RestoreContext { .. }
        | Command::StartConversation { .. }
        | Command::ChangeConversation { .. }
        | Command::EraseConversation { .. }
        | Command::ConfirmErased { .. }
        | Command::ChangeMemories { .. }
        | Command::Send { .. }
        | Command::Resolve { .. }
        | Command::Expire { .. }
        | Command::Resume { .. }
        | Command::ChangeRole { .. }
        | Command::Cancel { .. } => None,
    }
}
