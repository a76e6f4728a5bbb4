//! One call of a model sends one request and no more, whatever the server does: what follows is the caller's decision, which is
//! logged and counted.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use polis_ports::{Format, Model, ModelError, ModelRequest, collect};
use polis_providers::{HttpClient, RemoteModel, RemoteOptions};

use crate::server::{SSE, events, head, hello, response};

/// What the server does with one request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// Answers and keeps the connection.
    None,
    /// Answers, promises to keep the connection, and closes it when the test says so.
    CloseAfterReply,
    /// Closes a new connection without reading.
    Unread,
    /// Closes once it has read the head: with the body unread that is a reset.
    AfterHead,
    /// Closes once it has read everything.
    AfterBody,
    /// Closes within the head of its response.
    WithinHead,
    /// Closes within the stream.
    WithinStream,
    /// Says nothing.
    Silent,
    /// Says nothing more within the stream.
    Stalled,
    /// Answers with a status.
    Status(u16, &'static str),
    /// Sends the client elsewhere: to itself.
    Redirect,
}

const FAULTS: &[Fault] = &[
    Fault::Unread,
    Fault::AfterHead,
    Fault::AfterBody,
    Fault::WithinHead,
    Fault::WithinStream,
    Fault::Silent,
    Fault::Stalled,
    Fault::Status(429, "slow down"),
    Fault::Status(500, "broken"),
    Fault::Status(503, "busy"),
    Fault::Status(400, "Unrecognized request argument supplied: response_format"),
    Fault::Status(400, "no such model"),
    Fault::Redirect,
];

/// A server on threads of its own, so that a test can wait for it while its runtime stands still.
struct Server {
    base_url: String,
    posts: Arc<AtomicUsize>,
    close: Sender<()>,
    closed: Receiver<()>,
}

impl Server {
    /// Does to each request what the next fault says; a connection serves requests until one of them ends it.
    fn start(faults: Vec<Fault>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (posts, (close, may_close), (tell, closed)) = (Arc::<AtomicUsize>::default(), channel(), channel());
        let (counted, to) = (posts.clone(), base_url.clone());
        std::thread::spawn(move || {
            let (mut faults, mut silent) = (faults.into_iter().peekable(), Vec::new());
            while faults.peek().is_some() {
                let Ok((stream, _)) = listener.accept() else { return };
                while let Some(fault) = faults.peek().copied() {
                    if fault != Fault::Unread && !read(&stream, &counted, fault) {
                        break;
                    }
                    faults.next();
                    match serve(&stream, fault, &to, &may_close) {
                        Next::Request => {}
                        Next::Close => break,
                        Next::Hold => {
                            silent.push(stream.try_clone().unwrap());
                            break;
                        }
                    }
                }
                drop(stream);
                // The test may be over already.
                let _ = tell.send(());
            }
        });
        Self { base_url, posts, close, closed }
    }

    fn posts(&self) -> usize {
        self.posts.load(Ordering::SeqCst)
    }

    fn model(&self) -> RemoteModel {
        let mut options = RemoteOptions::new("test", self.base_url.as_str(), "small");
        (options.first_timeout, options.idle_timeout) = (Duration::from_millis(300), Duration::from_millis(300));
        RemoteModel::new(HttpClient::default(), options).unwrap()
    }
}

enum Next {
    Request,
    Close,
    Hold,
}

/// Reads a request, as far as the fault lets it, and counts it; false when the client has gone.
fn read(mut stream: &TcpStream, posts: &AtomicUsize, fault: Fault) -> bool {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_exact(&mut byte).is_err() {
            return false;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("POST /v1/chat/completions "), "{head}");
    posts.fetch_add(1, Ordering::SeqCst);
    if fault != Fault::AfterHead {
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
        stream.read_exact(&mut vec![0; length]).unwrap();
    }
    true
}

fn serve(mut stream: &TcpStream, fault: Fault, to: &str, may_close: &Receiver<()>) -> Next {
    let hi = events(&[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#, "[DONE]"]);
    let whole = response(200, SSE, hi.as_bytes(), 999);
    let begun = [&head(200, SSE, "")[..], b"9\r\ndata: {\"c\r\n"].concat();
    match fault {
        Fault::None => {
            stream.write_all(&whole).unwrap();
            return Next::Request;
        }
        Fault::CloseAfterReply => {
            stream.write_all(&whole).unwrap();
            may_close.recv().unwrap();
        }
        Fault::Unread | Fault::AfterHead | Fault::AfterBody => {}
        Fault::WithinHead => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-").unwrap(),
        Fault::WithinStream => stream.write_all(&begun).unwrap(),
        Fault::Silent => return Next::Hold,
        Fault::Stalled => {
            stream.write_all(&begun).unwrap();
            return Next::Hold;
        }
        Fault::Status(status, said) => {
            let body = format!(r#"{{"error":{{"message":"{said}"}}}}"#);
            stream.write_all(&response(status, "application/json", body.as_bytes(), 999)).unwrap();
            return Next::Request;
        }
        Fault::Redirect => {
            let location = format!("location: {to}/chat/completions\r\n");
            stream.write_all(&[&head(307, "text/html", &location)[..], b"0\r\n\r\n"].concat()).unwrap();
            return Next::Request;
        }
    }
    if fault != Fault::AfterHead {
        let _ = stream.shutdown(Shutdown::Both);
    }
    Next::Close
}

/// A request with a shape, which some servers refuse.
fn shaped() -> ModelRequest {
    let format = Format { name: "answer".into(), schema: serde_json::json!({ "type": "object" }) };
    ModelRequest { format: Some(format.into()), ..hello() }
}

async fn ask(model: &RemoteModel) -> Result<String, ModelError> {
    Ok(collect(model.stream(shaped()).await?).await?.text.to_string())
}

#[tokio::test]
async fn one_call_sends_one_request_on_a_new_and_on_a_reused_connection() {
    for &fault in FAULTS {
        let fresh = Server::start(vec![fault, Fault::None]);
        let model = fresh.model();
        ask(&model).await.expect_err("a fault is no answer");
        // What nobody read is an attempt all the same: this side wrote it.
        assert_eq!(fresh.posts(), usize::from(fault != Fault::Unread), "{fault:?} on a new connection");
        assert_eq!(ask(&model).await.unwrap(), "hi", "{fault:?}");
        assert_eq!(fresh.posts(), 1 + usize::from(fault != Fault::Unread), "{fault:?}, then a new connection");

        if fault == Fault::Unread {
            continue;
        }
        let reused = Server::start(vec![Fault::None, fault, Fault::None]);
        let model = reused.model();
        assert_eq!(ask(&model).await.unwrap(), "hi");
        ask(&model).await.expect_err("a fault is no answer");
        assert_eq!(reused.posts(), 2, "{fault:?} on a reused connection");
        assert_eq!(ask(&model).await.unwrap(), "hi", "{fault:?}");
        assert_eq!(reused.posts(), 3, "{fault:?}, then a new connection");
    }
}

/// llama.cpp closes the connection after each stream and promises not to. The runtime does not run between the two calls, so that
/// only the kernel knows that the connection is closed.
#[tokio::test]
async fn a_connection_that_was_closed_before_it_is_used_again_costs_no_attempt() {
    let server = Server::start(vec![Fault::CloseAfterReply; 20]);
    let model = server.model();
    for asked in 1..=20 {
        assert_eq!(ask(&model).await.unwrap(), "hi", "call {asked}");
        assert_eq!(server.posts(), asked);
        server.close.send(()).unwrap();
        server.closed.recv().unwrap();
    }
}
