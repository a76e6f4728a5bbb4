//! The tools by which agents remember across conversations. All of them are done by the turn that calls.

mod forget;
mod recall;
mod remember;

use polis_engine::Cast;

pub use forget::Forget;
pub use recall::Recall;
pub use remember::Remember;

/// The same cast with the tools for memory.
pub fn with_memory_tools(cast: Cast) -> Cast {
    cast.with_tool(Remember).with_tool(Recall).with_tool(Forget)
}
