//! Giving the society something to do: a new request to root, or a word to any agent.

use axum::extract::State;
use polis_domain::{AgentId, MessageId, Seq, TaskId};
use polis_engine::Sent;
use serde::{Deserialize, Serialize};

use crate::body::Json;
use crate::desk::Desk;
use crate::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Submit {
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Send {
    agent_id: AgentId,
    text: String,
    task_id: Option<TaskId>,
}

/// What is in the log now; events after `seq` tell what comes of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Accepted {
    task_id: TaskId,
    message_id: MessageId,
    seq: Seq,
}

pub(crate) async fn submit(State(desk): State<Desk>, Json(wish): Json<Submit>) -> Result<axum::Json<Accepted>, Problem> {
    let sent = desk.society.submit(&wish.text).await?;
    Ok(axum::Json(sent.into()))
}

pub(crate) async fn send(State(desk): State<Desk>, Json(wish): Json<Send>) -> Result<axum::Json<Accepted>, Problem> {
    let sent = desk.society.send(wish.agent_id, &wish.text, wish.task_id).await?;
    Ok(axum::Json(sent.into()))
}

impl From<Sent> for Accepted {
    fn from(Sent { message_id, task_id, seq }: Sent) -> Self {
        Self { task_id, message_id, seq }
    }
}
