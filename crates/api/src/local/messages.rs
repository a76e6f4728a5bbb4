//! Reading the messages about a request.

use std::sync::Arc;

use polis_domain::{Envelope, MessageKind, Recorded, TaskId};

use super::Local;
use super::error::unknown_task;
use crate::paging::numbered;
use crate::{ApiError, Direction, MessagePaging, Messages, Paging, Scope, UserMessage, UserMessageKind};

impl Local {
    /// The messages between the person and the society about a request.
    pub async fn messages(&self, task: &TaskId, which: MessagePaging) -> Result<Messages, ApiError> {
        self.caller.needs(Scope::Read)?;
        let envelopes = self.envelopes(task).await?;
        let matching = envelopes.iter().filter(|(_, envelope)| which.direction == Direction::All || envelope.to.is_user());
        let paging = Paging { after: which.after, limit: which.limit };
        let (page, next) = paging.cut(matching, |(recorded, _)| numbered(recorded.seq.0));
        Ok(Messages { messages: page.into_iter().map(|(recorded, envelope)| user_message(recorded, envelope)).collect(), next })
    }

    /// The same as the log has them, oldest first; an error where there is no such request.
    pub(super) async fn envelopes(&self, task: &TaskId) -> Result<Vec<(Recorded, Arc<Envelope>)>, ApiError> {
        let envelopes = self.society.messages(task).await?;
        if envelopes.is_empty() {
            return Err(unknown_task(task));
        }
        Ok(envelopes)
    }
}

fn user_message(recorded: &Recorded, envelope: &Envelope) -> UserMessage {
    let (kind, failure) = match &envelope.kind {
        MessageKind::Message => (UserMessageKind::Message, None),
        MessageKind::Answer => (UserMessageKind::Answer, None),
        MessageKind::Failure(failure) => (UserMessageKind::Failure, Some(failure.clone())),
    };
    UserMessage {
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
