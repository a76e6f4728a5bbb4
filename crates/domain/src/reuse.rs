//! Which calls need not be made again: what tells a call from others, and the results that may answer it (D20).
//!
//! Only calls that read are remembered, each for its own request, and all of them are forgotten whenever anything is written:
//! a result that may be stale is never given. What was remembered is bounded; what was forgotten is called again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Digest, EffectId, Seq, TaskId, ThreadId, Timestamp};

/// Most results that are remembered for one request.
pub const MAX_RESULTS: usize = 128;

/// Most requests for which any are remembered.
const MAX_TASKS: usize = 256;

/// The tools that a model was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolList {
    /// Tells this list from any other: names, descriptions, schemas and effects.
    pub digest: Digest,
    /// The names, in order; left out where the log has named them before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Arc<str>>,
}

/// Where a result stands in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// The call that brought it.
    pub effect: EffectId,
    /// The thread that it stands under.
    pub thread: ThreadId,
    /// The place of the result.
    pub seq: Seq,
}

/// The results that may answer a call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReusableResults {
    /// The last time that anything was written. What was read before counts no more.
    pub since: Seq,
    /// What was read since, by request, oldest first.
    pub tasks: BTreeMap<TaskId, VecDeque<ReusableResult>>,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReusableResult {
    /// What the call was.
    pub key: Digest,
    /// Where its result is.
    pub source: Source,
    /// When it came.
    pub at: Timestamp,
}

impl ReusableResults {
    /// The newest result of this very call, if it came no earlier than `after`.
    pub fn find(&self, task: &TaskId, key: Digest, after: Timestamp) -> Option<&Source> {
        let newest = self.tasks.get(task)?.iter().rev().find(|known| known.key == key);
        newest.filter(|known| known.at >= after).map(|known| &known.source)
    }

    /// Takes in a result of a call that began at `began`, unless something was written meanwhile.
    pub(crate) fn remember(&mut self, task: &TaskId, began: Seq, call: ReusableResult) {
        if began <= self.since {
            return;
        }
        if !self.tasks.contains_key(task) && self.tasks.len() >= MAX_TASKS {
            let newest = |calls: &VecDeque<ReusableResult>| calls.back().map(|call| call.source.seq);
            let oldest = self.tasks.iter().min_by_key(|(_, calls)| newest(calls)).map(|(task, _)| task.clone());
            oldest.and_then(|task| self.tasks.remove(&task));
        }
        let calls = self.tasks.entry(task.clone()).or_default();
        calls.retain(|known| known.key != call.key);
        if calls.len() >= MAX_RESULTS {
            calls.pop_front();
        }
        calls.push_back(call);
    }

    /// Something was written, or may have been.
    pub(crate) fn forget_all(&mut self, at: Seq) {
        self.since = at;
        self.tasks.clear();
    }

    /// A person has spoken, or the request is answered.
    pub(crate) fn forget(&mut self, task: &TaskId) {
        self.tasks.remove(task);
    }
}

/// The same arguments written in another way: order of keys, white space, spelling of numbers. None where they are no JSON.
pub fn canonical(arguments: &str) -> Option<String> {
    let value: Value = serde_json::from_str(arguments).ok()?;
    let mut text = String::with_capacity(arguments.len());
    write(&value, &mut text, &|text| text.into());
    Some(text)
}

/// Longest arguments that are compared roughly. Nobody writes longer ones in two ways.
const ROUGH_BYTES: usize = 4 * 1024;

/// As [`canonical`], and letters of either case, white space in texts and, where `numbers` is false, numbers are alike. Long
/// arguments are compared as they are.
pub fn roughly(arguments: &str, numbers: bool) -> String {
    if arguments.len() > ROUGH_BYTES {
        return arguments.to_owned();
    }
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let Ok(mut value) = serde_json::from_str(arguments) else { return plain(arguments) };
    if !numbers {
        without_numbers(&mut value);
    }
    let mut text = String::with_capacity(arguments.len());
    write(&value, &mut text, &plain);
    text
}

