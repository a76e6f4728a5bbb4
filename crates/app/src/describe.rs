//! An event of the log as one line for people.

use polis_domain::{Attempt, Cleared, Effect, Event, LetterKind, Outcome, Recorded, Settlement, Timestamp, ToolList};
use serde_json::Value;

use crate::out::short;

const CHARS: usize = 120;

/// Place, time, thread, name, and what it is about.
pub(crate) fn line(recorded: &Recorded) -> String {
    let thread = recorded.thread.as_ref().map_or("-", |thread| thread.as_str());
    let line = format!(
        "{:>6}  {}  {thread}  {}  {}",
        recorded.seq.0,
        time(recorded.at),
        name(&recorded.event),
        about(&recorded.event)
    );
    line.trim_end().to_owned()
}

/// The event's name, as the log writes it.
fn name(event: &Event) -> String {
    match serde_json::to_value(event) {
        Ok(Value::Object(fields)) => fields.keys().next().cloned().unwrap_or_default(),
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

fn about(event: &Event) -> String {
    match event {
        Event::SocietyFounded { .. } | Event::SuggestionDropped => String::new(),
        Event::ToolAllowed { allowed } => serde_json::to_string(allowed).unwrap_or_default(),
        Event::BudgetsSet { budgets } => serde_json::to_string(budgets).unwrap_or_default(),
        Event::BudgetGranted { scope, more } => format!("{scope} {}", serde_json::to_string(more).unwrap_or_default()),
        Event::RoleCreated { role, .. } => format!("{} ({})", role.id, role.name),
        Event::AgentSpawned { agent, role, parent, .. } => match parent {
            Some(parent) => format!("{agent} as {role}, by {parent}"),
            None => format!("{agent} as {role}"),
        },
        Event::LetterSent { letter, .. } => {
            let kind = match &letter.kind {
                LetterKind::Message => "",
                LetterKind::Answer => " (answer)",
                LetterKind::Failure(_) => " (failure)",
            };
            format!("{} to {}{kind}: {}", letter.from, letter.to, short(&letter.payload.text, CHARS))
        }
        Event::InboxCleared { agent, of } => match of {
            Cleared::Task(task) => format!("{agent}, of task {task}"),
            Cleared::AskedBy(turns) => format!("{agent}, of {} turns", turns.len()),
        },
        Event::TurnStarted { agent, phase, task, .. } => format!("{agent} in {phase}: {}", short(&task.message, CHARS)),
        Event::EffectStarted { id, effect, .. } => format!("{id} {} {}", effect.kind(), wanted(effect)),
        Event::EffectRetried { id, attempt, .. } => format!("{id} {}", vain(attempt)),
        Event::EffectEnded { id, outcome, .. } => format!("{id} {}", came(outcome)),
        Event::EffectDoubted { id } | Event::EffectCleared { id } | Event::EffectRestarted { id } | Event::Acted { id } => {
            id.to_string()
        }
        Event::EffectRefused { id, failure } => format!("{id} {failure}"),
        Event::MessageAdded { index, message, .. } => format!("[{index}] {}", short(&message.text, CHARS)),
        Event::MessageUpdated { index, patch, .. } => {
            format!("[{index}] {}", short(patch.text.as_deref().unwrap_or("(meta)"), CHARS))
        }
        Event::PlanSet { plan, .. } => short(plan.to_string().trim_end(), CHARS),
        Event::SettingsUpdated { settings, .. } => format!("phase {}", settings.brief_status.phase),
        Event::PhaseSuggested { phase, .. } | Event::PhaseApplied { phase } => phase.to_string(),
        Event::ThreadOpened { parent, .. } => format!("below {parent}"),
        Event::ThreadLinked { index, slot, child, .. } => format!("{child} at messages[{index}].{slot}"),
        Event::TurnParked { turn, reason } => format!("{turn} {reason}"),
        Event::TurnResumed { turn } => turn.to_string(),
        Event::TurnSettled { turn, settlement, message, .. } => {
            let how = match settlement {
                Settlement::Done => "done".to_owned(),
                Settlement::Failed(failure) => format!("failed: {failure}"),
                Settlement::Cancelled(failure) => format!("cancelled: {failure}"),
            };
            format!("{turn} {how} {}", short(message.as_ref().map_or("", |message| &message.text), CHARS))
        }
    }
}

fn wanted(effect: &Effect) -> String {
    match effect {
        Effect::Model { model, tools, .. } => {
            format!("{model} {}", tools.as_deref().map(shown).unwrap_or_default()).trim().to_owned()
        }
        Effect::Tool(call) => {
            let from = call.from.as_ref().map_or_else(String::new, |from| format!(" (answered by {})", from.effect));
            format!("{} {}{from}", call.tool, short(&call.arguments, CHARS))
        }
        Effect::Ask { letter, .. } => format!("{}: {}", letter.to, short(&letter.payload.text, CHARS)),
        Effect::Approval { question, .. } => short(question, CHARS),
        Effect::Grant { lacking } => lacking.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        Effect::Sleep { until } => format!("until {}", time(*until)),
        Effect::Unit { thread, task, .. } => format!("in {thread}: {}", short(&task.message, CHARS)),
    }
}

/// The tools that a model is shown: what tells the list from others, and the names where the log gives them.
fn shown(list: &ToolList) -> String {
    let digest =
        serde_json::to_value(list.digest).ok().and_then(|digest| digest.as_str().map(str::to_owned)).unwrap_or_default();
    if list.names.is_empty() { format!("(tools {digest})") } else { format!("(tools {digest}: {})", list.names.join(", ")) }
}

/// An attempt at a model that came to nothing, and what follows.
pub(crate) fn vain(attempt: &Attempt) -> String {
    let Attempt { model, attempt, max_retries, failure, delay_ms, next } = attempt;
    let named = |model: &str| if model.is_empty() { "the model".to_owned() } else { model.to_owned() };
    let tries = max_retries + 1;
    let then = if model == next { format!("again in {} s", *delay_ms as f64 / 1e3) } else { format!("now {}", named(next)) };
    let failure = short(&failure.to_string(), CHARS);
    format!("{} did not answer ({attempt} of {tries}): {failure}; {then}", named(model))
}

fn came(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Reply(reply) => {
            let calls: Vec<&str> = reply.tool_calls.iter().map(|call| &*call.name).collect();
            let usage = reply.usage;
            let tokens = format!("({} tokens in, {} out)", usage.input_tokens, usage.output_tokens);
            if calls.is_empty() {
                format!("{} {tokens}", short(&reply.text, CHARS))
            } else {
                format!("wants {} {tokens}", calls.join(", "))
            }
        }
        Outcome::Result(result) if result.is_error => format!("failed: {}", short(&result.content, CHARS)),
        Outcome::Result(result) => short(&result.content, CHARS),
        Outcome::Answer(text) => short(text, CHARS),
        Outcome::Verdict(verdict) if verdict.approved => "approved".to_owned(),
        Outcome::Verdict(verdict) => format!("denied {}", verdict.reason),
        Outcome::Slept => "the time has come".to_owned(),
        Outcome::Failed(failure) => failure.to_string(),
    }
}

/// A time in UTC, as `2026-11-05 08:15:30`.
pub(crate) fn time(at: Timestamp) -> String {
    let seconds = at.0 / 1_000;
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Year, month and day from the days since 1970, by whole eras of 400 years that begin in March.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_people_read_them() {
        for (seconds, want) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_793_866_530, "2026-11-05 08:15:30"),
            (4_107_542_399, "2100-02-28 23:59:59"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(time(Timestamp(seconds * 1_000)), want);
        }
    }
}
