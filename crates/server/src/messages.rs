//! What passed between the person and the society about one request.

use std::sync::Arc;

use axum::extract::State;
use polis_domain::{AgentId, Failure, Letter, LetterKind, MessageId, Payload, Recorded, Refusal, Seq, TaskId, Timestamp};
use polis_engine::{Rejected, Society};
use serde::{Deserialize, Serialize};

use crate::desk::Desk;
use crate::problem::Problem;
use crate::wanted::{Name, Wanted};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    #[serde(default)]
    direction: Direction,
}

/// Which way the messages went (D16).
#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Direction {
    #[default]
    Received,
    All,
}

#[derive(Serialize)]
pub(crate) struct Messages {
    messages: Vec<Message>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    message_id: MessageId,
    from: AgentId,
    to: AgentId,
    task_id: TaskId,
    kind: &'static str,
    payload: Payload,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    seq: Seq,
    at: Timestamp,
}

pub(crate) async fn messages(
    State(desk): State<Desk>,
    Name(task): Name,
    Wanted(which): Wanted<Which>,
) -> Result<axum::Json<Messages>, Problem> {
    let letters = personal(&desk.society, &task.into()).await?;
    let wanted = letters.iter().filter(|(_, letter)| which.direction == Direction::All || letter.to.is_user());
    Ok(axum::Json(Messages { messages: wanted.map(|(recorded, letter)| Message::new(recorded, letter)).collect() }))
}

/// The letters from and to the person about a request, oldest first; an error when there is no such request.
pub(crate) async fn personal(society: &Society, task: &TaskId) -> Result<Vec<(Recorded, Arc<Letter>)>, Rejected> {
    let letters = society.letters(task).await?;
    if letters.is_empty() {
        return Err(Refusal::UnknownTask(task.clone()).into());
    }
    Ok(letters)
}

impl Message {
    fn new(recorded: &Recorded, letter: &Letter) -> Self {
        let (kind, failure) = match &letter.kind {
            LetterKind::Message => ("message", None),
            LetterKind::Answer => ("answer", None),
            LetterKind::Failure(failure) => ("failure", Some(failure.clone())),
        };
        Self {
            message_id: letter.id.clone(),
            from: letter.from.clone(),
            to: letter.to.clone(),
            task_id: letter.task_id.clone(),
            kind,
            payload: letter.payload.clone(),
            failure,
            seq: recorded.seq,
            at: recorded.at,
        }
    }
}
