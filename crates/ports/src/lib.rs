//! The ports: what Polis needs from the world, as small object-safe traits. Each has a real implementation and one in testkit.
//!
//! [`Log`] stores events, [`Model`] answers requests, [`Toolbox`] runs tools, [`Live`] publishes to watchers, [`Clock`] tells
//! the time, [`Placement`] says which of several processes owns a society, [`Artifacts`] stores contents that are too long for the
//! log, [`MemoryTexts`] those that can be erased, and [`Embedder`] makes vectors of them. [`Documents`] stores what nodes share.
//! [`Host`] and [`Listing`] go the other way: the
//! engine implements them for running tool calls. Nothing here contains a rule of the domain or names a vendor, a database or
//! a protocol.

mod artifacts;
mod capabilities;
mod chat_message;
mod clock;
mod documents;
mod guard;
mod host;
mod live;
mod log;
mod media;
mod memory;
mod model;
mod placement;
mod schema;
mod toolbox;

pub use artifacts::{
    ArtifactError, ArtifactLimits, ArtifactStore, Artifacts, Draft, Hasher, Listing, NoArtifacts, StoredArtifact, Window,
};
pub use capabilities::{Capabilities, ModelDescription};
pub use chat_message::ChatMessage;
pub use clock::Clock;
pub use documents::{DocumentError, Documents};
pub use guard::FileGuard;
pub use host::Host;
pub use live::{ComponentChunk, Frame, Live, LiveStream, StreamedDelta, StreamedStep};
pub use log::{
    Fork, ForkOrigin, IdleList, IdleListed, IdleListing, Log, LogError, NewSnapshot, Snapshot, SocietyListing, StoredEntry,
    StoredSociety, ThreadListing, ThreadRange,
};
pub use media::{
    MAX_MEDIA_BYTES, MAX_REQUEST_MEDIA, MAX_REQUEST_MEDIA_BYTES, Media, MediaKind, NotMedia, is_fetched, media_type_of,
};
pub use memory::{Embedder, Embedding, EmbeddingPurpose, Embeddings, MemoryError, MemoryTexts, NoMemoryTexts, StoredText};
pub use model::{
    Collector, Delta, DeltaStream, Model, ModelError, ModelRequest, ToolSpec, collect, continued, estimate_tokens,
};
pub use placement::{Claimed, Node, Outdated, Placement, Taken};
pub use polis_domain::{CacheMode, Citation, Effort, Format, ModelSettings, ToolChoice, VendorCall, VendorTool};
pub use schema::with_texts;
pub use toolbox::{
    CallContext, Caller, Chosen, ServerState, ServerWait, TextChange, Tool, ToolError, ToolIdentity, ToolOrigin, ToolServer,
    Toolbox,
};

/// An error of an underlying library, kept for diagnosis.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
