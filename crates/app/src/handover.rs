//! Replacing a running `polis serve`: its listening socket goes to the successor, so that a client that connects meanwhile waits for
//! its answer and is not refused.
//!
//! ```text
//! successor                        running server
//! connects to DATA/successor  -->
//!                             <--  polis 1 127.0.0.1:3000
//! drain                       -->  comes to a safe point and closes the data directory
//!                             <--  socket, with the listening socket
//! opens the data directory
//! serving                     -->  ends
//! ```
//!
//! If the successor goes away before it serves, the server opens the data directory again and continues with the same socket. If the
//! server goes away, the successor starts like any other. Who may write is decided by the lock of the data directory alone.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::sockopt::socket_acceptconn;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg,
    sendmsg,
};
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

/// The socket in the data directory, which is its owner's alone.
const FILE: &str = "successor";

/// What begins the first line; the number is the version of this conversation.
const HELLO: &str = "polis 1 ";
const DRAIN: &str = "drain";
const SOCKET: &str = "socket";
const SERVING: &str = "serving";

/// Longest line.
const MAX_LINE_BYTES: usize = 128;

/// How long a process that connects may take to say what it wants.
const GREETING: Duration = Duration::from_secs(10);

/// How long to wait after a connection that could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Where a server waits for its successor.
pub(crate) struct Successors(UnixListener);

impl Successors {
    /// Begins to wait. This process must have the lock of the data directory, so a socket that is there was left behind.
    pub(crate) fn listen(data: &Path) -> io::Result<Self> {
        let path = data.join(FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => UnixListener::bind(path).map(Self),
        }
    }

    /// Waits until a process asks to replace this one, which listens on `address`.
    pub(crate) async fn next(&self, address: SocketAddr) -> Successor {
        loop {
            match self.0.accept().await {
                Ok((stream, _)) => {
                    let greeting = async {
                        write_line(&stream, &format!("{HELLO}{address}"), None).await?;
                        read_line(&stream).await
                    };
                    if matches!(timeout(GREETING, greeting).await, Ok(Ok(line)) if line == DRAIN) {
                        return Successor(stream);
                    }
                }
                Err(_) => sleep(ACCEPT_AGAIN).await,
            }
        }
    }
}

/// A process that waits for the socket of this one.
pub(crate) struct Successor(UnixStream);

impl Successor {
    /// Hands the socket over and waits until the successor serves. The data directory must be closed. An error means that it does not
    /// serve and has gone.
    pub(crate) async fn hand_over(self, socket: &TcpListener) -> io::Result<()> {
        write_line(&self.0, SOCKET, Some(socket)).await?;
        match read_line(&self.0).await?.as_str() {
            SERVING => Ok(()),
            other => Err(io::Error::other(format!("it says `{other}`"))),
        }
    }
}

