//! Changes that a turn makes without a wait: messages, settings, phases, sub-threads, roles, agents.

use std::sync::Arc;

use super::draft::Draft;
use super::{memory, message, org};
use crate::spine::{Compressions, Turn};
use crate::{Act, EffectId, Envelope, Event, Refusal, Settings, ThreadId};

/// Makes all of the changes or none. A refusal is logged as an event, so that a second run of the turn gets the same refusal.
pub(super) fn act(draft: &mut Draft<'_>, id: EffectId, acts: Vec<Act>) -> Result<(), Refusal> {
    let turn = draft.turn(id.turn)?;
    if id.n != turn.next {
        return Err(Refusal::OutOfOrder { got: id, expected: turn.next });
    }
    let done = acts.into_iter().try_for_each(|act| one(draft, turn, id, act));
    match done {
        Ok(()) => mark(draft, turn, id),
        Err(refusal) => {
            *draft = Draft::new(draft.spine, draft.at);
            draft.push(Some(&turn.thread), Event::EffectRefused { id, failure: refusal.clone().into() });
            message::report_loop(draft, turn, &refusal);
        }
    }
    Ok(())
}

/// Makes sure that the last event of the effect is recorded under the turn's own thread, where the journal is read from.
fn mark(draft: &mut Draft<'_>, turn: &Turn, id: EffectId) {
    if draft.last_thread_of(id) != Some(&turn.thread) {
        draft.push(Some(&turn.thread), Event::Acted { id });
    }
}

fn one(draft: &mut Draft<'_>, turn: &Turn, by: EffectId, act: Act) -> Result<(), Refusal> {
    match act {
        Act::AddMessage { thread, message } => {
            check_thread(draft, turn, &thread)?;
            message::check_text(draft, &message.text)?;
            let index = draft.length(&thread);
            draft.push(Some(&thread), Event::MessageAdded { by, index, message });
        }
        Act::UpdateMessage { thread, index, patch } => {
            check_message(draft, turn, &thread, index)?;
            message::check_text(draft, patch.text.as_deref().unwrap_or_default())?;
            draft.push(Some(&thread), Event::MessageUpdated { by, index, patch });
        }
        Act::UpdateSettings { thread, settings } => {
            check_thread(draft, turn, &thread)?;
            draft.push(Some(&thread), Event::SettingsUpdated { by, settings });
        }
        Act::SetPlan { thread, plan } => {
            check_thread(draft, turn, &thread)?;
            message::check_text(draft, &plan.to_string())?;
            draft.push(Some(&thread), Event::PlanSet { by, plan });
        }
        Act::SuggestPhase { thread, phase } => {
            check_thread(draft, turn, &thread)?;
            draft.push(Some(&thread), Event::PhaseSuggested { by, phase });
        }
        Act::CompressContext { thread, from, summaries } => {
            check_thread(draft, turn, &thread)?;
            summaries.iter().try_for_each(|summary| message::check_text(draft, summary))?;
            let shown = context(draft, &thread).and_then(|context| context.cuts.last()).map_or(0, |(_, from)| *from);
            if from <= shown || from > draft.length(&thread) || draft.has_new_context(&thread) {
                return Err(Refusal::NothingToCompress(thread));
            }
            draft.push(Some(&thread), Event::ContextCompressed { by, from, summaries });
        }
        Act::RestoreContext { thread } => {
            check_thread(draft, turn, &thread)?;
            restore(draft, &thread, Some(by))?;
        }
        Act::KeepContext { thread, failure } => {
            check_thread(draft, turn, &thread)?;
            draft.push(Some(&thread), Event::ContextKept { by, failure });
        }
        Act::OpenSubThread { parent, index, slot, child, settings, meta, held } => {
            let index = index.unwrap_or_else(|| draft.length(&parent).saturating_sub(1));
            check_message(draft, turn, &parent, index)?;
            if draft.is_linked(&parent, index, &slot) {
                return Err(Refusal::SlotTaken { thread: parent, index });
            }
            if draft.is_named(child.as_str()) {
                return Err(Refusal::NameTaken(child.to_string()));
            }
            let agent = turn.agent.clone();
            let opened = Event::ThreadOpened { by, agent, parent: parent.clone(), settings: first(settings), meta };
            draft.push(Some(&child), opened);
            draft.push(Some(&parent), Event::ThreadLinked { by, index, slot, child, held });
        }
        Act::TakeMessages => {
            let envelopes = message::untaken_messages(draft, turn);
            draft.push(Some(&turn.thread), Event::MessagesTaken { by, agent: turn.agent.clone(), envelopes });
        }
        Act::Send { envelope } => send(draft, turn, by, envelope)?,
        Act::CreateRole { role } => org::create_role(draft, role, Some(by))?,
        Act::Spawn { agent, role } => org::spawn(draft, agent, role, turn.agent.clone(), Some(by))?,
        Act::KeepMemory { memory } => memory::keep(draft, Some((turn, by)), memory)?,
        Act::EraseMemory { id } => memory::erase_seen(draft, turn, by, id)?,
    }
    Ok(())
}

/// Undoes the last compression of a thread.
pub(super) fn restore(draft: &mut Draft<'_>, thread: &ThreadId, by: Option<EffectId>) -> Result<(), Refusal> {
    let cuts = context(draft, thread).map(|context| &context.cuts[..]).unwrap_or_default();
    if cuts.is_empty() || draft.has_new_context(thread) {
        return Err(Refusal::NothingToRestore(thread.clone()));
    }
    let to = cuts.iter().rev().nth(1).map(|(seq, _)| *seq);
    draft.push(Some(thread), Event::ContextRestored { by, to });
    Ok(())
}

fn context<'a>(draft: &Draft<'a>, thread: &ThreadId) -> Option<&'a Compressions> {
    draft.spine.threads.get(thread)?.context.as_deref()
}

/// The settings of a new thread, without any pending suggestion.
fn first(settings: Settings) -> Settings {
    Settings { phase_update_suggestion: None, ..settings }
}

fn send(draft: &mut Draft<'_>, turn: &Turn, by: EffectId, envelope: Arc<Envelope>) -> Result<(), Refusal> {
    message::check_envelope(&envelope, &turn.agent, turn.hops + 1, None)?;
    message::check_task(turn, &envelope.task_id)?;
    message::check(draft, &envelope)?;
    message::check_chain(draft, turn, &envelope)?;
    message::deliver(draft, envelope, Some(by), Some(&turn.thread));
    Ok(())
}

fn check_thread(draft: &Draft<'_>, turn: &Turn, thread: &ThreadId) -> Result<(), Refusal> {
    if draft.opens(thread) {
        return Ok(());
    }
    let head = draft.spine.threads.get(thread).ok_or_else(|| Refusal::UnknownThread(thread.clone()))?;
    if head.agent == turn.agent { Ok(()) } else { Err(Refusal::NotYourThread(thread.clone())) }
}

fn check_message(draft: &Draft<'_>, turn: &Turn, thread: &ThreadId, index: u32) -> Result<(), Refusal> {
    check_thread(draft, turn, thread)?;
    if index >= draft.length(thread) {
        return Err(Refusal::NoSuchMessage { thread: thread.clone(), index });
    }
    Ok(())
}
