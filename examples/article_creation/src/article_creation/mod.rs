//! Articles for whoever asks for one: the conversation, and below it the folders of its sub-threads.

mod article_creation_agent;
mod article_creation_state_handlers;
mod article_writing;

pub use article_creation_agent::ArticleCreationAgent;
