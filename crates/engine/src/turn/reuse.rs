//! Reusing results of identical calls, and detecting loops of calls.
//!
//! `decide` chooses the earlier result that answers a call (D20); here it is read from the log, with a note for the agent. Loop
//! detection depends only on the calls and results of this turn, in order, so a second run comes to the same conclusion.

use std::collections::BTreeMap;
use std::sync::Arc;

use polis_domain::{
    Call, CallNote, CallResult, Digest, Effect, Event, Failure, FailureCode, Limits, Outcome, Ruling, Seq, Source, ToolCall,
    canonical, roughly,
};
use polis_ports::{LogError, ThreadRange};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::value::RawValue;

use super::Turn;
use super::journal::Entry;
use crate::offer::FRESH;

/// The factor by which the limits are higher for tools whose results change by themselves (polling).
const PATIENCE: u32 = 4;

/// Most calls of one reply that are made.
const MAX_CALLS: usize = 64;

/// The code of a call beyond that number.
const TOO_MANY_EFFECTS: &str = "too_many_effects";

/// How many refused repeats end the turn.
const REFUSALS: u32 = 3;

/// What a model is told about a result that was reused.
pub const REUSED_NOTE: &str = "not called again: the same call gave this result before, and no agent has written anything since. If \
                               you need it anew, call with \"_fresh\" and say why.";

/// How many rounds with blocked messages end the turn.
const STOPPED_ROUNDS: u32 = 2;

/// The refusals that block messages because agents write to each other without end.
const STOPPED: [FailureCode; 3] = [FailureCode::MessageLoop, FailureCode::TooManyHops, FailureCode::TooManyTurns];

/// Counts similar calls of a turn.
#[derive(Default)]
pub(super) struct Repeats {
    /// By tool and arguments: the last result, and how often it occurred in a row.
    runs: FxHashMap<Digest, (Digest, u32)>,
    /// The writes that were made, by tool and arguments.
    written: FxHashSet<Digest>,
    /// How many calls were refused as repeats.
    refused: u32,
    /// Why a message since the last model call was blocked, if one was.
    stopped: Option<Failure>,
    /// How many rounds had a blocked message.
    stopped_rounds: u32,
}

/// Splits the reason for a fresh result off the arguments, if they have one. The other arguments keep their exact text.
pub fn take_fresh(arguments: &str) -> Option<(Arc<str>, Option<Arc<str>>)> {
    if !arguments.contains(FRESH) {
        return None;
    }
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(arguments).ok()?;
    let why = fields.remove(FRESH)?;
    let why: String = serde_json::from_str(why.get()).unwrap_or_default();
    let rest = serde_json::to_string(&fields).ok()?;
    Some((rest.into(), Some(why.trim()).filter(|why| !why.is_empty()).map(Into::into)))
}

/// The same call, which no earlier result answers, for this reason.
pub fn asking_fresh(call: &ToolCall, why: &str) -> ToolCall {
    let fresh = serde_json::from_str(&call.arguments).map(|mut fields: serde_json::Map<String, serde_json::Value>| {
        fields.insert(FRESH.to_owned(), why.into());
        serde_json::Value::Object(fields).to_string().into()
    });
    ToolCall { arguments: fresh.unwrap_or_else(|_| call.arguments.clone()), ..call.clone() }
}

impl Turn {
    /// Reads the earlier result that answers a call.
    pub(super) async fn recall(&mut self, source: &Source) -> CallResult {
        let range = ThreadRange { after: Seq(source.seq.0 - 1), ..ThreadRange::through(source.seq) };
        let events = self.read(&source.thread, range).await;
        let found = events.iter().find_map(|recorded| match &recorded.event {
            Event::EffectEnded { id, outcome: Outcome::Result(result), .. } if *id == source.effect => Some(result.clone()),
            _ => None,
        });
        match found {
            Some(result) => CallResult { from: Some(source.effect), ..result },
            None => {
                let Source { effect, seq, .. } = source;
                self.park_unread(LogError::Damaged(format!("event {seq} is not the result of {effect}"))).await
            }
        }
    }

    /// Refuses a call that was repeated too often; otherwise returns the given ruling.
    pub(super) fn rule_on_repeats(&self, call: &Call, ruling: Ruling) -> Ruling {
        let often = self.repeats.as_ref().map_or(0, |repeats| repeats.run(call));
        if often < bounds(&self.start.limits, call).1 {
            return ruling;
        }
        Ruling::Stop(format!(
            "{} was not called: {often} calls like this one came to the same. Do something else, or answer with what you have",
            call.tool
        ))
    }

