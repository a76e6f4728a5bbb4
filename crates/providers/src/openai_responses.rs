//! OpenAI's responses: a list of items in and out, nothing kept by the vendor, reasoning that comes back encrypted.

mod reply;
mod request;

pub(crate) use reply::ResponseReader;
pub(crate) use request::body;
