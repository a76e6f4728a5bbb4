//! Upgrading stored events: every one has a version, and old ones are converted when they are read.

use serde_json::Value;

use crate::Event;

/// The version that this code writes. Raise it, and add a step, with every change of the event format.
pub const EVENT_VERSION: u32 = 6;

/// One step per version: the first turns a body of version 1 into one of version 2, and so on.
const STEPS: &[fn(Value) -> Value] = &[to_version_2, to_version_3, to_version_4, to_version_5, to_version_6];

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
    /// It is not an event.
    #[error("the event cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// Reads a stored event of any version so far.
pub fn decode_event(version: u32, body: &[u8]) -> Result<Event, BadEvent> {
    if version == EVENT_VERSION {
        return Ok(serde_json::from_slice(body)?);
    }
    decode_with(STEPS, version, body)
}

fn decode_with(steps: &[fn(Value) -> Value], version: u32, body: &[u8]) -> Result<Event, BadEvent> {
    let known = steps.len() as u32 + 1;
    if version > known || version == 0 {
        return Err(BadEvent::TooNew { version, known });
    }
    let old: Value = serde_json::from_slice(body)?;
    let new = steps.iter().skip(version as usize - 1).fold(old, |body, step| step(body));
    Ok(serde_json::from_value(new)?)
}

/// Version 6 added memories.
fn to_version_6(body: Value) -> Value {
    body
}

/// Version 5 added model settings to roles and conversations.
fn to_version_5(body: Value) -> Value {
    body
}

/// Version 4 added who made a decision, and whose agents a lasting approval covers. Before it only crashes were dead-lettered.
fn to_version_4(mut body: Value) -> Value {
    if let Some(fields) = body.get_mut("messageDeadLettered").and_then(Value::as_object_mut) {
        fields.insert("crashed".to_owned(), true.into());
    }
    body
}

/// Version 3 added conversations and the person who sent a message.
fn to_version_3(body: Value) -> Value {
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
        let steps: [fn(Value) -> Value; 2] =
            [|body| json!({ "droppedSuggestion": body["dropped"] }), |_| json!("suggestionDropped")];
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
}
