//! The body of a response: read in chunks or whole, with limits on time and size.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body as _, Bytes, Incoming};
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
        poll_fn(|cx| self.poll_chunk(cx)).await.transpose()
    }

    /// The same for code that is polled itself. After an error nothing comes.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, HttpError>>> {
        while !self.is_over {
            if let Some(late) = self.timeout_error() {
                return self.fail(late);
            }
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Pending => return self.poll_limits(cx).map(Err).map(Some),
                Poll::Ready(None) => self.is_over = true,
                Poll::Ready(Some(Err(error))) => {
                    return self.fail(HttpError::Cut { address: self.address.to_string(), reason: with_causes(&error) });
                }
                Poll::Ready(Some(Ok(frame))) => {
                    self.silence = None;
                    match frame.into_data() {
                        Ok(bytes) if !bytes.is_empty() => return Poll::Ready(Some(Ok(bytes))),
                        Ok(_) | Err(_) => {}
                    }
                }
            }
        }
        Poll::Ready(None)
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

    /// A body that never stops sending exceeds the time limit too, so this is checked for every chunk.
    fn timeout_error(&self) -> Option<HttpError> {
        let (sleep, after) = self.deadline.as_ref()?;
        let is_late = sleep.deadline() <= Instant::now();
        is_late.then(|| HttpError::Late { address: self.address.to_string(), after: *after })
    }

    fn fail(&mut self, error: HttpError) -> Poll<Option<Result<Bytes, HttpError>>> {
        self.is_over = true;
        Poll::Ready(Some(Err(error)))
    }

    fn poll_limits(&mut self, cx: &mut Context<'_>) -> Poll<HttpError> {
        if let Some((sleep, after)) = &mut self.deadline
            && sleep.as_mut().poll(cx).is_ready()
        {
            self.is_over = true;
            return Poll::Ready(HttpError::Late { address: self.address.to_string(), after: *after });
        }
        let Some(after) = self.between else { return Poll::Pending };
        let silence = self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(after)));
        ready!(silence.as_mut().poll(cx));
        self.is_over = true;
        Poll::Ready(HttpError::Silent { address: self.address.to_string(), after })
    }
}
