//! Models over HTTP, one folder a dialect; behind the feature `offline` (on by default) one that needs no key.
//!
//! [`vendors::open`] turns `vendor/name` and the environment into a [`polis_ports::Model`]. [`RemoteModel`] speaks to one address
//! in one [`Dialect`]. Nothing here retries or knows of agents.

mod anthropic;
mod api_key;
mod aws;
mod bedrock;
mod call_ids;
pub mod cassette;
mod circuit_breaker;
mod cloud;
mod embeddings;
mod emulated_tools;
mod endpoint;
#[doc(hidden)]
pub mod fuzzing;
mod gemini;
mod google;
mod guarded_model;
mod key_source;
mod local_servers;
mod login;
mod media_parts;
mod media_support;
mod model_list;
mod model_table;
mod models;
mod names;
mod names_table;
mod ollama;
mod openai_chat;
mod openai_responses;
mod percent;
mod prices;
mod rate_limit;
mod refused_settings;
mod remote_model;
mod request_parts;
mod thoughts;
mod utc;
mod vendor_tools;
pub mod vendors;
mod vertex;
mod wire;

pub use api_key::{ApiKey, BadKey};
pub use aws::AwsCredentials;
pub use call_ids::CallIds;
pub use cassette::{CassetteError, Recorder, Replayer};
pub use cloud::{ACCOUNT_VARIABLES, Cloud, CloudSettings};
pub use embeddings::{EmbeddingSettings, RemoteEmbedder};
pub use emulated_tools::EmulatedTools;
pub use endpoint::{Endpoint, EndpointTimeouts};
pub use google::GoogleCredentials;
pub use guarded_model::GuardedModel;
pub use key_source::{CommandGuard, KeyCommand, KeyFile, KeySource};
pub use local_servers::SWITCH as LOCAL_MODELS_SWITCH;
pub use model_list::VendorModel;
pub use model_table::ModelLine;
pub use models::{ListedModel, ModelCheck, Models};
pub use openai_chat::{EffortField, FormatField, Quirks, SeedField, TokenLimit, VendorToolNames};
pub use polis_http::HttpClient;
#[cfg(feature = "offline")]
pub use polis_offline::{Offline, Pace};
pub use prices::{BadPrices, Price, Prices};
pub use rate_limit::Rate;
pub use remote_model::{BadAddress, Dialect, KeyHeader, RemoteModel, RemoteOptions};
