//! An event of the log as one line for people.

use polis_domain::{
    Answer, Attempt, Cleared, Effect, Event, Inquiry, MessageKind, Outcome, Recorded, Settlement, Timestamp, ToolList, iso,
};
use serde_json::Value;

use crate::out::{self, short};

const CHARS: usize = 120;

/// Position, time, thread, name, and content.
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
        Event::SocietyForked { from, .. } => format!("from {from}"),
        Event::RequestDone { request, .. } => request.key.to_string(),
        Event::ToolAllowed { allowed } => serde_json::to_string(allowed).unwrap_or_default(),
        Event::ToolPinned { tool, identity, .. } => format!("{tool} as {}", short(identity, 12)),
        Event::VersionsSet { versions } => serde_json::to_string(versions).unwrap_or_default(),
        Event::BudgetsSet { budgets } => serde_json::to_string(budgets).unwrap_or_default(),
        Event::BudgetGranted { scope, more } => format!("{scope} {}", serde_json::to_string(more).unwrap_or_default()),
        Event::RoleChanged { role } => format!("{} ({})", role.id, role.name),
        Event::RoleCreated { role, .. } => format!("{} ({})", role.id, role.name),
        Event::AgentSpawned { agent, role, parent, .. } => match parent {
            Some(parent) => format!("{agent} as {role}, by {parent}"),
            None => format!("{agent} as {role}"),
        },
        Event::ConversationStarted { agent, role, person, title, .. } => {
            format!("{agent} as {role}, of {person}: {}", short(title, CHARS))
        }
        Event::ConversationChanged { agent, change } => {
            format!("{agent} {}", serde_json::to_string(change).unwrap_or_default())
        }
        Event::ConversationErased { agent, by, artifacts } => {
            format!("{agent}, by {by}, {}", out::count(artifacts.len(), "artifact"))
        }
        Event::ErasureDone { agent, artifacts } => {
            format!("{agent}, {} removed", out::count(artifacts.len(), "artifact"))
        }
        Event::MemoryChanged { change, .. } => serde_json::to_string(change).unwrap_or_default(),
        Event::AgentDismissed { agent, caller, reason, .. } => format!("{agent}, by {caller} {}", short(reason, CHARS)),
        Event::AgentTerminated { agent } => agent.to_string(),
        Event::MessageSent { envelope, .. } => {
            let kind = match &envelope.kind {
                MessageKind::Message => "",
                MessageKind::Answer => " (answer)",
                MessageKind::Failure(_) => " (failure)",
            };
            format!("{} to {}{kind}: {}", envelope.from, envelope.to, short(&envelope.payload.text, CHARS))
        }
        Event::MessagesTaken { agent, envelopes, .. } => {
            let texts: Vec<_> = envelopes.iter().map(|envelope| short(&envelope.payload.text, CHARS)).collect();
            format!("{agent}: {}", texts.join("; "))
        }
        Event::InboxCleared { agent, of } => match of {
            Cleared::Task(task) => format!("{agent}, of task {task}"),
            Cleared::AskedBy(turns) => format!("{agent}, of {}", out::count(turns.len(), "turn")),
            Cleared::Everything => agent.to_string(),
        },
        Event::TurnStarted { agent, phase, task, .. } => format!("{agent} in {phase}: {}", short(&task.message, CHARS)),
        Event::EffectStarted { id, effect, .. } => format!("{id} {} {}", effect.kind(), describe_effect(effect)),
        Event::EffectRetried { id, attempt, .. } => format!("{id} {}", describe_failed_attempt(attempt)),
        Event::EffectEnded { id, outcome, .. } => format!("{id} {}", describe_outcome(outcome)),
        Event::EffectDoubted { id } | Event::EffectCleared { id, .. } | Event::EffectRestarted { id } | Event::Acted { id } => {
            id.to_string()
        }
        Event::EffectRefused { id, failure } => format!("{id} {failure}"),
        Event::CallInquired { id, by, inquiry, .. } => format!("{id} {by} {}", describe_inquiry(inquiry)),
        Event::CallAnswered { id, answer, .. } => format!("{id} {}", describe_answer(answer)),
        Event::MessageAdded { index, message, .. } => format!("[{index}] {}", short(&message.text, CHARS)),
        Event::MessageUpdated { index, patch, .. } => {
            format!("[{index}] {}", short(patch.text.as_deref().unwrap_or("(meta)"), CHARS))
        }
        Event::PlanSet { plan, .. } => {
            let how = plan.strategy.as_ref().map(|how| format!("{} ({}) ", how.name, how.reason)).unwrap_or_default();
            format!("{how}{}", short(plan.to_string().trim_end(), CHARS))
        }
        Event::SettingsUpdated { settings, .. } => format!("phase {}", settings.brief_status.phase),
        Event::PhaseSuggested { phase, .. } | Event::PhaseApplied { phase } => phase.to_string(),
        Event::ContextCompressed { from, summaries, .. } => {
            format!("messages before [{from}]: {}", short(summaries.last().map_or("", String::as_str), CHARS))
        }
        Event::ContextRestored { .. } => String::new(),
        Event::ContextKept { failure, .. } => failure.to_string(),
        Event::ThreadOpened { parent, .. } => format!("below {parent}"),
        Event::ThreadLinked { index, slot, child, .. } => format!("{child} at messages[{index}].{slot}"),
        Event::TurnCrashed { turn, failure, until } => format!("{turn} {failure}; again at {}", time(*until)),
        Event::TurnRevived { turn, .. } | Event::TurnRested { turn } => turn.to_string(),
        Event::MessageDeadLettered { agent, turn, failure, .. } => format!("{agent} {turn} {failure}"),
        Event::TurnParked { turn, reason } => format!("{turn} {reason}"),
        Event::TurnResumed { turn, .. } => turn.to_string(),
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

