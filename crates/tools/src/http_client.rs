//! The HTTP client for MCP servers, their authorization servers, and A2A agents.

use std::time::Duration;

use polis_http::{HttpClient, HttpOptions, Timeouts};

/// How long an address may take to be reached.
const CONNECT: Duration = Duration::from_secs(10);

/// Options for a client with the proxies and certificates of `network`. Connections are not kept: a server may close a kept one
/// while a request is written, and a write is in doubt then.
pub(crate) fn options(network: &HttpOptions) -> HttpOptions {
    let timeouts = Timeouts { connect: CONNECT, ..Timeouts::default() };
    HttpOptions { timeouts, max_idle_per_host: 0, ..network.clone() }
}

/// A client with these options.
pub(crate) fn client(network: &HttpOptions) -> HttpClient {
    HttpClient::new(options(network))
}
