//! Publishing the steps of a workflow to watchers. Steps are live only: they are not in the log, and nothing may depend on
//! them (D07).

use std::sync::Arc;

use polis_domain::{SubThreadPath, TaskId, ThreadId, Usage};
use polis_ports::{ComponentChunk, Frame, StreamedStep};

use super::Turn;
use crate::shared::Shared;

/// Publishes steps that happen at one place of a conversation.
#[derive(Clone)]
pub struct StepSink {
    shared: Arc<Shared>,
    task: TaskId,
    thread: ThreadId,
    path: SubThreadPath,
    todo: Option<Arc<str>>,
}

impl StepSink {
    /// The same sink for steps that work on this todo.
    #[must_use]
    pub fn about_todo(self, todo: Option<Arc<str>>) -> Self {
        Self { todo, ..self }
    }

    /// Publishes that `agent_type` does `action`, and the chunk that the component in progress grows by.
    pub fn publish(&self, agent_type: &str, action: &str, component: Option<&str>, chunk: Option<ComponentChunk>) {
        self.publish_with(|step| StreamedStep { component: component.map(Into::into), chunk, ..step(agent_type, action) });
    }

    /// Publishes that a step is over, how long it took, and its usage if a model was called.
    pub fn publish_end(&self, agent_type: &str, action: &str, component: Option<&str>, duration_ms: u64, usage: Option<Usage>) {
        let component = component.map(Into::into);
        let duration_ms = Some(duration_ms);
        self.publish_with(|step| StreamedStep { component, duration_ms, usage, ..step(agent_type, action) });
    }

    fn publish_with(&self, complete: impl FnOnce(&dyn Fn(&str, &str) -> StreamedStep) -> StreamedStep) {
        let Shared { ports, society, .. } = &*self.shared;
        if ports.live.is_watched(society) {
            let step = |agent_type: &str, action: &str| StreamedStep {
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
            ports.live.publish(society, Frame::Step(Arc::new(complete(&step))));
        }
    }
}

impl Turn {
    /// A sink for the steps of this turn's thread; none while nobody watches, so that steps need not be put together.
    pub fn step_sink(&self) -> Option<StepSink> {
        let shared = &self.start.shared;
        let is_watched = shared.ports.live.is_watched(&shared.society);
        is_watched.then(|| StepSink {
            shared: shared.clone(),
            task: self.task.id.clone(),
            thread: self.start.thread.clone(),
            path: self.path(),
            todo: None,
        })
    }
}
