//! A provider that behaves as badly as it can: a raw HTTP server on loopback that is told, request by request, which bytes to
//! send and when to break off. It knows no dialect, and it counts requests and the connections that are open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// One thing that the server does with a request.
#[derive(Debug, Clone)]
pub enum ServerAction {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes one by one, each on its own.
    Drip(Vec<u8>),
    /// Sends these bytes again and again until the client goes away.
    Repeat(Vec<u8>),
    /// Sends nothing more until the client goes away.
    Stall,
    /// Closes the connection.
    Close,
    /// Breaks the connection off, so that the client gets an error instead of an end.
    Reset,
}

/// A fault inside the body of a good response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFault {
    /// The body ends as if it were whole.
    End,
    /// The connection closes in the middle.
    Close,
    /// The connection breaks in the middle.
    Reset,
    /// Nothing more comes.
    Stall,
    /// Something comes that does not belong there; the rest follows.
    Insert(&'static [u8]),
    /// Something comes again and again.
    Repeat(&'static [u8]),
    /// The rest comes byte by byte.
    Drip,
}

/// The head of a response whose body comes in chunks.
pub fn head(status: u16, content_type: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Whatever\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n").into()
}

/// Bytes as one chunk of a body; no bytes are no chunk, as an empty one would end it.
pub fn chunk(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// The end of a body that comes in chunks.
pub const END: &[u8] = b"0\r\n\r\n";

/// A good response with `body`, to which `body_fault` is done before the byte at `at`.
pub fn faulty_response(content_type: &str, body: &[u8], at: usize, body_fault: BodyFault) -> Vec<ServerAction> {
    let (before, after) = body.split_at(at);
    let begun = [head(200, content_type), chunk(before)].concat();
    let rest = || [chunk(after), END.to_vec()].concat();
    let mut actions = vec![ServerAction::Send(begun)];
    match body_fault {
        BodyFault::End => actions.push(ServerAction::Send(END.to_vec())),
        BodyFault::Close => actions.push(ServerAction::Close),
        BodyFault::Reset => actions.push(ServerAction::Reset),
        BodyFault::Stall => actions.push(ServerAction::Stall),
        BodyFault::Insert(bytes) => actions.push(ServerAction::Send([chunk(bytes), rest()].concat())),
        BodyFault::Repeat(bytes) => actions.push(ServerAction::Repeat(chunk(bytes))),
        BodyFault::Drip => {
            actions.extend(after.chunks(1).map(|byte| ServerAction::Drip(chunk(byte))));
            actions.push(ServerAction::Send(END.to_vec()));
        }
    }
    actions
}

/// The server. Dropping it stops it.
#[derive(Debug)]
pub struct HostileServer {
    address: SocketAddr,
    open: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl HostileServer {
    /// Starts on a free port; `script` says what is done to a request for [`HostileServer::url`] of a number.
    pub async fn start(script: impl Fn(usize) -> Vec<ServerAction> + Send + Sync + 'static) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (open, requests, script) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Arc::new(script));
        let (counted, seen) = (open.clone(), requests.clone());
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (script, seen, guest) = (script.clone(), seen.clone(), ConnectionGuard::new(&counted));
                connections.spawn(async move {
                    let _ = serve(stream, &*script, &seen).await;
                    drop(guest);
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, open, requests, task: task.abort_handle() })
    }

    /// Where requests are done what the script says of `number`.
    pub fn url(&self, number: usize) -> String {
        format!("http://{}/{number}", self.address)
    }

    /// How many requests have come in whole.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// How many connections are open.
    pub fn open_connections(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Waits until no connection is open; false if some still are after `patience`.
    pub async fn is_left_alone(&self, patience: Duration) -> bool {
        let alone = async {
            while self.open_connections() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(patience, alone).await.is_ok()
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One open connection, counted.
struct ConnectionGuard(Arc<AtomicUsize>);

impl ConnectionGuard {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self(open.clone())
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn serve(
    mut stream: TcpStream,
    script: &(impl Fn(usize) -> Vec<ServerAction> + ?Sized),
    seen: &AtomicUsize,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::new();
    while let Some(number) = request(&mut stream, &mut bytes).await? {
        seen.fetch_add(1, Ordering::SeqCst);
        for act in script(number) {
            match act {
                ServerAction::Send(bytes) => stream.write_all(&bytes).await?,
                ServerAction::Drip(bytes) => {
                    for byte in bytes {
                        stream.write_all(&[byte]).await?;
                        tokio::task::yield_now().await;
                    }
                }
                ServerAction::Repeat(bytes) => loop {
                    stream.write_all(&bytes).await?;
                    tokio::task::yield_now().await;
                },
                ServerAction::Stall => {
                    while stream.read(&mut [0; 64]).await? > 0 {}
                    return Ok(());
                }
                ServerAction::Close => return Ok(()),
                ServerAction::Reset => return stream.set_zero_linger(),
            }
        }
    }
    Ok(())
}

/// Reads one request; its number, or none when the client has gone.
async fn request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> std::io::Result<Option<usize>> {
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
            let whole = end + 4 + length.unwrap_or(0);
            if bytes.len() >= whole {
                bytes.drain(..whole);
                let number = head.split(['/', ' ']).filter(|part| !part.is_empty()).nth(1);
                return Ok(number.and_then(|number| number.parse().ok()));
            }
        }
        if stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
    }
}
