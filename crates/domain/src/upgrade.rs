//! Upgrading stored events: every one has a version, and old ones are converted when they are read.

use serde_json::Value;

use crate::{Event, strict};

/// The version that this code writes. Every new variant or field of an event raises it, also one with a default: an older
/// polis then refuses the log as too new instead of dropping what it does not know. `event_versions.txt` lists what each
/// version looks like, and a test holds it against the types.
pub const EVENT_VERSION: u32 = 8;

/// Turns a body of one version into one of the next.
type Step = fn(Value) -> Value;

/// One entry per version but the last. None where the next version only adds to it.
const STEPS: &[Option<Step>] = &[
    Some(to_version_2),
    // Version 3 added conversations and the person who sent a message.
    None,
    Some(to_version_4),
    // Version 5 added model settings to roles and conversations.
    None,
    // Version 6 added memories.
    None,
    // From version 7 on unknown fields are refused.
    None,
    // Version 8 added erasures.
    None,
];

/// Events before this version may have fields that were removed without a trace; they are ignored.
const STRICT_SINCE: u32 = 7;

/// Why a stored event cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BadEvent {
    /// It was written by a newer version of Polis.
    #[error("the event has version {version}; this polis knows versions up to {known}. Use the newer polis that wrote it")]
    TooNew {
        /// The event's version.
        version: u32,
        /// The newest version that this code knows.
        known: u32,
    },
    /// It is an event, but it has a kind or fields that this version does not know.
    #[error(
        "the event has version {EVENT_VERSION} and {what}: another build of polis wrote it. Use the newest polis that was \
         used on this data"
    )]
    Unknown {
        /// What is not known.
        what: String,
    },
    /// It is not an event.
    #[error("the event cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

impl BadEvent {
    /// Whether a newer polis can read it.
    pub fn is_too_new(&self) -> bool {
        matches!(self, Self::TooNew { .. } | Self::Unknown { .. })
    }
}

/// Reads a stored event of any version so far.
pub fn decode_event(version: u32, body: &[u8]) -> Result<Event, BadEvent> {
    decode_with(STEPS, version, body)
}

fn decode_with(steps: &[Option<Step>], version: u32, body: &[u8]) -> Result<Event, BadEvent> {
    let known = steps.len() as u32 + 1;
    if version > known || version == 0 {
        return Err(BadEvent::TooNew { version, known });
    }
    let mut steps = steps.iter().skip(version as usize - 1).flatten().peekable();
    if steps.peek().is_none() {
        return if version >= STRICT_SINCE { decode_strictly(body) } else { Ok(serde_json::from_slice(body)?) };
    }
    let old: Value = serde_json::from_slice(body)?;
    Ok(serde_json::from_value(steps.fold(old, |body, step| step(body)))?)
}

/// Refuses what the types do not know, because using the event without it would be to drop it.
fn decode_strictly(body: &[u8]) -> Result<Event, BadEvent> {
    match strict::from_slice(body) {
        Ok((event, false)) => Ok(event),
        Ok((event, true)) => {
            let field = unknown_field(&serde_json::from_slice(body)?, &serde_json::to_value(event)?).unwrap_or_default();
            Err(BadEvent::Unknown { what: format!("a field that this polis does not know, `{field}`") })
        }
        Err(error) => match unknown_kind(body) {
            Some(kind) => Err(BadEvent::Unknown { what: format!("a kind that this polis does not know, `{kind}`") }),
            None => Err(error.into()),
        },
    }
}

/// A field of the stored JSON that is gone when the event is written again.
fn unknown_field(stored: &Value, again: &Value) -> Option<String> {
    match (stored, again) {
        (Value::Object(stored), Value::Object(again)) => stored.iter().find_map(|(name, value)| match again.get(name) {
            None => Some(name.clone()),
            Some(known) => unknown_field(value, known),
        }),
        (Value::Array(stored), Value::Array(again)) => {
            stored.iter().zip(again).find_map(|(stored, again)| unknown_field(stored, again))
        }
        _ => None,
    }
}

/// The name of an event's kind, if there is no such kind.
fn unknown_kind(body: &[u8]) -> Option<String> {
    let kind = match serde_json::from_slice(body).ok()? {
        Value::String(kind) => kind,
        Value::Object(fields) if fields.len() == 1 => fields.into_iter().next()?.0,
        _ => return None,
    };
    let error = serde_json::from_value::<Event>(serde_json::json!({ &kind: {} })).err()?.to_string();
    error.starts_with("unknown variant").then_some(kind)
}

/// Version 4 added who made a decision, and whose agents a lasting approval covers. Before it only crashes were dead-lettered.
fn to_version_4(mut body: Value) -> Value {
    if let Some(fields) = body.get_mut("messageDeadLettered").and_then(Value::as_object_mut) {
        fields.insert("crashed".to_owned(), true.into());
    }
    body
}

