//! Speaks HTTP to a server that is not believed to stop: an answer, whole or one event of a stream, is read up to a limit.
//!
//! The library bounds the events of a stream but reads any other answer to its end, so messages are sent from here.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures_util::stream::{BoxStream, StreamExt, try_unfold};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

/// Longest answer with an error that is read, in bytes.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// How much of an answer that cannot be used is told, in characters.
const MAX_SHOWN_CHARS: usize = 256;

const SESSION: &str = "mcp-session-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

type HttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// A client whose answers have a limit, in bytes.
#[derive(Clone)]
pub(super) struct Bounded {
    http: reqwest::Client,
    max_bytes: usize,
}

impl Bounded {
    pub(super) fn new(http: reqwest::Client, max_bytes: usize) -> Self {
        Self { http, max_bytes }
    }
}

impl StreamableHttpClient for Bounded {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let body = serde_json::to_vec(&message)?;
        let mut request = self.http.post(&*uri).header(ACCEPT, format!("{EVENTS}, {JSON}")).header(CONTENT_TYPE, JSON);
        for (name, value) in headers {
            if name == ACCEPT || name == SESSION || name == "last-event-id" {
                return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
            }
            request = request.header(name, value);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(session) = &session {
            request = request.header(SESSION, &**session);
        }
        let response = request.body(body).send().await.map_err(reqwest::Error::without_url)?;
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(StreamableHttpPostResponse::Accepted),
            status if status.is_success() => self.answered(response, &message).await,
            _ => self.refused(response, &message, session.is_some()).await,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        self.http.delete_session(uri, session, token, headers).await.map_err(unaddressed)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let limit = self.max_bytes;
        let opened = self.http.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, limit).await;
        opened.map_err(unaddressed)
    }
}

impl Bounded {
    /// What a server says that takes the message.
    async fn answered(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let waits = matches!(message, ClientJsonRpcMessage::Request(_));
        if !waits && response.content_length() == Some(0) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = text(response.headers(), SESSION);
        let kind = text(response.headers(), CONTENT_TYPE.as_str());
        match kind.as_deref() {
            Some(kind) if kind.starts_with(EVENTS) => {
                Ok(StreamableHttpPostResponse::Sse(events(response, self.max_bytes), session))
            }
            Some(kind) if kind.starts_with(JSON) => {
                let (body, is_whole) = read(response, self.max_bytes).await?;
                if !is_whole {
                    return Err(said(format!("an answer is longer than {} bytes", self.max_bytes)));
                }
                match serde_json::from_slice(&body) {
                    Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
                    Err(_) if !waits => Ok(StreamableHttpPostResponse::Accepted),
                    Err(error) => Err(said(format!("an answer cannot be read: {error}: {}", shown(&body)))),
                }
            }
            _ => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }

    /// Why a server does not take the message.
    async fn refused(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let (status, headers) = (response.status(), response.headers().clone());
        let is_login = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        match text(&headers, WWW_AUTHENTICATE.as_str()) {
            Some(challenge) if status == StatusCode::UNAUTHORIZED => {
                return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
            }
            Some(challenge) if status == StatusCode::FORBIDDEN => {
                return Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)));
            }
            _ => {}
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let is_json = text(&headers, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with(JSON));
        let trouble = || HttpStatusError::new(status.as_u16(), text(&headers, RETRY_AFTER.as_str())).into();
        if status == StatusCode::TOO_MANY_REQUESTS || (status.is_server_error() && !is_json) {
            return Err(trouble());
        }
        let body = read(response, MAX_ERROR_BYTES).await.map(|(body, _)| body).unwrap_or_default();
        let error = match serde_json::from_slice(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        match (message, error) {
            // One that does not know the newest protocol may say so in many ways; the older one is tried then.
            (ClientJsonRpcMessage::Request(asked), error)
                if matches!(asked.request, ClientRequest::DiscoverRequest(_))
                    && status.is_client_error()
                    && !is_login
                    && !has_session =>
            {
                let why = || ErrorData::invalid_request(format!("HTTP {status}: {}", shown(&body)), None);
                let error = error.map_or_else(why, |error| error.error);
                let answer = ServerJsonRpcMessage::error(error, Some(asked.id.clone()));
                Ok(StreamableHttpPostResponse::Json(answer, None))
            }
            (_, Some(error)) if is_json && !is_login => {
                let session = text(&headers, SESSION);
                Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), session))
            }
            _ if status.is_server_error() => Err(trouble()),
            _ => Err(said(format!("HTTP {status}: {}", shown(&body)))),
        }
    }
}

/// Reads a body up to a limit, and says whether that was all.
async fn read(mut response: Response, max_bytes: usize) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(reqwest::Error::without_url)? {
        let left = max_bytes - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(left)]);
        if chunk.len() > left {
            return Ok((body, false));
        }
    }
    Ok((body, true))
}

/// The events of a body, none of which may be longer than the limit.
fn events(response: Response, max_bytes: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let pieces = try_unfold((response, Held::default()), move |(mut response, mut held)| async move {
        let Some(chunk) = response.chunk().await.map_err(|error| io::Error::other(error.without_url()))? else {
            return Ok(None);
        };
        if held.after(&chunk) > max_bytes {
            return Err(io::Error::other(format!("an event is longer than {max_bytes} bytes")));
        }
        Ok(Some((chunk, (response, held))))
    });
    SseStream::from_bytes_stream(pieces).boxed()
}

/// How much of an event has come that has not ended.
#[derive(Default)]
struct Held {
    bytes: usize,
    last: Option<u8>,
}

impl Held {
    /// The most that was held while this came. An empty line ends an event; lines end with `\n`, `\r` or both.
    fn after(&mut self, chunk: &[u8]) -> usize {
        let mut most = self.bytes;
        let ends = |byte: u8| byte == b'\n' || byte == b'\r';
        for &byte in chunk {
            let is_second_half = byte == b'\n' && self.last == Some(b'\r');
            if ends(byte) && !is_second_half && self.last.is_some_and(ends) {
                self.bytes = 0;
            } else {
                self.bytes += 1;
                most = most.max(self.bytes);
            }
            self.last = Some(byte);
        }
        most
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// An error without the address, in which secrets may stand.
fn unaddressed(error: HttpError) -> HttpError {
    match error {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
        error => error,
    }
}

fn said(what: String) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(what.into())
}

fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(MAX_SHOWN_CHARS).collect()
}
