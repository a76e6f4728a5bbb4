//! Tools of MCP servers (Model Context Protocol): programs that speak over stdin and stdout, or servers over HTTP.
//!
//! [`McpServers`] opens them, one supervising task each, so that whatever one of them does stays its own. [`JoinedTools`] puts
//! their tools beside the built-in ones. A server is another party: what it says of itself is bounded, and counts for nothing
//! unless the operator trusts it.

mod active_calls;
mod bounded_http;
mod call;
mod client_handler;
mod connect;
pub(crate) mod fuzzing;
mod joined_tools;
mod limited_transport;
mod listing;
mod names;
mod oauth;
mod process;
mod render;
mod resource_tools;
mod server;
mod server_requests;
mod servers;
mod settings;
mod tools;

pub use joined_tools::JoinedTools;
pub use listing::{Prompt, Resource, Template};
pub use oauth::{LOGINS, OAuth, login, logout};
pub use process::PASSED_ON;
pub use servers::{McpError, McpOptions, McpServers};
pub use settings::{ServerSettings, ServerTransport, StartGuard, variable_names, variables, variables_written};

/// Whose names of types stand in errors: the library's, and ours around them.
const TYPE_PREFIXES: &[&str] = &["rmcp", "polis_tools"];

/// An error of the library without the names of its types, which mean nothing to whoever reads it.
fn without_type_names(error: &impl std::fmt::Display) -> String {
    let mut text = error.to_string();
    while let Some(start) = TYPE_PREFIXES.iter().filter_map(|name| text.find(&format!(" [{name}::"))).min() {
        let Some(length) = text[start..].find("] ") else { break };
        text.replace_range(start..=start + length, "");
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn errors_do_not_show_types() {
        let shown = |text: &str| super::without_type_names(&text);
        let long = "Transport [rmcp::transport::worker::WorkerTransport<rmcp::transport::Http<[u8; 4]>>] error: refused";
        assert_eq!(shown(long), "Transport error: refused");
        let around = "Transport [polis_tools::mcp::Watched<rmcp::transport::Http>] error: refused [rmcp::X] twice";
        assert_eq!(shown(around), "Transport error: refused twice");
        assert_eq!(shown("a [list] of things"), "a [list] of things");
    }
}
