//! What an erasure leaves of events, and which events belong to a conversation.

use polis_domain::*;
use serde_json::{Value, json};

use crate::support::{NOON, four_agents, personal};

/// Stands wherever an event has content.
const CANARY: &str = "Kanarienvogel-7731";

fn message() -> Value {
    json!({ "id": "m", "sender": "bot", "text": CANARY, "timestamp": 1, "meta": { "note": CANARY, "artifacts": [artifact()] } })
}

fn artifact() -> Value {
    json!({ "id": "07".repeat(32), "name": CANARY, "mediaType": "text/plain", "bytes": 3 })
}

fn failure() -> Value {
    json!({ "code": "no_luck", "message": CANARY })
}

fn envelope() -> Value {
    json!({
        "id": "e", "from": "user", "to": "c", "taskId": "t", "kind": { "failure": failure() },
        "payload": { "text": CANARY, "meta": { "ownWords": CANARY, "artifacts": [artifact()] } },
    })
}

fn task() -> Value {
    json!({ "id": "t", "name": CANARY, "type": "action", "message": CANARY, "meta": { "query": CANARY } })
}

fn question(wanted: Value) -> Value {
    json!({ "text": CANARY, "wanted": wanted, "patienceMs": 7 })
}

fn call() -> Value {
    json!({
        "callId": "call-1", "tool": "read_file", "wrote": CANARY, "arguments": json!({ "path": CANARY }).to_string(),
        "class": "read", "ruling": { "ask": CANARY }, "fresh": CANARY,
        "flow": { "outside": CANARY, "file": CANARY, "target": CANARY, "stores": true },
    })
}

fn reply() -> Value {
    json!({
        "text": CANARY, "reasoning": CANARY, "toolCalls": [{ "id": "call-1", "name": "read_file", "arguments": CANARY }],
        "model": "v/m", "echo": { "signed": CANARY }, "citations": [{ "title": CANARY, "url": CANARY }],
        "vendorCalls": [{ "tool": "web_search", "input": CANARY, "output": CANARY, "found": [{ "title": CANARY }], "uses": 2 }],
    })
}

fn verdict() -> Value {
    json!({
        "approved": true, "reason": CANARY, "arguments": CANARY, "where": { "path": { "is": CANARY } }, "answer": CANARY,
        "artifacts": [artifact()], "rules": { "tools": [CANARY] },
    })
}

fn settings() -> Value {
    json!({ "briefStatus": { "phase": "drafting", "note": CANARY }, "colour": CANARY })
}

/// Every kind of event that can have content, with the canary in each of its fields.
fn events() -> Vec<Value> {
    let started = |effect: Value| json!({ "effectStarted": { "id": "7.0", "effect": effect } });
    let ended = |outcome: Value| json!({ "effectEnded": { "id": "7.0", "outcome": outcome } });
    let approval = |wanted: Value| {
        let approval = json!({ "question": CANARY, "details": { "why": CANARY }, "call": call(), "wanted": wanted, "change": { "title": CANARY } });
        started(json!({ "approval": approval }))
    };
    let ruled = |ruling: Value| {
        let mut call = call();
        call["ruling"] = ruling;
        started(json!({ "tool": call }))
    };
    let asked = |inquiry: Value| json!({ "callInquired": { "id": "7.0", "by": "server", "inquiry": inquiry } });
    let answered = |answer: Value| json!({ "callAnswered": { "id": "7.0.9", "answer": answer } });
    let settled = |settlement: Value| json!({ "turnSettled": { "turn": 7, "settlement": settlement, "message": message(), "index": 1, "next": [task()] } });
    vec![
        json!({ "conversationStarted": { "agent": "c", "role": "root", "person": "ann", "title": CANARY, "messages": [message()] } }),
        json!({ "conversationChanged": { "agent": "c", "change": { "title": CANARY, "pinned": true } } }),
        json!({ "agentDismissed": { "agent": "c", "caller": "user", "reason": CANARY } }),
        json!({ "messageSent": { "envelope": envelope() } }),
        json!({ "messagesTaken": { "by": "7.0", "agent": "c", "envelopes": [envelope()] } }),
        json!({ "turnStarted": { "agent": "c", "behaviour": "b", "phase": "drafting", "task": task(), "origin": "inbox", "index": 1 } }),
        started(json!({ "tool": call() })),
        started(json!({ "ask": { "envelope": envelope() } })),
        started(json!({ "unit": { "thread": "s", "behaviour": "b", "task": task() } })),
        started(json!({ "terminate": { "agent": "d", "reason": CANARY, "deadline": 9 } })),
        started(json!({ "keep": artifact() })),
        approval(json!("agreement")),
        approval(json!({ "text": { "options": [CANARY] } })),
        approval(json!({ "form": { "schema": { "title": CANARY } } })),
        approval(json!({ "visit": { "url": CANARY } })),
        ruled(json!({ "askEach": CANARY })),
        ruled(json!({ "deny": CANARY })),
        ruled(json!({ "stop": CANARY })),
        ruled(json!({ "person": question(json!({ "text": { "options": [CANARY] } })) })),
        ruled(json!({ "refuse": failure() })),
        json!({ "effectRetried": { "id": "7.0", "attempt": {
            "model": "v/m", "attempt": 1, "maxRetries": 3, "failure": failure(), "delayMs": 1, "next": "v/m" } } }),
        ended(json!({ "reply": reply() })),
        ended(json!({ "result": { "content": CANARY, "isError": true, "artifacts": [artifact()], "media": [artifact()] } })),
        ended(json!({ "answer": CANARY })),
        ended(json!({ "verdict": verdict() })),
        ended(json!({ "kept": artifact() })),
        ended(json!({ "failed": failure() })),
        asked(json!({ "person": { "question": question(json!("agreement")), "details": CANARY, "about": CANARY } })),
        asked(
            json!({ "model": { "model": "v/m", "request": "00000000000000ff", "prompt": CANARY, "reserve": {}, "about": CANARY } }),
        ),
        answered(json!({ "verdict": verdict() })),
        answered(json!({ "reply": reply() })),
        answered(json!({ "failed": failure() })),
        json!({ "effectRefused": { "id": "7.0", "failure": failure() } }),
        json!({ "messageAdded": { "by": "7.0", "index": 1, "message": message() } }),
        json!({ "messageUpdated": { "by": "7.0", "index": 1, "patch": { "text": CANARY, "meta": { "note": CANARY } } } }),
        json!({ "settingsUpdated": { "by": "7.0", "settings": settings() } }),
        json!({ "planSet": { "by": "7.0", "plan": { "id": CANARY, "strategy": { "name": CANARY, "reason": CANARY }, "result": CANARY,
            "steps": [{ "id": CANARY, "text": CANARY, "status": "failed", "target": CANARY, "result": CANARY }] } } }),
        json!({ "contextCompressed": { "by": "7.0", "from": 3, "summaries": [CANARY, CANARY] } }),
        json!({ "contextKept": { "by": "7.0", "failure": failure() } }),
        json!({ "threadOpened": { "by": "7.0", "agent": "c", "parent": "c", "settings": settings(), "meta": { "order": CANARY } } }),
        json!({ "threadLinked": { "by": "7.0", "index": 1, "slot": "meta._thread", "child": "s", "held": CANARY } }),
        json!({ "turnCrashed": { "turn": 7, "failure": failure(), "until": 9 } }),
        json!({ "messageDeadLettered": { "agent": "c", "task": "t", "turn": 7, "failure": failure(), "crashed": false } }),
        json!({ "turnParked": { "turn": 7, "reason": failure() } }),
        settled(json!("done")),
        settled(json!({ "failed": failure() })),
        settled(json!({ "cancelled": failure() })),
    ]
}

