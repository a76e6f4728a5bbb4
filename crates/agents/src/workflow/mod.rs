//! Planner, executor and verifier: what they are told, what they owe in return, and how their replies are read. Nothing here
//! asks a model or runs a tool.

mod json;
mod reply;

pub use json::{JsonError, JsonEvent, JsonLimits, JsonReader, Listener, Opened, Step};
pub use reply::{Piece, ReplyReader};