/// Version 1 called a message between agents a letter, and the permit of a model call its leave. Only names of our own are
/// changed, never data of a person or a model.
fn to_version_2(mut body: Value) -> Value {
    const EVENTS: &[(&str, &str)] =
        &[("letterSent", "messageSent"), ("lettersTaken", "messagesTaken"), ("letterSetAside", "messageDeadLettered")];
    for (before, now) in EVENTS {
        rename(&mut body, before, now);
    }
    for (path, before, now) in [
        ("/messageSent", "letter", "envelope"),
        ("/messagesTaken", "letters", "envelopes"),
        ("/effectStarted/effect/ask", "letter", "envelope"),
        ("/effectStarted", "leave", "permit"),
        ("/callInquired", "leave", "permit"),
    ] {
        if let Some(fields) = body.pointer_mut(path) {
            rename(fields, before, now);
        }
    }
    body
}

/// Gives a field of an object another name.
fn rename(object: &mut Value, before: &str, now: &str) {
    if let Some(fields) = object.as_object_mut()
        && let Some(value) = fields.remove(before)
    {
        fields.insert(now.to_owned(), value);
    }
}

const _: () = assert!(STEPS.len() as u32 + 1 == EVENT_VERSION, "each version but the last needs a step to the next");

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_of_an_older_version_is_brought_up_to_date_step_by_step() {
        let steps: [Option<Step>; 2] =
            [Some(|body| json!({ "droppedSuggestion": body["dropped"] })), Some(|_| json!("suggestionDropped"))];
        let read = |version, body: Value| decode_with(&steps, version, body.to_string().as_bytes());
        assert_eq!(read(1, json!({ "dropped": {} })).unwrap(), Event::SuggestionDropped);
        assert_eq!(read(2, json!({ "droppedSuggestion": {} })).unwrap(), Event::SuggestionDropped);
        assert_eq!(read(3, json!("suggestionDropped")).unwrap(), Event::SuggestionDropped);
        assert!(matches!(read(4, json!("suggestionDropped")), Err(BadEvent::TooNew { version: 4, known: 3 })));
    }

    #[test]
    fn events_of_the_first_version_are_read() {
        let envelope = json!({ "id": "m", "from": "user", "to": "root", "taskId": "t", "kind": "message",
            "payload": { "text": "a letter", "meta": { "letter": 1 } } });
        let ask = json!({ "ask": { "letter": envelope, "timeoutMs": null } });
        for (old, new) in [
            (json!({ "letterSent": { "letter": envelope } }), json!({ "messageSent": { "envelope": envelope } })),
            (
                json!({ "lettersTaken": { "agent": "root", "letters": [envelope], "by": "1.0" } }),
                json!({ "messagesTaken": { "agent": "root", "envelopes": [envelope], "by": "1.0" } }),
            ),
            (
                json!({ "effectStarted": { "id": "1.0", "effect": ask, "leave": { "timeMs": 5 } } }),
                json!({ "effectStarted": { "id": "1.0", "permit": { "timeMs": 5 },
                    "effect": { "ask": { "envelope": envelope, "timeoutMs": null } } } }),
            ),
        ] {
            let expected: Event = serde_json::from_value(new).unwrap();
            assert_eq!(decode_event(1, old.to_string().as_bytes()).unwrap(), expected);
        }
    }

    #[test]
    fn a_dead_letter_of_an_older_version_is_a_crash() {
        let fields = json!({ "agent": "kid", "task": "t", "turn": 7, "failure": { "code": "panicked", "message": "broken" } });
        for (version, name) in [(1, "letterSetAside"), (2, "messageDeadLettered"), (3, "messageDeadLettered")] {
            let read = decode_event(version, json!({ name: fields }).to_string().as_bytes()).unwrap();
            assert!(matches!(read, Event::MessageDeadLettered { crashed: true, .. }), "{read:?}");
        }
    }

    #[test]
    fn an_event_of_a_newer_version_is_refused_by_name() {
        let error = decode_event(EVENT_VERSION + 1, b"{}").unwrap_err();
        assert!(matches!(error, BadEvent::TooNew { .. }), "{error}");
        assert!(matches!(decode_event(EVENT_VERSION, b"{}"), Err(BadEvent::Unreadable(_))));
    }
    #[test]
    fn what_another_build_added_without_a_new_version_is_refused_as_too_new_and_never_dropped() {
        let turn = json!({ "turnRested": { "turn": 7 } });
        assert!(decode_event(EVENT_VERSION, turn.to_string().as_bytes()).is_ok());
        let failure = json!({ "code": "panicked", "message": "broken", "hint": "look" });
        for (body, word) in [
            (json!({ "turnRested": { "turn": 7, "since": 5 } }), "since"),
            (json!({ "turnCrashed": { "turn": 7, "until": 9, "failure": failure } }), "hint"),
            (json!({ "agentRenamed": { "agent": "root" } }), "agentRenamed"),
            (json!("societyPaused"), "societyPaused"),
        ] {
            let error = decode_event(EVENT_VERSION, body.to_string().as_bytes()).unwrap_err();
            assert!(error.is_too_new() && error.to_string().contains(&format!("`{word}`")), "{body}: {error}");
        }
        let broken = decode_event(EVENT_VERSION, json!({ "turnRested": {} }).to_string().as_bytes()).unwrap_err();
        assert!(matches!(broken, BadEvent::Unreadable(_)), "{broken}");
        // Earlier versions were not strict, and what they had must stay readable.
        assert!(decode_event(6, json!({ "turnRested": { "turn": 7, "since": 5 } }).to_string().as_bytes()).is_ok());
    }
}
