//! The inbox of an agent.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Cleared, Envelope, ReplyTo, Task, TaskId};

/// The inbox of an agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Inbox {
    /// The entries, oldest first.
    pub entries: VecDeque<InboxEntry>,
    /// The bytes of text in all entries.
    pub bytes: usize,
}

/// One inbox entry. Each becomes a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum InboxEntry {
    /// A message from a person or agent.
    Envelope(Arc<Envelope>),
    /// A task that the last response of the agent queued.
    FollowUp {
        /// The queued task.
        task: Task,
        /// Who waits for the answer of the chain.
        reply_to: ReplyTo,
    },
}

impl Inbox {
    /// Who finally waits for the result of an entry. Follow-ups form one chain, and only its last one answers.
    pub fn waiter(&self, due: &InboxEntry) -> ReplyTo {
        match due {
            InboxEntry::Envelope(envelope) => envelope.reply_to,
            InboxEntry::FollowUp { .. } => self.chain(),
        }
    }

    /// Who waits for the chain of follow-ups, which continue the work of the agent's open turn.
    pub fn chain(&self) -> ReplyTo {
        let follow_ups = self.entries.iter().take_while(|due| matches!(due, InboxEntry::FollowUp { .. }));
        follow_ups.last().map_or(ReplyTo::Nobody, InboxEntry::reply_to)
    }
}

impl InboxEntry {
    /// The request that it belongs to.
    pub fn task(&self) -> &TaskId {
        match self {
            Self::Envelope(envelope) => &envelope.task_id,
            Self::FollowUp { task, .. } => &task.id,
        }
    }

    /// Who waits for its result.
    pub fn reply_to(&self) -> ReplyTo {
        match self {
            Self::Envelope(envelope) => envelope.reply_to,
            Self::FollowUp { reply_to, .. } => *reply_to,
        }
    }

    /// The bytes of its text.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Envelope(envelope) => envelope.payload.text.len(),
            Self::FollowUp { task, .. } => task.message.len(),
        }
    }
}

impl Cleared {
    /// Whether this entry of the inbox is removed.
    pub fn takes(&self, due: &InboxEntry, inbox: &Inbox) -> bool {
        match self {
            Self::Task(task) => due.task() == task,
            Self::Everything => true,
            Self::AskedBy(turns) => matches!(inbox.waiter(due), ReplyTo::Effect(id) if turns.contains(&id.turn)),
        }
    }
}
