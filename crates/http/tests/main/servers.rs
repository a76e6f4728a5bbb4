//! Small servers: one that answers by a function, with or without TLS, and a proxy.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use polis_http::{Bytes, Environment, HttpClient, HttpError, HttpOptions, Request, Resolver};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// What a server was sent, each request with its head and body.
pub(crate) type Requests = Arc<Mutex<Vec<String>>>;

/// The bytes of an answer; a server that has none closes.
pub(crate) type Answer = Option<Vec<u8>>;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Requests,
}

pub(crate) fn tls_file(name: &str) -> PathBuf {
    PathBuf::from(format!("{}/../server/tests/tls/{name}", env!("CARGO_MANIFEST_DIR")))
}

fn server_config() -> ServerConfig {
    let chain = CertificateDer::pem_file_iter(tls_file("certificate.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(tls_file("key.pem")).unwrap();
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap()
}

impl Server {
    /// Answers the request with this number as the function says, over as many connections as come.
    pub(crate) async fn start(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::with(None, answer).await
    }

    pub(crate) async fn encrypted(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::with(Some(TlsAcceptor::from(Arc::new(server_config()))), answer).await
    }

    async fn with(tls: Option<TlsAcceptor>, answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, requests, answer) = (listener.local_addr().unwrap(), Requests::default(), Arc::new(answer));
        let seen = requests.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (seen, answer, tls) = (seen.clone(), answer.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => match tls.accept(socket).await {
                            Ok(socket) => serve(socket, &seen, &*answer).await,
                            Err(_) => Ok(()),
                        },
                        None => serve(socket, &seen, &*answer).await,
                    }
                });
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/path?query=1", self.address)
    }

    pub(crate) fn https(&self) -> String {
        format!("https://localhost:{}/path", self.address.port())
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    seen: &Requests,
    answer: &(dyn Fn(usize) -> Answer + Send + Sync),
) -> io::Result<()> {
    while let Some(request) = read_request(&mut socket).await? {
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            seen.len()
        };
        match answer(number) {
            Some(bytes) => socket.write_all(&bytes).await?,
            None => break,
        }
    }
    socket.shutdown().await
}

/// A head, and as much of a body as it announces.
async fn read_request(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        match socket.read_u8().await {
            Ok(byte) => bytes.push(byte),
            Err(_) => return Ok(None),
        }
    }
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await?;
    Ok(Some(head + &String::from_utf8_lossy(&body)))
}

pub(crate) fn ok(body: &str) -> Answer {
    Some(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes())
}

/// A proxy that leads everything to one server, and wants a login if there is one.
pub(crate) async fn proxy(to: SocketAddr, login: Option<&'static str>) -> Server {
    proxy_with(None, to, login).await
}

/// The same over TLS.
pub(crate) async fn encrypted_proxy(to: SocketAddr, login: Option<&'static str>) -> Server {
    proxy_with(Some(TlsAcceptor::from(Arc::new(server_config()))), to, login).await
}

async fn proxy_with(tls: Option<TlsAcceptor>, to: SocketAddr, login: Option<&'static str>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, requests) = (listener.local_addr().unwrap(), Requests::default());
    let seen = requests.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (seen, tls) = (seen.clone(), tls.clone());
            tokio::spawn(async move {
                match tls {
                    Some(tls) => pass_on(tls.accept(socket).await.unwrap(), &seen, to, login).await,
                    None => pass_on(socket, &seen, to, login).await,
                }
            });
        }
    });
    Server { address, requests }
}

async fn pass_on(mut socket: impl AsyncRead + AsyncWrite + Unpin, seen: &Requests, to: SocketAddr, login: Option<&str>) {
    let Some(request) = read_request(&mut socket).await.unwrap() else { return };
    seen.lock().unwrap().push(request.clone());
    let has_login = |login| request.contains(&format!("proxy-authorization: {login}\r\n"));
    let is_tunnel = request.starts_with("CONNECT ");
    let answer = if !login.is_none_or(has_login) {
        Some(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n".to_vec())
    } else if request.contains("forbidden.example") {
        Some(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n".to_vec())
    } else if is_tunnel {
        Some(b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec())
    } else {
        ok("by proxy")
    };
    socket.write_all(&answer.unwrap()).await.unwrap();
    if is_tunnel && let Ok(mut server) = TcpStream::connect(to).await {
        let _ = copy_bidirectional(&mut socket, &mut server).await;
    }
}

/// Finds one address for every name.
pub(crate) struct Always(pub(crate) SocketAddr);

#[async_trait::async_trait]
impl Resolver for Always {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![SocketAddr::new(self.0.ip(), 0)])
    }
}

/// Options of a process with these variables.
pub(crate) fn options(variables: &[(&str, String)]) -> HttpOptions {
    let find = |name: &str| variables.iter().find(|(one, _)| *one == name).map(|(_, value)| value.clone());
    HttpOptions::new(Environment::from_variables(find))
}

pub(crate) fn get(url: &str) -> Request<Bytes> {
    Request::get(url).body(Bytes::new()).unwrap()
}

pub(crate) async fn text(client: &HttpClient, request: Request<Bytes>) -> Result<String, HttpError> {
    let body = client.send(request).await?.into_body().read(1 << 20).await?;
    Ok(String::from_utf8(body).unwrap())
}
