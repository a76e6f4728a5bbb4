//! Ollama's own dialect: one JSON object a line, arguments as objects, pictures as bare base64.

mod reply;
mod request;

pub(crate) use reply::OllamaReader;
pub(crate) use request::body;
