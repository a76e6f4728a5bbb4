//! A TCP proxy on loopback before a server. A test cuts its connections, or holds what is sent and delivers it late.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// What a link does with connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// Everything is passed on.
    Open,
    /// Nothing arrives, and nobody notices. What was sent arrives when the link is open again, even if the sender has gone.
    Held,
    /// Connections are closed at once.
    Cut,
}

/// A proxy that runs until it is dropped.
pub struct Link {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    to: u16,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    passage: Passage,
    /// Both ends of each connection.
    connections: BTreeMap<u64, Vec<TcpStream>>,
    next: u64,
    is_over: bool,
}

impl Link {
    /// A link to a port on loopback.
    ///
    /// # Panics
    /// When this machine has no free port.
    pub fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let state = State { passage: Passage::Open, connections: BTreeMap::new(), next: 0, is_over: false };
        let shared = Arc::new(Shared { to, state: Mutex::new(state), changed: Condvar::new() });
        let accepting = shared.clone();
        thread::spawn(move || accepting.accept(&listener));
        Self { port, shared }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes what it does, also with the connections that there are.
    pub fn set(&self, passage: Passage) {
        let mut state = self.shared.lock();
        state.passage = passage;
        if passage == Passage::Cut {
            state.close_all();
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        state.close_all();
        drop(state);
        self.shared.changed.notify_all();
        // Wakes the thread that accepts.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl State {
    fn close_all(&mut self) {
        for stream in std::mem::take(&mut self.connections).into_values().flatten() {
            // It may have ended by itself.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.lock().is_over {
                return;
            }
            let (shared, Ok(client)) = (self.clone(), client) else { continue };
            thread::spawn(move || shared.serve(client));
        }
    }

    /// Waits while nothing is passed on. Gives whether the connection goes on.
    fn is_open(&self, connection: u64) -> bool {
        let state = self.lock();
        let held = |state: &mut State| state.passage == Passage::Held && !state.is_over;
        let state = self.changed.wait_while(state, held).unwrap_or_else(PoisonError::into_inner);
        state.connections.contains_key(&connection)
    }

    fn serve(self: Arc<Self>, client: TcpStream) {
        let connection = {
            let mut state = self.lock();
            let Ok(end) = client.try_clone() else { return };
            if state.passage == Passage::Cut || state.is_over {
                return;
            }
            state.next += 1;
            let connection = state.next;
            state.connections.insert(connection, vec![end]);
            connection
        };
        if self.is_open(connection)
            && let Ok(server) = TcpStream::connect(("127.0.0.1", self.to))
            && let (Ok(client_end), Ok(server_end), Ok(end)) = (client.try_clone(), server.try_clone(), server.try_clone())
        {
            let is_known = self.lock().connections.get_mut(&connection).map(|ends| ends.push(end)).is_some();
            if is_known {
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let answers = self.clone();
                let answering = thread::spawn(move || answers.pass(connection, server_end, client_end));
                self.pass(connection, client, server);
                // A panic there has been printed.
                let _ = answering.join();
            }
        }
        for end in self.lock().connections.remove(&connection).into_iter().flatten() {
            // It may have ended by itself.
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    fn pass(&self, connection: u64, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = vec![0; 16 << 10];
        loop {
            let read = from.read(&mut bytes).unwrap_or(0);
            // The end of a connection is held as well.
            if !self.is_open(connection) || read == 0 || to.write_all(&bytes[..read]).is_err() {
                // The other direction may go on.
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that says back what it reads, and in the end how much that was.
    fn echo() -> (u16, thread::JoinHandle<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut bytes, mut all) = ([0; 64], 0);
            while let Ok(read @ 1..) = stream.read(&mut bytes) {
                all += read;
                let _ = stream.write_all(&bytes[..read]);
            }
            all
        });
        (port, serving)
    }

    fn said(stream: &mut TcpStream, words: &[u8]) -> Vec<u8> {
        stream.write_all(words).unwrap();
        let mut answer = vec![0; words.len()];
        stream.read_exact(&mut answer).unwrap();
        answer
    }

    #[test]
    fn what_is_held_arrives_late_even_if_its_sender_has_gone() {
        let (port, serving) = echo();
        let link = Link::start(port);
        let mut stream = TcpStream::connect(("127.0.0.1", link.port())).unwrap();
        assert_eq!(said(&mut stream, b"one"), b"one");
        link.set(Passage::Held);
        stream.write_all(b"late").unwrap();
        drop(stream);
        assert!(!serving.is_finished(), "nothing has arrived, the end neither");
        link.set(Passage::Open);
        assert_eq!(serving.join().unwrap(), 7);
    }

    #[test]
    fn a_cut_ends_connections_and_refuses_new_ones_until_it_is_healed() {
        let (port, serving) = echo();
        let link = Link::start(port);
        let mut stream = TcpStream::connect(("127.0.0.1", link.port())).unwrap();
        assert_eq!(said(&mut stream, b"one"), b"one");
        link.set(Passage::Cut);
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
        assert_eq!(serving.join().unwrap(), 3);
        let mut refused = TcpStream::connect(("127.0.0.1", link.port())).unwrap();
        assert_eq!(refused.read(&mut [0]).unwrap_or(0), 0);
        link.set(Passage::Open);
        let (port, serving) = echo();
        let healed = Link::start(port);
        let mut stream = TcpStream::connect(("127.0.0.1", healed.port())).unwrap();
        assert_eq!(said(&mut stream, b"two"), b"two");
        drop(stream);
        assert_eq!(serving.join().unwrap(), 3);
    }
}
