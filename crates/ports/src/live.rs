//! What whoever watches is told: committed events, and deltas of replies that are still being written.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use polis_domain::{EffectId, Recorded, SocietyId, ThreadId};

use crate::Delta;

/// Carries frames from a society to its watchers. It may lose frames for a slow watcher, never hold the society up.
pub trait Live: Send + Sync {
    /// Tells everybody who watches. Never blocks.
    fn publish(&self, society: &SocietyId, frame: Frame);

    /// Whether anybody might be watching; when not, publishing can be spared.
    fn is_watched(&self, society: &SocietyId) -> bool;

    /// Starts watching from now on.
    fn watch(&self, society: &SocietyId) -> LiveStream;
}

/// Frames in the order in which they were published.
pub type LiveStream = Pin<Box<dyn Stream<Item = Frame> + Send>>;

/// One thing to be told.
#[derive(Debug, Clone)]
pub enum Frame {
    /// These events are in the log, for good.
    Committed(Arc<[Arc<Recorded>]>),
    /// A piece of a reply that is not in the log yet (D07). It may be lost, and is not repeated.
    Delta(Arc<StreamedDelta>),
    /// This watcher was too slow and missed frames: read the log again from the last event seen.
    Missed,
}

/// A piece of a reply, with its address.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamedDelta {
    /// The model call that is being answered.
    pub effect: EffectId,
    /// The thread of its turn.
    pub thread: ThreadId,
    /// The piece.
    pub delta: Delta,
}
