//! What whoever watches is told: committed events, and deltas of replies that are still being written.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use polis_domain::{EffectId, Recorded, SocietyId, SubThreadPath, TaskId, ThreadId, Usage};
use serde::Serialize;
use serde_json::Value;

use crate::Delta;

/// Carries frames from a society to its watchers. It may lose frames for a slow watcher, never hold the society up.
pub trait Live: Send + Sync {
    /// Tells everybody who watches. Never blocks.
    fn publish(&self, society: &SocietyId, frame: Frame);

    /// Whether anybody might be watching; when not, publishing can be spared.
    fn is_watched(&self, society: &SocietyId) -> bool;

    /// Starts watching from now on: everything, or only what is recorded under one thread.
    fn watch(&self, society: &SocietyId, thread: Option<&ThreadId>) -> LiveStream;
}

/// Frames in the order in which they were published.
pub type LiveStream = Pin<Box<dyn Stream<Item = Frame> + Send>>;

/// One thing to be told.
#[derive(Debug, Clone)]
pub enum Frame {
    /// These events are in the log, for good.
    Committed(Arc<[Arc<Recorded>]>),
    /// A chunk of a reply that is not in the log yet (D07). It may be lost, and is not repeated.
    Delta(Arc<StreamedDelta>),
    /// What somebody in a workflow is seen doing, and what a component grows by meanwhile (D07). It may be lost as well.
    Step(Arc<StreamedStep>),
    /// Frames are missing, because this watcher was too slow or the log had failed: read the log again from the last event seen.
    Missed,
}

/// A chunk of a reply, with its address.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamedDelta {
    /// The model call that is being answered.
    pub effect: EffectId,
    /// The thread of its turn.
    pub thread: ThreadId,
    /// The chunk.
    pub delta: Delta,
}

/// What somebody in a workflow does just now, with its address.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StreamedStep {
    /// The request that it is done for.
    pub task: TaskId,
    /// The thread that it happens in.
    pub thread: ThreadId,
    /// Its address.
    pub path: SubThreadPath,
    /// The todo that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todo: Option<Arc<str>>,
    /// Who, such as `planner`.
    pub agent_type: Arc<str>,
    /// What it is seen doing, such as `planning` or `calling_tool`.
    pub action: Arc<str>,
    /// The component that is being written, such as `planner-response`, or the tool that is called; none when nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<Arc<str>>,
    /// What the component grows by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub piece: Option<ComponentChunk>,
    /// How long the step took, when it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// What the step used, when a model's reply is whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What a component grows by.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ComponentChunk {
    /// It begins again; what was told before does not count.
    Again,
    /// A text field grows by this.
    Text {
        /// The field's name.
        field: String,
        /// What it grows by.
        text: String,
    },
    /// An element of a list field is whole.
    Item {
        /// The field's name.
        field: String,
        /// The element's place, from 0.
        index: usize,
        /// The element.
        value: Value,
    },
    /// A field is whole.
    Field {
        /// The field's name.
        field: String,
        /// What it holds.
        value: Value,
    },
}
