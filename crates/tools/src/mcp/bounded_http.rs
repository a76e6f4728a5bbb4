//! Speaks HTTP to a server that is not believed to stop: an answer, whole or one event of a stream, is read up to a limit.
//!
//! The library's own client bounds the events of a stream but reads any other answer to its end, and knows no proxies or
//! certificates of ours.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures_util::stream::{BoxStream, StreamExt, try_unfold};
use polis_http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use polis_http::{
    Body, Bytes, HeaderMap, HeaderName, HeaderValue, HttpClient, HttpError, Method, Request, Response, StatusCode,
};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

/// Longest answer with an error that is read, in bytes.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// How much of an answer that cannot be used is told, in characters.
const MAX_EXCERPT_CHARS: usize = 256;

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
const ACCEPTED: &str = "text/event-stream, application/json";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

type SessionError = StreamableHttpError<HttpError>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// A client whose answers have a limit, in bytes.
#[derive(Clone)]
pub(super) struct BoundedHttp {
    http: HttpClient,
    max_bytes: usize,
}

impl BoundedHttp {
    pub(super) fn new(http: HttpClient, max_bytes: usize) -> Self {
        Self { http, max_bytes }
    }
}

impl StreamableHttpClient for BoundedHttp {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, SessionError> {
        let body = serde_json::to_vec(&message)?;
        let mut request = request(Method::POST, &uri, body.into(), session.as_deref(), token.as_deref(), headers)?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let response = self.send(request).await?;
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
    ) -> Result<(), SessionError> {
        let request = request(Method::DELETE, &uri, Bytes::new(), Some(&session), token.as_deref(), headers)?;
        match self.send(request).await?.status() {
            // Some servers end sessions by themselves.
            StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            status if status.is_success() => Ok(()),
            status => Err(unexpected(format!("HTTP {status}"))),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, SessionError> {
        let mut request = request(Method::GET, &uri, Bytes::new(), session.as_deref(), token.as_deref(), headers)?;
        if let Some(last_event) = last_event {
            request.headers_mut().insert(LAST_EVENT, value(&last_event)?);
        }
        let response = self.send(request).await?;
        let (status, headers) = (response.status(), response.headers());
        if let Some(login_error) = login_error(status, headers) {
            return Err(login_error);
        }
        let kind = text(headers, CONTENT_TYPE.as_str());
        match status {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            StatusCode::TOO_MANY_REQUESTS => Err(trouble(status, headers)),
            _ if status.is_server_error() => Err(trouble(status, headers)),
            _ if !status.is_success() => Err(unexpected(format!("HTTP {status}"))),
            _ if kind.as_deref().is_some_and(|kind| kind.starts_with(EVENTS) || kind.starts_with(JSON)) => {
                Ok(events(response.into_body(), self.max_bytes))
            }
            _ => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }
}

/// A request with what every one carries.
fn request(
    method: Method,
    uri: &str,
    body: Bytes,
    session: Option<&str>,
    token: Option<&str>,
    headers: Headers,
) -> Result<Request<Bytes>, SessionError> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri.parse().map_err(|_| unexpected("its url cannot be asked".to_owned()))?;
    let sent = request.headers_mut();
    for (name, value) in headers {
        if name == ACCEPT || name == SESSION || name == LAST_EVENT {
            return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
        }
        sent.insert(name, value);
    }
    sent.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
    if let Some(token) = token {
        let mut token = value(&format!("Bearer {token}"))?;
        token.set_sensitive(true);
        sent.insert(AUTHORIZATION, token);
    }
    if let Some(session) = session {
        sent.insert(SESSION, value(session)?);
    }
    Ok(request)
}

fn value(text: &str) -> Result<HeaderValue, SessionError> {
    HeaderValue::from_str(text).map_err(|_| unexpected("a token or session has characters that cannot be sent".to_owned()))
}

/// What a server says that wants a login, or one with more rights.
fn login_error(status: StatusCode, headers: &HeaderMap) -> Option<SessionError> {
    let challenge = text(headers, WWW_AUTHENTICATE.as_str())?;
    match status {
        StatusCode::UNAUTHORIZED => Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge))),
        StatusCode::FORBIDDEN => Some(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None))),
        _ => None,
    }
}

