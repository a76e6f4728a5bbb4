//! A small HTTP client for a polis that runs elsewhere: one connection a request, no TLS.

use std::io;

use futures_util::TryStreamExt;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use polis_server::{Answer, Token};
use tokio::net::TcpStream;

use crate::trouble::Trouble;

/// Where a polis runs, and what opens its door.
pub(crate) struct Client {
    /// Host and port.
    authority: String,
    token: Option<Token>,
    /// What every target begins with: the society that is meant.
    prefix: String,
}

impl Client {
    pub(crate) fn new(url: &str, token: Option<Token>) -> Result<Self, Trouble> {
        let bad = || {
            Trouble::usage("bad_url", format!("`{url}` is not the address of a polis; write for example http://127.0.0.1:3000"))
        };
        let uri: hyper::Uri = url.trim().parse().map_err(|_| bad())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(Trouble::usage(
                    "bad_url",
                    "https is not in this version of the command line; use http on this machine",
                ));
            }
            _ => return Err(bad()),
        }
        let host = uri.host().ok_or_else(bad)?;
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(80));
        Ok(Self { authority, token, prefix: String::new() })
    }

    /// The same with what every target begins with.
    pub(crate) fn at(self, prefix: String) -> Self {
        Self { prefix, ..self }
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.authority)
    }

    /// Asks; a body makes it a `POST`.
    pub(crate) async fn ask(&self, target: &str, body: Option<String>) -> Result<Answer, Trouble> {
        self.exchange(target, body).await.map_err(|error| {
            let message = format!("{} does not answer ({error}); is it running? start one with polis serve", self.url());
            Trouble::new("server_unreachable", message)
        })
    }

    async fn exchange(&self, target: &str, body: Option<String>) -> io::Result<Answer> {
        let stream = TcpStream::connect(&self.authority).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // It ends with the answer's body, or when that is dropped.
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(if body.is_some() { "POST" } else { "GET" })
            .uri(format!("{}{target}", self.prefix))
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.as_str()));
        }
        let request = request.body(Full::new(Bytes::from(body.unwrap_or_default()))).map_err(io::Error::other)?;
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let status = response.status().as_u16();
        let body = response.into_body().into_data_stream().map_err(io::Error::other);
        Ok(Answer { status, body: Box::pin(body) })
    }
}
