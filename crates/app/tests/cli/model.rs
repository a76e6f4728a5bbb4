//! A model server that speaks the OpenAI chat dialect: it streams what the test wrote, or keeps silent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What the server does with one request.
pub(crate) enum Reply {
    /// Streams these chunks of text.
    Say(&'static [&'static str]),
    /// Asks for a tool: its name and arguments.
    Call(&'static str, Value),
    /// Says the last tool result back.
    Repeat,
    /// Streams these chunks of text and ends at the token limit.
    Limited(&'static [&'static str]),
    /// Streams these chunks of text and breaks off.
    Half(&'static [&'static str]),
    /// Streams these chunks of text and no more, and stays connected.
    Stall(&'static [&'static str]),
    /// Refuses.
    Refuse(u16, &'static str),
    /// Never answers.
    Hang,
}

/// A server on loopback that answers each request with the next reply.
pub(crate) struct ModelServer {
    address: String,
    /// The requests so far: head and body.
    pub(crate) requests: Arc<Mutex<Vec<(String, Value)>>>,
    arrived: Receiver<()>,
}

impl ModelServer {
    pub(crate) fn start(replies: Vec<Reply>) -> Self {
        let mut replies = replies.into_iter();
        Self::scripted(move |_| replies.next())
    }

    /// Answers each request with what the script says to its body, until it says nothing.
    pub(crate) fn scripted(script: impl FnMut(&Value) -> Option<Reply> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::<Mutex<Vec<_>>>::default();
        let (arrive, arrived) = channel();
        let heard = requests.clone();
        std::thread::spawn(move || serve(&listener, script, &heard, &arrive));
        Self { address, requests, arrived }
    }

    /// Makes a command use it.
    pub(crate) fn set(&self, command: &mut Command) {
        command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", self.base_url()).env("POLIS_MODEL", "openai/test");
    }

    /// Where it is.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Waits until one more request is there.
    pub(crate) fn wait(&self) {
        self.arrived.recv().unwrap();
    }
}

pub(crate) const KEY: &str = "sk-this-is-the-secret-of-the-test";

fn serve(
    listener: &TcpListener,
    mut script: impl FnMut(&Value) -> Option<Reply>,
    heard: &Mutex<Vec<(String, Value)>>,
    arrive: &Sender<()>,
) {
    let mut silent = Vec::new();
    while let Ok((mut stream, _)) = listener.accept() {
        let (head, body) = read(&stream);
        let Some(reply) = script(&body) else { break };
        let last_tool =
            body["messages"].as_array().and_then(|messages| messages.iter().rev().find(|message| message["role"] == "tool"));
        let repeated = last_tool.map(|message| message["content"].as_str().unwrap_or_default().to_owned());
        heard.lock().unwrap().push((head, body));
        // The test may be over and no longer interested.
        let _ = arrive.send(());
        let _ = match reply {
            Reply::Say(pieces) => say(&mut stream, pieces),
            Reply::Repeat => say(&mut stream, &[&format!("it says: {}", repeated.unwrap_or_default())]),
            Reply::Call(tool, arguments) => call(&mut stream, tool, &arguments),
            Reply::Limited(pieces) => begin(&mut stream)
                .and_then(|()| pieces.iter().try_for_each(|piece| chunk(&mut stream, json!({ "content": piece }), None)))
                .and_then(|()| chunk(&mut stream, json!({}), Some("length")))
                .and_then(|()| end(&mut stream)),
            Reply::Half(pieces) => begin(&mut stream)
                .and_then(|()| pieces.iter().try_for_each(|piece| chunk(&mut stream, json!({ "content": piece }), None))),
            Reply::Stall(pieces) => begin(&mut stream).and_then(|()| {
                let sent = pieces.iter().try_for_each(|piece| chunk(&mut stream, json!({ "content": piece }), None));
                silent.push(stream);
                sent
            }),
            Reply::Refuse(status, message) => refuse(&mut stream, status, message),
            Reply::Hang => {
                silent.push(stream);
                Ok(())
            }
        };
    }
    // Whoever was not answered is kept waiting.
    while !silent.is_empty() {
        std::thread::park();
    }
}

pub(crate) fn read(stream: &TcpStream) -> (String, Value) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap() == 0 {
            return (head, Value::Null);
        }
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    (head, serde_json::from_slice(&body).unwrap_or_default())
}

fn begin(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
}

fn chunk(stream: &mut TcpStream, delta: Value, finish: Option<&str>) -> std::io::Result<()> {
    let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
    write!(stream, "data: {chunk}\n\n")
}

fn end(stream: &mut TcpStream) -> std::io::Result<()> {
    let usage =
        json!({ "id": "c", "choices": [], "usage": { "prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46 } });
    write!(stream, "data: {usage}\n\ndata: [DONE]\n\n")
}

pub(crate) fn say(stream: &mut TcpStream, pieces: &[&str]) -> std::io::Result<()> {
    begin(stream)?;
    for piece in pieces {
        chunk(stream, json!({ "content": piece }), None)?;
    }
    chunk(stream, json!({}), Some("stop"))?;
    end(stream)
}

pub(crate) fn call(stream: &mut TcpStream, tool: &str, arguments: &Value) -> std::io::Result<()> {
    begin(stream)?;
    let arguments = arguments.to_string();
    let (front, back) = arguments.split_at(arguments.len() / 2);
    chunk(
        stream,
        json!({ "tool_calls": [{ "index": 0, "id": "call_1", "type": "function", "function": { "name": tool, "arguments": front } }] }),
        None,
    )?;
    chunk(stream, json!({ "tool_calls": [{ "index": 0, "function": { "arguments": back } }] }), None)?;
    chunk(stream, json!({}), Some("tool_calls"))?;
    end(stream)
}

fn refuse(stream: &mut TcpStream, status: u16, message: &str) -> std::io::Result<()> {
    let body = json!({ "error": { "message": message } }).to_string();
    write!(
        stream,
        "HTTP/1.1 {status} No\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Whether a message tells the model where it is.
pub(crate) fn is_environment(message: &Value) -> bool {
    message["content"]
        .as_str()
        .is_some_and(|text| text.starts_with("[polis] This is information") || text.starts_with("[polis] 以下是"))
}
