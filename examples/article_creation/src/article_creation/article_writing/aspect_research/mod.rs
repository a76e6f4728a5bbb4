//! What the sources say about one aspect of a topic.

mod aspect_research_agent;
mod aspect_research_interaction_units;
mod aspect_research_state_handlers;

pub(crate) use aspect_research_agent::AspectResearchAgent;
