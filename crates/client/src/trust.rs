//! Which certificates are believed where the world does not know a server's own.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Believes what the given certificates vouch for, and the given ones themselves: a certificate that somebody made for one server
/// usually vouches for itself, and is then no certificate of a server in the eyes of the rules.
#[derive(Debug)]
pub(crate) struct Trust {
    given: Vec<CertificateDer<'static>>,
    rules: Arc<WebPkiServerVerifier>,
}

impl Trust {
    pub(crate) fn new(given: Vec<CertificateDer<'static>>, provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for one in &given {
            roots.add(one.clone()).map_err(|error| error.to_string())?;
        }
        let rules = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Self { given, rules: rules.map_err(|error| error.to_string())? })
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.given.iter().any(|given| given == shown) {
            return Ok(ServerCertVerified::assertion());
        }
        self.rules.verify_server_cert(shown, others, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.rules.verify_tls12_signature(message, shown, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.rules.verify_tls13_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.rules.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn a_certificate_that_vouches_for_itself_is_believed_where_it_was_given_and_another_is_not() {
        let path = |name: &str| format!("{}/../server/tests/tls/{name}", env!("CARGO_MANIFEST_DIR"));
        let read = |name: &str| CertificateDer::from_pem_file(path(name)).unwrap();
        let (own, of_server) = (read("authority.pem"), read("certificate.pem"));
        let believes = |given: &CertificateDer<'static>, shown: &CertificateDer<'static>| {
            let trust = Trust::new(vec![given.clone()], Arc::new(rustls::crypto::ring::default_provider())).unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            trust.verify_server_cert(shown, &[], &name, &[], UnixTime::now()).is_ok()
        };
        assert!(believes(&own, &own), "given as it is");
        assert!(believes(&own, &of_server), "vouched for");
        assert!(!believes(&of_server, &own), "of somebody else");
    }
}
