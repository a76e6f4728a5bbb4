//! Connections to a server: direct or through a proxy, encrypted for `https`. Each step has its own error, so that a message
//! can name the address that was tried.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::{HOST, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::{Request, StatusCode, Uri};
use hyper_util::client::legacy::connect::proxy::SocksV5;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use crate::HttpError;
use crate::client::AGENT;
use crate::environment::Proxies;
use crate::error::{find, with_causes};
use crate::resolve::{HyperResolver, LookupError, Resolver};
use crate::tls::LazyTls;

/// Opens connections; copies share everything.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) tcp: HttpConnector<HyperResolver>,
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) proxies: Arc<Proxies>,
    pub(crate) tls: LazyTls,
    /// How long a connection may take, with proxy and encryption.
    pub(crate) timeout: Duration,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Socket>;
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, HttpError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), HttpError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            match tokio::time::timeout(connector.timeout, connector.connect(&target)).await {
                Ok(connected) => connected.map(TokioIo::new),
                Err(_) => Err(HttpError::Unreachable {
                    address: address_of(&target),
                    reason: format!("no connection within {} s", connector.timeout.as_secs_f32()),
                }),
            }
        })
    }
}

impl Connector {
    async fn connect(&self, target: &Uri) -> Result<Socket, HttpError> {
        let is_encrypted = target.scheme_str() == Some("https");
        let Some(proxy) = self.proxies.for_target(target)? else {
            let socket = Socket::new(self.open(target).await?);
            return if is_encrypted { self.encrypted(socket, target).await } else { Ok(socket) };
        };
        if matches!(proxy.uri().scheme_str(), Some("socks5" | "socks5h")) {
            let socket = Socket::new(self.through_socks(&proxy, target).await?);
            return if is_encrypted { self.encrypted(socket, target).await } else { Ok(socket) };
        }
        let socket = self.reach(&proxy).await.map_err(|error| at_proxy(&proxy, error))?;
        if !is_encrypted {
            return Ok(Socket { is_proxied: true, ..socket });
        }
        let tunnel = tunnel(socket, &proxy, target).await?;
        self.encrypted(tunnel, target).await
    }

    async fn open(&self, target: &Uri) -> Result<TcpStream, HttpError> {
        let opened = self.tcp.clone().call(target.clone()).await;
        opened.map(TokioIo::into_inner).map_err(|error| {
            if let Some(lookup) = find::<LookupError>(&error) {
                let host = target.host().unwrap_or_default().to_owned();
                return HttpError::NameNotFound { host, reason: lookup.to_string() };
            }
            let address = address_of(target);
            match find::<io::Error>(&error) {
                Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => HttpError::Refused { address },
                Some(error) => HttpError::Unreachable { address, reason: error.to_string() },
                None => HttpError::Unreachable { address, reason: with_causes(&error) },
            }
        })
    }

    /// A connection to a proxy that speaks HTTP.
    async fn reach(&self, proxy: &Intercept) -> Result<Socket, HttpError> {
        let socket = Socket::new(self.open(proxy.uri()).await?);
        if proxy.uri().scheme_str() != Some("https") {
            return Ok(socket);
        }
        let tls = self.tls.get().await?;
        encrypt(socket, proxy.uri(), tls.for_proxies, &tls.trusted).await
    }

    async fn through_socks(&self, proxy: &Intercept, target: &Uri) -> Result<TcpStream, HttpError> {
        // Ports are named, because the library takes 443 for any other.
        let mut to = with_port(target, if target.scheme_str() == Some("https") { 443 } else { 80 })?;
        if proxy.uri().scheme_str() == Some("socks5") {
            // The library would block the thread, and not ask our resolver.
            to = self.resolved(to).await.map_err(|why| {
                let host = target.host().unwrap_or_default();
                let advice = "write socks5h:// if the proxy is to look names up";
                proxy_error(proxy, format!("needs the address of {host}, which was not found here ({why}); {advice}"))
            })?;
        }
        let mut socks = SocksV5::new(with_port(proxy.uri(), 1080)?, self.tcp.clone());
        if let Some((user, password)) = proxy.raw_auth() {
            socks = socks.with_auth(user.to_owned(), password.to_owned());
        }
        let opened = socks.call(to).await;
        let refused = |error| proxy_error(proxy, format!("gives no way to {}: {}", address_of(target), with_causes(&error)));
        opened.map(TokioIo::into_inner).map_err(refused)
    }

    /// The same place with the address of its host.
    async fn resolved(&self, place: Uri) -> Result<Uri, String> {
        let host = place.host().unwrap_or_default().trim_matches(['[', ']']);
        if host.parse::<IpAddr>().is_ok() {
            return Ok(place);
        }
        let port = place.port_u16().unwrap_or_default();
        let found = self.resolver.resolve(host, port).await.map_err(|error| error.to_string())?;
        let first = found.first().ok_or("it has no address")?.ip();
        let mut parts = place.into_parts();
        parts.authority = Some(SocketAddr::new(first, port).to_string().parse().map_err(|_| "it has no usable address")?);
        Uri::from_parts(parts).map_err(|error| error.to_string())
    }

