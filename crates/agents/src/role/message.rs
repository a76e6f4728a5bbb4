//! What reaches an agent: a task, or an answer to what it asked (R330-R332).

use std::sync::Arc;

use polis_domain::{Failure, FailureCode};
use polis_engine::Turn;
use serde_json::{Map, Value};

/// What an agent is to do (R332).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskInfo {
    /// Its name: the step of whoever asks, or the person's request.
    pub task_id: Arc<str>,
    /// The plan that it is a step of, if it is one.
    pub plan_id: Option<Arc<str>>,
    /// What is asked.
    pub description: String,
}

/// A message to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct StructuredMessage {
    /// The person's request that it belongs to.
    pub task_id: Arc<str>,
    /// What it says.
    pub text: Arc<str>,
    /// What goes with it.
    pub meta: Map<String, Value>,
    /// The request that it answers, where it is an answer.
    pub response: Option<CollaborationResponse>,
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollaborationResponse {
    /// Which request.
    pub request_id: Arc<str>,
    /// How it ended.
    pub status: ResponseStatus,
    /// What came of it, or why nothing did.
    pub result_data: Arc<str>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseStatus {
    /// It was done.
    Completed,
    /// It came to nothing, or not in time.
    Error,
    /// The agent did not take it on, for a reason of its own.
    Rejected,
}

impl StructuredMessage {
    /// What a turn has to do.
    pub fn of(turn: &Turn) -> Self {
        let task = turn.task();
        let word = |key: &str| task.meta.get(key).and_then(Value::as_str);
        let status = match word("status") {
            Some("completed") => Some(ResponseStatus::Completed),
            Some("error") => Some(ResponseStatus::Error),
            Some("rejected") => Some(ResponseStatus::Rejected),
            _ => None,
        };
        let response = word("requestId").zip(status).map(|(request_id, status)| CollaborationResponse {
            request_id: request_id.into(),
            status,
            result_data: task.message.clone(),
        });
        Self { task_id: task.id.as_str().into(), text: task.message.clone(), meta: task.meta.clone().into(), response }
    }

    /// The answer to a request that came through the log.
    pub(super) fn answer(task_id: &str, request_id: Arc<str>, answer: Result<Arc<str>, Failure>) -> Self {
        let (status, result_data) = match answer {
            Ok(text) => (ResponseStatus::Completed, text),
            Err(failure) if failure.code == FailureCode::RequestRejected => (ResponseStatus::Rejected, failure.message.into()),
            Err(failure) => (ResponseStatus::Error, failure.to_string().into()),
        };
        let response = Some(CollaborationResponse { request_id, status, result_data: result_data.clone() });
        Self { task_id: task_id.into(), text: result_data, meta: Map::new(), response }
    }
}
