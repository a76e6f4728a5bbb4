//! What passed between the person and the society about one request.

use std::sync::Arc;

use axum::extract::State;
use polis_domain::{AgentId, Envelope, Failure, MessageId, MessageKind, Payload, Recorded, Refusal, Seq, TaskId, Timestamp};
use polis_engine::{CommandError, Society};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::paging::{self, Paging};
use crate::problem::Problem;
use crate::state::SocietyState;
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

/// A message from or to the person.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "UserMessage")]
struct Message {
    message_id: MessageId,
    from: AgentId,
    to: AgentId,
    task_id: TaskId,
    kind: Kind,
    payload: Payload,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    seq: Seq,
    at: Timestamp,
}

/// What a message is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// A word under way.
    Message,
    /// The end of the request.
    Answer,
    /// Its failure, or that it was called off.
    Failure,
}

pub(crate) async fn messages(
    State(state): State<SocietyState>,
    Name(task): Name,
    Wanted(which): Wanted<Which>,
) -> Result<axum::Json<Messages>, Problem> {
    let envelopes = personal(&state.society, &task.into()).await?;
    let wanted = envelopes.iter().filter(|(_, envelope)| which.direction == Direction::All || envelope.to.is_user());
    let paging = Paging { after: which.after, limit: which.limit };
    let (wanted, next) = paging.cut(wanted.collect(), |(recorded, _)| paging::numbered(recorded.seq.0));
    Ok(axum::Json(Messages {
        messages: wanted.into_iter().map(|(recorded, envelope)| Message::new(recorded, envelope)).collect(),
        next,
    }))
}

/// The messages from and to the person about a request, oldest first; an error when there is no such request.
pub(crate) async fn personal(society: &Society, task: &TaskId) -> Result<Vec<(Recorded, Arc<Envelope>)>, CommandError> {
    let envelopes = society.messages(task).await?;
    if envelopes.is_empty() {
        return Err(Refusal::UnknownTask(task.clone()).into());
    }
    Ok(envelopes)
}

impl Message {
    fn new(recorded: &Recorded, envelope: &Envelope) -> Self {
        let (kind, failure) = match &envelope.kind {
            MessageKind::Message => (Kind::Message, None),
            MessageKind::Answer => (Kind::Answer, None),
            MessageKind::Failure(failure) => (Kind::Failure, Some(failure.clone())),
        };
        Self {
            message_id: envelope.id.clone(),
            from: envelope.from.clone(),
            to: envelope.to.clone(),
            task_id: envelope.task_id.clone(),
            kind,
            payload: envelope.payload.clone(),
            failure,
            seq: recorded.seq,
            at: recorded.at,
        }
    }
}