fn describe_effect(effect: &Effect) -> String {
    match effect {
        Effect::Model { model, tools, .. } => {
            format!("{model} {}", tools.as_deref().map(describe_tools).unwrap_or_default()).trim().to_owned()
        }
        Effect::Tool(call) => {
            let from = call.from.as_ref().map_or_else(String::new, |from| format!(" (answered by {})", from.effect));
            format!("{} {}{from}", call.tool, short(&call.arguments, CHARS))
        }
        Effect::Ask { envelope, .. } => format!("{}: {}", envelope.to, short(&envelope.payload.text, CHARS)),
        Effect::Approval { question, .. } => short(question, CHARS),
        Effect::Grant { lacking, .. } => lacking.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        Effect::Terminate { agent, reason, .. } => format!("{agent} {}", short(reason, CHARS)),
        Effect::Sleep { until } => format!("until {}", time(*until)),
        Effect::Keep(artifact) => short(&artifact.to_string(), CHARS),
        Effect::Unit { thread, task, .. } => format!("in {thread}: {}", short(&task.message, CHARS)),
    }
}

/// What a running call asks.
pub(crate) fn describe_inquiry(inquiry: &Inquiry) -> String {
    match inquiry {
        Inquiry::Person { question, .. } => format!("asks you: {}", short(&question.text, CHARS)),
        Inquiry::Model { model, prompt, .. } if model.is_empty() => format!("asks a model: {}", short(prompt, CHARS)),
        Inquiry::Model { model, prompt, .. } => format!("asks {model}: {}", short(prompt, CHARS)),
    }
}

fn describe_answer(answer: &Answer) -> String {
    match answer {
        Answer::Verdict(verdict) => describe_outcome(&Outcome::Verdict(verdict.clone())),
        Answer::Reply(reply) => describe_outcome(&Outcome::Reply(reply.clone())),
        Answer::Cancelled => "cancelled".to_owned(),
        Answer::Failed(failure) => failure.to_string(),
    }
}

/// The tools offered to a model: the digest of the list, and the names where the log has them.
fn describe_tools(list: &ToolList) -> String {
    let digest =
        serde_json::to_value(list.digest).ok().and_then(|digest| digest.as_str().map(str::to_owned)).unwrap_or_default();
    if list.names.is_empty() { format!("(tools {digest})") } else { format!("(tools {digest}: {})", list.names.join(", ")) }
}

/// A failed attempt to call a model, and what follows.
pub(crate) fn describe_failed_attempt(attempt: &Attempt) -> String {
    let Attempt { model, attempt, max_retries, failure, delay_ms, next } = attempt;
    let named = |model: &str| if model.is_empty() { "the model".to_owned() } else { model.to_owned() };
    let tries = max_retries + 1;
    let then = if model == next { format!("again in {} s", *delay_ms as f64 / 1e3) } else { format!("now {}", named(next)) };
    let failure = short(&failure.to_string(), CHARS);
    format!("{} did not answer ({attempt} of {tries}): {failure}; {then}", named(model))
}

fn describe_outcome(outcome: &Outcome) -> String {
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
        Outcome::Verdict(verdict) if verdict.approved => match &verdict.answer {
            Some(Value::String(text)) => format!("answered {}", short(text, CHARS)),
            Some(other) => format!("answered {}", short(&other.to_string(), CHARS)),
            None => "approved".to_owned(),
        },
        Outcome::Verdict(verdict) => format!("denied {}", verdict.reason),
        Outcome::Slept => "the time has come".to_owned(),
        Outcome::Kept(artifact) => format!("kept {}", short(&artifact.name, CHARS)),
        Outcome::Failed(failure) => failure.to_string(),
    }
}

/// A time in UTC, as `2026-11-05 08:15:30`.
pub(crate) fn time(at: Timestamp) -> String {
    iso::write(at).replace('T', " ").chars().take(19).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_people_read_them() {
        assert_eq!(time(Timestamp(1_793_866_530_999)), "2026-11-05 08:15:30");
    }
}
