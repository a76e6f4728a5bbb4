//! Passing a request on to another node. It goes over one connection for all requests, to a process with the key that the table of
//! nodes has for it, and is given back if the other node has certainly not taken it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::header::{CONNECTION, EXPECT, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};
use axum::http::uri::{Authority, Parts, PathAndQuery, Scheme, Uri};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::Response;
use polis_http::peer::{Peer, PeerError, PeerKey};
use polis_http::{BoxError, Bytes};
use polis_ports::Node;

use super::lock;

/// The header in which a node says which address the client has.
pub(super) const CLIENT: HeaderName = HeaderName::from_static("x-polis-client");

/// The header of an answer that says that the node does not own the society.
pub(super) const MOVED: HeaderName = HeaderName::from_static("x-polis-moved");

/// Headers that are about one connection.
const OF_CONNECTION: [HeaderName; 6] =
    [CONNECTION, EXPECT, HeaderName::from_static("keep-alive"), TE, TRANSFER_ENCODING, UPGRADE];

/// A request as a client has sent it.
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) client: IpAddr,
    pub(super) body: AskedBody,
    /// Whether it may be sent again after a node may have acted on it: it only reads, or has a key so that it happens once.
    pub(super) is_repeatable: bool,
}

/// The body of a request.
pub(super) enum AskedBody {
    /// It can be sent again.
    Whole(Bytes),
    /// It is read while it is sent; none once it was.
    Stream(Option<Body>),
}

/// What became of a request that was passed on.
pub(super) enum Passed {
    Answered(Response),
    /// The other node has not acted on it, and it may be sent again if its body is still there.
    NotTaken(BoxError),
    /// Nobody knows whether the other node has acted on it.
    Unknown(BoxError),
}

impl Asked {
    /// Whether its body was given to a node that did not act on it, and is gone.
    pub(super) fn is_spent(&self) -> bool {
        matches!(self.body, AskedBody::Stream(None))
    }

    fn request(&mut self) -> Result<axum::http::Request<Body>, BoxError> {
        let body = match &mut self.body {
            AskedBody::Whole(bytes) => Body::from(bytes.clone()),
            AskedBody::Stream(body) => body.take().ok_or("the body was sent before")?,
        };
        let mut headers = self.headers.clone();
        // What the client says of a connection, or calls itself, is no other node's business.
        OF_CONNECTION.iter().for_each(|name| drop(headers.remove(name)));
        let host = headers.remove(HOST);
        headers.insert(CLIENT, HeaderValue::from_str(&self.client.to_string())?);
        let authority = match (self.uri.authority(), host) {
            (Some(authority), _) => authority.clone(),
            (None, Some(host)) => Authority::try_from(host.as_bytes())?,
            (None, None) => Authority::from_static("localhost"),
        };
        let mut parts = Parts::default();
        parts.scheme = Some(Scheme::HTTPS);
        parts.authority = Some(authority);
        parts.path_and_query = Some(self.uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/")));
        let mut request = axum::http::Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = Uri::from_parts(parts)?;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

type Link = Arc<tokio::sync::Mutex<Option<Peer<Body>>>>;

/// The connections to other nodes, by their names.
#[derive(Default)]
pub(super) struct Links(Mutex<HashMap<String, Link>>);

impl Links {
    /// Passes a request on.
    pub(super) async fn pass(&self, key: &PeerKey, node: &Node, asked: &mut Asked) -> Passed {
        let mut peer = match self.peer(key, node).await {
            Ok(peer) => peer,
            Err(error) => return Passed::NotTaken(error),
        };
        let request = match asked.request() {
            Ok(request) => request,
            Err(error) => return Passed::NotTaken(error),
        };
        match peer.send(request).await {
            Ok(response) if response.headers().contains_key(&MOVED) => Passed::NotTaken("it does not own the society".into()),
            Ok(response) => Passed::Answered(response.map(Body::new)),
            Err(PeerError::NotSent(request)) => {
                if let AskedBody::Stream(body) = &mut asked.body {
                    *body = Some(request.into_body());
                }
                Passed::NotTaken("the connection has ended".into())
            }
            Err(PeerError::Unknown(error)) => Passed::Unknown(error),
        }
    }

    /// Forgets the connections to nodes that are gone.
    pub(super) fn retain(&self, nodes: &[Node]) {
        lock(&self.0).retain(|name, _| nodes.iter().any(|node| node.name == *name && node.is_alive()));
    }

    async fn peer(&self, key: &PeerKey, node: &Node) -> Result<Peer<Body>, BoxError> {
        let link = lock(&self.0).entry(node.name.clone()).or_default().clone();
        let mut link = link.lock().await;
        match link.as_ref().filter(|peer| !peer.is_closed()) {
            Some(peer) => Ok(peer.clone()),
            None => Ok(link.insert(key.connect(&node.address, &node.key).await?).clone()),
        }
    }
}
