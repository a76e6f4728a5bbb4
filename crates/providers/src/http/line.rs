//! Connections. One whose response was read to its end is kept for the next request.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::http::uri::{Authority, Scheme};
use hyper::{Request, Response};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// How long a connection is kept that nobody uses.
const MAX_IDLE: Duration = Duration::from_secs(60);

/// Most connections that are kept.
const MAX_KEPT: usize = 256;

/// Where a connection goes.
pub(super) type Place = (Scheme, Authority);

/// An open connection; dropping it closes it once nothing comes over it any more.
pub(super) struct Line {
    requests: SendRequest<Full<Bytes>>,
    probe: Option<Probe>,
}

impl Line {
    /// Sends a request. An error brings the request back only if no byte of it was written.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        self.requests.try_send_request(request).await
    }

    /// Whether a request may be written, as far as this side can know.
    async fn is_usable(&mut self) -> bool {
        self.requests.ready().await.is_ok() && !self.probe.as_ref().is_some_and(Probe::is_closed)
    }
}

/// Opens a connection over a socket.
pub(super) async fn open(socket: MaybeHttpsStream<TokioIo<TcpStream>>) -> hyper::Result<Line> {
    let probe = Probe::new(match &socket {
        MaybeHttpsStream::Http(socket) => socket.inner(),
        MaybeHttpsStream::Https(socket) => socket.inner().get_ref().0.inner().inner(),
    });
    let (requests, connection) = http1::handshake(socket).await?;
    // Whoever waits for what comes over it is told how it ended.
    tokio::spawn(async move { drop(connection.await) });
    Ok(Line { requests, probe })
}

/// A second handle on a connection's socket. It asks the kernel whether the server has closed: the task that drives the connection
/// learns it only when it runs next, and a request that is written before that counts as sent.
struct Probe(std::net::TcpStream);

impl Probe {
    #[cfg(unix)]
    fn new(socket: &TcpStream) -> Option<Self> {
        use std::os::fd::AsFd;
        socket.as_fd().try_clone_to_owned().ok().map(|socket| Self(socket.into()))
    }

    #[cfg(not(unix))]
    fn new(_: &TcpStream) -> Option<Self> {
        None
    }

    /// The socket does not block, so an open one without data is an error here.
    fn is_closed(&self) -> bool {
        match self.0.peek(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}

/// The body of a response. Once it was read to its end its connection is kept; dropped before, it closes it.
pub(crate) struct Reply {
    body: Incoming,
    line: Option<(Place, Line)>,
    kept: Kept,
}

impl Reply {
    pub(super) fn new(body: Incoming, line: Line, place: Place, kept: Kept) -> Self {
        Self { body, line: Some((place, line)), kept }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(None) = frame
            && let Some((place, line)) = self.line.take()
        {
            self.kept.put(place, line);
        }
        frame
    }
}

/// Connections that nobody uses at the moment; copies share them.
#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<Shelf>>);

#[derive(Default)]
struct Shelf {
    /// Oldest first.
    lines: Vec<(Place, Line, Instant)>,
    is_swept: bool,
}

impl Kept {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection to a place that was used last, of those that can still be used.
    pub(super) async fn take(&self, place: &Place) -> Option<Line> {
        loop {
            let mut line = self.newest(place)?;
            if line.is_usable().await {
                return Some(line);
            }
        }
    }

    /// Closes all connections to a place that nobody uses.
    pub(super) fn forget(&self, place: &Place) {
        self.shelf().lines.retain(|(other, ..)| other != place);
    }

    fn newest(&self, place: &Place) -> Option<Line> {
        let mut shelf = self.shelf();
        let found = shelf.lines.iter().rposition(|(other, ..)| other == place)?;
        Some(shelf.lines.remove(found).1)
    }

    fn put(&self, place: Place, line: Line) {
        let mut shelf = self.shelf();
        if shelf.lines.len() >= MAX_KEPT {
            shelf.lines.remove(0);
        }
        shelf.lines.push((place, line, Instant::now()));
        let is_swept = std::mem::replace(&mut shelf.is_swept, true);
        // A runtime that is ending drops what it is given on the spot, which needs the shelf too.
        drop(shelf);
        if !is_swept {
            tokio::spawn(sweep(Sweeping(Arc::downgrade(&self.0))));
        }
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.shelf().lines.iter().map(|(place, ..)| place)).finish()
    }
}

/// Closes connections that nobody uses, until there are none.
async fn sweep(sweeping: Sweeping) {
    loop {
        tokio::time::sleep(MAX_IDLE / 2).await;
        let Some(kept) = sweeping.0.upgrade().map(Kept) else { return };
        let mut shelf = kept.shelf();
        shelf.lines.retain(|(_, line, since)| !line.requests.is_closed() && since.elapsed() < MAX_IDLE);
        if shelf.lines.is_empty() {
            return;
        }
    }
}

/// As long as it is there somebody sweeps: the runtime that does may end before the others that use the connections.
struct Sweeping(Weak<Mutex<Shelf>>);

impl Drop for Sweeping {
    fn drop(&mut self) {
        if let Some(kept) = self.0.upgrade().map(Kept) {
            kept.shelf().is_swept = false;
        }
    }
}
