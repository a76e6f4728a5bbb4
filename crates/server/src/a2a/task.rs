//! A request as a task of the protocol: its state, what it waits for, what came of it.

use std::sync::Arc;

use polis_domain::{Artifact, Letter, Recorded, TaskId, iso};
use serde_json::{Value, json};

use super::Call;
use super::error::{fault, not_found};
use super::message::{context_id, write};
use crate::problem::Problem;
use crate::rpc::Fault;
use crate::tasks::{BUSY, busy};
use crate::work::{Standing, asking};

/// The artifact that the answer is.
pub(super) const ANSWER: &str = "answer";

pub(super) type Letters = Vec<(Recorded, Arc<Letter>)>;

/// What passed about a task; an error where there is none.
pub(super) async fn letters(call: &Call, task: &TaskId) -> Result<Letters, Fault> {
    let letters = call.peer.desk.society.letters(task).await.map_err(|rejected| fault(&Problem::from(rejected)))?;
    if letters.is_empty() { Err(not_found(task.as_str())) } else { Ok(letters) }
}

/// The conversation that a task belongs to; one of its own where nobody named one.
pub(super) fn context_of(letters: &Letters, task: &TaskId) -> String {
    letters.iter().find_map(|(_, letter)| context_id(letter)).unwrap_or(task.as_str()).to_owned()
}

/// A task as it is now, with at most so much of what passed.
pub(super) async fn told(call: &Call, task: &TaskId, length: Option<usize>) -> Result<Value, Fault> {
    // What passed is read after: of a task that is over all of it is there.
    let standing = call.peer.standing(task).await.map_err(|problem| fault(&problem))?;
    let letters = letters(call, task).await?;
    let context = context_of(&letters, task);
    let mut told = json!({ "id": task.as_str(), "contextId": context, "status": status(&standing, &letters, task) });
    let artifacts = artifacts(call, &standing, &letters);
    if !artifacts.is_empty() {
        told["artifacts"] = json!(artifacts);
    }
    let skipped = letters.len().saturating_sub(length.unwrap_or(usize::MAX));
    let history: Vec<Value> = letters.iter().skip(skipped).map(|(_, letter)| write(letter, &context)).collect();
    if !history.is_empty() {
        told["history"] = json!(history);
    }
    Ok(told)
}

/// The state that a standing is.
pub(super) fn state(standing: &Standing, letters: &Letters) -> &'static str {
    match &*standing.status {
        "needs_person" => "TASK_STATE_INPUT_REQUIRED",
        "done" => "TASK_STATE_COMPLETED",
        "failed" => "TASK_STATE_FAILED",
        "cancelled" => "TASK_STATE_CANCELED",
        // It lies in an inbox.
        "waiting" if letters.len() == 1 && !standing.has_begun => "TASK_STATE_SUBMITTED",
        _ => "TASK_STATE_WORKING",
    }
}

pub(super) fn status(standing: &Standing, letters: &Letters, task: &TaskId) -> Value {
    let at = letters.last().map(|(recorded, _)| iso::write(recorded.at)).unwrap_or_default();
    let mut status = json!({ "state": state(standing, letters), "timestamp": at });
    let context = context_of(letters, task);
    let said = |id: String, parts: Value, metadata: Value| {
        json!({
            "messageId": id, "contextId": context, "taskId": task.as_str(), "role": "ROLE_AGENT",
            "parts": parts, "metadata": metadata,
        })
    };
    if let Some(approval) = standing.approvals.first() {
        let id = approval["id"].as_str().unwrap_or_default();
        let parts = json!([{ "text": format!("{}\n\n{}", asking(approval), how(approval)) }, { "data": approval }]);
        status["message"] = said(format!("{task}-{id}"), parts, json!({ "approvalId": id }));
    } else if let Some(agent) = &standing.behind {
        status["message"] = said(format!("{task}-{BUSY}"), json!([{ "text": busy(agent) }]), json!({ "code": BUSY }));
    } else if let Some(failure) = &standing.failure {
        let words = failure["message"].as_str().unwrap_or_default();
        status["message"] = said(format!("{task}-failure"), json!([{ "text": words }]), json!({ "code": failure["code"] }));
    }
    status
}

/// How a client answers what waits.
fn how(approval: &Value) -> &'static str {
    match approval["kind"].as_str() {
        Some("question") if approval["wanted"].get("text").is_some() => "Send the answer to this task.",
        Some("question") if approval["wanted"].get("form").is_some() => {
            "Send a data part {\"answer\": {…}} that fits the form to this task."
        }
        Some("in_doubt") => "Send `done`, `not_done` or `again` to this task, as what you found.",
        Some("parked") => "Send `again` to this task to let it try again, or cancel it.",
        _ => "Send `yes` or `no` to this task, or a data part {\"approved\": …, \"reason\": …}.",
    }
}

/// What came of it: the answer, and what was made on the way to it.
pub(super) fn artifacts(call: &Call, standing: &Standing, letters: &Letters) -> Vec<Value> {
    let answer =
        standing.answer.iter().map(|answer| json!({ "artifactId": ANSWER, "name": ANSWER, "parts": [{ "text": answer }] }));
    let made = letters.iter().filter(|(_, letter)| letter.to.is_user());
    let made = made.flat_map(|(_, letter)| Artifact::attached(&letter.payload.meta));
    let file = |artifact: Artifact| {
        let url = format!("{}/api/artifacts/{}", call.base.0, artifact.id);
        json!({
            "artifactId": artifact.id.to_string(),
            "name": &*artifact.name,
            "parts": [{ "url": url, "filename": &*artifact.name, "mediaType": &*artifact.media_type }],
        })
    };
    answer.chain(made.map(file)).collect()
}
