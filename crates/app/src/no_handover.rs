//! Where sockets cannot be handed to another process, a server is replaced by stopping it.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

/// Waits for nobody.
pub(crate) struct Successors(Infallible);

impl Successors {
    pub(crate) fn listen(_: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) async fn next(&self, _: SocketAddr) -> Successor {
        match self.0 {}
    }
}

/// There is none.
pub(crate) struct Successor(Infallible);

impl Successor {
    pub(crate) async fn hand_over(self, _: &TcpListener) -> io::Result<()> {
        match self.0 {}
    }
}

/// There is none.
pub(crate) struct Predecessor {
    pub(crate) address: SocketAddr,
}

impl Predecessor {
    pub(crate) async fn find(_: &Path) -> io::Result<Option<Self>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) async fn take(&self) -> io::Result<Option<TcpListener>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) async fn release(self) {}
}

pub(crate) fn inherited() -> io::Result<Option<TcpListener>> {
    Ok(None)
}