fn trouble(status: StatusCode, headers: &HeaderMap) -> SessionError {
    HttpStatusError::new(status.as_u16(), text(headers, RETRY_AFTER.as_str())).into()
}

impl BoundedHttp {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, SessionError> {
        self.http.send(request).await.map_err(StreamableHttpError::Client)
    }

    /// What a server says that takes the message.
    async fn answered(
        &self,
        response: Response<Body>,
        message: &ClientJsonRpcMessage,
    ) -> Result<StreamableHttpPostResponse, SessionError> {
        let waits = matches!(message, ClientJsonRpcMessage::Request(_));
        if !waits && text(response.headers(), CONTENT_LENGTH.as_str()).as_deref() == Some("0") {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = text(response.headers(), SESSION);
        let kind = text(response.headers(), CONTENT_TYPE.as_str());
        match kind.as_deref() {
            Some(kind) if kind.starts_with(EVENTS) => {
                Ok(StreamableHttpPostResponse::Sse(events(response.into_body(), self.max_bytes), session))
            }
            Some(kind) if kind.starts_with(JSON) => {
                let read = response.into_body().read_start(self.max_bytes).await;
                let (body, is_whole) = read.map_err(StreamableHttpError::Client)?;
                if !is_whole {
                    return Err(unexpected(format!("an answer is longer than {} bytes", self.max_bytes)));
                }
                match serde_json::from_slice(&body) {
                    Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
                    Err(_) if !waits => Ok(StreamableHttpPostResponse::Accepted),
                    Err(error) => Err(unexpected(format!("an answer cannot be read: {error}: {}", excerpt(&body)))),
                }
            }
            _ => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }

    /// Why a server does not take the message.
    async fn refused(
        &self,
        response: Response<Body>,
        message: &ClientJsonRpcMessage,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, SessionError> {
        let (status, headers) = (response.status(), response.headers().clone());
        let is_login = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if let Some(login_error) = login_error(status, &headers) {
            return Err(login_error);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let is_json = text(&headers, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with(JSON));
        let trouble = || trouble(status, &headers);
        if status == StatusCode::TOO_MANY_REQUESTS || (status.is_server_error() && !is_json) {
            return Err(trouble());
        }
        let body = response.into_body().read_start(MAX_ERROR_BYTES).await.map(|(body, _)| body).unwrap_or_default();
        let error = match serde_json::from_slice(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        match (message, error) {
            // One that does not know the newest protocol may say so in many ways; the older one is tried then.
            (ClientJsonRpcMessage::Request(request), error)
                if matches!(request.request, ClientRequest::DiscoverRequest(_))
                    && status.is_client_error()
                    && !is_login
                    && !has_session =>
            {
                let why = || ErrorData::invalid_request(format!("HTTP {status}: {}", excerpt(&body)), None);
                let error = error.map_or_else(why, |error| error.error);
                let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
                Ok(StreamableHttpPostResponse::Json(answer, None))
            }
            (_, Some(error)) if is_json && !is_login => {
                let session = text(&headers, SESSION);
                Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), session))
            }
            _ if status.is_server_error() => Err(trouble()),
            _ => Err(unexpected(format!("HTTP {status}: {}", excerpt(&body)))),
        }
    }
}

/// The events of a body, none of which may be longer than the limit.
fn events(body: Body, max_bytes: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let chunks = try_unfold((body, OpenEvent::default()), move |(mut body, mut open_event)| async move {
        let Some(chunk) = body.chunk().await.map_err(io::Error::other)? else {
            return Ok(None);
        };
        if open_event.after(&chunk) > max_bytes {
            return Err(io::Error::other(format!("an event is longer than {max_bytes} bytes")));
        }
        Ok(Some((chunk, (body, open_event))))
    });
    SseStream::from_bytes_stream(chunks).boxed()
}

/// How much of an event has come that has not ended.
#[derive(Default)]
struct OpenEvent {
    bytes: usize,
    last: Option<u8>,
}

impl OpenEvent {
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

fn unexpected(what: String) -> SessionError {
    StreamableHttpError::UnexpectedServerResponse(what.into())
}

fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(MAX_EXCERPT_CHARS).collect()
}
