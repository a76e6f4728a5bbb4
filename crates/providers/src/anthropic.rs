//! Anthropic's messages: signed thinking that must come back as it was, cache marks, results that say whether they failed.

mod reply;
mod request;

pub(crate) use reply::MessageReader;
pub(crate) use request::{Thinking, Version, body, fields};
