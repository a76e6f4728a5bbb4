//! What Polis needs from the world: six small object-safe traits, each with a real implementation and one in testkit.
//!
//! [`Log`] keeps what happened, [`Model`] thinks, [`Toolbox`] acts, [`Live`] tells whoever watches, [`Clock`] knows the time,
//! [`Artifacts`] keeps what is too long for the log.
//! Nothing here holds a rule of the domain or names a vendor, a database or a protocol.

mod artifacts;
mod clock;
mod guard;
mod host;
mod live;
mod log;
mod model;
mod schema;
mod toolbox;

pub use artifacts::{ArtifactError, ArtifactStore, Artifacts, Draft, Hasher, Listing, NoArtifacts, Window};
pub use clock::Clock;
pub use guard::FileGuard;
pub use host::Host;
pub use live::{ComponentChunk, Frame, Live, LiveStream, StreamedDelta, StreamedStep};
pub use log::{Fork, Log, LogError, Origin, Snapshot, ThreadRange};
pub use model::{
    ChatMessage, Collector, Delta, DeltaStream, Effort, Format, Image, Model, ModelError, ModelRequest, ToolSpec, collect,
    estimate_tokens,
};
pub use schema::with_texts;
pub use toolbox::{CallContext, Caller, Chosen, ServerState, Tool, ToolError, ToolIdentity, ToolOrigin, ToolServer, Toolbox};

/// An error of some library below, kept whole for whoever reads the logs.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
