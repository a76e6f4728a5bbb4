//! How those are asked who give out logins. A server names them, so they may be anywhere: what is not on the Internet is reached
//! only for a server that is not there itself.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};

use crate::fetch::Allowed;
use crate::mcp::connect::http_client;

/// Longest answer, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks for the logins of one server.
pub(super) struct Wire {
    http: reqwest::Client,
    is_inside: bool,
}

impl Wire {
    pub(super) async fn new(server: &Url) -> Result<Self, String> {
        let is_inside = is_inside(server).await;
        let builder = reqwest::Client::builder();
        let builder = if is_inside { builder } else { builder.dns_resolver(Arc::new(Outside)) };
        Ok(Self { http: http_client(builder.timeout(PATIENCE))?, is_inside })
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
    Allowed::default().permits(host, address)
}

/// Finds only what is on the Internet.
struct Outside;

impl Resolve for Outside {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let open: Vec<_> = found.filter(|address| is_open(name.as_str(), address.ip())).collect();
            if open.is_empty() {
                return Err(closed(name.as_str()));
            }
            Ok(Box::new(open.into_iter()) as Addrs)
        })
    }
}

fn closed(host: &str) -> Box<dyn Error + Send + Sync> {
    format!("{host} is not on the Internet, and the server is").into()
}

impl OAuthHttpClient for Wire {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let request = reqwest::Request::try_from(request.request)?;
            let host = request.url().host_str().unwrap_or_default();
            if !self.is_inside && literal(host).is_some_and(|address| !is_open(host, address)) {
                return Err(closed(host));
            }
            let mut response = self.http.execute(request).await?;
            let mut answer = hyper::Response::builder().status(response.status());
            for (name, value) in response.headers() {
                answer = answer.header(name, value);
            }
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await? {
                if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                    return Err(format!("an answer is longer than {MAX_ANSWER_BYTES} bytes").into());
                }
                body.extend_from_slice(&chunk);
            }
            Ok(answer.body(body)?)
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
        let found = Outside.resolve("localhost".parse().unwrap()).await;
        assert!(found.is_err_and(|error| error.to_string().contains("is not on the Internet")));
    }
}