    /// Stops calls of one reply that are the same too often, or too many.
    ///
    /// Of identical calls that may write, the first is made. A model that writes the same call twice in one reply seldom wants two
    /// orders or two messages; one that does is told to call again, which costs a round. The other way round a person would have to
    /// undo what was done twice. Tools that are `volatile` are exempt, and those of a client, which decides itself.
    pub(super) fn without_repeats(&self, mut calls: Vec<Call>) -> Vec<Call> {
        let mut written = FxHashSet::default();
        for call in calls.iter_mut().filter(|call| call.may_write() && !call.volatile && !self.is_client_tool(&call.tool)) {
            let Some(arguments) = canonical(&call.arguments) else { continue };
            let is_open = !matches!(call.ruling, Ruling::Stop(_) | Ruling::Refuse(_));
            if is_open && !written.insert((call.tool.clone(), arguments)) {
                let message = format!(
                    "{} was called once: this reply has the same call twice, and the result of the first is above. If it is to be done \
                     again, call it in your next reply",
                    call.tool
                );
                call.ruling = Ruling::Refuse(Failure::new("duplicate_call", message));
            }
        }
        for call in calls.iter_mut().skip(MAX_CALLS) {
            let message = format!("{} was not called: a reply may have {MAX_CALLS} calls; call it in the next one", call.tool);
            call.ruling = Ruling::Refuse(Failure::new(TOO_MANY_EFFECTS, message));
        }
        let mut counts = FxHashMap::<Digest, u32>::default();
        for call in calls.iter_mut().filter(|call| !matches!(call.ruling, Ruling::Stop(_) | Ruling::Refuse(_))) {
            let count = counts.entry(kind(call, true)).or_default();
            *count += 1;
            if *count > bounds(&self.start.limits, call).1 {
                let often = *count - 1;
                call.ruling = Ruling::Stop(format!(
                    "{} was not called: this reply has {often} calls like this one already. One is enough",
                    call.tool
                ));
            }
        }
        calls
    }

    /// Adds notes to a result: that it was reused, or that the call is being repeated. Counts the call as the log has it.
    pub(super) fn annotate(&mut self, entry: &Entry, call: &Call, result: CallResult) -> CallResult {
        let call = match entry.events.first().map(|first| &first.event) {
            Some(Event::EffectStarted { effect: Effect::Tool(logged), .. }) => logged,
            Some(Event::EffectRefused { failure, .. }) if failure.code == FailureCode::RepeatedCall => {
                self.repeats.get_or_insert_default().refused += 1;
                return result;
            }
            // It was told to make the call in its next reply.
            Some(Event::EffectRefused { failure, .. }) if &*failure.code == TOO_MANY_EFFECTS => return result,
            _ => call,
        };
        let mut notes = Vec::new();
        if result.from.is_some() {
            notes.push(REUSED_NOTE.to_owned());
        }
        let (nudge, stop) = bounds(&self.start.limits, call);
        let often = self.repeats.get_or_insert_default().note(call, &result);
        if often >= nudge {
            notes.push(format!(
                "this is call {often} of its kind that came to the same; after {stop} no more are made. Do something else, or answer \
                 with what you have."
            ));
        }
        let note = (!notes.is_empty()).then(|| CallNote::new(notes.join(" ")));
        CallResult { note, ..result }
    }

    /// Notes a refusal that blocks messages of this turn.
    pub(super) fn note_refusal(&mut self, failure: &Failure) {
        if STOPPED.contains(&failure.code) {
            self.repeats.get_or_insert_default().stopped = Some(failure.clone());
        }
    }

    /// Fails the turn if it loops. Called before each model call.
    pub(super) fn check_for_loops(&mut self) -> Result<(), Failure> {
        let Some(repeats) = &mut self.repeats else { return Ok(()) };
        if let Some(failure) = repeats.stopped.take() {
            repeats.stopped_rounds += 1;
            if repeats.stopped_rounds >= STOPPED_ROUNDS {
                let message = format!("the agent kept sending messages that are not passed on: {}", failure.message);
                return Err(Failure::new(failure.code, message));
            }
        }
        if repeats.refused < REFUSALS {
            return Ok(());
        }
        let message = "the agent made the same calls again and again although they came to the same; ask in another way, or \
                       ask another model";
        Err(Failure::new("call_loop", message))
    }
}

/// After how many similar calls the agent is warned, and after how many further ones are refused.
fn bounds(limits: &Limits, call: &Call) -> (u32, u32) {
    let times = if call.volatile { PATIENCE } else { 1 };
    (limits.nudge_repeats.saturating_mul(times), limits.stop_repeats.saturating_mul(times))
}

