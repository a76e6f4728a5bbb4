//! Asks a polis over HTTP, encrypted where the address says so.

use std::io;
use std::path::Path;
use std::pin::Pin;

use futures_util::{Stream, StreamExt, stream};
use polis_domain::{AgentId, Seq, TaskId};
use polis_http::header::{AUTHORIZATION, CONTENT_TYPE};
use polis_http::{Body, Bytes, HeaderValue, HttpClient, HttpError, HttpOptions, Request, Trust, Uri};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::events::Sse;
use polis_api::{Accepted, Agents, Messages, TaskState};

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

/// Where a polis runs, and the token for it.
#[derive(Clone)]
pub struct Client {
    http: HttpClient,
    /// Scheme, host and port.
    url: String,
    token: Option<String>,
    /// What every target begins with: the society that is meant.
    prefix: String,
}

impl Client {
    /// The polis at this address, reached as the environment says; with `https` the system must trust its certificate.
    pub fn new(url: &str, token: Option<String>) -> Result<Self, ClientError> {
        let bad = || ClientError::BadUrl(url.to_owned());
        let uri: Uri = url.trim().parse().map_err(|_| bad())?;
        let (scheme, usual) = match uri.scheme_str() {
            Some("http") => ("http", 80),
            Some("https") => ("https", 443),
            _ => return Err(bad()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(bad)?;
        let url = format!("{scheme}://{host}:{}", uri.port_u16().unwrap_or(usual));
        Ok(Self { http: HttpClient::from_env(), url, token, prefix: String::new() })
    }

    /// The same with other certificates to trust than those of the system: a PEM file. It is read when it is needed.
    pub fn trusting(self, certificates: &Path) -> Self {
        let http = HttpClient::new(HttpOptions { trust: Trust::Only(certificates.to_owned()), ..HttpOptions::from_env() });
        Self { http, ..self }
    }

    /// The same with what every target begins with, such as `/s/other` for another society.
    pub fn at(self, prefix: String) -> Self {
        Self { prefix, ..self }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Asks; a body makes it a `POST`.
    pub async fn ask(&self, target: &str, body: Option<String>) -> Result<Answer, ClientError> {
        let unreachable = |error| match error {
            HttpError::Untrusted { reason, .. } => ClientError::Untrusted { url: self.url.clone(), reason },
            HttpError::BadCertificates(why) => ClientError::BadCertificates(why),
            error => ClientError::Unreachable { url: self.url.clone(), error },
        };
        let request = self.request(target, body).ok_or_else(|| ClientError::BadUrl(format!("{}{target}", self.url)))?;
        let response = self.http.send(request).await.map_err(unreachable)?;
        let status = response.status().as_u16();
        Ok(Answer { status, body: Box::pin(chunks(response.into_body())) })
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
    pub async fn task(&self, task: &TaskId) -> Result<TaskState, ClientError> {
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

    fn request(&self, target: &str, body: Option<String>) -> Option<Request<Bytes>> {
        let mut request = Request::builder()
            .method(if body.is_some() { "POST" } else { "GET" })
            .uri(format!("{}{}{target}", self.url, self.prefix))
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        request.body(body.unwrap_or_default().into()).ok()
    }
}

fn chunks(body: Body) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::try_unfold(body, async |mut body| Ok(body.chunk().await.map_err(io::Error::other)?.map(|chunk| (chunk, body))))
}

async fn understood<T: DeserializeOwned>(answer: Answer) -> Result<T, ClientError> {
    let status = answer.status;
    let body = whole(answer).await?;
    if status >= 400 {
        return Err(problem(status, &body));
    }
    let strange = |error| ClientError::Strange(format!("the answer cannot be parsed: {error}"));
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
        Err(_) => ClientError::Strange("the server there is not a polis".to_owned()),
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
