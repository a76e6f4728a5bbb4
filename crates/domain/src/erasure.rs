//! Which events belong to a conversation, so that its content can be erased.
//!
//! To a conversation belong its agent and all agents ever below it, their threads, the requests that were first made in it, and
//! all turns for these, also those of agents elsewhere. All of this can still be told when its texts are erased.

use rustc_hash::FxHashSet;

use crate::{AgentId, Envelope, Event, Recorded, TaskId, ThreadId, TurnId};

/// The events of some conversations. It must see a log from its first event on.
#[derive(Debug, Default)]
pub struct Erasure {
    agents: FxHashSet<AgentId>,
    threads: FxHashSet<ThreadId>,
    tasks: FxHashSet<TaskId>,
    /// The requests that were made elsewhere.
    others: FxHashSet<TaskId>,
    turns: FxHashSet<TurnId>,
}

impl Erasure {
    /// The events of the conversations of these agents.
    pub fn of(conversations: impl IntoIterator<Item = AgentId>) -> Self {
        Self { agents: conversations.into_iter().collect(), ..Self::default() }
    }

    /// Whether an event belongs to one of them.
    pub fn covers(&mut self, recorded: &Recorded) -> bool {
        let is_of_turn = recorded.turn().is_some_and(|turn| self.turns.contains(&turn));
        match &recorded.event {
            Event::AgentSpawned { agent, parent: Some(parent), .. } if self.agents.contains(parent) => {
                self.agents.insert(agent.clone());
            }
            Event::ThreadOpened { agent, .. } if is_of_turn || self.agents.contains(agent) => {
                self.threads.extend(recorded.thread.clone());
            }
            Event::TurnStarted { agent, task, .. } => {
                let is_own = self.agents.contains(agent);
                self.place(&task.id, is_own);
                if is_own || self.tasks.contains(&task.id) {
                    self.turns.insert(TurnId(recorded.seq));
                    return true;
                }
            }
            event => {
                if let Some(envelope) = event.envelope() {
                    let is_own = self.is_between(envelope);
                    self.place(&envelope.task_id, is_own);
                }
            }
        }
        is_of_turn || self.is_recorded_under(recorded) || self.is_about(&recorded.event)
    }

    /// Whether a thread belongs to one of them.
    pub fn has_thread(&self, thread: &ThreadId) -> bool {
        match thread.as_str().strip_prefix("task:") {
            Some(task) => self.tasks.contains(&TaskId::from(task)),
            None => self.threads.contains(thread) || self.agents.contains(&AgentId::new(thread.shared())),
        }
    }

    /// Notes where a request was first made.
    fn place(&mut self, task: &TaskId, is_own: bool) {
        if !self.tasks.contains(task) && !self.others.contains(task) {
            let requests = if is_own { &mut self.tasks } else { &mut self.others };
            requests.insert(task.clone());
        }
    }

    fn is_between(&self, envelope: &Envelope) -> bool {
        self.agents.contains(&envelope.to) || self.agents.contains(&envelope.from)
    }

    fn is_recorded_under(&self, recorded: &Recorded) -> bool {
        recorded.thread.as_ref().is_some_and(|thread| self.has_thread(thread))
    }

    fn is_about(&self, event: &Event) -> bool {
        match event {
            Event::ConversationStarted { agent, .. }
            | Event::ConversationChanged { agent, .. }
            | Event::AgentSpawned { agent, .. }
            | Event::AgentDismissed { agent, .. }
            | Event::AgentTerminated { agent }
            | Event::InboxCleared { agent, .. }
            | Event::MessagesTaken { agent, .. } => self.agents.contains(agent),
            Event::MessageDeadLettered { agent, task, .. } => self.agents.contains(agent) || self.tasks.contains(task),
            event => {
                event.envelope().is_some_and(|envelope| self.is_between(envelope) || self.tasks.contains(&envelope.task_id))
            }
        }
    }
}
