//! Encryption: a certificate and its key, as files have them.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// What encrypts the connections of a listener.
#[derive(Clone)]
pub struct Tls(pub(crate) TlsAcceptor);

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}; give PEM files, the certificate with its chain and its private key")]
pub struct BadTls(String);

impl Tls {
    /// Reads a certificate with its chain, and its key; both are PEM files.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, BadTls> {
        let bad = |path: &Path, error: &dyn std::fmt::Display| BadTls(format!("{}: {error}", path.display()));
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| bad(certificate, &error))?;
        if chain.is_empty() {
            return Err(bad(certificate, &"it contains no certificate"));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| bad(key, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
            .map_err(|error| bad(certificate, &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}