impl Repeats {
    /// How often similar calls had the same result in a row.
    fn run(&self, call: &Call) -> u32 {
        if self.runs.is_empty() {
            return 0;
        }
        let of = |numbers| self.runs.get(&kind(call, numbers)).map_or(0, |(_, often)| *often);
        of(true).max(of(false))
    }

    /// Counts a result. Changing numbers count as progress unless the result is always the same failure. A new write also
    /// counts as progress: after it, any call may have a different result.
    fn note(&mut self, call: &Call, result: &CallResult) -> u32 {
        let came = match result.is_error {
            true => Digest::of(["failed", &without(&result.content, &call.arguments)]),
            false => Digest::of(["good", &result.content]),
        };
        let kind = if result.is_error {
            kind(call, false)
        } else {
            if !self.runs.is_empty() {
                self.runs.remove(&kind(call, false));
            }
            let same = kind(call, true);
            if call.may_write() && self.written.insert(same) {
                self.runs.clear();
            }
            same
        };
        let run = self.runs.entry(kind).or_insert((came, 0));
        *run = if run.0 == came { (came, run.1 + 1) } else { (came, 1) };
        run.1
    }
}

fn kind(call: &Call, numbers: bool) -> Digest {
    match numbers {
        true => Digest::of(["same", &call.tool, &roughly(&call.arguments, true)]),
        false => Digest::of(["alike", &call.tool, &roughly(&without_digits(&call.arguments), false)]),
    }
}

/// A text with every run of digits replaced by one `0`.
fn without_digits(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '0'..='9' if collapsed.ends_with('0') => {}
            '0'..='9' => collapsed.push('0'),
            other => collapsed.push(other),
        }
    }
    collapsed
}

/// The text of a failure without the arguments that it quotes.
fn without(content: &str, arguments: &str) -> String {
    let fields: BTreeMap<String, serde_json::Value> = serde_json::from_str(arguments).unwrap_or_default();
    let mut quoted: Vec<&str> = fields.values().filter_map(|value| value.as_str()).filter(|text| !text.is_empty()).collect();
    quoted.sort_by_key(|text| std::cmp::Reverse(text.len()));
    quoted.iter().fold(content.to_owned(), |content, text| content.replace(text, "\0"))
}

#[cfg(test)]
mod tests {
    use polis_domain::EffectClass;

    use super::*;

    #[test]
    fn failures_that_differ_only_in_what_they_quote_are_alike() {
        let mut repeats = Repeats::default();
        let call =
            |n: u32| Call { tool: "read_file".into(), arguments: format!(r#"{{"path":"nope{n}"}}"#).into(), ..Call::default() };
        for n in 0..12 {
            let failed = CallResult::failed(format!("error: `nope{n}` does not exist"));
            assert_eq!(repeats.note(&call(n), &failed), n + 1);
        }
        assert_eq!(repeats.run(&call(99)), 12);
        repeats.note(&call(12), &CallResult::good("there"));
        assert_eq!(repeats.run(&call(99)), 0, "one that is there is progress");
        let read = |n: u32| Call { class: EffectClass::Read, ..call(n) };
        repeats.note(&read(1), &CallResult::failed("error: `nope1` does not exist"));
        repeats.note(&read(2), &CallResult::good("there"));
        assert_eq!(repeats.run(&read(3)), 0, "also where nothing was written");
        let other = Call { arguments: r#"{"path":"other"}"#.into(), ..call(0) };
        repeats.note(&call(1), &CallResult::failed("error: `nope1` does not exist"));
        assert_eq!(repeats.run(&other), 0);
    }

    #[test]
    fn the_reason_is_taken_out_and_the_rest_stays_as_written() {
        let taken = |text: &str| take_fresh(text).map(|(rest, why)| (rest.to_string(), why.map(|why| why.to_string())));
        let some = |rest: &str, why: Option<&str>| Some((rest.to_owned(), why.map(str::to_owned)));
        assert_eq!(taken(r#"{"a":1}"#), None);
        assert_eq!(taken(r#"{"a":"_fresh"}"#), None);
        assert_eq!(
            taken(r#"{"_fresh":" it changed ","a":1.50,"b":12345678901234567890123}"#),
            some(r#"{"a":1.50,"b":12345678901234567890123}"#, Some("it changed"))
        );
        for empty in ["\"\"", "null", "true", "7"] {
            assert_eq!(taken(&format!(r#"{{"a":1,"_fresh":{empty}}}"#)), some(r#"{"a":1}"#, None), "{empty} is no reason");
        }
        assert_eq!(taken("_fresh"), None);
    }
}
