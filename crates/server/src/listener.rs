//! A state on the network: which addresses may be listened on, the connections, and their end (D13).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::middleware::{from_fn, from_fn_with_state};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::Societies;
use crate::access::{Guard, PeerAddress, Rates, check};
use crate::etag_gzip::add_etag_and_gzip;
use crate::nodes;
use crate::rate_limit::Buckets;
use crate::session::Sessions;
use crate::tls::Tls;
use crate::tokens::{Token, TokenList, Tokens};

/// Most connections at once; others wait to be accepted.
pub const MAX_CONNECTIONS: usize = 16_384;

/// How long the head of a request may take to arrive.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of a request's head is read.
pub(crate) const MAX_HEAD_BYTES: usize = 64 << 10;

/// How long after a client has connected the server that stops still waits for its first request, which may be on its way.
const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// How long open responses may take when the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// How long to wait when no connection can be accepted, for example because too many files are open.
pub(crate) const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Who may connect, and how.
#[derive(Debug, Clone)]
pub struct Access {
    /// The accepted tokens. None admits everybody, and is allowed on loopback only.
    pub token: Option<Token>,
    /// Whether other machines may connect, although nothing is encrypted.
    pub insecure_listen: bool,
}

impl Access {
    /// Refuses an address that other machines can reach, unless that was asked for.
    fn check(&self, listen: SocketAddr, security: &Security) -> Result<(), BindError> {
        match listen.ip().is_loopback() {
            true => Ok(()),
            false if self.token.is_none() => Err(BindError::OpenToAll(listen)),
            false if !self.insecure_listen && security.tls.is_none() => Err(BindError::NotLoopback(listen)),
            false => Ok(()),
        }
    }
}

/// Checks beside the token. The default fits a server for this machine only.
#[derive(Default)]
pub struct Security {
    /// Encrypts; then other machines may connect.
    pub tls: Option<Tls>,
    /// Further tokens with fewer rights.
    pub tokens: Option<TokenList>,
    /// Names that this server has beside its addresses.
    pub hosts: Vec<String>,
    /// Origins of other pages that may call, such as `https://example.org`.
    pub cors: Vec<String>,
    /// Rate limits.
    pub rates: Rates,
}

/// Why there is no listening on an address.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Others could connect, unencrypted.
    #[error(
        "{0} can be reached from other machines, and nothing would be encrypted; listen on 127.0.0.1, use a certificate with --tls-cert and --tls-key, or pass --insecure-listen if you control the network"
    )]
    NotLoopback(SocketAddr),
    /// Others could connect, without a token.
    #[error("--no-auth accepts every client, so it is allowed only on loopback, not on {0}")]
    OpenToAll(SocketAddr),
    /// Somebody else listens there.
    #[error("{0} is in use; stop the other program, or choose another address with --listen (port 0 picks a free one)")]
    Taken(SocketAddr),
    /// The operating system refuses the address.
    #[error("cannot listen on {0}: {1}")]
    Refused(SocketAddr, #[source] io::Error),
}

impl BindError {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotLoopback(_) => "not_loopback",
            Self::OpenToAll(_) => "no_auth_not_loopback",
            Self::Taken(_) => "port_taken",
            Self::Refused(..) => "cannot_listen",
        }
    }
}

/// An address that is listened on; connections queue until it serves.
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
    token: Option<Token>,
    security: Security,
}

impl Listener {
    /// Begins to listen. Port 0 picks a free one.
    pub async fn bind(listen: SocketAddr, access: Access) -> Result<Self, BindError> {
        Self::bind_with(listen, access, Security::default()).await
    }

