//! Looks names up. A resolver of one's own decides which addresses are connected to: they are used as it gives them, without a
//! second lookup.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

/// Finds the addresses of a name.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// All addresses of `host`. A port of 0 in an address means the requested port.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// Asks the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

/// A resolver as hyper's connector expects it.
#[derive(Clone)]
pub(crate) struct HyperResolver(pub(crate) Arc<dyn Resolver>);

/// Marks an error of the lookup among those of a connection.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct LookupError(io::Error);

impl Service<Name> for HyperResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = LookupError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, LookupError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LookupError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = self.0.clone();
        Box::pin(async move { Ok(resolver.resolve(name.as_str(), 0).await.map_err(LookupError)?.into_iter()) })
    }
}
