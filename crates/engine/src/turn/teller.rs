//! Telling whoever watches what a turn is seen doing. Nothing of it is in the log, and nothing may depend on it (D07).

use std::sync::Arc;

use polis_domain::{SubThreadPath, TaskId, ThreadId, Usage};
use polis_ports::{ComponentChunk, Frame, StreamedStep};

use super::Turn;
use crate::actor::Shared;

/// Tells whoever watches, from one place of the conversation.
#[derive(Clone)]
pub struct Teller {
    shared: Arc<Shared>,
    task: TaskId,
    thread: ThreadId,
    path: SubThreadPath,
    todo: Option<Arc<str>>,
}

impl Teller {
    /// The same teller; what it tells is about this todo.
    #[must_use]
    pub fn about(self, todo: Option<Arc<str>>) -> Self {
        Self { todo, ..self }
    }

    /// Tells who is seen doing what, and what the component that is being written grows by.
    pub fn tell(&self, agent_type: &str, action: &str, component: Option<&str>, chunk: Option<ComponentChunk>) {
        self.publish(|seen| StreamedStep { component: component.map(Into::into), chunk, ..seen(agent_type, action) });
    }

    /// Tells that a step is over, how long it took, and what it used if a model was asked.
    pub fn tell_end(&self, agent_type: &str, action: &str, component: Option<&str>, duration_ms: u64, usage: Option<Usage>) {
        let component = component.map(Into::into);
        let duration_ms = Some(duration_ms);
        self.publish(|seen| StreamedStep { component, duration_ms, usage, ..seen(agent_type, action) });
    }

    fn publish(&self, told: impl FnOnce(&dyn Fn(&str, &str) -> StreamedStep) -> StreamedStep) {
        let Shared { ports, society, .. } = &*self.shared;
        if ports.live.is_watched(society) {
            let seen = |agent_type: &str, action: &str| StreamedStep {
                task: self.task.clone(),
                thread: self.thread.clone(),
                path: self.path.clone(),
                todo: self.todo.clone(),
                agent_type: agent_type.into(),
                action: action.into(),
                component: None,
                chunk: None,
                duration_ms: None,
                usage: None,
            };
            ports.live.publish(society, Frame::Step(Arc::new(told(&seen))));
        }
    }
}

impl Turn {
    /// Whoever can tell watchers what happens in this turn's thread; none while nobody watches.
    pub fn teller(&self) -> Option<Teller> {
        let shared = &self.start.shared;
        let is_watched = shared.ports.live.is_watched(&shared.society);
        is_watched.then(|| Teller {
            shared: shared.clone(),
            task: self.task.id.clone(),
            thread: self.start.thread.clone(),
            path: self.path(),
            todo: None,
        })
    }
}
