//! What passed between the person and the society about one request.

use std::sync::Arc;

use axum::extract::State;
use polis_domain::{AgentId, Failure, Letter, LetterKind, MessageId, Payload, Recorded, Refusal, Seq, TaskId, Timestamp};
use polis_engine::{Rejected, Society};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::desk::Desk;
use crate::paging::{self, Paging};
use crate::problem::Problem;
use crate::wanted::{Name, Wanted};

/// Which messages are wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MessagePaging")]
pub(crate) struct Which {
    /// Which way they went.
    #[serde(default)]
    direction: Direction,
    /// The `next` of the page before; the first page without it.
    after: Option<String>,
    /// Most messages of a page.
    limit: Option<u32>,
}

/// Which way the messages went (D16).
#[derive(Deserialize, JsonSchema, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Direction {
    #[default]
    Received,
    All,
}

/// What passed between the person and the society, oldest first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Messages {
    messages: Vec<Message>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A letter from or to the person.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "UserMessage")]
struct Message {
    message_id: MessageId,
    from: AgentId,
    to: AgentId,
    task_id: TaskId,
    kind: MessageKind,
    payload: Payload,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    seq: Seq,
    at: Timestamp,
}

/// What a message is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum MessageKind {
    /// A word under way.
    Message,
    /// The end of the request.
    Answer,
    /// Its failure, or that it was called off.
    Failure,
}

pub(crate) async fn messages(
    State(desk): State<Desk>,
    Name(task): Name,
    Wanted(which): Wanted<Which>,
) -> Result<axum::Json<Messages>, Problem> {
    let letters = personal(&desk.society, &task.into()).await?;
    let wanted = letters.iter().filter(|(_, letter)| which.direction == Direction::All || letter.to.is_user());
    let paging = Paging { after: which.after, limit: which.limit };
    let (wanted, next) = paging.cut(wanted.collect(), |(recorded, _)| paging::numbered(recorded.seq.0));
    Ok(axum::Json(Messages {
        messages: wanted.into_iter().map(|(recorded, letter)| Message::new(recorded, letter)).collect(),
        next,
    }))
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
            LetterKind::Message => (MessageKind::Message, None),
            LetterKind::Answer => (MessageKind::Answer, None),
            LetterKind::Failure(failure) => (MessageKind::Failure, Some(failure.clone())),
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
