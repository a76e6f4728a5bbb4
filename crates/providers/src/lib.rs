//! Models over HTTP, one folder a dialect; and one that needs no key.
//!
//! [`vendors::open`] turns `vendor/name` and the environment into a [`polis_ports::Model`]. [`Remote`] speaks to one address
//! in one [`Dialect`], [`Offline`] to nobody. Nothing here retries or knows of agents.

mod anthropic;
mod api_key;
pub mod cassette;
mod circuit;
mod emulate;
#[doc(hidden)]
pub mod fuzzing;
mod gemini;
mod guarded;
mod models;
mod offline;
mod ollama;
mod openai_chat;
mod openai_responses;
mod parts;
mod prices;
mod rate;
mod remote;
pub mod vendors;
mod wire;

pub use api_key::{ApiKey, BadKey};
pub use cassette::{CassetteError, Recorder, Replayer};
pub use emulate::Emulated;
pub use guarded::Guarded;
pub use models::{Checked, Listed, Models};
pub use offline::{Offline, Pace};
pub use openai_chat::{EffortField, FormatField, Quirks, TokenLimit};
pub use polis_http::HttpClient;
pub use prices::{BadPrices, Price, Prices};
pub use rate::Rate;
pub use remote::{BadAddress, Dialect, Remote, RemoteOptions};