fn without_numbers(value: &mut Value) {
    match value {
        Value::Number(_) => *value = Value::from(0),
        Value::Array(items) => items.iter_mut().for_each(without_numbers),
        Value::Object(fields) => fields.values_mut().for_each(without_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn write(value: &Value, into: &mut String, spelled: &dyn Fn(&str) -> String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            into.push('{');
            for (name, value) in fields {
                into.push_str(&Value::from(name.as_str()).to_string());
                into.push(':');
                write(value, into, spelled);
                into.push(',');
            }
            into.push('}');
        }
        Value::Array(items) => {
            into.push('[');
            for item in items {
                write(item, into, spelled);
                into.push(',');
            }
            into.push(']');
        }
        Value::Number(number) => match number.as_f64().filter(|float| number.is_f64() && is_whole(*float)) {
            Some(float) => into.push_str(&(float as i64).to_string()),
            None => into.push_str(&number.to_string()),
        },
        Value::String(text) => into.push_str(&Value::from(spelled(text)).to_string()),
        Value::Null | Value::Bool(_) => into.push_str(&value.to_string()),
    }
}

/// Whether a number is whole and small enough to be exact.
fn is_whole(float: f64) -> bool {
    float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_mean_the_same_are_the_same() {
        let same = [
            (r#"{"a":1,"b":[true,null]}"#, "{ \"b\": [ true , null ],\n\"a\": 1.0 }"),
            (r#"{"a":100}"#, r#"{"a":1e2}"#),
            (r#"{"a":0}"#, r#"{"a":-0.0}"#),
            (r#"{"a":"é"}"#, "{\"a\":\"\\u00e9\"}"),
            (r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2,"x":1}}"#),
        ];
        for (one, other) in same {
            assert_eq!(canonical(one).unwrap(), canonical(other).unwrap(), "{one} {other}");
        }
        let different = [
            (r#"{"a":1}"#, r#"{"a":"1"}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
            (r#"{"a":"x"}"#, r#"{"a":"X"}"#),
            (r#"{"a":"x"}"#, r#"{"a":"x "}"#),
            (r#"{"a":9007199254740993}"#, r#"{"a":9007199254740992}"#),
            (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
            (r#"{"a":["b,c"]}"#, r#"{"a":["b","c"]}"#),
            (r#"{"a":1.5}"#, r#"{"a":1}"#),
        ];
        for (one, other) in different {
            assert_ne!(canonical(one).unwrap(), canonical(other).unwrap(), "{one} {other}");
        }
        assert_eq!(canonical("{"), None);
    }

    #[test]
    fn arguments_that_differ_little_are_roughly_the_same() {
        assert_eq!(roughly(r#"{"a":"Where  is it"}"#, true), roughly(r#"{"a":" where is IT "}"#, true));
        assert_ne!(roughly(r#"{"a":1}"#, true), roughly(r#"{"a":2}"#, true));
        assert_eq!(roughly(r#"{"a":1}"#, false), roughly(r#"{"a":2}"#, false));
        assert_ne!(roughly(r#"{"a":"x"}"#, false), roughly(r#"{"a":"y"}"#, false));
        assert_eq!(roughly("Not  json", true), roughly("not json", true));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_oldest_goes_first() {
        let mut known = ReusableResults::default();
        let call = |n: u64| ReusableResult {
            key: Digest::of([n.to_string().as_str()]),
            source: Source { effect: EffectId { turn: crate::TurnId(Seq(1)), n: 0 }, thread: "t".into(), seq: Seq(n) },
            at: Timestamp(n),
        };
        let task = |n: u64| TaskId::from(format!("t{n}"));
        for n in 1..=MAX_RESULTS as u64 + 1 {
            known.remember(&task(0), Seq(n), call(n));
        }
        assert_eq!(known.tasks[&task(0)].len(), MAX_RESULTS);
        assert_eq!(known.find(&task(0), call(1).key, Timestamp(0)), None);
        assert_eq!(known.find(&task(0), call(2).key, Timestamp(0)), Some(&call(2).source));
        assert_eq!(known.find(&task(0), call(2).key, Timestamp(3)), None, "too old");
        for n in 1..=MAX_TASKS as u64 {
            known.remember(&task(n), Seq(1_000 + n), call(1_000 + n));
        }
        assert_eq!(known.tasks.len(), MAX_TASKS);
        assert!(!known.tasks.contains_key(&task(0)));
    }
}
