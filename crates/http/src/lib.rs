//! Every outgoing HTTP connection of Polis goes through [`HttpClient`], and those to other nodes through [`peer`].
//!
//! It speaks HTTP/1.1 and HTTP/2, trusts the certificates of the system, uses the proxies that the environment names, and
//! **sends nothing twice**: one call of [`HttpClient::send`] writes a request to at most one connection. Only a request of which
//! provably no byte was written goes to another connection. Redirects are not followed.
//!
//! ```no_run
//! # async fn ask() -> Result<(), polis_http::HttpError> {
//! use polis_http::{HttpClient, HttpOptions, Request};
//!
//! let client = HttpClient::new(HttpOptions::from_env());
//! let request = Request::get("https://polis.example/").body(Default::default()).expect("the address is well formed");
//! let response = client.send(request).await?;
//! let text = response.into_body().read(1 << 20).await?;
//! # let _ = text; Ok(())
//! # }
//! ```
//!
//! Read `client.rs` (sending), `connect.rs` (the way to a server, with proxy and TLS), `tls.rs` (which certificates count),
//! `environment.rs` (which variables count), `body.rs` (responses with limits), `sse.rs` (events), `peer.rs` (connections between nodes).

mod body;
mod client;
mod connect;
mod environment;
mod error;
pub mod peer;
mod resolve;
pub mod sse;
mod tls;

pub use body::Body;
pub use client::{HttpClient, HttpOptions, Timeouts};
pub use environment::{BadProxy, Environment};
pub use error::HttpError;
pub use hyper::body::Bytes;
pub use hyper::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header, request,
};
pub use resolve::{Resolver, SystemResolver};
pub use tls::{Identity, Trust, tls_config};

/// An error of an underlying library, for diagnosis.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
