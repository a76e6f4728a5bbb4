//! A server that answers each request as a function says, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

pub(crate) struct Routes {
    /// Its address, without a path.
    pub(crate) origin: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Drop for Routes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Routes {
    /// Serves every connection; `answer` gives the bytes of a response.
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (asked, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let seen = asked.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (seen, answer) = (seen.clone(), answer.clone());
                tokio::spawn(async move { serve(stream, &seen, &*answer).await });
            }
        });
        Self { origin, asked, task }
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How many requests had this path.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.asked().iter().filter(|asked| asked.target == path).count()
    }
}

async fn serve(mut stream: TcpStream, seen: &Mutex<Vec<Asked>>, answer: &(impl Fn(&Asked) -> Vec<u8> + Sync)) {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let asked = parse(&String::from_utf8_lossy(&bytes[..end]));
            let length: usize = asked.header("content-length").unwrap_or("0").parse().unwrap();
            if bytes.len() >= end + 4 + length {
                let asked = Asked { body: bytes[end + 4..end + 4 + length].to_vec(), ..asked };
                bytes.drain(..end + 4 + length);
                let response = answer(&asked);
                seen.lock().unwrap().push(asked);
                if stream.write_all(&response).await.is_err() {
                    return;
                }
                continue;
            }
        }
        if !stream.read_buf(&mut bytes).await.is_ok_and(|read| read > 0) {
            return;
        }
    }
}

fn parse(head: &str) -> Asked {
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let pair = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    Asked { method, target, headers: lines.filter_map(pair).collect(), body: Vec::new() }
}
