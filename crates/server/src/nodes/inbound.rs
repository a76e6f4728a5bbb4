//! Requests that other nodes pass on: HTTP/2, only from a process whose key is in the table of nodes.

use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::header::HOST;
use axum::http::uri::{Parts, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use polis_http::peer::admit;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Nodes;
use super::dispatch::FromNode;
use super::links::CLIENT;
use crate::access::PeerAddress;
use crate::listener::{ACCEPT_AGAIN, HEAD_TIMEOUT, MAX_HEAD_BYTES};
use crate::state::MAX_STREAMS;

/// Most connections of other nodes, and of those who are not found to be none yet.
const MAX_CONNECTIONS: usize = 256;

/// How often a connection is checked, and how long the answer may take.
const ALIVE: Duration = Duration::from_secs(5);

/// How much of one body may be under way, and of all.
const WINDOWS: (u32, u32) = (1 << 20, 16 << 20);

/// Serves other nodes until `finish`.
pub(crate) async fn serve(nodes: Arc<Nodes>, service: TowerToHyperService<axum::Router>, finish: CancellationToken) {
    let Some(socket) = super::lock(&nodes.socket).take() else { return };
    let socket = match listener(socket) {
        Ok(socket) => socket,
        Err(error) => return tracing::error!(%error, "the socket for other nodes cannot be used"),
    };
    let seats = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let seat = seats.clone().acquire_owned();
        let accepted = async { (seat.await, socket.accept().await) };
        tokio::select! {
            () = finish.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            (seat, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    let (nodes, service, finish) = (nodes.clone(), service.clone(), finish.clone());
                    connections.spawn(async move {
                        serve_one(&nodes, stream, service, finish).await;
                        drop(seat);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection of another node could not be accepted");
                    sleep(ACCEPT_AGAIN).await;
                }
            },
        }
    }
    drop(socket);
    while connections.join_next().await.is_some() {}
}

fn listener(socket: TcpListener) -> std::io::Result<tokio::net::TcpListener> {
    socket.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(socket)
}

/// Serves one connection, if a node has made it.
async fn serve_one(nodes: &Nodes, stream: TcpStream, service: TowerToHyperService<axum::Router>, finish: CancellationToken) {
    let _ = stream.set_nodelay(true);
    let proven = timeout(HEAD_TIMEOUT, nodes.key.accept(stream)).await;
    let (mut stream, key) = match proven {
        Ok(Ok(proven)) => proven,
        Ok(Err(error)) => return tracing::warn!(%error, "a connection to the address for nodes has no key and was closed"),
        Err(_) => return tracing::warn!("a connection to the address for nodes proved no key in time and was closed"),
    };
    match nodes.find_new(|node| node.key == key).await {
        Ok(Some(node)) => tracing::debug!(node = node.name, "another node has connected"),
        Ok(None) => return tracing::warn!("a connection to the address for nodes has a key that is no node's and was closed"),
        Err(error) => return tracing::warn!(%error, "whether a connection is another node's could not be found out"),
    }
    if let Err(error) = admit(&mut stream).await {
        return tracing::debug!(%error, "the connection of another node broke off");
    }
    let service = service_fn(move |request: hyper::Request<Incoming>| service.call(as_asked(request)));
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(ALIVE)
        .max_concurrent_streams(MAX_STREAMS as u32)
        .max_header_list_size(2 * MAX_HEAD_BYTES as u32)
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = finish.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "the connection of another node broke off");
    }
}

/// A request as the client has sent it to the other node.
fn as_asked(mut request: hyper::Request<Incoming>) -> hyper::Request<Incoming> {
    let client = request.headers_mut().remove(CLIENT);
    let client = client.and_then(|client| client.to_str().ok()?.parse::<IpAddr>().ok());
    let mut parts = Parts::default();
    parts.path_and_query = request.uri().path_and_query().cloned();
    let host = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if let (Ok(uri), Some(host)) = (Uri::from_parts(parts), host) {
        *request.uri_mut() = uri;
        request.headers_mut().insert(HOST, host);
    }
    let extensions = request.extensions_mut();
    extensions.insert(FromNode);
    // Only nodes are believed; one that says nothing of the client is not.
    extensions.insert(PeerAddress(client.unwrap_or(IpAddr::from([0, 0, 0, 0]))));
    request
}
