//! HTTP requests to a polis, encrypted for `https` addresses.

use std::io;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use polis_api::{ApiError, ProblemDetails};
use polis_domain::Seq;
use polis_http::header::{AUTHORIZATION, CONTENT_TYPE};
use polis_http::{Bytes, HeaderValue, HttpClient, HttpError, HttpOptions, Request, Uri};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use crate::events::{Body, Sse};

/// The status of a server that does not take a request at present.
const UNAVAILABLE: u16 = 503;

/// How long a server that is being replaced is asked again. It may take 30 seconds to come to a safe point.
const MAX_UPGRADE: Duration = Duration::from_secs(60);

/// How long to wait before asking again: what the server says in `Retry-After`.
const AGAIN: Duration = Duration::from_secs(1);

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
    #[error("no polis answers at {url}: {error} (polis serve starts one)")]
    Unreachable {
        /// The address of the server.
        url: String,
        /// The failure of the connection.
        #[source]
        error: HttpError,
    },
    /// It answers, and its certificate is not trusted.
    #[error(
        "{url} has a certificate that is not trusted ({reason}); set POLIS_TLS_CA to a PEM file with the certificates to trust"
    )]
    Untrusted {
        /// The address of the server.
        url: String,
        /// What is wrong with the certificate.
        reason: String,
    },
    /// The answer broke off.
    #[error("the answer is incomplete: {0}")]
    Gone(#[source] io::Error),
    /// The server refuses.
    #[error("{}", .0.detail())]
    Problem(ApiError),
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
            Self::Problem(error) => error.code(),
            Self::Strange(_) => "strange_answer",
        }
    }
}

impl From<ClientError> for ApiError {
    fn from(error: ClientError) -> Self {
        let status = match &error {
            ClientError::Problem(problem) => return problem.clone(),
            ClientError::BadUrl(_) | ClientError::BadCertificates(_) => 400,
            ClientError::Untrusted { .. } | ClientError::Gone(_) | ClientError::Strange(_) => 502,
            ClientError::Unreachable { .. } => 503,
        };
        Self::new(status, error.code().to_owned(), error.to_string())
    }
}

/// A response whose body has not been read.
pub(crate) struct Response {
    /// The HTTP status.
    pub(crate) status: u16,
    pub(crate) body: Body,
}

impl Response {
    /// The same if the server accepted the request; otherwise its error.
    pub(crate) async fn accepted(self) -> Result<Self, ClientError> {
        if self.status < 400 {
            return Ok(self);
        }
        Err(problem(self.status, &whole(self.body).await?))
    }
}

/// Where a polis runs, and the token for it.
#[derive(Clone)]
pub struct Client {
    http: HttpClient,
    /// Scheme, host and port.
    url: String,
    token: Option<String>,
    /// The prefix of every path: the society.
    prefix: String,
}

impl Client {
    /// The polis at this address, through the proxies of the environment; with `https` the system must trust its certificate.
    pub fn new(url: &str, token: Option<String>) -> Result<Self, ClientError> {
        Self::with_network(url, token, HttpOptions::from_env())
    }

