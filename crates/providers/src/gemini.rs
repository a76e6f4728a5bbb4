//! Google's `generateContent`: parts instead of text, calls whole and without ids, thoughts with signatures.

mod reply;
mod request;

pub(crate) use reply::ContentReader;
pub(crate) use request::body;
