//! Models over HTTP, one folder a dialect; behind the feature `offline` (on by default) one that needs no key.
//!
//! [`vendors::open`] turns `vendor/name` and the environment into a [`polis_ports::Model`]. [`RemoteModel`] speaks to one address
//! in one [`Dialect`]. Nothing here retries or knows of agents.

mod anthropic;
mod api_key;
pub mod cassette;
mod circuit_breaker;
mod emulated_tools;
#[doc(hidden)]
pub mod fuzzing;
mod gemini;
mod guarded_model;
mod media_parts;
mod media_support;
mod models;
mod ollama;
mod openai_chat;
mod openai_responses;
mod prices;
mod rate_limit;
mod remote_model;
mod request_parts;
pub mod vendors;
mod wire;

pub use api_key::{ApiKey, BadKey};
pub use cassette::{CassetteError, Recorder, Replayer};
pub use emulated_tools::EmulatedTools;
pub use guarded_model::GuardedModel;
pub use models::{ListedModel, ModelCheck, Models};
pub use openai_chat::{EffortField, FormatField, Quirks, TokenLimit};
pub use polis_http::HttpClient;
#[cfg(feature = "offline")]
pub use polis_offline::{Offline, Pace};
pub use prices::{BadPrices, Price, Prices};
pub use rate_limit::Rate;
pub use remote_model::{BadAddress, Dialect, RemoteModel, RemoteOptions};
