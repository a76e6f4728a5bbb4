//! The agents that ship with Polis. They are written like anybody's: on the engine's programming model, nothing else.

mod conversation;
mod converse;
pub mod workflow;

pub use conversation::{ContextLimits, Fullness};
pub use converse::Converse;
