//! The body of a response: read in chunks or whole, with limits on time and size.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Frame, Incoming};
use tokio::time::{Instant, Sleep};

use crate::HttpError;
use crate::error::with_causes;

/// The body of a response. Dropped before its end it cancels the request: an HTTP/1.1 connection is closed.
#[derive(Debug)]
pub struct Body {
    incoming: Incoming,
    address: Arc<str>,
    /// How long nothing may come.
    between: Option<Duration>,
    silence: Option<Pin<Box<Sleep>>>,
    /// When everything must have come, and how long that is from the beginning.
    deadline: Option<(Pin<Box<Sleep>>, Duration)>,
    is_over: bool,
}

impl Body {
    pub(crate) fn new(
        incoming: Incoming,
        address: Arc<str>,
        between: Option<Duration>,
        deadline: Option<(Pin<Box<Sleep>>, Duration)>,
    ) -> Self {
        Self { incoming, address, between, silence: None, deadline, is_over: false }
    }

    /// The next bytes; none at the end. Dropping the future loses nothing.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        while let Some(frame) = self.frame().await {
            match frame?.into_data() {
                Ok(bytes) if !bytes.is_empty() => return Ok(Some(bytes)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The whole body. One with more bytes is an error.
    pub async fn read(self, max_bytes: usize) -> Result<Vec<u8>, HttpError> {
        let address = self.address.to_string();
        match self.read_start(max_bytes).await? {
            (body, true) => Ok(body),
            (_, false) => Err(HttpError::TooLong { address, max_bytes }),
        }
    }

    /// As much of the body as is allowed, and whether that is all of it.
    pub async fn read_start(mut self, max_bytes: usize) -> Result<(Vec<u8>, bool), HttpError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            let room = max_bytes - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                return Ok((body, false));
            }
        }
        Ok((body, true))
    }

    fn poll_limits(&mut self, cx: &mut Context<'_>) -> Poll<HttpError> {
        let address = || self.address.to_string();
        if let Some((sleep, after)) = &mut self.deadline
            && sleep.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(HttpError::Late { address: address(), after: *after });
        }
        let Some(after) = self.between else { return Poll::Pending };
        let silence = self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(after)));
        silence.as_mut().poll(cx).map(|()| HttpError::Silent { address: address(), after })
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if let Some((sleep, after)) = &self.deadline
            && sleep.deadline() <= Instant::now()
        {
            // One that never stops sending is late too.
            let error = HttpError::Late { address: self.address.to_string(), after: *after };
            self.is_over = true;
            return Poll::Ready(Some(Err(error)));
        }
        let polled = match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Pending => match self.poll_limits(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(error) => Some(Err(error)),
            },
            Poll::Ready(None) => None,
            Poll::Ready(Some(Ok(frame))) => {
                self.silence = None;
                Some(Ok(frame))
            }
            Poll::Ready(Some(Err(error))) => {
                Some(Err(HttpError::Cut { address: self.address.to_string(), reason: with_causes(&error) }))
            }
        };
        self.is_over = !matches!(polled, Some(Ok(_)));
        Poll::Ready(polled)
    }
}
