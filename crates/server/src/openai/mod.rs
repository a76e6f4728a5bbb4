//! The society for clients that speak OpenAI's API: `polis`, each agent and each role is a model.
//!
//! Clients of chat completions send the whole conversation each time. Which request of ours it continues is found by what the
//! user has said so far (`conversation.rs`). What a model would call a tool call is one here only for tools that the client
//! itself brings along; ours are used on this side. A client that leaves cancels nothing.

mod answer_format;
mod approval_text;
mod chat;
mod client_request;
mod client_tools;
mod completion;
mod content;
mod conversation;
mod conversations;
mod error;
mod model_settings;
mod models;
mod response_object;
mod response_output;
mod response_stream;
mod responses;
mod side_request;

pub(crate) use chat::chat;
pub(crate) use conversations::{
    create as create_conversation, delete as delete_conversation, retrieve as retrieve_conversation,
    update as update_conversation,
};
pub(crate) use error::shaped;
pub(crate) use models::{model, models};
pub(crate) use response_stream::ResponseStreams;
pub(crate) use responses::{cancel, create, delete as delete_response, input_items, retrieve};
