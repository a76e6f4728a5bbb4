//! Which certificates are trusted and presented, and which protocol is spoken.

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use polis_http::{Bytes, HttpClient, HttpError, HttpOptions, Identity, Response, Trust};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::servers::{Server, get, ok, options, text, tls_file};

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_by_file_by_folder_and_by_option() {
    let server = Server::encrypted(|_| ok("hi")).await;
    let authority = tls_file("authority.pem");
    let folder = tempfile::tempdir().unwrap();
    // As c_rehash names them.
    std::fs::copy(&authority, folder.path().join("0a1b2c3d.0")).unwrap();
    let by_file = options(&[("SSL_CERT_FILE", authority.display().to_string())]);
    let by_folder = options(&[("SSL_CERT_DIR", folder.path().display().to_string())]);
    let own = options(&[("SSL_CERT_FILE", tls_file("certificate.pem").display().to_string())]);
    let only = HttpOptions { trust: Trust::Only(authority.clone()), ..options(&[]) };
    let too = HttpOptions { trust: Trust::SystemAnd(vec![authority]), ..options(&[]) };
    for options in [by_file, by_folder, own, only, too] {
        assert_eq!(text(&HttpClient::new(options), get(&server.https())).await.unwrap(), "hi");
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_an_error_that_says_what_was_asked() {
    let server = Server::encrypted(|_| ok("hi")).await;
    let elsewhere = HttpClient::new(options(&[]));
    let error = text(&elsewhere, get(&server.https())).await.unwrap_err();
    assert!(matches!(error, HttpError::Untrusted { .. }) && error.is_unsent(), "{error:?}");
    let said = error.to_string();
    assert!(said.contains(&format!("localhost:{}", server.address.port())) && said.contains("set `ca` in [network]"), "{said}");
    let by_own = HttpClient::new(HttpOptions { trust: Trust::Only(tls_file("certificate.pem")), ..options(&[]) });
    assert_eq!(text(&by_own, get(&server.https())).await.unwrap(), "hi", "a server's own certificate counts where it is given");
    let missing = HttpClient::new(options(&[("SSL_CERT_FILE", "no/such.pem".to_owned())]));
    assert!(missing.check_certificates().await.is_err() && elsewhere.check_certificates().await.is_ok());
    let error = text(&missing, get(&server.https())).await.unwrap_err();
    assert!(error.to_string().contains("SSL_CERT_FILE names no/such.pem"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn http2_is_spoken_where_the_server_offers_it_and_a_certificate_is_presented() {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(tls_file("certificate.pem")).unwrap()).unwrap();
    roots.add(CertificateDer::from_pem_file(tls_file("authority.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let chain = CertificateDer::pem_file_iter(tls_file("certificate.pem")).unwrap().map(Result::unwrap).collect();
    let key = rustls::pki_types::PrivateKeyDer::from_pem_file(tls_file("key.pem")).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let (tls, listener) = (TlsAcceptor::from(Arc::new(config)), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let tls = tls.clone();
            tokio::spawn(async move {
                let Ok(socket) = tls.accept(socket).await else { return };
                let answer = service_fn(|request: hyper::Request<hyper::body::Incoming>| async move {
                    let said = format!("{:?} {}", request.version(), request.uri());
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(said))))
                });
                let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let _ = http.serve_connection(TokioIo::new(socket), answer).await;
            });
        }
    });
    let identity = Identity { certificates: tls_file("certificate.pem"), key: tls_file("key.pem") };
    let trusting = HttpOptions { trust: Trust::Only(tls_file("authority.pem")), ..options(&[]) };
    let url = format!("https://localhost:{port}/path");
    let client = HttpClient::new(HttpOptions { identity: Some(identity), ..trusting.clone() });
    assert_eq!(text(&client, get(&url)).await.unwrap(), format!("HTTP/2.0 {url}"));
    assert!(text(&HttpClient::new(trusting), get(&url)).await.is_err(), "the server wants a certificate");
}