#[test]
fn nothing_that_somebody_wrote_is_left_of_an_event() {
    for body in events() {
        let event: Event = serde_json::from_value(body.clone()).unwrap_or_else(|error| panic!("{error}: {body}"));
        assert!(serde_json::to_string(&event).unwrap().contains(CANARY));
        let redacted = event.redacted();
        let text = serde_json::to_string(&redacted).unwrap();
        assert!(!text.contains(CANARY) && !text.contains(&"07".repeat(32)), "{text}");
        assert_eq!(decode_event(EVENT_VERSION, text.as_bytes()).unwrap(), redacted, "it is an event");
        assert_eq!(redacted.redacted(), redacted);
        let recorded = |event: &Event| Recorded { seq: Seq(9), at: Timestamp(1), thread: None, event: event.clone() };
        assert_eq!(recorded(&redacted).turn(), recorded(&event).turn());
        assert_eq!(recorded(&redacted).artifacts(), []);
        let kind = |event: &Event| serde_json::to_value(event).unwrap().as_object().unwrap().keys().next().cloned();
        assert_eq!(kind(&redacted), kind(&event));
    }
}

#[test]
fn a_file_that_an_erased_conversation_wrote_is_still_known_to_have_outside_content() {
    let flow = |outside: Option<&str>, file: &str, stores: bool| Flow {
        outside: outside.map(Into::into),
        private: true,
        recalls: !stores,
        stores,
        file: Some(file.into()),
        ..Flow::default()
    };
    let declared = |turn, flow: Flow| {
        let call = Call { tool: "t".into(), arguments: "{}".into(), flow, ..Call::default() };
        Event::EffectStarted { id: EffectId { turn, n: 0 }, effect: Effect::Tool(Box::new(call)), permit: None }
    };
    let mut society = four_agents();
    let mut turn_of = |agent: &str, task: &str| {
        let envelope = Envelope { task_id: task.into(), ..Envelope::clone(&personal(agent, task)) };
        society.command(Command::Send { envelope: envelope.into() }, NOON).unwrap();
        *society.spine.turns.keys().next_back().unwrap()
    };
    let (writer, reader) = (turn_of("a", "one"), turn_of("b", "two"));
    let exposed = |first: Event| {
        let mut spine = society.spine.clone();
        for event in [first, declared(reader, flow(None, "copy.txt", false))] {
            spine.evolve(&Recorded { seq: spine.seq.next(), at: NOON, thread: None, event });
        }
        spine.trails.exposes(&"b".into(), &"two".into(), &Flow { sends: true, ..Flow::default() }).len()
    };
    let wrote = declared(writer, flow(Some("a page"), "copy.txt", true));
    assert_eq!([exposed(wrote.clone()), exposed(wrote.redacted())], [1, 1]);
    assert_eq!(exposed(declared(writer, flow(Some("a page"), "other.txt", true)).redacted()), 0);
}
