//! The HTTP client for authorization servers. An MCP server names them, so they may be anywhere: an address that is not on the
//! Internet is reached only for an MCP server that is not on the Internet itself.
//!
//! Where addresses are checked **no proxy is used**, because a proxy looks names up itself and would reach what was never checked.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use polis_http::{HttpClient, Resolver, Response};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use url::Url;

use crate::fetch::AllowedAddresses;
use crate::http_client;

/// Longest answer, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks for the logins of one server.
pub(super) struct OAuthHttp {
    http: HttpClient,
    is_inside: bool,
}

impl OAuthHttp {
    pub(super) async fn new(server: &Url) -> Result<Self, String> {
        let is_inside = is_inside(server).await;
        let mut options = http_client::options();
        options.timeouts.whole = Some(PATIENCE);
        if !is_inside {
            options.environment = options.environment.without_proxies();
            options.resolver = Arc::new(Outside);
        }
        let http = HttpClient::new(options);
        Ok(Self { http, is_inside })
    }
}

/// Whether a server is on this machine or its network.
async fn is_inside(server: &Url) -> bool {
    let Some(host) = server.host_str() else { return false };
    if let Some(address) = literal(host) {
        return !is_open(host, address);
    }
    match tokio::net::lookup_host((host, 0)).await {
        Ok(found) => found.map(|address| address.ip()).any(|address| !is_open(host, address)),
        Err(_) => false,
    }
}

fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_open(host: &str, address: IpAddr) -> bool {
    AllowedAddresses::default().permits(host, address)
}

/// Finds only what is on the Internet.
struct Outside;

#[async_trait]
impl Resolver for Outside {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let found = tokio::net::lookup_host((host, port)).await?;
        let open: Vec<_> = found.filter(|address| is_open(host, address.ip())).collect();
        if open.is_empty() { Err(io::Error::other(closed(host))) } else { Ok(open) }
    }
}

fn closed(host: &str) -> Box<dyn Error + Send + Sync> {
    format!("{host} is not on the Internet, and the server is").into()
}

impl OAuthHttpClient for OAuthHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let request = request.request.map(Into::into);
            let host = request.uri().host().unwrap_or_default();
            if !self.is_inside && literal(host).is_some_and(|address| !is_open(host, address)) {
                return Err(closed(host));
            }
            let (head, body) = self.http.send(request).await?.into_parts();
            Ok(Response::from_parts(head, body.read(MAX_ANSWER_BYTES).await?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_of_the_internet_leads_nobody_inside() {
        for (server, inside) in [("http://127.0.0.1:9/mcp", true), ("http://[::1]/", true), ("https://8.8.8.8/mcp", false)] {
            assert_eq!(is_inside(&server.parse().unwrap()).await, inside, "{server}");
        }
        let found = Outside.resolve("localhost", 0).await;
        assert!(found.is_err_and(|error| error.to_string().contains("is not on the Internet")));
    }
}
