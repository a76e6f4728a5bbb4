//! A line between two programs that can swallow an answer.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Passes everything on; the answer to the first request with a certain word it keeps to itself.
pub(crate) struct Proxy {
    pub(crate) address: String,
    swallowed: Receiver<()>,
}

struct Line {
    to: String,
    word: &'static str,
    is_done: AtomicBool,
    /// What was not answered is kept open.
    held: Mutex<Vec<TcpStream>>,
    tell: Sender<()>,
}

impl Proxy {
    pub(crate) fn start(to: &str, word: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (tell, swallowed) = channel();
        let line = Arc::new(Line { to: to.to_owned(), word, is_done: AtomicBool::new(false), held: Mutex::default(), tell });
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let line = line.clone();
                std::thread::spawn(move || line.carry(client));
            }
        });
        Self { address, swallowed }
    }

    /// Waits until an answer was swallowed.
    pub(crate) fn wait(&self) {
        self.swallowed.recv().unwrap();
    }
}

impl Line {
    fn carry(&self, mut client: TcpStream) {
        let Ok(mut server) = TcpStream::connect(&self.to) else { return };
        let request = read_request(&mut client);
        if server.write_all(&request).is_err() {
            return;
        }
        let is_meant = String::from_utf8_lossy(&request).contains(self.word);
        if is_meant && !self.is_done.swap(true, Ordering::SeqCst) {
            // The answer is there, and nobody hears it.
            let _ = server.read(&mut [0; 1024]);
            self.held.lock().unwrap().push(client);
            let _ = self.tell.send(());
            return;
        }
        let _ = std::io::copy(&mut server, &mut client);
        let _ = client.shutdown(std::net::Shutdown::Both);
    }
}

/// The head and the body of a request.
pub(crate) fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0_usize) {
                return request;
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return request,
            Ok(count) => request.extend_from_slice(&chunk[..count]),
        }
    }
}
