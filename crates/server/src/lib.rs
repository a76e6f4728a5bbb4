//! The doors of a society: HTTP and live events.
//!
//! A [`Desk`] answers requests about one society; it is the table of routes with everything behind it. A [`Listener`] puts
//! the desk on the network, behind a token and the checks of `Host` and `Origin`; without a listener a desk can be asked in
//! the same process, which is how the command line works when no server is running.
//!
//! To add a route: one file, or a function in the file of its group, and one line in the table (`routes.rs`). The shapes on
//! the wire are private to this crate, and it holds no rule of the domain: it asks the society and says what came of it.

mod a2a;
mod access;
mod agents;
mod approvals;
mod artifacts;
mod body;
mod caller;
mod desk;
mod doc;
mod events;
mod health;
mod history;
mod listener;
mod mcp;
mod messages;
mod models;
mod org;
mod problem;
mod routes;
mod rpc;
mod societies;
mod submit;
mod tasks;
mod threads;
mod tools;
mod town;
mod wanted;
mod work;

pub use access::Token;
pub use caller::{BadScope, Scope, Scopes};
pub use desk::{About, Answer, Desk, Vendor};
pub use listener::{Access, BindError, Listener};
pub use routes::{Listed, listed};
pub use tools::all_tools;
pub use town::{Keeper, Open, Town};
