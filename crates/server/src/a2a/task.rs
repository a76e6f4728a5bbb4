//! A request as a task of the protocol: its state, what it waits for, and its artifacts.

use std::sync::Arc;

use polis_api::{Approval, Pending, TaskStatus};
use polis_domain::{Artifact, Envelope, Recorded, TaskId, Wanted, iso};
use serde_json::{Value, json};

use super::Call;
use super::error::{fault, not_found};
use super::message::write;
use super::task_index::context_id;
use crate::problem::Problem;
use crate::rpc::Fault;
use crate::task_follower::{BUSY, TaskSummary, busy_message, describe_approval};

/// The artifact that the answer is.
pub(super) const ANSWER: &str = "answer";

pub(super) type Envelopes = Vec<(Recorded, Arc<Envelope>)>;

/// What passed about a task; an error where there is none.
pub(super) async fn envelopes(call: &Call, task: &TaskId) -> Result<Envelopes, Fault> {
    let envelopes = call.peer.state.society.messages(task).await.map_err(|rejected| fault(&Problem::from(rejected)))?;
    if envelopes.is_empty() { Err(not_found(task.as_str())) } else { Ok(envelopes) }
}

/// The conversation that a task belongs to; one of its own where nobody named one.
pub(super) fn context_of(envelopes: &Envelopes, task: &TaskId) -> String {
    envelopes.iter().find_map(|(_, envelope)| context_id(envelope)).unwrap_or(task.as_str()).to_owned()
}

/// A task as it is now, with at most so much of what passed.
pub(super) async fn task_json(call: &Call, task: &TaskId, length: Option<usize>) -> Result<Value, Fault> {
    // What passed is read after: of a task that is over all of it is there.
    let summary = call.peer.summary(task).await.map_err(|problem| fault(&problem))?;
    let envelopes = envelopes(call, task).await?;
    let context = context_of(&envelopes, task);
    let mut json = json!({ "id": task.as_str(), "contextId": context, "status": status(&summary, &envelopes, task) });
    let artifacts = artifacts(call, task, &summary, &envelopes).await.map_err(|problem| fault(&problem))?;
    if !artifacts.is_empty() {
        json["artifacts"] = json!(artifacts);
    }
    let skipped = envelopes.len().saturating_sub(length.unwrap_or(usize::MAX));
    let history: Vec<Value> = envelopes.iter().skip(skipped).map(|(_, envelope)| write(envelope, &context)).collect();
    if !history.is_empty() {
        json["history"] = json!(history);
    }
    Ok(json)
}

/// The state that a standing is.
pub(super) fn state(summary: &TaskSummary, envelopes: &Envelopes) -> &'static str {
    match summary.status {
        TaskStatus::NeedsPerson => "TASK_STATE_INPUT_REQUIRED",
        // A completed task stays completed: the protocol has no way back. The status message says what failed.
        TaskStatus::Done | TaskStatus::Partial => "TASK_STATE_COMPLETED",
        TaskStatus::Failed => "TASK_STATE_FAILED",
        TaskStatus::Cancelled => "TASK_STATE_CANCELED",
        // It lies in an inbox.
        TaskStatus::Waiting if envelopes.len() == 1 && !summary.has_started => "TASK_STATE_SUBMITTED",
        TaskStatus::Waiting | TaskStatus::Running => "TASK_STATE_WORKING",
    }
}

pub(super) fn status(summary: &TaskSummary, envelopes: &Envelopes, task: &TaskId) -> Value {
    let at = envelopes.last().map(|(recorded, _)| iso::write(recorded.at)).unwrap_or_default();
    let mut status = json!({ "state": state(summary, envelopes), "timestamp": at });
    let context = context_of(envelopes, task);
    let message = |id: String, parts: Value, metadata: Value| {
        json!({
            "messageId": id, "contextId": context, "taskId": task.as_str(), "role": "ROLE_AGENT",
            "parts": parts, "metadata": metadata,
        })
    };
    if let Some(approval) = summary.approvals.first() {
        let id = &approval.id;
        let parts =
            json!([{ "text": format!("{}\n\n{}", describe_approval(approval), answer_hint(approval)) }, { "data": approval }]);
        status["message"] = message(format!("{task}-{id}"), parts, json!({ "approvalId": id }));
    } else if let Some(agent) = &summary.behind {
        status["message"] =
            message(format!("{task}-{BUSY}"), json!([{ "text": busy_message(agent) }]), json!({ "code": BUSY }));
    } else if let Some(failure) = &summary.failure {
        let parts = json!([{ "text": failure.message }]);
        status["message"] = message(format!("{task}-failure"), parts, json!({ "code": failure.code }));
    }
    status
}

/// How a client answers what waits.
fn answer_hint(approval: &Approval) -> &'static str {
    if !approval.approvers.is_empty() {
        return "The task continues when it is decided.";
    }
    match &approval.pending {
        Pending::Question { wanted: Wanted::Text { .. }, .. } => "Send the answer to this task.",
        Pending::Question { wanted: Wanted::Form { .. }, .. } => {
            "Send a data part {\"answer\": {…}} that fits the form to this task."
        }
        Pending::InDoubt { .. } => "Send `done`, `not_done` or `again` to this task, according to what you found.",
        Pending::Parked { .. } => "Send `again` to this task to resume it, or cancel it.",
        _ => "Send `yes` or `no` to this task, or a data part {\"approved\": …, \"reason\": …}.",
    }
}

/// Its artifacts: the answer, and the files that agents made for it, whether or not they are attached to the answer.
pub(super) async fn artifacts(
    call: &Call,
    task: &TaskId,
    summary: &TaskSummary,
    envelopes: &Envelopes,
) -> Result<Vec<Value>, Problem> {
    let answer =
        summary.answer.iter().map(|answer| json!({ "artifactId": ANSWER, "name": ANSWER, "parts": [{ "text": answer }] }));
    let attached = envelopes.iter().filter(|(_, envelope)| envelope.to.is_user());
    let mut made: Vec<_> = attached.flat_map(|(_, envelope)| Artifact::attached(&envelope.payload.meta)).collect();
    let (task, first) = (task.clone(), envelopes.first().map(|(recorded, _)| recorded.seq).unwrap_or_default());
    let look = call.peer.state.society.look(move |spine| {
        let entries = spine.artifacts.entries();
        // The list is in the order of the log, and may be long.
        let later = &entries[entries.partition_point(|entry| entry.seq < first)..];
        let own = later.iter().filter(|entry| entry.task.as_ref() == Some(&task) && entry.agent.is_some());
        own.map(|entry| entry.artifact.clone()).collect::<Vec<_>>()
    });
    for artifact in look.await? {
        if !made.contains(&artifact) {
            made.push(artifact);
        }
    }
    let file = |artifact: Artifact| {
        let url = format!("{}/api/artifacts/{}", call.base.0, artifact.id);
        json!({
            "artifactId": artifact.id.to_string(),
            "name": &*artifact.name,
            "parts": [{ "url": url, "filename": &*artifact.name, "mediaType": &*artifact.media_type }],
        })
    };
    Ok(answer.chain(made.into_iter().map(file)).collect())
}
