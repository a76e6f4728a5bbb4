//! The HTTP client for authorization servers. An MCP server names them, so they may be anywhere: an address that is not on the
//! Internet is reached only for an MCP server that is not on the Internet itself. Behind a proxy the name is checked instead of
//! the address, because the proxy looks it up.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use polis_http::{HttpClient, HttpOptions, Resolver, Response, SystemResolver, Uri};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use url::Url;

use crate::fetch::{AllowedAddresses, check_proxied};
use crate::http_client;

/// Longest answer, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks for the logins of one server.
pub(super) struct OAuthHttp {
    http: HttpClient,
    /// For addresses that are reached directly, where they have to be on the Internet; none if they may be anywhere.
    outside: Option<HttpClient>,
}

impl OAuthHttp {
    pub(super) async fn new(server: &Url, network: &HttpOptions) -> Self {
        let mut options = http_client::options(network);
        options.timeouts.whole = Some(PATIENCE);
        let http = HttpClient::new(options);
        let outside = (!is_inside(server).await).then(|| http.with_resolver(Arc::new(Outside)));
        Self { http, outside }
    }

    /// The client for an address, or why it is not reached.
    async fn client_for(&self, target: &Uri) -> Result<&HttpClient, Box<dyn Error + Send + Sync>> {
        let Some(outside) = &self.outside else { return Ok(&self.http) };
        let host = target.host().unwrap_or_default().trim_matches(['[', ']']);
        if self.http.uses_proxy(target)? {
            check_proxied(host, target.port_u16().unwrap_or(443), &AllowedAddresses::default(), &SystemResolver).await?;
            return Ok(&self.http);
        }
        match literal(host) {
            Some(address) if !is_open(host, address) => Err(closed(host)),
            _ => Ok(outside),
        }
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
            let (head, body) = self.client_for(request.uri()).await?.send(request).await?.into_parts();
            Ok(Response::from_parts(head, body.read(MAX_ANSWER_BYTES).await?))
        })
    }
}

#[cfg(test)]
mod tests {
    use polis_http::Environment;

    use super::*;

    #[tokio::test]
    async fn behind_a_proxy_an_inside_name_is_refused_and_others_go_to_the_proxy() {
        let environment = Environment::default().with_proxy("http://10.0.0.9:3128").unwrap();
        let network = HttpOptions::new(environment);
        let outside = OAuthHttp::new(&"https://8.8.8.8/mcp".parse().unwrap(), &network).await;
        let is_reached = async |host: &str| outside.client_for(&format!("https://{host}/token").parse().unwrap()).await.is_ok();
        assert!(is_reached("login.invalid").await);
        for inside in ["10.0.0.1", "[::1]", "127.0.0.1", "login.corp"] {
            assert!(!is_reached(inside).await, "{inside}");
        }
        let inside = OAuthHttp::new(&"https://127.0.0.1/mcp".parse().unwrap(), &network).await;
        assert!(inside.client_for(&Uri::from_static("https://10.0.0.1/token")).await.is_ok());
    }

    #[tokio::test]
    async fn a_server_of_the_internet_leads_nobody_inside() {
        for (server, inside) in [("http://127.0.0.1:9/mcp", true), ("http://[::1]/", true), ("https://8.8.8.8/mcp", false)] {
            assert_eq!(is_inside(&server.parse().unwrap()).await, inside, "{server}");
        }
        let found = Outside.resolve("localhost", 0).await;
        assert!(found.is_err_and(|error| error.to_string().contains("is not on the Internet")));
    }
}
