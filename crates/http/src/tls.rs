//! Which certificates are trusted, and which one is presented.
//!
//! The system's certificates count, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name in their place; on a system that has
//! none, the ones of Mozilla that are compiled in. They are read at the first encrypted connection.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::sync::OnceCell;

use crate::{Environment, HttpError};

/// Which certificates are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trust {
    /// The certificates of the system, or of the environment.
    #[default]
    System,
    /// Also the certificates in these PEM files: authorities, or servers' own.
    SystemAnd(Vec<PathBuf>),
    /// Only those in this PEM file: authorities, or servers' own.
    Only(PathBuf),
}

/// The certificate that this side presents to servers that ask for one: PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, and those that lead to its authority.
    pub certificates: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The configuration of TLS connections.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    /// For servers.
    pub(crate) config: Arc<ClientConfig>,
    /// For proxies, which speak HTTP/1.1 alone.
    pub(crate) for_proxies: Arc<ClientConfig>,
    /// Where the trusted certificates come from, for messages.
    pub(crate) trusted: Arc<str>,
}

/// The TLS configuration, read on first use; clones share it.
#[derive(Clone)]
pub(crate) struct LazyTls {
    read: Arc<OnceCell<Result<Tls, HttpError>>>,
    from: Arc<(Environment, Trust, Option<Identity>)>,
}

impl LazyTls {
    pub(crate) fn new(environment: Environment, trust: Trust, identity: Option<Identity>) -> Self {
        Self { read: Arc::default(), from: Arc::new((environment, trust, identity)) }
    }

    /// Reads the certificates, the first time on a thread that may block.
    pub(crate) async fn get(&self) -> Result<Tls, HttpError> {
        let read = self.read.get_or_init(|| async {
            let from = self.from.clone();
            let read = tokio::task::spawn_blocking(move || read(&from.0, &from.1, from.2.as_ref())).await;
            read.unwrap_or_else(|error| Err(HttpError::BadCertificates(format!("the certificates were not read: {error}"))))
        });
        read.await.clone()
    }
}

/// The TLS configuration for connections to servers that speak another protocol than HTTP. Blocks while it reads certificates.
///
/// # Errors
///
/// [`HttpError::BadCertificates`] names the file that is wrong.
pub fn tls_config(environment: &Environment, trust: &Trust) -> Result<ClientConfig, HttpError> {
    let mut config = Arc::unwrap_or_clone(read(environment, trust, None)?.config);
    config.alpn_protocols.clear();
    Ok(config)
}

fn read(environment: &Environment, trust: &Trust, identity: Option<&Identity>) -> Result<Tls, HttpError> {
    let mut anchors = match trust {
        Trust::System | Trust::SystemAnd(_) => system_anchors(environment)?,
        Trust::Only(_) => Anchors::none(),
    };
    let files = match trust {
        Trust::System => &[][..],
        Trust::SystemAnd(files) => files,
        Trust::Only(file) => std::slice::from_ref(file),
    };
    for file in files {
        anchors.add_file(file, file.display().to_string())?;
    }
    let Anchors { roots, given, from } = anchors;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new(given, roots, provider.clone()).map_err(HttpError::BadCertificates)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks the TLS versions that rustls wants by default")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(Identity { certificates: chain, key }) => {
            let bad = |error: &dyn std::fmt::Display| HttpError::BadCertificates(format!("{}: {error}", key.display()));
            let private = PrivateKeyDer::from_pem_file(key).map_err(|error| bad(&error))?;
            builder.with_client_auth_cert(certificates(chain)?, private).map_err(|error| bad(&error))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let for_proxies = Arc::new(config.clone());
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Tls { config: Arc::new(config), for_proxies, trusted: from.join(" and ").into() })
}

/// The certificates of a PEM file, of which there is at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, HttpError> {
    let bad = |error: &dyn std::fmt::Display| HttpError::BadCertificates(format!("{}: {error}", file.display()));
    let found = CertificateDer::pem_file_iter(file).map_err(|error| bad(&error))?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|error| bad(&error))?;
    if found.is_empty() { Err(bad(&"there is no certificate in it")) } else { Ok(found) }
}

