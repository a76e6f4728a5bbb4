//! The agents that ship with Polis. They are written like anybody's: on the engine's programming model, nothing else.

mod converse;
mod plan;

pub use converse::Converse;
pub use plan::PlanTool;
