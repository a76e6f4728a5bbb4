//! Elicitation: a pending approval as a form that a client shows to a person, and the decision in the filled-in form.

use polis_api::{Approval, Decision, DecisionOutcome, DecisionRequest, Pending};
use polis_domain::Wanted;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::problem::Problem;
use crate::task_follower::describe_approval;

/// A form for each thing that waits; none where nothing waits.
pub(super) fn forms(approvals: &[Approval]) -> Option<Map<String, Value>> {
    let forms: Map<String, Value> = approvals.iter().map(|approval| (approval.id.clone(), form(approval))).collect();
    Some(forms).filter(|forms| !forms.is_empty())
}

/// Whether the client has come back and the person would not say anything: it is not asked once more.
pub(super) fn is_declined(params: &Map<String, Value>) -> bool {
    let responses = params.get("inputResponses").and_then(Value::as_object);
    responses.is_some_and(|all| !all.is_empty() && all.values().all(|response| response["action"] == "cancel"))
}

/// What was decided about each thing that waits.
pub(super) fn decisions(approvals: &[Approval], params: &Map<String, Value>) -> Result<Vec<(String, Decision)>, Problem> {
    let Some(responses) = params.get("inputResponses").and_then(Value::as_object) else { return Ok(Vec::new()) };
    let responded = approvals.iter().filter_map(|approval| Some((approval, responses.get(&approval.id)?)));
    let decided = |(approval, response): (&Approval, &Value)| {
        let decision = decision(approval, response).transpose()?;
        Some(decision.map(|decision| (approval.id.clone(), decision)))
    };
    responded.filter_map(decided).collect()
}

/// What was decided about one thing; none where the person did not want to decide.
pub(super) fn decision(approval: &Approval, response: &Value) -> Result<Option<Decision>, Problem> {
    let decided = request(approval, response).map(Decision::try_from).transpose();
    decided.map_err(|why| Problem::bad_request("bad_arguments", why))
}

pub(super) fn form(approval: &Approval) -> Value {
    let yes = json!({ "approved": { "type": "boolean", "title": "Agreed?" }, "reason": { "type": "string", "title": "Why" } });
    let object =
        |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let schema = match &approval.pending {
        Pending::Question { wanted: Wanted::Text { options }, .. } => {
            let mut answer = json!({ "type": "string", "title": "Answer" });
            if !options.is_empty() {
                answer["enum"] = json!(options);
            }
            object(json!({ "answer": answer }), json!(["answer"]))
        }
        Pending::Question { wanted: Wanted::Form { schema }, .. } => schema.clone(),
        Pending::Approval { .. } | Pending::Question { .. } => object(yes, json!(["approved"])),
        Pending::InDoubt { .. } => {
            let outcome = json!({ "type": "string", "title": "Was it done?", "enum": ["done", "not_done", "again"] });
            object(json!({ "outcome": outcome, "result": { "type": "string", "title": "What you found" } }), json!(["outcome"]))
        }
        Pending::Parked { .. } => object(json!({ "again": { "type": "boolean", "title": "Try again?" } }), json!(["again"])),
    };
    let params = json!({ "mode": "form", "message": describe_approval(approval), "requestedSchema": schema });
    json!({ "method": "elicitation/create", "params": params })
}

/// The decision in what a person filled in; none where they did not want to decide.
fn request(approval: &Approval, response: &Value) -> Option<DecisionRequest> {
    let content = &response["content"];
    let text = |name: &str| content[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let (verdict, answer, outcome) = match (response["action"].as_str()?, &approval.pending) {
        ("accept", Pending::Question { wanted: Wanted::Text { .. }, .. }) => (None, Some(content["answer"].clone()), None),
        ("accept", Pending::Question { wanted: Wanted::Form { .. }, .. }) => (None, Some(content.clone()), None),
        ("accept", Pending::Approval { .. } | Pending::Question { .. }) => {
            (Some((content["approved"].as_bool()?, text("reason").unwrap_or_default())), None, None)
        }
        ("accept", Pending::InDoubt { .. }) => (None, None, Some(DecisionOutcome::deserialize(&content["outcome"]).ok()?)),
        ("accept", Pending::Parked { .. }) => (None, None, Some(DecisionOutcome::Again).filter(|_| content["again"] == true)),
        ("decline", Pending::Approval { .. } | Pending::Question { .. }) => {
            (Some((false, "the person declined".to_owned())), None, None)
        }
        _ => return None,
    };
    if matches!(approval.pending, Pending::Parked { .. }) && outcome.is_none() {
        return None;
    }
    let result = text("result").filter(|_| outcome.as_ref().is_some_and(|outcome| *outcome != DecisionOutcome::Again));
    let (approved, reason) = verdict.map_or((None, String::new()), |(approved, reason)| (Some(approved), reason));
    Some(DecisionRequest { approved, reason, answer, outcome, result, ..DecisionRequest::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_becomes_a_form_and_the_form_a_decision() {
        let check = |pending: Value, fields: &[&str], response: Value, want: Option<Value>| {
            let mut approval = json!({ "id": "1.0", "agentId": "root", "taskId": "t", "thread": "root", "path": "" });
            approval.as_object_mut().unwrap().extend(pending.as_object().unwrap().clone());
            let approval: Approval = serde_json::from_value(approval).unwrap();
            let form = form(&approval);
            let properties = form["params"]["requestedSchema"]["properties"].as_object().unwrap();
            assert_eq!(properties.keys().map(String::as_str).collect::<Vec<_>>(), fields, "{form}");
            let decided = request(&approval, &response).map(|request| Decision::try_from(request).unwrap());
            assert_eq!(decided, want.map(|want| serde_json::from_value(want).unwrap()), "{approval:?} {response}");
        };
        let accept = |content: Value| json!({ "action": "accept", "content": content });
        let approval = json!({ "kind": "approval", "question": "may I?", "details": null });
        let yes = json!({ "approved": true, "reason": "" });
        check(approval.clone(), &["approved", "reason"], accept(json!({ "approved": true })), Some(yes));
        let declined = json!({ "approved": false, "reason": "the person declined" });
        check(approval.clone(), &["approved", "reason"], json!({ "action": "decline" }), Some(declined));
        check(approval, &["approved", "reason"], json!({ "action": "cancel" }), None);
        let question = json!({ "kind": "question", "question": "which?", "wanted": { "text": { "options": ["a"] } } });
        check(question, &["answer"], accept(json!({ "answer": "a" })), Some(json!({ "answer": "a" })));
        let schema = json!({ "type": "object", "properties": { "n": { "type": "number" } } });
        let form = json!({ "kind": "question", "question": "?", "wanted": { "form": { "schema": schema } } });
        check(form, &["n"], accept(json!({ "n": 2 })), Some(json!({ "answer": { "n": 2 } })));
        let doubt =
            json!({ "kind": "in_doubt", "call": { "callId": "c", "tool": "write", "arguments": "{}", "class": "write" } });
        let again = Some(json!({ "outcome": "again" }));
        check(doubt, &["outcome", "result"], accept(json!({ "outcome": "again", "result": "" })), again.clone());
        let parked = json!({ "kind": "parked", "failure": { "code": "c", "message": "m" } });
        check(parked.clone(), &["again"], accept(json!({ "again": true })), again);
        check(parked, &["again"], accept(json!({ "again": false })), None);
    }
}
