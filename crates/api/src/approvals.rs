//! What waits for a person, and what the person decides.

use std::sync::Arc;

use polis_domain::{AgentId, Always, Call, Failure, Matching, PersonId, TaskId, ThreadId, Timestamp, Verdict, Wanted};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::ApiError;

/// Everything that waits for a person.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Approvals {
    /// In the order of the turns that wait.
    pub approvals: Vec<Approval>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One thing that waits for a person.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Names it in a decision.
    pub id: String,
    /// The agent whose turn waits.
    pub agent_id: AgentId,
    /// The request that it works on.
    pub task_id: TaskId,
    /// The main thread of the agent.
    pub thread: ThreadId,
    /// The sub-thread's path from there.
    pub path: String,
    /// The person whose work it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonId>,
    /// The persons who decide it, if the caller may not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<PersonId>,
    /// What is to be decided.
    #[serde(flatten)]
    pub pending: Pending,
}

impl Approval {
    /// Who decides it, if the caller may not.
    pub fn decided_by_others(&self) -> Option<String> {
        let names: Vec<_> = self.approvers.iter().map(PersonId::as_str).collect();
        (!names.is_empty()).then(|| format!("{} decides this", names.join(" or ")))
    }
}

/// What is to be decided.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Pending {
    /// Whether a call is made, or whether something else may go on.
    Approval {
        /// The question.
        question: String,
        /// More about it, for programs.
        details: Value,
        /// The call that waits, with its arguments in full.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<Box<Call>>,
        /// When it is denied by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
        /// The form of the `arguments` that may be given with a yes, as a JSON schema; another form is refused. Without a call and
        /// without this they change nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        change: Option<Value>,
    },
    /// A question of an agent, or of a server while a call runs there.
    Question {
        /// The question.
        question: String,
        /// More about it, for programs.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        details: Value,
        /// Agreement, a text or one of its options, a form with its schema, or the visit of an address.
        wanted: Wanted,
        /// The server that asks; none when it is the agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<Arc<str>>,
        /// The call that waits for the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<Box<Call>>,
        /// When it ends without an answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    /// Whether a write was done whose result is not known.
    InDoubt {
        /// The call.
        call: Box<Call>,
    },
    /// Whether a blocked turn tries again.
    Parked {
        /// Why it is blocked.
        failure: Failure,
    },
}

/// What a pending call would change, as far as it can be shown before the decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct PendingChange {
    /// The change of a file; none if nothing waits under this id, or it is a call that changes no text file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileChange>,
}

/// The change of a text file, compared with the file as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum FileChange {
    /// The lines that change, with three unchanged ones on either side as far as there is room.
    Shown {
        /// The file, from the workspace's root.
        path: String,
        /// Whether there is no such file yet.
        is_new: bool,
        /// The number of the first of these lines.
        line: usize,
        /// The lines now, at most 1,000 and 32 KiB.
        before: String,
        /// The lines afterwards, at most 1,000 and 32 KiB.
        after: String,
        /// Whether something is left out: the lines after these, or parts of a line that is too long, in whose place is `…`.
        is_cut: bool,
    },
    /// The change cannot be shown, and perhaps not be made.
    Hidden {
        /// Why.
        reason: String,
    },
}

/// What a person decides. Which variants fit depends on what is pending.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "DecisionRequest")]
pub enum Decision {
    /// A yes or a no, or the answer to a question.
    Verdict(Verdict),
    /// The write in doubt was done; with what the person found.
    Done(Option<String>),
    /// The write in doubt was not done.
    NotDone(Option<String>),
    /// Try again.
    Again,
    /// Turn a server's question away.
    Cancelled,
}

/// A decision as it is sent: `approved` for a call, `answer` for a question, `outcome` for what is in doubt or blocked.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Decision")]
pub struct DecisionRequest {
    /// For a question: the words, or the object.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// For a call: whether it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    /// Why; an agent reads it.
    #[serde(default)]
    pub reason: String,
    /// For a call: other arguments, as an object or as JSON text. For the plan of a workflow: an object with other `todos`, each
    /// with `id`, `description` and `priority`; `change` of what waits says it as a schema. Another form is refused with every
    /// fault and its place, and nothing changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// For a call: do not ask again about calls like this one by this `agent`, for this `task`, or by anybody (`tool`); or about
    /// any tool of the same server that only `reads`, as the server says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always: Option<Always>,
    /// With `always`: which calls are meant, as a pattern for each argument by its name; `*` stands for all other arguments. Without
    /// it, what `details.always` of the approval proposes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#where: Option<Matching>,
    /// For what is in doubt or blocked: `done`, `not_done`, `again`; for a server's question: `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<DecisionOutcome>,
    /// For what is in doubt: what the person found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// What a person found, or wants, where a yes or a no does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionOutcome {
    /// The write in doubt was done.
    Done,
    /// The write in doubt was not done.
    NotDone,
    /// Do it again, or let the blocked turn go on.
    Again,
    /// Turn a server's question away.
    Cancelled,
}

/// A value that is there, even if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Resolved {
    /// The id of the approval.
    pub id: String,
}

impl DecisionRequest {
    /// What it decides; an error where its fields do not fit together.
    pub fn decision(self) -> Result<Decision, ApiError> {
        self.try_into().map_err(|why| ApiError::bad_request("bad_json", why))
    }
}

impl TryFrom<DecisionRequest> for Decision {
    type Error = &'static str;

    fn try_from(request: DecisionRequest) -> Result<Self, Self::Error> {
        let approved = request.approved.or_else(|| request.answer.as_ref().map(|_| true));
        match (approved, request.outcome) {
            (Some(approved), None) => {
                let arguments = request.arguments.map(|arguments| match arguments {
                    Value::String(text) => text,
                    other => other.to_string(),
                });
                let is_object = |text: &String| serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok();
                if !arguments.as_ref().is_none_or(is_object) {
                    return Err("`arguments` must be a JSON object");
                }
                let arguments = arguments.map(Into::into);
                Ok(Self::Verdict(Verdict {
                    approved,
                    reason: request.reason,
                    arguments,
                    always: request.always,
                    matching: request.r#where,
                    answer: request.answer,
                    by: None,
                    rules: None,
                    artifacts: Vec::new(),
                }))
            }
            (None, Some(DecisionOutcome::Done)) => Ok(Self::Done(request.result)),
            (None, Some(DecisionOutcome::NotDone)) => Ok(Self::NotDone(request.result)),
            (None, Some(DecisionOutcome::Again)) => Ok(Self::Again),
            (None, Some(DecisionOutcome::Cancelled)) => Ok(Self::Cancelled),
            _ => Err("give either `approved` (true or false), `answer`, or `outcome` (done, not_done, again or cancelled)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_arguments_are_an_object_or_nothing_is_said() {
        let is_valid =
            |arguments: Value| serde_json::from_value::<Decision>(json!({ "approved": true, "arguments": arguments })).is_ok();
        assert!(is_valid(json!({ "a": 1 })) && is_valid(json!("{\"a\": 1}")));
        assert!(![json!([1]), json!("text"), json!("[1]"), json!(7)].into_iter().any(is_valid));
    }
}
