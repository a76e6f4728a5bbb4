//! Listens to a role's reply while it streams and publishes it to the watcher: todos as they are planned, the summary as it grows.

use std::sync::Arc;

use polis_domain::Failure;
use polis_ports::ComponentChunk;

use super::backend::{Activity, StreamCallbacks, Watcher};
use super::{AgentAction, AgentType, Chunk, ReplyReader};

/// Publishes one reply.
pub(super) struct ReplyListener {
    watcher: Watcher,
    agent: AgentType,
    component: Arc<str>,
    action: AgentAction,
    reader: ReplyReader,
    is_thinking: bool,
}

impl ReplyListener {
    pub(super) fn new(watcher: Watcher, agent: &AgentType, component: &str, action: AgentAction) -> Self {
        let reader = ReplyReader::new(component);
        Self { watcher, agent: agent.clone(), component: component.into(), action, reader, is_thinking: false }
    }

    fn tell(&self, action: AgentAction, component: Option<Arc<str>>, chunk: Option<ComponentChunk>) {
        (self.watcher)(Activity { component, chunk, ..Activity::new(&self.agent, action) });
    }
}

impl StreamCallbacks for ReplyListener {
    fn on_content(&mut self, text: &str) {
        self.is_thinking = false;
        let Self { watcher, agent, component, action, reader, .. } = self;
        reader.push(text, &mut |chunk| {
            let is_summary = matches!(chunk, Chunk::Text { field: "summary", .. });
            let action = if is_summary && *agent == AgentType::VERIFIER { AgentAction::Summarizing } else { *action };
            let chunk = match chunk {
                Chunk::Again => ComponentChunk::Again,
                Chunk::Text { field, text } => ComponentChunk::Text { field: field.to_owned(), text: text.to_owned() },
                Chunk::Item { field, index, value } => {
                    ComponentChunk::Item { field: field.to_owned(), index, value: value.clone() }
                }
                Chunk::Field { field, value } => ComponentChunk::Field { field: field.to_owned(), value: value.clone() },
            };
            watcher(Activity { component: Some(component.clone()), chunk: Some(chunk), ..Activity::new(agent, action) });
        });
    }

    fn on_reasoning(&mut self, _text: &str) {
        if !std::mem::replace(&mut self.is_thinking, true) {
            self.tell(AgentAction::Thinking, None, None);
        }
    }

    fn on_tool_calls(&mut self, _index: u32, name: Option<&str>, _arguments: &str) {
        if let Some(name) = name {
            self.tell(AgentAction::CallingTool, Some(name.into()), None);
        }
    }

    fn on_error(&mut self, _failure: &Failure) {
        self.reader = ReplyReader::new(&self.component);
        self.tell(self.action, Some(self.component.clone()), Some(ComponentChunk::Again));
    }

    fn on_stopped(&mut self) {
        self.tell(self.action, Some(self.component.clone()), Some(ComponentChunk::Again));
    }
}