    /// The same with more security options.
    pub async fn bind_with(listen: SocketAddr, access: Access, security: Security) -> Result<Self, BindError> {
        access.check(listen, &security)?;
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => BindError::Taken(listen),
            _ => BindError::Refused(listen, error),
        };
        let tcp = TcpListener::bind(listen).await.map_err(refused)?;
        let address = tcp.local_addr().map_err(refused)?;
        Ok(Self { tcp, address, token: access.token, security })
    }

    /// Serves on a socket that listens already, for example one that another process has handed over.
    pub fn on(socket: std::net::TcpListener, access: Access, security: Security) -> Result<Self, BindError> {
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        let address = socket.local_addr().map_err(|error| BindError::Refused(unknown, error))?;
        access.check(address, &security)?;
        let refused = |error| BindError::Refused(address, error);
        socket.set_nonblocking(true).map_err(refused)?;
        let tcp = TcpListener::from_std(socket).map_err(refused)?;
        Ok(Self { tcp, address, token: access.token, security })
    }

    /// The same socket once more: it listens until both are closed.
    pub fn socket(&self) -> io::Result<std::net::TcpListener> {
        #[cfg(unix)]
        return Ok(std::os::fd::AsFd::as_fd(&self.tcp).try_clone_to_owned()?.into());
        #[cfg(not(unix))]
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`. Then the societies take nothing in and get `grace` to reach a safe point; then the event streams
    /// end, and then HTTP.
    pub async fn serve(self, societies: impl Into<Societies>, stop: CancellationToken, grace: Duration) {
        let societies = societies.into();
        let Security { tls, tokens, hosts, cors, rates } = self.security;
        let guard = Arc::new(Guard {
            tokens: self.token.map(|token| Tokens::new(&token, tokens)),
            listen: self.address.ip(),
            hosts,
            origins: cors,
            sessions: Sessions {
                port: self.address.port(),
                is_secure: tls.is_some(),
                browsers_say: tls.is_some() || self.address.ip().is_loopback(),
            },
            rates,
            buckets: Buckets::default(),
            counts: Arc::default(),
        });
        let service = TowerToHyperService::new(
            societies.router().layer(from_fn(add_etag_and_gzip)).layer(from_fn_with_state(guard.clone(), check)),
        );
        let seats = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let finish = CancellationToken::new();
        let mut connections = JoinSet::new();
        if let Some(nodes) = societies.nodes() {
            connections.spawn(nodes::serve(nodes.clone(), service.clone(), finish.clone()));
            let (guard, nodes, finish) = (guard.clone(), nodes.clone(), finish.clone());
            connections.spawn(async move {
                let exchange = guard.buckets.exchange(nodes.placement());
                finish.run_until_cancelled(exchange).await;
            });
        }
        let stopped = async {
            stop.cancelled().await;
            societies.stop(grace).await;
        };
        tokio::pin!(stopped);
        loop {
            let seat = seats.clone().acquire_owned();
            let accepted = async { (seat.await, self.tcp.accept().await) };
            tokio::select! {
                biased;
                () = &mut stopped => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                (seat, accepted) = accepted => match accepted {
                    Ok((stream, peer)) => {
                        let (service, finish, tls) = (service.clone(), finish.clone(), tls.clone());
                        connections.spawn(async move {
                            // Small answers should not wait to become larger; without it they are only slower.
                            let _ = stream.set_nodelay(true);
                            let peer = PeerAddress(peer.ip());
                            match tls {
                                None => converse(stream, peer, service, finish).await,
                                Some(tls) => match timeout(HEAD_TIMEOUT, tls.0.accept(stream)).await {
                                    Ok(Ok(stream)) => converse(stream, peer, service, finish).await,
                                    Ok(Err(error)) => tracing::debug!(%error, "a connection could not be encrypted"),
                                    Err(_) => tracing::debug!("a connection was not encrypted in time"),
                                },
                            }
                            drop(seat);
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                    }
                },
            }
        }
        drop(self.tcp);
        societies.close();
        finish.cancel();
        let answered = async { while connections.join_next().await.is_some() {} };
        if timeout(LAST_ANSWERS, answered).await.is_err() {
            tracing::warn!("some clients did not take their answers in time and were cut off");
        }
        connections.shutdown().await;
    }
}

/// Serves one connection to its end; when the server stops, until open responses are sent.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    peer: PeerAddress,
    service: TowerToHyperService<axum::Router>,
    finish: CancellationToken,
) {
    let connected = Instant::now();
    let asked = Arc::new(Notify::new());
    let service = service_fn({
        let asked = asked.clone();
        move |mut request: hyper::Request<Incoming>| {
            asked.notify_one();
            request.extensions_mut().insert(peer);
            service.call(request)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // hyper closes a connection at once of which it has read nothing.
    let finished = async {
        finish.cancelled().await;
        timeout_at(connected + FIRST_REQUEST, asked.notified()).await
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = finished => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}
