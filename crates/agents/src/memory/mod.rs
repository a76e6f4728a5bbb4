//! The tools by which agents remember across conversations. All of them are done by the turn that calls.

mod forget;
mod recall;
mod remember;

use polis_domain::PersonId;
use polis_engine::Cast;

pub use forget::Forget;
pub use recall::Recall;
pub use remember::Remember;

/// The name under which it is tracked what outside content the memories of a person may repeat.
fn tracked(person: &PersonId) -> std::sync::Arc<str> {
    format!("memories of {person}").into()
}

/// The same cast with the tools for memory.
pub fn with_memory_tools(cast: Cast) -> Cast {
    cast.with_tool(Remember).with_tool(Recall).with_tool(Forget)
}
