//! What waits for a person, as a form that a client can show one, and what they said into it.

use serde_json::{Map, Value, json};

use crate::work::asking;

/// A form for each thing that waits; none where nothing can be shown as one.
pub(super) fn forms(approvals: &[Value]) -> Option<Map<String, Value>> {
    let forms: Map<String, Value> =
        approvals.iter().filter_map(|it| Some((it["id"].as_str()?.to_owned(), form(it)?))).collect();
    Some(forms).filter(|forms| !forms.is_empty())
}

/// Whether the client has come back and the person would not say anything: it is not asked once more.
pub(super) fn is_put_off(params: &Map<String, Value>) -> bool {
    let responses = params.get("inputResponses").and_then(Value::as_object);
    responses.is_some_and(|all| !all.is_empty() && all.values().all(|response| response["action"] == "cancel"))
}

/// What was said about each thing that waits, as the route wants it.
pub(super) fn words(approvals: &[Value], params: &Map<String, Value>) -> Vec<(String, Value)> {
    let Some(responses) = params.get("inputResponses").and_then(Value::as_object) else { return Vec::new() };
    let said = |approval: &Value| {
        let id = approval["id"].as_str()?;
        Some((id.to_owned(), word(approval, responses.get(id)?)?))
    };
    approvals.iter().filter_map(said).collect()
}

/// How a thing that waits is answered.
enum Kind<'a> {
    Agreement,
    Words(&'a Value),
    Form(&'a Value),
    Doubt,
    Parked,
}

fn kind(approval: &Value) -> Option<Kind<'_>> {
    let wanted = &approval["wanted"];
    Some(match approval["kind"].as_str()? {
        "approval" => Kind::Agreement,
        "question" if wanted.get("text").is_some() => Kind::Words(&wanted["text"]["options"]),
        "question" if wanted.get("form").is_some() => Kind::Form(&wanted["form"]["schema"]),
        "question" => Kind::Agreement,
        "in_doubt" => Kind::Doubt,
        "parked" => Kind::Parked,
        _ => return None,
    })
}

fn form(approval: &Value) -> Option<Value> {
    let yes = json!({ "approved": { "type": "boolean", "title": "Agreed?" }, "reason": { "type": "string", "title": "Why" } });
    let object =
        |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let schema = match kind(approval)? {
        Kind::Agreement => object(yes, json!(["approved"])),
        Kind::Words(options) => {
            let mut answer = json!({ "type": "string", "title": "Answer" });
            if options.as_array().is_some_and(|options| !options.is_empty()) {
                answer["enum"] = options.clone();
            }
            object(json!({ "answer": answer }), json!(["answer"]))
        }
        Kind::Form(schema) => schema.clone(),
        Kind::Doubt => {
            let outcome = json!({ "type": "string", "title": "Was it done?", "enum": ["done", "not_done", "again"] });
            object(json!({ "outcome": outcome, "result": { "type": "string", "title": "What you found" } }), json!(["outcome"]))
        }
        Kind::Parked => object(json!({ "again": { "type": "boolean", "title": "Try again?" } }), json!(["again"])),
    };
    let params = json!({ "mode": "form", "message": asking(approval), "requestedSchema": schema });
    Some(json!({ "method": "elicitation/create", "params": params }))
}

fn word(approval: &Value, response: &Value) -> Option<Value> {
    let content = &response["content"];
    match (response["action"].as_str()?, kind(approval)?) {
        ("accept", Kind::Agreement) => {
            let reason = content["reason"].as_str().unwrap_or_default();
            Some(json!({ "approved": content["approved"].as_bool()?, "reason": reason }))
        }
        ("accept", Kind::Words(_)) => Some(json!({ "answer": content["answer"] })),
        ("accept", Kind::Form(_)) => Some(json!({ "answer": content })),
        ("accept", Kind::Doubt) => Some(match content["result"].as_str().filter(|result| !result.is_empty()) {
            Some(result) if content["outcome"] != "again" => json!({ "outcome": content["outcome"], "result": result }),
            _ => json!({ "outcome": content["outcome"] }),
        }),
        ("accept", Kind::Parked) => (content["again"] == true).then(|| json!({ "outcome": "again" })),
        ("decline", Kind::Agreement | Kind::Words(_) | Kind::Form(_)) => {
            Some(json!({ "approved": false, "reason": "the person declined" }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_becomes_a_form_and_the_form_a_word() {
        let check = |approval: Value, fields: &[&str], response: Value, want: Option<Value>| {
            let form = form(&approval).unwrap();
            let properties = form["params"]["requestedSchema"]["properties"].as_object().unwrap();
            assert_eq!(properties.keys().map(String::as_str).collect::<Vec<_>>(), fields, "{form}");
            assert_eq!(word(&approval, &response), want, "{approval} {response}");
        };
        let accept = |content: Value| json!({ "action": "accept", "content": content });
        let approval = json!({ "id": "1.0", "kind": "approval", "question": "may I?", "agentId": "root" });
        let yes = json!({ "approved": true, "reason": "" });
        check(approval.clone(), &["approved", "reason"], accept(json!({ "approved": true })), Some(yes));
        let declined = json!({ "approved": false, "reason": "the person declined" });
        check(approval.clone(), &["approved", "reason"], json!({ "action": "decline" }), Some(declined));
        check(approval, &["approved", "reason"], json!({ "action": "cancel" }), None);
        let question =
            json!({ "id": "1.0", "kind": "question", "question": "which?", "wanted": { "text": { "options": ["a"] } } });
        check(question, &["answer"], accept(json!({ "answer": "a" })), Some(json!({ "answer": "a" })));
        let schema = json!({ "type": "object", "properties": { "n": { "type": "number" } } });
        let form = json!({ "id": "1.0.2", "kind": "question", "wanted": { "form": { "schema": schema } } });
        check(form, &["n"], accept(json!({ "n": 2 })), Some(json!({ "answer": { "n": 2 } })));
        let doubt = json!({ "id": "1.0", "kind": "in_doubt", "call": { "tool": "write", "arguments": "{}" } });
        check(
            doubt,
            &["outcome", "result"],
            accept(json!({ "outcome": "again", "result": "" })),
            Some(json!({ "outcome": "again" })),
        );
        let parked = json!({ "id": "7", "kind": "parked", "failure": { "code": "c", "message": "m" } });
        check(parked, &["again"], accept(json!({ "again": true })), Some(json!({ "outcome": "again" })));
    }
}