/// The server that this process is about to replace.
pub(crate) struct Predecessor {
    stream: UnixStream,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Predecessor {
    /// Finds the server that runs on a data directory, if there is one.
    pub(crate) async fn find(data: &Path) -> io::Result<Option<Self>> {
        let path: PathBuf = data.join(FILE);
        let stream = match UnixStream::connect(path).await {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            // It died before it accepted the connection.
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let hello = match timeout(GREETING, read_line(&stream)).await {
            Ok(Ok(hello)) => hello,
            // It has just ended, or is being replaced already.
            Ok(Err(error)) if is_gone(&error) => return Ok(None),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer")),
        };
        let address = hello.strip_prefix(HELLO).and_then(|address| address.parse().ok());
        let address = address.ok_or_else(|| io::Error::other(format!("it says `{hello}`; is it a newer polis?")))?;
        Ok(Some(Self { stream, address }))
    }

    /// Has it close the data directory and takes its socket; none if it has gone meanwhile.
    pub(crate) async fn take(&self) -> io::Result<Option<TcpListener>> {
        let taken = async {
            write_line(&self.stream, DRAIN, None).await?;
            read_socket(&self.stream).await
        };
        match taken.await {
            Ok(socket) => Ok(Some(TcpListener::from(socket))),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets it end, because this process serves now. If it has ended already, nothing is to be done.
    pub(crate) async fn release(self) {
        let _ = write_line(&self.stream, SERVING, None).await;
    }
}

/// The listening socket that this process has been started with as its standard input, as service managers do it.
pub(crate) fn inherited() -> io::Result<Option<TcpListener>> {
    let stdin = io::stdin();
    match socket_acceptconn(&stdin) {
        Ok(true) => Ok(Some(TcpListener::from(stdin.as_fd().try_clone_to_owned()?))),
        // It is a file, a terminal, or another socket.
        Ok(false) | Err(_) => Ok(None),
    }
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
}

/// Writes a line, with a socket attached to its first byte.
async fn write_line(stream: &UnixStream, line: &str, socket: Option<&TcpListener>) -> io::Result<()> {
    let line = format!("{line}\n");
    let mut rest = line.as_bytes();
    let mut socket = socket.map(|socket| [socket.as_fd()]);
    while !rest.is_empty() {
        stream.writable().await?;
        let sent = stream.try_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if let Some(socket) = &socket {
                control.push(SendAncillaryMessage::ScmRights(socket));
            }
            Ok(sendmsg(stream, &[IoSlice::new(rest)], &mut control, SendFlags::empty())?)
        });
        match sent {
            Ok(sent) => {
                rest = &rest[sent..];
                socket = None;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a line without its end.
async fn read_line(stream: &UnixStream) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        stream.readable().await?;
        let mut byte = [0];
        match stream.try_read(&mut byte) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if byte == *b"\n" => return String::from_utf8(line).map_err(io::Error::other),
            Ok(_) if line.len() >= MAX_LINE_BYTES => return Err(io::Error::other("the line is too long")),
            Ok(_) => line.extend(byte),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads the line that has the socket.
async fn read_socket(stream: &UnixStream) -> io::Result<OwnedFd> {
    loop {
        stream.readable().await?;
        let mut first = [0];
        let received = stream.try_io(Interest::READABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let bytes = recvmsg(stream, &mut [IoSliceMut::new(&mut first)], &mut control, RecvFlags::empty())?.bytes;
            let socket = control.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
                _ => None,
            });
            // Commands of agents must not have it.
            socket.iter().try_for_each(|socket| fcntl_setfd(socket, FdFlags::CLOEXEC))?;
            Ok((bytes, socket))
        });
        match received {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((_, socket)) => {
                let line = format!("{}{}", char::from(first[0]), read_line(stream).await?);
                return socket.filter(|_| line == SOCKET).ok_or_else(|| io::Error::other(format!("it says `{line}`")));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn socket() -> (TcpListener, SocketAddr) {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    #[tokio::test]
    async fn a_client_that_connected_before_is_answered_by_the_successor() {
        let data = tempfile::tempdir().unwrap();
        assert!(Predecessor::find(data.path()).await.unwrap().is_none());
        let (socket, address) = socket();
        let successors = Successors::listen(data.path()).unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let server = async {
            let successor = successors.next(address).await;
            let done = successor.hand_over(&socket).await;
            drop(socket);
            done
        };
        let successor = async {
            let predecessor = Predecessor::find(data.path()).await.unwrap().unwrap();
            assert_eq!(predecessor.address, address);
            let taken = predecessor.take().await.unwrap().unwrap();
            predecessor.release().await;
            taken
        };
        let (done, taken) = tokio::join!(server, successor);
        done.unwrap();
        taken.set_nonblocking(false).unwrap();
        taken.accept().unwrap().0.write_all(b"hello").unwrap();
        let mut said = String::new();
        drop(taken);
        client.read_to_string(&mut said).unwrap();
        assert_eq!(said, "hello");
        // What it left behind is in nobody's way.
        drop(successors);
        assert!(Predecessor::find(data.path()).await.unwrap().is_none());
        Successors::listen(data.path()).unwrap();
    }

    #[tokio::test]
    async fn whoever_goes_away_is_noticed_and_who_only_looks_changes_nothing() {
        let data = tempfile::tempdir().unwrap();
        let (socket, address) = socket();
        let successors = Successors::listen(data.path()).unwrap();
        let server = async {
            // The first one that connects goes away before it asks.
            let successor = successors.next(address).await;
            successor.hand_over(&socket).await.unwrap_err()
        };
        let others = async {
            drop(Predecessor::find(data.path()).await.unwrap().unwrap());
            let predecessor = Predecessor::find(data.path()).await.unwrap().unwrap();
            assert!(predecessor.take().await.unwrap().is_some());
        };
        assert_eq!(tokio::join!(server, others).0.kind(), io::ErrorKind::UnexpectedEof);

        let gone = async { drop(successors.next(address).await) };
        let left = async { Predecessor::find(data.path()).await.unwrap().unwrap().take().await.unwrap() };
        assert!(tokio::join!(gone, left).1.is_none());
    }
}
