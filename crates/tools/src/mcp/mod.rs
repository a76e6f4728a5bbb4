//! Tools of MCP servers (Model Context Protocol): programs that speak over stdin and stdout, or servers over HTTP.
//!
//! [`McpServers`] opens them, one supervising task each, so that whatever one of them does stays its own. [`JoinedTools`] puts
//! their tools beside the built-in ones. A server is another party: what it says of itself is bounded, and counts for nothing
//! unless the operator trusts it.

mod asked;
mod call;
mod connect;
mod ear;
mod joined;
mod listing;
mod names;
mod oauth;
mod process;
mod render;
mod server;
mod servers;
mod settings;
mod shelf;
mod tools;
mod under_way;
mod watched;

pub use joined::JoinedTools;
pub use listing::{Prompt, Resource, Template};
pub use oauth::{OAuth, login, logout};
pub use servers::{McpError, McpOptions, McpServers};
pub use settings::{Reach, ServerSettings};
