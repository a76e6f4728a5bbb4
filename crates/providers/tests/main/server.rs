//! A raw TCP server that sends exactly the bytes it is told, and tells what it saw.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::Reply;
use polis_ports::{ChatMessage, Model, ModelError, ModelRequest, collect};
use polis_providers::{ApiKey, Dialect, HttpClient, RemoteModel, RemoteOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

/// What the server does once a request has come in.
#[derive(Clone)]
pub(crate) enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Waits until the test says so.
    Wait(Arc<Notify>),
    /// Waits until the client closes the connection.
    Hang,
    /// Closes the connection; without it the next request is awaited.
    Close,
}

/// What the server saw.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Connected,
    Request { head: String, body: String },
    Closed,
}

pub(crate) struct Server {
    pub(crate) base_url: String,
    seen: mpsc::Receiver<Seen>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Serves one connection after the other, every request by the same steps.
    pub(crate) async fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (tell, seen) = mpsc::channel(10_000);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tell.send(Seen::Connected).await.unwrap();
                serve(stream, &steps, &tell).await;
                let _ = tell.send(Seen::Closed).await;
            }
        });
        Self { base_url, seen, task }
    }

    /// The next thing that the server saw; fails instead of hanging.
    pub(crate) async fn seen(&mut self) -> Seen {
        let next = tokio::time::timeout(Duration::from_secs(10), self.seen.recv()).await;
        next.expect("the server should have seen something by now").unwrap()
    }

    /// A model behind this server, with the settings changed by `change`.
    pub(crate) fn model_with(&self, change: impl FnOnce(&mut RemoteOptions)) -> RemoteModel {
        let mut options = RemoteOptions::new("test", self.base_url.as_str(), "small");
        options.key = Some(ApiKey::new("sk-secret").unwrap());
        change(&mut options);
        RemoteModel::new(HttpClient::default(), options).unwrap()
    }

    pub(crate) fn model(&self) -> RemoteModel {
        self.model_with(|_| ())
    }
}

async fn serve(mut stream: TcpStream, steps: &[Step], tell: &mpsc::Sender<Seen>) {
    stream.set_nodelay(true).unwrap();
    let mut bytes = Vec::new();
    while let Some((head, body)) = request(&mut stream, &mut bytes).await {
        let _ = tell.send(Seen::Request { head, body }).await;
        for step in steps {
            match step {
                Step::Send(bytes) => {
                    if stream.write_all(bytes).await.is_err() {
                        return;
                    }
                }
                Step::Wait(signal) => signal.notified().await,
                Step::Hang => while stream.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {},
                Step::Close => return,
            }
        }
    }
}

async fn request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<(String, String)> {
    loop {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0").parse().unwrap();
            if body.len() >= length {
                bytes.clear();
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        if stream.read_buf(bytes).await.ok()? == 0 {
            return None;
        }
    }
}

pub(crate) const SSE: &str = "text/event-stream; charset=utf-8";

/// The head of a chunked response.
pub(crate) fn head(status: u16, content_type: &str, more: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Whatever\r\ncontent-type: {content_type}\r\n{more}transfer-encoding: chunked\r\n\r\n").into()
}

/// Bytes as HTTP chunks of at most `size`: the client sees each of them on its own.
pub(crate) fn chunks(body: &[u8], size: usize) -> Vec<u8> {
    body.chunks(size).flat_map(|piece| [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()).collect()
}

/// A whole response in HTTP chunks of at most `size`.
pub(crate) fn response(status: u16, content_type: &str, body: &[u8], size: usize) -> Vec<u8> {
    [head(status, content_type, ""), chunks(body, size), b"0\r\n\r\n".to_vec()].concat()
}

/// Events with these data, `[DONE]` not included.
pub(crate) fn events(data: &[&str]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}

pub(crate) fn hello() -> ModelRequest {
    ModelRequest { messages: vec![ChatMessage::user("hello")], ..ModelRequest::default() }
}

/// Asks and collects; fails instead of hanging.
pub(crate) async fn ask(model: &dyn Model) -> Result<Reply, ModelError> {
    let whole = async { collect(model.stream(hello()).await?).await };
    tokio::time::timeout(Duration::from_secs(20), whole).await.expect("the model should have answered by now")
}

/// What a model makes of one response, in OpenAI's chat dialect.
pub(crate) async fn answer_to(response: Vec<u8>) -> Result<Reply, ModelError> {
    answer_in(Dialect::OpenAiChat, response).await
}

/// What a model makes of one response, in some dialect.
pub(crate) async fn answer_in(dialect: Dialect, response: Vec<u8>) -> Result<Reply, ModelError> {
    let server = Server::start(vec![Step::Send(response), Step::Close]).await;
    let asked = ask(&server.model_with(|options| options.dialect = dialect)).await;
    let mut reply = asked.map_err(cut_place)?;
    assert_eq!(&*std::mem::take(&mut reply.model), "test/small");
    Ok(reply)
}

/// An error without the model and the address at the end of its message.
pub(crate) fn cut_place(mut error: ModelError) -> ModelError {
    match &mut error {
        ModelError::Throttled { reason, .. }
        | ModelError::Rejected { reason }
        | ModelError::Adapted { reason }
        | ModelError::Failed { reason, .. }
        | ModelError::Cut { reason } => reason.truncate(reason.find(" (test/small at http://").unwrap_or(reason.len())),
        ModelError::Resting { .. } | ModelError::Unreachable(_) => {}
    }
    error
}
