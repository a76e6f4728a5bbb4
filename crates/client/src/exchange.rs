//! Asking over HTTP: one connection a request, encrypted where the address says so.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use polis_domain::{AgentId, Seq, TaskId};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::sse::Sse;
use crate::trust::Trust;
use crate::wire::{Accepted, Agents, Messages, Task};

/// Why there is no answer, or not the one that was hoped for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Not an address.
    #[error("`{0}` is not the address of a polis; write for example http://127.0.0.1:3000")]
    BadUrl(String),
    /// The certificates that were to be trusted cannot be read.
    #[error("{0}; give a PEM file with certificates")]
    BadCertificates(String),
    /// Nobody answers there.
    #[error("{url} does not answer ({error}); is it running? start one with polis serve")]
    Unreachable {
        /// Where.
        url: String,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// It answers, and nobody vouches for it.
    #[error("{url} has a certificate that is not trusted ({error}); POLIS_TLS_CA names a PEM file with those to trust")]
    Untrusted {
        /// Where.
        url: String,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The answer broke off.
    #[error("the answer broke off: {0}")]
    Gone(#[source] io::Error),
    /// The server says no.
    #[error("{detail}")]
    Problem {
        /// The HTTP status.
        status: u16,
        /// The stable name of what is wrong.
        code: String,
        /// What to do.
        detail: String,
    },
    /// The answer cannot be understood.
    #[error("{0}")]
    Strange(String),
}

impl ClientError {
    /// A stable name for programs.
    pub fn code(&self) -> &str {
        match self {
            Self::BadUrl(_) => "bad_url",
            Self::BadCertificates(_) | Self::Untrusted { .. } => "bad_certificate",
            Self::Unreachable { .. } => "server_unreachable",
            Self::Gone(_) => "server_gone",
            Self::Problem { code, .. } => code,
            Self::Strange(_) => "strange_answer",
        }
    }
}

/// An answer as it comes.
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
}

/// Where a polis runs, and what opens its door.
#[derive(Clone)]
pub struct Client {
    /// Host and port.
    authority: String,
    host: String,
    tls: Option<TlsConnector>,
    token: Option<String>,
    /// What every target begins with: the society that is meant.
    prefix: String,
}

impl Client {
    /// The polis at this address; with `https` it must have a certificate that the world trusts.
    pub fn new(url: &str, token: Option<String>) -> Result<Self, ClientError> {
        let bad = || ClientError::BadUrl(url.to_owned());
        let uri: hyper::Uri = url.trim().parse().map_err(|_| bad())?;
        let (usual, tls) = match uri.scheme_str() {
            Some("http") => (80, None),
            Some("https") => (443, Some(connector(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() })?)),
            _ => return Err(bad()),
        };
        let host = uri.host().ok_or_else(bad)?;
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(usual));
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { authority, host, tls, token, prefix: String::new() })
    }

    /// The same with other certificates to trust than those of the world: a PEM file.
    pub fn trusting(self, certificates: &Path) -> Result<Self, ClientError> {
        let bad = |error: &dyn std::fmt::Display| ClientError::BadCertificates(format!("{}: {error}", certificates.display()));
        let given = CertificateDer::pem_file_iter(certificates).map_err(|error| bad(&error))?;
        let given: Vec<_> = given.collect::<Result<_, _>>().map_err(|error| bad(&error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trust = Trust::new(given, provider.clone()).map_err(|error| bad(&error))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| bad(&error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(trust))
            .with_no_client_auth();
        let tls = self.tls.is_some().then(|| TlsConnector::from(Arc::new(config)));
        Ok(Self { tls, ..self })
    }

    /// The same with what every target begins with, such as `/s/other` for another society.
    pub fn at(self, prefix: String) -> Self {
        Self { prefix, ..self }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("{}://{}", if self.tls.is_some() { "https" } else { "http" }, self.authority)
    }

    /// Asks; a body makes it a `POST`.
    pub async fn ask(&self, target: &str, body: Option<String>) -> Result<Answer, ClientError> {
        let is_untrusted = |error: &io::Error| {
            let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            matches!(tls, Some(rustls::Error::InvalidCertificate(_)))
        };
        let unreachable = |error| match is_untrusted(&error) {
            true => ClientError::Untrusted { url: self.url(), error },
            false => ClientError::Unreachable { url: self.url(), error },
        };
        self.exchange(target, body).await.map_err(unreachable)
    }

    /// Asks for something.
    pub async fn get<T: DeserializeOwned>(&self, target: &str) -> Result<T, ClientError> {
        understood(self.ask(target, None).await?).await
    }

    /// Asks for something to be done.
    pub async fn post<T: DeserializeOwned>(&self, target: &str, body: &Value) -> Result<T, ClientError> {
        understood(self.ask(target, Some(body.to_string())).await?).await
    }

    /// Gives root a new request.
    pub async fn submit(&self, text: &str) -> Result<Accepted, ClientError> {
        self.post("/api/submit", &json!({ "text": text })).await
    }

    /// Says something to an agent; within a request of before, or as a new one.
    pub async fn send(&self, agent: &AgentId, text: &str, task: Option<&TaskId>) -> Result<Accepted, ClientError> {
        let mut body = json!({ "agentId": agent, "text": text });
        if let Some(task) = task {
            body["taskId"] = json!(task);
        }
        self.post("/api/send", &body).await
    }

    /// Where a request stands.
    pub async fn task(&self, task: &TaskId) -> Result<Task, ClientError> {
        self.get(&format!("/api/tasks/{}", encoded(task.as_str()))).await
    }

    /// What the society said about a request.
    pub async fn messages(&self, task: &TaskId) -> Result<Messages, ClientError> {
        self.get(&format!("/api/messages/{}", encoded(task.as_str()))).await
    }

    /// Calls a request off.
    pub async fn cancel(&self, task: &TaskId, reason: &str) -> Result<(), ClientError> {
        let target = format!("/api/tasks/{}/cancel", encoded(task.as_str()));
        self.post::<Value>(&target, &json!({ "reason": reason })).await.map(drop)
    }

    /// Who is there.
    pub async fn agents(&self) -> Result<Agents, ClientError> {
        self.get("/api/agents").await
    }

    /// Everything after a place of the log, and what comes.
    pub async fn events(&self, after: Seq) -> Result<Sse, ClientError> {
        let answer = self.ask(&format!("/api/events?after={after}"), None).await?;
        if answer.status >= 400 {
            return Err(problem(answer.status, &whole(answer).await?));
        }
        Ok(Sse::new(answer.body))
    }

    async fn exchange(&self, target: &str, body: Option<String>) -> io::Result<Answer> {
        let stream = TcpStream::connect(&self.authority).await?;
        // Small requests should not wait to become larger; without it they are only slower.
        let _ = stream.set_nodelay(true);
        let mut sender = match &self.tls {
            None => shake_hands(stream).await?,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
                shake_hands(tls.connect(name, stream).await?).await?
            }
        };
        let mut request = Request::builder()
            .method(if body.is_some() { "POST" } else { "GET" })
            .uri(format!("{}{target}", self.prefix))
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::from(body.unwrap_or_default()))).map_err(io::Error::other)?;
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let status = response.status().as_u16();
        let body = response.into_body().into_data_stream().map_err(io::Error::other);
        Ok(Answer { status, body: Box::pin(body) })
    }
}

