//! One article, from the outline to the last draft.

mod article_writing_agent;
mod article_writing_interaction_units;
mod article_writing_state_handlers;
mod aspect_research;
mod editorial_review;
mod outline;
mod remarks;
mod verdict;

pub(crate) use article_writing_agent::ArticleWritingAgent;
