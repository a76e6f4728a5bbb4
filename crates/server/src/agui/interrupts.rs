//! What waits for a person, as interrupts; and a client's answer to one, as a word on it.

use std::sync::Arc;

use polis_domain::{TaskId, Wanted, iso};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::event::Interrupt;
use polis_api::{Approval, Pending};

/// A client's answer to an interrupt.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resume {
    pub(crate) interrupt_id: String,
    pub(crate) status: Status,
    #[serde(default)]
    pub(crate) payload: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Resolved,
    Cancelled,
}

/// What is to be done about an answer.
pub(crate) enum ResumeAction {
    Decide(polis_api::Decision),
    /// Whoever asked does not want the work any more.
    Cancel(TaskId),
}

/// An interrupt for a pending approval. `call` is its tool call id, and the sub-agent that made the call.
pub(crate) fn interrupt(approval: &Approval, call: Option<(Arc<str>, Option<Arc<str>>)>) -> Interrupt {
    let (tool_call_id, subagent_run_id) = call.unzip();
    let (reason, message, response_schema, expires_at) = match &approval.pending {
        Pending::Approval { question, call, deadline, .. } => {
            let reason = if call.is_some() && tool_call_id.is_some() { "tool_call" } else { "confirmation" };
            (reason, question.clone(), agreement(call.is_some()), *deadline)
        }
        Pending::Question { question, wanted, deadline, .. } => ("input_required", question.clone(), answer(wanted), *deadline),
        Pending::InDoubt { call } => {
            let message = format!(
                "`{}` was started, and it is unknown whether it was done. Check, then answer done, not_done, or again to repeat it.",
                call.tool
            );
            let outcome = json!({ "type": "string", "enum": ["done", "not_done", "again"] });
            let properties = json!({ "outcome": outcome, "result": { "type": "string" } });
            ("polis:in_doubt", message, object(&properties, &["outcome"]), None)
        }
        Pending::Parked { failure } => {
            let properties = json!({ "outcome": { "type": "string", "enum": ["again"] } });
            ("polis:parked", format!("It is parked: {failure}"), object(&properties, &["outcome"]), None)
        }
    };
    let message = match approval.decided_by_others() {
        Some(who) => format!("{message} ({who})"),
        None => message,
    };
    let metadata = json!({ "polis": serde_json::to_value(approval).unwrap_or_default() });
    Interrupt {
        id: approval.id.clone(),
        reason: reason.to_owned(),
        message,
        tool_call_id,
        response_schema,
        expires_at: expires_at.map(iso::write),
        subagent_run_id: subagent_run_id.flatten(),
        metadata,
    }
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

fn agreement(has_call: bool) -> Value {
    let mut properties = json!({ "approved": { "type": "boolean" }, "reason": { "type": "string" } });
    if let (true, Some(properties)) = (has_call, properties.as_object_mut()) {
        let edited =
            json!({ "type": "object", "description": "The complete new arguments for the call; they are not merged." });
        properties.insert("editedArgs".to_owned(), edited);
        let always = json!({
            "type": "string",
            "enum": ["agent", "task", "tool", "reads"],
            "description": "Do not ask again about similar calls: by this agent, for this request, or by any agent; or about any tool of its server that only reads."
        });
        properties.insert("always".to_owned(), always);
        let matching = json!({ "type": "object", "description": "With `always`: which calls, as {\"argument\": {\"is\"|\"like\"|\"atMost\": …}}; what `details.always` proposes without it." });
        properties.insert("where".to_owned(), matching);
    }
    object(&properties, &["approved"])
}

fn answer(wanted: &Wanted) -> Value {
    let answer = match wanted {
        Wanted::Agreement | Wanted::Visit { .. } => return agreement(false),
        Wanted::Text { options } if options.is_empty() => json!({ "type": "string" }),
        Wanted::Text { options } => json!({ "type": "string", "enum": options }),
        Wanted::Form { schema } => schema.clone(),
    };
    object(&json!({ "answer": answer }), &["answer"])
}

/// What an answer to an interrupt comes to; else what is wrong with it.
pub(crate) fn decision(approval: &Approval, resume: &Resume) -> Result<ResumeAction, String> {
    let body = match (&approval.pending, resume.status) {
        (Pending::InDoubt { .. } | Pending::Parked { .. }, Status::Cancelled) => {
            return Ok(ResumeAction::Cancel(approval.task_id.clone()));
        }
        (Pending::Question { server: Some(_), .. }, Status::Cancelled) => json!({ "outcome": "cancelled" }),
        (Pending::Approval { .. } | Pending::Question { .. }, Status::Cancelled) => {
            json!({ "approved": false, "reason": "the person dismissed the question" })
        }
        (Pending::Approval { .. }, Status::Resolved) => body_of(&resume.payload),
        (Pending::Question { .. }, Status::Resolved) => match &resume.payload {
            Value::Object(payload) if payload.contains_key("answer") || payload.contains_key("approved") => {
                body_of(&resume.payload)
            }
            Value::Bool(approved) => json!({ "approved": approved }),
            other => json!({ "answer": other }),
        },
        (Pending::InDoubt { .. } | Pending::Parked { .. }, Status::Resolved) => match &resume.payload {
            Value::String(outcome) => json!({ "outcome": outcome }),
            other => other.clone(),
        },
    };
    let word = serde_json::from_value(body);
    word.map(ResumeAction::Decide).map_err(|error| format!("the answer to {} does not fit: {error}", approval.id))
}

/// The words of the protocol in ours.
fn body_of(payload: &Value) -> Value {
    let given = match payload {
        Value::Bool(approved) => return json!({ "approved": approved }),
        Value::Object(given) => given,
        _ => return Value::Null,
    };
    let names = [
        ("approved", "approved"),
        ("reason", "reason"),
        ("editedArgs", "arguments"),
        ("always", "always"),
        ("where", "where"),
        ("answer", "answer"),
    ];
    let taken = names.iter().filter_map(|(theirs, ours)| Some(((*ours).to_owned(), given.get(*theirs)?.clone())));
    Value::Object(taken.filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use polis_domain::Verdict;

    use super::*;

    fn resolved(payload: Value) -> Resume {
        Resume { interrupt_id: "1.0".to_owned(), status: Status::Resolved, payload }
    }

    #[test]
    fn an_answer_in_the_protocols_words_is_a_verdict_in_ours() {
        let payload = json!({ "approved": true, "editedArgs": { "to": "bo" }, "reason": "fine", "more": 1 });
        let Ok(word) = serde_json::from_value::<polis_api::Decision>(body_of(&payload)) else { panic!("no word") };
        let polis_api::Decision::Verdict(verdict) = word else { panic!("no verdict") };
        let want = Verdict { arguments: Some("{\"to\":\"bo\"}".into()), reason: "fine".to_owned(), ..Verdict::yes() };
        assert_eq!(verdict, want);
        assert_eq!(body_of(&json!(false)), json!({ "approved": false }));
        assert!(serde_json::from_value::<polis_api::Decision>(body_of(&resolved(json!("yes")).payload)).is_err());
    }
}
