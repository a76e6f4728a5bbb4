//! Connections between processes that know each other by their keys: HTTP/2 over TLS 1.3, and both sides prove their key.
//!
//! The keys are raw public keys (RFC 7250), so there are no certificates. TLS only proves that the other side has the key that it
//! shows. Which key it must be is the caller's to check, before anything is sent or answered. A process that accepts a connection says so
//! with one byte ([`admit`]), so that a request to one that does not is certainly not taken.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as rustls_ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::BoxError;

/// How long it may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How often a connection is checked, and how long the answer may take. Then it is broken.
const ALIVE: Duration = Duration::from_secs(3);

/// How much of one body may be under way, and of all.
const WINDOWS: (u32, u32) = (1 << 20, 16 << 20);

/// The key of this process, made anew at every start.
#[derive(Clone)]
pub struct PeerKey {
    digest: Vec<u8>,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl PeerKey {
    /// A new key.
    ///
    /// # Errors
    ///
    /// The system provides no random numbers.
    pub fn generate() -> Result<Self, BoxError> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| "no random numbers")?;
        let signer = rustls_ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(document.as_ref().to_vec()))?;
        let public = signer.public_key().ok_or("the key has no public part")?.to_vec();
        let key = Arc::new(CertifiedKey::new(vec![CertificateDer::from(public.clone())], signer));
        let provider = Arc::new(rustls_ring::default_provider());
        let prover = Arc::new(AnyKey(provider.clone()));
        let versions = &[&rustls::version::TLS13];
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(prover.clone())
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(key.clone())));
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)?
            .with_client_cert_verifier(prover)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key)));
        for protocols in [&mut client.alpn_protocols, &mut server.alpn_protocols] {
            *protocols = vec![b"polis-h2".to_vec()];
        }
        Ok(Self { digest: digest_of(&public), client: Arc::new(client), server: Arc::new(server) })
    }

    /// The SHA-256 of the public key.
    pub fn digest(&self) -> &[u8] {
        &self.digest
    }

    /// Accepts a connection; gives the digest of the other side's key too, which the caller has to check.
    ///
    /// # Errors
    ///
    /// The other side does not prove a key.
    pub async fn accept(&self, stream: TcpStream) -> Result<(tokio_rustls::server::TlsStream<TcpStream>, Vec<u8>), BoxError> {
        let stream = TlsAcceptor::from(self.server.clone()).accept(stream).await?;
        let key = proven(stream.get_ref().1.peer_certificates())?;
        Ok((stream, key))
    }

    /// Connects to the process at an address that has this key, and to no other.
    ///
    /// # Errors
    ///
    /// It cannot be reached in time, or has another key. Nothing was sent to it.
    pub async fn connect<B>(&self, address: &str, key: &[u8]) -> Result<Peer<B>, BoxError>
    where
        B: Body + Send + Unpin + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        timeout(CONNECT_TIMEOUT, async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            // The name is sent to nobody who checks it.
            let name = ServerName::try_from("polis").expect("it is a name");
            let mut stream = TlsConnector::from(self.client.clone()).connect(name, stream).await?;
            if proven(stream.get_ref().1.peer_certificates())? != key {
                return Err(format!("what answers at {address} has another key than the one that is expected").into());
            }
            let mut admitted = [0];
            stream.read_exact(&mut admitted).await.map_err(|_| format!("{address} does not know this process, or not yet"))?;
            let (sender, connection) = Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(ALIVE)
                .keep_alive_timeout(ALIVE)
                .initial_stream_window_size(WINDOWS.0)
                .initial_connection_window_size(WINDOWS.1)
                .handshake(TokioIo::new(stream))
                .await?;
            // It ends when the sender and all answers are dropped.
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "the connection to another node broke off");
                }
            });
            Ok(Peer(sender))
        })
        .await
        .map_err(|_| BoxError::from(format!("{address} does not answer in time")))?
    }
}

impl fmt::Debug for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerKey").finish_non_exhaustive()
    }
}

/// Lets the other side send requests, whose key is known.
///
/// # Errors
///
/// The connection is broken.
pub async fn admit(stream: &mut (impl AsyncWrite + Unpin)) -> std::io::Result<()> {
    stream.write_all(&[1]).await?;
    stream.flush().await
}

/// A connection to another process. Clones share it.
pub struct Peer<B>(SendRequest<B>);

impl<B> Clone for Peer<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum PeerError<B> {
    /// The other side did not get the request, which is given back.
    NotSent(Box<Request<B>>),
    /// Nobody knows what became of the request.
    Unknown(BoxError),
}

impl<B: Body + Send + Unpin + 'static> Peer<B> {
    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Sends a request; the answer comes as soon as its head is there.
    pub async fn send(&mut self, request: Request<B>) -> Result<Response<Incoming>, PeerError<B>> {
        self.0.try_send_request(request).await.map_err(|mut error| match error.take_message() {
            Some(request) => PeerError::NotSent(Box::new(request)),
            None => PeerError::Unknown(error.into_error().into()),
        })
    }
}

/// The digest of the key that the other side has proven.
fn proven(shown: Option<&[CertificateDer<'_>]>) -> Result<Vec<u8>, BoxError> {
    shown.and_then(<[_]>::first).map(|key| digest_of(key)).ok_or_else(|| "the other side shows no key".into())
}

fn digest_of(key: &[u8]) -> Vec<u8> {
    digest(&SHA256, key).as_ref().to_vec()
}

/// Checks that the other side has the key that it shows, whichever it is.
#[derive(Debug)]
struct AnyKey(Arc<CryptoProvider>);

impl AnyKey {
    fn check(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.0.signature_verification_algorithms)
    }
}

/// Only TLS 1.3 is spoken.
fn too_old() -> Error {
    Error::General("TLS 1.3 is needed".to_owned())
}

impl ServerCertVerifier for AnyKey {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(too_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for AnyKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(too_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
