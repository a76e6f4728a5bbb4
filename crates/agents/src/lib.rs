//! The agents that ship with Polis. They are written like anybody's: on the engine's programming model, nothing else.

mod conversation;
mod converse;
mod plan;
pub mod role;
pub mod workflow;

pub use conversation::{ContextLimits, Fullness};
pub use converse::Converse;
pub use plan::PlanTool;
pub use role::RoleAgent;
