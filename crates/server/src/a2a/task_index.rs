//! All tasks that ever existed, for clients that list them: read from the log once, then kept up to date.

use std::collections::BTreeMap;

use polis_api::{ApiError, TaskStatus};
use polis_domain::{AgentId, Envelope, Event, MessageKind, Seq, Spine, TaskId, Timestamp, Visibility};
use polis_engine::Society;
use tokio::sync::{Mutex, MutexGuard};

/// The meta key with the protocol's fields of a message.
pub(super) const META: &str = "a2a";

/// Events that are read at once.
const READ: usize = 1_024;

/// What is remembered of the log. It is nothing but a copy.
#[derive(Default)]
pub(crate) struct TaskIndex {
    known: Mutex<IndexState>,
    accepting: Mutex<()>,
}

#[derive(Default)]
struct IndexState {
    upto: Seq,
    tasks: BTreeMap<TaskId, Entry>,
}

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) context: Option<String>,
    pub(super) updated: Timestamp,
    /// The state that it ended in, unless a message arrived since.
    pub(super) ended: Option<&'static str>,
    /// The agent that the person wrote to.
    agent: AgentId,
}

impl TaskIndex {
    /// Held while it is decided whether a message is known.
    pub(super) async fn accepting(&self) -> MutexGuard<'_, ()> {
        self.accepting.lock().await
    }

    /// All tasks that the caller may see, the one that changed last first.
    pub(super) async fn all(&self, society: &Society) -> Result<Vec<(TaskId, Entry)>, ApiError> {
        let mut known = self.known.lock().await;
        // The copy is for all callers.
        let whole = society.unlimited();
        loop {
            let page = whole.log().read(society.id(), known.upto, READ).await?;
            let is_last = page.len() < READ;
            for recorded in page {
                known.upto = recorded.seq;
                if let Event::MessageSent { envelope, .. } = &recorded.event
                    && (envelope.from.is_user() || envelope.to.is_user())
                {
                    let entry = known.tasks.entry(envelope.task_id.clone());
                    let agent = if envelope.from.is_user() { &envelope.to } else { &envelope.from };
                    let new = || Entry { context: None, updated: recorded.at, ended: None, agent: agent.clone() };
                    let entry = entry.or_insert_with(new);
                    entry.updated = recorded.at;
                    entry.context = entry.context.take().or_else(|| context_id(envelope).map(str::to_owned));
                    entry.ended = match &envelope.kind {
                        MessageKind::Answer => Some("TASK_STATE_COMPLETED"),
                        MessageKind::Failure(failure) if TaskStatus::after(failure) == TaskStatus::Cancelled => {
                            Some("TASK_STATE_CANCELED")
                        }
                        MessageKind::Failure(_) => Some("TASK_STATE_FAILED"),
                        // A message of an agent in between changes nothing.
                        MessageKind::Message if envelope.to.is_user() => entry.ended,
                        MessageKind::Message => None,
                    };
                }
            }
            if is_last {
                break;
            }
        }
        let mut all: Vec<_> = known.tasks.iter().map(|(id, entry)| (id.clone(), entry.clone())).collect();
        let visibility = society.visibility().clone();
        if visibility != Visibility::Everything {
            let visible = move |spine: &Spine| -> Vec<(TaskId, Entry)> {
                all.iter().filter(|(_, entry)| visibility.agent(spine, &entry.agent)).cloned().collect()
            };
            all = society.look(visible).await?;
        }
        all.sort_by(|(a, left), (b, right)| (right.updated, b).cmp(&(left.updated, a)));
        Ok(all)
    }
}

/// The conversation that a message belongs to, if an A2A client sent it.
pub(super) fn context_id(envelope: &Envelope) -> Option<&str> {
    envelope.payload.meta.get(META)?.get("contextId")?.as_str()
}
