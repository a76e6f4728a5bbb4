//! Deciding commands: each gives events, or a refusal and no change.
//!
//! One file per kind of command. A [`Draft`] collects the events of one command; they are appended together or not at all. Files
//! call only what is below them: act, crash, inquiry → effect, turn, conversation → terminate → cancel, report → pending, message,
//! budget, memory, org → draft.

mod act;
mod budget;
mod cancel;
mod conversation;
mod crash;
mod draft;
mod effect;
mod inquiry;
mod memory;
mod message;
mod org;
mod overlay;
mod pending;
mod report;
mod terminate;
mod turn;

use std::sync::Arc;

use draft::Draft;

use crate::spine::Spine;
use crate::{Command, Event, Recorded, Refusal, Timestamp};

/// Decides one command at one time. Pure: the same arguments give the same events.
pub fn decide(spine: &Spine, command: Command, at: Timestamp) -> Result<Vec<Arc<Recorded>>, Refusal> {
    let mut draft = Draft::new(spine, at);
    let (request, command) = match command {
        Command::Once { request, command } => (Some(request), *command),
        command => (None, command),
    };
    let command = match command {
        Command::By { person, command } => {
            draft.person = Some(person);
            *command
        }
        command => command,
    };
    if let Some(done) = request.and_then(|request| spine.requests.get(request.key)) {
        let is_same = request.is_some_and(|request| request.fingerprint == done.request.fingerprint);
        return Err(if is_same { Refusal::DoneBefore(*done) } else { Refusal::KeyReused });
    }
    match (spine.is_founded(), command) {
        (false, Command::Found { seed, limits, role }) => org::found(&mut draft, seed, limits, role)?,
        (true, Command::Found { .. }) => return Err(Refusal::AlreadyFounded),
        (false, _) => return Err(Refusal::NotFounded),
        // Who sends a command wraps it once.
        (true, Command::Once { .. } | Command::By { .. }) => return Err(Refusal::KeyReused),
        (true, Command::Fork { from, seed, request }) => draft.push(None, Event::SocietyForked { from, seed, request }),
        (true, Command::CreateRole { role }) => org::create_role(&mut draft, role, None)?,
        (true, Command::ChangeRole { role }) => org::change_role(&mut draft, role)?,
        (true, Command::Spawn { agent, role, parent }) => org::spawn(&mut draft, agent, role, parent, None)?,
        (true, Command::Terminate { agent, children, reason, now }) => {
            terminate::terminate(&mut draft, agent, children, reason, now)?
        }
        (true, Command::RestoreContext { thread }) => {
            draft.spine.threads.get(&thread).ok_or_else(|| Refusal::UnknownThread(thread.clone()))?;
            act::restore(&mut draft, &thread, None)?;
        }
        (true, Command::Import { org, root }) => org::import(&mut draft, &org, root)?,
        (true, Command::StartConversation { conversation, envelope }) => {
            conversation::start(&mut draft, *conversation, envelope)?;
        }
        (true, Command::ChangeConversation { agent, change }) => conversation::change(&mut draft, agent, change)?,
        (true, Command::EraseConversation { agent, artifacts, unused_since }) => {
            conversation::erase(&mut draft, agent, artifacts, unused_since)?;
        }
        (true, Command::ConfirmErased { agent, artifacts }) => conversation::confirm_erased(&mut draft, agent, artifacts),
        (true, Command::ChangeMemories { change }) => memory::change(&mut draft, change)?,
        (true, Command::Send { envelope }) => message::send(&mut draft, envelope)?,
        (true, Command::DeclareEffects { turn, n, effects }) => effect::declare(&mut draft, turn, n, effects)?,
        (true, Command::SetVersions { versions }) => draft.push(None, Event::VersionsSet { versions }),
        (true, Command::SetBudgets { budgets }) => budget::set(&mut draft, budgets),
        (true, Command::Retry { id, attempt, spent }) => effect::retry(&mut draft, id, attempt, spent)?,
        (true, Command::End { id, outcome, spent, at }) => {
            draft.at = at;
            effect::end(&mut draft, id, outcome, spent)?;
        }
        (true, Command::Inquire { id, by, inquiry }) => inquiry::inquire(&mut draft, id, by, inquiry)?,
        (true, Command::Answer { id, answer, spent }) => inquiry::answer(&mut draft, id, answer, spent)?,
        (true, Command::Act { id, acts, at }) => {
            draft.at = at.unwrap_or(draft.at);
            act::act(&mut draft, id, acts)?;
        }
        (true, Command::Doubt { id }) => effect::doubt(&mut draft, id)?,
        (true, Command::Restart { id }) => effect::restart(&mut draft, id)?,
        (true, Command::Resolve { id, resolution }) => effect::resolve(&mut draft, id, resolution)?,
        (true, Command::Expire { id }) => effect::expire(&mut draft, id)?,
        (true, Command::Settle { turn, result }) => turn::settle(&mut draft, turn, result)?,
        (true, Command::Revive) => crash::revive(&mut draft)?,
        (true, Command::Rest { turn }) => turn::rest(&mut draft, turn)?,
        (true, Command::Crash { turn, failure }) => crash::crash(&mut draft, turn, failure)?,
        (true, Command::Park { turn, reason }) => turn::park(&mut draft, turn, reason)?,
        (true, Command::Resume { turn }) => turn::resume(&mut draft, turn)?,
        (true, Command::Cancel { target, reason, said }) => cancel::cancel(&mut draft, target, reason, said)?,
    }
    if let Some(request) = request {
        let events = u32::try_from(draft.len()).unwrap_or(u32::MAX);
        draft.push(None, Event::RequestDone { request, events });
    }
    Ok(draft.into_events())
}

/// Checks a name given by a person or a model. Names appear in URLs, so they must be plain.
fn check_name(name: &str) -> Result<(), Refusal> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.chars().count() > 128 || !name.chars().all(plain) {
        return Err(Refusal::BadName(name.chars().take(128).collect()));
    }
    Ok(())
}

/// Checks a name for display: one line, without control characters and without characters that change the direction of text.
fn check_title(name: &str) -> Result<(), Refusal> {
    let harmful =
        |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if name.trim().is_empty() || name.chars().count() > 128 || name.contains(harmful) {
        return Err(Refusal::BadTitle(name.chars().filter(|c| !harmful(*c)).take(128).collect()));
    }
    Ok(())
}
