//! Models over HTTP, one folder a dialect; behind the feature `offline` (on by default) one that needs no key.
//!
//! [`vendors::open`] turns `vendor/name` and the environment into a [`polis_ports::Model`]. [`Remote`] speaks to one address
//! in one [`Dialect`]. Nothing here retries or knows of agents.

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
pub use openai_chat::{EffortField, FormatField, Quirks, TokenLimit};
pub use polis_http::HttpClient;
#[cfg(feature = "offline")]
pub use polis_offline::{Offline, Pace};
pub use prices::{BadPrices, Price, Prices};
pub use rate::Rate;
pub use remote::{BadAddress, Dialect, Remote, RemoteOptions};