    /// The same with the proxies and certificates of `network`. Files are read when they are needed.
    pub fn with_network(url: &str, token: Option<String>, network: HttpOptions) -> Result<Self, ClientError> {
        let bad = || ClientError::BadUrl(url.to_owned());
        let uri: Uri = url.trim().parse().map_err(|_| bad())?;
        let (scheme, usual) = match uri.scheme_str() {
            Some("http") => ("http", 80),
            Some("https") => ("https", 443),
            _ => return Err(bad()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(bad)?;
        let url = format!("{scheme}://{host}:{}", uri.port_u16().unwrap_or(usual));
        Ok(Self { http: HttpClient::new(network), url, token, prefix: String::new() })
    }

    /// The same with what every target begins with, such as `/s/other` for another society.
    pub fn at(self, prefix: String) -> Self {
        Self { prefix, ..self }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends a request; a body, with its media type, makes it a `POST`. While the server is being replaced by another one, the request
    /// is repeated until that one answers.
    pub(crate) async fn call(&self, target: &str, body: Option<(&str, Vec<u8>)>) -> Result<Response, ClientError> {
        let unreachable = |error| match error {
            HttpError::Untrusted { reason, .. } => ClientError::Untrusted { url: self.url.clone(), reason },
            HttpError::BadCertificates(why) => ClientError::BadCertificates(why),
            error => ClientError::Unreachable { url: self.url.clone(), error },
        };
        let until = Instant::now() + MAX_UPGRADE;
        loop {
            let request =
                self.request(target, body.clone()).ok_or_else(|| ClientError::BadUrl(format!("{}{target}", self.url)))?;
            let response = self.http.send(request).await.map_err(unreachable)?;
            let status = response.status().as_u16();
            let body: Body = Box::pin(chunks(response.into_body()));
            if status != UNAVAILABLE {
                return Ok(Response { status, body });
            }
            // A server that is being replaced takes nothing in, so nothing has happened and asking again is safe.
            let refusal = whole(body).await?;
            if problem(status, &refusal).code() != "stopping" || Instant::now() >= until {
                return Ok(Response { status, body: Box::pin(stream::iter([Ok(Bytes::from(refusal))])) });
            }
            sleep(AGAIN).await;
        }
    }

    /// Everything after a place of the log, and what comes.
    pub async fn events(&self, after: Seq) -> Result<Sse, ClientError> {
        let response = self.call(&format!("/api/events?after={after}"), None).await?.accepted().await?;
        Ok(Sse::new(response.body))
    }

    fn request(&self, target: &str, body: Option<(&str, Vec<u8>)>) -> Option<Request<Bytes>> {
        let uri = format!("{}{}{target}", self.url, self.prefix);
        let mut request = match &body {
            Some((media_type, _)) => Request::post(uri).header(CONTENT_TYPE, *media_type),
            None => Request::get(uri),
        };
        if let Some(token) = &self.token {
            let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        request.body(body.map(|(_, body)| body).unwrap_or_default().into()).ok()
    }
}

fn chunks(body: polis_http::Body) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::try_unfold(body, async |mut body| Ok(body.chunk().await.map_err(io::Error::other)?.map(|chunk| (chunk, body))))
}

/// The answer of a response, or why there is none.
pub(crate) async fn read<T: DeserializeOwned>(response: Response) -> Result<T, ClientError> {
    let body = whole(response.accepted().await?.body).await?;
    let strange = |error| ClientError::Strange(format!("the answer cannot be understood: {error}; is the other polis newer?"));
    serde_json::from_slice(&body).map_err(strange)
}

pub(crate) async fn whole(mut body: Body) -> Result<Vec<u8>, ClientError> {
    let mut whole = Vec::new();
    while let Some(bytes) = body.next().await {
        whole.extend_from_slice(&bytes.map_err(ClientError::Gone)?);
    }
    Ok(whole)
}

/// The error in the response of a failed request.
pub(crate) fn problem(status: u16, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<ProblemDetails>(body) {
        Ok(problem) => ClientError::Problem(ApiError::new(status, problem.code, problem.detail)),
        Err(_) => ClientError::Strange("the server there is not a polis".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_how_to_get_there() {
        let url =
            |text: &str| Client::new(text, None).map(|client| client.url().to_owned()).map_err(|error| error.code().to_owned());
        assert_eq!(url("http://127.0.0.1"), Ok("http://127.0.0.1:80".to_owned()));
        assert_eq!(url("https://polis.example"), Ok("https://polis.example:443".to_owned()));
        assert_eq!(url(" http://[::1]:3000 "), Ok("http://[::1]:3000".to_owned()));
        for bad in ["", "polis", "ftp://a", "http://"] {
            assert_eq!(url(bad), Err("bad_url".to_owned()), "{bad}");
        }
    }
}
