//! Models over HTTP, one file a dialect; and one that needs no key.
//!
//! [`vendors::open`] turns `vendor/name` and the environment into a [`polis_ports::Model`]. [`OpenAiChat`] speaks to any
//! OpenAI-compatible address, [`Offline`] to nobody. Nothing here retries, counts money or knows of agents.

mod api_key;
mod http;
mod models;
mod offline;
mod openai_chat;
mod sse;
pub mod vendors;

pub use api_key::{ApiKey, BadKey};
pub use http::Http;
pub use models::Models;
pub use offline::{Offline, Pace};
pub use openai_chat::{BadAddress, OpenAiChat, OpenAiOptions, Quirks, TokenLimit};
