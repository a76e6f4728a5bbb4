//! HTTP for societies: REST, live events, AG-UI, OpenAI, MCP and A2A, and the page.
//!
//! A [`SocietyState`] is what the handlers of one society share. A [`Listener`] puts the routes of all societies on the network,
//! behind a token and the checks of `Host` and `Origin`. Without a listener the routes can be asked in the same process
//! ([`SocietyState::ask`]), which is how the command line works when no server runs.
//!
//! Operations and their types are in `polis-api`; this crate translates protocols. To add a route: the operation in `polis-api`, a
//! handler that takes `once::Api`, and a row in `routes.rs`.

mod a2a;
mod access;
mod actions;
mod agui;
mod artifacts;
mod body;
mod caller;
mod components;
mod doc;
mod dress;
mod events;
mod health;
mod history;
mod in_process;
mod listener;
mod mcp;
mod metrics;
mod models;
mod once;
mod openai;
mod openapi;
mod organisation;
mod page;
mod page_options;
mod past;
mod policy;
mod problem;
mod rate;
mod registry;
mod requests;
mod routes;
mod rpc;
mod sandbox;
mod session;
mod societies;
mod spoken;
mod state;
mod tls;
mod tokens;
mod tools;
mod typescript;
mod views;
mod wanted;
mod work;

pub use access::Rates;
pub use in_process::Answer;
pub use listener::{Access, BindError, Listener, MAX_CONNECTIONS, Security};
pub use openapi::contract;
pub use page_options::{PageOptions, PolicyRule, PolicyThen};
pub use polis_api::{BadScope, Scope, Scopes};
pub use rate::Rate;
pub use registry::{Open, Opener, Societies};
pub use routes::{Listed, listed};
pub use state::{About, SocietyState, Vendor};
pub use tls::{BadTls, Tls};
pub use tokens::{BadTokens, KeptToken, Token, TokenFile, write_private};
pub use tools::all_tools;
pub use typescript::typescript;