async fn shake_hands<S>(stream: S) -> io::Result<http1::SendRequest<Full<Bytes>>>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // It ends with the answer's body, or when that is dropped.
    tokio::spawn(connection);
    Ok(sender)
}

fn connector(roots: RootCertStore) -> Result<TlsConnector, ClientError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ClientError::BadCertificates(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

async fn understood<T: DeserializeOwned>(answer: Answer) -> Result<T, ClientError> {
    let status = answer.status;
    let body = whole(answer).await?;
    if status >= 400 {
        return Err(problem(status, &body));
    }
    let strange = |error| ClientError::Strange(format!("the answer cannot be understood: {error}"));
    serde_json::from_slice(&body).map_err(strange)
}

async fn whole(mut answer: Answer) -> Result<Vec<u8>, ClientError> {
    let mut body = Vec::new();
    while let Some(bytes) = answer.body.next().await {
        body.extend_from_slice(&bytes.map_err(ClientError::Gone)?);
    }
    Ok(body)
}

fn problem(status: u16, body: &[u8]) -> ClientError {
    #[derive(Deserialize)]
    struct Problem {
        code: String,
        detail: String,
    }
    match serde_json::from_slice(body) {
        Ok(Problem { code, detail }) => ClientError::Problem { status, code, detail },
        Err(_) => ClientError::Strange("whatever answers there is not a polis".to_owned()),
    }
}

/// The text as one part of a URL.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_how_to_get_there() {
        let url = |text: &str| Client::new(text, None).map(|client| client.url()).map_err(|error| error.code().to_owned());
        assert_eq!(url("http://127.0.0.1"), Ok("http://127.0.0.1:80".to_owned()));
        assert_eq!(url("https://polis.example"), Ok("https://polis.example:443".to_owned()));
        assert_eq!(url(" http://[::1]:3000 "), Ok("http://[::1]:3000".to_owned()));
        for bad in ["", "polis", "ftp://a", "http://"] {
            assert_eq!(url(bad), Err("bad_url".to_owned()), "{bad}");
        }
    }
}
