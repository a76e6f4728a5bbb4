//! Live updates for watchers: committed events, and chunks of replies in progress.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use polis_domain::{EffectId, Recorded, SocietyId, SubThreadPath, TaskId, ThreadId, TurnId, Usage};
use serde::Serialize;
use serde_json::Value;

use crate::Delta;

/// Carries frames from a society to its watchers. A slow watcher may lose frames; it never delays the society.
pub trait Live: Send + Sync {
    /// Publishes a frame to all watchers. Never blocks.
    fn publish(&self, society: &SocietyId, frame: Frame);

    /// Whether anybody may be watching; if not, frames need not be made.
    fn is_watched(&self, society: &SocietyId) -> bool;

    /// Subscribes from now on, to everything or to one thread.
    fn watch(&self, society: &SocietyId, thread: Option<&ThreadId>) -> LiveStream;

    /// The text of the reply that a turn is just receiving, as far as it was published; none where that is not remembered.
    fn partial_text(&self, _society: &SocietyId, _turn: TurnId) -> Option<String> {
        None
    }
}

/// Frames in the order in which they were published.
pub type LiveStream = Pin<Box<dyn Stream<Item = Frame> + Send>>;

/// One live update.
#[derive(Debug, Clone)]
pub enum Frame {
    /// These events are durable in the log.
    Committed(Arc<[Arc<Recorded>]>),
    /// A chunk of a reply that is not in the log yet (D07). It may be lost, and is not repeated.
    Delta(Arc<StreamedDelta>),
    /// A step of a workflow, with a chunk of the component that it writes (D07). It may be lost, and is not repeated.
    Step(Arc<StreamedStep>),
    /// Frames were lost, because this watcher was too slow or the log had failed. Read the log again from the last event seen.
    Missed,
}

/// A chunk of a reply, with its address.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamedDelta {
    /// The model call that is being answered.
    pub effect: EffectId,
    /// The thread of its turn.
    pub thread: ThreadId,
    /// The chunk itself.
    pub delta: Delta,
}

/// A step of a workflow, with its address.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StreamedStep {
    /// The request that it belongs to.
    pub task: TaskId,
    /// The thread that it happens in.
    pub thread: ThreadId,
    /// Its address.
    pub path: SubThreadPath,
    /// The todo that it works on, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todo: Option<Arc<str>>,
    /// The kind of agent, such as `planner`.
    pub agent_type: Arc<str>,
    /// The action, such as `planning` or `calling_tool`.
    pub action: Arc<str>,
    /// The component that is being written, such as `planner-response`, or the tool that is called; none when nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<Arc<str>>,
    /// The chunk that the component grows by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<ComponentChunk>,
    /// How long the step took, if it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The usage of the step, if a model has replied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A chunk that a component grows by.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ComponentChunk {
    /// The component starts again; earlier chunks are void.
    Again,
    /// More of a text field.
    Text {
        /// The field's name.
        field: String,
        /// The additional text.
        text: String,
    },
    /// A complete element of a list field.
    Item {
        /// The field's name.
        field: String,
        /// The index of the element, from 0.
        index: usize,
        /// The element.
        value: Value,
    },
    /// A complete field.
    Field {
        /// The field's name.
        field: String,
        /// The value of the field.
        value: Value,
    },
}
