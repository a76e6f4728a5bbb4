//! A proxy before a server that loses a connection at a chosen statement.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// How a connection is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Before the server gets the statement.
    Before,
    /// After it got it; the answer is lost.
    After,
    /// The client loses the connection, and the server gets the statement when it is released.
    Hold,
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    server: u16,
    statements: AtomicUsize,
    plan: Mutex<Option<(usize, Cut)>>,
    release: Notify,
    /// Told when the server has done with a statement that was held.
    done: Notify,
}

impl Proxy {
    pub(crate) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared { server, ..Shared::default() });
        let accepted = shared.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let shared = accepted.clone();
                // A connection that fails is one that is lost.
                tokio::spawn(async move { shared.pass(client).await.unwrap_or_default() });
            }
        });
        Self { port, shared, accepting }
    }

    /// How many statements there were.
    pub(crate) fn statements(&self) -> usize {
        self.shared.statements.load(Ordering::SeqCst)
    }

    /// Loses the connection of a statement, by its number; the next one has the number after [`Self::statements`].
    pub(crate) fn cut(&self, statement: usize, cut: Cut) {
        *self.shared.plan.lock().unwrap_or_else(PoisonError::into_inner) = Some((statement, cut));
    }

    /// Gives the server the statement that is held, and waits until it has done with it.
    pub(crate) async fn release(&self) {
        self.shared.release.notify_one();
        self.shared.done.notified().await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    async fn pass(&self, client: TcpStream) -> std::io::Result<()> {
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = TcpStream::connect(("127.0.0.1", self.server)).await?.into_split();
        let (stop, stopped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let answers = {
            let (stop, stopped) = (stop.clone(), stopped.clone());
            async move {
                tokio::select! {
                    _ = copy(&mut from_server, &mut to_client) => {}
                    () = stop.notified() => {}
                }
                drop(to_client);
                stopped.notify_one();
                from_server
            }
        };
        let answers = tokio::spawn(answers);
        let cut = self.statements_of(&mut from_client, &mut to_server).await;
        let Ok(Some((cut, statement))) = cut else { return Ok(()) };
        stop.notify_one();
        stopped.notified().await;
        drop(from_client);
        let from_server = answers.await?;
        match cut {
            Cut::Before => {}
            Cut::After => finish(statement, to_server, from_server).await?,
            Cut::Hold => {
                self.release.notified().await;
                finish(statement, to_server, from_server).await?;
                self.done.notify_one();
            }
        }
        Ok(())
    }

    /// Passes statements on; gives the one at which the connection is to be lost.
    async fn statements_of(
        &self,
        client: &mut OwnedReadHalf,
        server: &mut OwnedWriteHalf,
    ) -> std::io::Result<Option<(Cut, Vec<u8>)>> {
        let mut statement = message(client, None).await?;
        server.write_all(&statement).await?;
        statement.clear();
        loop {
            let kind = client.read_u8().await?;
            statement.extend(message(client, Some(kind)).await?);
            if !matches!(kind, b'S' | b'Q') {
                continue;
            }
            let number = self.statements.fetch_add(1, Ordering::SeqCst) + 1;
            let planned = *self.plan.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, cut)) = planned.filter(|(at, _)| *at == number) {
                return Ok(Some((cut, statement)));
            }
            server.write_all(&statement).await?;
            statement.clear();
        }
    }
}

/// Sends a statement and nothing more, and waits until the server has ended.
async fn finish(statement: Vec<u8>, mut to: OwnedWriteHalf, mut from: OwnedReadHalf) -> std::io::Result<()> {
    to.write_all(&statement).await?;
    to.shutdown().await?;
    from.read_to_end(&mut Vec::new()).await.map(drop)
}

/// Reads a message whose first byte, if it has one for its kind, was read.
async fn message(client: &mut OwnedReadHalf, kind: Option<u8>) -> std::io::Result<Vec<u8>> {
    let length = client.read_u32().await?;
    let mut bytes: Vec<u8> = kind.into_iter().chain(length.to_be_bytes()).collect();
    let head = bytes.len();
    bytes.resize(head + length as usize - 4, 0);
    client.read_exact(&mut bytes[head..]).await?;
    Ok(bytes)
}
