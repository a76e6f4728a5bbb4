//! The tools by which agents remember across conversations. All of them are done by the turn that calls.

mod forget;
mod recall;
mod remember;

use polis_domain::{Flow, Memory, PersonId, iso};
use polis_engine::{Cast, Turn};

pub use forget::Forget;
pub use recall::Recall;
pub use remember::Remember;

/// The name under which it is tracked what outside content the memories of a person may repeat.
fn tracked(person: &PersonId) -> std::sync::Arc<str> {
    format!("memories of {person}").into()
}

/// Where the content of what a turn remembers comes from and goes to.
pub(crate) async fn recall_flow(turn: &Turn) -> Flow {
    let agent = turn.agent().clone();
    let person = turn.look(move |spine| spine.remembering_person(&agent)).await.unwrap_or_else(PersonId::owner);
    flow_of(&person)
}

fn flow_of(person: &PersonId) -> Flow {
    Flow { recalls: true, private: true, file: Some(tracked(person)), ..Flow::default() }
}

/// The day on which a memory was written.
pub(crate) fn memory_date(memory: &Memory) -> String {
    let mut date = iso::write(memory.edited_at.unwrap_or(memory.kept_at));
    date.truncate(10);
    date
}

/// The same cast with the tools for memory.
pub fn with_memory_tools(cast: Cast) -> Cast {
    cast.with_tool(Remember).with_tool(Recall).with_tool(Forget)
}