    async fn encrypted(&self, socket: Socket, target: &Uri) -> Result<Socket, HttpError> {
        let tls = self.tls.get().await?;
        encrypt(socket, target, tls.config, &tls.trusted).await
    }
}

async fn encrypt(socket: Socket, target: &Uri, config: Arc<ClientConfig>, trusted: &str) -> Result<Socket, HttpError> {
    let address = address_of(target);
    let host = target.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let name = ServerName::try_from(host).map_err(|_| HttpError::BadAddress { address: address.clone() })?;
    let encrypted = TlsConnector::from(config).connect(name, socket).await.map_err(|error| {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let reason = error.to_string();
        match tls {
            Some(rustls::Error::InvalidCertificate(_)) => HttpError::Untrusted { address, by: trusted.to_owned(), reason },
            _ => HttpError::Unreachable { address, reason: format!("no encrypted connection ({reason})") },
        }
    })?;
    let is_http2 = encrypted.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok(Socket { is_http2, ..Socket::new(encrypted) })
}

/// Has a proxy connect us to a server: `CONNECT`.
async fn tunnel(socket: Socket, proxy: &Intercept, target: &Uri) -> Result<Socket, HttpError> {
    let host = target.host().unwrap_or_default();
    let to = format!("{host}:{}", target.port_u16().unwrap_or(443));
    let failed = |error: hyper::Error| proxy_error(proxy, format!("gives no way to {to}: {}", with_causes(&error)));
    let (mut requests, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.map_err(failed)?;
    tokio::spawn(async move { drop(connection.with_upgrades().await) });
    let mut request = Request::connect(&to).header(HOST, &to).header(USER_AGENT, AGENT);
    if let Some(login) = proxy.basic_auth() {
        request = request.header(PROXY_AUTHORIZATION, login);
    }
    let request = request.body(Empty::<Bytes>::new());
    let request = request.map_err(|_| HttpError::BadAddress { address: to.clone() })?;
    let response = requests.send_request(request).await.map_err(failed)?;
    match response.status() {
        status if status.is_success() => {
            let tunnel = hyper::upgrade::on(response).await.map_err(failed)?;
            Ok(Socket::new(TokioIo::new(tunnel)))
        }
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => Err(proxy_auth_required(proxy)),
        status => Err(proxy_error(proxy, format!("refuses to connect to {to} ({status})"))),
    }
}

/// The error for a proxy that requires a login, or another one.
pub(crate) fn proxy_auth_required(proxy: &Intercept) -> HttpError {
    proxy_error(proxy, "wants a user and a password (407): http://USER:PASSWORD@HOST:PORT".to_owned())
}

fn at_proxy(proxy: &Intercept, error: HttpError) -> HttpError {
    let reason = match error {
        HttpError::Refused { .. } => "refuses connections; is it running?".to_owned(),
        HttpError::NameNotFound { reason, .. } => format!("was not found ({reason})"),
        HttpError::Unreachable { reason, .. } => format!("cannot be reached ({reason})"),
        other => format!("cannot be used: {other}"),
    };
    proxy_error(proxy, reason)
}

fn proxy_error(proxy: &Intercept, reason: String) -> HttpError {
    HttpError::Proxy { proxy: address_of(proxy.uri()), reason }
}

/// Host and port, and nothing else that an address may hold.
pub(crate) fn address_of(target: &Uri) -> String {
    let usual = if target.scheme_str() == Some("https") { 443 } else { 80 };
    format!("{}:{}", target.host().unwrap_or_default(), target.port_u16().unwrap_or(usual))
}

fn with_port(address: &Uri, usual: u16) -> Result<Uri, HttpError> {
    if address.port().is_some() {
        return Ok(address.clone());
    }
    let mut parts = address.clone().into_parts();
    let bad = || HttpError::BadAddress { address: address_of(address) };
    let authority = format!("{}:{usual}", address.host().unwrap_or_default());
    parts.authority = Some(authority.parse().map_err(|_| bad())?);
    Uri::from_parts(parts).map_err(|_| bad())
}

/// An open connection.
pub(crate) struct Socket {
    io: Pin<Box<dyn Io>>,
    /// Whether requests name the whole address, for a proxy that reads them.
    is_proxied: bool,
    is_http2: bool,
}

trait Io: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Io for T {}

impl Socket {
    fn new(io: impl Io + 'static) -> Self {
        Self { io: Box::pin(io), is_proxied: false, is_http2: false }
    }
}

impl Connection for Socket {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.is_proxied);
        if self.is_http2 { connected.negotiated_h2() } else { connected }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.io.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io.as_mut().poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