/// Certificates to trust, and where they come from.
struct Anchors {
    roots: RootCertStore,
    /// Certificates of files that the user named. They may be servers' own.
    given: Vec<CertificateDer<'static>>,
    from: Vec<String>,
}

impl Anchors {
    fn none() -> Self {
        Self { roots: RootCertStore::empty(), given: Vec::new(), from: Vec::new() }
    }

    fn add_file(&mut self, file: &Path, name: String) -> Result<(), HttpError> {
        let found = certificates(file)?;
        self.roots.add_parsable_certificates(found.iter().cloned());
        self.given.extend(found);
        self.from.push(name);
        Ok(())
    }
}

/// The default certificates.
fn system_anchors(environment: &Environment) -> Result<Anchors, HttpError> {
    let mut anchors = Anchors::none();
    if let Some(file) = &environment.cert_file {
        anchors.add_file(file, format!("SSL_CERT_FILE ({})", file.display())).map_err(|error| match error {
            HttpError::BadCertificates(why) => HttpError::BadCertificates(format!("SSL_CERT_FILE names {why}")),
            other => other,
        })?;
    }
    for dir in &environment.cert_dirs {
        anchors.roots.add_parsable_certificates(rustls_native_certs::load_certs_from_paths(None, Some(dir)).certs);
        anchors.from.push(format!("SSL_CERT_DIR ({})", dir.display()));
    }
    if !anchors.from.is_empty() {
        return Ok(anchors);
    }
    anchors.roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if anchors.roots.is_empty() {
        anchors.roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        anchors.from.push("the certificates that Polis brings along (this system has none)".to_owned());
    } else {
        anchors.from.push("the certificates of this system".to_owned());
    }
    Ok(anchors)
}

/// Trusts what the roots vouch for, and the given certificates themselves: one that was made for a single server usually vouches
/// for itself, and is no certificate of a server by the rules.
#[derive(Debug)]
struct Verifier {
    given: Vec<CertificateDer<'static>>,
    /// None where there are no roots at all: then only the given ones count.
    rules: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(given: Vec<CertificateDer<'static>>, roots: RootCertStore, provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let rules = match roots.is_empty() {
            true => None,
            false => {
                let rules = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
                Some(rules.map_err(|error| error.to_string())?)
            }
        };
        Ok(Self { given, rules, provider })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.given.iter().any(|given| given == presented) {
            return Ok(ServerCertVerified::assertion());
        }
        match &self.rules {
            Some(rules) => rules.verify_server_cert(presented, others, name, ocsp, now),
            None => Err(Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        presented: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, presented, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        presented: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, presented, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_vouches_for_itself_is_trusted_where_it_was_given_and_another_is_not() {
        let path = |name: &str| PathBuf::from(format!("{}/../server/tests/tls/{name}", env!("CARGO_MANIFEST_DIR")));
        let load = |name: &str| CertificateDer::from_pem_file(path(name)).unwrap();
        let (own, of_server) = (load("authority.pem"), load("certificate.pem"));
        let trusts = |given: &CertificateDer<'static>, presented: &CertificateDer<'static>| {
            let mut roots = RootCertStore::empty();
            roots.add(given.clone()).unwrap();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let verifier = Verifier::new(vec![given.clone()], roots, provider).unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            verifier.verify_server_cert(presented, &[], &name, &[], UnixTime::now()).is_ok()
        };
        assert!(trusts(&own, &own), "given as it is");
        assert!(trusts(&own, &of_server), "vouched for");
        assert!(!trusts(&of_server, &own), "of somebody else");
    }

    #[test]
    fn files_that_hold_no_certificates_are_named() {
        let environment = Environment { cert_file: Some("no/such.pem".into()), ..Environment::default() };
        let error = read(&environment, &Trust::System, None).unwrap_err().to_string();
        assert!(error.contains("SSL_CERT_FILE") && error.contains("no/such.pem"), "{error}");
        let empty = tempfile::NamedTempFile::new().unwrap();
        let error = read(&Environment::default(), &Trust::Only(empty.path().to_owned()), None).unwrap_err().to_string();
        assert!(error.contains("no certificate in it"), "{error}");
    }
}
