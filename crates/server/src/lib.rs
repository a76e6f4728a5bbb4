//! HTTP for societies: REST, live events, AG-UI, OpenAI, MCP and A2A, and the page.
//!
//! A [`SocietyState`] is what the handlers of one society share. A [`Listener`] puts the routes of all societies on the network,
//! behind a token and the checks of `Host` and `Origin`. Without a listener a program calls the same operations directly:
//! [`SocietyState::api`], [`SocietyState::events`] and [`SocietyState::mcp`].
//!
//! Operations and their types are in `polis-api`; this crate translates protocols. To add a route: the operation in `polis-api`, a
//! handler that takes `extract::CallerApi`, and a row in `routes.rs`.

mod a2a;
mod access;
mod addressee;
mod agui;
mod artifacts;
mod body;
mod caller;
mod client_files;
mod components;
mod conversations;
mod etag_gzip;
mod events;
mod extract;
mod files;
mod history;
mod idempotency;
mod listener;
mod live;
mod mcp;
mod memories;
mod metrics;
mod node;
mod nodes;
mod openai;
mod openapi;
mod organisation;
mod page;
mod page_options;
mod problem;
mod rate_limit;
mod registry;
mod requests;
mod route_doc;
mod routes;
mod rpc;
mod sandbox;
mod session;
mod societies;
mod state;
mod task_follower;
mod tls;
mod tokens;
mod typescript;
mod views;

pub use access::Rates;
pub use files::serve_files;
pub use listener::{Access, BindError, Listener, MAX_CONNECTIONS, Security};
pub use live::{LiveEvent, LiveEvents};
pub use mcp::McpMessages;
pub use nodes::Membership;
pub use openapi::contract;
pub use page_options::PageOptions;
pub use polis_api::local::{HostSettings, Vendor};
pub use polis_api::{BadScope, PolicyRule, PolicyThen, Scope, Scopes};
pub use rate_limit::Rate;
pub use registry::{Open, Opener, STOP_GRACE, Societies};
pub use routes::{RouteEntry, route_table};
pub use state::SocietyState;
pub use tls::{BadTls, Tls};
pub use tokens::{StoredToken, Token, TokenList, TokenListError};
pub use typescript::typescript;
