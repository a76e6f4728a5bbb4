//! Threads in the JSON shape of the specification, folded from their events (R001-R010).
//!
//! A thread is a view of the log and is never stored as a whole (D08).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{MessageId, Meta, MetaPath, Phase, ThreadId, Timestamp};

/// One conversation: messages, settings and meta.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thread {
    /// The id.
    pub id: ThreadId,
    /// The messages, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The phase, the suggested phase, and other settings of the agent.
    #[serde(default)]
    pub settings: Settings,
    /// Free data about the thread.
    #[serde(default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

/// One message of a thread. A sub-thread hangs in its meta, by default at `_thread`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Message {
    /// The id.
    pub id: MessageId,
    /// Whether it is a user or a bot message.
    pub sender: Sender,
    /// The text.
    pub text: String,
    /// When it was added.
    pub timestamp: Timestamp,
    /// Free data about the message.
    #[serde(default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

/// The sender of a message in a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Sender {
    /// The agent.
    Bot,
    /// A person, another agent, or the report of a unit.
    User,
}

/// A thread's settings, in the shape of the specification.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settings {
    /// The phase and related fields.
    #[serde(rename = "briefStatus", default)]
    pub brief_status: BriefStatus,
    /// The phase to apply before the next task, if one was suggested.
    #[serde(rename = "_phaseUpdateSuggestion", default, skip_serializing_if = "Option::is_none")]
    pub phase_update_suggestion: Option<PhaseUpdateSuggestion>,
    /// All other settings.
    #[serde(flatten, serialize_with = "Meta::entries")]
    pub rest: Meta,
}

/// The part of the settings that has the phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BriefStatus {
    /// The current phase.
    #[serde(default)]
    pub phase: Phase,
    /// Other fields are kept when the phase changes (R042).
    #[serde(flatten, serialize_with = "Meta::entries")]
    pub rest: Meta,
}

/// A phase that a handler or unit suggests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseUpdateSuggestion {
    /// The suggested phase.
    pub phase: Phase,
}

/// A change of a message; fields that it does not name stay (R022).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessagePatch {
    /// A new text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Keys of the meta to set; a null removes one.
    #[serde(default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl Thread {
    /// An empty thread.
    pub fn empty(id: ThreadId) -> Self {
        Self { id, messages: Vec::new(), settings: Settings::default(), meta: Meta::new() }
    }

    /// The current phase.
    pub fn phase(&self) -> &Phase {
        &self.settings.brief_status.phase
    }
}

impl Message {
    /// The key in the meta of a bot message that marks a reply that was stopped before it was whole.
    pub const STOPPED: &str = "stopped";

    /// Applies the patch to a message.
    pub fn change(&mut self, patch: &MessagePatch) {
        if let Some(text) = &patch.text {
            self.text.clone_from(text);
        }
        if patch.meta.is_empty() {
            return;
        }
        if self.meta.is_replaced_by(&patch.meta) {
            // The patch replaces everything, so its map is shared instead of copied.
            self.meta = patch.meta.clone();
        } else {
            merge(&mut self.meta, &patch.meta);
        }
    }
}

/// Sets each key of `patch`; a null removes the key.
pub fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            target.insert(key.clone(), value.clone());
        }
    }
}

/// Puts a value at a path of a message's meta, creating objects on the way.
pub fn place(meta: &mut Map<String, Value>, slot: &MetaPath, value: Value) {
    let mut keys = slot.keys().peekable();
    let mut here = meta;
    while let Some(key) = keys.next() {
        if keys.peek().is_none() {
            here.insert(key.to_owned(), value);
            return;
        }
        let below = here.entry(key).or_insert_with(|| json!({}));
        if !below.is_object() {
            *below = json!({});
        }
        let Value::Object(map) = below else { return };
        here = map;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_reads_and_writes_the_documents_json() {
        let documented = json!({
            "id": "main",
            "messages": [{
                "id": "msg_1", "sender": "bot", "text": "hello", "timestamp": 1,
                "meta": { "_thread": { "id": "sub_1", "messages": [], "settings": { "briefStatus": { "phase": "initial_phase" } } } }
            }],
            "settings": {
                "briefStatus": { "phase": "data_analysis", "note": "kept" },
                "_phaseUpdateSuggestion": { "phase": "completed" },
                "colour": "blue"
            },
            "meta": { "dataSource": "a.csv" }
        });
        let thread: Thread = serde_json::from_value(documented.clone()).unwrap();
        assert_eq!(thread.phase().as_str(), "data_analysis");
        assert_eq!(serde_json::to_value(&thread).unwrap(), documented);
    }

    #[test]
    fn a_patch_changes_what_it_names_and_nothing_else() {
        let of = |meta: Value| serde_json::from_value::<Meta>(meta).unwrap();
        let (id, text) = ("m".into(), "said".to_owned());
        let mut message =
            Message { id, sender: Sender::Bot, text, timestamp: Timestamp(1), meta: of(json!({ "a": 1, "b": 2 })) };
        let steps = [
            (json!({ "a": 3 }), json!({ "a": 3, "b": 2 })),
            (json!({ "b": null }), json!({ "a": 3 })),
            (json!({}), json!({ "a": 3 })),
            (json!({ "a": 4, "c": 5 }), json!({ "a": 4, "c": 5 })),
            (json!({ "a": null, "c": 6 }), json!({ "c": 6 })),
            (json!({ "c": 7, "z": null }), json!({ "c": 7 })),
        ];
        for (patch, after) in steps {
            message.change(&MessagePatch { text: None, meta: of(patch) });
            assert_eq!(json!(message.meta), after);
        }
        assert_eq!(message.text, "said");
    }

    #[test]
    fn a_value_can_be_placed_below_keys_that_do_not_exist_yet() {
        let mut meta = Map::new();
        place(&mut meta, &MetaPath::new("meta.threads.analysis").unwrap(), json!(1));
        place(&mut meta, &MetaPath::new("meta.threads.review").unwrap(), json!(2));
        assert_eq!(Value::Object(meta), json!({ "threads": { "analysis": 1, "review": 2 } }));
    }
}
