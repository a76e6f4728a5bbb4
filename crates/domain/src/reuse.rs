//! Reusing results of identical calls: what makes calls identical, and which results are available (D20).
//!
//! Only reads are remembered, each for its own request, and all of them are forgotten when anything is written, so a stale
//! result is never reused. The memory is bounded; a call that was forgotten is made again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Digest, EffectId, Seq, TaskId, ThreadId, Timestamp};

/// How many results are remembered for one request.
pub const MAX_RESULTS: usize = 128;

/// For how many requests results are remembered.
const MAX_TASKS: usize = 256;

/// The list of tools that a model sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolList {
    /// The digest of names, descriptions, schemas and effect classes.
    pub digest: Digest,
    /// The names, in order; empty if the log has them already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Arc<str>>,
}

/// The position of a result in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// The call that it is the result of.
    pub effect: EffectId,
    /// The thread that it is recorded under.
    pub thread: ThreadId,
    /// The position of the result.
    pub seq: Seq,
}

/// The results that may be reused.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReusableResults {
    /// The position of the last write. Results of calls that began before it are not reused.
    pub since: Seq,
    /// The results since then, by request, oldest first.
    pub tasks: BTreeMap<TaskId, VecDeque<ReusableResult>>,
}

/// One reusable result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReusableResult {
    /// The key of the call.
    pub key: Digest,
    /// The position of its result.
    pub source: Source,
    /// When it arrived.
    pub at: Timestamp,
}

impl ReusableResults {
    /// The newest result of this call, if it is not older than `after`.
    pub fn find(&self, task: &TaskId, key: Digest, after: Timestamp) -> Option<&Source> {
        let newest = self.tasks.get(task)?.iter().rev().find(|known| known.key == key);
        newest.filter(|known| known.at >= after).map(|known| &known.source)
    }

    /// Remembers the result of a call that began at `began`, unless something was written since.
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

    /// Forgets everything, because something was or may have been written.
    pub(crate) fn forget_all(&mut self, at: Seq) {
        self.since = at;
        self.tasks.clear();
    }

    /// Forgets the results of a request, because the person wrote or the request was answered.
    pub(crate) fn forget(&mut self, task: &TaskId) {
        self.tasks.remove(task);
    }
}

/// A canonical form of arguments, with sorted keys and without insignificant differences. None if they are not JSON.
pub fn canonical(arguments: &str) -> Option<String> {
    let value: Value = serde_json::from_str(arguments).ok()?;
    let mut text = String::with_capacity(arguments.len());
    write(&value, &mut text, &|text| text.into());
    Some(text)
}

/// The longest arguments that are compared roughly. Longer ones are hardly ever written in two ways.
const ROUGH_BYTES: usize = 4 * 1024;

/// Like [`canonical`], but also ignores case, white space in texts and, if `numbers` is false, numbers. Long arguments are
/// returned as they are.
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
