//! Calls that need not be made again, and calls that are made again and again.
//!
//! Which result answers a call is decided with the call (D20); here it is fetched from the log, and the agent is told. Whether a
//! turn goes in circles follows from its own calls and results, in their order, so a second run finds the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use polis_domain::{Call, CallResult, Digest, Effect, Event, Failure, Limits, Outcome, Ruling, Seq, Source, roughly};
use polis_ports::{LogError, ThreadRange};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::value::RawValue;

use super::Turn;
use super::journal::Entry;
use crate::offer::FRESH;

/// How much longer one may ask a tool whose results change by themselves.
const PATIENCE: u32 = 4;

/// Calls that may be refused before the turn ends.
const REFUSALS: u32 = 3;

/// What an agent is told about a result that it has from before.
const REUSED_NOTE: &str = "[Not called again: the same call gave this before, and nothing was written since. If you need it anew, call \
                     with \"{}\" and say why.]";

/// Rounds in which an agent may try to send messages that are no longer passed on, before its turn ends.
const STOPPED_ROUNDS: u32 = 2;

/// The codes of messages that are not passed on because agents write without end.
const STOPPED: [&str; 3] = ["message_loop", "too_many_hops", "too_many_turns"];

/// The code of a call that was made too often.
const REPEATED: &str = "repeated_call";

/// How often a turn has made calls that are alike.
#[derive(Default)]
pub(super) struct Repeats {
    /// By tool and arguments: the last result, and how often it came in a row.
    runs: FxHashMap<Digest, (Digest, u32)>,
    /// What was written, by tool and arguments.
    written: FxHashSet<Digest>,
    refused: u32,
    /// Why the last message since the model was asked was not passed on, if one was not.
    stopped: Option<Failure>,
    /// Rounds in which that happened.
    stopped_rounds: u32,
}

/// Takes the reason for a fresh result out of arguments that have one. The rest stays as it was written.
pub(super) fn take_fresh(arguments: &str) -> Option<(Arc<str>, Option<Arc<str>>)> {
    if !arguments.contains(FRESH) {
        return None;
    }
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(arguments).ok()?;
    let why = fields.remove(FRESH)?;
    let why: String = serde_json::from_str(why.get()).unwrap_or_default();
    let rest = serde_json::to_string(&fields).ok()?;
    Some((rest.into(), Some(why.trim()).filter(|why| !why.is_empty()).map(Into::into)))
}

impl Turn {
    /// The earlier result that answers a call.
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

    /// Whether a call was made too often to be made once more.
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

    /// What the agent reads: the result, and what it should know about it. What the log says of the call counts.
    pub(super) fn annotate(&mut self, entry: &Entry, call: &Call, result: CallResult) -> CallResult {
        let call = match entry.events.first().map(|first| &first.event) {
            Some(Event::EffectStarted { effect: Effect::Tool(logged), .. }) => logged,
            Some(Event::EffectRefused { failure, .. }) if &*failure.code == REPEATED => {
                self.repeats.get_or_insert_default().refused += 1;
                return result;
            }
            _ => call,
        };
        let mut notes = Vec::new();
        if result.from.is_some() {
            notes.push(REUSED_NOTE.replace("{}", FRESH));
        }
        let (nudge, stop) = bounds(&self.start.limits, call);
        let often = self.repeats.get_or_insert_default().note(call, &result);
        if often >= nudge {
            notes.push(format!(
                "[This is call {often} of its kind that came to the same; after {stop} no more are made. Do something else, or answer \
                 with what you have.]"
            ));
        }
        if notes.is_empty() {
            return result;
        }
        CallResult { content: format!("{}\n\n{}", result.content, notes.join("\n")).into(), ..result }
    }

    /// Takes a refusal in: whether messages of this turn are no longer passed on.
    pub(super) fn note_refusal(&mut self, failure: &Failure) {
        if STOPPED.contains(&&*failure.code) {
            self.repeats.get_or_insert_default().stopped = Some(failure.clone());
        }
    }

    /// Why the turn must end, when it goes in circles. Asked before each round.
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

/// After how many calls alike the agent is told, and after how many no more are made.
fn bounds(limits: &Limits, call: &Call) -> (u32, u32) {
    let times = if call.volatile { PATIENCE } else { 1 };
    (limits.nudge_repeats.saturating_mul(times), limits.stop_repeats.saturating_mul(times))
}

impl Repeats {
    /// How often the last result of calls like this one came in a row.
    fn run(&self, call: &Call) -> u32 {
        if self.runs.is_empty() {
            return 0;
        }
        let of = |numbers| self.runs.get(&kind(call, numbers)).map_or(0, |(_, often)| *often);
        of(true).max(of(false))
    }

    /// Takes a result in. Numbers that change are progress, unless all that comes of them is the same failure; and so is a write
    /// that was not made before: after it, everything may come to something else.
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

/// A text with one digit where there were several, or others.
fn without_digits(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '0'..='9' if kept.ends_with('0') => {}
            '0'..='9' => kept.push('0'),
            other => kept.push(other),
        }
    }
    kept
}

/// What a failure says, without the arguments that it quotes.
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
