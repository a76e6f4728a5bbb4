//! The inbox of an agent.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::spine::{Spine, Turn};
use crate::{AgentId, Cleared, Envelope, MessageKind, Origin, ReplyTo, Task, TaskId};

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
        /// The message that the chain goes back to, if nobody waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Box<Cause>>,
    },
}

/// The message of an agent that caused work whose result nobody waits for. If the work fails, its sender is notified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The sender.
    pub from: AgentId,
    /// Whether the message itself was the notice of a failure.
    pub is_notice: bool,
    /// The beginning of its text.
    pub start: Arc<str>,
}

/// How many characters of its text a cause keeps.
const START: usize = 80;

impl Cause {
    /// What caused the work on an inbox entry, if nobody waits for its result.
    pub(crate) fn of(due: &InboxEntry) -> Option<Box<Self>> {
        match due {
            InboxEntry::Envelope(envelope) if envelope.reply_to == ReplyTo::Nobody => Some(Box::new(Self {
                from: envelope.from.clone(),
                is_notice: matches!(envelope.kind, MessageKind::Failure(_)),
                start: envelope.payload.text.chars().take(START).collect::<String>().into(),
            })),
            InboxEntry::Envelope(_) => None,
            InboxEntry::FollowUp { cause, .. } => cause.clone(),
        }
    }
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

impl Spine {
    /// Who finally waits for the work that a turn belongs to: follow-ups may come before the answer.
    pub(crate) fn waiter(&self, turn: &Turn) -> ReplyTo {
        let inbox = self.agents.get(&turn.agent).and_then(|agent| agent.inbox.as_ref());
        match (turn.reply_to, turn.origin, inbox) {
            (ReplyTo::Nobody, Origin::Inbox, Some(inbox)) => inbox.chain(),
            (reply_to, ..) => reply_to,
        }
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
